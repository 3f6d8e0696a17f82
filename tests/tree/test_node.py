from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arcticlake.tree.node import ROOT, Node, level
from tests.tree.strategies import nodes

HASHES = st.integers(0, 2**30 - 1)


@settings(max_examples=50)
@given(node=nodes(), key_hash=HASHES)
def test_the_children_of_a_node_hold_each_of_its_keys_once(node: Node, key_hash: int) -> None:
    """SPL-07: a split spreads the rows of one node over its two children."""
    holders = [child for child in node.split() if child.holds(key_hash)]

    assert len(holders) == int(node.holds(key_hash))


@settings(max_examples=50)
@given(node=nodes())
def test_a_child_knows_its_parent_and_fixes_one_bit_more(node: Node) -> None:
    for child in node.split():
        assert child.parent() == node
        assert child.depth == node.depth + 1
        assert child.buckets == 2 * node.buckets


@settings(max_examples=50)
@given(one=nodes(), other=nodes())
def test_nodes_share_keys_exactly_when_they_are_lineal(one: Node, other: Node) -> None:
    """IDX-08: only ancestors and descendants intersect."""
    deep, shallow = (one, other) if one.depth >= other.depth else (other, one)

    assert one.lineal(other) == other.lineal(one) == shallow.holds(deep.index)


@settings(max_examples=50)
@given(node=nodes(), steps=st.lists(st.booleans(), max_size=6))
def test_every_descendant_is_lineal_and_siblings_are_not(node: Node, steps: list[bool]) -> None:
    below = node
    for step in steps:
        left, right = below.split()
        assert not left.lineal(right)
        below = right if step else left

    assert node.lineal(below)
    assert ROOT.lineal(below)


@settings(max_examples=50)
@given(key_hash=HASHES, depth=st.integers(0, 10))
def test_a_level_covers_every_hash_once(key_hash: int, depth: int) -> None:
    """IDX-09: a full level of the binary tree leaves no key out."""
    assert [node.index for node in level(2**depth) if node.holds(key_hash)] == [key_hash % 2**depth]


def test_a_node_reads_as_mask_and_index_and_refuses_what_is_none() -> None:
    assert str(Node(7, 5)) == "7/5"
    assert level(1) == (ROOT,)
    for mask, index in ((2, 0), (3, 4), (3, -1)):
        with pytest.raises(AssertionError):
            Node(mask, index)
    with pytest.raises(AssertionError, match="root"):
        ROOT.parent()
