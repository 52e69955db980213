"""What other software takes: twins in scikit-learn, its sparse matrices, links to documentation, callbacks."""
