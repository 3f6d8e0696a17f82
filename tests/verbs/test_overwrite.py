"""overwrite: the whole table or whole partitions, and nothing else."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa
import pytest

from arcticlake import Lake
from arcticlake.commit.history import OVERWROTE
from tests.verbs.days import by_day, check, found, kinds, live_changes, of_day
from tests.verbs.shop import (
    NAME,
    keys,
    orders,
    refused,
    rows,
    statuses,
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


def test_rows_that_another_engine_deleted_go_with_their_files(lake: Lake) -> None:
    table = orders(lake)
    table.insert(rows(range(10), "old"))
    lake.catalog.load_table(NAME).delete("order_id = 5")
    table.upsert(rows([1], "up"))

    table.overwrite(rows([5], "batch"))

    assert statuses(table) == {5: "batch"}
    check(table)
