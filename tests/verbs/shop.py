"""The table that the tests of the verbs write to, and what they look at beside its rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.table import Table as IcebergTable

from arcticlake import Lake
from arcticlake.errors import InvalidRequest
from arcticlake.lake import Table

ORDERS = "order_id bigint, status string, amount decimal(12,2), qty int"
NAME = "shop.orders"


def orders(lake: Lake, **settings: object) -> Table:
    """Create the table of orders."""
    given: dict[str, object] = {"primary_key": "order_id"} | settings
    return lake.create_table(NAME, ORDERS, **given)  # type: ignore[arg-type]


def rows(ids: Iterable[int], status: str = "new", qty: int | None = 1) -> pa.Table:
    """Return orders with these ids."""
    numbers = list(ids)
    return pa.table(
        {
            "order_id": pa.array(numbers, pa.int64()),
            "status": pa.array([status] * len(numbers), pa.string()),
            "amount": pa.array([Decimal("1.50")] * len(numbers), pa.decimal128(12, 2)),
            "qty": pa.array([qty] * len(numbers), pa.int32()),
        }
    )


def changed(column: str, values: list[object], kind: pa.DataType | None = None) -> pa.Table:
    """Return two orders, one column replaced."""
    table = rows([1, 2])
    return table.set_column(
        table.column_names.index(column), column, pa.array(values, kind or pa.infer_type(values))
    )


def keys(*ids: int) -> pa.Table:
    """Return a frame of keys."""
    return pa.table({"order_id": pa.array(ids, pa.int64())})


def statuses(table: Table, **request: object) -> dict[int, str]:
    """Read ids and statuses; a key that comes twice is an error."""
    request = {"columns": ["order_id", "status"]} | request
    found = table.to_arrow(**request).to_pylist()  # type: ignore[arg-type]
    by_id = {row["order_id"]: row["status"] for row in found}
    assert len(by_id) == len(found), "a key comes twice"
    return by_id


def base_of(table: Table) -> IcebergTable:
    return table._opened.pair().base


def change_of(table: Table) -> IcebergTable:
    change = table._opened.pair().change
    assert change is not None
    return change


def data_files(lake: Lake) -> set[Path]:
    """Every Parquet file of the warehouse."""
    warehouse = Path(lake.catalog.properties["warehouse"])
    return set(warehouse.rglob("*.parquet"))


def snapshots(table: Table) -> list[int]:
    """Ids of all snapshots of both Iceberg tables."""
    pair = table._opened.pair()
    both = [pair.base, *([pair.change] if pair.change else [])]
    return [snapshot.snapshot_id for one in both for snapshot in one.metadata.snapshots]


@contextmanager
def refused(lake: Lake, table: Table, *words: str) -> Iterator[None]:
    """Expect InvalidRequest that names the table and all words, and that leaves nothing behind."""
    files, versions = data_files(lake), snapshots(table)
    with pytest.raises(InvalidRequest) as caught:
        yield
    for word in (table.name, *words):
        assert word in caught.value.message, caught.value.message
    assert data_files(lake) == files, "a refused write left data files"
    assert snapshots(table) == versions, "a refused write left a snapshot"


def partition_paths(table: Table) -> Mapping[str, int]:
    """Live change and base files by path, with their rows."""
    found = {}
    pair = table._opened.pair()
    for one in filter(None, (pair.base, pair.change)):
        for task in one.scan().plan_files():
            found[task.file.file_path] = task.file.record_count
    return found
