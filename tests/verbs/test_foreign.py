"""What another engine does to base, through plain pyiceberg: honoured, versioned or refused."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from arcticlake import Lake, Table
from arcticlake.commit.history import Log, SnapshotFact, plan_view
from arcticlake.errors import CorruptData


@pytest.fixture
def lake(warehouse: Path) -> Lake:
    """A lake without Spark."""
    return Lake.open(str(warehouse))


@pytest.fixture
def table(lake: Lake) -> Table:
    """One leaf, so that rewrites touch what they are meant to touch."""
    return lake.create_table("a.b", "id bigint", primary_key="id", options={"initial-nodes": 1})


def ids(table: Table) -> list[int]:
    """Return the live keys."""
    return sorted(table.to_arrow().column("id").to_pylist())


def rows(*keys: int) -> list[dict[str, int]]:
    """Return rows with these keys."""
    return [{"id": key} for key in keys]


def test_a_foreign_append_is_read_at_once_and_gets_its_version_from_the_next_writer(
    lake: Lake, table: Table
) -> None:
    table.insert(rows(1))
    table.delete(rows(5))
    required = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    lake.catalog.load_table("a.b").append(pa.table({"id": [5, 6]}, schema=required))

    seen = ids(table)
    table.upsert(rows(9))

    assert seen == [1, 5, 6]
    assert ids(table) == [1, 5, 6, 9]
    assert [entry.kind for entry in table.history()] == ["upsert", "insert", "delete", "insert"]
    assert table.to_arrow(version=2).num_rows == 1


def test_a_foreign_rewrite_keeps_the_place_of_the_rows_it_rewrote(lake: Lake, table: Table) -> None:
    """A delete from before an insert must not reach the row again after the rewrite."""
    table.insert(rows(1, 2))
    table.delete(rows(1))
    required = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    lake.catalog.load_table("a.b").append(pa.table({"id": [1, 3]}, schema=required))

    lake.catalog.load_table("a.b").delete("id = 3")

    assert ids(table) == [1, 2]
    assert table.verify().ok


def test_pending_changes_apply_on_top_of_a_foreign_rewrite(lake: Lake, table: Table) -> None:
    table.insert(rows(1, 2, 3))
    table.delete(rows(2))

    lake.catalog.load_table("a.b").delete("id = 3")

    assert ids(table) == [1]


def fact(number: int, kind: str, **more: object) -> SnapshotFact:
    """Return a snapshot of ours."""
    summary = {"arctic.commit-id": str(number), "arctic.kind": kind}
    if "base" in more:
        summary["arctic.base-snapshot"] = str(more["base"])
    return SnapshotFact(number, number, number, "append", 0, summary)


def test_a_rewrite_across_a_waiting_change_is_refused_with_the_way_back() -> None:
    """Rows from before and after the change now share a file."""
    foreign = SnapshotFact(3, 3, 3, "overwrite", 0, {}, replaced=frozenset({1, 2}))
    change = (fact(11, "insert", base=1), fact(12, "delete"), fact(13, "insert", base=2))
    base = (fact(1, "insert"), fact(2, "insert"), foreign)

    with pytest.raises(CorruptData, match="Roll the base table back"):
        plan_view(Log("a.b", base, change))
    plan_view(
        Log(
            "a.b",
            (*base[:2], SnapshotFact(3, 3, 3, "overwrite", 0, {}, replaced=frozenset({2}))),
            change,
        )
    )


def test_a_change_table_that_another_program_wrote_is_refused(lake: Lake, table: Table) -> None:
    table.upsert(rows(1))
    lake.catalog.load_table("a.b__changes").delete("id = 1")

    with pytest.raises(CorruptData, match="written by another program"):
        table.to_arrow()
