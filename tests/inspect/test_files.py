from __future__ import annotations

from datetime import date

import pyarrow as pa

from arcticlake import Lake, Table
from tests.inspect.lab import append_as_stranger, orders

COLUMNS = {
    "path",
    "role",
    "partition",
    "mask",
    "index",
    "rows",
    "bytes",
    "min_key",
    "max_key",
    "min_sort",
    "max_sort",
    "version",
}


def test_every_live_file_is_one_row_with_all_columns(table: Table) -> None:
    table.insert(orders(range(20)))
    table.upsert(orders(range(10, 30)))

    files = table.files()

    assert all(set(file) == COLUMNS for file in files)
    assert [(f["role"], f["mask"], f["index"], f["version"]) for f in files] == [
        ("base", 1, 0, 1),
        ("change", 1, 0, 2),
        ("base", 1, 1, 1),
        ("change", 1, 1, 2),
    ]
    base = [file for file in files if file["role"] == "base"]
    assert sum(int(str(file["rows"])) for file in base) == 20
    assert min(int(str(file["min_key"])) for file in base) == 0
    assert max(int(str(file["max_key"])) for file in base) == 19
    assert all(file["min_sort"] is None for file in files)


def test_bounds_have_the_types_of_their_columns_and_several_are_a_tuple(lake: Lake) -> None:
    table = lake.create_table(
        "shop.visits",
        "id bigint, day date, v double",
        primary_key=["id", "day"],
        partition_by="day",
        sort_by="v",
        options={"initial-nodes": 1},
    )
    table.insert(pa.table({"id": [1, 2], "day": [date(2026, 1, 2)] * 2, "v": [0.5, 0.25]}))

    (file,) = table.files()

    assert file["partition"] == {"day": "2026-01-02"}
    assert (file["min_key"], file["max_key"]) == ((1, date(2026, 1, 2)), (2, date(2026, 1, 2)))
    assert (file["min_sort"], file["max_sort"]) == (0.25, 0.5)


def test_rows_of_another_engine_have_no_version_until_a_writer_marks_them(
    lake: Lake, table: Table
) -> None:
    table.insert(orders([1]))
    append_as_stranger(lake, orders([2]))

    assert {file["version"] for file in table.files()} == {1, None}

    table.upsert(orders([3]))
    assert {file["version"] for file in table.files()} == {1, 2, 3}
