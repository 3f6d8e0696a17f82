"""Compaction through the public names: readers see the same rows, files get better."""

from __future__ import annotations

import pyarrow as pa
import pytest

from arcticlake import Lake
from arcticlake.errors import InvalidRequest
from arcticlake.verbs import compact as compacting
from tests.verbs.compacted import check, live_files
from tests.verbs.shop import keys, orders, rows, statuses


def test_major_brings_changes_into_base_and_makes_no_version(lake: Lake) -> None:
    """CMP-02, CMP-07, HSH-04: updates, deletes and rows that base never had."""
    table = orders(lake)
    table.insert(rows(range(100)))
    before = table.upsert(rows(range(50, 150), "paid"))
    table.delete(keys(*range(10)))
    expected = {n: "new" if n < 50 else "paid" for n in range(10, 150)}

    result = table.compact("major")

    assert result.kind == "major"
    assert (result.files_removed, result.files_added) == (12, 4)
    assert result.bytes_written > 0
    assert result.write_amplification is not None
    assert statuses(table, mode="base") == expected
    assert live_files(table, "change") == set()
    assert table.detail().version == before.version + 1
    assert table.detail().backlog.files == 0
    check(table, expected)


def test_a_compaction_that_is_repeated_does_nothing(lake: Lake) -> None:
    """CMP-16."""
    table = orders(lake)
    table.insert(rows(range(10)))
    table.upsert(rows(range(5), "paid"))
    table.compact("major")
    files = live_files(table)

    results = [table.compact(kind) for kind in ("major", "auto", "minor")]

    assert [result.kind for result in results] == ["none"] * 3
    assert table.plan_compaction("major").empty
    assert live_files(table) == files


def test_every_version_reads_as_before_after_a_compaction(lake: Lake) -> None:
    """SNP-10: the base of today is too new for yesterday."""
    table = orders(lake)
    moments = [table.insert(rows(range(8))).version]
    for number in range(4):
        moments.append(table.upsert(rows([number], f"s{number}")).version)
        if number % 2:
            table.compact("major")
    expected = [
        {n: f"s{n}" if n < count else "new" for n in range(8)} for count in range(len(moments))
    ]

    for version, state in zip(moments, expected, strict=True):
        assert statuses(table, version=version) == state
    check(table, expected[-1])


def test_changes_up_to_a_version_are_merged_and_later_ones_wait(lake: Lake) -> None:
    """CMP-07: a given version."""
    table = orders(lake)
    table.insert(rows(range(20)))
    middle = table.upsert(rows(range(10), "paid")).version
    table.upsert(rows(range(5), "sent"))
    table.insert(rows(range(100, 110), "late"))

    table.compact("major", to_version=middle)

    merged = {n: "paid" if n < 10 else "new" for n in range(20)}
    now = {**merged, **dict.fromkeys(range(5), "sent"), **dict.fromkeys(range(100, 110), "late")}
    assert statuses(table, mode="base") == {**merged, **dict.fromkeys(range(100, 110), "late")}
    assert table.detail().backlog.rows == 5
    check(table, now)
    table.compact("major")
    assert statuses(table, mode="base") == now
    check(table, now)


def test_a_version_inside_a_rewritten_change_file_is_merged_exactly(lake: Lake) -> None:
    """Rows of one file stand on both sides of the watermark."""
    table = orders(lake, options={"initial-nodes": 1})
    table.insert(rows(range(5)))
    middle = table.upsert(rows([1, 2], "old")).version
    table.upsert(rows([2, 3], "mid"))
    last = table.upsert(rows([3, 4], "top")).version
    assert table.compact("minor").kind == "minor"

    table.compact("major", to_version=middle)

    base = {0: "new", 1: "old", 2: "old", 3: "new", 4: "new"}
    now = {0: "new", 1: "old", 2: "mid", 3: "top", 4: "top"}
    assert statuses(table, mode="base") == base
    check(table, now)
    assert sorted(table.to_arrow(mode="unmerged").to_pydict()["_version"], key=str) == sorted(
        [*[middle] * 5, last - 1, last - 1, last, last], key=str
    )
    table.upsert(rows([1], "again"))
    table.compact("major")
    assert statuses(table, mode="base") == {**now, 1: "again"}
    check(table, {**now, 1: "again"})


