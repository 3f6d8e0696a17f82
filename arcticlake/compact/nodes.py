"""Output nodes: which leaves a compaction splits, and which merge back (CMP-12).

A unit is a lineal set of files in one partition. Its leaves are those of the tree below its top:

    unit 3/1   files at 3/1 (base), 7/1 (changes)      leaves 7/1 7/5

A leaf weighs what lies in it, and its share of what lies above it. Over the limit it is split, to
as many levels as it takes; two siblings that are small together become their parent again:

    split   7/1 of 900 MB, limit 512 MB  →  15/1 15/9         (SPL-07, SPL-10)
    merge   7/1 of 40 MB, 7/5 of 30 MB   →  3/1               (SPL-13)

The merge waits for a quarter of what splits, so that no leaf goes back and forth. Whatever
happens, the output nodes are disjoint and cover the unit: no key is lost. With a sort key files
are split by range first, simply by being more of them; leaves may then hold four times as
much (SPL-02, SPL-05).

Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from arcticlake.table.spec import TableSpec
from arcticlake.tree.files import FileEntry
from arcticlake.tree.forest import Partition
from arcticlake.tree.node import Node

SPLIT_DEPTH_MAX = 16
"""65,536 leaves; a leaf that is still too large then holds few keys, and a split cannot help."""
SORTED_LEAF_FACTOR = 4
"""How much larger a leaf may be where files can be split by range."""
MERGE_BACK_SHARE = 4
"""Two siblings merge when they are together at most this part of what one leaf may hold."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The sizes that decide, in bytes."""

    target: int
    """Size of a data file."""
    leaf: int
    """How much a leaf may hold before it is split."""
    leaf_changes: int
    """How much may wait in a leaf before it is split."""
    depth_min: int
    """Depth of a new partition; nothing merges back above it."""
    memory: int
    """How much one task may hold."""

    @property
    def small(self) -> int:
        """A file below this is small."""
        return self.target // 4

    @property
    def merge_back(self) -> int:
        """Siblings of together at most this merge back."""
        return self.leaf // MERGE_BACK_SHARE


def limits_of(spec: TableSpec) -> Limits:
    """Return the limits of a table; a size of leaves that the user wrote is taken as it is."""
    options = spec.options
    by_range = bool(spec.sort_ids) and not options.leaf_size
    return Limits(
        target=options.target_file_size,
        leaf=options.leaf_bytes_max * (SORTED_LEAF_FACTOR if by_range else 1),
        leaf_changes=options.leaf_change_bytes_max,
        depth_min=options.initial_nodes.bit_length() - 1,
        memory=options.task_memory,
    )


@dataclass(frozen=True, slots=True)
class Unit:
    """Files of lineal nodes in one partition: what is planned as a whole."""

    partition: Partition
    node: Node
    """The topmost node."""
    leaves: tuple[Node, ...]
    bases: tuple[FileEntry, ...]
    """Base files that may be rewritten."""
    changes: tuple[FileEntry, ...]
    """Change files that wait."""
    held: tuple[FileEntry, ...] = ()
    """Base files with rows from after the version; never rewritten."""
    pinned: bool = False
    """Whether change files stay in its leaves whatever happens, so that a merge back is in vain."""

    @property
    def files(self) -> tuple[FileEntry, ...]:
        """Every live file: what may be rewritten, then what is held."""
        return (*self.bases, *self.changes, *self.held)


@dataclass(frozen=True, slots=True)
class Event:
    """A split or a merge of leaves; told in the history."""

    kind: str
    """`split` or `merge`."""
    partition: Partition
    node: Node
    """The leaf that is split; or the parent that its children merge into."""
    into: tuple[Node, ...]
    """The new leaves of a split; the children that went away in a merge."""

    def __str__(self) -> str:
        others = " ".join(map(str, self.into))
        if self.kind == "split":
            return f"split {self.node} into {others}"
        return f"merge {others} into {self.node}"


