"""Files that must be rewritten together, found by intersection (KEY-16, CMP-13).

The files of a unit are points of a graph; its connected parts are clusters:

    change – any file    may share a key (boxes of the key columns meet), or, with a sort key, must
                         be put in order among each other (sort ranges meet)
    base – base          overlap in the order of files: the first sort column, else the first key
                         column. Files that only touch in one value are in order already, except
                         where the key has one column and no sort key: no value comes twice there

    order →    ├─ b1 ─┤ ├─ b2 ─┤   ├─ b3 ─┤ ├─ b4 ─┤          clusters {b1} {b2 c1 b3} {b4}
                            ├─ c1 ─┤

At last, clusters whose spans overlap are joined: what a cluster writes lies anywhere in its span,
and base files of a leaf must not overlap afterwards. Unknown bounds meet everything.

Bounds become ranks first, so that all comparisons run on arrays of numbers.

Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import isnan

import numpy as np
import numpy.typing as npt

from arcticlake.compact.piece import Cluster, in_order
from arcticlake.tree.files import Bounds, FileEntry, Role
from arcticlake.tree.node import Node

Ranks = npt.NDArray[np.int64]


def find_clusters(
    bases: Sequence[FileEntry],
    changes: Sequence[FileEntry],
    leaves: Sequence[Node],
    *,
    by_sort: bool,
) -> list[Cluster]:
    """Return the clusters of a unit's files, by their place in the order of files."""
    files = in_order((*bases, *changes))
    if len(files) < 2:
        return [_cluster(files, list(range(len(files))), 1)] if files else []
    space = _Space(files, by_sort=by_sort)
    touched = tuple(sorted(leaves)) if len({file.node for file in files}) > 1 else ()
    olds = [i for i in range(len(files)) if files[i].role is Role.BASE]
    joined = _Joined(len(files))
    for members in _in_leaves(files, olds, touched):
        joined.join_all(space.overlaps(members))
    crowds = joined.sizes(olds)
    if len(olds) < len(files):
        plain = space.touching_meets and not touched
        joined.join_all(
            space.overlaps(range(len(files))) if plain else _meetings(space, files, touched)
        )
    while _close_spans(joined, space, files, touched):
        pass  # a span that grew may reach the next one
    found = sorted(joined.parts(), key=space.place)
    return [_cluster(files, part, max(crowds.get(i, 1) for i in part)) for part in found]


def _cluster(files: Sequence[FileEntry], part: Sequence[int], crowd: int) -> Cluster:
    members = [files[i] for i in part]
    return Cluster(
        tuple(f for f in members if f.role is Role.BASE),
        tuple(f for f in members if f.role is Role.CHANGE),
        crowd,
    )


class _Joined:
    """Numbers that belong together, joined pair by pair."""

    def __init__(self, count: int) -> None:
        self._above = list(range(count))

    def find(self, number: int) -> int:
        above = self._above
        while above[number] != number:
            above[number] = above[above[number]]
            number = above[number]
        return number

    def join_all(self, parts: Iterable[Sequence[int]]) -> bool:
        """Join the numbers of each part; tell whether any were apart before."""
        changed = False
        for part in parts:
            first = self.find(part[0])
            for number in part[1:]:
                other = self.find(number)
                changed = changed or other != first
                first, other = min(first, other), max(first, other)
                self._above[other] = first
        return changed

    def sizes(self, numbers: Sequence[int]) -> dict[int, int]:
        """Return for each number how many of the given ones are joined with it."""
        count: dict[int, int] = defaultdict(int)
        for number in numbers:
            count[self.find(number)] += 1
        return {number: count[self.find(number)] for number in numbers}

    def parts(self) -> list[list[int]]:
        found: dict[int, list[int]] = defaultdict(list)
        for number in range(len(self._above)):
            found[self.find(number)].append(number)
        return list(found.values())


