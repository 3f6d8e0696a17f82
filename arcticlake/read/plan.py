"""ScanPlan: files that pass through, and files that need a resolution first.

    1. pending = change files above the watermark of their subtree
    2. prune by partition, bucket and key: what a condition says of these holds for every
       version of a key, so whole files of both tables may go
    3. group what is left by lineal nodes; in a group with pending changes, base files whose key
       range meets a change need the resolution, all others pass through
    4. prune the scan by all other columns: a base row that cannot match may go at once, and so
       may a change file, but only from the scan: it still takes part in the resolution, because
       a newer version outside the filter hides an older one inside it

Step 4 is the rule that value filters never sink below the resolution of their key.

Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from pyiceberg.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    Or,
    Reference,
    UnboundPredicate,
)
from pyiceberg.expressions.visitors import (
    _InclusiveMetricsEvaluator,
    expression_evaluator,
    inclusive_projection,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record

from arcticlake.commit.history import View
from arcticlake.errors import InvalidRequest
from arcticlake.resolve.kernel import Keep
from arcticlake.table.order import MERGED_SEQUENCE
from arcticlake.table.spec import TableSpec
from arcticlake.tree.files import FileEntry, Role, TableFiles
from arcticlake.tree.forest import Partition, lineal_groups
from arcticlake.tree.node import Node


class ReadMode(StrEnum):
    """What a read shows."""

    MERGED = "merged"
    BASE = "base"
    UNMERGED = "unmerged"


@dataclass(frozen=True, slots=True)
class ResolveGroup:
    """Files of lineal nodes in one partition whose rows may hide one another."""

    partition: Partition
    node: Node
    bases: tuple[FileEntry, ...]
    changes: tuple[FileEntry, ...]
    keep: Keep = Keep.LIVE

    @property
    def rows(self) -> int:
        """How many keys a resolution reads."""
        return sum(file.rows for file in (*self.bases, *self.changes))


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """All that a read does: what to resolve, then what to scan."""

    table: str
    mode: ReadMode
    view: View
    groups: tuple[ResolveGroup, ...]
    bases: tuple[FileEntry, ...]
    """Base files to scan."""
    changes: tuple[FileEntry, ...]
    """Change files to scan."""
    files_total: int
    """Live files of both tables before pruning."""

    @property
    def resolved_paths(self) -> frozenset[str]:
        """Paths of files whose dead rows the resolution tells."""
        return frozenset(f.path for g in self.groups for f in (*g.bases, *g.changes))


@dataclass(frozen=True, slots=True)
class Pruning:
    """A condition in the three forms that files are judged by."""

    schema: Schema
    whole: BooleanExpression
    """Every term, for the metrics of files to scan."""
    on_key: BooleanExpression
    """Only terms on key columns, for the metrics of any file."""
    specs: Mapping[tuple[Role, int], PartitionSpec] = field(default_factory=dict)
    """The partition specs of both tables by id, for partition and bucket values."""


def parse_mode(mode: str, *, table: str) -> ReadMode:
    """Return the read mode of a name."""
    try:
        return ReadMode(mode)
    except ValueError:
        message = f"table {table}: unknown read mode {mode!r}; use merged, base or unmerged"
        raise InvalidRequest(message) from None


def plan_scan(
    spec: TableSpec, view: View, files: TableFiles, *, mode: ReadMode, pruning: Pruning | None
) -> ScanPlan:
    """Return what to resolve and what to scan."""
    pending = tuple(f for f in files.changes if not _merged(f, view))
    bases = files.bases
    if mode is ReadMode.BASE:
        pending = ()
    judge = _Judge(pruning) if pruning else None
    if judge:
        bases = tuple(f for f in bases if judge.keeps_keys(f))
        pending = tuple(f for f in pending if judge.keeps_keys(f))
    if mode is ReadMode.UNMERGED:
        groups = (*_row_deletes(bases), *_merged_in_part(pending, view))
    else:
        groups = _groups(bases, pending)
    scan_bases, scan_changes = bases, pending
    if judge:
        scan_bases = tuple(f for f in bases if judge.keeps_values(f))
        scan_changes = tuple(f for f in pending if judge.keeps_values(f))
        groups = _needed(groups, {f.path for f in (*scan_bases, *scan_changes)}, view)
    return ScanPlan(
        table=spec.name,
        mode=mode,
        view=view,
        groups=groups,
        bases=scan_bases,
        changes=scan_changes,
        files_total=len(files.bases) + len(files.changes),
    )


def partitions_that_may_match(files: Iterable[FileEntry], pruning: Pruning) -> frozenset[Partition]:
    """Return the partitions of files that may hold rows which meet a condition."""
    judge = _Judge(pruning)
    return frozenset(file.partition for file in files if judge.keeps_keys(file))


def _merged(file: FileEntry, view: View) -> bool:
    node = file.node
    return view.watermark.covers(file.partition, node.mask, node.index, file.sequence)


def _groups(bases: Sequence[FileEntry], pending: Sequence[FileEntry]) -> tuple[ResolveGroup, ...]:
    changes = set(pending)
    touched = {f.partition for f in (*pending, *(f for f in bases if f.row_deletes))}
    groups = []
    members_of = lineal_groups([f for f in (*bases, *pending) if f.partition in touched])
    for (partition, node), members in members_of.items():
        news = [f for f in members if f in changes]
        olds = [
            f
            for f in members
            if f not in changes and (f.row_deletes or any(ranges_meet(f, new) for new in news))
        ]
        if news or olds:
            groups.append(ResolveGroup(partition, node, tuple(olds), tuple(news)))
    return tuple(groups)


def _row_deletes(bases: Sequence[FileEntry]) -> tuple[ResolveGroup, ...]:
    """Return groups that only honour rows which another engine deleted."""
    return tuple(ResolveGroup(f.partition, f.node, (f,), ()) for f in bases if f.row_deletes)


def _merged_in_part(pending: Sequence[FileEntry], view: View) -> tuple[ResolveGroup, ...]:
    """Return groups that leave out rows which base holds already, in files that hold others too."""
    return tuple(
        ResolveGroup(f.partition, f.node, (), (f,), Keep.EVERY)
        for f in pending
        if f.sequence_min <= view.watermark.merged(f.partition, f.node.mask, f.node.index)
    )


def _needed(
    groups: Sequence[ResolveGroup], scanned: set[str], view: View
) -> tuple[ResolveGroup, ...]:
    """Return the groups that decide about a scanned file.

    Bases that are not scanned drop out, unless a batch wrote them: their rows may be newer than a
    pending change and hide it.
    """
    kept = []
    for group in groups:
        bases = tuple(
            f
            for f in group.bases
            if f.path in scanned or view.base_sequence(f.snapshot_id) != MERGED_SEQUENCE
        )
        if any(f.path in scanned for f in (*bases, *group.changes)):
            kept.append(replace(group, bases=bases))
    return tuple(kept)


def ranges_meet(file: FileEntry, other: FileEntry) -> bool:
    """Whether the key ranges of two files may share a key; unknown bounds may."""
    return all(
        a_low is None
        or a_high is None
        or b_low is None
        or b_high is None
        or (_at_most(a_low, b_high) and _at_most(b_low, a_high))
        for a_low, a_high, b_low, b_high in zip(
            file.key_lower, file.key_upper, other.key_lower, other.key_upper, strict=True
        )
    )


def _at_most(low: object, high: object) -> bool:
    return low <= high  # type: ignore[operator,no-any-return]


def only_on(condition: BooleanExpression, names: frozenset[str]) -> BooleanExpression:
    """Return what a condition says of some columns alone; weaker where it says more."""
    match condition:
        case And(left=left, right=right):
            return And(only_on(left, names), only_on(right, names))
        case Or(left=left, right=right):
            return Or(only_on(left, names), only_on(right, names))
        case UnboundPredicate(term=Reference(name=name)) if name in names:
            return condition
    return AlwaysTrue() if not isinstance(condition, AlwaysFalse) else condition


class _Judge:
    """Decides by manifest facts alone whether a file may hold matching rows."""

    def __init__(self, pruning: Pruning) -> None:
        self._values = _InclusiveMetricsEvaluator(pruning.schema, pruning.whole)
        self._keys = _InclusiveMetricsEvaluator(pruning.schema, pruning.on_key)
        self._partitions = {
            identity: judge
            for identity, spec in pruning.specs.items()
            if (judge := _partition_judge(pruning, spec)) is not None
        }

    def keeps_keys(self, file: FileEntry) -> bool:
        partition = self._partitions.get((file.role, file.data_file.spec_id))
        if partition is not None and not partition(file.data_file.partition):
            return False
        return bool(self._keys.eval(file.data_file))

    def keeps_values(self, file: FileEntry) -> bool:
        return bool(self._values.eval(file.data_file))


def _partition_judge(pruning: Pruning, spec: PartitionSpec) -> Callable[[Record], bool] | None:
    """Return what tells by partition values whether rows may match; None where nothing can."""
    try:
        projected = inclusive_projection(pruning.schema, spec)(pruning.whole)
    except OverflowError:  # the day after the last one of the calendar has no month
        return None
    fields = spec.partition_type(pruning.schema).fields
    return expression_evaluator(Schema(*fields), projected, case_sensitive=True)
