"""What a reading stream learns of its table: versions, their units, and the shares of a batch.

    Seen            both tables and their log, as loaded at one moment
    pinned state ─▶ plan of a read ─▶ files in order of their names ─▶ shares without dead rows
    versions     ─▶ steps of a pull ─▶ units: one for what has no file, then the files by name

Only manifests of snapshots that are read are opened (INC-16, INC-17). Everything here is a function
of the history, which only grows, so that a batch that is asked for again is the same.

Touches the catalog, manifests, and data files where a state must be resolved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyiceberg.catalog import Catalog

from arcticlake.commit.history import Log, SnapshotFact, View, plan_view, versions
from arcticlake.commit.iceberg_state import load_files, load_log, load_settled
from arcticlake.commit.replacement import newest_version
from arcticlake.errors import NotFound
from arcticlake.pull.columns import overwrite_row, travel_schema
from arcticlake.pull.iceberg import key_schema, load_added, load_difference, order_schema
from arcticlake.pull.parquet import PullTask
from arcticlake.pull.range import PullMode, plan_range
from arcticlake.pull.steps import Step, Told, plan_steps
from arcticlake.read.arrow import resolve_jobs, run_jobs
from arcticlake.read.iceberg import load_positions
from arcticlake.read.parquet import FileToScan
from arcticlake.read.plan import ReadMode, ScanPlan, plan_scan
from arcticlake.resolve.bitmap import words_of
from arcticlake.stream.offset import Offset, Pin
from arcticlake.stream.parquet_feed import FeedFile, FeedShare
from arcticlake.table.iceberg import TablePair
from arcticlake.tree.files import FileEntry, Role
from arcticlake.tree.forest import lineal_groups

SHARE_BYTES = 32 * 2**20
"""Bytes of files that one task reads; a larger file is a share of its own."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A table as it was loaded at one moment."""

    pair: TablePair
    log: Log

    @property
    def newest(self) -> int:
        """The newest version, 0 before the first."""
        return newest_version(self.log)

    def after(self, version: int) -> list[int]:
        """Return the versions above one, oldest first."""
        return [known.version for known in versions(self.log) if known.version > version]

    def timestamp_ms(self, version: int) -> int:
        """Return when a version was committed; 0 if that has expired."""
        found = (v.timestamp_ms for v in versions(self.log) if v.version == version)
        return next(found, 0)


@dataclass(frozen=True, slots=True)
class Unit:
    """What is never cut: a file, or what a version tells without one."""

    step: Step
    file: FileEntry | None = None
    peers: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """How many rows it has; at least one where that is not known."""
        return 1 if self.file is None else self.file.rows


def look(catalog: Catalog, name: str) -> Seen:
    """Load a table as it is now."""
    pair = load_settled(catalog, name)
    return Seen(pair, load_log(pair))


def pin_state(seen: Seen, version: int) -> Pin:
    """Return the snapshots that hold the state at a version."""
    view = plan_view(seen.log, version)
    return Pin(view.base_snapshot_id, view.change_snapshot_id)


def plan_state(seen: Seen, version: int, pin: Pin) -> ScanPlan:
    """Return the plan of the state at a version, in the snapshots that the first batch chose."""
    view = _pinned_view(seen.log, version, pin)
    files = load_files(seen.pair, view)
    return plan_scan(seen.pair.spec, view, files, mode=ReadMode.MERGED, pruning=None)


def _pinned_view(log: Log, version: int, pin: Pin) -> View:
    lost = not any(fact.snapshot_id == pin.change for fact in log.change or ())
    base = _line_to(log.base, pin.base)
    if base is None or (pin.change is not None and lost):
        message = (
            f"table {log.table}: the stream was in the middle of the state at version {version}, "
            "and that has expired; start again with a new checkpoint, and name a consumer"
        )
        raise NotFound(message)
    return plan_view(replace(log, base=base), version)


def _line_to(
    line: tuple[SnapshotFact, ...], snapshot_id: int | None
) -> tuple[SnapshotFact, ...] | None:
    if snapshot_id is None:
        return ()
    ends = [n for n, fact in enumerate(line, start=1) if fact.snapshot_id == snapshot_id]
    return line[: ends[0]] if ends else None


def state_files(plan: ScanPlan) -> list[FileEntry]:
    """Return the files of a state in their fixed order."""
    return sorted((*plan.bases, *plan.changes), key=lambda file: file.path)


def load_units(seen: Seen, since: int, until: int) -> Iterator[tuple[int, list[Unit]]]:
    """Yield each version of a range with its units; a range that has expired is an error."""
    asked = plan_range(seen.log, since, until)
    for step in plan_steps(seen.log, asked, PullMode.RAW, difference=False).steps:
        yield step.version, _units(seen.pair, step)


