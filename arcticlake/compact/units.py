"""Units: the files that are planned as a whole, and those of small leaves put together.

    live files ─┬─ merged already                        gone
                ├─ changes from after the version        stay where they are
                └─ base files and changes that wait      lineal sets: the units

A change file of several commits may reach over the version: it takes part, its later rows stay, and
so does the file. Base files with rows from after the version are held: they are in the unit, but
nothing rewrites them.

Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from arcticlake.compact.nodes import Event, Limits, Shape, Unit, plan_merges
from arcticlake.compact.piece import in_order
from arcticlake.table.spec import TableSpec
from arcticlake.table.watermark import Watermark
from arcticlake.tree.files import FileEntry
from arcticlake.tree.forest import Partition, lineal_groups, plant
from arcticlake.tree.node import Node


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


def find_units(facts: Facts) -> tuple[list[Unit], dict[Partition, list[Node]]]:
    """Return the units, and by partition the nodes of changes from after the version."""
    bases = [file for file in facts.bases if facts.chosen(file.partition)]
    waiting: list[FileEntry] = []
    later: list[FileEntry] = []
    for file in facts.changes:
        merged = facts.watermark.merged(file.partition, file.node.mask, file.node.index)
        if file.sequence <= merged or not facts.chosen(file.partition):
            continue
        # Beyond the version, or merged up to it and now waiting for the next one.
        is_later = file.sequence_min > facts.version or merged >= facts.version
        (later if is_later else waiting).append(file)
    forest = plant([*bases, *waiting, *later], facts.spec.options.initial_nodes)
    stays: dict[Partition, list[Node]] = defaultdict(list)
    for file in (*later, *(f for f in waiting if f.sequence > facts.version)):
        stays[file.partition].append(file.node)
    pending = {file.path for file in waiting}
    units = []
    for (partition, top), members in lineal_groups([*bases, *waiting]).items():
        files = in_order(members)
        olds = [file for file in files if file.path not in pending]
        held = [f for f in olds if facts.base_sequence(f.snapshot_id) > facts.version]
        beyond = {file.path for file in held}
        leaves = [leaf for leaf in forest.tree(partition).leaves if _below(leaf, top)]
        units.append(
            Unit(
                partition=partition,
                node=top,
                leaves=tuple(sorted(leaves)),
                bases=tuple(file for file in olds if file.path not in beyond),
                changes=tuple(file for file in files if file.path in pending),
                held=tuple(held),
                pinned=any(_below(node, top) for node in stays.get(partition, ())),
            )
        )
    return units, stays


def _below(node: Node, top: Node) -> bool:
    return node.depth >= top.depth and node.lineal(top)


def find_merges(
    units: Sequence[Unit],
    shapes: Mapping[Node, Shape],
    left_out: Iterable[Node],
    kind: str,
    limits: Limits,
) -> dict[Node, tuple[Node, ...]]:
    """Return which leaves of a partition merge back."""
    candidates: dict[Node, float] = {}
    for unit in units:
        whole = kind == "full" or unit.leaves == (unit.node,)
        if whole and not unit.held and not unit.pinned:
            shape = shapes[unit.node]
            kept = set(shape.outputs) & set(unit.leaves)
            candidates |= {leaf: shape.loads[leaf].all for leaf in kept}
    nodes = [*(leaf for unit in units for leaf in unit.leaves), *left_out]
    return plan_merges(candidates, nodes, limits, repeat=kind == "full")


def apply_merges(
    units: Sequence[Unit], shapes: Mapping[Node, Shape], merges: Mapping[Node, tuple[Node, ...]]
) -> list[tuple[Unit, Shape, bool]]:
    """Return the units with their shapes, those that merge back put together."""
    found: list[tuple[Unit, Shape, bool]] = []
    absorbed: dict[Node, list[Unit]] = defaultdict(list)
    for unit in units:
        above = [node for node in merges if _below(unit.node, node)]
        if above:
            absorbed[above[0]].append(unit)
            continue
        shape = shapes[unit.node]
        inside = {node: gone for node, gone in merges.items() if _below(node, unit.node)}
        found.append((unit, _merged_shape(unit.partition, shape, inside), False))
    for node, members in absorbed.items():
        joined = Unit(
            partition=members[0].partition,
            node=node,
            leaves=tuple(sorted(merges[node])),
            bases=in_order(file for unit in members for file in unit.bases),
            changes=in_order(file for unit in members for file in unit.changes),
        )
        loads = {leaf: load for unit in members for leaf, load in shapes[unit.node].loads.items()}
        event = Event("merge", joined.partition, node, merges[node])
        found.append((joined, Shape((node,), loads, (event,)), True))
    return found


def _merged_shape(
    partition: Partition, shape: Shape, inside: Mapping[Node, tuple[Node, ...]]
) -> Shape:
    if not inside:
        return shape
    gone = {leaf for leaves in inside.values() for leaf in leaves}
    events = [Event("merge", partition, node, leaves) for node, leaves in sorted(inside.items())]
    outputs = sorted({*shape.outputs, *inside} - gone)
    return replace(shape, outputs=tuple(outputs), events=(*shape.events, *events))
