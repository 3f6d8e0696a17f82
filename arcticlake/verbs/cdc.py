"""apply_changes and stream_changes: change messages of a database, from the call to one commit.

    messages ─ parse (JVM) ─▶ survey ─▶ new columns ─▶ rejects ─▶ changes: one commit

Whatever stops a batch stops it at the survey: too many rejects, a column that the table lacks, a
message without a position. Then rejects are written, and after them the changes. The order
matters: a crash between the two loses nothing, because the changes are not there yet and the batch
comes again; and in a stream nothing doubles, because both commits know the name of the batch.

Rows are read from the table only for a truncate, which deletes what is alive, and for changes whose
old partition nobody tells (`locate`).

Touches the clock, files, the catalog and Spark.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from arcticlake.commit.iceberg_state import TableState, load_state
from arcticlake.errors import InvalidRequest
from arcticlake.ingest import spark as ingest_spark
from arcticlake.ingest.iceberg import Committed, append_changes, find_once
from arcticlake.ingest.job import Written
from arcticlake.ingest.normalize import cast_rows, changes_of, plan_columns, rows_of
from arcticlake.ingest.parquet import remove_files, write_in_threads
from arcticlake.ingest.plan import change_job, place_terms
from arcticlake.read.lookup import find_rows
from arcticlake.spark import settings_of
from arcticlake.stream.cdc_format import ROWS, ChangeRequest
from arcticlake.stream.cdc_plan import NOTES, PLACED, REJECT, SPLIT, TRUNCATE
from arcticlake.stream.cdc_split import (
    after_truncate,
    drop_replaced,
    fill_places,
    replaced_orders,
    understood,
    unplaced_keys,
)
from arcticlake.stream.cdc_survey import Survey, rejects_of, show_rejects, survey_rows
from arcticlake.stream.spark_cdc import (
    PARSE_SETTINGS,
    collect_rejects,
    infer_kinds,
    parse_changes,
    survey_frame,
)
from arcticlake.table.change import ACTION, ORDER, TS, Action
from arcticlake.table.hidden import change_schema
from arcticlake.table.iceberg_evolve import add_column
from arcticlake.table.spec import TableSpec
from arcticlake.table.types import arrow_schema
from arcticlake.verbs.locate import LOCATED_ORDER, move_deletes
from arcticlake.verbs.opened import Opened, lookup_in
from arcticlake.verbs.rejects import keep_rejects
from arcticlake.verbs.stream import MicroBatch, StreamRequest, start, streaming_frame
from arcticlake.verbs.write import BATCH, Batch, refuse, until_settled

SHOWN_MAX = 10
"""Rejects that are fetched for an error, however small the limit."""


@dataclass(frozen=True, slots=True)
class _Parsed:
    """A parsed batch: in memory, or as a frame that Spark keeps."""

    survey: Survey
    rows: pa.Table | None
    frame: DataFrame | None

    def rejects(self, limit: int) -> pa.Table:
        if self.rows is not None:
            return rejects_of(self.rows)
        assert self.frame is not None
        return collect_rejects(self.frame, limit)

    def release(self) -> None:
        if self.frame is not None:
            self.frame.unpersist()


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
    parsed = _parse(messages, pair.spec, request, batch)
    try:
        if parsed.survey.extra and pair.spec.options.on_new_column != "ignore":
            _add_columns(table, messages, request, parsed.survey)
            parsed.release()
            parsed = _parse(messages, table.pair_to_write().spec, request, batch)
        _check(pair.spec, request, parsed.survey)
        _write_rejects(table, pair.spec, parsed, batch)
        return until_settled(table, lambda: _apply(table, parsed, request, batch))
    finally:
        parsed.release()


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


def _parse(messages: DataFrame, spec: TableSpec, request: ChangeRequest, batch: Batch) -> _Parsed:
    changes = parse_changes(messages, spec, request)
    schema = pa.schema([*_change_schema(spec), *NOTES])
    with settings_of(messages.sparkSession, PARSE_SETTINGS), ingest_spark.invalid_rows(spec.name):
        rows = batch.collect(messages, changes, schema)
        if rows is not None:
            return _Parsed(survey_rows(rows), rows, None)
        kept = changes.persist()  # looked at, then written
        return _Parsed(survey_frame(kept), None, kept)


def _change_schema(spec: TableSpec) -> pa.Schema:
    return arrow_schema(change_schema(spec.schema, spec.key_ids))


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


def _write_rejects(table: Opened, spec: TableSpec, parsed: _Parsed, batch: Batch) -> None:
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


def _apply(
    table: Opened, parsed: _Parsed, request: ChangeRequest, batch: Batch
) -> Committed | None:
    state = load_state(table.pair_to_write())
    spec = state.pair.spec
    asked = request.locate or spec.options.locate
    located = not spec.key_decides_partition and (asked or parsed.survey.unplaced > 0)
    ordered = request.format != ROWS or request.order_by is not None
    if parsed.rows is not None:
        parts = _write_rows(state, parsed.rows, located=located, ordered=ordered)
    else:
        parts = _write_frame(state, parsed, located=located, ordered=ordered)
    truncated = parsed.survey.truncated is not None
    if truncated:
        parts.append(_write_unordered(state, _live_deletes(state)))
    files = tuple(file for part in parts for file in part.files)
    refuse(state, Written(files, next((part.problem for part in parts if part.problem), None)))
    if not files:
        return Committed(state.view.version, 0, 0)
    done = append_changes(
        state.pair,
        files,
        kind="upsert",
        properties={},
        since=state.view.version if located or truncated else None,
        once=batch.once,
    )
    if done is None or done.files == 0:
        remove_files(state.pair.storage, [file.path for file in files])
    return done


def _write_rows(
    state: TableState, rows: pa.Table, *, located: bool, ordered: bool
) -> list[Written]:
    """Write a batch that is in memory."""
    spec = state.pair.spec
    schema = _change_schema(spec)
    rows, _ = after_truncate(understood(rows))
    rows = drop_replaced(rows, spec.key, place_terms(spec))
    moves: list[Written] = []
    if located:
        rows = _placed(state, rows)
        moves.append(_write_unordered(state, move_deletes(lookup_in(state), rows, schema)))
    return [_write(state, rows.select(schema.names), ordered=ordered), *moves]


def _placed(state: TableState, rows: pa.Table) -> pa.Table:
    """Return the rows with a partition for every delete that has a row to delete."""
    spec = state.pair.spec
    sources = [name for name in spec.names(spec.partition_source_ids) if name not in spec.key]
    found = find_rows(lookup_in(state), unplaced_keys(rows, spec.key), sources)
    return fill_places(rows, spec.key, sources, found)


def _write_frame(
    state: TableState, parsed: _Parsed, *, located: bool, ordered: bool
) -> list[Written]:
    """Write a batch by Spark's tasks; only what must be looked at together comes to the driver."""
    spec, changes = state.pair.spec, parsed.frame
    assert changes is not None
    changes = changes.where(~F.col(ACTION).isin(REJECT, TRUNCATE))
    if parsed.survey.truncated is not None:
        changes = changes.where(F.col(ORDER) > parsed.survey.truncated)
    if parsed.survey.splits:
        key = [F.col(f"`{name}`") for name in spec.key]
        split = changes.where(SPLIT).select(*key).distinct()
        met = changes.join(split, list(spec.key), "left_semi").toArrow()
        gone = replaced_orders(met, spec.key, place_terms(spec))
        changes = changes.where(~(F.col(SPLIT) & F.col(ORDER).isin(gone)))
    more: list[Written] = []
    if located:
        more = _write_located(state, changes)
        changes = changes.where(F.col(PLACED) | F.col(ACTION).startswith("+"))
    pair, schema = state.pair, _change_schema(spec)
    assert pair.change is not None
    job = change_job(spec, pair.change.location(), pair.storage, state.forest, ordered=ordered)
    rows = changes.select(*(f"`{name}`" for name in schema.names))
    return [ingest_spark.write_frame(rows, job, spec), *more]


