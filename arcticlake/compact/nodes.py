"""Output nodes: which leaves are split, which merge back.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from arcticlake.tree.forest import Partition
from arcticlake.tree.node import Node


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
