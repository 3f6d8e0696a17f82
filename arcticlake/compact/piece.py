"""Pieces: what one task reads together and writes anew, of about the size of a file.

    clusters   {b1} {b2 c1} {b3 c2} {b4} {b5} {b6} {b7}          in the order of files
    chosen           *       *
    small                           b4   b5   b6   b7            four neighbours: one run
    pieces          [b2 c1 b3 c2]  [b4   b5   b6   b7]           b1 stays as it is

A cluster with changes, or with rows that another engine deleted, is rewritten; all others stay as
they are (CMP-10). Only neighbours share a piece, so what is written never spans a file that stays.

Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from arcticlake.tree.files import FileEntry
from arcticlake.tree.node import Node


@dataclass(frozen=True, slots=True)
class Piece:
    """Files that one task reads together and writes anew."""

    bases: tuple[FileEntry, ...]
    changes: tuple[FileEntry, ...]
    outputs: tuple[Node, ...]
    """Disjoint leaves that the rows go to; mostly one."""

    @property
    def files(self) -> tuple[FileEntry, ...]:
        """Every file that is read: base first."""
        return (*self.bases, *self.changes)

    @property
    def rows(self) -> int:
        """How many rows are read."""
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        """How many bytes are read."""
        return size_of(self.files)

    @property
    def live_bytes(self) -> int:
        """About how many bytes are written: changes mostly replace rows of base."""
        return size_of(self.bases) or size_of(self.changes)

    def output_files(self, target: int) -> int:
        """Return about how many files are written."""
        share = self.live_bytes / len(self.outputs)
        return len(self.outputs) * max(1, round(share / target))


@dataclass(frozen=True, slots=True)
class Cluster:
    """Files that intersect, directly or through others."""

    bases: tuple[FileEntry, ...]
    changes: tuple[FileEntry, ...]
    crowd: int = 1
    """How many of its base files overlap one another, changes aside."""

    @property
    def row_deletes(self) -> bool:
        """Whether another engine deleted rows of it."""
        return any(file.row_deletes for file in self.bases)

    @property
    def live_bytes(self) -> int:
        """About how many bytes it holds once it is merged."""
        return size_of(self.bases) or size_of(self.changes)


def size_of(files: Iterable[FileEntry]) -> int:
    """Return the bytes of some files."""
    return sum(file.bytes for file in files)


def in_order(files: Iterable[FileEntry]) -> tuple[FileEntry, ...]:
    """Return files in an order that does not depend on where they came from."""
    return tuple(sorted(files, key=lambda file: (file.node, file.path)))


def pack(
    sizes: Sequence[int], target: int, *, small: Callable[[int], bool] = lambda _: True
) -> list[list[int]]:
    """Return runs of neighbouring small items, each of about the target size, as their numbers.

    A run is closed by an item that is not small, or when it is at least half full and the next
    item does not fit. So all runs but the last between two large items come out large.
    """
    runs: list[list[int]] = []
    filled = 0
    closed = True
    for number, size in enumerate(sizes):
        if not small(number):
            closed = True
            continue
        if closed or (filled + size > target and 2 * filled >= target):
            runs.append([])
            filled = 0
        runs[-1].append(number)
        filled += size
        closed = False
    return runs


def small_runs(clusters: Sequence[Cluster], target: int, small: int) -> list[list[int]]:
    """Return runs of neighbouring small clusters, each of about the target size."""
    sizes = [cluster.live_bytes for cluster in clusters]
    return pack(sizes, target, small=lambda number: sizes[number] < small)


def run_files(clusters: Sequence[Cluster], run: Sequence[int]) -> int:
    """Return how many base files a run of small clusters holds, or will hold."""
    return sum(max(1, len(clusters[number].bases)) for number in run)


def plan_pieces(
    clusters: Sequence[Cluster],
    chosen: Sequence[bool],
    runs: Iterable[Sequence[int]],
    outputs: Sequence[Node],
    target: int,
) -> list[Piece]:
    """Return the pieces of the chosen clusters.

    The clusters of a run share a piece, and so do chosen neighbours that fit into one file for
    each output.
    """
    run_of = {number: run[0] for run in runs for number in run}
    members: list[list[Cluster]] = []
    last, last_run, filled = -2, -1, 0
    for number, cluster in enumerate(clusters):
        run = run_of.get(number, -1)
        if not chosen[number] and run < 0:
            continue
        size = cluster.live_bytes
        same = run >= 0 and run == last_run
        fits = last == number - 1 and filled + size <= target * len(outputs)
        if members and (same or fits):
            members[-1].append(cluster)
            filled += size
        else:
            members.append([cluster])
            filled = size
        last, last_run = number, run
    return [join_clusters(found, outputs) for found in members]


def join_clusters(clusters: Sequence[Cluster], outputs: Sequence[Node]) -> Piece:
    """Return the piece of some clusters; it goes to those outputs that its files touch."""
    bases = in_order(file for cluster in clusters for file in cluster.bases)
    changes = in_order(file for cluster in clusters for file in cluster.changes)
    places = {file.node for file in (*bases, *changes)}
    reached = [out for out in outputs if any(out.lineal(place) for place in places)]
    return Piece(bases, changes, tuple(reached))
