"""What a write accepts, and what it refuses before anything is visible."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from arcticlake import Lake
from arcticlake.errors import InvalidRequest
from tests.verbs.shop import (
    NAME,
    change_of,
    changed,
    data_files,
    keys,
    orders,
    refused,
    rows,
    snapshots,
    statuses,
)

REFUSED: dict[str, tuple[pa.Table, tuple[str, ...]]] = {
    "a key twice without an order": (rows([1, 2, 1]), ("order_id=1", "order_by")),
    "a NULL key": (changed("order_id", [1, None], pa.int64()), ("NULL", "order_id")),
    "a missing column": (rows([1]).drop_columns(["qty"]), ("lack", "qty")),
    "an extra column with a near name": (
        rows([1]).rename_columns(["order_id", "statsu", "amount", "qty"]),
        ("statsu", "did you mean status?"),
    ),
    "an extra column with no near name": (
        rows([1]).append_column("zzz", pa.array([1])),
        ("zzz", "add_column"),
    ),
    "a column twice": (rows([1]).append_column("QTY", pa.array([1])), ("QTY", "twice")),
    "text for a number": (changed("qty", ["1", "2"]), ("qty", "string", "cast")),
    "a number for text": (changed("status", [1, 2]), ("status", "int64")),
    "a flag for a number": (changed("qty", [True, False]), ("qty", "bool")),
    "a time for a number": (changed("qty", [date(2026, 1, 1)] * 2), ("qty", "date")),
    "a long that an int cannot hold": (changed("qty", [1, 2**40]), ("qty", str(2**40))),
    "a fraction for a whole number": (changed("qty", [1.5, 2.0]), ("qty", "1.5")),
    "more digits than a decimal holds": (
        changed("amount", [Decimal("1.234"), Decimal("1.00")]),
        ("amount",),
    ),
}


@pytest.mark.parametrize("verb", ["upsert", "insert"])
@pytest.mark.parametrize(("bad", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_rows_that_break_a_rule_are_refused_before_anything_is_visible(
    lake: Lake, verb: str, bad: pa.Table, words: tuple[str, ...]
) -> None:
    table = orders(lake)
    table.upsert(rows([5], "old"))

    with refused(lake, table, *words):
        getattr(table, verb)(bad)

    assert statuses(table) == {5: "old"}


def test_two_rows_of_a_key_with_the_same_order_are_refused(lake: Lake) -> None:
    table = orders(lake)

    with refused(lake, table, "order_id=1", "equal"):
        table.upsert(rows([1, 1]).append_column("lsn", pa.array([7, 7])), order_by="lsn")


@pytest.mark.parametrize(
    ("lsn", "words"),
    [
        (pa.array([1, None]), ("order_by", "NULL")),
        (pa.array([1.0, 2.0]), ("order_by", "whole number")),
        (pa.array(["a", "b"]), ("order_by", "whole number")),
        (pa.array([1, 2**64 - 1], pa.uint64()), ("order_by", str(2**64 - 1))),
    ],
)
def test_an_order_that_is_no_plain_number_is_refused(
    lake: Lake, lsn: pa.Array, words: tuple[str, ...]
) -> None:
    table = orders(lake)

    with refused(lake, table, *words):
        table.upsert(rows([1, 2]).append_column("lsn", lsn), order_by="lsn")


@pytest.mark.parametrize(
    ("condition", "word"),
    [("nothing = 1", "nothing"), ("status =", "delete_when"), ("max(qty)", "row")],
)
def test_a_delete_when_that_cannot_be_judged_is_refused(
    lake: Lake, condition: str, word: str
) -> None:
    table = orders(lake)

    with refused(lake, table, "delete_when", word):
        table.upsert(rows([1, 2]), delete_when=condition)


def test_an_order_by_that_is_no_column_is_refused(lake: Lake) -> None:
    table = orders(lake)

    with refused(lake, table, "order_by", "lsn"):
        table.upsert(rows([1]), order_by="lsn")


def test_null_in_a_not_null_column_is_refused_but_a_delete_needs_no_value(lake: Lake) -> None:
    table = lake.create_table(NAME, "id bigint, v string not null", primary_key="id")
    table.insert([{"id": 1, "v": "x"}])
    empty = pa.table({"id": [1], "v": pa.nulls(1, pa.string())})

    for write in (table.upsert, table.insert):
        with refused(lake, table, "v", "NOT NULL"):
            write(empty)
    table.upsert(empty.append_column("op", pa.array(["D"])), delete_when="op = 'D'")

    assert table.to_arrow().num_rows == 0


def test_null_in_a_not_null_field_inside_a_struct_is_refused(lake: Lake) -> None:
    table = lake.create_table(NAME, "id bigint, s struct<a: int not null>", primary_key="id")
    table.upsert(pa.table({"id": [1, 2], "s": pa.array([{"a": 1}, None])}))
    table.insert(pa.table({"id": [3, 4], "s": pa.array([{"a": 1}, None])}))

    for write in (table.upsert, table.insert):
        with refused(lake, table, "s"):
            write(pa.table({"id": [9], "s": pa.array([{"a": None}], pa.struct({"a": pa.int32()}))}))

    found = {row["id"]: row["s"] for row in table.to_arrow().to_pylist()}
    assert found == {1: {"a": 1}, 2: None, 3: {"a": 1}, 4: None}


def test_an_unknown_option_is_refused_with_the_nearest_name(lake: Lake) -> None:
    with pytest.raises(InvalidRequest, match=r"shop\.orders.*did you mean target-file-size"):
        orders(lake, options={"target_file_sizes": "1MB"})

    assert lake.tables() == []


def test_a_key_that_exists_is_refused_by_insert(lake: Lake) -> None:
    """BAT-02: a batch brings new keys; replacing is what upsert is for."""
    table = orders(lake)
    table.upsert(rows([1], "change"))
    table.insert(rows([2], "base"))

    for taken in (1, 2):
        with refused(lake, table, f"order_id={taken}", "upsert()"):
            table.insert(rows([taken, 8]))
    table.delete(keys(1, 2))
    table.insert(rows([1, 2], "again"))

    assert statuses(table) == {1: "again", 2: "again"}


def test_an_upsert_that_may_move_rows_between_partitions_asks_for_locate(lake: Lake) -> None:
    """KUP-03: without the old partition a moved row would stand twice."""
    table = orders(lake, partition_by="status")

    with refused(lake, table, "status", "order_id", "locate=True"):
        table.upsert(rows([1]))
    table.insert(rows([1]))

    assert statuses(table) == {1: "new"}


def test_what_is_no_frame_is_refused(lake: Lake) -> None:
    table = orders(lake)

    for thing in (7, {"order_id": 1}, [1, 2], None):
        with refused(lake, table, "frame"):
            table.upsert(thing)


def test_a_list_of_dicts_with_an_unknown_name_in_a_later_row_is_refused(lake: Lake) -> None:
    table = lake.create_table(NAME, "id bigint, v int", primary_key="id")

    with refused(lake, table, "w"):
        table.upsert([{"id": 1, "v": 1}, {"id": 2, "v": 2, "w": 3}])
    with refused(lake, table):
        table.upsert([{"id": 1, "v": 1}, {"id": 2, "v": "x"}])
    table.upsert([{"id": 1, "v": 1}, {"id": 2}])

    assert sorted(table.to_arrow().to_pylist(), key=str) == [
        {"id": 1, "v": 1},
        {"id": 2, "v": None},
    ]


def test_the_order_decides_and_not_the_place_in_the_batch(lake: Lake) -> None:
    table = orders(lake)
    batch = pa.concat_tables([rows([1], "third"), rows([1], "first"), rows([1], "second")])

    done = table.upsert(batch.append_column("LSN", pa.array([30, -10, 20])), order_by="lsn")

    assert statuses(table) == {1: "third"}
    assert done.rows == 3
    assert table.to_arrow().column_names == ["order_id", "status", "amount", "qty"]


def test_a_later_commit_wins_whatever_its_order(lake: Lake) -> None:
    """Clocks and source positions order rows inside a commit only."""
    table = orders(lake)
    table.upsert(rows([1], "high").append_column("lsn", pa.array([1000])), order_by="lsn")
    table.upsert(rows([1], "low").append_column("lsn", pa.array([1])), order_by="lsn")

    assert statuses(table) == {1: "low"}


def test_delete_when_deletes_the_marked_rows_and_its_column_is_dropped(lake: Lake) -> None:
    """WOP-15: a delete flag in the input row."""
    table = orders(lake)
    table.insert(rows(range(4)))
    batch = rows(range(6), "upd").append_column("op", pa.array(["U", "D", None, "U", "D", "U"]))

    table.upsert(batch, delete_when="Op = 'D'")

    assert statuses(table) == {0: "upd", 2: "upd", 3: "upd", 5: "upd"}
    assert "op" not in change_of(table).schema().column_names


def test_a_name_inside_a_string_of_delete_when_is_no_column_to_drop(lake: Lake) -> None:
    table = orders(lake)
    batch = rows([1]).append_column("op", pa.array(["X"])).append_column("d", pa.array([1]))

    with refused(lake, table, "no column d"):
        table.upsert(batch, delete_when="op = 'D'")


def test_order_by_and_delete_when_may_use_columns_of_the_table(lake: Lake) -> None:
    table = orders(lake)
    batch = pa.concat_tables([rows([1], qty=1), rows([1], "gone", 2), rows([2], "gone", 1)])

    table.upsert(batch, order_by="QTY", delete_when="status = 'gone' and qty = 1")

    assert statuses(table) == {1: "gone"}


def test_names_are_matched_without_case_and_in_any_order(lake: Lake) -> None:
    table = orders(lake)
    batch = rows([1]).rename_columns(["ORDER_ID", "Status", "AMOUNT", "Qty"])

    table.upsert(batch.select(["Qty", "AMOUNT", "Status", "ORDER_ID"]))
    table.delete(pa.table({"Order_Id": [2]}))

    assert statuses(table) == {1: "new"}


def test_a_delete_needs_its_keys_only_and_takes_further_columns(lake: Lake) -> None:
    """WOP-13."""
    table = orders(lake)
    table.insert(rows(range(5)))

    table.delete(keys(0, 99))
    table.delete(rows([1], "whatever"))
    with refused(lake, table, "order_id"):
        table.delete(pa.table({"status": ["new"]}))
    with refused(lake, table, "NULL"):
        table.delete(pa.table({"order_id": pa.array([None], pa.int64())}))
    with refused(lake, table, "nope"):
        table.delete(pa.table({"order_id": [1], "nope": [1]}))

    assert sorted(statuses(table)) == [2, 3, 4]


def test_a_delete_by_condition_deletes_what_matches_now(lake: Lake) -> None:
    """WOP-17, WOP-18."""
    table = orders(lake)
    table.insert(rows(range(6), qty=1))
    table.upsert(rows([1, 2], "upd", 5))

    done = table.delete("qty = 5 or order_id = 4")

    assert done.rows == 3
    assert sorted(statuses(table)) == [0, 3, 5]
    assert table.delete("qty = 77").version == done.version


def test_an_empty_frame_makes_no_version(lake: Lake) -> None:
    table = orders(lake)
    first = table.upsert(rows([1]))
    before = snapshots(table), data_files(lake)

    for done in (table.upsert(rows([])), table.insert(rows([])), table.delete(keys())):
        assert (done.version, done.rows, done.files) == (first.version, 0, 0)

    assert (snapshots(table), data_files(lake)) == before


def test_versions_increase_strictly_over_all_kinds_of_writes(lake: Lake) -> None:
    table = orders(lake)

    versions = [
        table.insert(rows([1])).version,
        table.upsert(rows([2])).version,
        table.delete(keys(1)).version,
        table.insert(rows([3])).version,
        table.upsert(rows([2, 3])).version,
    ]

    assert versions == sorted(set(versions))


def test_a_table_without_a_key_takes_rows_as_they_come(lake: Lake) -> None:
    table = lake.create_table("shop.log", "line string, n int")

    table.insert([{"line": "a", "n": 1}, {"line": "a", "n": 1}])
    table.upsert([{"line": None, "n": None}])

    assert table.to_arrow().num_rows == 3
    for wrong in ({"order_by": "n"}, {"delete_when": "n = 1"}):
        with refused(lake, table, "no primary key"):
            table.upsert([{"line": "b", "n": 1}], **wrong)  # type: ignore[arg-type]
    with refused(lake, table, "no primary key"):
        table.delete(pa.table({"n": [1]}))


def test_a_table_that_is_not_there_says_what_to_do(lake: Lake) -> None:
    table = orders(lake)
    lake.drop_table(NAME)

    with pytest.raises(Exception, match=r"shop\.orders does not exist.*create_table"):
        table.upsert(rows([1]))


def test_a_deleted_key_that_is_inserted_again_stands_once_in_base(warehouse: Path) -> None:
    """Design §2: a plain reader of base sees one row a key, so it comes back as a change."""
    lake = Lake.open(str(warehouse))
    table = lake.create_table("a.b", "id bigint, v string", primary_key="id")
    table.insert([{"id": 1, "v": "old"}, {"id": 2, "v": "old"}])
    table.delete([{"id": 1}])

    done = table.insert([{"id": 1, "v": "new"}, {"id": 3, "v": "new"}])

    assert done.version == 3
    assert table.history()[0].kind == "insert"
    assert sorted(lake.catalog.load_table("a.b").scan().to_arrow()["id"].to_pylist()) == [1, 2]
    assert {row["id"]: row["v"] for row in table.to_arrow().to_pylist()} == {
        1: "new",
        2: "old",
        3: "new",
    }
    assert table.verify().ok
