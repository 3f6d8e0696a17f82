"""How much a unit needs work: grounds, each a number against its limit.

A ground says how far a fact is over its threshold; 1 is just there, 2 is twice over:

    changes     bytes that wait / base bytes that they touch        10 %        major
    deletes     base files with rows that another engine deleted    1           major
    leaf        bytes of the heaviest leaf / its limit              above 1     major, with a split
    overlap     base files that overlap one another                 4           major
    small       neighbouring small base files                       4           major
    fragments   small change files of one node                      8           minor

`auto` does the strongest major ground that is there, else the minor one, else nothing, and says the
number that is closest (MIN-01, SPL-10, CMP-20). The other kinds do what was asked wherever there
is something to do; their score is still the strongest ground, so that groups can be compared.

The 10 %: a merge writes the touched base once again, so a byte of change costs at most ten bytes
written, while a read never resolves more than a tenth of what it scans.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from arcticlake.compact.explain import count, readable_bytes
from arcticlake.compact.nodes import Limits, Load, Shape, Unit, overload
from arcticlake.compact.piece import (
    Cluster,
    Piece,
    in_order,
    pack,
    run_files,
    size_of,
    small_runs,
)
from arcticlake.tree.files import FileEntry
from arcticlake.tree.node import Node

CHANGE_SHARE_MIN = 0.10
CROWD_MIN = 4
SMALL_BASES_MIN = 4
FRAGMENTS_MIN = 8
FRAGMENTS_MIN_ASKED = 2
SCORE_MAX = 10.0
"""The score of a ground without measure: changes that touch no base, leaves that are empty."""


class Work(StrEnum):
    """What is done to one group of files."""

    KEEP = "keep"
    MINOR = "minor"
    MAJOR = "major"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Ground:
    """One reason to rewrite, and how far it is over its threshold."""

    work: Work
    score: float
    reason: str
    waits: str = ""
    """What is said where it is not enough: the threshold."""
    above: bool = False
    """Whether it must be over its threshold, not just there."""

    @property
    def enough(self) -> bool:
        """Whether it is worth the work."""
        return self.score > 1 if self.above else self.score >= 1


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is done to a unit, and why, or why not."""

    work: Work
    reason: str
    score: float


def score_unit(
    unit: Unit,
    kind: str,
    *,
    clusters: Sequence[Cluster],
    shape: Shape,
    limits: Limits,
    version: int,
) -> Verdict:
    """Return what to do with the files of one unit, as `auto` or `major` see it."""
    grounds = _grounds(unit, clusters, shape, limits, version)
    if kind == "major":
        if not unit.changes:
            return Verdict(Work.KEEP, _idle(unit), 0.0)
        score = max(ground.score for ground in grounds)
        return Verdict(Work.MAJOR, _why_asked(unit, grounds), score)
    best = {
        work: max(
            (g for g in grounds if g.work is work and g.enough), key=lambda g: g.score, default=None
        )
        for work in (Work.MAJOR, Work.MINOR)
    }
    if chosen := best[Work.MAJOR] or best[Work.MINOR]:
        return Verdict(chosen.work, chosen.reason, chosen.score)
    return _keep(unit, grounds)


def score_full(unit: Unit) -> Verdict:
    """Return that everything is rewritten, if there is anything."""
    if not unit.bases and not unit.changes:
        return Verdict(Work.KEEP, _held(unit), 0.0)
    return Verdict(Work.FULL, "asked for in full", 1.0)


def score_minor(unit: Unit, limits: Limits, version: int) -> Verdict:
    """Return whether the small change files of a unit can become fewer."""
    found = sum(len(piece.changes) for piece in minor_pieces(unit, limits, version))
    if found:
        return Verdict(Work.MINOR, f"{count(found, 'small change file')}", found / FRAGMENTS_MIN)
    waiting = len(unit.changes)
    reason = f"{count(waiting, 'change file')}, fewer than 2 of them small" if waiting else ""
    return Verdict(Work.KEEP, reason or _idle(unit), 0.0)


def minor_pieces(unit: Unit, limits: Limits, version: int) -> list[Piece]:
    """Return the small change files of each node, packed in order of history.

    Files that reach beyond the version stay as they are: their rows belong to two merges.
    """
    by_node: dict[Node, list[FileEntry]] = {}
    for file in unit.changes:
        if file.bytes < limits.small and file.sequence <= version:
            by_node.setdefault(file.node, []).append(file)
    pieces = []
    for node, files in sorted(by_node.items()):
        files.sort(key=lambda file: (file.sequence_min, file.sequence, file.path))
        for run in pack([file.bytes for file in files], limits.target):
            members = in_order(files[number] for number in run)
            if len(members) >= FRAGMENTS_MIN_ASKED:
                pieces.append(Piece((), members, (node,)))
    return pieces


