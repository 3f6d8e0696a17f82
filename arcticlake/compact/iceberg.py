"""Rewritten files → the table.

    merge   base: old files out, new files in, and how far they are merged, in one commit;
            then, in the change table, the change files that are merged now go away (trim)
    minor   the change table: old files out, fewer files in

Neither makes a version: a reader sees the same rows before and after. A crash between merge and
trim does no harm, because readers skip merged changes by the watermark; the next compaction trims
them. What came between plan and commit is judged group by group on every attempt, so a batch
overwrite takes away only the groups it touched (BAT-06, BAT-07).

Touches the catalog.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import uuid4

from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table
from pyiceberg.types import LongType

from arcticlake.commit.change import Operation, SnapshotChange
from arcticlake.commit.history import CONTAINS, KIND, SCHEMA_ID
from arcticlake.commit.iceberg import find_commit
from arcticlake.commit.iceberg_state import MERGED_INTO, TableState, load_state
from arcticlake.commit.loop import Decide, Done, Load, commit
from arcticlake.commit.rules import Group, Kind, Landed, Planned, conflict
from arcticlake.compact.landing import advance, landed_since
from arcticlake.compact.plan import CompactionPlan, GroupPlan
from arcticlake.ingest.iceberg import data_files, mark_all
from arcticlake.ingest.job import WrittenFile
from arcticlake.table.hidden import SEQ_ID
from arcticlake.table.iceberg import TablePair, load_pair
from arcticlake.table.watermark import encode_watermark
from arcticlake.tree.files import FileEntry

TRIM = "trim"


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What was planned, on which state, and what the tasks made of it."""

    state: TableState
    plan: CompactionPlan
    written: Mapping[int, tuple[WrittenFile, ...]]
    """New files of every rewritten group, by its place in the plan."""
    kind: str
    """What the history calls it: minor, major or full."""
    tell: Callable[[Sequence[int]], Mapping[str, str]]
    """The numbers to keep in the snapshot, for the groups that land."""


@dataclass(slots=True)
class Landing:
    """What became of the groups."""

    landed: tuple[int, ...] = ()
    lost: dict[int, str] = field(default_factory=dict)
    """Groups that gave up, each with its reason."""


def commit_merge(work: Rewrite) -> Landing:
    """Put rewritten base files into the table; groups that lost against others give up."""
    pair = work.state.pair
    catalog, name = pair.base.catalog, pair.spec.name
    made = {n: data_files(pair, pair.base, files) for n, files in work.written.items()}
    landing = Landing()

    def decide(table: Table) -> SnapshotChange | Done:
        now = _newest(catalog_pair=load_pair(catalog, name), base=table)
        _judge(work, now, landing)
        return _merge(work, now, made, landing) if landing.landed else Done("all gave up")

    return _land(lambda: catalog.load_table(name), decide, landing)


def _land(load: Load, decide: Decide, landing: Landing) -> Landing:
    """Commit what is decided; a commit that is not in the table landed nothing."""
    commit_id = uuid4().hex
    if find_commit(commit(load, decide, commit_id), commit_id) is None:
        landing.landed = ()
    return landing


def _newest(
    catalog_pair: TablePair, *, base: Table | None = None, change: Table | None = None
) -> TableState:
    """Load the state that a commit is decided on: with exactly the head that it will assert."""
    mark_all(catalog_pair)
    pair = catalog_pair if base is None else replace(catalog_pair, base=base)
    return load_state(pair if change is None else replace(pair, change=change))


def _judge(work: Rewrite, now: TableState, landing: Landing) -> None:
    groups = {n: _inputs(work.plan.groups[n]) for n in work.written}
    since: list[Landed] | None = landed_since(
        work.state.log, now.log, work.state.files.bases, now.files.bases
    )
    live = {file.path for file in now.files.all}
    verdict = conflict(Planned(Kind.COMPACTION, tuple(groups.values())), since, live=live)
    reasons = dict(verdict.lost)
    landing.lost = {n: reasons[group] for n, group in groups.items() if group in reasons}
    landing.landed = tuple(n for n in groups if n not in landing.lost)