@dataclass(frozen=True, slots=True)
class Load:
    """What a leaf weighs, in bytes: its own files and its share of those above it."""

    base: float = 0.0
    change: float = 0.0

    @property
    def all(self) -> float:
        """Base and changes together."""
        return self.base + self.change


@dataclass(frozen=True, slots=True)
class Shape:
    """The leaves of a unit after a rewrite."""

    outputs: tuple[Node, ...]
    loads: Mapping[Node, Load]
    """What each leaf weighs before the rewrite."""
    events: tuple[Event, ...] = ()


def plan_shape(unit: Unit, limits: Limits) -> Shape:
    """Return the leaves of a unit after a rewrite, too large ones split."""
    loads = leaf_loads(unit)
    outputs: list[Node] = []
    events = []
    for leaf in unit.leaves:
        children = descend(leaf, split_levels(leaf, loads[leaf], limits))
        outputs += children
        if len(children) > 1:
            events.append(Event("split", unit.partition, leaf, children))
    return Shape(tuple(sorted(outputs)), loads, tuple(events))


def leaf_loads(unit: Unit) -> dict[Node, Load]:
    """Return what each leaf weighs; what lies above several counts in parts."""
    base: dict[Node, int] = defaultdict(int)
    change: dict[Node, int] = defaultdict(int)
    for file in unit.bases:
        base[file.node] += file.bytes
    for file in unit.changes:
        change[file.node] += file.bytes
    return {leaf: Load(_weight(leaf, base), _weight(leaf, change)) for leaf in unit.leaves}


def _weight(leaf: Node, sizes: Mapping[Node, int]) -> float:
    weight = 0.0
    for depth in range(leaf.depth + 1):
        mask = (1 << depth) - 1
        weight += sizes.get(Node(mask, leaf.index & mask), 0) / (1 << (leaf.depth - depth))
    return weight


def overload(load: Load, limits: Limits) -> float:
    """Return how far a leaf is over the stricter of its limits; 1 is just full."""
    return max(load.all / limits.leaf, load.change / limits.leaf_changes)


def split_levels(leaf: Node, load: Load, limits: Limits) -> int:
    """Return by how many bits a leaf is split; 0 leaves it alone."""
    over, levels = overload(load, limits), 0
    while over > 1 and leaf.depth + levels < SPLIT_DEPTH_MAX:
        over /= 2
        levels += 1
    return levels


def descend(node: Node, levels: int) -> tuple[Node, ...]:
    """Return the descendants so many levels down; together they hold the keys of the node."""
    found: tuple[Node, ...] = (node,)
    for _ in range(levels):
        found = tuple(child for parent in found for child in parent.split())
    return tuple(sorted(found))


def plan_merges(
    candidates: Mapping[Node, float], occupied: Iterable[Node], limits: Limits, *, repeat: bool
) -> dict[Node, tuple[Node, ...]]:
    """Return which leaves of a partition merge back: new leaf → the leaves that went away.

    A sibling without any file weighs nothing. With `repeat` a new leaf may merge again.
    """
    sizes = dict(candidates)
    filled = {above for node in occupied for above in _path(node)}
    merged: dict[Node, tuple[Node, ...]] = {}
    deepest = max((node.depth for node in sizes), default=0)
    for depth in range(deepest, limits.depth_min, -1):
        for parent in sorted({node.parent() for node in sizes if node.depth == depth}):
            children = parent.split()
            if not all(child in sizes or child not in filled for child in children):
                continue
            if not repeat and any(child in merged for child in children):
                continue
            size = sum(sizes.get(child, 0) for child in children)
            if size > limits.merge_back:
                continue
            for child in children:
                sizes.pop(child, None)
            gone = [leaf for child in children for leaf in merged.pop(child, (child,))]
            merged[parent] = tuple(sorted(gone))
            sizes[parent] = size
    return merged


def _path(node: Node) -> list[Node]:
    masks = [(1 << depth) - 1 for depth in range(node.depth + 1)]
    return [Node(mask, node.index & mask) for mask in masks]
