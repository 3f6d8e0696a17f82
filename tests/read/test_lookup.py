from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from arcticlake import Lake
from arcticlake.lake import Table
from arcticlake.read.lookup import Lookup, find_rows, first_met
from arcticlake.tree.hash import key_hash
from arcticlake.tree.node import Node
from arcticlake.verbs.opened import lookup_in
from tests.verbs.shop import keys, orders, rows


@pytest.fixture
def table(warehouse: Path) -> Iterator[Table]:
    lake = Lake.open(str(warehouse))
    yield orders(lake)
    assert isinstance(lake.catalog, SqlCatalog)
    lake.catalog.close()


def lookup(table: Table) -> Lookup:
    return lookup_in(table._opened.state())


def found(table: Table, *ids: int) -> dict[int, str]:
    wanted = pl.DataFrame({"order_id": pl.Series(ids, dtype=pl.Int64)})
    return dict(find_rows(lookup(table), wanted, ["status"]).iter_rows())


def test_only_live_rows_of_the_asked_keys_are_found(table: Table) -> None:
    table.insert(rows(range(50)))
    table.upsert(rows([3, 60], "upd"))
    table.delete(keys(4))

    assert found(table, 3, 4, 5, 60, 99) == {3: "upd", 5: "new", 60: "upd"}
    assert found(table) == {}


def test_an_empty_table_answers_with_the_columns_asked_for(table: Table) -> None:
    answer = find_rows(lookup(table), pl.DataFrame({"order_id": [1]}), ["status"])

    assert answer.columns == ["order_id", "status"]
    assert answer.height == 0


def test_keys_of_other_nodes_open_no_file(table: Table, warehouse: Path) -> None:
    """IDX-12: a look-up reads the files of its nodes only."""
    table.insert(rows([44]))
    for path in warehouse.rglob("*.parquet"):
        path.unlink()
    elsewhere = next(n for n in range(100) if not _node_of(table).holds(_hash(n)))

    assert found(table, elsewhere) == {}


def _node_of(table: Table) -> Node:
    return table._opened.state().files.bases[0].node


def _hash(number: int) -> int:
    return int(key_hash(pa.array([number], pa.int64()))[0])


def test_a_written_key_that_exists_is_named(table: Table) -> None:
    table.insert(rows([1, 2, 3]))
    table.delete(keys(2))
    state = table._opened.state()
    mine = [(f.path, f.partition, f.node) for f in state.files.bases]

    met = first_met(lookup(table), mine)
    table.delete(keys(1, 3))
    held = first_met(lookup(table), mine)

    assert met is not None
    assert met.key.startswith("order_id=")
    assert met.live
    assert held is not None
    assert not held.live
