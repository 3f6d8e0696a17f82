from __future__ import annotations

import pytest

from arcticlake.compact.group import find_clusters
from arcticlake.compact.nodes import Unit, limits_of, plan_shape
from arcticlake.compact.score import (
    Verdict,
    Work,
    minor_pieces,
    row_delete_reason,
    score_full,
    score_merge,
    score_minor,
    score_unit,
)
from arcticlake.tree.files import FileEntry, Role
from arcticlake.tree.node import Node
from tests.compact.layout import MB, entry, table

LEAF = Node(1, 0)
LIMITS = limits_of(table())


def unit_of(*files: FileEntry) -> Unit:
    bases = tuple(f for f in files if f.role is Role.BASE)
    changes = tuple(f for f in files if f.role is Role.CHANGE)
    return Unit((), LEAF, (LEAF,), bases, changes)


def base(name: str, size: int, keys: tuple[int, int] = (0, 9), **said: bool) -> FileEntry:
    return entry(name, LEAF, size=size * MB, keys=keys, deletes=said.get("deletes", False))


def change(name: str, size: int, *, sequence: int = 3, oldest: int = 0) -> FileEntry:
    return entry(name, LEAF, role=Role.CHANGE, size=size * MB, sequence=sequence, oldest=oldest)


def judge(*files: FileEntry, kind: str = "auto") -> Verdict:
    unit = unit_of(*files)
    clusters = find_clusters(unit.bases, unit.changes, unit.leaves, by_sort=False)
    shape = plan_shape(unit, LIMITS)
    return score_unit(unit, kind, clusters=clusters, shape=shape, limits=LIMITS, version=9)


@pytest.mark.parametrize(
    ("files", "work", "score", "reason"),
    [
        ([base("b", 100)], Work.KEEP, 0.0, "no change waits"),
        ([base("b", 100), change("c", 5)], Work.KEEP, 0.5, "5.0 % of the base"),
        ([base("b", 100), change("c", 10)], Work.MAJOR, 1.0, "10.0 % of the base"),
        ([base("b", 100), change("c", 30)], Work.MAJOR, 3.0, "30.0 % of the base"),
        ([change("c", 1)], Work.MAJOR, 10.0, "touch no base"),
        ([base("b", 100, deletes=True)], Work.MAJOR, 1.0, "row deletes of another engine"),
        ([base("b", 400)], Work.KEEP, 0.0, "no change waits"),
        ([base("b", 800)], Work.MAJOR, 2.0, "holds 800 MB, its limit is 400 MB"),
        ([base(f"b{n}", 50) for n in range(3)], Work.KEEP, 0.75, "3 base files overlap"),
        ([base(f"b{n}", 50) for n in range(6)], Work.MAJOR, 1.5, "6 base files overlap"),
        ([base(f"b{n}", 1, (n, n)) for n in range(3)], Work.KEEP, 0.75, "waits for 4"),
        ([base(f"b{n}", 1, (n, n)) for n in range(8)], Work.MAJOR, 2.0, "8 small base files"),
        ([base("b", 200), *(change(f"c{n}", 1) for n in range(8))], Work.MINOR, 1.0, "8 small"),
        ([base("b", 200), *(change(f"c{n}", 1) for n in range(7))], Work.KEEP, 0.875, "7 small"),
    ],
)
def test_auto_weighs_each_ground_against_its_threshold(
    files: list[FileEntry], work: Work, score: float, reason: str
) -> None:
    """CMP-20, MIN-01, SPL-10."""
    verdict = judge(*files)

    assert verdict.work is work
    assert verdict.score == pytest.approx(score)
    assert reason in verdict.reason


def test_a_leaf_with_too_many_changes_says_so() -> None:
    """SPL-01."""
    verdict = judge(base("b", 90), change("c1", 1000))

    assert verdict.work is Work.MAJOR
    assert verdict.score == pytest.approx(1000 / 9)


def test_a_major_compaction_takes_every_change_however_few() -> None:
    """CMP-07."""
    verdict = judge(base("b", 100), change("c", 1), kind="major")

    assert verdict.work is Work.MAJOR
    assert verdict.reason == "1 change file merged: changes are 1.0 % of the base they touch"


def test_a_major_compaction_without_changes_keeps_even_untidy_leaves() -> None:
    verdict = judge(*(base(f"b{n}", 1) for n in range(9)), kind="major")

    assert verdict == Verdict(Work.KEEP, "no change waits", 0.0)


def test_a_minor_compaction_packs_small_change_files_in_order_of_history() -> None:
    """MIN-05, MIN-06: large ones and those beyond the version stay."""
    files = [change(f"c{n}", 20, sequence=9 - n) for n in range(6)]
    unit = unit_of(*files, change("large", 25), change("late", 1, sequence=11, oldest=4))

    pieces = minor_pieces(unit, LIMITS, version=9)

    assert [[f.path for f in p.changes] for p in pieces] == [["c1", "c2", "c3", "c4", "c5"]]
    assert all(p.outputs == (LEAF,) and not p.bases for p in pieces)
    assert score_minor(unit, LIMITS, version=9).work is Work.MINOR


def test_a_single_small_change_file_is_left_alone() -> None:
    verdict = score_minor(unit_of(base("b", 1), change("c", 1)), LIMITS, version=9)

    assert verdict == Verdict(Work.KEEP, "1 change file, fewer than 2 of them small", 0.0)


def test_full_takes_all_but_rows_from_after_the_version() -> None:
    held = Unit((), LEAF, (LEAF,), (), (), held=(base("b", 1),))

    assert score_full(unit_of(base("b", 1))).work is Work.FULL
    assert score_full(held) == Verdict(Work.KEEP, "1 base file from after the version", 0.0)


def test_a_merge_back_is_worth_more_the_smaller_the_leaves() -> None:
    """SPL-13."""
    unit = unit_of(base("b", 50))
    verdict = score_merge(unit, plan_shape(unit, LIMITS), "auto", LIMITS)

    assert (verdict.work, verdict.score) == (Work.MAJOR, 2.0)
    assert score_merge(unit, plan_shape(unit, LIMITS), "full", LIMITS).work is Work.FULL


def test_row_deletes_are_told_in_good_grammar() -> None:
    assert row_delete_reason(1) == "1 base file carries row deletes of another engine"
    assert row_delete_reason(2) == "2 base files carry row deletes of another engine"
