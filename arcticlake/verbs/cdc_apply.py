"""A parsed batch of changes → one commit.

    parsed ─ truncates, swaps ─▶ rows that count ─ places ─▶ files ─▶ one commit

A batch in memory is put right by `stream/cdc_split.py`; of a large one, which Spark keeps, only the
rows come here that must be looked at together. Whatever rests on a look-up names the version that
was looked at, and is done again if another commit came between.

Touches Spark, the clock, files and the catalog.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from arcticlake.commit.iceberg_state import TableState
from arcticlake.ingest import spark as ingest_spark
from arcticlake.ingest.iceberg import Committed, append_changes
from arcticlake.ingest.job import Written
from arcticlake.ingest.parquet import remove_files, write_in_threads
from arcticlake.ingest.plan import change_job, changes_schema, place_terms
from arcticlake.read.lookup import find_rows
from arcticlake.stream.cdc_format import ROWS, ChangeRequest
from arcticlake.stream.cdc_plan import PLACED, REJECT, SPLIT, TRUNCATE
from arcticlake.stream.cdc_split import (
    after_truncate,
    doubtful_keys,
    drop_replaced,
    fill_places,
    replaced_rows,
    understood,
    unplaced_keys,
)
from arcticlake.stream.cdc_survey import Survey, rejects_of
from arcticlake.stream.spark_cdc import collect_rejects
from arcticlake.table.change import ACTION, ORDER, TS
from arcticlake.verbs.locate import LOCATED_ORDER, move_deletes
from arcticlake.verbs.opened import lookup_in
from arcticlake.verbs.write import Batch, deletes_of, refuse


@dataclass(frozen=True, slots=True)
class Parsed:
    """A parsed batch: in memory, or as a frame that Spark keeps."""

    schema: Schema
    survey: Survey
    rows: pa.Table | None
    frame: DataFrame | None

    def rejects(self, limit: int) -> pa.Table:
        """Return what was not understood; of a frame, at most so many."""
        if self.rows is not None:
            return rejects_of(self.rows)
        assert self.frame is not None
        return collect_rejects(self.frame, limit)

    def release(self) -> None:
        """Let Spark forget the rows."""
        if self.frame is not None:
            self.frame.unpersist()


def apply_parsed(
    state: TableState, parsed: Parsed, request: ChangeRequest, batch: Batch
) -> Committed | None:
    """Commit a parsed batch on a state; None where another commit overtook its look-ups."""
    spec = state.pair.spec
    asked = request.locate or spec.options.locate
    located = not spec.key_decides_partition and (asked or parsed.survey.unplaced > 0)
    ordered = request.format != ROWS or request.order_by is not None
    work = _Work(state, parsed.survey, located=located, ordered=ordered)
    if parsed.rows is not None:
        parts = _write_rows(work, parsed.rows)
    else:
        assert parsed.frame is not None
        parts = _write_frame(work, parsed.frame)
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
        since=state.view.version if located or truncated or work.looked_up else None,
        once=batch.once,
    )
    if done is None or done.files == 0:
        remove_files(state.pair.storage, [file.path for file in files])
    return done


@dataclass(slots=True)
class _Work:
    """What is written on which state, and how."""

    state: TableState
    survey: Survey
    located: bool
    """Whether old partitions are looked up."""
    ordered: bool
    looked_up: bool = False
    """Whether keys were looked up to tell swaps from changes that were taken back."""

    def alive(self, rows: pa.Table) -> pa.Table | None:
        """Return the rows of keys of which images do not tell what happened to them."""
        spec = self.state.pair.spec
        doubtful = doubtful_keys(rows, spec.key, place_terms(spec))
        if doubtful.height == 0 or self.survey.truncated is not None:
            return None  # a truncate leaves nothing alive
        self.looked_up = True
        sources = spec.names(spec.partition_source_ids)
        return find_rows(lookup_in(self.state), doubtful, sources).to_arrow()


def _write_rows(work: _Work, rows: pa.Table) -> list[Written]:
    """Write a batch that is in memory."""
    state = work.state
    spec = state.pair.spec
    schema = changes_schema(spec)
    rows, _ = after_truncate(understood(rows))
    if work.located:
        rows = _placed(state, rows)
    if work.survey.splits:
        rows = drop_replaced(rows, spec.key, place_terms(spec), work.alive(rows))
    moves = [_write_moves(state, rows)] if work.located else []
    return [_write(state, rows.select(schema.names), ordered=work.ordered), *moves]


def _write_moves(state: TableState, rows: pa.Table) -> Written:
    """Write the deletes of rows that leave their partition; split updates bring their own."""
    split = pc.and_(rows.column(SPLIT), pc.starts_with(rows.column(ACTION), "-"))
    others = rows.filter(pc.invert(split))
    schema = changes_schema(state.pair.spec)
    return _write_unordered(state, move_deletes(lookup_in(state), others, schema))


def _placed(state: TableState, rows: pa.Table) -> pa.Table:
    """Return the rows with a partition for every delete that has a row to delete."""
    spec = state.pair.spec
    sources = [name for name in spec.names(spec.partition_source_ids) if name not in spec.key]
    found = find_rows(lookup_in(state), unplaced_keys(rows, spec.key), sources)
    return fill_places(rows, spec.key, sources, found)


def _write_frame(work: _Work, changes: DataFrame) -> list[Written]:
    """Write a batch by Spark's tasks; only what must be looked at together comes to the driver."""
    state, spec = work.state, work.state.pair.spec
    changes = changes.where(~F.col(ACTION).isin(REJECT, TRUNCATE))
    if work.survey.truncated is not None:
        changes = changes.where(F.col(ORDER) > work.survey.truncated)
    if work.survey.splits:
        changes = _without_replaced(work, changes)
    more: list[Written] = []
    if work.located:
        more = _write_located(state, changes)
        changes = changes.where(F.col(PLACED) | F.col(ACTION).startswith("+"))
    pair, schema = state.pair, changes_schema(spec)
    assert pair.change is not None
    forest, ordered = state.forest, work.ordered
    job = change_job(spec, pair.change.location(), pair.storage, forest, ordered=ordered)
    rows = changes.select(*(f"`{name}`" for name in schema.names))
    return [ingest_spark.write_frame(rows, job, spec), *more]


