"""Leaves → writers, balanced.

Writers own whole routing units: nodes that no leaf of any partition lies above. So no two writers
share a subtree (RTI-04), together they cover the whole tree (RTI-05), and each writer makes one
file for each of its leaves. Heavier units are given out first, each to the writer with the
least so far (RTI-12); how heavy a unit is, the bytes of its live files tell: a part of the tree
that got many rows will get many again.

The answer is a look-up by the low bits of the hash, which fits both a numpy index and a Spark
column.

Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace

from arcticlake.tree.files import FileEntry
from arcticlake.tree.forest import Forest
from arcticlake.tree.node import Node


@dataclass(frozen=True, slots=True)
class Route:
    """Which writer takes which hash: `writers[hash & (len(writers) - 1)]`."""

    writers: tuple[int, ...]

    @property
    def writer_count(self) -> int:
        """How many writers have work."""
        return max(self.writers) + 1


def plan_route(
    forest: Forest, writers_max: int, weights: Mapping[Node, float] | None = None
) -> Route:
    """Return a balanced assignment of the forest's routing units to at most so many writers."""
    assert writers_max >= 1, "a route needs at least one writer"
    units = forest.routing_units()
    share = assign(units, min(writers_max, len(units)), weights or {})
    mask = max(unit.mask for unit in units)
    writers = [-1] * (mask + 1)
    for unit in units:
        for index in range(unit.index, mask + 1, unit.buckets):
            writers[index] = share[unit]
    assert min(writers) >= 0, "a route must cover every hash"
    return Route(tuple(writers))


def weigh_units(forest: Forest, files: Iterable[FileEntry]) -> dict[Node, float]:
    """Return the share of each routing unit: half of it by its hashes, half by its live bytes.

    The first half is for parts of the tree that are new. A file above several units counts for
    each of them by its share of the file's hashes.
    """
    units = forest.routing_units()
    by_node: dict[Node, int] = defaultdict(int)
    for file in files:
        by_node[file.node] += file.bytes
    found = dict.fromkeys(units, 0.0)
    for node, size in by_node.items():
        for unit in units:
            if unit.lineal(node):
                found[unit] += size * min(1.0, node.buckets / unit.buckets)
    total = sum(found.values()) or 1.0
    return {unit: 0.5 / unit.buckets + 0.5 * size / total for unit, size in found.items()}


def assign(
    units: Sequence[Node], writer_count: int, weights: Mapping[Node, float]
) -> dict[Node, int]:
    """Return the writer of every unit; heaviest first, always to the least loaded writer."""

    def weight(unit: Node) -> float:
        return weights.get(unit, 1 / unit.buckets)  # without facts: its share of all hashes

    load = [(0.0, writer) for writer in range(writer_count)]
    heapify(load)
    share: dict[Node, int] = {}
    for unit in sorted(units, key=lambda unit: (-weight(unit), unit)):
        least, writer = load[0]
        heapreplace(load, (least + weight(unit), writer))
        share[unit] = writer
    return share
