"""Functions of a kernel: dual ascent and stochastic gradients on rows of the Gram matrix."""
