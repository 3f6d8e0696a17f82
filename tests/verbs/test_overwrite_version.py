"""overwrite for a change version: which changes stay on top, also after crashes and races."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from arcticlake import Lake
from arcticlake.commit.history import CHANGE_VERSION
from arcticlake.ingest import iceberg
from arcticlake.verbs import overwrite as overwriting
from tests.commit.test_marks import expire
from tests.verbs.days import by_day, check, day_keys, found, kinds, live_changes, of_day
from tests.verbs.shop import (
    NAME,
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
    table.compact(kind="major")
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
    table.compact(kind="major")
    assert statuses(table) == after | {8: "later"}
    check(table)


@pytest.mark.parametrize("kind", ["minor", "major", "full"])
def test_every_kind_of_compaction_gives_its_changes_back_and_takes_them_again(
    lake: Lake, kind: str
) -> None:
    """BAT-10: the originals come back, and re-merging them is safe."""
    table = orders(lake, options={"initial-nodes": 2})
    table.insert(rows(range(6), "old"))
    seen = table.upsert(rows([1], "seen"))
    table.upsert(rows([2, 8], "two"))
    table.upsert(rows([2, 7], "three"))
    table.delete(keys(3))
    table.compact(kind=kind)

    done = table.overwrite(rows([1, 2, 3, 4], "batch"), change_version=seen.version)

    after = {1: "batch", 2: "three", 4: "batch", 7: "three", 8: "two"}
    assert statuses(table) == after
    check(table)
    for again in ("minor", "major", "full"):
        table.compact(kind=again)
        assert statuses(table) == statuses(table, version=done.version) == after
        check(table)


def test_one_partition_goes_back_and_the_others_stay_merged(lake: Lake) -> None:
    """BAT-10: a mark below the watermark of the table, for some partitions alone."""
    table = by_day(lake)
    seen = table.upsert(pa.concat_tables([of_day("mon", [1], "a"), of_day("tue", [1], "a")]))
    table.upsert(pa.concat_tables([of_day("mon", [2], "b"), of_day("tue", [2], "b")]))
    table.delete(pa.concat_tables([day_keys("mon", 1), day_keys("tue", 1)]))
    table.compact(kind="major")
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
    table.upsert(pa.concat_tables([of_day("mon", [2]), of_day("tue", [2])]))
    table.compact(kind="major")

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
