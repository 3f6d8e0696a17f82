"""upsert, delete and insert, from the call to the commit.

    rows ─ check and cast ─▶ change rows ─ route ─▶ files ─▶ one commit

Rows in memory and small Spark frames are written here in threads, without a shuffle; large Spark
frames are written by their own tasks (`ingest/spark.py`). Everything that can be refused is
refused before the commit, and files of a refused write are removed again: no commit named them.

Touches the clock, files and the catalog.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame

from arcticlake.commit.iceberg_state import TableState, load_state
from arcticlake.errors import Conflict, InvalidRequest
from arcticlake.ingest import spark as ingest_spark
from arcticlake.ingest.iceberg import Committed, append_base, append_changes, find_once
from arcticlake.ingest.job import Written
from arcticlake.ingest.normalize import (
    cast_rows,
    changes_of,
    deleted_of,
    order_of,
    plan_columns,
    rows_of,
    spare_columns,
)
from arcticlake.ingest.once import Once
from arcticlake.ingest.parquet import TreeWriter, remove_files, write_in_threads
from arcticlake.ingest.place import sort_rows
from arcticlake.ingest.plan import base_job, change_job, changes_schema
from arcticlake.ingest.route import weigh_units
from arcticlake.ingest.spark_load import load_fits, load_frame
from arcticlake.read.lookup import first_met
from arcticlake.read.parquet import read_batches
from arcticlake.table.change import Action
from arcticlake.table.spec import TableSpec
from arcticlake.table.types import arrow_schema
from arcticlake.tree.forest import Forest
from arcticlake.verbs.locate import locate_deletes, move_deletes
from arcticlake.verbs.opened import Opened, lookup_in
from arcticlake.verbs.read import matching_rows

LOOK_UPS_MAX = 10
"""How often rows are looked up again because another commit came between look-up and commit."""


@dataclass(frozen=True, slots=True)
class UpsertRequest:
    """What the caller asked of an upsert."""

    order_by: str | None = None
    delete_when: str | None = None
    locate: bool = False


Collect: TypeAlias = Callable[[DataFrame, DataFrame, pa.Schema], pa.Table | None]
"""Returns the projected rows of a frame that fits the driver; None for one that does not."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What is known of a batch beside its rows."""

    once: Once | None = None
    """Its name in a stream; a batch that the table has already is not written again."""
    collect: Collect = ingest_spark.collect_if_small
    """Decides which way the rows of a Spark frame take."""


BATCH = Batch()


def upsert(table: Opened, frame: object, request: UpsertRequest, batch: Batch = BATCH) -> Committed:
    """Append rows as changes; the newest of each key wins."""
    return until_settled(table, lambda: _upsert(table, frame, request, batch))


def _upsert(table: Opened, frame: object, request: UpsertRequest, batch: Batch) -> Committed | None:
    state = load_state(table.pair_to_write())
    spec = state.pair.spec
    check_upsert(spec, request)
    if not spec.keyed:
        return insert(table, frame, batch)
    if (repeated := find_once(state.pair, batch.once)) is not None:
        return repeated
    ordered = request.order_by is not None
    if isinstance(frame, DataFrame):
        changes = ingest_spark.project_changes(
            frame, spec, order_by=request.order_by, delete_when=request.delete_when
        )
        collected = batch.collect(frame, changes, changes_schema(spec))
        if collected is None:
            written = _write_large_changes(state, changes, ordered=ordered)
        else:
            written = _write_changes(state, collected, ordered=ordered)
    else:
        rows = _arrow_changes(rows_of(frame, table=spec.name), spec, request)
        written = _write_changes(state, rows, ordered=ordered)
    return _commit_changes(state, written, kind="upsert", once=batch.once)


def check_upsert(spec: TableSpec, request: UpsertRequest) -> None:
    """Refuse what a table of this kind cannot take, whatever the rows."""
    if not spec.keyed and request != UpsertRequest():
        message = f"table {spec.name} has no primary key: an upsert is a plain insert (NPK-01)"
        raise InvalidRequest(message)
    located = spec.key_decides_partition or request.locate or spec.options.locate
    if spec.keyed and not located:
        raise InvalidRequest(_locate_advice(spec))


def delete(table: Opened, keys: object) -> Committed:
    """Append deletes for a frame that holds the keys; it may hold further columns of the table."""
    return until_settled(table, lambda: _delete(table, keys))


