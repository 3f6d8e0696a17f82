from __future__ import annotations

import random
import sys
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arcticlake.compact.plan import CompactionPlan, Facts, GroupPlan, Work, plan_compaction
from arcticlake.errors import InvalidRequest
from arcticlake.table.watermark import Watermark
from arcticlake.tree.files import FileEntry, Role
from arcticlake.tree.node import Node
from tests.compact.layout import MB, entry, facts_of, outcome, read_story, table
from tests.scenario import Case, check_scenario, rewrite
from tests.tree.strategies import nodes

SCENARIOS = sorted((Path(__file__).parent / "scenarios").glob("plan*.txt"))
VERSION = 5
ROUNDS_MAX = 20


def describe_plan(case: Case) -> str:
    """Answer a scenario with the text of its plan."""
    story = read_story(case)
    return plan_compaction(story.facts(), story.kind, parallelism=story.parallelism).explain()


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_the_plan_of_a_scenario_is_as_written(path: Path) -> None:
    """CMP-07, CMP-10, CMP-12 to CMP-14, KEY-16, MIN-01, SPL-01, SPL-08, SPL-13, NPK-03."""
    check_scenario(path, describe_plan)


@st.composite
def layouts(draw: st.DrawFn, *, kinds: tuple[str, ...] = ("plain", "pair", "sorted")) -> Facts:
    """A table with random files: base with and without a place, changes of one or more commits."""
    kind = draw(st.sampled_from(kinds))
    key = ("id", "line") if kind == "pair" else ("id",)
    spec = table(key=key, sort=("v",) if kind == "sorted" else (), days=True)
    bounds = st.tuples(st.integers(0, 30), st.integers(0, 6)).map(lambda s: (s[0], s[0] + s[1]))
    files = []
    for number in range(draw(st.integers(0, 12))):
        role = draw(st.sampled_from(Role))
        sequence = draw(st.integers(1, 8))
        files.append(
            entry(
                f"f{number:02d}",
                draw(nodes(3)),
                role=role,
                size=draw(st.sampled_from([1, 10, 30, 60, 110, 300])) * MB,
                keys=draw(bounds),
                lines=draw(bounds) if kind == "pair" else None,
                sort=draw(bounds) if kind == "sorted" else None,
                sequence=sequence,
                oldest=draw(st.integers(1, sequence)) if role is Role.CHANGE else 0,
                place=draw(st.sampled_from([0, 0, 0, 3, 8])) if role is Role.BASE else 1,
                partition=(draw(st.sampled_from([1, 1, None])),),
                deletes=role is Role.BASE and draw(st.integers(0, 9)) == 0,
            )
        )
    return facts_of(spec, files, version=VERSION, watermark=Watermark(draw(st.integers(0, 2))))


KINDS = st.sampled_from(["auto", "minor", "major", "full"])


def pending(facts: Facts) -> list[FileEntry]:
    return [
        f
        for f in facts.changes
        if f.sequence_min <= facts.version and f.sequence > facts.watermark.through
    ]


def meet(file: FileEntry, other: FileEntry) -> bool:
    bounds = zip(file.key_lower, file.key_upper, other.key_lower, other.key_upper, strict=True)
    return all(a <= d and c <= b for a, b, c, d in bounds)  # type: ignore[operator]


@settings(max_examples=50, deadline=None)
@given(facts=layouts(), kind=KINDS)
def test_every_live_file_stands_in_exactly_one_place_of_its_group(facts: Facts, kind: str) -> None:
    """CMP-12: nothing is lost, no file is in two pieces, base from after the version stays."""
    plan = plan_compaction(facts, kind, parallelism=2)

    listed = [f for g in plan.groups for f in g.kept]
    listed += [f for piece in plan.pieces for f in piece.files]
    live = [*facts.bases, *pending(facts)]
    assert sorted(f.path for f in listed) == sorted(f.path for f in live)
    for group in plan.groups:
        assert (group.work is Work.KEEP) == (not group.pieces)
        for file in (*group.kept, *(f for piece in group.pieces for f in piece.files)):
            assert file.partition == group.partition
            assert file.node.lineal(group.node) and file.node.depth >= group.node.depth
        for piece in group.pieces:
            assert all(f.snapshot_id <= VERSION for f in piece.bases)
    tasked = [piece for task in plan.tasks for _, piece in task.pieces]
    assert sorted(map(id, tasked)) == sorted(map(id, plan.pieces))
    assert all(plan.groups[n].pieces.count(p) == 1 for t in plan.tasks for n, p in t.pieces)


