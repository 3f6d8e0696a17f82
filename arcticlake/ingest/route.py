"""Leaves → writers, balanced.

Writers own whole routing units: nodes that no leaf of any partition lies above. So no two writers
share a subtree (RTI-04), together they cover the whole tree (RTI-05), and each writer makes one
file for each of its leaves. Heavier units are given out first, each to the writer with the
least so far (RTI-12).

The answer is a look-up by the low bits of the hash, which fits both a numpy index and a Spark
column.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace

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