def _delete(table: Opened, keys: object) -> Committed | None:
    state = load_state(table.pair_to_write())
    spec = state.pair.spec
    if not spec.keyed:
        message = f"table {spec.name} has no primary key, and deletes need one; use overwrite()"
        raise InvalidRequest(message)
    if isinstance(keys, DataFrame):
        frame = ingest_spark.project_deletes(keys, spec)
        rows = ingest_spark.collect(frame, changes_schema(spec))
        given = frozenset(name.lower() for name in keys.columns)
    else:
        incoming = rows_of(keys, table=spec.name)
        rows = deletes_of(incoming, spec)
        given = frozenset(name.lower() for name in incoming.column_names)
    known = {name.lower() for name in spec.names(spec.partition_source_ids)} <= given
    if not spec.key_decides_partition and not known:
        rows = locate_deletes(lookup_in(state), rows)
    written = _write_changes(state, rows, ordered=False, moves=False)
    return _commit_changes(state, written, kind="delete")


def delete_where(table: Opened, condition: str) -> Committed:
    """Delete the rows that meet a SQL condition (WOP-17, WOP-18)."""
    spec = table.pair().spec
    if not spec.keyed:
        message = f"table {spec.name} has no primary key, and deletes need one; use overwrite()"
        raise InvalidRequest(message)
    columns = tuple(dict.fromkeys((*spec.key, *spec.names(spec.partition_source_ids))))
    return delete(table, matching_rows(table, condition, columns))


class _HeldByBaseError(Exception):
    """Base still holds a row, deleted by a pending change, of a key that is inserted again."""


def insert(table: Opened, frame: object, batch: Batch = BATCH) -> Committed:
    """Write rows straight into base; a key that exists already is refused."""
    state = load_state(table.pair_to_write())
    pair, spec = state.pair, state.pair.spec
    if (repeated := find_once(pair, batch.once)) is not None:
        return repeated
    written = write_rows(state, frame, state.forest, batch.collect)
    refuse(state, written)
    if not written.files:
        return Committed(state.view.version, 0, 0)

    def check(newest: TableState) -> None:
        if not spec.keyed:
            return
        new = [(file.path, file.partition, file.node) for file in written.files]
        met = first_met(lookup_in(newest), new)
        if met is not None and met.live:
            message = f"the key {met.key} exists already; use upsert() to replace rows"
            refuse(state, replace(written, problem=message))
        if met is not None:
            raise _HeldByBaseError

    try:
        done = append_base(pair, written.files, check=check, once=batch.once)
        return _without_leftovers(state, written, done)
    except _HeldByBaseError:
        return _insert_as_changes(state, written)


def write_rows(
    state: TableState, frame: object, forest: Forest, collect: Collect = BATCH.collect
) -> Written:
    """Write rows into base files of a forest, sorted by the sort key; nothing is visible yet."""
    pair, spec = state.pair, state.pair.spec
    target = arrow_schema(spec.schema)
    job = base_job(spec, pair.base.location(), pair.storage, forest)
    if isinstance(frame, DataFrame):
        projected = ingest_spark.project_rows(frame, spec)
        collected = collect(frame, projected, target)
        if collected is None and load_fits(frame, job, spec):
            return load_frame(projected, job, spec)
        if collected is None:
            return ingest_spark.write_frame(projected, job, spec, sort=spec.sort)
        return write_in_threads(_sorted(collected, spec), job, os.cpu_count() or 1)
    incoming = rows_of(frame, table=spec.name)
    plan = plan_columns(incoming.schema, target, table=spec.name)
    rows = _sorted(cast_rows(incoming, plan, target, table=spec.name), spec)
    return write_in_threads(rows, job, os.cpu_count() or 1)


def _insert_as_changes(state: TableState, written: Written) -> Committed:
    """Commit rows that were meant for base as changes instead.

    A plain Iceberg reader of base must never see a key twice, so a key whose old row base still
    holds comes back through the change table, and the next merge brings it home.
    """
    pair, spec = state.pair, state.pair.spec
    assert pair.change is not None
    job = change_job(spec, pair.change.location(), pair.storage, state.forest, ordered=False)
    writer = TreeWriter(job)
    for file in written.files:
        for batch in read_batches(pair.storage, file.path, arrow_schema(spec.schema)):
            rows = changes_of(
                pa.Table.from_batches([batch]),
                changes_schema(spec),
                order=None,
                deleted=None,
                entered_micros=time.time_ns() // 1000,
                action=Action.INSERT,
            )
            writer.write(rows)
    remove_files(pair.storage, [file.path for file in written.files])
    done = _commit_changes(state, writer.finish(), kind="insert")
    if done is None:
        message = f"table {spec.name}: other writers changed its rows meanwhile; insert again"
        raise Conflict(message)
    return done


def _arrow_changes(rows: pa.Table, spec: TableSpec, request: UpsertRequest) -> pa.Table:
    target = arrow_schema(spec.schema)
    spare = spare_columns(request.order_by, request.delete_when, rows.column_names)
    plan = plan_columns(rows.schema, target, table=spec.name, spare=spare)
    return changes_of(
        cast_rows(rows, plan, target, table=spec.name),
        changes_schema(spec),
        order=order_of(rows, request.order_by, table=spec.name),
        deleted=deleted_of(rows, request.delete_when, table=spec.name),
        entered_micros=time.time_ns() // 1000,
    )


