"""What expires takes no rows with it: marks keep versions and places of base snapshots."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from arcticlake import Lake, Table
from arcticlake.commit.marks import Mark, decode_marks, encode_mark
from arcticlake.errors import CorruptData, NotFound
from tests.inspect.lab import append_as_stranger, keys, opened_lake, orders, orders_table

NAME = "shop.orders"


@pytest.fixture
def lake(warehouse: Path) -> Iterator[Lake]:
    with opened_lake(warehouse) as lake:
        yield lake


@pytest.fixture
def table(lake: Lake) -> Table:
    return orders_table(lake)


def expire(lake: Lake, *names: str) -> None:
    """Expire every snapshot but the newest, as any Iceberg tool does."""
    for name in names:
        iceberg = lake.catalog.load_table(name)
        newest = iceberg.metadata.current_snapshot_id
        old = [s.snapshot_id for s in iceberg.metadata.snapshots if s.snapshot_id != newest]
        iceberg.maintenance.expire_snapshots().by_ids(old).commit()


def statuses(table: Table) -> dict[int, str]:
    found = table.to_arrow(columns=["id", "status"]).to_pylist()
    assert len({row["id"] for row in found}) == len(found), "a key comes twice"
    return {row["id"]: row["status"] for row in found}


def test_a_mark_survives_its_form_as_a_property() -> None:
    marks = {7: Mark(3, 9, 9), 8: Mark(4, 0, 9)}
    properties = encode_mark(7, marks[7]) | encode_mark(8, marks[8]) | {"arctic.role": "change"}

    assert decode_marks(properties) == marks


def test_a_mark_that_cannot_be_read_is_named() -> None:
    with pytest.raises(CorruptData, match=r"arctic\.base\.7"):
        decode_marks({"arctic.base.7": "3 9"})


@pytest.mark.parametrize("which", [("base",), ("change",), ("base", "change")])
def test_expired_snapshots_take_no_rows_with_them(
    lake: Lake, table: Table, which: tuple[str, ...]
) -> None:
    """The key that was deleted and inserted again stays; the deletes and updates stay too."""
    table.insert(orders(range(10)))
    table.upsert(orders([3, 50], "changed"))
    table.delete(keys(4, 50))
    table.insert(orders([50], "again"))
    table.upsert(orders([5], "changed"))
    table.insert(orders([60]))
    table.upsert(orders([6], "changed"))
    wanted = statuses(table)

    expire(lake, *(NAME if name == "base" else f"{NAME}__changes" for name in which))

    assert statuses(table) == wanted
    assert wanted[50] == "again-50"
    verdict = table.verify()
    assert verdict.ok, verdict
    versions = {entry.version for entry in table.history()}
    table.upsert(orders([7], "changed"))
    table.insert(orders([70]))
    assert statuses(table) == wanted | {7: "changed-7", 70: "new-70"}
    assert len({entry.version for entry in table.history()} - versions) == 2
    verdict = table.verify()
    assert verdict.ok, verdict


def test_rows_that_another_engine_rewrote_keep_their_place_after_expiry(
    lake: Lake, table: Table
) -> None:
    """The rewrite copied a row that came after a pending delete of its key."""
    table.upsert(orders(range(100), "gone"))
    table.delete(keys(*range(100)))
    table.insert(orders(range(100), "again"))
    lake.catalog.load_table(NAME).delete("id = 5")
    table.upsert(orders([500]))
    append_as_stranger(lake, orders([600]))
    table.upsert(orders([501]))
    wanted = statuses(table)

    expire(lake, NAME, f"{NAME}__changes")

    assert statuses(table) == wanted
    assert len(wanted) == 99 + 3
    assert table.verify().ok


def test_a_version_whose_base_has_expired_is_refused(lake: Lake, table: Table) -> None:
    table.insert(orders([1]))
    old = table.upsert(orders([2]))
    table.insert(orders([3]))
    assert table.to_arrow(version=old.version).num_rows == 2

    expire(lake, NAME)

    with pytest.raises(NotFound, match=rf"shop\.orders.*version {old.version}.*expired"):
        table.to_arrow(version=old.version)
    assert table.to_arrow().num_rows == 3
