"""Reads through Spark give the answer of `to_arrow`, in every mode and by every way to scan."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import Table as IcebergTable
from pyspark.sql import SparkSession

from arcticlake import Lake, Table
from arcticlake.errors import InvalidRequest, NotFound
from arcticlake.read import spark as read_spark
from arcticlake.spark import jvm_can_open
from arcticlake.verbs import read as reading

SCHEMA = "id bigint, city string, amount decimal(12,2), tags array<string>, note string"


def rows(ids: range, city: str, note: str) -> pa.Table:
    """Return rows of the test table."""
    return pa.table(
        {
            "id": pa.array(list(ids), pa.int64()),
            "city": pa.array([city] * len(ids)),
            "amount": pa.array([i % 7 for i in ids], pa.int64()),
            "tags": pa.array([[note, None] for _ in ids], pa.list_(pa.string())),
            "note": pa.array([note] * len(ids)),
        }
    )


@pytest.fixture
def table(spark: SparkSession, warehouse: Path) -> Table:
    """Two partitions, one of them with a name that paths must encode, and pending changes."""
    lake = Lake.open(str(warehouse), spark=spark)
    made = lake.create_table(
        "shop.orders", SCHEMA, primary_key=["id", "city"], partition_by=["city"]
    )
    made.insert(rows(range(100), "Zürich x/y %20", "base"))
    made.insert(rows(range(50), "Bern", "base"))
    made.upsert(rows(range(90, 120), "Zürich x/y %20", "changed"))
    made.delete(pa.table({"id": [0, 1, 95], "city": ["Zürich x/y %20"] * 3}))
    return made


def plain(frame: object) -> list[tuple[object, ...]]:
    """Return rows of an Arrow table or a DataFrame in one comparable form."""
    arrow = frame if isinstance(frame, pa.Table) else frame.toArrow()  # type: ignore[attr-defined]
    return sorted((tuple(map(str, row.values())) for row in arrow.to_pylist()), key=str)


@pytest.mark.parametrize("scan", ["jvm", "tasks"])
@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"mode": "base"},
        {"mode": "unmerged"},
        {"metadata": True},
        {"version": 2},
        {"version": 3, "metadata": True},
        {"columns": ["note", "ID"]},
        {"where": "id between 94 and 101"},
        {"where": "note = 'changed'", "columns": ["id"]},
        {"where": "note = 'base' and city = 'Zürich x/y %20'"},
    ],
    ids=str,
)
def test_spark_and_arrow_give_one_answer(table: Table, asked: dict[str, object], scan: str) -> None:
    """MOR-15, MOR-16, QRY-01, QRY-03, QRY-06: no reader leaves changes out."""
    table.set_options({"scan": scan})

    assert plain(table.to_arrow(**asked)) == plain(table.read(**asked))  # type: ignore[arg-type]


def test_a_frame_used_twice_in_one_query_keeps_its_filters_apart(table: Table) -> None:
    """The trap of Python data sources (finding 0.1 on Spark) must not come back."""
    frame = table.read()
    ten, eleven = frame.where("id = 10"), frame.where("id = 11")

    both = ten.unionAll(eleven).unionAll(frame.where("id = 95"))
    joined = frame.alias("a").join(frame.alias("b"), "id").where("a.id = 10 and b.city = 'Bern'")

    assert sorted(row.id for row in both.collect()) == [10, 10, 11, 11]
    assert joined.count() == 2
    assert frame.count() == 167


def test_a_frame_stays_at_its_version_while_the_table_moves_on(table: Table) -> None:
    frame = table.read()
    before = frame.count()
    table.delete("city = 'Bern'")

    assert before == frame.count()
    assert before - 50 == table.read().count()


def test_large_backlogs_are_resolved_by_spark_tasks(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = plain(table.to_arrow())
    monkeypatch.setattr(reading, "DRIVER_ROWS_MAX", 0)

    assert expected == plain(table.read())


def test_many_paths_give_the_same_answer_as_few(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = plain(table.to_arrow(metadata=True))
    monkeypatch.setattr(read_spark, "MANY_FILES", 0)

    assert plain(table.read(metadata=True)) == expected


def test_an_unreadable_store_is_seen_before_the_scan(spark: SparkSession) -> None:
    """A plain pip install has no object-store connector in the JVM."""
    assert not jvm_can_open(spark, "s3://bucket/place")
    assert jvm_can_open(spark, "/any/folder")


def test_filters_are_pushed_into_the_scan_of_files_with_dead_rows(table: Table) -> None:
    """Row positions are true positions, whatever the filter skips."""
    frame = table.read().where("id > 60 and note = 'base'")

    answer = sorted(row.id for row in frame.collect())

    assert list(range(61, 90)) == answer


def test_reading_an_empty_table_gives_its_columns(spark: SparkSession, warehouse: Path) -> None:
    made = Lake.open(str(warehouse), spark=spark).create_table("a.b", SCHEMA, primary_key="id")

    assert made.read().collect() == []
    assert made.read().columns == ["id", "city", "amount", "tags", "note"]
    assert made.read(mode="unmerged", columns=["id"]).columns == [
        "id",
        "_action",
        "_version",
        "_order",
    ]


def test_wrong_reads_are_refused_with_the_next_step(table: Table) -> None:
    with pytest.raises(InvalidRequest, match="did you mean note"):
        table.read(columns=["notes"])
    with pytest.raises(InvalidRequest, match="unknown read mode 'fresh'"):
        table.read(mode="fresh")
    with pytest.raises(NotFound, match="has no version 99"):
        table.read(version=99)
    with pytest.raises(InvalidRequest, match="only one of version and tag"):
        table.read(version=1, tag="eod")
    with pytest.raises(NotFound, match="no version at or before"):
        table.read(timestamp="2001-01-01")
    with pytest.raises(InvalidRequest, match="city_"):
        table.read(where="city_ = 'x'")


def test_old_versions_are_read_with_their_own_columns(table: Table) -> None:
    """SNP-05, SNP-06: by field id; a column that is dropped and added again does not revive."""
    table.drop_column("note")
    table.add_column("note", "string")
    table.rename_column("amount", "price")
    table.upsert(table.to_arrow(where="id = 5").set_column(4, "note", pa.array(["new", "new"])))

    assert {None, "new"} == {row.note for row in table.read().select("note").collect()}
    assert "amount" in table.read(version=4).columns
    assert {"base", "changed"} == {row.note for row in table.read(version=4).collect()}
    assert plain(table.to_arrow()) == plain(table.read())


def test_files_with_odd_names_are_read_once_and_whole(spark: SparkSession, tmp_path: Path) -> None:
    """Names that look like patterns or like encoded text, in folders that do too."""
    warehouse = tmp_path / "we{ird}[w] %20é*"
    lake = Lake.open(str(warehouse), spark=spark)
    table = lake.create_table("a.b", "id bigint, v string", primary_key="id")
    table.insert([{"id": number, "v": "old"} for number in range(400)])
    base = lake.catalog.load_table("a.b")
    odd = ["a b", "x%20y", "q?z", "ü[1]", "{c}", "star*", "plain"]
    for number, name in enumerate(odd):
        path = f"{base.location()}/data/{name}.parquet"
        ids = range(1000 + 100 * number, 1100 + 100 * number)
        _add_foreign_file(base, path, ids)
        base = lake.catalog.load_table("a.b")
    table.upsert([{"id": number, "v": "new"} for number in range(0, 2000, 3)])

    assert plain(table.read()) == plain(table.to_arrow())
    assert plain(table.read(metadata=True)) == plain(table.to_arrow(metadata=True))


def _add_foreign_file(base: IcebergTable, path: str, ids: range) -> None:
    """Add a Parquet file under a spec without a bucket, as another engine might."""
    with base.update_spec() as update:
        for field in base.spec().fields:
            update.remove_field(field.name)
    rows = pa.table({"id": list(ids), "v": ["foreign"] * len(ids)})
    required = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.string())])
    pq.write_table(_with_ids(rows.cast(required)), path)
    base.refresh().add_files([path])


def _with_ids(rows: pa.Table) -> pa.Table:
    fields = [
        field.with_metadata({"PARQUET:field_id": str(number)})
        for number, field in enumerate(rows.schema, start=1)
    ]
    return rows.cast(pa.schema(fields))
