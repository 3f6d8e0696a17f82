from __future__ import annotations

from math import nan

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import CommitTableResponse
from pyiceberg.table import Table as IcebergTable

from arcticlake import Lake, Table
from arcticlake.commit.history import SnapshotFact
from arcticlake.inspect.line import check_log, check_merged, check_ranges
from arcticlake.tree.files import Role
from arcticlake.tree.node import ROOT, Node
from tests.inspect.lab import Place, broken, entry, fact, log_of, orders, paths, spec_of, view_of


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


@pytest.mark.parametrize("kind", ["major", "full"])
def test_both_kinds_of_merge_promise_disjoint_ranges(kind: str) -> None:
    """HSH-10, SRT-05: files of one leaf and one compaction, whatever the others hold."""
    files = [entry("a", keys=(1, 5)), entry("b", keys=(4, 9))]
    later = [files[0], entry("b", Place(snapshot_id=2), keys=(4, 9))]
    facts = {1: fact(1, kind), 2: fact(2, kind)}

    assert [p.path for p in check_ranges(spec_of("id bigint"), facts, files).problems] == ["b"]
    assert not check_ranges(spec_of("id bigint"), facts, later).problems


@pytest.mark.parametrize("kind", ["insert", "overwrite", "append", "rollback"])
def test_commits_of_rows_promise_no_ranges(kind: str) -> None:
    """A file of a batch is closed when it is full, in whatever order its rows come."""
    files = [entry("a", keys=(1, 5)), entry("b", keys=(2, 9))]

    found = check_ranges(spec_of("id bigint"), {1: fact(1, kind)}, files)

    assert not found.problems
    assert not found.counts


@pytest.mark.parametrize("kind", ["major", "full"])
def test_without_key_and_sort_key_no_range_is_promised(kind: str) -> None:
    """NPK-03: files keep the order of arrival."""
    files = [entry("a", Place(ROOT), keys=(1, 5)), entry("b", Place(ROOT), keys=(2, 9))]

    found = check_ranges(spec_of("v double", key=()), {1: fact(1, kind)}, files)

    assert not found.problems
    assert not found.counts


def test_without_a_key_a_sort_key_promises_ranges() -> None:
    spec, facts = spec_of("v double", key=(), sort_by=("v",)), {1: fact(1, "full")}
    files = [entry("a", sort=(0.0, 2.0)), entry("b", sort=(1.0, 3.0))]

    assert [problem.path for problem in check_ranges(spec, facts, files).problems] == ["b"]


def test_merged_change_files_that_are_still_there_are_a_note() -> None:
    base = [fact(1, "major", arctic__merged_through="3")]
    change = [fact(number, "upsert") for number in (2, 3, 4)]
    files = [entry(f"c{n}", Place(ROOT, role=Role.CHANGE, sequence=n)) for n in (2, 3, 4)]
    view = view_of(base, change)

    found = check_merged(view, files)

    assert not found.problems
    assert found.notes == ["2 merged change files wait to be dropped; the next compaction does it"]
    assert "1 merged change file waits" in check_merged(view, files[1:]).notes[0]
    assert not check_merged(view, files[2:]).notes


def test_a_compaction_that_stops_between_its_commits_is_only_a_note(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CMP-16: readers skip what is merged, and the next compaction drops it."""
    table.insert(orders(range(10)))
    table.upsert(orders(range(5, 15)))
    commit = SqlCatalog.commit_table

    def stop_at_changes(
        catalog: SqlCatalog, target: IcebergTable, *rest: object
    ) -> CommitTableResponse:
        if target.name()[-1].endswith("__changes"):
            raise KeyboardInterrupt
        return commit(catalog, target, *rest)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(SqlCatalog, "commit_table", stop_at_changes)
        with pytest.raises(KeyboardInterrupt):
            table.compact("major")

    verdict = table.verify()
    assert verdict.ok
    assert verdict.notes == (
        "2 merged change files wait to be dropped; the next compaction does it",
    )
    assert (table.to_arrow().num_rows, len(paths(table, "change"))) == (15, 2)

    table.compact("major")
    assert table.verify().notes == ()
    assert paths(table, "change") == []


@pytest.mark.parametrize("key", [("id",), ()])
def test_rows_that_a_compaction_wrote_are_held_against_the_sort_key(
    lake: Lake, key: tuple[str, ...]
) -> None:
    """SRT-03: sorted inside the file, NULL first; where engines place NaN is left to them."""
    table = lake.create_table(
        "shop.visits",
        "id bigint, v double",
        primary_key=key,
        sort_by="v",
        options={"initial-nodes": 1},
    )
    values = [3.0, None, 1.0, nan, 2.0, 0.5]
    for start in range(0, 12, 6):
        ids = pa.array(range(start, start + 6), pa.int64())
        table.insert(pa.table({"id": ids, "v": pa.array(values, pa.float64())}))
    table.compact("full")

    verdict = table.verify()
    assert verdict.ok, verdict.problems
    assert {check.name: check.count for check in verdict.checks}["sort"] == 12

    (path,) = paths(table)
    rows = pq.read_table(path)
    pq.write_table(rows.take(pc.array_sort_indices(rows["id"].combine_chunks())), path)
    assert "sort" in broken(table.verify())
