from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arcticlake.tree.forest import Forest, Tree, lineal_groups, plant, tops
from arcticlake.tree.node import ROOT, Node, level
from tests.scenario import Case, check_scenario, rewrite
from tests.tree.strategies import file_in, nodes, parse_node

SCENARIOS = sorted((Path(__file__).parent / "scenarios").glob("forest*.txt"))
INITIAL = st.sampled_from([1, 2, 4, 8, 16])
PLACES = st.lists(st.tuples(st.sampled_from([(), ("a",), (None,), (7,)]), nodes()), max_size=12)


def describe_forest(case: Case) -> str:
    """Answer a scenario: `initial N`, `file NODE [PARTITION]` → the leaves of each tree."""
    initial, files = 4, []
    for word, *rest in case.words:
        if word == "initial":
            initial = int(rest[0])
        else:
            assert word == "file", f"unknown word {word}"
            files.append(file_in(parse_node(rest[0]), tuple(rest[1:])))
    forest = plant(files, initial)
    groups = lineal_groups(files)
    lines = []
    for partition in dict.fromkeys(file.partition for file in files) or [()]:
        name = " ".join(["tree", *map(str, partition)])
        leaves = forest.tree(partition).leaves
        lines.append(f"{name}: {' '.join(map(str, sorted(leaves)))}")
        found = [str(node) for where, node in groups if where == partition]
        lines.append(f"  groups: {' '.join(found) or 'none'}")
    lines.append(f"units: {' '.join(map(str, forest.routing_units()))}")
    return "\n".join(lines)


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_the_forest_of_a_scenario_is_as_written(path: Path) -> None:
    """IDX-08, IDX-09, IDX-18, RTI-04 to RTI-06."""
    check_scenario(path, describe_forest)


@settings(max_examples=40)
@given(places=PLACES, initial=INITIAL, hashes=st.lists(st.integers(0, 2**30 - 1), min_size=1))
def test_leaves_are_disjoint_and_cover_every_hash_once(
    places: list[tuple[tuple[object, ...], Node]], initial: int, hashes: list[int]
) -> None:
    """RTI-05, IDX-09: no key is left out, none has two homes."""
    forest = plant([file_in(node, partition) for partition, node in places], initial)

    for partition in {(), ("new",), *(partition for partition, _ in places)}:
        tree = forest.tree(partition)
        assert sum(1 / leaf.buckets for leaf in tree.leaves) == 1
        for key_hash in hashes:
            holders = [leaf for leaf in tree.leaves if leaf.holds(key_hash)]
            assert holders == [tree.leaf(key_hash)]


@settings(max_examples=40)
@given(places=PLACES, initial=INITIAL)
def test_no_file_lies_below_a_leaf_and_the_deepest_files_are_leaves(
    places: list[tuple[tuple[object, ...], Node]], initial: int
) -> None:
    """IDX-18: files may lie above a leaf after a split, never below it."""
    forest = plant([file_in(node, partition) for partition, node in places], initial)

    for partition, node in places:
        leaves = forest.tree(partition).leaves
        assert not any(leaf.lineal(node) and leaf.depth < node.depth for leaf in leaves)
        mine = [n for where, n in places if where == partition]
        if not any(other.lineal(node) and other.depth > node.depth for other in mine):
            assert node in leaves


@settings(max_examples=40)
@given(places=PLACES, initial=INITIAL)
def test_routing_units_cover_all_hashes_and_no_leaf_lies_above_one(
    places: list[tuple[tuple[object, ...], Node]], initial: int
) -> None:
    """RTI-04: writers own whole units, so no two writers share a leaf."""
    forest = plant([file_in(node, partition) for partition, node in places], initial)

    units = forest.routing_units()

    assert sum(1 / unit.buckets for unit in units) == 1
    for partition in {("new",), *(partition for partition, _ in places)}:
        for leaf in forest.tree(partition).leaves:
            assert sum(unit.lineal(leaf) for unit in units) == 1


@settings(max_examples=40)
@given(initial=INITIAL, found=st.lists(nodes(), max_size=8))
def test_a_route_agrees_with_the_leaf_of_each_hash(initial: int, found: list[Node]) -> None:
    tree = plant([file_in(node) for node in found], initial).tree(())
    hashes = np.arange(256, dtype=np.int32) * 4_194_301 % 2**30

    numbers = tree.route(hashes)

    assert [tree.leaves[number] for number in numbers] == [tree.leaf(int(h)) for h in hashes]


@settings(max_examples=40)
@given(places=PLACES)
def test_files_share_a_group_exactly_when_a_chain_of_lineal_nodes_joins_them(
    places: list[tuple[tuple[object, ...], Node]],
) -> None:
    """IDX-08: what may share a key stands together, all else apart."""
    files = [file_in(node, partition, path=str(n)) for n, (partition, node) in enumerate(places)]

    groups = lineal_groups(files)

    assert sorted(f.path for g in groups.values() for f in g) == sorted(f.path for f in files)
    for (partition, top), members in groups.items():
        assert all(f.partition == partition and top.lineal(f.node) for f in members)
        assert all(f.node.depth >= top.depth for f in members)
        assert any(f.node == top for f in members)
        others = [f for f in files if f not in members and f.partition == partition]
        assert not any(f.node.lineal(other.node) for f in members for other in others)


@settings(max_examples=40)
@given(found=st.lists(nodes(), max_size=10))
def test_tops_have_no_ancestor_and_stand_above_all_others(found: list[Node]) -> None:
    kept = tops(found)

    assert all(not a.lineal(b) for a in kept for b in kept if a != b)
    assert all(any(t.lineal(n) and t.depth <= n.depth for t in kept) for n in found)


def test_a_new_partition_starts_at_the_initial_nodes() -> None:
    forest = plant([file_in(Node(7, 3), ("old",))], 4)

    assert forest.tree(("new",)).leaves == level(4)


def test_leaves_that_leave_a_hash_out_are_our_own_mistake() -> None:
    with pytest.raises(AssertionError, match="cover every hash"):
        Tree((Node(1, 0),)).leaf(1)


def test_a_forest_without_files_routes_by_the_default_depth() -> None:
    assert Forest(1).routing_units() == (ROOT,)
    assert Forest(4).routing_units() == level(4)


if __name__ == "__main__":
    rewrite(SCENARIOS, describe_forest, sys.argv)