def test_a_leaf_whose_rows_are_all_deleted_commits_as_empty(lake: Lake) -> None:
    table = orders(lake, options={"initial-nodes": 1})
    table.insert(rows(range(10)))
    table.delete(keys(*range(10)))

    result = table.compact("major")

    assert (result.kind, result.files_added) == ("major", 0)
    assert table.files() == []
    check(table, {})
    table.upsert(rows([3]))
    check(table, {3: "new"})


def test_deletes_of_keys_that_never_were_are_merged_away(lake: Lake) -> None:
    table = orders(lake)
    table.delete(keys(1, 2, 3))

    assert table.compact("major").kind == "major"

    assert table.files() == []
    check(table, {})


def test_minor_makes_change_files_fewer_and_keeps_every_row(lake: Lake) -> None:
    """MIN-01, MIN-04, MIN-07: order and history stay."""
    table = orders(lake, options={"initial-nodes": 2})
    table.insert(rows(range(10)))
    for number in range(6):
        table.upsert(rows({1, 2, 3, number}, f"s{number}"))
    table.delete(keys(2))
    by = [("_version", "ascending"), ("order_id", "ascending")]
    before = table.to_arrow(mode="unmerged").sort_by(by)
    base = live_files(table)

    result = table.compact("minor")

    assert result.kind == "minor"
    assert len(live_files(table, "change")) == 2
    assert live_files(table) == base
    assert table.to_arrow(mode="unmerged").sort_by(by).equals(before)
    expected = dict.fromkeys(range(10), "new") | {1: "s5", 3: "s5", 0: "s0", 4: "s4", 5: "s5"}
    del expected[2]
    check(table, expected)
    table.compact("major")
    assert statuses(table, mode="base") == expected


def test_minor_collapses_changes_only_where_the_table_allows_it(lake: Lake) -> None:
    """MIN-02, MIN-03: the newest change of a key is kept, deletes too."""
    table = orders(lake, options={"initial-nodes": 1, "collapse-changes": True})
    table.insert(rows([1, 2, 3]))
    for number in range(4):
        table.upsert(rows([1, 2], f"s{number}"))
    table.delete(keys(2))

    table.compact("minor")

    unmerged = table.to_arrow(mode="unmerged").filter(pa.compute.field("_action") != "")
    assert sorted(
        zip(*(unmerged[c].to_pylist() for c in ("order_id", "_action")), strict=True)
    ) == [
        (1, "+U"),
        (2, "-D"),
    ]
    check(table, {1: "s3", 3: "new"})


def test_changes_after_a_minor_compaction_win(lake: Lake) -> None:
    table = orders(lake, options={"initial-nodes": 1})
    for number in range(3):
        table.upsert(rows([1, 2], f"s{number}"))
    table.compact("minor")
    table.upsert(rows([1], "after"))
    table.compact("minor")

    check(table, {1: "after", 2: "s2"})
    assert len(live_files(table, "change")) == 1


def test_a_table_without_a_key_gets_larger_files(lake: Lake) -> None:
    """NPK-03, NPK-04: rows and versions stay."""
    table = orders(lake, primary_key=())
    for number in range(6):
        table.insert(rows([1, 1, number], f"s{number}"))
    versions = [entry.version for entry in table.history() if entry.kind == "insert"]
    before = sorted(map(str, table.to_arrow().to_pylist()))

    result = table.compact()

    assert (result.kind, result.files_removed, result.files_added) == ("major", 6, 1)
    assert sorted(map(str, table.to_arrow().to_pylist())) == before
    assert [e.version for e in table.history() if e.kind == "insert"] == versions
    assert table.to_arrow(version=versions[-1]).num_rows == 3
    assert table.verify().ok
    assert table.compact().kind == "none"
    with pytest.raises(InvalidRequest, match=r"shop\.orders has no change table"):
        table.compact("minor")


def test_only_the_partitions_that_were_asked_for_are_rewritten(lake: Lake) -> None:
    table = orders(lake, primary_key=["order_id", "status"], partition_by=["status"])
    table.upsert(rows(range(5), "a"))
    table.upsert(rows(range(5), "b"))

    table.compact("major", where="status = 'a'")

    base = [f for f in table.files() if f["role"] == "base"]
    assert {str(f["partition"]) for f in base} == {"{'status': 'a'}"}
    assert table.to_arrow().num_rows == 10
    assert table.verify().ok
    assert table.detail().watermark.ahead > 0
    table.compact("major")
    assert table.detail().watermark.ahead == 0
    assert table.detail().backlog.files == 0


