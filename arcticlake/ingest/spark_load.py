"""A batch of rows into base by the JVM's own Parquet writer: no row crosses into Python.

Handing ten million rows of ten columns from the JVM to Python takes longer than writing them, so
the first load of a table does not: Spark cuts the rows by leaf and writes them itself, with field
ids, and Python only reads footers and keys to check and commit. Each task writes one file for each
leaf, so this way is for batches that give every leaf a few files (`load_fits`); larger ones are
shuffled to one writer a leaf, which splits it as it fills (`ingest/spark.py`).

Touches Spark and, by it, data files.
"""

from __future__ import annotations

from uuid import uuid4

from pyiceberg.schema import Schema
from pyiceberg.types import (
    DateType,
    IntegerType,
    LongType,
    PrimitiveType,
    TimestampType,
    TimestamptzType,
)
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from arcticlake.ingest.job import WriteJob, Written
from arcticlake.ingest.parquet_check import written_by_others
from arcticlake.ingest.spark import estimated_bytes, invalid_rows
from arcticlake.spark import jvm_can_open, settings_of
from arcticlake.table.spec import TableSpec
from arcticlake.table.types import spark_json
from arcticlake.tree.forest import Tree
from arcticlake.tree.spark import hash_column

FILES_PER_LEAF_MAX = 8
"""How many full files one load may give a leaf before splitting it is the better way."""
LEAVES_MAX = 64
"""Leaves that a task keeps a file open for."""

_LEAF = "__arctic_leaf"
_ZSTD_LEVEL = "parquet.compression.codec.zstd.level"
_HASHED_BY_JVM = (IntegerType, LongType, DateType, TimestampType, TimestamptzType)
_SETTINGS = {
    # Other readers do not take the old 96-bit timestamps.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # One open file for each leaf instead of a sort by leaf.
    "spark.sql.maxConcurrentOutputFileWriters": str(LEAVES_MAX),
}


def load_fits(frame: DataFrame, job: WriteJob, spec: TableSpec) -> bool:
    """Whether a frame of rows can be loaded by the JVM, and should be."""
    if spec.bucket_id is None or spec.partition or spec.sort_ids:
        return False
    plain = all(isinstance(column.field_type, PrimitiveType) for column in spec.schema.fields)
    hashed = isinstance(spec.schema.find_type(spec.bucket_id), _HASHED_BY_JVM)
    leaves = len(job.forest.tree(()).leaves)
    if not plain or not hashed or leaves > LEAVES_MAX:
        return False
    size = estimated_bytes(frame)
    if size is None or size > leaves * FILES_PER_LEAF_MAX * job.file_bytes_max:
        return False
    return jvm_can_open(frame.sparkSession, job.location)


def load_frame(frame: DataFrame, job: WriteJob, spec: TableSpec) -> Written:
    """Write the rows below a folder of their own and return the checked files."""
    assert spec.bucket_id is not None, "a load goes through the tree"
    tree = job.forest.tree(())
    key = spec.schema.find_field(spec.bucket_id)
    folder = f"{job.location}/{uuid4()}"
    tasks = int(str(frame.sparkSession.conf.get("spark.sql.shuffle.partitions", "4")))
    leaf = _leaf_column(hash_column(F.col(f"`{key.name}`"), key.field_type), tree)
    placed = frame.select(*_with_ids(spec.schema), leaf.alias(_LEAF))
    with settings_of(frame.sparkSession, _SETTINGS), invalid_rows(spec.name):
        writer = placed.coalesce(tasks).write.partitionBy(_LEAF)
        writer.option(_ZSTD_LEVEL, "1").parquet(folder, compression="zstd")
    return written_by_others(job, folder, tree.leaves)


def _with_ids(schema: Schema) -> list[Column]:
    """Return the columns with the metadata that Spark's writer takes field ids from."""
    struct: StructType = StructType.fromJson(spark_json(schema))
    return [
        F.col(f"`{field.name}`").alias(field.name, metadata=field.metadata)
        for field in struct.fields
    ]


def _leaf_column(hashed: Column, tree: Tree) -> Column:
    mask = max(leaf.mask for leaf in tree.leaves)
    numbers = [tree.leaves.index(tree.leaf(index)) for index in range(mask + 1)]
    index = hashed.bitwiseAND(F.lit(mask))
    return index if numbers == list(range(mask + 1)) else F.get(F.lit(numbers), index)
