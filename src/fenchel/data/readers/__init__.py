"""Files to arrays: svmlight, csv, npz and parquet, plain or compressed."""

from fenchel.data.readers.formats import FORMATS, batches, read

__all__ = ["FORMATS", "batches", "read"]