def test_a_plan_says_what_would_be_done_and_touches_nothing(lake: Lake) -> None:
    table = orders(lake)
    table.insert(rows(range(100)))
    table.upsert(rows(range(50), "paid"))
    files = table.files()

    plan = table.plan_compaction("major")

    assert len(plan.tasks) >= 1
    assert plan.explain() == table.plan_compaction("major").explain()
    assert "3/0 major" in plan.explain()
    assert table.files() == files


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "huge"}, "unknown kind of compaction 'huge'"),
        ({"kind": "auto", "to_version": 1}, "to_version goes with kind major or full"),
        ({"kind": "major", "to_version": 99}, "no version 99"),
        ({"kind": "major", "to_version": "1"}, "must be a whole number"),
        ({"kind": "major", "where": "nothing = 1"}, "nothing"),
    ],
)
def test_a_wrong_request_is_refused_by_name(
    lake: Lake, arguments: dict[str, object], message: str
) -> None:
    table = orders(lake)
    table.upsert(rows([1]))

    with pytest.raises(InvalidRequest, match=message):
        table.compact(**arguments)  # type: ignore[arg-type]


def test_compaction_after_every_write_is_an_option(lake: Lake) -> None:
    """SVC-01, CMP-21."""
    table = orders(lake, options={"compact-after-write": True, "initial-nodes": 1})

    for number in range(3):
        table.upsert(rows(range(number * 10, number * 10 + 10)))

    assert live_files(table, "change") == set()
    assert len(live_files(table)) >= 1
    check(table, dict.fromkeys(range(30), "new"))


def test_a_compaction_after_a_write_that_fails_only_warns(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream must not die because its table could not be compacted."""
    table = orders(lake, options={"compact-after-write": True, "initial-nodes": 1})

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(compacting, "_run_tasks", full)
    with pytest.warns(RuntimeWarning, match=r"version 1 is committed.*No space left"):
        table.upsert(rows([1]))
    check(table, {1: "new"})


def test_long_work_tells_how_far_it_is(
    lake: Lake, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compacting, "PROGRESS_SECONDS", 0.0)
    table = orders(lake)
    table.upsert(rows(range(100)))

    table.compact("major")

    told = capsys.readouterr()
    assert "compacting shop.orders: " in told.err
    assert "rows/s" in told.err
    assert told.out == ""


def test_columns_that_came_and_went_survive_a_compaction(lake: Lake) -> None:
    table = orders(lake)
    table.insert(rows(range(10)))
    table.rename_column("status", "state")
    table.add_column("note", "string")
    table.upsert(
        rows(range(5), "paid")
        .rename_columns(["order_id", "state", "amount", "qty"])
        .append_column("note", pa.array(["n"] * 5))
    )
    table.widen_column("qty", "bigint")
    table.drop_column("amount")
    before = sorted(map(str, table.to_arrow().to_pylist()))

    table.compact("major")

    assert sorted(map(str, table.to_arrow(mode="base").to_pylist())) == before
    assert table.verify().ok


def test_a_version_keeps_columns_that_were_dropped_before_the_compaction(lake: Lake) -> None:
    """SNP-10: the merge of that very version lacks them, so it is not used for it."""
    table = orders(lake)
    version = table.upsert(rows([1, 2], qty=7)).version
    table.drop_column("qty")
    table.compact("full")

    assert table.to_arrow(version=version)["qty"].to_pylist() == [7, 7]
    assert table.to_arrow().column_names == ["order_id", "status", "amount"]
    later = table.upsert(rows([3]).drop_columns("qty")).version
    assert table.to_arrow(version=later).num_rows == 3


def test_a_rewrite_to_an_older_version_does_not_make_merged_rows_older(lake: Lake) -> None:
    table = orders(lake, options={"initial-nodes": 1})
    first = table.upsert(rows([1])).version
    newest = table.upsert(rows([1], "paid")).version
    table.compact("major")

    table.compact("full", to_version=first)

    assert table.to_arrow(metadata=True)["_version"].to_pylist() == [newest]
    assert statuses(table, version=first) == {1: "new"}
    check(table, {1: "paid"})
