"""A node of the file-index tree: the keys whose hash ends in the same bits.

A node is a pair (mask, index). The mask is 2**depth - 1, and a key belongs to the node when
``key_hash & mask == index``. The root (0, 0) holds every key. A split adds one bit:

    (0,0) ─┬─ (1,0) ─┬─ (3,0)
           │         └─ (3,2)
           └─ (1,1) ─┬─ (3,1)
                     └─ (3,3)

In Iceberg's words a node is the bucket value `index` of the transform `bucket[mask + 1]`: for a
power of two that bucket is exactly the low bits of the hash (IDX-02).

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Node:
    """The keys whose hash, read through `mask`, equals `index`."""

    mask: int
    index: int

    def __post_init__(self) -> None:
        assert self.mask & (self.mask + 1) == 0, f"mask {self.mask:#x} is not 2**depth - 1"
        assert 0 <= self.index <= self.mask, f"index {self.index} is outside mask {self.mask}"

    @property
    def depth(self) -> int:
        """Number of hash bits that the node fixes."""
        return self.mask.bit_length()

    @property
    def buckets(self) -> int:
        """The N of the `bucket[N]` transform that this node is a value of."""
        return self.mask + 1

    def holds(self, key_hash: int) -> bool:
        """Whether a key with this hash belongs here."""
        return key_hash & self.mask == self.index

    def split(self) -> tuple[Node, Node]:
        """Return the two children; between them they hold each key of this node once (SPL-07)."""
        mask = self.mask * 2 + 1
        return Node(mask, self.index), Node(mask, self.index + self.mask + 1)

    def parent(self) -> Node:
        """Return the node one bit up; the root has none."""
        assert self.mask > 0, "the root has no parent"
        mask = self.mask >> 1
        return Node(mask, self.index & mask)

    def lineal(self, other: Node) -> bool:
        """Whether one is the ancestor of the other, or they are the same (IDX-08)."""
        mask = self.mask & other.mask
        return self.index & mask == other.index & mask

    def __str__(self) -> str:
        return f"{self.mask}/{self.index}"


ROOT = Node(0, 0)


def level(buckets: int) -> tuple[Node, ...]:
    """Return the nodes of the level with this many buckets, which cover every key once."""
    return tuple(Node(buckets - 1, index) for index in range(buckets))
