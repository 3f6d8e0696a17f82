"""CompactionPlan: what should be rewritten, as a value.

Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from arcticlake.compact.explain import explain_plan
from arcticlake.compact.group import Piece
from arcticlake.compact.nodes import Event
from arcticlake.compact.score import Work
from arcticlake.table.spec import TableSpec
from arcticlake.table.watermark import Watermark
from arcticlake.tree.files import FileEntry
from arcticlake.tree.forest import Partition
from arcticlake.tree.hash import PlaceTerm
from arcticlake.tree.node import Node

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

FILE_COST = 2**20
"""Opening, planning and closing a file takes about as long as reading this many bytes."""
CHANGE_WEIGHT = 2
"""A change row is read, resolved and written; a base row mostly just copied."""


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


def piece_cost(piece: Piece) -> float:
    """Return the bytes of a piece, weighted by how much work they are."""
    raise NotImplementedError


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

    def explain(self) -> str:
        """Return for every leaf group what will be done and why, or why not."""
        return explain_plan(self)


@dataclass(frozen=True, slots=True)
class Facts:
    """All that the planner looks at."""

    spec: TableSpec
    version: int
    """Merge changes up to this version."""
    watermark: Watermark
    bases: tuple[FileEntry, ...]
    """Live base files."""
    changes: tuple[FileEntry, ...]
    """Live change files; those that are merged already may still be among them."""
    base_sequence: Callable[[int], int]
    """Snapshot id of a base file → place of its rows in history; 0 after a compaction."""
    chosen: Callable[[Partition], bool]
    """Whether the caller asked for this partition."""


def plan_compaction(facts: Facts, kind: str, *, parallelism: int) -> CompactionPlan:
    """Return what to rewrite, why, and by which tasks."""
    raise NotImplementedError
