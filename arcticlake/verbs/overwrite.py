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
from pyiceberg.manifest import DataFile
from pyspark.sql import DataFrame

from arcticlake.commit.iceberg_added import load_exchange, load_touched
from arcticlake.commit.iceberg_state import TableState, load_state
from arcticlake.commit.replacement import Replacement, check_version, newest_version
from arcticlake.errors import InvalidRequest
from arcticlake.ingest.iceberg import Committed, overwrite_base
from arcticlake.ingest.job import WrittenFile
from arcticlake.ingest.parquet import remove_files
from arcticlake.read.condition import exact
from arcticlake.read.partitions import select_partitions, shown
from arcticlake.table.spec import TableSpec
from arcticlake.table.watermark import overwritten
from arcticlake.tree.files import FileEntry, Role, TableFiles
from arcticlake.tree.forest import Forest, tops
from arcticlake.verbs.opened import Opened, lookup_in
from arcticlake.verbs.write import refuse, write_rows

_COMING = -1
"""Stands for the base snapshot that the overwrite is going to make."""


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
    spec = state.pair.spec
    all_goes = partitions is None and version == newest
    if written and spec.keyed and not spec.key_decides_partition and not all_goes:
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
    """Refuse a key that would live in two partitions.

    It may live in one that stays, or a change that stays on top may have moved a row which the
    frame has elsewhere. Keys are compared one subtree at a time.
    """
    lookup = lookup_in(_state_after(state, replacement, written))
    for top in tops(file.node for file in lookup.files.all):
        if not any(top.lineal(file.node) for file in written):
            continue
        under = TableFiles(
            tuple(f for f in lookup.files.bases if top.lineal(f.node)),
            tuple(f for f in lookup.files.changes if top.lineal(f.node)),
        )
        keys = lookup.live(under, lookup.spec.key)
        twice = keys.filter(keys.is_duplicated())
        if twice.height:
            row = twice.row(0, named=True)
            key = ", ".join(f"{name}={value!r}" for name, value in row.items())
            message = (
                f"table {lookup.spec.name}: the key {key} would live twice, in the frame and in "
                "another partition that where does not select or that a later change put it in; "
                "leave it out or delete it there first; nothing was written"
            )
            raise InvalidRequest(message)


def _state_after(
    state: TableState, replacement: Replacement, written: Sequence[WrittenFile]
) -> TableState:
    """Return the state as it would be with these files committed."""
    pair, view = state.pair, state.view
    assert pair.change is not None, "only keys are looked up"
    exchange = load_exchange(pair.spec, pair.change, state.log, replacement)
    stay = [file for file in state.files.bases if not replacement.touches(file.partition)]
    changes = [file for file in state.files.changes if file.path not in exchange.removed]
    parts = {file.partition for file in state.files.all}
    return replace(
        state,
        view=replace(
            view,
            watermark=overwritten(
                view.watermark, replacement.partitions, replacement.version, parts
            ),
            base_sequences={**view.base_sequences, _COMING: replacement.version},
        ),
        files=TableFiles(
            (*stay, *(_entry(pair.spec, file) for file in written)), (*changes, *exchange.added)
        ),
    )


def _entry(spec: TableSpec, file: WrittenFile) -> FileEntry:
    """Return a file that no manifest names yet, with bounds that rule nothing out."""
    unknown, unsorted = (None,) * len(spec.key_ids), (None,) * len(spec.sort_ids)
    return FileEntry(
        path=file.path,
        role=Role.BASE,
        partition=file.partition,
        node=file.node,
        rows=file.rows,
        bytes=file.size,
        key_lower=unknown,
        key_upper=unknown,
        sort_lower=unsorted,
        sort_upper=unsorted,
        snapshot_id=_COMING,
        sequence=0,
        data_file=DataFile.from_args(file_path=file.path),
    )
