"""A compaction plan as text: for every group what is done and why, or why not.

    db.orders: auto compaction up to version 12, 1 of 2 groups
      reads 4 base + 3 change files, 4,300,000 rows, 630 MB; writes about 4 files, 600 MB
      1 task, about 11 s
    3/0 keep: no change waits; 1 base file, 800,000 rows, 110 MB
    3/1 major: leaf 3/1 holds 630 MB, its limit is 512 MB
      4 base + 3 change files, 4,300,000 rows, 630 MB → 4 files, 600 MB, 11 s
      split 3/1 into 7/1 7/5

The same plan gives the same text, byte for byte. Seconds are an estimate: a task takes 60 MB of
compressed base a second (read, resolved, encoded and written), changes count twice, and every file
costs as much as 1 MB; the whole takes as long as the worker with the most to do.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heapreplace
from typing import TYPE_CHECKING

from arcticlake.compact.piece import Piece, size_of
from arcticlake.ingest.place import readable
from arcticlake.tree.files import FileEntry, Role
from arcticlake.tree.forest import Partition
from arcticlake.tree.hash import PlaceTerm

if TYPE_CHECKING:
    from arcticlake.compact.plan import CompactionPlan, GroupPlan

BYTES_PER_SECOND = 60 * 2**20
FILE_COST = 2**20
"""Opening, closing and registering a file takes about as long as this many bytes."""
CHANGE_WEIGHT = 2
"""A change is read, resolved and written; a row of base is mostly just copied."""

_UNITS = ("B", "KB", "MB", "GB", "TB", "PB")


def explain_plan(plan: CompactionPlan) -> str:
    """Return the plan as people read it."""
    return "\n".join([*_header(plan), *(line for g in plan.groups for line in _lines(plan, g))])


def piece_cost(piece: Piece) -> float:
    """Return the bytes of a piece, weighted by how much work they are."""
    weight = CHANGE_WEIGHT if piece.bases else 1
    changes = weight * size_of(piece.changes)
    return size_of(piece.bases) + changes + FILE_COST * len(piece.files)


def spread(costs: Sequence[float], count: int) -> list[int]:
    """Return for every cost the worker that takes it: heaviest first, to the least loaded."""
    load = [(0.0, worker) for worker in range(count)]
    heapify(load)
    workers = [0] * len(costs)
    for number in sorted(range(len(costs)), key=lambda number: (-costs[number], number)):
        least, worker = load[0]
        heapreplace(load, (least + costs[number], worker))
        workers[number] = worker
    return workers


def estimated_seconds(costs: Sequence[float], parallelism: int) -> float:
    """Return how long tasks of these costs take side by side."""
    loads = [0.0] * parallelism
    for cost, worker in zip(costs, spread(costs, parallelism), strict=True):
        loads[worker] += cost
    return max(loads) / BYTES_PER_SECOND


def _header(plan: CompactionPlan) -> list[str]:
    working = [group for group in plan.groups if group.pieces]
    asked = f"{plan.table}: {plan.kind} compaction up to version {plan.version}"
    if not working:
        return [f"{asked}, nothing to do in {count(len(plan.groups), 'group')}"]
    pieces = [piece for group in working for piece in group.pieces]
    read = _amount(f for piece in pieces for f in piece.files)
    return [
        f"{asked}, {len(working)} of {count(len(plan.groups), 'group')}",
        f"  reads {read}; writes about {_outcome(pieces, plan.target_file_size)}",
        f"  {count(len(plan.tasks), 'task')}, about {readable_seconds(plan.seconds)}",
    ]


def _lines(plan: CompactionPlan, group: GroupPlan) -> list[str]:
    place = f"{partition_label(plan.terms, group.partition)} {group.node}".strip()
    if not group.pieces:
        return [f"{place} {group.work.value}: {group.reason}; {_amount(group.kept)}"]
    read = _amount(f for piece in group.pieces for f in piece.files)
    seconds = sum(piece_cost(piece) for piece in group.pieces) / BYTES_PER_SECOND
    outcome = _outcome(group.pieces, plan.target_file_size)
    lines = [
        f"{place} {group.work.value}: {group.reason}",
        f"  {read} → {outcome}, {readable_seconds(seconds)}",
    ]
    if len(group.pieces) > 1:
        lines[-1] += f", in {len(group.pieces)} pieces"
    if group.kept:
        lines.append(f"  stays: {_amount(group.kept)}")
    return [*lines, *(f"  {event}" for event in group.events)]


def _amount(files: Iterable[FileEntry]) -> str:
    listed = tuple(files)
    change = sum(1 for file in listed if file.role is Role.CHANGE)
    kinds = [f"{number} {role}" for number, role in _roles(len(listed) - change, change)]
    named = f"{' + '.join(kinds)} file" + ("" if len(listed) == 1 else "s")
    rows = count(sum(file.rows for file in listed), "row")
    return f"{named}, {rows}, {readable_bytes(size_of(listed))}"


def _roles(base: int, change: int) -> list[tuple[int, str]]:
    return [(number, role) for number, role in ((base, "base"), (change, "change")) if number]


def _outcome(pieces: Sequence[Piece], target: int) -> str:
    files = sum(piece.output_files(target) for piece in pieces)
    written = sum(piece.live_bytes for piece in pieces)
    return f"{count(files, 'file')}, {readable_bytes(written)}"


def partition_label(terms: Sequence[PlaceTerm], partition: Partition) -> str:
    """Return the values of a partition by field name, as people write them."""
    pairs = zip(terms, partition, strict=True)
    return "/".join(f"{term.name}={readable(term, value)}" for term, value in pairs)


def count(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def readable_bytes(size: float) -> str:
    """Return a size as people write it; units are powers of 1024."""
    amount, unit = float(size), _UNITS[0]
    for unit in _UNITS:
        if amount < 1024 or unit == _UNITS[-1]:
            break
        amount /= 1024
    return f"{amount:,.0f} {unit}" if unit == "B" or amount >= 100 else f"{amount:.1f} {unit}"


def readable_seconds(seconds: float) -> str:
    """Return a duration as people write it."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min"
