"""Rows from Spark: projected by Catalyst, and written by one task for each share of the tree.

A small frame comes to the driver as Arrow and is written there: no shuffle, no Python worker. A
large one is sent by the hash of its key to the writer that owns the leaf, each writer makes one
file for each of its leaves, and only descriptions of files come back.

"Small" is Catalyst's own estimate of the frame's size; without one a frame counts as large.

Touches Spark and the clock.
"""

from __future__ import annotations

import pickle
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from uuid import uuid4

import pyarrow as pa
from pyspark.errors import (
    AnalysisException,
    ArithmeticException,
    DateTimeException,
    NumberFormatException,
    ParseException,
    SparkRuntimeException,
)
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from arcticlake.errors import InvalidRequest
from arcticlake.ingest.job import WriteJob, Written
from arcticlake.ingest.normalize import ColumnPlan, plan_columns, spare_columns
from arcticlake.ingest.parquet import write_batches
from arcticlake.ingest.route import Route, plan_route
from arcticlake.table.change import ACTION, ORDER, SEQ, TS, Action
from arcticlake.table.spec import TableSpec
from arcticlake.table.types import arrow_schema, schema_from_spark, spark_json
from arcticlake.tree.node import Node
from arcticlake.tree.spark import hash_column

SMALL_BYTES = 48 * 2**20
"""Estimated size up to which a frame is written on the driver: some 300 k rows of ten columns."""