def _units(pair: TablePair, step: Step) -> list[Unit]:
    whole = [] if step.told is Told.ROWS else [Unit(step)]
    files = load_added(pair, [step]).get(step.version, [])
    return [*whole, *_file_units(pair, step, sorted(files, key=lambda file: file.path))]


def _file_units(pair: TablePair, step: Step, files: Sequence[FileEntry]) -> list[Unit]:
    if step.role is Role.BASE:
        return [Unit(step, file) for file in files]
    groups = [[*files]]
    if pair.spec.key_decides_partition:
        groups = [*lineal_groups(files).values()]
    peers: dict[str, tuple[str, ...]] = {}
    for group in groups:
        paths = tuple(sorted(file.path for file in group))
        peers |= dict.fromkeys(paths, paths)
    return [Unit(step, file, peers[file.path]) for file in files]


def units_between(seen: Seen, start: Offset, end: Offset) -> list[Unit]:
    """Return the units of changes between two places of a stream, in order."""
    last = end.version
    if end.unit:
        following = seen.after(end.version)
        if not following:
            message = (
                f"table {seen.log.table} has no version after {end.version}, of which the stream "
                "has read a part; the table was made anew, start with a new checkpoint"
            )
            raise NotFound(message)
        last = following[0]
    skipped = 0 if start.pin is not None else start.unit
    found = []
    for version, units in load_units(seen, start.version, last):
        stop = end.unit if version > end.version else len(units)
        found += units[skipped:stop]
        skipped = 0
    return found


def share_state(
    seen: Seen, start: Offset, end: Offset, schema: pa.Schema, *, ordered: bool
) -> list[FeedShare]:
    """Return the shares of a batch of the state that comes first."""
    assert end.pin is not None, "a batch of the state names its snapshots"
    plan = plan_state(seen, end.version, end.pin)
    chosen = state_files(plan)[0 if start.pin is None else start.unit : end.unit]
    pair, paths = seen.pair, {file.path for file in chosen}
    groups = tuple(
        group
        for group in plan.groups
        if any(file.path in paths for file in (*group.bases, *group.changes))
    )
    needed = replace(plan, groups=groups)
    dead = {}
    if groups:
        positions = load_positions(pair.base.io, needed.bases)
        jobs = resolve_jobs(needed, pair.storage, key_schema(pair), order_schema(), positions)
        dead = {path: words_of(mask) for path, mask in run_jobs(jobs).items() if mask.any()}
    moment = seen.timestamp_ms(end.version)
    files = [
        (
            file.bytes,
            FeedFile(
                PullTask(
                    FileToScan(file.path, file.role, file.rows, end.version), end.version, moment, 0
                ),
                state=True,
                dead=dead.get(file.path),
            ),
        )
        for file in chosen
    ]
    return _shares(files, FeedShare(pair.storage, schema, ordered))


def share_changes(
    seen: Seen, units: Sequence[Unit], schema: pa.Schema, *, ordered: bool
) -> list[FeedShare]:
    """Return the shares of a batch of changes."""
    empty = FeedShare(seen.pair.storage, schema, ordered)
    told = [_told_rows(seen, unit.step, schema) for unit in units if unit.file is None]
    files = [
        (unit.file.bytes, FeedFile(_task(unit.step, unit.file), peers=unit.peers))
        for unit in units
        if unit.file is not None
    ]
    whole = [replace(empty, rows=rows) for rows in told if rows.num_rows]
    return [*whole, *_shares(files, empty)]


def _task(step: Step, file: FileEntry) -> PullTask:
    scan = FileToScan(file.path, file.role, file.rows, step.version)
    return PullTask(scan, step.version, step.timestamp_ms, 0)


def _told_rows(seen: Seen, step: Step, schema: pa.Schema) -> pa.Table:
    if step.told is Told.DIFFERENCE:
        return load_difference(seen.pair, step, 0, schema)
    row = overwrite_row(step.version, step.timestamp_ms, schema)
    return pa.Table.from_batches([row], schema=travel_schema(schema))


def _shares(files: Sequence[tuple[int, FeedFile]], empty: FeedShare) -> list[FeedShare]:
    """Return files in shares of some size, in their order."""
    shares: list[list[FeedFile]] = []
    room = 0
    for size, file in files:
        if size > room or not shares:
            shares.append([])
            room = SHARE_BYTES
        shares[-1].append(file)
        room -= size
    return [replace(empty, files=tuple(share)) for share in shares]
