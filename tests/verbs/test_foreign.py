"""What another engine does to base, through plain pyiceberg: honoured, versioned or refused."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat

from arcticlake import Lake, Table
from arcticlake.commit.change import Operation, SnapshotChange
from arcticlake.commit.history import COMMIT_ID, Log, SnapshotFact, plan_view
from arcticlake.commit.iceberg import live_deletes, live_entries, send_snapshot, stage_snapshot
from arcticlake.errors import CorruptData
from tests.compact.lab import start


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


def delete_as_stranger(lake: Lake, *keys: int) -> None:
    """Delete rows of base by position, in a delete file, as Spark does."""
    table = lake.catalog.load_table("a.b")
    snapshot = table.current_snapshot()
    added = []
    for entry in live_entries(table, snapshot):
        path = entry.data_file.file_path
        found = pq.read_table(path, partitioning=None)["id"].to_pylist()
        positions = [n for n, key in enumerate(found) if key in keys]
        if positions:
            rows = pa.table({"file_path": [path] * len(positions), "pos": positions})
            pq.write_table(rows, f"{path}.deletes")
            delete = DataFile.from_args(
                content=DataFileContent.POSITION_DELETES,
                file_path=f"{path}.deletes",
                file_format=FileFormat.PARQUET,
                partition=entry.data_file.partition,
                record_count=len(positions),
                file_size_in_bytes=Path(f"{path}.deletes").stat().st_size,
            )
            delete.spec_id = entry.data_file.spec_id
            added.append(delete)
    staged = stage_snapshot(table, SnapshotChange(Operation.DELETE, added=tuple(added)), "x")
    assert staged.snapshot.summary is not None
    del staged.snapshot.summary.additional_properties[COMMIT_ID]
    send_snapshot(table, staged)


@pytest.mark.parametrize("kind", ["major", "full", "auto"])
def test_rows_that_another_engine_deleted_do_not_come_back_by_a_compaction(
    lake: Lake, table: Table, kind: str
) -> None:
    table.insert(rows(*range(10)))
    table.upsert(rows(3, 20))
    delete_as_stranger(lake, 1, 2, 3)

    assert ids(table) == [0, 3, 4, 5, 6, 7, 8, 9, 20]
    assert table.compact(kind).kind in {"major", "full"}

    assert ids(table) == [0, 3, 4, 5, 6, 7, 8, 9, 20]
    assert sorted(table.to_arrow(mode="base")["id"].to_pylist()) == ids(table)
    head = lake.catalog.load_table("a.b")
    assert live_deletes(head, head.current_snapshot()) == []
    assert table.verify().ok


def test_rows_deleted_by_another_engine_during_a_compaction_stay_deleted(
    lake: Lake, table: Table
) -> None:
    """A rewrite that did not see the deletes gives up."""
    table.insert(rows(*range(10)))
    table.upsert(rows(3))
    under_way = start(table)
    delete_as_stranger(lake, 1, 2)

    landing = under_way.commit()

    assert list(landing.lost.values()) == ["another engine deleted rows of its input files"]
    assert ids(table) == [0, 3, 4, 5, 6, 7, 8, 9]
    table.compact("major")
    assert ids(table) == [0, 3, 4, 5, 6, 7, 8, 9]
