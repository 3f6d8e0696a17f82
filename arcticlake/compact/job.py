"""PieceJob: one piece of a plan as a worker needs it, as a value that pickles to executors.

Nothing here imports pyiceberg, whose start would cost every worker a second;
`compact/prepare.py` draws the jobs from a plan on the driver.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from arcticlake.ingest.job import WriteJob, WrittenFile
from arcticlake.resolve.job import ResolveJob
from arcticlake.tree.files import Role
from arcticlake.tree.forest import Partition
from arcticlake.tree.node import Node

BATCH_ROWS_MAX = 256 * 1024
"""Rows that are read at a time: enough that rows of one file come in handy chunks."""
BATCH_ROWS_MIN = 64
BATCH_SHARE = 32
"""A batch takes at most this part of a task's memory."""


@dataclass(frozen=True, slots=True)
class Source:
    """One file to read; its live rows are written anew."""

    path: str
    role: Role
    rows: int
    sequence: int
    """The commit sequence of change rows that have none of their own."""
    sort_range: tuple[Any, Any] | None = None
    """Lowest and highest value of the first sort column, NULL aside, where they are known."""


@dataclass(frozen=True, slots=True)
class PieceJob:
    """Files that are read together, and where their live rows go."""

    group: int
    """Index of the group in the plan."""
    resolve: ResolveJob | None
    """How to find dead rows; None where there can be none."""
    sources: tuple[Source, ...]
    """In the order in which they are read."""
    write: WriteJob
    partition: Partition
    outputs: tuple[Node, ...]
    sort: tuple[str, ...]
    """Columns that the rows are sorted by; empty for a hash merge."""
    lanes: int
    """Files that a leaf's rows are spread over by the range of the first key column."""
    memory: int
    """Bytes that the task may hold."""
    row_bytes: int = 0
    """What a row takes in memory; 0 before anybody looked."""
    stamps: bool = False
    """Whether rows keep the sequence of their commit in `_seq`, as change rows must."""

    @property
    def rows(self) -> int:
        """How many rows are read."""
        return sum(source.rows for source in self.sources)

    @property
    def batch_rows(self) -> int:
        """How many rows are read at a time."""
        fit = self.memory // BATCH_SHARE // max(1, self.row_bytes)
        return min(BATCH_ROWS_MAX, max(BATCH_ROWS_MIN, fit))


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What one piece became."""

    group: int
    files: tuple[WrittenFile, ...]
    rows_read: int


TaskJob: TypeAlias = tuple[PieceJob, ...]
"""The pieces of one task, done one after the other."""