@settings(max_examples=50, deadline=None)
@given(facts=layouts(), kind=KINDS)
def test_a_group_that_rewrites_base_merges_all_its_pending_changes(facts: Facts, kind: str) -> None:
    """CMP-07: one number says how far a subtree is merged."""
    for group in plan_compaction(facts, kind, parallelism=2).groups:
        if group.work in {Work.MAJOR, Work.FULL}:
            assert all(file.role is Role.BASE for file in group.kept)
        else:
            assert not any(piece.bases for piece in group.pieces)


@settings(max_examples=50, deadline=None)
@given(facts=layouts(), kind=KINDS)
def test_outputs_are_disjoint_and_hold_every_key_that_is_read(facts: Facts, kind: str) -> None:
    """CMP-12, SPL-07."""
    for group in plan_compaction(facts, kind, parallelism=2).groups:
        outputs = {node for piece in group.pieces for node in piece.outputs}
        if group.work is not Work.MINOR:
            assert not any(a.lineal(b) for a, b in combinations(outputs, 2))
        for piece in group.pieces:
            for file in piece.files:
                below = [n for n in piece.outputs if n.lineal(file.node)]
                covered = sum(min(1.0, file.node.buckets / n.buckets) for n in below)
                assert covered == 1.0
            assert all(group.node.lineal(node) for node in piece.outputs)
            assert all(node.depth >= group.node.depth for node in piece.outputs)


@settings(max_examples=50, deadline=None)
@given(facts=layouts(), kind=st.sampled_from(["auto", "major"]))
def test_a_change_meets_no_file_outside_its_piece(facts: Facts, kind: str) -> None:
    """KEY-16, CMP-10: what stays as it is cannot hold a key that changed."""
    for group in plan_compaction(facts, kind, parallelism=2).groups:
        if group.work is not Work.MAJOR:
            continue
        held = [f for f in group.kept if f.snapshot_id <= VERSION]
        for piece in group.pieces:
            others = [f for p in group.pieces if p is not piece for f in p.files] + held
            for change in piece.changes:
                assert not any(meet(change, f) for f in others if f.node.lineal(change.node))


@settings(max_examples=50, deadline=None)
@given(facts=layouts(), kind=st.sampled_from(["auto", "major", "full"]))
def test_what_is_written_to_a_leaf_does_not_overlap(facts: Facts, kind: str) -> None:
    """KEY-10, KEY-11, HSH-03: files of a leaf are in order, also beside those that stay."""
    plan = plan_compaction(facts, kind, parallelism=2)
    for group in plan.groups:
        for leaf in {node for piece in group.pieces for node in piece.outputs}:
            mine = [tuple(f for f in p.files if f.node.lineal(leaf)) for p in group.pieces]
            spans = [span(facts, files) for files in mine if files]
            for (_, high), (low, _) in pairwise(sorted(spans)):
                assert low >= high
            rest = [f for f in group.kept if f.node.lineal(leaf) and f.snapshot_id <= VERSION]
            for low, high in (span(facts, (file,)) for file in rest if group.work is Work.MAJOR):
                assert not any(low < end and start < high for start, end in spans)


def span(facts: Facts, files: tuple[FileEntry, ...]) -> tuple[int, int]:
    by_sort = bool(facts.spec.sort_ids)
    lows = [(f.sort_lower if by_sort else f.key_lower)[0] for f in files]
    highs = [(f.sort_upper if by_sort else f.key_upper)[0] for f in files]
    return min(lows), max(highs)  # type: ignore[type-var,return-value]


@settings(max_examples=50, deadline=None)
@given(facts=layouts(), kind=KINDS, seed=st.integers(0, 99))
def test_the_plan_does_not_depend_on_the_order_of_files(facts: Facts, kind: str, seed: int) -> None:
    """Same state, same plan, byte for byte."""
    bases, changes = list(facts.bases), list(facts.changes)
    random.Random(seed).shuffle(bases)
    random.Random(seed).shuffle(changes)
    shuffled = replace(facts, bases=tuple(bases), changes=tuple(changes))

    plan = plan_compaction(facts, kind, parallelism=2)
    again = plan_compaction(shuffled, kind, parallelism=2)

    assert again == plan
    assert again.explain() == plan.explain()


@settings(max_examples=50, deadline=None)
@given(facts=layouts(), kind=st.sampled_from(["minor", "major"]))
def test_a_second_minor_or_major_finds_nothing_to_do(facts: Facts, kind: str) -> None:
    """CMP-16."""
    plan = plan_compaction(facts, kind, parallelism=2)

    assert plan_compaction(outcome(facts, plan), kind, parallelism=2).empty


