"""The key hash as a Spark column, equal to Iceberg's bucket hash.

Spark's `hash` is the same murmur3, but seeded with 42. It chains: each column's result seeds the
next one. Every step for an int is a bijection, so exactly one int hashes to 0, the seed that
Iceberg uses; hashing it first makes the rest exact. That covers keys that Iceberg hashes as a
long. Text, bytes and decimals go through Arrow and the same library as everywhere else.

Touches Spark (columns only).
"""

from __future__ import annotations

import pyarrow as pa
from pyiceberg.types import (
    DateType,
    IcebergType,
    IntegerType,
    LongType,
    TimestampType,
    TimestamptzType,
)
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType as SparkInteger

from arcticlake.tree.hash import HASH_BUCKETS, key_hash

HASHES_TO_ZERO = -1693959553
"""The int X with hash(X) = 0 under Spark's seed 42."""


def hash_column(key: Column, kind: IcebergType) -> Column:
    """Return the low 30 bits of the key's hash as an int column."""
    match kind:
        case LongType() | TimestampType() | TimestamptzType():
            hashed: Column = F.hash(F.lit(HASHES_TO_ZERO), key)
        case IntegerType():
            hashed = F.hash(F.lit(HASHES_TO_ZERO), key.cast("bigint"))
        case DateType():
            hashed = F.hash(F.lit(HASHES_TO_ZERO), F.unix_date(key).cast("bigint"))
        case _:
            # Spark's stubs do not know arrow_udf yet.
            hashed = F.arrow_udf(_hash_in_python, SparkInteger())(key)  # type: ignore[attr-defined]
    return hashed.bitwiseAND(F.lit(HASH_BUCKETS - 1))


def _hash_in_python(key: pa.Array) -> pa.Array:
    return pa.array(key_hash(key), pa.int32())
