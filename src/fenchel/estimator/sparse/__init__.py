"""Sparse models: Lasso, elastic net, group and fused Lasso, sparse logistic regression."""
