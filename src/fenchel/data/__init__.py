"""What we are given: the matrix, the targets, the weights, and readers for them."""

from fenchel.data.design import Design
from fenchel.data.products import Products
from fenchel.data.readers import read
from fenchel.data.target import encode_labels

__all__ = ["Design", "Products", "encode_labels", "read"]
