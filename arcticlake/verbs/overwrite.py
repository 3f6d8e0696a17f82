"""overwrite, from the call to the commit: the whole table, or whole partitions.

    rows ─ check and cast ─▶ base files ─▶ which partitions, which version ─▶ base commit ─▶ marker

Rows are written as an insert writes them. What they replace is decided on the newest state, again
for every attempt, and everything that can be refused is refused before the base commit; files of
a refused overwrite are removed again.

Touches files and the catalog.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyiceberg.expressions import BooleanExpression
from pyspark.sql import DataFrame

from arcticlake.commit.iceberg_added import load_touched
from arcticlake.commit.iceberg_state import TableState, load_state
from arcticlake.commit.replacement import Replacement, check_version, newest_version
from arcticlake.errors import InvalidRequest
from arcticlake.ingest.iceberg import Committed, overwrite_base
from arcticlake.ingest.parquet import WrittenFile, remove_files
from arcticlake.read.condition import exact
from arcticlake.read.lookup import first_met
from arcticlake.read.partitions import select_partitions, shown
from arcticlake.table.spec import TableSpec
from arcticlake.tree.files import TableFiles
from arcticlake.tree.forest import Forest
from arcticlake.verbs.opened import Opened, lookup_in
from arcticlake.verbs.write import refuse, write_rows


@dataclass(frozen=True, slots=True)
class OverwriteRequest:
    """What the caller asked of an overwrite."""

    where: str | None = None
    """A condition that selects whole partitions; None for the whole table."""
    change_version: int | None = None
    """The version that the rows stand for; None for now."""


def overwrite(table: Opened, frame: object, request: OverwriteRequest) -> Committed:
    """Replace all rows of the table, or of the partitions that a condition selects.

    The new content is the frame and, on top of it, every change above `change_version`. No lock is
    taken (BAT-08), so a job that dies holds nothing: before its base commit nothing is visible, and
    after it the next writer gives the batch its version.
    """
    state = load_state(table.pair_to_write())
    spec = state.pair.spec
    _check_request(spec, request)
    condition = _condition(spec, request.where, frame)
    _plan(state, request, condition, ())  # what is wrong already is told before rows are written
    whole = request.where is None
    forest = Forest(spec.options.initial_nodes) if whole else state.forest
    written = write_rows(state, frame, forest)
    refuse(state, written)

    def plan(newest: TableState) -> Replacement:
        try:
            return _plan(newest, request, condition, written.files)
        except InvalidRequest:
            remove_files(state.pair.storage, [file.path for file in written.files])
            raise

    return overwrite_base(state.pair, written.files, plan=plan)


def _check_request(spec: TableSpec, request: OverwriteRequest) -> None:
    version, where = request.change_version, request.where
    if version is not None and (isinstance(version, bool) or not isinstance(version, int)):
        message = f"table {spec.name}: change_version must be a whole number, not {version!r}"
        raise InvalidRequest(message)
    if version is not None and not spec.keyed:
        message = (
            f"table {spec.name} has no primary key, so it has no changes that could apply on top; "
            "leave change_version away"
        )
        raise InvalidRequest(message)
    if where is not None:
        _check_where(spec, where)


def _check_where(spec: TableSpec, where: object) -> None:
    if not isinstance(where, str):
        message = f"table {spec.name}: where must be a condition in SQL, not {where!r}"
        raise InvalidRequest(message)
    if not spec.partition:
        message = (
            f"table {spec.name} has no partitions; leave where away to replace everything, or use "
            "delete() and insert()"
        )
        raise InvalidRequest(message)


def _condition(spec: TableSpec, where: str | None, frame: object) -> BooleanExpression | None:
    if where is None:
        return None
    zone = "UTC"
    if isinstance(frame, DataFrame):
        zone = str(frame.sparkSession.conf.get("spark.sql.session.timeZone"))
    try:
        return exact(where, spec.schema, zone=zone)
    except InvalidRequest as error:
        message = f"table {spec.name}: where {where!r}: {error.message}"
        raise InvalidRequest(message) from error


def _plan(
    state: TableState,
    request: OverwriteRequest,
    condition: BooleanExpression | None,
    written: Sequence[WrittenFile],
) -> Replacement:
    """Return what the rows replace on this state, or refuse."""
    newest = newest_version(state.log)
    version = newest if request.change_version is None else request.change_version
    partitions = None
    if condition is not None:
        partitions = _partitions(state, condition, written)
    replacement = Replacement(version, partitions)
    if request.change_version is not None:
        pair = state.pair
        check_version(state.log, replacement, lambda batch: load_touched(pair, batch))
    if partitions is not None and not state.pair.spec.key_decides_partition:
        _check_keys(state, replacement, written)
    return replacement


def _partitions(
    state: TableState, condition: BooleanExpression, written: Sequence[WrittenFile]
) -> frozenset[tuple[object, ...]]:
    spec = state.pair.spec
    coming = {file.partition for file in written}
    chosen = select_partitions(condition, spec, coming)
    for partition in coming - chosen:
        message = (
            f"table {spec.name}: a row of the frame lies outside where, in partition "
            f"{shown(spec, partition)}; write only rows that meet the condition, or widen it; "
            "nothing was written"
        )
        raise InvalidRequest(message)
    there = {file.partition for file in state.files.all}
    return chosen | select_partitions(condition, spec, there)


def _check_keys(
    state: TableState, replacement: Replacement, written: Sequence[WrittenFile]
) -> None:
    """Refuse a key that lives in a partition which stays."""
    if not state.pair.spec.keyed or not written:
        return
    stay = TableFiles(
        tuple(f for f in state.files.bases if not replacement.touches(f.partition)),
        tuple(f for f in state.files.changes if not replacement.touches(f.partition)),
    )
    new = [(file.path, file.partition, file.node) for file in written]
    met = first_met(lookup_in(replace(state, files=stay)), new)
    if met is not None and met.live:
        message = (
            f"table {state.pair.spec.name}: the key {met.key} lives in a partition that where does "
            "not select; delete it there first, or widen the condition; nothing was written"
        )
        raise InvalidRequest(message)
