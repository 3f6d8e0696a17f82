from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.manifest import DataFile

from arcticlake.commit.history import COMMIT_ID, KIND, Log, SnapshotFact
from arcticlake.commit.replacement import Replacement, encode_replacement
from arcticlake.commit.rules import Kind, Landed
from arcticlake.compact.landing import advance, landed_since
from arcticlake.table.watermark import Watermark
from arcticlake.tree.files import FileEntry, Role
from arcticlake.tree.node import ROOT, Node
from tests.tree.strategies import file_in, nodes

A, B = ("a",), ("b",)


def change(node: Node, sequence: int, *, oldest: int = 0, of: tuple[object, ...] = ()) -> FileEntry:
    return replace(file_in(node, of, role=Role.CHANGE, sequence=sequence), oldest=oldest)


def test_a_table_without_waiting_changes_is_merged_through() -> None:
    live = [change(Node(1, 0), 3), change(Node(1, 1), 4)]

    moved = advance(Watermark(), [((), Node(1, 0)), ((), Node(1, 1))], 4, live=live, newest=5)

    assert moved == Watermark(5)


def test_a_subtree_that_is_merged_alone_runs_ahead() -> None:
    live = [change(Node(1, 0), 3), change(Node(1, 1), 2), change(Node(1, 1), 4)]

    moved = advance(Watermark(), [((), Node(1, 0))], 4, live=live, newest=4)

    assert moved == Watermark(1, {((), 1, 0): 4})
    assert moved.covers((), 3, 2, 4)
    assert not moved.covers((), 3, 1, 2)


def test_the_oldest_row_of_a_rewritten_file_holds_the_watermark_back() -> None:
    live = [change(Node(1, 1), 9, oldest=3)]

    assert advance(Watermark(1), [], 9, live=live, newest=9) == Watermark(2)


def test_a_file_that_is_merged_in_part_holds_back_only_its_other_part() -> None:
    live = [change(ROOT, 9, oldest=3)]

    assert advance(Watermark(1), [((), ROOT)], 5, live=live, newest=9) == Watermark(5)


def test_a_deeper_entry_that_says_no_more_is_dropped() -> None:
    before = Watermark(1, {(A, 3, 1): 4, (A, 3, 2): 9, (B, 3, 1): 4})
    live = [change(Node(3, 3), 2, of=B), change(ROOT, 12, of=A)]

    moved = advance(before, [(A, ROOT)], 7, live=live, newest=12)

    assert moved == Watermark(1, {(A, 0, 0): 7, (A, 3, 2): 9, (B, 3, 1): 4})


@settings(max_examples=60)
@given(
    places=st.lists(st.tuples(nodes(3), st.integers(1, 9), st.integers(0, 3)), max_size=8),
    merged=st.lists(nodes(3), max_size=3),
    version=st.integers(0, 9),
    through=st.integers(0, 5),
)
def test_the_watermark_never_covers_a_change_that_waits_nor_forgets_one_it_covered(
    places: list[tuple[Node, int, int]], merged: list[Node], version: int, through: int
) -> None:
    """What is covered afterwards was covered before, or lies below a merged node up to V."""
    live = [change(node, seq, oldest=max(1, seq - back)) for node, seq, back in places]
    before = Watermark(through)

    after = advance(before, [((), node) for node in merged], version, live=live, newest=9)

    for file in live:
        node = file.node
        below = any(top.lineal(node) and top.depth <= node.depth for top in merged)
        expected = max(through, version if below else 0)
        assert (
            after.covers((), node.mask, node.index, file.sequence) == (file.sequence <= expected)
            or after.through >= file.sequence > expected
        )
        waiting = [s for s in range(file.sequence_min, file.sequence + 1) if s > expected]
        if waiting and file.sequence > expected:
            assert after.merged((), node.mask, node.index) < min(waiting)


def base(number: int, operation: str = "append", **summary: str) -> SnapshotFact:
    return SnapshotFact(number, number, number, operation, 0, summary)


def ours(number: int, kind: str, **more: str) -> SnapshotFact:
    return base(number, "overwrite", **{COMMIT_ID: "x", KIND: kind}, **more)


def test_what_landed_is_told_in_the_words_of_the_rules() -> None:
    """BAT-06, BAT-07."""
    before = Log("t", (base(1),), ())
    later = (
        ours(2, "insert"),
        ours(3, "overwrite", **encode_replacement(Replacement(2, frozenset({A, B})))),
        ours(4, "overwrite", **encode_replacement(Replacement(3, None))),
        ours(5, "major"),
        base(6, "append"),
        base(7, "replace"),
        base(8, "delete"),
        base(9, "overwrite", **{"deleted-data-files": "1"}),
    )

    found = landed_since(before, Log("t", (base(1), *later), ()), (), ())

    assert found is not None
    assert [landed.kind for landed in found] == [
        Kind.INSERT,
        Kind.OVERWRITE,
        Kind.OVERWRITE,
        Kind.COMPACTION,
        Kind.INSERT,
        Kind.COMPACTION,
        Kind.ROW_DELETES,
        Kind.OVERWRITE,
    ]
    assert found[1] == Landed(Kind.OVERWRITE, frozenset({A, B}))
    assert found[2] == Landed(Kind.OVERWRITE)


def test_a_plan_whose_snapshot_expired_knows_nothing() -> None:
    assert landed_since(Log("t", (base(1),), ()), Log("t", (base(5),), ()), (), ()) is None
    assert landed_since(Log("t", (base(5),), ()), Log("t", (base(5),), ()), (), ()) == []


def test_row_deletes_name_the_files_that_the_plan_did_not_see() -> None:
    old, new = DataFile.from_args(file_path="d1"), DataFile.from_args(file_path="d2")
    seen = replace(file_in(ROOT, path="seen"), row_deletes=(old,))
    hit = replace(file_in(ROOT, path="hit"), row_deletes=(old, new))
    before, after = Log("t", (base(1),), ()), Log("t", (base(1), base(2, "delete")), ())

    found = landed_since(before, after, [seen, replace(hit, row_deletes=(old,))], [seen, hit])

    assert found == [Landed(Kind.ROW_DELETES, named=frozenset({"hit"}))]