@settings(max_examples=50, deadline=None)
@given(facts=layouts())
def test_auto_comes_to_rest(facts: Facts) -> None:
    """CMP-16, SPL-13: a merge back takes one level at a time, then all is quiet."""
    for _ in range(ROUNDS_MAX):
        plan = plan_compaction(facts, "auto", parallelism=2)
        if plan.empty:
            return
        facts = outcome(facts, plan)
    raise AssertionError(plan.explain())


@settings(max_examples=50, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 120), max_size=20),
    sort=st.booleans(),
    kind=st.sampled_from(["auto", "major"]),
)
def test_a_second_run_without_a_key_finds_nothing_to_do(
    sizes: list[int], sort: bool, kind: str
) -> None:
    """NPK-03."""
    files = [
        entry(f"f{n:02d}", size=size * MB, sort=(n, n + size % 3) if sort else None, sequence=n + 1)
        for n, size in enumerate(sizes)
    ]
    facts = facts_of(table(key=(), sort=("v",) if sort else ()), files)

    plan = plan_compaction(facts, kind, parallelism=2)

    assert plan_compaction(outcome(facts, plan), kind, parallelism=2).empty


def plan_of(files: list[FileEntry], kind: str = "auto", parallelism: int = 2) -> CompactionPlan:
    return plan_compaction(facts_of(table(), files), kind, parallelism=parallelism)


def only(plan: CompactionPlan) -> GroupPlan:
    (group,) = plan.groups
    return group


def test_an_unknown_kind_names_the_four_that_there_are() -> None:
    with pytest.raises(InvalidRequest, match=r"db\.t.*'tiny'.*auto, minor, major or full"):
        plan_of([], "tiny")


def test_a_minor_compaction_without_a_change_table_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="no change table"):
        plan_compaction(facts_of(table(key=()), []), "minor", parallelism=1)


def test_an_empty_table_gives_an_empty_plan() -> None:
    plan = plan_of([])

    assert plan.empty and plan.groups == () and plan.seconds == 0
    assert "nothing to do" in plan.explain()


def test_only_chosen_partitions_are_planned() -> None:
    files = [entry(f"f{day}", partition=(day,)) for day in (1, 2)]
    facts = replace(facts_of(table(days=True), files), chosen=lambda where: where == (2,))

    assert [g.partition for g in plan_compaction(facts, "full", parallelism=1).groups] == [(2,)]


def test_a_full_compaction_rewrites_even_a_tidy_leaf() -> None:
    group = only(plan_of([entry("b", Node(1, 0), size=90 * MB)], "full"))

    assert group.work is Work.FULL
    assert group.pieces[0].outputs == (Node(1, 0),)


def test_tasks_are_packed_by_cost_and_take_the_heaviest_first() -> None:
    """CMP-14: two tasks for each worker, about equally loaded."""
    files = [entry(f"b{n}", Node(15, n), size=(n + 1) * 20 * MB) for n in range(16)]
    spec = table(initial_nodes=16)

    plan = plan_compaction(facts_of(spec, files), "full", parallelism=2)

    assert [task.number for task in plan.tasks] == [0, 1, 2, 3]
    assert sum(task.bytes for task in plan.tasks) == sum(f.bytes for f in files)
    assert sum(task.rows for task in plan.tasks) == sum(f.rows for f in files)
    costs = [task.cost for task in plan.tasks]
    assert max(costs) < 1.1 * min(costs)
    for task in plan.tasks:
        sizes = [piece.bytes for _, piece in task.pieces]
        assert sizes == sorted(sizes, reverse=True)


def test_a_split_of_one_leaf_of_64_leaves_the_others_alone() -> None:
    """SPL-08, SPL-14: the hot leaf is split, its neighbours are not read."""
    spec = table(initial_nodes=64)
    files = [entry(f"b{n:02d}", Node(63, n), size=300 * MB) for n in range(64)]
    files.append(entry("hot", Node(63, 7), size=150 * MB, keys=(20, 29)))

    plan = plan_compaction(facts_of(spec, files), "auto", parallelism=2)

    (group,) = [g for g in plan.groups if g.pieces]
    assert [str(event) for event in group.events] == ["split 63/7 into 127/7 127/71"]
    assert 40 * sum(p.bytes for p in plan.pieces) <= sum(f.bytes for f in files)


def test_changes_merged_up_to_the_version_wait_for_the_next_one() -> None:
    late = entry("c", Node(1, 0), role=Role.CHANGE, sequence=7, oldest=3)
    facts = facts_of(table(), [late], version=5, watermark=Watermark(5))

    assert plan_compaction(facts, "major", parallelism=1).groups == ()


if __name__ == "__main__":
    rewrite(SCENARIOS, describe_plan, sys.argv)
