"""Two Iceberg tables for one of ours: created, loaded, dropped."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import LongType, NestedField

from arcticlake.errors import ArcticError, CorruptData, InvalidRequest, NotFound, Unavailable
from arcticlake.table.ddl import schema_from_ddl
from arcticlake.table.hidden import change_schema
from arcticlake.table.iceberg import (
    FORMAT_VERSION,
    TablePair,
    create_pair,
    drop_pair,
    is_ours,
    load_pair,
    open_catalog,
    sync_change_schema,
    table_names,
)
from arcticlake.table.spec import plan_table

DDL = "id bigint, s struct<a:int,b:array<string>>, day date, m map<string,double>"
NAME = "shop.orders"


def create(
    catalog: Catalog,
    name: str = NAME,
    options: Mapping[str, object] | None = None,
    **settings: object,
) -> TablePair:
    given: dict[str, object] = {
        "primary_key": ["id"],
        "partition_by": ["month(day)"],
        "sort_by": ["day"],
        "bucket_by": None,
    }
    given |= {"options": options or {}} | settings
    spec = plan_table(name, schema_from_ddl(DDL), **given)  # type: ignore[arg-type]
    return create_pair(catalog, spec, options or {})


def test_both_tables_share_ids_keys_and_format(catalog: Catalog) -> None:
    """KEY-04: one key definition for both."""
    pair = create(catalog)

    assert pair.change is not None
    assert pair.base.metadata.format_version == pair.change.metadata.format_version == 2
    assert pair.change.schema().as_struct() == change_schema(pair.spec.schema, (1,)).as_struct()
    fields = [[(f.source_id, str(f.transform)) for f in t.spec().fields] for t in _both(pair)]
    assert fields[0] == fields[1] == [(3, "month"), (1, "bucket[4]")]
    for table, role in zip(_both(pair), ("base", "change"), strict=True):
        assert table.properties["arctic.role"] == role
        assert table.properties["arctic.managed"] == "true"
        assert table.properties["write.metadata.metrics.column.id"] == "full"
        assert table.properties["write.parquet.compression-codec"] == "zstd"
    assert [f.source_id for f in pair.base.sort_order().fields] == [3]


def _both(pair: TablePair) -> list[Table]:
    assert pair.change is not None
    return [pair.base, pair.change]


def test_a_loaded_table_is_the_one_that_was_created(catalog: Catalog) -> None:
    created = create(catalog, options={"initial-nodes": 8, "locate": True})

    loaded = load_pair(catalog, NAME)

    assert loaded.spec == created.spec
    assert loaded.spec.options.initial_nodes == 8
    assert loaded.spec.options.locate
    assert loaded.schema(None) == loaded.schema(0) == created.spec.schema


def test_a_table_without_a_key_has_no_change_table(catalog: Catalog) -> None:
    pair = create(catalog, primary_key=[], partition_by=[], sort_by=[])

    assert pair.change is None
    assert not catalog.table_exists(NAME + "__changes")
    assert pair.base.spec().is_unpartitioned()
    assert sync_change_schema(pair) is pair
    drop_pair(catalog, NAME, purge=False)
    assert table_names(catalog) == []


def test_a_name_can_be_taken_once(catalog: Catalog) -> None:
    create(catalog)

    with pytest.raises(InvalidRequest, match=r"shop\.orders exists already; use if_not_exists"):
        create(catalog)
    with pytest.raises(InvalidRequest, match="exists already"):
        create(catalog, primary_key=[])


def test_a_change_table_that_a_dead_creation_left_is_replaced(catalog: Catalog) -> None:
    create(catalog)
    catalog.drop_table(NAME)
    assert catalog.table_exists(NAME + "__changes")

    pair = create(catalog, primary_key=["day"], partition_by=[])

    assert pair.change is not None
    assert [f.source_id for f in pair.change.spec().fields] == [3]


def test_a_dropped_table_is_gone_and_may_be_made_again(catalog: Catalog) -> None:
    create(catalog)
    create(catalog, "shop.other")

    drop_pair(catalog, NAME, purge=True)

    assert table_names(catalog) == ["shop.other"]
    with pytest.raises(NotFound, match=r"shop\.orders does not exist; see lake\.tables\(\)"):
        load_pair(catalog, NAME)
    with pytest.raises(NotFound):
        drop_pair(catalog, NAME, purge=False)
    assert create(catalog).spec.name == NAME


def test_tables_of_others_are_left_alone(catalog: Catalog) -> None:
    create(catalog)
    catalog.create_table("shop.plain", Schema(NestedField(1, "id", LongType(), required=False)))

    assert table_names(catalog) == [NAME]
    assert not is_ours(catalog, "shop.plain")
    assert not is_ours(catalog, "nowhere.t")
    with pytest.raises(InvalidRequest, match=r"shop\.plain is a plain Iceberg table"):
        load_pair(catalog, "shop.plain")
    with pytest.raises(InvalidRequest, match="exists already"):
        create(catalog, "shop.plain")


def test_a_newer_format_and_a_lost_change_table_stop_everything(catalog: Catalog) -> None:
    pair = create(catalog)
    with pair.base.transaction() as transaction:
        transaction.set_properties({FORMAT_VERSION: "99"})
    with pytest.raises(InvalidRequest, match=r"format version 99.*upgrade"):
        load_pair(catalog, NAME)
    with pair.base.transaction() as transaction:
        transaction.set_properties({FORMAT_VERSION: "1"})
    catalog.drop_table(NAME + "__changes")

    with pytest.raises(CorruptData, match=r"shop\.orders__changes is gone; restore it"):
        load_pair(catalog, NAME)


def test_the_change_schema_follows_base(catalog: Catalog) -> None:
    pair = create(catalog)
    with pair.base.update_schema() as update:
        update.add_column("note", LongType())

    synced = sync_change_schema(load_pair(catalog, NAME))

    assert synced.change is not None
    assert synced.change.schema().find_field("note").field_id == (
        synced.base.schema().find_field("note").field_id
    )
    assert sync_change_schema(synced) is synced


def test_a_lake_opens_by_folder_or_by_catalog_and_not_by_both(tmp_path: Path) -> None:
    folder = tmp_path / "a b" / "ü"

    open_catalog(str(folder), None).close()
    open_catalog(f"file://{folder}", None).close()
    uri = {"type": "sql", "uri": f"sqlite:///{folder / 'c.db'}", "warehouse": str(folder)}
    open_catalog(None, {"name": "prod", **uri}).close()

    assert (folder / "catalog.db").exists()
    for warehouse, catalog in ((None, None), (str(folder), uri)):
        with pytest.raises(InvalidRequest, match="one of the two"):
            open_catalog(warehouse, catalog)


def test_what_cannot_be_opened_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    cases: list[tuple[str | None, str | dict[str, str] | None, type[ArcticError], str]] = [
        (str(tmp_path / "file"), None, InvalidRequest, "is a file; name a folder"),
        ("s3://bucket/x", None, InvalidRequest, "pass the catalog"),
        (None, "no_such_catalog", InvalidRequest, "no_such_catalog"),
        (
            None,
            {"type": "sql", "uri": f"sqlite:///{tmp_path}/no/c.db", "warehouse": "x"},
            Unavailable,
            "cannot be opened",
        ),
    ]
    for warehouse, catalog, kind, words in cases:
        with pytest.raises(kind, match=words):
            open_catalog(warehouse, catalog)


@pytest.mark.parametrize("folder", ["a b", "ü😀", "50%20", "why?x=1", "c#", "a&b"])
def test_a_folder_may_have_any_name(tmp_path: Path, folder: str) -> None:
    opened = open_catalog(str(tmp_path / folder), None)
    create(opened)
    opened.close()

    again = open_catalog(str(tmp_path / folder), None)
    assert table_names(again) == [NAME]
    assert load_pair(again, NAME).spec.key == ("id",)
    assert sorted(path.name for path in tmp_path.iterdir()) == [folder]
    again.close()
