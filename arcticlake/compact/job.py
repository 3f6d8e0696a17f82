"""PieceJob: one piece of a plan as a worker needs it, as a value that pickles to executors.

Nothing here imports pyiceberg, whose start would cost every worker a second;
`compact/prepare.py` draws the jobs from a plan on the driver.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from arcticlake.ingest.job import WriteJob, WrittenFile
from arcticlake.resolve.job import ResolveJob
from arcticlake.tree.files import Role
from arcticlake.tree.forest import Partition
from arcticlake.tree.node import Node


@dataclass(frozen=True, slots=True)
class Source:
    """One file to read; its live rows are written anew."""

    path: str
    role: Role
    rows: int
    sequence: int
    """The commit sequence of change rows that have none of their own."""


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
    stamps: bool = False
    """Whether rows keep the sequence of their commit in `_seq`, as change rows must."""

    @property
    def rows(self) -> int:
        """How many rows are read."""
        return sum(source.rows for source in self.sources)


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What one piece became."""

    group: int
    files: tuple[WrittenFile, ...]
    rows_read: int


TaskJob: TypeAlias = tuple[PieceJob, ...]
"""The pieces of one task, done one after the other."""