_WRITER = "__arctic_writer"
_SIZE = re.compile(r"sizeInBytes=(?P<number>[\d.]+(?:E[+-]?\d+)?) (?P<unit>[KMGTPE]?i?B)")
_UNITS = {unit: 1024**power for power, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB"))}
_BAD_ROWS = (
    AnalysisException,
    ArithmeticException,
    DateTimeException,
    NumberFormatException,
    ParseException,
    SparkRuntimeException,
)


def is_small(frame: DataFrame) -> bool:
    """Whether Catalyst expects the frame to fit the driver easily."""
    size = estimated_bytes(frame)
    return size is not None and size <= SMALL_BYTES


def estimated_bytes(frame: DataFrame) -> float | None:
    """Return Catalyst's estimate of a frame's size; None when it has none."""
    view = f"arctic_size_{uuid4().hex}"
    frame.createOrReplaceTempView(view)
    try:
        plan = frame.sparkSession.sql(f"EXPLAIN COST TABLE {view}").first()
    finally:
        frame.sparkSession.catalog.dropTempView(view)
    found = _SIZE.search(str(plan[0])) if plan is not None else None
    if found is None or found["unit"] not in _UNITS:
        return None
    size: float = float(found["number"]) * _UNITS[found["unit"]]
    return size


def project_rows(frame: DataFrame, spec: TableSpec) -> DataFrame:
    """Return the frame with exactly the table's columns and types."""
    plan = plan_columns(_arrow(frame), arrow_schema(spec.schema), table=spec.name)
    return frame.select(*_business(plan, spec))


def project_changes(
    frame: DataFrame, spec: TableSpec, *, order_by: str | None, delete_when: str | None
) -> DataFrame:
    """Return the frame as change rows: the table's columns, then the hidden ones."""
    spare = spare_columns(order_by, delete_when, frame.columns)
    plan = plan_columns(_arrow(frame), arrow_schema(spec.schema), table=spec.name, spare=spare)
    action: Column = F.lit(str(Action.UPDATE_AFTER))
    if delete_when is not None:
        action = F.when(_condition(frame, delete_when, spec.name), str(Action.DELETE)).otherwise(
            action
        )
    order = F.monotonically_increasing_id()
    if order_by is not None:
        order = _order(frame, order_by, spec.name)
    return frame.select(*_business(plan, spec), *_hidden(action, order))


def project_deletes(frame: DataFrame, spec: TableSpec) -> DataFrame:
    """Return a frame of keys as deletes; columns that it lacks are null."""
    plan = plan_columns(_arrow(frame), arrow_schema(spec.schema), table=spec.name, partial=True)
    missing = [name for name in spec.key if name not in plan.targets]
    if missing:
        message = f"table {spec.name}: the rows lack key column {', '.join(missing)}"
        raise InvalidRequest(message)
    order = F.monotonically_increasing_id()
    return frame.select(*_business(plan, spec), *_hidden(F.lit(str(Action.DELETE)), order))


def _arrow(frame: DataFrame) -> pa.Schema:
    return arrow_schema(schema_from_spark(frame.schema.jsonValue()))


def _business(plan: ColumnPlan, spec: TableSpec) -> list[Column]:
    sources = dict(zip(plan.targets, plan.sources, strict=True))
    wanted = StructType.fromJson(spark_json(spec.schema))
    return [
        (F.col(f"`{sources[field.name]}`") if field.name in sources else F.lit(None))
        .cast(field.dataType)
        .alias(field.name)
        for field in wanted.fields
    ]


def _hidden(action: Column, order: Column) -> list[Column]:
    return [
        action.alias(ACTION),
        F.current_timestamp().alias(TS),
        order.cast("bigint").alias(ORDER),
        F.lit(None).cast("bigint").alias(SEQ),
    ]


def _condition(frame: DataFrame, delete_when: str, table: str) -> Column:
    condition = F.expr(delete_when)
    try:
        kind = frame.select(condition.alias("c")).schema["c"].dataType.simpleString()
    except (AnalysisException, ParseException) as error:
        message = f"table {table}: delete_when {delete_when!r} cannot be evaluated: {error}"
        raise InvalidRequest(message) from error
    if kind != "boolean":
        message = f"table {table}: delete_when {delete_when!r} is {kind}, not a condition"
        raise InvalidRequest(message)
    return condition


def _order(frame: DataFrame, order_by: str, table: str) -> Column:
    names = {name.lower(): name for name in frame.columns}
    if order_by.lower() not in names:
        message = f"table {table}: order_by names {order_by!r}, which is not a column of the rows"
        raise InvalidRequest(message)
    kind = frame.schema[names[order_by.lower()]].dataType.simpleString()
    if kind not in {"tinyint", "smallint", "int", "bigint"}:
        message = (
            f"table {table}: order_by {order_by} is {kind}; it must be a whole number, such as a "
            "log position or an offset"
        )
        raise InvalidRequest(message)
    # NULL has no place in an order: it fails here instead of guessing one.
    column = F.col(f"`{names[order_by.lower()]}`")
    missing = F.raise_error(F.lit(f"table {table}: NULL in order_by {order_by}"))
    return F.coalesce(column.cast("bigint"), missing.cast("bigint"))


def collect_if_small(frame: DataFrame, projected: DataFrame, schema: pa.Schema) -> pa.Table | None:
    """Return the projected rows of a frame that fits the driver; None for one that does not."""
    return collect_unless_huge(projected, schema) if is_small(frame) else None


def collect_unless_huge(frame: DataFrame, schema: pa.Schema) -> pa.Table | None:
    """Return the rows of a frame that was expected to fit the driver; None if it does not.

    What is expected may be far too low, after an explode for instance. Spark then stops the
    transfer at its own limit for results, and the rows take the other way.
    """
    try:
        return collect(frame, schema)
    except Exception as error:
        if "spark.driver.maxResultSize" in str(error):
            return None
        raise


def collect(frame: DataFrame, schema: pa.Schema) -> pa.Table:
    """Return the frame's rows as Arrow in the given schema; NULLs are looked at by the writer.

    Hidden columns that are the same in all rows do not cross from the JVM: they are put in here.
    """
    with invalid_rows():
        rows = frame.drop(TS, SEQ).toArrow()
    if TS in schema.names:
        now = pa.scalar(time.time_ns() // 1000, pa.int64()).cast(schema.field(TS).type)
        rows = rows.append_column(TS, pa.repeat(now, rows.num_rows))
        rows = rows.append_column(SEQ, pa.nulls(rows.num_rows, pa.int64()))
    optional = pa.schema([column.with_nullable(True) for column in schema])
    return rows.select(schema.names).cast(optional)


@contextmanager
def invalid_rows(table: str = "") -> Iterator[None]:
    """Turn Spark's own words for rows that cannot be cast or computed into ours."""
    try:
        yield
    except _BAD_ROWS as error:
        reason = str(error).strip().partition("\n")[0]
        place = f"table {table}: " if table else ""
        message = f"{place}the rows cannot be brought into the table's types: {reason}"
        raise InvalidRequest(message) from error


def collect_places(changes: DataFrame, spec: TableSpec) -> pa.Table:
    """Return key, partition columns and order of change rows, for `locate`."""
    names = dict.fromkeys((*spec.key, *spec.names(spec.partition_source_ids), ORDER, TS))
    return changes.select(*(f"`{name}`" for name in names)).toArrow()


def write_frame(
    frame: DataFrame,
    job: WriteJob,
    spec: TableSpec,
    *,
    sort: Sequence[str] = (),
    weights: Mapping[Node, float] | None = None,
) -> Written:
    """Write a large frame by its own tasks; one writer owns each share of the tree."""
    if job.bucket is not None and spec.bucket_id is not None:
        cores = int(str(frame.sparkSession.conf.get("spark.sql.shuffle.partitions", "4")))
        route = plan_route(job.forest, cores, weights)
        kind = spec.schema.find_type(spec.bucket_id)
        hashed = hash_column(F.col(f"`{job.bucket}`"), kind)
        frame = (
            frame.withColumn(_WRITER, _writer_column(hashed, route))
            .repartitionById(route.writer_count, _WRITER)
            .drop(_WRITER)
        )
    if sort:
        frame = frame.sortWithinPartitions(*(F.col(f"`{name}`").asc_nulls_first() for name in sort))
    with invalid_rows(spec.name):
        answers = frame.mapInArrow(_writer(job), "written binary").collect()
    done: list[Written] = [pickle.loads(answer[0]) for answer in answers]  # noqa: S301 - our tasks
    files = tuple(file for written in done for file in written.files)
    return Written(files, next((written.problem for written in done if written.problem), None))


def _writer_column(hashed: Column, route: Route) -> Column:
    count = route.writer_count
    index = hashed.bitwiseAND(F.lit(len(route.writers) - 1))
    if all(writer == place % count for place, writer in enumerate(route.writers)):
        return F.pmod(index, F.lit(count)).cast("int")
    return F.get(F.lit(list(route.writers)), index).cast("int")


def _writer(
    job: WriteJob,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the task: rows of one share of the tree in, one description of files out."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        written = write_batches(batches, job)
        yield pa.RecordBatch.from_pydict(
            {"written": pa.array([pickle.dumps(written)], pa.binary())}
        )

    return run