def _inputs(group: GroupPlan) -> Group:
    files = [file for piece in group.pieces for file in (*piece.bases, *piece.changes)]
    return Group(frozenset(file.path for file in files), frozenset({group.partition}))


def _merge(
    work: Rewrite, now: TableState, made: Mapping[int, tuple[DataFile, ...]], landing: Landing
) -> SnapshotChange:
    plan, spec = work.plan, work.state.pair.spec
    landed = [plan.groups[n] for n in landing.landed]
    bases = [file for group in landed for piece in group.pieces for file in piece.bases]
    merges = any(piece.changes for group in landed for piece in group.pieces)
    change_line = now.log.change or ()
    watermark = now.view.watermark
    if spec.keyed:
        watermark = advance(
            watermark,
            [(group.partition, group.node) for group in landed],
            plan.version,
            live=now.files.changes,
            newest=change_line[-1].sequence if change_line else 0,
        )
    return SnapshotChange(
        operation=Operation.OVERWRITE if merges else Operation.REPLACE,
        added=tuple(file for n in landing.landed for file in made[n]),
        removed=frozenset(file.path for file in bases),
        summary={
            KIND: work.kind,
            SCHEMA_ID: str(now.pair.base.metadata.current_schema_id),
            CONTAINS: str(max((plan.version, *now.view.base_versions.values()))),
            **encode_watermark(watermark),
            **work.tell(landing.landed),
        },
    )


def commit_minor(work: Rewrite) -> Landing:
    """Put fewer change files in the place of many; each keeps the sequence of its newest row."""
    pair = work.state.pair
    assert pair.change is not None, "only a table with a key has changes"
    catalog, name = pair.base.catalog, ".".join(pair.change.name())
    made = {n: data_files(pair, pair.change, files) for n, files in work.written.items()}
    landing = Landing()

    def decide(table: Table) -> SnapshotChange | Done:
        now = _newest(load_pair(catalog, pair.spec.name), change=table)
        _judge(work, now, landing)
        if not landing.landed:
            return Done("all gave up")
        groups = [work.plan.groups[n] for n in landing.landed]
        added = tuple(file for n in landing.landed for file in made[n])
        changes = [file for group in groups for piece in group.pieces for file in piece.changes]
        return SnapshotChange(
            operation=Operation.REPLACE,
            added=added,
            removed=frozenset(file.path for file in changes),
            sequences={file.file_path: _newest_row(file) for file in added},
            summary={
                KIND: work.kind,
                SCHEMA_ID: str(now.pair.base.metadata.current_schema_id),
                **work.tell(landing.landed),
            },
        )

    return _land(lambda: catalog.load_table(name), decide, landing)


def _newest_row(file: DataFile) -> int:
    newest: object = from_bytes(LongType(), file.upper_bounds[SEQ_ID])
    assert isinstance(newest, int)
    return newest


def trim(pair: TablePair) -> int:
    """Drop change files that base holds already; return how many."""
    if pair.change is None:
        return 0
    catalog, name = pair.base.catalog, ".".join(pair.change.name())
    dropped: list[str] = []

    def decide(table: Table) -> SnapshotChange | Done:
        now = _newest(load_pair(catalog, pair.spec.name), change=table)
        dropped[:] = [file.path for file in now.files.changes if _is_merged(file, now)]
        if not dropped:
            return Done("nothing is merged that is still there")
        return SnapshotChange(
            operation=Operation.DELETE,
            removed=frozenset(dropped),
            summary={KIND: TRIM, MERGED_INTO: str(now.view.base_snapshot_id)},
        )

    commit(lambda: catalog.load_table(name), decide, uuid4().hex)
    return len(dropped)


def _is_merged(file: FileEntry, now: TableState) -> bool:
    node = file.node
    return now.view.watermark.covers(file.partition, node.mask, node.index, file.sequence)