def _write_located(state: TableState, changes: DataFrame) -> list[Written]:
    """Write the deletes of a large batch that rest on a look-up, without the rows themselves."""
    spec = state.pair.spec
    names = dict.fromkeys((*spec.key, *spec.names(spec.partition_source_ids)))
    columns = [f"`{name}`" for name in (*names, ACTION, ORDER, TS, PLACED)]
    places = _placed(state, changes.select(*columns).toArrow())
    moves = move_deletes(lookup_in(state), places, _change_schema(spec))
    frame = places.filter(pc.starts_with(places.column(ACTION), "-"))
    lost = frame.filter(pc.invert(frame.column(PLACED)))
    return [
        _write_unordered(state, moves),
        _write_unordered(state, _deletes(spec, lost, lost.column(ORDER))),
    ]


def _live_deletes(state: TableState) -> pa.Table:
    """Return a delete for every live row, ordered before all that the batch brings."""
    spec = state.pair.spec
    names = dict.fromkeys((*spec.key, *spec.names(spec.partition_source_ids)))
    live = lookup_in(state).live(state.files, tuple(names)).to_arrow()
    order = pa.chunked_array([pa.repeat(pa.scalar(LOCATED_ORDER, pa.int64()), live.num_rows)])
    return _deletes(spec, live, order)


def _deletes(spec: TableSpec, rows: pa.Table, order: pa.ChunkedArray) -> pa.Table:
    """Return deletes of rows of which key and partition are known."""
    target = arrow_schema(spec.schema)
    known = rows.select([name for name in rows.column_names if name in target.names])
    plan = plan_columns(known.schema, target, table=spec.name, partial=True)
    return changes_of(
        cast_rows(known, plan, target, table=spec.name),
        _change_schema(spec),
        order=order,
        deleted=None,
        entered_micros=time.time_ns() // 1000,
        action=Action.DELETE,
    )


def _write(state: TableState, rows: pa.Table, *, ordered: bool) -> Written:
    pair = state.pair
    assert pair.change is not None
    job = change_job(pair.spec, pair.change.location(), pair.storage, state.forest, ordered=ordered)
    return write_in_threads(rows, job, os.cpu_count() or 1)


def _write_unordered(state: TableState, rows: pa.Table) -> Written:
    """Write deletes that rest on a look-up; two of them may name one row."""
    pair = state.pair
    assert pair.change is not None
    job = change_job(pair.spec, pair.change.location(), pair.storage, state.forest, ordered=False)
    return write_in_threads(rows, replace(job, unique=()), os.cpu_count() or 1)