def _without_replaced(work: _Work, changes: DataFrame) -> DataFrame:
    """Drop split deletes that a row before them replaced; keys that nothing came to stay away."""
    spec = work.state.pair.spec
    key = [f"`{name}`" for name in spec.key]
    split = F.col(SPLIT) & F.col(ACTION).startswith("-")
    came = F.min(F.when(F.col(ACTION).startswith("+"), F.col(ORDER)))
    left = F.max(F.when(split, F.col(ORDER)))
    met = changes.groupBy(*key).agg(came.alias("came"), left.alias("gone")).where("came < gone")
    rows = changes.join(met.select(*key), list(spec.key), "left_semi").toArrow()
    if work.located:
        rows = _placed(work.state, rows)
    numbers = replaced_rows(rows, spec.key, place_terms(spec), work.alive(rows))
    if len(numbers) == 0:
        return changes
    # The halves of an update have orders of their own, so these name no row that came.
    gone = rows.take(pa.array(numbers)).select([*spec.key, ORDER, SPLIT])
    stale = changes.sparkSession.createDataFrame(gone)
    return changes.join(F.broadcast(stale), stale.columns, "left_anti")


def _write_located(state: TableState, changes: DataFrame) -> list[Written]:
    """Write the deletes of a large batch that rest on a look-up, without the rows themselves."""
    spec = state.pair.spec
    names = dict.fromkeys((*spec.key, *spec.names(spec.partition_source_ids)))
    columns = [f"`{name}`" for name in (*names, ACTION, ORDER, TS, PLACED, SPLIT)]
    places = _placed(state, changes.select(*columns).toArrow())
    frame = places.filter(pc.starts_with(places.column(ACTION), "-"))
    lost = frame.filter(pc.invert(frame.column(PLACED)))
    return [
        _write_moves(state, places),
        _write_unordered(state, deletes_of(lost.select(list(names)), spec, lost.column(ORDER))),
    ]


def _live_deletes(state: TableState) -> pa.Table:
    """Return a delete for every live row, ordered before all that the batch brings."""
    spec = state.pair.spec
    names = dict.fromkeys((*spec.key, *spec.names(spec.partition_source_ids)))
    live = lookup_in(state).live(state.files, tuple(names)).to_arrow()
    order = pa.chunked_array([pa.repeat(pa.scalar(LOCATED_ORDER, pa.int64()), live.num_rows)])
    return deletes_of(live, spec, order)


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