def deletes_of(rows: pa.Table, spec: TableSpec, order: pa.ChunkedArray | None = None) -> pa.Table:
    """Return deletes of rows by their key, with what else is known of them."""
    target = arrow_schema(spec.schema)
    plan = plan_columns(rows.schema, target, table=spec.name, partial=True)
    missing = [name for name in spec.key if name not in plan.targets]
    if missing:
        message = f"table {spec.name}: the rows lack key column {', '.join(missing)}"
        raise InvalidRequest(message)
    return changes_of(
        cast_rows(rows, plan, target, table=spec.name),
        changes_schema(spec),
        order=order,
        deleted=None,
        entered_micros=time.time_ns() // 1000,
        action=Action.DELETE,
    )


def _write_changes(
    state: TableState, rows: pa.Table, *, ordered: bool, moves: bool = True
) -> Written:
    spec, pair = state.pair.spec, state.pair
    assert pair.change is not None
    job = change_job(spec, pair.change.location(), pair.storage, state.forest, ordered=ordered)
    writers = os.cpu_count() or 1
    written = write_in_threads(rows, job, writers)
    if spec.key_decides_partition or not moves or written.problem:
        return written
    return _joined(written, _write_moves(state, rows))


def _write_large_changes(state: TableState, changes: DataFrame, *, ordered: bool) -> Written:
    spec, pair = state.pair.spec, state.pair
    assert pair.change is not None
    job = change_job(spec, pair.change.location(), pair.storage, state.forest, ordered=ordered)
    weights = weigh_units(state.forest, state.files.all)
    if spec.key_decides_partition:
        return ingest_spark.write_frame(changes, job, spec, weights=weights)
    kept = changes.persist()  # read twice: once to write, once for the keys
    try:
        written = ingest_spark.write_frame(kept, job, spec, weights=weights)
        if written.problem:
            return written
        return _joined(written, _write_moves(state, ingest_spark.collect_places(kept, spec)))
    finally:
        kept.unpersist()


def _write_moves(state: TableState, rows: pa.Table) -> Written:
    """Write the deletes of rows that leave their partition (KUP-03), in the same commit."""
    pair = state.pair
    assert pair.change is not None
    moves = move_deletes(lookup_in(state), rows, changes_schema(pair.spec))
    job = change_job(pair.spec, pair.change.location(), pair.storage, state.forest, ordered=False)
    return write_in_threads(moves, replace(job, unique=()), os.cpu_count() or 1)


def _joined(written: Written, more: Written) -> Written:
    return Written((*written.files, *more.files), written.problem or more.problem)


def _commit_changes(
    state: TableState, written: Written, *, kind: str, once: Once | None = None
) -> Committed | None:
    refuse(state, written)
    if not written.files:
        return Committed(state.view.version, 0, 0)
    located = not state.pair.spec.key_decides_partition
    done = append_changes(
        state.pair,
        written.files,
        kind=kind,
        properties={},
        since=state.view.version if located else None,
        once=once,
    )
    if done is None:
        remove_files(state.pair.storage, [file.path for file in written.files])
        return None
    return _without_leftovers(state, written, done)


def _without_leftovers(state: TableState, written: Written, done: Committed) -> Committed:
    """Remove the files of a batch that somebody else committed before; return its commit."""
    if done.files == 0:
        remove_files(state.pair.storage, [file.path for file in written.files])
    return done


def until_settled(table: Opened, write: Callable[[], Committed | None]) -> Committed:
    """Repeat a write whose look-up was overtaken by another commit (KUP-03)."""
    for _ in range(LOOK_UPS_MAX):
        done = write()
        if done is not None:
            return done
    message = (
        f"table {table.name}: other writers changed the rows that this write looked up, "
        f"{LOOK_UPS_MAX} times; nothing was committed, try again"
    )
    raise Conflict(message)


def refuse(state: TableState, written: Written) -> None:
    """Raise for rows that break a rule, after their files are removed."""
    if written.problem is None:
        return
    remove_files(state.pair.storage, [file.path for file in written.files])
    message = f"table {state.pair.spec.name}: {written.problem}; nothing was written"
    raise InvalidRequest(message)


def _sorted(rows: pa.Table, spec: TableSpec) -> pa.Table:
    if not spec.sort_ids:
        return rows
    return sort_rows(rows, spec.sort)


def _locate_advice(spec: TableSpec) -> str:
    sources = ", ".join(spec.names(spec.partition_source_ids))
    return (
        f"table {spec.name} is partitioned by {sources}, which is not all in its primary key "
        f"({', '.join(spec.key)}): the old partition of an updated row is not known from its key. "
        "Use upsert(..., locate=True) or the option locate=true to look it up, or put the "
        "partition column into the primary key"
    )
