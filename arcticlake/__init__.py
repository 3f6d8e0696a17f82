"""Arctic: a stream-and-batch lakehouse for PySpark, without a single jar."""

from arcticlake.lake import Lake, Table

__version__ = "0.1.0"
__all__ = ["Lake", "Table", "__version__"]
