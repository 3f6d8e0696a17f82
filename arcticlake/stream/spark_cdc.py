"""Change messages → change rows, all of it inside the JVM.

The select lists of `cdc_format` and `cdc_plan` run one after the other; Catalyst keeps them apart
where a costly expression is used more than once, so a message is parsed once. No row passes
through Python before it is typed and split.

Touches Spark.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from arcticlake.errors import InvalidRequest
from arcticlake.ingest.normalize import plan_columns
from arcticlake.stream.cdc_format import ROWS, ChangeRequest, format_named, message_columns
from arcticlake.stream.cdc_plan import (
    EXTRA,
    PLACED,
    POSITION,
    RAW,
    REASON,
    REJECT,
    SPLIT,
    TRUNCATE,
    cell_type,
    change_columns,
    image_columns,
    judged_columns,
    plain_columns,
    value_columns,
)
from arcticlake.stream.cdc_survey import Survey, kind_of
from arcticlake.stream.cdc_types import name_of
from arcticlake.table.change import ACTION, ORDER
from arcticlake.table.spec import TableSpec
from arcticlake.table.types import arrow_schema, schema_from_spark, spark_type_name

VALUE = "value"
"""The column of messages, as Spark's Kafka source has it."""
PARSE_SETTINGS = {"spark.sql.codegen.wholeStage": "false"}
"""In one piece the generated code is too long for the JVM to compile, and runs half as fast."""


def parse_changes(frame: DataFrame, spec: TableSpec, request: ChangeRequest) -> DataFrame:
    """Return a frame of messages as change rows of the table, with notes for the verb."""
    if request.format == ROWS:
        typed = _plain(frame, spec, request)
    else:
        known = format_named(request.format)
        typed = _messages(frame, spec, request, cell=cell_type(spec))
        images = image_columns(spec, known)
        for columns in (*images, *value_columns(spec, known, request.time_unit)):
            typed = typed.selectExpr(*columns)
    judged = typed.selectExpr(*judged_columns(spec, request))
    for columns in change_columns(spec, request):
        judged = judged.selectExpr(*columns)
    return judged


def _messages(frame: DataFrame, spec: TableSpec, request: ChangeRequest, *, cell: str) -> DataFrame:
    """Return operation and images of messages without tombstones.

    No condition on them may follow: Spark would carry it below the parsing, and parse again there.
    """
    value = _column(frame, VALUE, "the messages", spec.name)
    kind = frame.schema[value].dataType.simpleString()
    if kind not in {"string", "binary"}:
        message = (
            f"table {spec.name}: column {value} is {kind}; format {request.format!r} takes "
            "messages as string or binary"
        )
        raise InvalidRequest(message)
    parsed = frame.where(F.col(name_of(value)).isNotNull()).select(
        F.col(name_of(value)).cast("string").alias("raw"), _given(frame, spec, request)
    )
    known = format_named(request.format)
    for columns in message_columns(known, ordered=request.order_by is not None, cell=cell):
        parsed = parsed.selectExpr(*columns)
    return parsed


def _plain(frame: DataFrame, spec: TableSpec, request: ChangeRequest) -> DataFrame:
    assert request.action is not None, "the request was checked"
    action = _column(frame, request.action, "action", spec.name)
    known = {name.lower() for name in spec.columns}
    spare = [name for name in frame.columns if name.lower() not in known]
    plan = plan_columns(_arrow(frame), arrow_schema(spec.schema), table=spec.name, spare=spare)
    sources = dict(zip(plan.targets, plan.sources, strict=True))
    ordered = frame.select("*", _given(frame, spec, request))
    named = ChangeRequest(request.format, order_by=request.order_by, action=action)
    for columns in plain_columns(spec, sources, named, frame.columns):
        ordered = ordered.selectExpr(*columns)
    return ordered


def _given(frame: DataFrame, spec: TableSpec, request: ChangeRequest) -> Column:
    if request.order_by is None and request.format == ROWS:
        return F.monotonically_increasing_id().alias("given")
    if request.order_by is None:
        return F.lit(None).cast("bigint").alias("given")
    name = _column(frame, request.order_by, "order_by", spec.name)
    kind = frame.schema[name].dataType.simpleString()
    if kind not in {"tinyint", "smallint", "int", "bigint"}:
        message = (
            f"table {spec.name}: order_by {name} is {kind}; it must be a whole number, such as a "
            "log position or an offset"
        )
        raise InvalidRequest(message)
    return F.col(name_of(name)).cast("bigint").alias("given")


def _column(frame: DataFrame, wanted: str, role: str, table: str) -> str:
    for name in frame.columns:
        if name.lower() == wanted.lower():
            return str(name)
    message = (
        f"table {table}: there is no column {wanted!r} for {role}; the frame has "
        f"{', '.join(frame.columns)}"
    )
    raise InvalidRequest(message)


def _arrow(frame: DataFrame) -> pa.Schema:
    return arrow_schema(schema_from_spark(frame.schema.jsonValue()))


def survey_frame(changes: DataFrame) -> Survey:
    """Return what is in a parsed frame, by one pass."""
    action = F.col(ACTION)
    good = ~action.isin(REJECT, TRUNCATE)
    row = changes.agg(
        F.count_if(action == REJECT),
        F.count_if((action != REJECT) & F.col(ORDER).isNull()),
        F.count_if(good & ~F.col(PLACED)),
        F.count_if(F.col(SPLIT) & action.startswith("-")),
        F.max(F.when(action == TRUNCATE, F.col(ORDER))),
        F.array_distinct(F.flatten(F.collect_set(EXTRA))),
    ).first()
    assert row is not None, "an aggregate has one row"
    return Survey(row[0], row[1], row[2], row[3], row[4], tuple(sorted(row[5])))


def collect_rejects(changes: DataFrame, limit: int) -> pa.Table:
    """Return what was not understood: raw text, reason and position."""
    return (
        changes.where(F.col(ACTION) == REJECT)
        .orderBy(POSITION)
        .select(F.col(RAW).alias("raw"), F.col(REASON).alias("reason"), F.col(POSITION))
        .limit(limit)
        .withColumnRenamed(POSITION, "position")
        .toArrow()
    )


def infer_kinds(
    frame: DataFrame, spec: TableSpec, request: ChangeRequest, names: Sequence[str]
) -> dict[str, str]:
    """Return the types of columns that the table does not have; one with no value is left out."""
    wanted = {name.lower() for name in names}
    if request.format == ROWS:
        schema = schema_from_spark(frame.schema.jsonValue())
        return {
            field.name: spark_type_name(field.field_type)
            for field in schema.fields
            if field.name.lower() in wanted
        }
    images = _messages(frame, spec, request, cell="variant").where("NOT broken")
    cells = images.selectExpr("explode(coalesce(newer, older)) AS (name, cell)")
    found = (
        cells.where(F.lower("name").isin(*wanted))
        .selectExpr("lower(name) AS name", "schema_of_variant(cell) AS kind")
        .distinct()
        .collect()
    )
    kinds: dict[str, set[str]] = {}
    for row in found:
        kinds.setdefault(row["name"], set()).add(str(row["kind"]).partition("(")[0])
    spelled = {name.lower(): name for name in names}
    inferred = {spelled[name]: kind_of(seen) for name, seen in kinds.items()}
    return {name: kind for name, kind in inferred.items() if kind is not None}
