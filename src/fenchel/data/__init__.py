"""Input data: the matrix, the targets, the sample weights, and readers for files."""

from fenchel.data.class_differences import ClassDifferences
from fenchel.data.convert import encode_labels
from fenchel.data.design import Design
from fenchel.data.products import Products
from fenchel.data.readers import batches, read

__all__ = ["ClassDifferences", "Design", "Products", "batches", "encode_labels", "read"]
