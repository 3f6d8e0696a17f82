"""Looking at a table and tagging it, from the door."""

from __future__ import annotations

import pyarrow as pa
import pytest

from arcticlake import Lake, Table
from arcticlake.errors import InvalidRequest, NotFound
from arcticlake.inspect.tags import Tag


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": [f"v{number}" for number in ids]})


@pytest.fixture
def table(lake: Lake) -> Table:
    return lake.create_table("shop.things", "id bigint, v string", primary_key="id")


def test_a_tag_keeps_naming_its_version(table: Table) -> None:
    table.insert(rows(1, 2))
    table.upsert(rows(3))

    assert table.create_tag("eod") == Tag("eod", 2)
    assert table.create_tag("start", version=1) == Tag("start", 1)
    table.delete(rows(1, 2, 3).select(["id"]))

    assert table.tags() == {"eod": 2, "start": 1}
    assert sorted(table.to_arrow(tag="eod")["id"].to_pylist()) == [1, 2, 3]
    assert sorted(table.to_arrow(tag="start")["id"].to_pylist()) == [1, 2]
    assert table.to_arrow().num_rows == 0


def test_plain_spark_feeds_find_the_tag_on_base(lake: Lake, table: Table) -> None:
    table.insert(rows(1, 2))
    table.create_tag("eod")
    table.insert(rows(3))

    base = lake.catalog.load_table("shop.things")
    tagged = base.snapshot_by_name("eod")
    assert tagged is not None
    assert base.scan(snapshot_id=tagged.snapshot_id).to_arrow().num_rows == 2


def test_a_name_in_use_is_refused_until_it_is_dropped(table: Table) -> None:
    table.insert(rows(1))
    table.create_tag("eod")
    table.upsert(rows(2))

    with pytest.raises(InvalidRequest, match="'eod' exists already, on version 1"):
        table.create_tag("eod")

    table.drop_tag("eod")
    assert table.tags() == {}
    with pytest.raises(NotFound, match="no tag 'eod'; tags: none"):
        table.drop_tag("eod")
    with pytest.raises(NotFound, match="no tag 'eod'"):
        table.to_arrow(tag="eod")
    assert table.create_tag("eod") == Tag("eod", 2)


def test_an_empty_table_and_a_missing_version_cannot_be_tagged(table: Table) -> None:
    with pytest.raises(InvalidRequest, match="no commits yet"):
        table.create_tag("eod")
    table.insert(rows(1))
    with pytest.raises(NotFound, match="no version 7"):
        table.create_tag("eod", version=7)
    with pytest.raises(InvalidRequest, match="'main' is the table itself"):
        table.create_tag("main")


def test_a_table_without_a_key_can_be_tagged(lake: Lake) -> None:
    table = lake.create_table("shop.log", "id bigint, v string")
    table.insert(rows(1))
    table.create_tag("first")
    table.insert(rows(1))

    assert table.tags() == {"first": 1}
    assert table.to_arrow(tag="first").num_rows == 1
    table.drop_tag("first")
    assert table.tags() == {}


def test_rows_of_another_engine_get_their_version_before_they_are_tagged(
    lake: Lake, table: Table
) -> None:
    table.insert(rows(1))
    base = lake.catalog.load_table("shop.things")
    base.append(rows(2).cast(base.schema().as_arrow()))

    assert table.create_tag("eod") == Tag("eod", 2)
    table.upsert(rows(3))
    assert sorted(table.to_arrow(tag="eod")["id"].to_pylist()) == [1, 2]


def test_looking_changes_nothing(table: Table) -> None:
    table.insert(rows(1, 2))
    table.upsert(rows(2, 3))
    before = table.history()

    table.tree()
    table.files()
    table.detail()
    assert table.verify().ok

    assert table.history() == before
