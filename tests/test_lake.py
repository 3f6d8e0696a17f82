from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from arcticlake import Lake
from arcticlake.errors import InvalidRequest, NotFound


def test_a_table_is_created_listed_opened_and_dropped(lake: Lake, warehouse: Path) -> None:
    table = lake.create_table("shop.orders", "id bigint, v string", primary_key="id")
    lake.create_table("other.log", "line string")
    table.upsert([{"id": 1, "v": "x"}])

    again = Lake.open(str(warehouse))
    assert again.tables() == ["other.log", "shop.orders"]
    assert again.table("shop.orders").to_arrow().to_pylist() == [{"id": 1, "v": "x"}]
    again.drop_table("shop.orders")
    assert lake.tables() == ["other.log"]
    with pytest.raises(NotFound, match=r"shop\.orders"):
        lake.table("shop.orders")


def test_a_table_that_exists_is_kept_when_asked_so(lake: Lake) -> None:
    first = lake.create_table("shop.orders", "id bigint", primary_key="id")
    first.upsert([{"id": 1}])

    again = lake.create_table("shop.orders", "id bigint", primary_key=["id"], if_not_exists=True)

    assert again.to_arrow().num_rows == 1
    with pytest.raises(InvalidRequest, match="exists already"):
        lake.create_table("shop.orders", "id bigint", primary_key="id")


def test_a_schema_may_come_from_pyiceberg_and_nothing_else_is_guessed(lake: Lake) -> None:
    schema = Schema(
        NestedField(10, "id", LongType(), required=True),
        NestedField(20, "v", StringType(), required=False),
    )

    table = lake.create_table("shop.orders", schema, primary_key="id")

    assert table.to_arrow().column_names == ["id", "v"]
    assert table.name == "shop.orders"
    with pytest.raises(InvalidRequest, match=r"shop\.x: a schema is .* not int"):
        lake.create_table("shop.x", 7)  # type: ignore[arg-type]


def test_a_dropped_table_leaves_its_files_unless_they_are_purged(
    lake: Lake, warehouse: Path
) -> None:
    for purge, left in ((False, True), (True, False)):
        name = f"shop.t{int(purge)}"
        lake.create_table(name, "id bigint", primary_key="id").upsert([{"id": 1}])
        lake.drop_table(name, purge=purge)
        kept = [path for path in warehouse.rglob("*.parquet") if f"t{int(purge)}" in str(path)]
        assert bool(kept) is left
