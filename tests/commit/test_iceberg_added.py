"""What single snapshots added, on real tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from arcticlake import Lake
from arcticlake.commit.history import versions
from arcticlake.commit.iceberg_added import load_exchange, load_touched
from arcticlake.commit.iceberg_state import load_log, load_state
from arcticlake.commit.replacement import Exchange, Replacement
from arcticlake.lake import Table
from tests.commit.test_marks import expire
from tests.inspect.lab import opened_lake
from tests.verbs.shop import NAME, orders, rows


@pytest.fixture
def lake(warehouse: Path) -> Iterator[Lake]:
    with opened_lake(warehouse) as lake:
        yield lake


@pytest.fixture
def table(lake: Lake) -> Table:
    return orders(lake, partition_by="status", options={"locate": True, "initial-nodes": 1})


def exchange(table: Table, version: int, *partitions: str) -> Exchange:
    pair = table._opened.pair()
    assert pair.change is not None
    touched = frozenset((partition,) for partition in partitions)
    return load_exchange(pair.spec, pair.change, load_log(pair), Replacement(version, touched))


def touched_by(table: Table) -> list[frozenset[tuple[object, ...]] | None]:
    pair = table._opened.pair()
    known = versions(load_log(pair))
    return [load_touched(pair, version) for version in known if version.base_snapshot_id]


def test_pending_files_go_up_to_the_version_and_stay_above_it(table: Table) -> None:
    table.upsert(pa.concat_tables([rows([1], "a"), rows([2], "b")]))
    second = table.upsert(rows([3], "a"))
    live = load_state(table._opened.pair()).files.changes
    old = {f.path for f in live if f.partition == ("a",) and f.sequence < second.version}

    assert exchange(table, second.version, "a").removed > old
    assert exchange(table, second.version - 1, "a") == Exchange(removed=frozenset(old))
    assert exchange(table, 0, "a", "b") == Exchange()


def test_changes_that_an_overwrite_removed_are_found_in_the_commit_that_added_them(
    table: Table,
) -> None:
    """BAT-10: a marker that brings files back is no origin of them."""
    table.upsert(rows([1], "a"))
    second = table.upsert(rows([2], "a"))
    table.overwrite(rows([7], "a"), change_version=1)
    table.overwrite(rows([8], "a"))

    back = exchange(table, 1, "a")

    assert [file.sequence for file in back.added] == [second.version]
    assert not back.removed
    assert exchange(table, 1, "b") == Exchange()


def test_a_batch_touches_the_partitions_it_wrote_and_those_it_replaced(
    lake: Lake, table: Table
) -> None:
    table.insert(pa.concat_tables([rows([1], "a"), rows([2], "b")]))
    table.overwrite(rows([3], "c"), where="status in ('b', 'c')")
    table.overwrite(rows([4], "d"))
    table.insert(rows([5], "e"))
    lake.catalog.load_table(NAME).delete("status = 'e'")
    table.upsert(rows([6], "f"))

    assert touched_by(table) == [
        {("a",), ("b",)},
        {("b",), ("c",)},
        None,
        {("e",)},
        {("e",)},
    ]


def test_a_batch_whose_base_snapshot_has_expired_may_have_touched_all(
    lake: Lake, table: Table
) -> None:
    table.insert(rows([1], "a"))
    table.insert(rows([2], "b"))

    expire(lake, NAME)

    assert touched_by(table) == [None, {("b",)}]
