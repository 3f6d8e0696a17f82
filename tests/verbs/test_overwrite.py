"""overwrite: the whole table or whole partitions, and the changes that stay on top."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from arcticlake import Lake
from arcticlake.commit.change import Operation, SnapshotChange
from arcticlake.commit.history import CHANGE_VERSION, CONTAINS, KIND, OVERWROTE
from arcticlake.commit.iceberg import live_entries
from arcticlake.commit.loop import commit
from arcticlake.ingest import iceberg
from arcticlake.lake import Table
from arcticlake.table.watermark import Watermark, encode_watermark
from arcticlake.verbs import overwrite as overwriting
from arcticlake.verbs.write import write_rows
from tests.commit.test_marks import expire
from tests.verbs.shop import (
    NAME,
    change_of,
    data_files,
    keys,
    orders,
    refused,
    rows,
    snapshots,
    statuses,
)


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.fixture
def lake(warehouse: Path) -> Iterator[Lake]:
    opened = Lake.open(str(warehouse))
    yield opened
    assert isinstance(opened.catalog, SqlCatalog)
    opened.catalog.close()


def by_day(lake: Lake, **settings: object) -> Table:
    """Create a table of orders that the day of each, which is in the key, separates."""
    return lake.create_table(
        NAME,
        "order_id bigint, day string, status string",
        primary_key=["order_id", "day"],
        partition_by="day",
        **settings,  # type: ignore[arg-type]
    )


def of_day(day: str | None, ids: list[int], status: str = "new") -> pa.Table:
    return pa.table(
        {
            "order_id": pa.array(ids, pa.int64()),
            "day": pa.array([day] * len(ids), pa.string()),
            "status": pa.array([status] * len(ids), pa.string()),
        }
    )


def day_keys(day: str, *ids: int) -> pa.Table:
    return of_day(day, list(ids)).drop_columns("status")


def found(table: Table, **request: object) -> dict[tuple[str, int], str]:
    read = table.to_arrow(**request).to_pylist()  # type: ignore[arg-type]
    by_key = {(row["day"], row["order_id"]): row["status"] for row in read}
    assert len(by_key) == len(read), "a key comes twice"
    return by_key


def check(table: Table) -> None:
    verdict = table.verify()
    assert verdict.ok, verdict


def kinds(table: Table) -> list[str]:
    return [entry.kind for entry in reversed(table.history())]


def live_changes(table: Table) -> int:
    change = change_of(table)
    return len(live_entries(change, change.current_snapshot()))


def merge(table: Table, through: int) -> None:
    """Stand for a major compaction to a version: merge changes into base, then drop them."""
    pair = table._opened.pair()
    assert pair.change is not None
    merged = table.to_arrow(version=through)
    old = frozenset(
        e.data_file.file_path for e in live_entries(pair.base, pair.base.current_snapshot())
    )
    state = table._opened.state()
    written = write_rows(state, merged, state.forest)
    told = {KIND: "major", CONTAINS: str(through), **encode_watermark(Watermark(through))}
    change = SnapshotChange(
        Operation.OVERWRITE,
        added=iceberg.data_files(pair, pair.base, written.files),
        removed=old,
        summary=told,
    )
    commit(lambda: pair.base.catalog.load_table(NAME), lambda _: change, f"major-{through}")
    entries = live_entries(pair.change, pair.change.current_snapshot())
    gone = [e.data_file.file_path for e in entries if (e.sequence_number or 0) <= through]
    trim = SnapshotChange(Operation.DELETE, removed=frozenset(gone), summary={KIND: "trim"})
    commit(
        lambda: pair.base.catalog.load_table(f"{NAME}__changes"), lambda _: trim, f"trim-{through}"
    )


def test_the_whole_table_is_replaced_with_all_that_was_pending(lake: Lake) -> None:
    """BAT-01, BAT-05, WOP-19."""
    table = orders(lake)
    table.insert(rows(range(5), "old"))
    before = table.upsert(rows([1, 9], "pending"))
    old = statuses(table)

    done = table.overwrite(rows([1, 2, 3], "new"))

    assert (done.rows, done.version > before.version) == (3, True)
    assert statuses(table) == dict.fromkeys([1, 2, 3], "new")
    assert statuses(table, mode="base") == dict.fromkeys([1, 2, 3], "new")
    assert statuses(table, version=before.version) == old
    assert statuses(table, version=done.version) == statuses(table)
    assert kinds(table) == ["insert", "upsert", "overwrite"]
    assert table.history()[0].version == done.version
    assert set(table.to_arrow(metadata=True)["_version"].to_pylist()) == {done.version}
    assert live_changes(table) == 0
    check(table)


def test_changes_after_an_overwrite_apply_on_top(lake: Lake) -> None:
    table = orders(lake)
    table.upsert(rows(range(3), "old"))
    done = table.overwrite(rows([1, 2], "batch"))
    table.upsert(rows([2, 7], "later"))
    table.delete(keys(1))
    table.insert(rows([1], "again"))

    assert statuses(table) == {1: "again", 2: "later", 7: "later"}
    assert statuses(table, version=done.version) == {1: "batch", 2: "batch"}
    check(table)


def test_an_overwrite_follows_the_sort_key_and_the_file_size(lake: Lake) -> None:
    """BAT-02: a batch follows the tree and the keys of the table."""
    for name, sort_by in {"a": "qty", "b": ()}.items():
        table = lake.create_table(
            f"shop.{name}",
            "order_id bigint, status string, amount decimal(12,2), qty int",
            primary_key="order_id",
            sort_by=sort_by,
            options={"target-file-size": "1", "initial-nodes": 2},
        )
        batch = pa.concat_tables([rows(range(n, 3000, 3), "x" * n, 9 - n) for n in range(3)])
        table.overwrite(batch)
        table.overwrite(batch)

        assert table.to_arrow().num_rows == 3000
        check(table)


def test_an_empty_frame_empties_the_table(lake: Lake) -> None:
    table = orders(lake)
    table.insert(rows([1]))
    table.upsert(rows([2]))

    done = table.overwrite(rows([]))

    assert (done.rows, done.files) == (0, 0)
    assert statuses(table) == {}
    assert table.history()[0].kind == "overwrite"
    check(table)
    table.upsert(rows([3]))
    table.insert(rows([1]))
    assert statuses(table) == {1: "new", 3: "new"}
    check(table)


def test_an_empty_table_can_be_overwritten(lake: Lake) -> None:
    table = orders(lake)

    table.overwrite(rows([]))
    done = table.overwrite(rows([1]))

    assert statuses(table) == {1: "new"}
    assert [entry.version for entry in table.history()] == [done.version, done.version - 1]
    check(table)


def test_a_key_twice_in_the_frame_is_refused(lake: Lake) -> None:
    table = orders(lake)
    table.insert(rows([1], "old"))

    with refused(lake, table, "order_id=2", "twice", "nothing was written"):
        table.overwrite(rows([2, 2]))

    assert statuses(table) == {1: "old"}


def test_a_table_without_a_key_is_replaced_whole_or_by_partition(lake: Lake) -> None:
    table = lake.create_table("shop.log", "line string, day int", partition_by="day")
    table.insert([{"line": "a", "day": 1}, {"line": "b", "day": 2}])
    with refused(lake, table, "no primary key", "change_version"):
        table.overwrite([{"line": "c", "day": 1}], change_version=0)

    second = table.overwrite([{"line": "c", "day": 1}, {"line": "c", "day": 1}], where="day = 1")
    assert sorted(table.to_arrow()["line"].to_pylist()) == ["b", "c", "c"]
    third = table.overwrite([{"line": "d", "day": 3}])

    assert table.to_arrow()["line"].to_pylist() == ["d"]
    assert sorted(table.to_arrow(version=second.version)["line"].to_pylist()) == ["b", "c", "c"]
    assert [entry.version for entry in table.history()] == [third.version, second.version, 1]
    with refused(lake, table, "overwrite()"):
        table.delete(pa.table({"day": [1]}))
    check(table)


def test_one_partition_is_replaced_and_the_others_stay(lake: Lake) -> None:
    """BAT-05: a day is written anew, while changes to other days wait as before."""
    table = by_day(lake)
    table.insert(pa.concat_tables([of_day("mon", [1, 2]), of_day("tue", [1, 2])]))
    table.upsert(pa.concat_tables([of_day("mon", [2, 3], "up"), of_day("tue", [2, 3], "up")]))

    done = table.overwrite(of_day("mon", [7], "batch"), where="day = 'mon'")

    rest = {("tue", 1): "new", ("tue", 2): "up", ("tue", 3): "up"}
    assert found(table) == {("mon", 7): "batch"} | rest
    assert table.history()[0].summary[OVERWROTE] == '[["mon"]]'
    assert len(found(table, version=done.version - 1)) == 6
    check(table)
    table.upsert(pa.concat_tables([of_day("mon", [7], "later"), of_day("tue", [1], "later")]))
    assert found(table) == rest | {("mon", 7): "later", ("tue", 1): "later"}
    check(table)


def test_a_partition_that_is_new_or_empty_can_be_replaced(lake: Lake) -> None:
    table = by_day(lake)
    table.upsert(of_day("mon", [1]))

    table.overwrite(of_day("tue", [1]), where="day = 'tue'")
    table.overwrite(of_day("mon", []), where="day = 'mon'")
    done = table.overwrite(of_day("mon", []), where="day = 'sun'")

    assert found(table) == {("tue", 1): "new"}
    assert kinds(table) == ["upsert", "overwrite", "overwrite"]
    assert (done.version, done.rows) == (table.history()[0].version, 0)
    check(table)


def test_a_partition_of_nulls_is_replaced_by_is_null(lake: Lake) -> None:
    table = orders(lake, partition_by="status", options={"locate": True})
    table.insert(pa.concat_tables([rows([1], "a"), nulls([2])]))

    with refused(lake, table, "outside where", "status=null"):
        table.overwrite(nulls([3]), where="status <> 'b'")
    table.overwrite(nulls([3, 4]), where="status is null")

    assert sorted(table.to_arrow()["order_id"].to_pylist()) == [1, 3, 4]
    check(table)


def nulls(ids: list[int]) -> pa.Table:
    frame = rows(ids)
    return frame.set_column(1, "status", pa.nulls(len(ids), pa.string()))


def test_a_condition_that_cuts_a_partition_is_refused(lake: Lake) -> None:
    table = lake.create_table(
        NAME,
        "id bigint, at timestamp_ntz",
        primary_key=["id", "at"],
        partition_by="day(at)",
    )
    noon = datetime(2026, 11, 1, 12)  # noqa: DTZ001 - the column has no zone
    table.insert([{"id": 1, "at": noon}])

    with refused(lake, table, "cuts", "at_day=2026-11-01", "borders"):
        table.overwrite([{"id": 2, "at": noon}], where="at >= '2026-11-01 06:00:00'")
    with refused(lake, table, "cuts", "at_day=2026-11-01"):
        table.overwrite([{"id": 2, "at": noon}], where="at >= '2026-11-01' and id = 1")
    table.overwrite(
        [{"id": 2, "at": noon}], where="at >= '2026-11-01' and at < '2026-11-02 00:00:00'"
    )

    assert table.to_arrow()["id"].to_pylist() == [2]
    check(table)


def test_rows_outside_the_condition_are_refused(lake: Lake) -> None:
    table = by_day(lake)
    table.insert(of_day("mon", [1]))

    with refused(lake, table, "outside where", "day=tue", "nothing was written"):
        table.overwrite(
            pa.concat_tables([of_day("mon", [1]), of_day("tue", [2])]), where="day = 'mon'"
        )

    assert found(table) == {("mon", 1): "new"}


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("day", ("day",)),
        ("nope = 1", ("nope",)),
        ("day = ", ("where",)),
        ("", ("where",)),
        ("upper(day) = 'MON'", ("upper",)),
        (7, ("condition",)),
    ],
)
def test_a_condition_that_cannot_be_judged_is_refused(
    lake: Lake, where: str, words: tuple[str, ...]
) -> None:
    table = by_day(lake)
    table.insert(of_day("mon", [1]))

    with refused(lake, table, *words):
        table.overwrite(of_day("mon", [1]), where=where)


def test_a_condition_needs_partitions(lake: Lake) -> None:
    table = orders(lake)

    with refused(lake, table, "no partitions", "leave where away"):
        table.overwrite(rows([1]), where="order_id = 1")


def test_a_key_that_lives_in_a_partition_that_stays_is_refused(lake: Lake) -> None:
    """KEY-06: one row a key over all partitions."""
    table = orders(lake, partition_by="status", options={"locate": True})
    table.insert(pa.concat_tables([rows([1, 2], "a"), rows([3], "b")]))
    table.upsert(rows([4], "b"))

    for taken in (3, 4):
        with refused(lake, table, f"order_id={taken}", "would live twice"):
            table.overwrite(rows([1, taken], "a"), where="status = 'a'")
    table.overwrite(rows([1, 9], "a"), where="status = 'a'")
    assert statuses(table) == {1: "a", 3: "b", 4: "b", 9: "a"}
    table.upsert(rows([3], "a"))
    table.overwrite(rows([3, 5], "a"), where="status = 'a'")
    assert statuses(table) == {3: "a", 4: "b", 5: "a"}
    table.overwrite(rows([3, 4], "c"))
    assert statuses(table) == {3: "c", 4: "c"}
    check(table)


def test_a_row_that_a_later_change_moved_stays_where_it_went(lake: Lake) -> None:
    """BAT-10, KUP-03: the frame holds the row where it was; the move stays on top."""
    table = orders(lake, partition_by="status", options={"locate": True})
    seen = table.upsert(pa.concat_tables([rows([1, 2], "a"), rows([3], "b")]))
    table.upsert(rows([1], "b"))
    table.upsert(rows([4], "c"))

    with refused(lake, table, "order_id=4", "would live twice"):
        table.overwrite(rows([1, 4], "a"), change_version=seen.version)
    with refused(lake, table, "order_id=4", "would live twice"):
        table.overwrite(rows([4], "a"), where="status = 'a'", change_version=seen.version)
    table.overwrite(rows([1, 5], "a"), where="status = 'a'", change_version=seen.version)

    assert statuses(table) == {1: "b", 3: "b", 4: "c", 5: "a"}
    check(table)


def test_changes_above_the_change_version_stay_on_top(lake: Lake) -> None:
    """BAT-09: the batch says which changes it holds already."""
    table = orders(lake)
    table.upsert(rows([1, 2], "first"))
    seen = table.upsert(rows([3], "seen"))
    table.upsert(rows([3, 4], "unseen"))
    table.delete(keys(1))

    done = table.overwrite(rows([1, 2, 3], "batch"), change_version=seen.version)

    assert statuses(table) == {2: "batch", 3: "unseen", 4: "unseen"}
    assert statuses(table, mode="base") == dict.fromkeys([1, 2, 3], "batch")
    assert table.history()[0].summary[CHANGE_VERSION] == str(seen.version)
    check(table)
    table.overwrite(rows([1], "now"), change_version=done.version)
    assert statuses(table) == {1: "now"}
    check(table)


def test_merged_changes_come_back_above_an_older_change_version(lake: Lake) -> None:
    """BAT-10: the mark goes back; what base had merged is taken from the history again."""
    table = orders(lake)
    table.insert(rows([1, 2, 3], "old"))
    seen = table.upsert(rows([1], "seen"))
    table.upsert(rows([2, 8], "merged"))
    last = table.delete(keys(3))
    merge(table, last.version)
    pending = table.upsert(rows([9], "pending"))
    before = statuses(table)
    assert (before, live_changes(table)) == (
        {1: "seen", 2: "merged", 8: "merged", 9: "pending"},
        pending.files,
    )

    table.overwrite(rows([1, 2, 3, 4], "batch"), change_version=seen.version)

    after = {1: "batch", 2: "merged", 4: "batch", 8: "merged", 9: "pending"}
    assert statuses(table) == after
    assert statuses(table, version=pending.version) == before
    versions = {
        row["order_id"]: row["_version"] for row in table.to_arrow(metadata=True).to_pylist()
    }
    assert versions[8] == last.version - 1
    check(table)
    table.upsert(rows([8], "later"))
    assert statuses(table) == after | {8: "later"}
    merge(table, table.history()[0].version)
    assert statuses(table) == after | {8: "later"}
    check(table)


def test_one_partition_goes_back_and_the_others_stay_merged(lake: Lake) -> None:
    """BAT-10: a mark below the watermark of the table, for some partitions alone."""
    table = by_day(lake)
    seen = table.upsert(pa.concat_tables([of_day("mon", [1], "a"), of_day("tue", [1], "a")]))
    table.upsert(pa.concat_tables([of_day("mon", [2], "b"), of_day("tue", [2], "b")]))
    last = table.delete(pa.concat_tables([day_keys("mon", 1), day_keys("tue", 1)]))
    merge(table, last.version)
    table.upsert(pa.concat_tables([of_day("mon", [3], "c"), of_day("tue", [3], "c")]))

    table.overwrite(
        of_day("mon", [1, 5], "batch"), where="day = 'mon'", change_version=seen.version
    )

    rest = {("tue", 2): "b", ("tue", 3): "c"}
    assert found(table) == {("mon", 2): "b", ("mon", 3): "c", ("mon", 5): "batch"} | rest
    check(table)
    table.overwrite(of_day("mon", [6], "now"), where="day = 'mon'")
    assert found(table) == {("mon", 6): "now"} | rest
    check(table)


def test_a_version_between_commits_and_before_all_is_a_place_on_the_line(lake: Lake) -> None:
    table = orders(lake)
    table.upsert(rows([1], "one"))
    table.upsert(rows([2], "two"))

    table.overwrite(rows([1, 2, 3], "batch"), change_version=0)

    assert statuses(table) == {1: "one", 2: "two", 3: "batch"}
    check(table)


@pytest.mark.parametrize("wrong", [-1, 3, True, "2", 2.0])
def test_a_change_version_off_the_line_is_refused(lake: Lake, wrong: object) -> None:
    table = orders(lake)
    table.upsert(rows([1]))
    table.upsert(rows([2]))

    with refused(lake, table, "change_version", str(wrong)):
        table.overwrite(rows([1]), change_version=wrong)  # type: ignore[arg-type]


def test_a_change_version_before_the_kept_history_is_refused(lake: Lake) -> None:
    """BAT-10: further back than the history is kept is a clear error."""
    table = orders(lake)
    for number in range(3):
        table.upsert(rows([number]))
    expire(lake, f"{NAME}__changes")

    with refused(lake, table, "change_version 1", "possible is 2"):
        table.overwrite(rows([7]), change_version=1)
    table.overwrite(rows([7]), change_version=2)

    assert statuses(table) == {2: "new", 7: "new"}
    check(table)


def test_a_batch_above_the_change_version_is_not_lost_in_silence(lake: Lake) -> None:
    table = by_day(lake)
    first = table.upsert(of_day("mon", [1]))
    batch = table.insert(of_day("tue", [1]))
    table.upsert(of_day("mon", [2]))

    with refused(lake, table, f"insert of version {batch.version}", f"of {batch.version} or above"):
        table.overwrite(of_day("mon", [1]), change_version=first.version)
    with refused(lake, table, f"insert of version {batch.version}"):
        table.overwrite(of_day("tue", [1]), where="day = 'tue'", change_version=0)
    done = table.overwrite(of_day("mon", [5]), where="day = 'mon'", change_version=first.version)
    assert found(table) == {("mon", 2): "new", ("mon", 5): "new", ("tue", 1): "new"}
    with refused(lake, table, f"overwrite of version {done.version}"):
        table.overwrite(of_day("mon", [1]), where="day = 'mon'", change_version=batch.version)
    table.overwrite(of_day("tue", [9]), where="day = 'tue'", change_version=batch.version)

    assert found(table) == {("mon", 2): "new", ("mon", 5): "new", ("tue", 9): "new"}
    check(table)


def test_a_deleted_key_that_came_back_as_a_change_stays_on_top(lake: Lake) -> None:
    """An insert that went through the change table is a change like any other."""
    table = orders(lake)
    table.insert(rows([1], "old"))
    gone = table.delete(keys(1))
    table.insert(rows([1, 2], "again"))

    table.overwrite(rows([1, 3], "batch"), change_version=gone.version)

    assert statuses(table) == {1: "again", 2: "again", 3: "batch"}
    check(table)


def overwrite_and_die(write: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Commit an overwrite into base, then end before the marker."""

    def die(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(iceberg, "mark", die)
        with pytest.raises(Killed):
            write()


def test_an_overwrite_without_its_marker_is_invisible_until_the_next_writer(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BAT-08: a dead job holds nothing; whoever comes next finishes its overwrite."""
    table = orders(lake)
    table.insert(rows([1, 2], "old"))
    seen = table.upsert(rows([2], "seen"))
    table.upsert(rows([3], "unseen"))
    before = statuses(table)

    overwrite_and_die(
        lambda: table.overwrite(rows([2, 4], "batch"), change_version=seen.version), monkeypatch
    )
    assert statuses(table) == before
    assert statuses(table, mode="base") == {1: "old", 2: "old"}
    table.upsert(rows([9], "next"))

    assert statuses(table) == {2: "batch", 3: "unseen", 4: "batch", 9: "next"}
    assert kinds(table) == ["insert", "upsert", "upsert", "overwrite", "upsert"]
    dead = table.history()[1]
    assert (dead.rows, dead.summary[CHANGE_VERSION]) == (2, str(seen.version))
    assert statuses(table, version=dead.version) == {2: "batch", 3: "unseen", 4: "batch"}
    check(table)


def test_a_dead_overwrite_of_a_partition_brings_merged_changes_back(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = by_day(lake)
    seen = table.upsert(pa.concat_tables([of_day("mon", [1]), of_day("tue", [1])]))
    last = table.upsert(pa.concat_tables([of_day("mon", [2]), of_day("tue", [2])]))
    merge(table, last.version)

    overwrite_and_die(
        lambda: table.overwrite(
            of_day("mon", [1, 2], "batch"), where="day = 'mon'", change_version=seen.version
        ),
        monkeypatch,
    )
    assert len(found(table)) == 4
    table.overwrite(of_day("tue", [9]), where="day = 'tue'")

    assert found(table) == {("mon", 1): "batch", ("mon", 2): "new", ("tue", 9): "new"}
    check(table)


def test_a_job_that_dies_before_its_commit_leaves_the_table_as_it_was(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BAT-08: there is no lock that a dead job could hold."""
    table = orders(lake)
    table.insert(rows([1], "old"))
    known, files = snapshots(table), data_files(lake)

    def die(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(overwriting, "overwrite_base", die)
        with pytest.raises(Killed):
            table.overwrite(rows([2], "dead"))

    assert data_files(lake) > files
    assert snapshots(table) == known
    assert statuses(table) == {1: "old"}
    table.upsert(rows([3]))
    table.overwrite(rows([4]))
    assert statuses(table) == {4: "new"}
    check(table)


def test_a_change_between_base_commit_and_marker_stays_on_top(
    lake: Lake, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = orders(lake)
    table.upsert(rows([1, 2], "old"))
    other = Lake.open(str(warehouse)).table(NAME)
    mark, mark_all = iceberg.mark, iceberg.mark_all

    def mark_late(*given: object, **named: object) -> object:
        with monkeypatch.context() as patch:  # a writer that looked for markers just before
            patch.setattr(iceberg, "mark_all", lambda _: None)
            other.upsert(rows([2], "between"))
        return mark(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(iceberg, "mark", mark_late)
    done = table.overwrite(rows([1, 2, 3], "batch"))
    monkeypatch.undo()

    assert iceberg.mark_all is mark_all
    assert kinds(table) == ["upsert", "upsert", "overwrite"]
    assert statuses(table) == {1: "batch", 2: "between", 3: "batch"}
    assert statuses(table, version=done.version - 1) == {1: "old", 2: "between"}
    check(table)


def test_two_overwrites_at_once_are_both_in_the_history_and_the_later_wins(
    lake: Lake, warehouse: Path
) -> None:
    """BAT-06: an overwrite conflicts with nothing."""
    table = orders(lake)
    table.insert(rows(range(4), "old"))
    start = threading.Barrier(3)

    def write(writer: int) -> int:
        mine = Lake.open(str(warehouse)).table(NAME)
        start.wait()
        return mine.overwrite(rows([7, 100 + writer], f"w{writer}")).version

    with ThreadPoolExecutor(3) as pool:
        done = list(pool.map(write, range(3)))

    last = done.index(max(done))
    assert statuses(table) == {7: f"w{last}", 100 + last: f"w{last}"}
    assert kinds(table) == ["insert", *["overwrite"] * 3]
    assert sorted(done) == [entry.version for entry in reversed(table.history())][1:]
    for writer, version in enumerate(done):
        assert statuses(table, version=version)[7] == f"w{writer}"
    check(table)


def test_rows_that_another_engine_deleted_go_with_their_files(lake: Lake) -> None:
    table = orders(lake)
    table.insert(rows(range(10), "old"))
    lake.catalog.load_table(NAME).delete("order_id = 5")
    table.upsert(rows([1], "up"))

    table.overwrite(rows([5], "batch"))

    assert statuses(table) == {5: "batch"}
    check(table)
