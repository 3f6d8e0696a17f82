"""One tree for each partition, derived from the files that exist, never stored.

A row belongs to the deepest leaf that holds its hash. Leaves follow from the live files:

    files at  3/0        7/1  7/5           leaves  3/0  7/1  7/5  3/2  3/3
              (base)     (both children)            the last two by the default depth

  * where files exist, the deepest nodes with files are leaves, and so is a sibling without
    files (a split may leave one child empty);
  * where none exist, the leaves are the nodes of the default depth (`initial-nodes`).

Leaves of one tree are disjoint and cover every hash once (RTI-05, CMP-12). Files may also lie
above a leaf, after a split or a foreign write: lineal overlap is normal, and `lineal_groups`
puts all that overlaps together.

Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from arcticlake.tree.files import FileEntry
from arcticlake.tree.node import ROOT, Node, level

Partition = tuple[object, ...]


@dataclass(frozen=True)
class Tree:
    """The leaves of one partition; disjoint, and together they hold every hash."""

    leaves: tuple[Node, ...]

    @cached_property
    def _leaf_of_index(self) -> npt.NDArray[np.int32]:
        mask = max(leaf.mask for leaf in self.leaves)
        table = np.full(mask + 1, -1, dtype=np.int32)
        for number, leaf in enumerate(self.leaves):
            table[leaf.index :: leaf.buckets] = number
        assert (table >= 0).all(), "the leaves of a tree must cover every hash"
        return table

    def route(self, hashes: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Return for every hash the number of its leaf."""
        table = self._leaf_of_index
        routed: npt.NDArray[np.int32] = table[hashes & np.int32(len(table) - 1)]
        return routed

    def leaf(self, key_hash: int) -> Node:
        """Return the leaf of one hash."""
        table = self._leaf_of_index
        return self.leaves[int(table[key_hash & (len(table) - 1)])]


@dataclass(frozen=True)
class Forest:
    """The trees of a table; a partition without files starts at the default depth."""

    initial_nodes: int
    trees: Mapping[Partition, Tree] = field(default_factory=dict)

    def tree(self, partition: Partition) -> Tree:
        """Return the tree of a partition."""
        return self.trees.get(partition) or Tree(level(self.initial_nodes))

    def routing_units(self) -> tuple[Node, ...]:
        """Return the coarsest nodes such that no leaf of any partition lies above one.

        Writers own whole units, so no two writers ever share a leaf (RTI-04).
        """
        leaves = {leaf for tree in self.trees.values() for leaf in tree.leaves}
        leaves.update(level(self.initial_nodes))
        return tops(leaves)


def plant(files: Iterable[FileEntry], initial_nodes: int) -> Forest:
    """Return the forest that the live files of both tables make up."""
    nodes: dict[Partition, set[Node]] = defaultdict(set)
    for file in files:
        nodes[file.partition].add(file.node)
    default_depth = initial_nodes.bit_length() - 1
    trees = {
        partition: Tree(tuple(sorted(_leaves(ROOT, found, default_depth, filed=False))))
        for partition, found in nodes.items()
    }
    return Forest(initial_nodes, trees)


def _leaves(node: Node, found: set[Node], default_depth: int, *, filed: bool) -> list[Node]:
    below = {other for other in found if other.depth > node.depth and node.lineal(other)}
    filed = filed or node in found
    deep_enough = filed or node.depth >= default_depth
    if not below and deep_enough:
        return [node]
    left, right = node.split()
    return [
        *_leaves(left, below, default_depth, filed=filed),
        *_leaves(right, below, default_depth, filed=filed),
    ]


def tops(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Return the nodes that have no ancestor among the given ones."""
    kept: list[Node] = []
    for node in sorted(set(nodes)):
        if not any(top.lineal(node) for top in kept):
            kept.append(node)
    return tuple(kept)


def lineal_groups(files: Sequence[FileEntry]) -> dict[tuple[Partition, Node], list[FileEntry]]:
    """Return the files by connected set of lineal nodes, each named by its topmost node."""
    by_partition: dict[Partition, list[FileEntry]] = defaultdict(list)
    for file in files:
        by_partition[file.partition].append(file)
    groups: dict[tuple[Partition, Node], list[FileEntry]] = {}
    for partition, members in by_partition.items():
        found = tops(member.node for member in members)
        shallow_first = {top.depth for top in found}
        known = set(found)
        for member in members:
            top = _top_of(member.node, known, shallow_first)
            groups.setdefault((partition, top), []).append(member)
    return groups


def _top_of(node: Node, known: set[Node], depths: set[int]) -> Node:
    for depth in sorted(depths):
        mask = (1 << depth) - 1
        above = Node(mask, node.index & mask)
        if depth <= node.depth and above in known:
            return above
    message = f"node {node} has no top among {sorted(known)}"
    raise AssertionError(message)
