from __future__ import annotations

from dataclasses import replace

from arcticlake.compact.nodes import limits_of, plan_shape
from arcticlake.compact.units import apply_merges, find_merges, find_units
from arcticlake.table.watermark import Watermark
from arcticlake.tree.files import Role
from arcticlake.tree.node import Node
from tests.compact.layout import MB, entry, facts_of, table

SPEC = table()
LIMITS = limits_of(SPEC)
CHANGE = Role.CHANGE


def test_a_unit_is_a_lineal_set_of_files_with_the_leaves_below_it() -> None:
    """IDX-08, CMP-09."""
    files = [
        entry("b1", Node(1, 0)),
        entry("c1", Node(3, 0), role=CHANGE, sequence=2),
        entry("b2", Node(1, 1)),
    ]

    units, _ = find_units(facts_of(SPEC, files))

    assert [(u.node, u.leaves) for u in units] == [
        (Node(1, 0), (Node(3, 0), Node(3, 2))),
        (Node(1, 1), (Node(1, 1),)),
    ]
    assert [f.path for f in units[0].files] == ["b1", "c1"]


def test_changes_from_after_the_version_join_nothing_together() -> None:
    files = [
        entry("b1", Node(3, 0)),
        entry("b2", Node(3, 2)),
        entry("late", Node(1, 0), role=CHANGE, sequence=8),
    ]

    units, left_out = find_units(facts_of(SPEC, files, version=5))

    assert [u.node for u in units] == [Node(3, 0), Node(3, 2)]
    assert left_out == {(): [Node(1, 0)]}


def test_base_rows_from_after_the_version_are_held() -> None:
    """CMP-07: a major takes a given version."""
    files = [entry("old", Node(1, 0), place=4), entry("new", Node(1, 0), place=6)]

    units, _ = find_units(facts_of(SPEC, files, version=5))

    assert [f.path for f in units[0].bases] == ["old"]
    assert [f.path for f in units[0].held] == ["new"]


def test_merged_changes_and_other_partitions_are_left_out() -> None:
    spec = table(days=True)
    files = [
        entry("merged", Node(1, 0), role=CHANGE, sequence=3, partition=(1,)),
        entry("waits", Node(1, 0), role=CHANGE, sequence=4, partition=(1,)),
        entry("other", Node(1, 0), role=CHANGE, sequence=4, partition=(2,)),
    ]
    mark = Watermark(0, {((1,), 0, 0): 3})
    facts = replace(facts_of(spec, files, watermark=mark), chosen=lambda where: where == (1,))

    units, _ = find_units(facts)

    assert [f.path for u in units for f in u.files] == ["waits"]


def test_a_file_that_reaches_over_the_version_pins_its_leaf() -> None:
    """SPL-13: it stays where it is, so a merge back would be in vain."""
    files = [
        entry("b1", Node(3, 0), size=MB),
        entry("c1", Node(3, 0), role=CHANGE, size=MB, sequence=8, oldest=2),
    ]

    units, left_out = find_units(facts_of(SPEC, files, version=5))
    shapes = {u.node: plan_shape(u, LIMITS) for u in units}

    assert [u.pinned for u in units] == [True]
    assert find_merges(units, shapes, left_out[()], "full", LIMITS) == {}


def test_units_that_merge_back_become_one_with_all_their_files() -> None:
    """SPL-13."""
    files = [
        entry("b1", Node(3, 0), size=MB),
        entry("b2", Node(3, 2), size=MB),
        entry("b3", Node(1, 1), size=MB),
    ]
    units, _ = find_units(facts_of(SPEC, files))
    shapes = {u.node: plan_shape(u, LIMITS) for u in units}

    merges = find_merges(units, shapes, (), "auto", LIMITS)
    found = apply_merges(units, shapes, merges)

    alone, joined = found
    assert (alone[0].node, alone[2]) == (Node(1, 1), False)
    assert (joined[0].node, joined[2]) == (Node(1, 0), True)
    assert [f.path for f in joined[0].bases] == ["b1", "b2"]
    assert joined[1].outputs == (Node(1, 0),)
    assert [str(event) for event in joined[1].events] == ["merge 3/0 3/2 into 1/0"]


def test_leaves_inside_one_unit_merge_back_in_full() -> None:
    files = [
        entry("b1", Node(1, 0), size=MB),
        entry("c1", Node(7, 0), role=CHANGE, size=MB, sequence=2),
    ]
    units, _ = find_units(facts_of(SPEC, files))
    shapes = {u.node: plan_shape(u, LIMITS) for u in units}

    merges = find_merges(units, shapes, (), "full", LIMITS)
    ((unit, shape, _),) = apply_merges(units, shapes, merges)

    assert (unit.node, shape.outputs) == (Node(1, 0), (Node(1, 0),))
    assert find_merges(units, shapes, (), "auto", LIMITS) == {}
