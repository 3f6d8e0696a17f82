"""apply_changes and stream_changes: change messages of a database, from the call to one commit.

    messages ─ parse (JVM) ─▶ survey ─▶ new columns ─▶ rejects ─▶ changes: one commit

Whatever stops a batch stops it at the survey: too many rejects, a column that the table lacks, a
message without a position. Then rejects are written, and after them the changes. The order
matters: a crash between the two loses nothing, because the changes are not there yet and the batch
comes again; and in a stream nothing doubles, because both commits know the name of the batch.

Rows are read from the table only for a truncate, which deletes what is alive, for changes whose
old partition nobody tells (`locate`), and for swaps of rows that look the same.

Touches the clock, files, the catalog and Spark.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from arcticlake.commit.iceberg_state import load_state
from arcticlake.errors import InvalidRequest
from arcticlake.ingest import spark as ingest_spark
from arcticlake.ingest.iceberg import Committed, find_once
from arcticlake.ingest.normalize import rows_of
from arcticlake.ingest.plan import changes_schema
from arcticlake.spark import settings_of
from arcticlake.stream.cdc_format import ROWS, ChangeRequest
from arcticlake.stream.cdc_plan import NOTES
from arcticlake.stream.cdc_survey import Survey, show_rejects, survey_rows
from arcticlake.stream.spark_cdc import (
    PARSE_SETTINGS,
    infer_kinds,
    parse_changes,
    survey_frame,
)
from arcticlake.table.iceberg_evolve import add_column
from arcticlake.table.spec import TableSpec
from arcticlake.verbs.cdc_apply import Parsed, apply_parsed
from arcticlake.verbs.opened import Opened
from arcticlake.verbs.rejects import keep_rejects
from arcticlake.verbs.stream import MicroBatch, StreamRequest, start, streaming_frame
from arcticlake.verbs.write import BATCH, Batch, until_settled

SHOWN_MAX = 10
"""Rejects that are fetched for an error, however small the limit."""


def apply_changes(
    table: Opened, frame: object, request: ChangeRequest, batch: Batch = BATCH
) -> Committed:
    """Apply a frame of change messages in one commit; what is not understood goes to rejects."""
    request.check(table.name)
    pair = table.pair_to_write()
    _check_keyed(pair.spec)
    if (repeated := find_once(pair, batch.once)) is not None:
        return repeated
    messages = _frame(table, frame)
    parsed = _prepare(table, messages, request, batch)

    def write() -> Committed | None:
        nonlocal parsed
        state = load_state(table.pair_to_write())
        if state.pair.spec.schema == parsed.schema:
            return apply_parsed(state, parsed, request, batch)
        parsed.release()  # columns changed meanwhile, and with them perhaps what is understood
        parsed = _prepare(table, messages, request, batch)
        return None

    try:
        return until_settled(table, write)
    finally:
        parsed.release()


def _prepare(table: Opened, messages: DataFrame, request: ChangeRequest, batch: Batch) -> Parsed:
    """Parse a batch, take up new columns, refuse what must be refused, and keep the rejects."""
    spec = table.pair_to_write().spec
    parsed = _parse(messages, spec, request, batch)
    try:
        if parsed.survey.extra and spec.options.on_new_column != "ignore":
            _add_columns(table, messages, request, parsed.survey)
            parsed.release()
            spec = table.pair_to_write().spec
            parsed = _parse(messages, spec, request, batch)
        _check(spec, request, parsed.survey)
        _write_rejects(table, spec, parsed, batch)
    except BaseException:
        parsed.release()
        raise
    return parsed


def stream_changes(
    table: Opened, frame: object, request: StreamRequest, changes: ChangeRequest
) -> StreamingQuery:
    """Start a query that applies every micro-batch of change messages, each exactly once."""
    changes.check(table.name)
    stream = streaming_frame(frame, table.name, "apply_changes")
    spec = table.pair_to_write().spec
    _check_keyed(spec)
    if changes.format == ROWS and changes.order_by is None:
        message = (
            f"table {table.name}: rows of a stream come in no order; give order_by a column that "
            "orders them, such as Kafka's offset"
        )
        raise InvalidRequest(message)
    parse_changes(stream, spec, changes)  # what the schema can tell is told before the start
    return start(table, stream, request, MicroBatch(apply_changes, changes))


def _check_keyed(spec: TableSpec) -> None:
    if not spec.keyed:
        message = f"table {spec.name} has no primary key, and changes need one; use insert()"
        raise InvalidRequest(message)


def _frame(table: Opened, frame: object) -> DataFrame:
    if isinstance(frame, DataFrame):
        return frame
    made: DataFrame = table.session().createDataFrame(rows_of(frame, table=table.name))
    return made


def _parse(messages: DataFrame, spec: TableSpec, request: ChangeRequest, batch: Batch) -> Parsed:
    changes = parse_changes(messages, spec, request)
    schema = pa.schema([*changes_schema(spec), *NOTES])
    with settings_of(messages.sparkSession, PARSE_SETTINGS), ingest_spark.invalid_rows(spec.name):
        rows = batch.collect(messages, changes, schema)
        if rows is not None:
            return Parsed(spec.schema, survey_rows(rows), rows, None)
        kept = changes.persist()  # looked at, then written
        try:
            return Parsed(spec.schema, survey_frame(kept), None, kept)
        except BaseException:
            kept.unpersist()
            raise


def _add_columns(
    table: Opened, messages: DataFrame, request: ChangeRequest, survey: Survey
) -> None:
    """Add the columns that the table lacks, or say that they are new."""
    pair = table.pair()
    if pair.spec.options.on_new_column == "fail":
        message = (
            f"table {table.name} has no column {', '.join(survey.extra)}, and the messages bring "
            "it; nothing was written. Use add_column(), or the option on-new-column: add takes new "
            "columns into the table, ignore leaves them out"
        )
        raise InvalidRequest(message)
    for name, kind in infer_kinds(messages, pair.spec, request, survey.extra).items():
        add_column(table.pair(), name, kind)


def _check(spec: TableSpec, request: ChangeRequest, survey: Survey) -> None:
    """Refuse a batch whose order or places nobody knows."""
    if survey.homeless:
        reason = (
            f"have NULL in order_by {request.order_by}, or a number too large to order by"
            if request.order_by
            else "do not say their position in the log of the source"
        )
        message = (
            f"table {spec.name}: {survey.homeless} messages {reason}; give order_by a column that "
            "orders them, such as Kafka's offset; nothing was written"
        )
        raise InvalidRequest(message)
    if survey.unplaced and not (request.locate or spec.options.locate):
        sources = ", ".join(spec.names(spec.partition_source_ids))
        message = (
            f"table {spec.name} is partitioned by {sources}, and {survey.unplaced} changes do not "
            "say where their row was before. Let the source send whole before images, or use "
            "locate=True or the option locate=true to look rows up; nothing was written"
        )
        raise InvalidRequest(message)


def _write_rejects(table: Opened, spec: TableSpec, parsed: Parsed, batch: Batch) -> None:
    """Keep what was not understood, up to the limit; beyond, nothing at all is written."""
    count, limit = parsed.survey.rejects, spec.options.rejects_max
    if count == 0:
        return
    rejects = parsed.rejects(max(limit, SHOWN_MAX))
    if count > limit:
        message = (
            f"table {spec.name}: {count} messages were not understood, and rejects-max is {limit}; "
            f"nothing was written. {show_rejects(rejects)}"
        )
        raise InvalidRequest(message)
    keep_rejects(table, rejects, batch.once)