def _grounds(
    unit: Unit, clusters: Sequence[Cluster], shape: Shape, limits: Limits, version: int
) -> list[Ground]:
    grounds = []
    if unit.changes:
        grounds.append(_change_ground(clusters))
    deleted = sum(1 for file in unit.bases if file.row_deletes)
    if deleted:
        grounds.append(Ground(Work.MAJOR, float(deleted), row_delete_reason(deleted)))
    if shape.events:
        split = {event.node: shape.loads[event.node] for event in shape.events}
        grounds.append(_leaf_ground(split, limits))
    crowd = max((cluster.crowd for cluster in clusters), default=0)
    if crowd > 1:
        reason = f"{crowd} base files overlap one another"
        grounds.append(
            Ground(Work.MAJOR, crowd / CROWD_MIN, reason, waits=f"waits for {CROWD_MIN}")
        )
    small = _small_bases(unit, clusters, limits)
    if small > 1:
        reason = f"{small} small base files can become fewer"
        waits = f"waits for {SMALL_BASES_MIN}"
        grounds.append(Ground(Work.MAJOR, small / SMALL_BASES_MIN, reason, waits=waits))
    fragments = sum(len(piece.changes) for piece in minor_pieces(unit, limits, version))
    if fragments > 1:
        reason = f"{fragments} small change files"
        waits = f"waits for {FRAGMENTS_MIN}"
        grounds.append(Ground(Work.MINOR, fragments / FRAGMENTS_MIN, reason, waits=waits))
    return grounds


def _change_ground(clusters: Sequence[Cluster]) -> Ground:
    waiting = sum(size_of(cluster.changes) for cluster in clusters)
    touched = sum(size_of(cluster.bases) for cluster in clusters if cluster.changes)
    if not touched:
        return Ground(Work.MAJOR, SCORE_MAX, "changes touch no base")
    share = waiting / touched
    return Ground(
        Work.MAJOR,
        share / CHANGE_SHARE_MIN,
        f"changes are {100 * share:.1f} % of the base they touch",
        waits=f"waits for {100 * CHANGE_SHARE_MIN:.0f} %",
    )


def _leaf_ground(loads: Mapping[Node, Load], limits: Limits) -> Ground:
    leaf, load = max(loads.items(), key=lambda item: (overload(item[1], limits), item[0]))
    over = overload(load, limits)
    if load.all / limits.leaf >= load.change / limits.leaf_changes:
        what, limit = f"leaf {leaf} holds {readable_bytes(load.all)}", limits.leaf
    else:
        what = f"{readable_bytes(load.change)} of changes wait in leaf {leaf}"
        limit = limits.leaf_changes
    reason = f"{what}, its limit is {readable_bytes(limit)}"
    return Ground(Work.MAJOR, over, reason, above=True)


def _small_bases(unit: Unit, clusters: Sequence[Cluster], limits: Limits) -> int:
    if len(unit.leaves) > 1:
        return 0  # neighbours in the order of files may lie in different leaves
    runs = small_runs(clusters, limits.target, limits.small)
    return max((run_files(clusters, run) for run in runs), default=0)


def row_delete_reason(files: int) -> str:
    """Return what is said of base files with rows that another engine deleted."""
    verb = "carries" if files == 1 else "carry"
    return f"{count(files, 'base file')} {verb} row deletes of another engine"


def _why_asked(unit: Unit, grounds: Sequence[Ground]) -> str:
    waiting = count(len(unit.changes), "change file")
    return f"{waiting} merged: {grounds[0].reason}"


def _keep(unit: Unit, grounds: Sequence[Ground]) -> Verdict:
    nearest = max(grounds, key=lambda ground: ground.score, default=None)
    if nearest is None:
        return Verdict(Work.KEEP, _idle(unit), 0.0)
    return Verdict(Work.KEEP, f"{nearest.reason}; {nearest.waits}", nearest.score)


def _idle(unit: Unit) -> str:
    return "no change waits" if unit.bases or unit.changes else _held(unit)


def _held(unit: Unit) -> str:
    return f"{count(len(unit.held), 'base file')} from after the version"


def score_merge(unit: Unit, shape: Shape, kind: str, limits: Limits) -> Verdict:
    """Return why leaves merge back."""
    size = sum(load.all for load in shape.loads.values())
    reason = (
        f"{len(unit.leaves)} small leaves of together {readable_bytes(size)} merge back, "
        f"the limit is {readable_bytes(limits.merge_back)}"
    )
    score = min(limits.merge_back / max(size, 1), SCORE_MAX)
    return Verdict(Work.FULL if kind == "full" else Work.MAJOR, reason, score)
