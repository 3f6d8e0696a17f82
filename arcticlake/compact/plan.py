"""CompactionPlan: what should be rewritten, as a value.

    facts ─ units ─ shapes ─ clusters ─ verdicts ─ pieces ─ tasks
            lineal  output   by inter-  score.py   what a   packed by cost
            files   nodes    section               task does

A group commits as a whole. Whenever it rewrites base files, all changes that wait in it up to the
version are merged with it, so that one number says how far its subtree is merged. Base files with
rows from after the version are never touched. No file stands in two pieces.

Same facts, same plan: files are put in order by node and path, whatever order they come in.

Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from arcticlake.compact.explain import estimated_seconds, explain_plan, piece_cost, spread
from arcticlake.compact.group import find_clusters
from arcticlake.compact.keyless import plan_keyless_pieces, score_keyless
from arcticlake.compact.nodes import Event, Limits, Shape, Unit, limits_of, plan_shape
from arcticlake.compact.piece import (
    Cluster,
    Piece,
    in_order,
    plan_pieces,
    run_files,
    small_runs,
)
from arcticlake.compact.score import (
    CROWD_MIN,
    SMALL_BASES_MIN,
    Verdict,
    Work,
    minor_pieces,
    score_full,
    score_merge,
    score_minor,
    score_unit,
)
from arcticlake.compact.units import Facts, apply_merges, find_merges, find_units
from arcticlake.errors import InvalidRequest
from arcticlake.ingest.plan import place_terms
from arcticlake.table.spec import TableSpec
from arcticlake.tree.files import FileEntry
from arcticlake.tree.forest import Partition
from arcticlake.tree.hash import PlaceTerm
from arcticlake.tree.node import ROOT, Node

__all__ = [
    "CompactionPlan",
    "Event",
    "Facts",
    "GroupPlan",
    "Piece",
    "Task",
    "Work",
    "plan_compaction",
]

KINDS = ("auto", "minor", "major", "full")
TASKS_PER_WORKER = 2
"""Two tasks for each worker: the second evens out what the estimate of the first got wrong."""


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """One lineal set of leaves of one partition: it commits as a whole, or is kept."""

    partition: Partition
    node: Node
    """The topmost node: all files of the group lie in its subtree."""
    work: Work
    reason: str
    """Why, or why not, in a few words with the numbers that decided."""
    score: float
    """How much it is worth: from 1 on it is done by auto; 0 is nothing to gain."""
    pieces: tuple[Piece, ...]
    """Empty for KEEP."""
    kept: tuple[FileEntry, ...]
    """Live files of the group that stay as they are."""
    events: tuple[Event, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """What one worker does, one piece after the other."""

    number: int
    pieces: tuple[tuple[int, Piece], ...]
    """(index of the group in `plan.groups`, piece)."""

    @property
    def rows(self) -> int:
        """How many rows are read."""
        return sum(piece.rows for _, piece in self.pieces)

    @property
    def bytes(self) -> int:
        """How many bytes are read."""
        return sum(piece.bytes for _, piece in self.pieces)

    @property
    def cost(self) -> float:
        """Bytes, weighted by how much work they are."""
        return sum(piece_cost(piece) for _, piece in self.pieces)


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """What a compaction does, group by group, and how the work is shared."""

    table: str
    kind: str
    """As asked: auto, minor, major or full."""
    version: int
    """Changes up to here are merged."""
    groups: tuple[GroupPlan, ...]
    """Every group of the table, or of the partitions asked for, in order of (partition, node)."""
    tasks: tuple[Task, ...]
    target_file_size: int
    parallelism: int = 1
    terms: tuple[PlaceTerm, ...] = ()
    """The partition fields, to show partition values as people write them."""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.tasks

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """Every piece, by group."""
        return tuple(piece for group in self.groups for piece in group.pieces)

    @property
    def seconds(self) -> float:
        """About how long it takes with all workers."""
        return estimated_seconds([task.cost for task in self.tasks], self.parallelism)

    def explain(self) -> str:
        """Return for every group what will be done and why, or why not."""
        return explain_plan(self)


def plan_compaction(facts: Facts, kind: str, *, parallelism: int) -> CompactionPlan:
    """Return what to rewrite, why, and by which tasks."""
    spec = facts.spec
    _check_kind(spec, kind)
    assert parallelism >= 1, "a plan needs at least one worker"
    limits = limits_of(spec)
    found = _plan_keyed(facts, kind, limits) if spec.keyed else _plan_keyless(facts, kind, limits)
    groups = tuple(sorted(found, key=lambda g: (_partition_order(g.partition), g.node)))
    return CompactionPlan(
        table=spec.name,
        kind=kind,
        version=facts.version,
        groups=groups,
        tasks=_plan_tasks(groups, parallelism),
        target_file_size=limits.target,
        parallelism=parallelism,
        terms=place_terms(spec),
    )


def _check_kind(spec: TableSpec, kind: str) -> None:
    if kind not in KINDS:
        message = (
            f"table {spec.name}: unknown kind of compaction {kind!r}; use {', '.join(KINDS[:-1])} "
            f"or {KINDS[-1]}"
        )
        raise InvalidRequest(message)
    if kind == "minor" and not spec.keyed:
        message = (
            f"table {spec.name} has no change table, since it has no primary key: a minor "
            "compaction has nothing to do; use auto, major or full to merge small files"
        )
        raise InvalidRequest(message)


def _partition_order(partition: Partition) -> tuple[tuple[bool, object], ...]:
    return tuple((value is not None, 0 if value is None else value) for value in partition)


def _plan_tasks(groups: Sequence[GroupPlan], parallelism: int) -> tuple[Task, ...]:
    """Return the pieces packed by cost, heaviest first to the least loaded task (CMP-14)."""
    pieces = [(number, piece) for number, group in enumerate(groups) for piece in group.pieces]
    if not pieces:
        return ()
    costs = [piece_cost(piece) for _, piece in pieces]
    task_count = min(len(pieces), parallelism * TASKS_PER_WORKER)
    shared: list[list[int]] = [[] for _ in range(task_count)]
    for number, task in enumerate(spread(costs, task_count)):
        shared[task].append(number)
    return tuple(
        Task(
            number,
            tuple(pieces[i] for i in sorted(mine, key=lambda i: (-costs[i], i))),
        )
        for number, mine in enumerate(shared)
    )


def _plan_keyless(facts: Facts, kind: str, limits: Limits) -> list[GroupPlan]:
    by_partition: dict[Partition, list[FileEntry]] = defaultdict(list)
    for file in facts.bases:
        if facts.chosen(file.partition):
            by_partition[file.partition].append(file)
    groups = []
    for partition, files in by_partition.items():
        pieces = plan_keyless_pieces(
            files,
            kind,
            target=limits.target,
            memory=limits.memory,
            by_sort=bool(facts.spec.sort_ids),
        )
        verdict = score_keyless(files, pieces, kind, limits)
        unit = Unit(partition, ROOT, (ROOT,), tuple(files), ())
        groups.append(_group(unit, verdict, pieces))
    return groups


def _group(
    unit: Unit, verdict: Verdict, pieces: Sequence[Piece], events: tuple[Event, ...] = ()
) -> GroupPlan:
    taken = {file.path for piece in pieces for file in piece.files}
    return GroupPlan(
        partition=unit.partition,
        node=unit.node,
        work=verdict.work,
        reason=verdict.reason,
        score=verdict.score,
        pieces=tuple(pieces),
        kept=in_order(file for file in unit.files if file.path not in taken),
        events=events,
    )


def _plan_keyed(facts: Facts, kind: str, limits: Limits) -> list[GroupPlan]:
    units, left_out = find_units(facts)
    if kind == "minor":
        return [
            _group(
                unit,
                score_minor(unit, limits, facts.version),
                minor_pieces(unit, limits, facts.version),
            )
            for unit in units
        ]
    groups = []
    by_partition: dict[Partition, list[Unit]] = defaultdict(list)
    for unit in units:
        by_partition[unit.partition].append(unit)
    for partition, members in by_partition.items():
        shapes = {unit.node: plan_shape(unit, limits) for unit in members}
        others = left_out.get(partition, ())
        merges = {} if kind == "major" else find_merges(members, shapes, others, kind, limits)
        for unit, shape, merged in apply_merges(members, shapes, merges):
            groups.append(_plan_unit(facts, kind, unit, shape, limits, merged=merged))
    return groups


def _plan_unit(
    facts: Facts, kind: str, unit: Unit, shape: Shape, limits: Limits, *, merged: bool
) -> GroupPlan:
    if merged or kind == "full":
        verdict = score_merge(unit, shape, kind, limits) if merged else score_full(unit)
        if verdict.work is Work.KEEP:
            return _group(unit, verdict, ())
        whole = Piece(unit.bases, unit.changes, shape.outputs)
        return _group(unit, verdict, [whole], shape.events)
    clusters = find_clusters(
        unit.bases, unit.changes, unit.leaves, by_sort=bool(facts.spec.sort_ids)
    )
    verdict = score_unit(
        unit, kind, clusters=clusters, shape=shape, limits=limits, version=facts.version
    )
    match verdict.work:
        case Work.KEEP:
            return _group(unit, verdict, ())
        case Work.MINOR:
            return _group(unit, verdict, minor_pieces(unit, limits, facts.version))
    pieces = _major_pieces(unit, shape, clusters, kind, limits)
    return _group(unit, verdict, pieces, shape.events)


def _major_pieces(
    unit: Unit, shape: Shape, clusters: Sequence[Cluster], kind: str, limits: Limits
) -> list[Piece]:
    """Return the pieces of the clusters that need it; all others stay as they are (CMP-10)."""
    outputs = frozenset(shape.outputs)
    chosen = [
        bool(cluster.changes)
        or cluster.row_deletes
        or any(file.node not in outputs for file in cluster.bases)
        or (kind == "auto" and cluster.crowd >= CROWD_MIN)
        for cluster in clusters
    ]
    runs: list[list[int]] = []
    if kind == "auto" and len(unit.leaves) == 1:
        found = small_runs(clusters, limits.target, limits.small)
        runs = [run for run in found if run_files(clusters, run) >= SMALL_BASES_MIN]
    return plan_pieces(clusters, chosen, runs, shape.outputs, limits.target)