class _Space:
    """The ranges of all files as ranks: the box of the key, and the span in the order of files."""

    def __init__(self, files: Sequence[FileEntry], *, by_sort: bool) -> None:
        columns = len(files[0].key_lower)
        self.by_sort = by_sort
        self.key = [
            _ranks([f.key_lower for f in files], [f.key_upper for f in files], column)
            for column in range(columns)
        ]
        self.order = (
            _ranks([f.sort_lower for f in files], [f.sort_upper for f in files], 0)
            if by_sort
            else self.key[0]
        )
        self.low: list[int] = self.order[0].tolist()
        self.high: list[int] = self.order[1].tolist()
        self.touching_meets = not by_sort and columns == 1

    def place(self, part: Sequence[int]) -> tuple[int, int, int]:
        """Return where a part stands in the order of files."""
        return (*self.span(part), part[0])

    def span(self, part: Sequence[int]) -> tuple[int, int]:
        return min(self.low[i] for i in part), max(self.high[i] for i in part)

    def overlaps(self, numbers: Iterable[int]) -> list[list[int]]:
        """Return the files that overlap in the order of files, in chains."""
        spans = [(self.low[i], self.high[i], [i]) for i in numbers]
        return [[i for part in chain for i in part] for chain in self.chains(spans)]

    def chains(self, spans: Iterable[tuple[int, int, list[int]]]) -> list[list[list[int]]]:
        """Return the parts whose spans overlap, in chains: one sweep over sorted spans."""
        found: list[list[list[int]]] = []
        reach = 0
        for low, high, part in sorted(spans):
            if found and (low < reach or (self.touching_meets and low == reach)):
                found[-1].append(part)
                reach = max(reach, high)
            else:
                found.append([part])
                reach = high
        return found

    def meets(self, number: int, others: Ranks) -> npt.NDArray[np.bool_]:
        """Return which of the others must be merged with a file, one of them being a change."""
        met = np.ones(len(others), dtype=np.bool_)
        for low, high in self.key:
            met &= (low[others] <= high[number]) & (high[others] >= low[number])
        if self.by_sort:
            low, high = self.order
            met |= (low[others] <= high[number]) & (high[others] >= low[number])
        return met


def _ranks(lows: Sequence[Bounds], highs: Sequence[Bounds], column: int) -> tuple[Ranks, Ranks]:
    """Return one column's bounds as their places among all of them; unknown ones reach the ends."""
    pairs = [(low[column], high[column]) for low, high in zip(lows, highs, strict=True)]
    known = [pair if _known(pair) else None for pair in pairs]
    values = {value for pair in known if pair for value in pair}
    rank = {value: place for place, value in enumerate(sorted(values), 1)}  # type: ignore[type-var]
    end = len(rank) + 1
    spans = [(rank[pair[0]], rank[pair[1]]) if pair else (0, end) for pair in known]
    table = np.array(spans, dtype=np.int64)
    return table[:, 0].copy(), table[:, 1].copy()


def _known(pair: tuple[object, object]) -> bool:
    """Whether both bounds tell something; NaN, which no order knows, does not."""
    return None not in pair and not any(isinstance(v, float) and isnan(v) for v in pair)


def _in_leaves(
    files: Sequence[FileEntry], numbers: Sequence[int], leaves: Sequence[Node]
) -> list[Sequence[int]]:
    """Return the files by leaf; one that lies above several leaves stands in each."""
    if not leaves:
        return [numbers]
    return [[i for i in numbers if files[i].node.lineal(leaf)] for leaf in leaves]


def _meetings(space: _Space, files: Sequence[FileEntry], leaves: Sequence[Node]) -> list[list[int]]:
    """Return the files that changes join together.

    A file that was reached is never looked for again, so each is asked once for what it meets.
    """
    news = np.array([i for i, f in enumerate(files) if f.role is Role.CHANGE], dtype=np.int64)
    olds = np.array([i for i, f in enumerate(files) if f.role is Role.BASE], dtype=np.int64)
    masks = np.array([f.node.mask for f in files], dtype=np.int64)
    indexes = np.array([f.node.index for f in files], dtype=np.int64)

    def taken(number: int, others: Ranks) -> npt.NDArray[np.bool_]:
        met = space.meets(number, others)
        if leaves:
            mask = masks[others] & masks[number]
            met &= (indexes[others] & mask) == (indexes[number] & mask)
        return met

    found: list[list[int]] = []
    while len(news):
        part, waiting = [], [int(news[0])]
        news = news[1:]
        while waiting:
            number = waiting.pop()
            part.append(number)
            met = taken(number, news)
            waiting += news[met].tolist()
            news = news[~met]
            if files[number].role is Role.CHANGE and len(olds):
                met = taken(number, olds)
                waiting += olds[met].tolist()
                olds = olds[~met]
        found.append(part)
    return found


def _close_spans(
    joined: _Joined, space: _Space, files: Sequence[FileEntry], leaves: Sequence[Node]
) -> bool:
    """Join parts whose spans overlap in a leaf; tell whether there were any."""
    parts = joined.parts()
    if not leaves:
        spans = [(*space.span(part), part) for part in parts]
        return joined.join_all([p[0] for p in chain] for chain in space.chains(spans))
    changed = False
    for leaf in leaves:
        here = [part for part in parts if any(files[i].node.lineal(leaf) for i in part)]
        spans = [(*space.span(part), part) for part in here]
        chains = space.chains(spans)
        changed = joined.join_all([p[0] for p in chain] for chain in chains) or changed
    return changed
