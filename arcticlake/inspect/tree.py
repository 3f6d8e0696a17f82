"""The tree of a table as a picture: one line for each partition and each node.

    shop.orders  version 4 · 5 leaves · base 5 files 102 rows 8.1 KB · changes 2 files 4 rows 2 KB
    ├── 3/0  base 1 file 25 rows 2.0 KB
    │   ├── 7/0  base 1 file 9 rows 1.1 KB · changes 1 file 2 rows 1.0 KB
    │   └── 7/4  empty
    ├── 3/1  …

A node is shown when it is a leaf or has files of its own; it hangs under the nearest shown node
above it. Files above a leaf (after a split, or from another engine) count at their own node.
Changes are the backlog: change files that are merged already do not count.

Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from arcticlake.commit.history import View
from arcticlake.inspect.measure import Amount, is_pending, measure
from arcticlake.inspect.value import partition_labels, partition_order
from arcticlake.table.spec import TableSpec
from arcticlake.tree.files import FileEntry, TableFiles
from arcticlake.tree.forest import Forest, Partition
from arcticlake.tree.node import ROOT, Node


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A node of one partition with the files that lie exactly there."""

    partition: Mapping[str, str | None]
    """Readable partition values by field name; empty for a table without partitions."""
    mask: int
    index: int
    base: Amount
    changes: Amount
    """Change files that are not merged yet."""
    leaf: bool

    @property
    def base_files(self) -> int:
        """Base files at this node."""
        return self.base.files

    @property
    def change_files(self) -> int:
        """Change files at this node that are not merged yet."""
        return self.changes.files

    @property
    def rows(self) -> int:
        """Rows of these base and change files; not the number of live rows."""
        return self.base.rows + self.changes.rows

    @property
    def bytes(self) -> int:
        """Size of these base and change files."""
        return self.base.bytes + self.changes.bytes

    def to_dict(self) -> dict[str, object]:
        """Return the node as JSON can hold it."""
        return {
            "partition": dict(self.partition),
            "mask": self.mask,
            "index": self.index,
            "leaf": self.leaf,
            "base_files": self.base.files,
            "base_rows": self.base.rows,
            "base_bytes": self.base.bytes,
            "change_files": self.changes.files,
            "change_rows": self.changes.rows,
            "change_bytes": self.changes.bytes,
            "rows": self.rows,
            "bytes": self.bytes,
        }

    def __str__(self) -> str:
        parts = [f"{name} {amount}" for name, amount in self._amounts() if amount.files]
        return f"{self.mask}/{self.index}  {' · '.join(parts) or 'empty'}"

    def _amounts(self) -> tuple[tuple[str, Amount], tuple[str, Amount]]:
        return ("base", self.base), ("changes", self.changes)


@dataclass(frozen=True, slots=True)
class TreeView:
    """The trees of a table; prints as a picture."""

    name: str
    version: int
    nodes: tuple[TreeNode, ...]
    """Every shown node, partition by partition, a parent before its children."""
    text: str = field(repr=False)

    @property
    def leaves(self) -> tuple[TreeNode, ...]:
        """The nodes that new rows go to; in one partition they are disjoint and hold every key."""
        return tuple(node for node in self.nodes if node.leaf)

    def to_dict(self) -> dict[str, object]:
        """Return the trees as JSON can hold them."""
        nodes = [node.to_dict() for node in self.nodes]
        return {"name": self.name, "version": self.version, "nodes": nodes}

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.text)}</pre>"


def draw_tree(spec: TableSpec, view: View, files: TableFiles, forest: Forest) -> TreeView:
    """Return the trees of all partitions that have files."""
    found: dict[Partition, list[FileEntry]] = defaultdict(list)
    if not spec.partition:
        found[()] = []  # the only partition there is; it exists without files too
    for file in files.all:
        found[file.partition].append(file)
    nodes: list[TreeNode] = []
    lines: list[str] = []
    partitions = sorted(found, key=partition_order)
    for partition in partitions:
        last = partition == partitions[-1]
        shown = _nodes(spec, view, found[partition], partition, _leaves(spec, forest, partition))
        nodes.extend(shown.values())
        below = "" if not spec.partition else "    " if last else "│   "
        if spec.partition:
            lines.append(f"{'└── ' if last else '├── '}{_label(spec, partition)}")
        lines.extend(below + line for line in _branches(shown))
    head = _headline(spec, view, nodes)
    return TreeView(spec.name, view.version, tuple(nodes), "\n".join([head, *lines]))


def _leaves(spec: TableSpec, forest: Forest, partition: Partition) -> tuple[Node, ...]:
    return forest.tree(partition).leaves if spec.keyed else (ROOT,)


def _nodes(
    spec: TableSpec,
    view: View,
    files: Sequence[FileEntry],
    partition: Partition,
    leaves: Sequence[Node],
) -> dict[Node, TreeNode]:
    """Return the nodes to show, a parent before its children."""
    labels = partition_labels(spec, partition)
    bases: dict[Node, list[FileEntry]] = defaultdict(list)
    changes: dict[Node, list[FileEntry]] = defaultdict(list)
    for file in files:
        if file.role == "base":
            bases[file.node].append(file)
        elif is_pending(file, view):
            changes[file.node].append(file)
    shown = {*leaves, *bases, *changes}
    shallowest = min(node.depth for node in shown)
    return {
        node: TreeNode(
            partition=labels,
            mask=node.mask,
            index=node.index,
            base=measure(bases[node]),
            changes=measure(changes[node]),
            leaf=node in leaves,
        )
        for node in sorted(shown, key=lambda node: _path(node, shallowest))
    }


def _path(node: Node, shallowest: int) -> tuple[int, ...]:
    """Return the indices from the shallowest depth down: children sort right after their parent."""
    return tuple(node.index & ((1 << depth) - 1) for depth in range(shallowest, node.depth + 1))


def _branches(shown: Mapping[Node, TreeNode]) -> list[str]:
    """Return one line for each node, drawn under its nearest shown ancestor."""
    children: dict[Node | None, list[Node]] = defaultdict(list)
    for node in shown:
        children[_parent(node, shown)].append(node)

    def draw(above: Node | None) -> Iterator[str]:
        for node in children[above]:
            last = node == children[above][-1]
            yield f"{'└── ' if last else '├── '}{shown[node]}"
            for line in draw(node) if node in children else ():
                yield f"{'    ' if last else '│   '}{line}"

    return list(draw(None))


def _parent(node: Node, shown: Mapping[Node, TreeNode]) -> Node | None:
    while node != ROOT:
        node = node.parent()
        if node in shown:
            return node
    return None


def _label(spec: TableSpec, partition: Partition) -> str:
    labels = partition_labels(spec, partition).items()
    return ", ".join(f"{name}={'null' if value is None else value}" for name, value in labels)


def _headline(spec: TableSpec, view: View, nodes: Sequence[TreeNode]) -> str:
    base, changes = (
        Amount(sum(a.files for a in side), sum(a.rows for a in side), sum(a.bytes for a in side))
        for side in ([node.base for node in nodes], [node.changes for node in nodes])
    )
    leaves = sum(node.leaf for node in nodes)
    counted = f"{leaves} leaf" if leaves == 1 else f"{leaves} leaves"
    return f"{spec.name}  version {view.version} · {counted} · base {base} · changes {changes}"
