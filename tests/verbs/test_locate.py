"""Rows that move between partitions: one row a key, wherever it stood before (KUP-03)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest

from arcticlake import Lake
from arcticlake.lake import Table
from tests.verbs.shop import (
    change_of,
    data_files,
    keys,
    orders,
    partition_paths,
    rows,
    statuses,
)

NAME = "shop.visits"


def visits(lake: Lake, **settings: object) -> Table:
    """Create a table that is partitioned by the day of a column that is not in its key."""
    settings.setdefault("options", {"locate": True})
    return lake.create_table(
        NAME,
        "id bigint, at timestamp_ntz, n int",
        primary_key="id",
        partition_by="day(at)",
        **settings,  # type: ignore[arg-type]
    )


def visit(*given: tuple[int, datetime | None, int]) -> pa.Table:
    ids, moments, numbers = zip(*given, strict=True)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "at": pa.array(moments, pa.timestamp("us")),
            "n": pa.array(numbers, pa.int32()),
        }
    )


def day(number: int, hour: int = 0) -> datetime:
    return datetime(2026, 3, number, hour)  # noqa: DTZ001 - timestamps without a zone


def found(table: Table, **request: object) -> dict[int, tuple[datetime | None, int]]:
    read = table.to_arrow(**request).to_pylist()  # type: ignore[arg-type]
    by_id = {row["id"]: (row["at"], row["n"]) for row in read}
    assert len(by_id) == len(read), "a key comes twice"
    return by_id


@pytest.mark.parametrize("first", ["insert", "upsert"])
def test_a_row_that_moves_leaves_its_old_partition(lake: Lake, first: str) -> None:
    """KUP-03: the update is split into a delete there and an insert here, in one commit."""
    table = visits(lake)
    getattr(table, first)(visit((1, day(1), 1), (2, day(1), 1)))

    done = table.upsert(visit((1, day(2), 2)))

    assert found(table) == {1: (day(2), 2), 2: (day(1), 1)}
    assert found(table, where="at < timestamp_ntz '2026-03-02 00:00:00'") == {2: (day(1), 1)}
    assert done.rows == 2
    assert found(table, version=done.version - 1) == {1: (day(1), 1), 2: (day(1), 1)}


def test_the_first_upsert_into_an_empty_table_finds_nothing_to_move(lake: Lake) -> None:
    table = visits(lake)

    assert table.upsert(visit((1, day(1), 1), (2, None, 2))).rows == 2
    assert found(table) == {1: (day(1), 1), 2: (None, 2)}


def test_an_update_inside_its_partition_needs_no_delete(lake: Lake) -> None:
    table = visits(lake)
    table.insert(visit((1, day(1, 8), 1)))

    done = table.upsert(visit((1, day(1, 20), 2)))

    assert done.rows == 1
    assert found(table) == {1: (day(1, 20), 2)}


def test_versions_of_a_key_inside_one_batch_cross_partitions_in_order(lake: Lake) -> None:
    table = visits(lake)
    table.insert(visit((1, day(3), 0), (2, day(1), 0)))
    batch = visit(
        (1, day(2), 2),
        (1, day(1), 1),
        (1, day(3), 3),
        (2, day(1, 5), 4),
        (2, day(1, 6), 5),
        (2, day(1, 7), 6),
    )

    table.upsert(batch.append_column("lsn", pa.array([2, 1, 3, 1, 2, 3])), order_by="lsn")

    assert found(table) == {1: (day(3), 3), 2: (day(1, 7), 6)}


def test_neighbouring_orders_inside_one_partition_do_not_hide_the_newest(lake: Lake) -> None:
    """A delete for a step that stays in its partition would tie with the row it makes way for."""
    table = visits(lake)
    batch = visit(*((key, day(1, hour), hour) for key in range(20) for hour in range(3)))

    table.upsert(batch.append_column("lsn", pa.array([0, 1, 2] * 20)), order_by="lsn")

    assert found(table) == {key: (day(1, 2), 2) for key in range(20)}


def test_a_move_into_and_out_of_the_null_partition_is_a_move(lake: Lake) -> None:
    table = visits(lake)
    table.upsert(visit((1, None, 1), (2, day(1), 1)))

    table.upsert(visit((1, day(1), 2), (2, None, 2)))

    assert found(table) == {1: (day(1), 2), 2: (None, 2)}


def test_a_delete_by_key_alone_finds_the_partition_of_its_row(lake: Lake) -> None:
    table = visits(lake, options={})
    table.insert(visit((1, day(1), 1), (2, day(2), 2), (3, day(3), 3)))

    done = table.delete(pa.table({"id": [1, 3, 99]}))

    assert done.rows == 2
    assert found(table) == {2: (day(2), 2)}
    assert table.delete(pa.table({"id": [99]})).version == done.version


def test_a_delete_that_brings_the_partition_column_needs_no_look_up(lake: Lake) -> None:
    table = visits(lake, options={})
    table.insert(visit((1, day(1), 1), (2, day(2), 2)))

    table.delete(visit((1, day(1, 9), 0)))

    assert found(table) == {2: (day(2), 2)}


def test_delete_when_reaches_a_row_in_another_partition(lake: Lake) -> None:
    table = visits(lake)
    table.insert(visit((1, day(1), 1), (2, day(2), 2)))
    batch = visit((1, day(9), 0), (2, None, 0)).append_column("op", pa.array(["D", "D"]))

    table.upsert(batch, delete_when="op = 'D'")

    assert found(table) == {}


def test_locate_may_be_asked_for_in_the_call(lake: Lake) -> None:
    table = orders(lake, partition_by=["status", "truncate(order_id, 10)"])
    table.upsert(rows(range(20), "open"), locate=True)
    table.upsert(rows(range(5, 15), "done"), locate=True)

    assert statuses(table) == {
        number: "done" if 5 <= number < 15 else "open" for number in range(20)
    }
    table.delete(keys(5, 6))
    assert 5 not in statuses(table)
    assert statuses(table, where="status = 'done'").keys() == set(range(7, 15))


def test_every_partition_is_a_folder_of_its_own(lake: Lake) -> None:
    """KEY-02, also for values with odd characters."""
    table = orders(lake, partition_by="status", options={"locate": True, "initial-nodes": 1})
    odd = ["a b", "x/y", "ü😀", "50%", "a=b", "#?", "", "null"]
    for number, status in enumerate(odd):
        table.upsert(rows([number], status))
    table.upsert(rows([99]).set_column(1, "status", pa.nulls(1, pa.string())))

    assert statuses(table) == {**dict(enumerate(odd)), 99: None}
    folders = [path.parent.parent for path in data_files(lake)]
    assert len(folders) == len(set(folders)) or {"status=null"} == {
        folder.name for folder in folders if folders.count(folder) > 1
    }
    assert change_of(table).scan().to_arrow().num_rows == len(odd) + 1


def test_writers_at_once_that_move_one_key_leave_one_row(lake: Lake, warehouse: Path) -> None:
    """KUP-03: a look-up that another commit has overtaken is repeated."""
    table = visits(lake)
    table.upsert(visit((1, day(1), 0)))

    def write(writer: int) -> int:
        mine = Lake.open(str(warehouse)).table(NAME)
        return max(
            mine.upsert(visit((1, day(2 + writer * 4 + number), writer))).version
            for number in range(3)
        )

    with ThreadPoolExecutor(3) as pool:
        newest = list(pool.map(write, range(3)))

    assert [n for _, n in found(table).values()] == [newest.index(max(newest))]
    assert len(partition_paths(table)) == len(data_files(lake))
