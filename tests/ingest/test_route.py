from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arcticlake.ingest.route import assign, plan_route, weigh_units
from arcticlake.tree.forest import Forest, plant
from arcticlake.tree.node import Node, level
from tests.scenario import Case, check_scenario, rewrite
from tests.tree.strategies import file_in, nodes, parse_node

SCENARIOS = sorted((Path(__file__).parent / "scenarios").glob("route*.txt"))


def describe_route(case: Case) -> str:
    """Answer a scenario: `initial N`, `file NODE`, `weight NODE N`, `writers N` → their shares."""
    initial, writers, files, weights = 4, 1, [], {}
    for word, *rest in case.words:
        match word:
            case "initial":
                initial = int(rest[0])
            case "writers":
                writers = int(rest[0])
            case "weight":
                weights[parse_node(rest[0])] = float(rest[1])
            case _:
                assert word == "file", f"unknown word {word}"
                files.append(file_in(parse_node(rest[0]), tuple(rest[1:])))
    forest = plant(files, initial)
    units = forest.routing_units()
    share = assign(units, min(writers, len(units)), weights)
    route = plan_route(forest, writers, weights)
    lines = [
        f"writer {writer}: {' '.join(str(unit) for unit in units if share[unit] == writer)}"
        for writer in range(route.writer_count)
    ]
    return "\n".join([*lines, f"table: {' '.join(map(str, route.writers))}"])


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_the_route_of_a_scenario_is_as_written(path: Path) -> None:
    """RTI-04 to RTI-07, RTI-10 to RTI-12."""
    check_scenario(path, describe_route)


@settings(max_examples=40)
@given(
    found=st.lists(nodes(), max_size=8),
    initial=st.sampled_from([1, 4, 8]),
    writers=st.integers(1, 9),
    key_hash=st.integers(0, 2**30 - 1),
)
def test_every_hash_has_one_writer_and_writers_share_no_leaf(
    found: list[Node], initial: int, writers: int, key_hash: int
) -> None:
    """RTI-04, RTI-05: disjoint shares that cover the whole tree."""
    forest = plant([file_in(node) for node in found], initial)

    route = plan_route(forest, writers)

    assert set(route.writers) == set(range(route.writer_count))
    assert route.writer_count <= writers
    owner: dict[Node, int] = {}
    for h in (key_hash, *range(64)):
        leaf = forest.tree(()).leaf(h)
        writer = route.writers[h & (len(route.writers) - 1)]
        assert owner.setdefault(leaf, writer) == writer


@settings(max_examples=40)
@given(
    weights=st.dictionaries(st.sampled_from(level(16)), st.integers(0, 50), min_size=16),
    writers=st.integers(1, 8),
)
def test_no_writer_has_more_than_a_fair_share_and_one_unit(
    weights: dict[Node, int], writers: int
) -> None:
    """RTI-12: heaviest first to the least loaded keeps every writer near the mean."""
    share = assign(level(16), writers, weights)

    loads = [sum(weights[unit] for unit in share if share[unit] == w) for w in range(writers)]
    assert max(loads) <= sum(weights.values()) / writers + max(weights.values())


def test_a_power_of_two_of_writers_gets_equal_shares() -> None:
    """RTI-10."""
    route = plan_route(Forest(8), 4)

    assert [route.writers.count(writer) for writer in range(4)] == [2, 2, 2, 2]


def test_units_without_files_weigh_as_much_as_their_hashes() -> None:
    assert weigh_units(Forest(4), []) == dict.fromkeys(level(4), 0.125)


def test_a_unit_with_more_bytes_weighs_more() -> None:
    """RTI-12: the weight of a part of the tree is what lies there already."""
    files = [file_in(Node(3, 1)), file_in(Node(3, 1)), file_in(Node(7, 2)), file_in(Node(7, 6))]
    weights = weigh_units(plant(files, 4), files)

    assert weights[Node(3, 1)] == weights[Node(3, 2)] > weights[Node(3, 0)]
    assert abs(sum(weights.values()) - 1) < 1e-9


def test_a_file_above_several_units_counts_for_each_by_its_share() -> None:
    files = [file_in(Node(1, 0)), file_in(Node(3, 0)), file_in(Node(3, 2))]
    weights = weigh_units(plant(files, 4), files)

    assert weights[Node(3, 0)] == weights[Node(3, 2)] > weights[Node(3, 1)]


if __name__ == "__main__":
    rewrite(SCENARIOS, describe_route, sys.argv)
