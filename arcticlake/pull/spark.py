"""A pull as a DataFrame, for ranges that are too large for the driver.

Python workers read the files, one task for some files each, and drop the dead rows; Spark sorts.
Where a key may lie in several partitions a window picks its newest row.

Touches Spark.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyiceberg.schema import Schema
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from arcticlake.pull.arrow import pull_task
from arcticlake.pull.columns import (
    CHANGE_TYPE,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    ENDS,
    RANK,
    travel_schema,
)
from arcticlake.pull.parquet import pull_file
from arcticlake.pull.plan import PullPlan
from arcticlake.resolve.bitmap import Mask, mask_of, words_of
from arcticlake.table.change import ORDER
from arcticlake.table.storage import Storage
from arcticlake.table.types import arrow_schema, spark_json

_FILE, _ROW, _NEWEST = "__arctic_file", "__arctic_row", "__arctic_newest"
_TASKS_MAX = 512


def told_struct(schema: Schema) -> StructType:
    """Return the columns of an answer as Spark knows them."""
    struct: StructType = StructType.fromJson(spark_json(schema))
    for field in struct.fields:
        field.nullable = True
    struct = struct.add(CHANGE_TYPE, "string").add(COMMIT_VERSION, "long")
    return struct.add(COMMIT_TIMESTAMP, "timestamp")


def pull_frame(
    spark: SparkSession,
    plan: PullPlan,
    storage: Storage,
    schema: Schema,
    dead: Mapping[str, Mask],
) -> DataFrame:
    """Return the rows of the plan's files as they travel, with file and row number, unordered."""
    business = arrow_schema(schema)
    tasks = [
        pickle.dumps((number, pull_task(pulled), _packed(dead.get(pulled.file.path))))
        for number, pulled in enumerate(plan.files)
    ]
    travel = travel_schema(business)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for raw in batch.column(0).to_pylist():
                number, task, words = pickle.loads(raw)  # noqa: S301 - made a few lines above
                mask = None if words is None else mask_of(words, task.scan.rows)
                row = 0
                for rows in pull_file(storage, task, business, mask):
                    places = [
                        pa.repeat(pa.scalar(number, pa.int64()), rows.num_rows),
                        pa.array(range(row, row + rows.num_rows), pa.int64()),
                    ]
                    row += rows.num_rows
                    names = [*travel.names, _FILE, _ROW]
                    yield pa.RecordBatch.from_arrays([*rows.columns, *places], names=names)

    frame = spark.createDataFrame(pa.table({"task": pa.array(tasks, pa.binary())}))
    struct = told_struct(schema).add(RANK, "long").add(ORDER, "long").add(ENDS, "boolean")
    struct = struct.add(_FILE, "long").add(_ROW, "long")
    return frame.repartition(max(1, min(len(tasks), _TASKS_MAX))).mapInArrow(run, struct)


def _packed(dead: Mask | None) -> object:
    return words_of(dead) if dead is not None and dead.any() else None


def with_overwrites(spark: SparkSession, frame: DataFrame, rows: pa.Table) -> DataFrame:
    """Return the frame and the rows that tell of overwrites."""
    if not rows.num_rows:
        return frame
    places = pa.repeat(pa.scalar(-1, pa.int64()), rows.num_rows)
    placed = rows.append_column(_FILE, places).append_column(_ROW, places)
    return frame.unionByName(spark.createDataFrame(placed, frame.schema))


def newest_on_spark(frame: DataFrame, key: Sequence[str]) -> DataFrame:
    """Return the newest row of each key, as `newest_of_key` does."""
    newest_first = [F.col(RANK).desc(), F.col(ORDER).desc_nulls_last(), F.col(ENDS).asc()]
    of_key = Window.partitionBy(*map(_named, key)).orderBy(*newest_first)
    numbered = frame.withColumn(_NEWEST, F.row_number().over(of_key))
    return numbered.where(F.col(_NEWEST) == 1).drop(_NEWEST)


def in_order_on_spark(
    frame: DataFrame, plan: PullPlan, key: Sequence[str], *, moves: bool
) -> DataFrame:
    """Return rows in the order of the answer, as `in_order` does."""
    terms: list[Column] = [F.col(COMMIT_VERSION)]
    if plan.one_of_key:
        terms += [_named(name).asc_nulls_first() for name in key]
    else:
        terms.append(F.col(ORDER).asc_nulls_first())
        terms += [F.col(ENDS).desc()] if moves else []
    return frame.orderBy(*terms, F.col(_FILE), F.col(_ROW))


def _named(name: str) -> Column:
    return F.col(f"`{name.replace('`', '``')}`")
