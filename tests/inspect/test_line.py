from __future__ import annotations

from arcticlake.commit.history import SnapshotFact
from arcticlake.inspect.line import check_log, check_ranges
from arcticlake.tree.node import Node
from tests.inspect.lab import Place, entry, fact, log_of, spec_of, view_of


def marker(sequence: int, base_snapshot: int) -> SnapshotFact:
    return fact(sequence, "insert", arctic__base_snapshot=str(base_snapshot))


def test_a_healthy_history_has_no_problems() -> None:
    base, change = [fact(1, "insert")], [marker(1, 1), fact(2, "upsert")]

    found = check_log(log_of(base, change), view_of(base, change))

    assert not found.problems
    assert not found.notes


def test_a_watermark_beyond_the_newest_change_is_a_problem() -> None:
    base = [fact(1, "major", arctic__merged_through="9")]
    change = [fact(2, "upsert")]

    found = check_log(log_of(base, change), view_of(base, change))

    assert [problem.check for problem in found.problems] == ["watermark"]
    assert "up to 9, the newest is 2" in found.problems[0].message


def test_commits_that_wait_for_their_marker_are_only_notes() -> None:
    base = [fact(1, "insert"), fact(2, None), fact(3, None)]
    change = [marker(1, 1)]

    found = check_log(log_of(base, change), view_of(base, change))

    assert not found.problems
    assert len(found.notes) == 2
    assert "base snapshot 2 (append, by another engine) has no version yet" in found.notes[0]


def test_a_commit_without_a_version_under_one_of_ours_is_a_problem() -> None:
    base = [fact(1, "insert"), fact(2, "major")]

    found = check_log(log_of(base, []), view_of(base, []))

    assert [problem.check for problem in found.problems] == ["markers"]
    assert "snapshot 2 was built on it" in found.problems[0].message


def test_two_versions_of_one_commit_are_a_problem() -> None:
    base, change = [fact(1, "insert")], [marker(1, 1), marker(2, 1)]

    found = check_log(log_of(base, change), view_of(base, change))

    assert "base snapshot 1 has 2 versions, not one" in found.problems[0].message


def test_a_table_without_a_key_has_no_markers_to_check() -> None:
    base = [fact(1, "insert")]

    found = check_log(log_of(base, None), view_of(base, None))

    assert not found.problems


def test_files_of_one_compaction_must_not_overlap_in_a_leaf() -> None:
    spec, facts = spec_of("id bigint"), {1: fact(1, "major")}
    files = [
        entry("a", keys=(1, 5)),
        entry("b", keys=(5, 9)),
        entry("c", Place(Node(3, 1)), keys=(1, 9)),
    ]

    found = check_ranges(spec, facts, files)

    assert [(problem.check, problem.path) for problem in found.problems] == [("ranges", "b")]
    assert not check_ranges(spec, facts, [files[0], entry("d", keys=(6, 9))]).problems


def test_inserts_of_ours_and_of_others_may_overlap() -> None:
    files = [entry("a", keys=(1, 5)), entry("b", keys=(2, 9))]

    for written in (fact(1, "insert"), fact(1, None)):
        assert not check_ranges(spec_of("id bigint"), {1: written}, files).problems
    assert not check_ranges(spec_of("id bigint"), {}, files).problems


def test_files_with_a_sort_key_are_disjoint_by_it_and_may_touch() -> None:
    spec, facts = spec_of(sort_by=("v",)), {1: fact(1, "full")}
    touching = [
        entry("a", keys=(1, 9), sort=(0.0, 1.0)),
        entry("b", keys=(1, 9), sort=(1.0, 2.0)),
    ]
    crossing = [touching[0], entry("c", keys=(1, 9), sort=(0.5, 2.0))]

    assert not check_ranges(spec, facts, touching).problems
    assert [problem.path for problem in check_ranges(spec, facts, crossing).problems] == ["c"]
