"""A reading stream, driven as Spark drives it and without Spark: offsets, batches, restarts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyiceberg.catalog
import pytest
from pyiceberg.utils.config import Config
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles, ReadMaxRows

from arcticlake import Lake, Table
from arcticlake.errors import InvalidRequest, NotFound
from arcticlake.stream import iceberg_feed
from arcticlake.stream.offset import BEGINNING, Offset, Pin, decode_offset, encode_offset
from tests.stream.drive import Query, flat, told
from tests.verbs.shop import NAME, keys, orders, rows


@pytest.fixture
def table(lake: Lake) -> Table:
    return orders(lake)


def test_everything_comes_first_and_then_changes(table: Table, warehouse: Path) -> None:
    """INC-02, INC-10: the state as inserts of its version, then each change of later versions."""
    table.insert(rows([1, 2, 3]))
    table.upsert(rows([2], "paid"))
    table.delete(keys(3))
    query = Query(warehouse)
    assert told(flat(query.all())) == [("insert", 3, 1, "new"), ("insert", 3, 2, "paid")]
    assert query.batch() is None, "INC-14: everything is read"

    table.upsert(rows([1], "sent"))
    table.insert(rows([9]))
    assert told(flat(query.all())) == [
        ("insert", 5, 9, "new"),
        ("update_postimage", 4, 1, "sent"),
    ]


def test_a_version_or_moment_starts_with_changes_only(table: Table, warehouse: Path) -> None:
    """INC-08, INC-10, INC-12: the start is exclusive."""
    table.upsert(rows([1]))
    table.upsert(rows([2]))
    table.upsert(rows([3]))
    wanted = [("update_postimage", 3, 3, "new")]
    assert told(flat(Query(warehouse, since="2").all())) == wanted
    moment = table.history()[1].timestamp
    assert told(flat(Query(warehouse, since=str(moment)).all())) == wanted
    assert len(flat(Query(warehouse, since="0").all())) == 3


def test_a_start_that_is_not_there_is_an_error(table: Table, warehouse: Path) -> None:
    """INC-09, and a moment that is not over names no version yet."""
    table.upsert(rows([1]))
    with pytest.raises(NotFound, match="no version 7"):
        Query(warehouse, since="7").batch()
    with pytest.raises(NotFound, match="INC-09"):
        Query(warehouse, since="2001-01-01T00:00:00Z").batch()
    with pytest.raises(InvalidRequest, match="not over yet"):
        Query(warehouse, since=(datetime.now(UTC) + timedelta(days=1)).isoformat()).batch()
    with pytest.raises(InvalidRequest, match="INC-11"):
        Query(warehouse, until="7")


def test_limits_cut_batches_but_never_a_file(lake: Lake, warehouse: Path) -> None:
    table = orders(lake, options={"initial-nodes": 4})
    table.upsert(rows(range(40)))
    table.upsert(rows(range(40), "paid"))
    by_file = Query(warehouse, since="0", maxFilesPerTrigger="1").all()
    assert len(by_file) == 8
    assert len(flat(by_file)) == 80
    by_row = Query(warehouse, since="0", maxRowsPerTrigger="25").all()
    assert all(len(batch) <= 25 for batch in by_row)
    assert len(flat(by_row)) == 80
    assert len(Query(warehouse, since="0", maxRowsPerTrigger="1").all()) == 8
    reader = Query(warehouse, since="0", maxRowsPerTrigger="1").reader
    whole = reader.latestOffset(encode_offset(Offset(0)), ReadAllAvailable())
    assert decode_offset(whole, table=NAME) == Offset(2), "the trigger may ask for all there is"


@pytest.mark.usefixtures("table")
def test_the_limit_of_the_options_is_reported(warehouse: Path) -> None:
    assert isinstance(Query(warehouse).reader.getDefaultReadLimit(), ReadAllAvailable)
    limit = Query(warehouse, maxFilesPerTrigger="3").reader.getDefaultReadLimit()
    assert limit == ReadMaxFiles(3)
    both = Query(warehouse, maxFilesPerTrigger="3", maxRowsPerTrigger="5")
    assert both.reader.getDefaultReadLimit() == ReadMaxRows(5)


@pytest.mark.parametrize("since", [{}, {"since": "0"}])
def test_available_now_ends_at_the_version_of_its_start(
    since: dict[str, str], table: Table, warehouse: Path
) -> None:
    table.upsert(rows([1]))
    query = Query(warehouse, **since)
    query.reader.prepareForTriggerAvailableNow()
    table.upsert(rows([2]))
    assert [row[2] for row in told(flat(query.all()))] == [1]
    query.start()
    assert [row[2] for row in told(flat(query.all()))] == [2]


def test_the_catalog_is_asked_once_in_an_interval(
    table: Table, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """INC-13."""
    table.upsert(rows([1]))
    query = Query(warehouse, pollInterval="1 hour")
    assert query.batch() is not None
    table.upsert(rows([2]))
    assert query.batch() is None, "it was looked at just now"
    monkeypatch.setattr("time.monotonic", lambda: 10.0**9)
    assert query.batch() is not None


def test_an_empty_table_is_waited_for(table: Table, warehouse: Path) -> None:
    query = Query(warehouse)
    assert query.batch() is None
    table.upsert(rows([1]))
    assert told(flat(query.all())) == [("insert", 1, 1, "new")]


def test_a_table_without_a_key_streams_its_inserts(lake: Lake, warehouse: Path) -> None:
    table = lake.create_table(NAME, "order_id bigint, status string")
    table.insert([{"order_id": 1, "status": "a"}])
    query = Query(warehouse, consumer="c")
    found = query.batch() or []
    table.insert([{"order_id": 2, "status": "b"}])
    table.compact()
    found += flat(query.all())
    assert told(found) == [("insert", 1, 1, "a"), ("insert", 2, 2, "b")]
    assert [consumer.name for consumer in table.consumers()] == ["c"]


def test_a_catalog_is_named_instead_of_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__URI", f"sqlite:///{tmp_path}/prod.db")
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__WAREHOUSE", str(tmp_path / "w"))
    monkeypatch.setattr(pyiceberg.catalog, "_ENV_CONFIG", Config())
    table = orders(Lake.open(catalog="prod"))
    table.upsert(rows([1]))
    query = Query(tmp_path, catalog="prod")

    assert told(flat(query.all())) == [("insert", 1, 1, "new")]


def test_an_expired_range_is_an_error_and_never_an_empty_batch(
    table: Table, warehouse: Path
) -> None:
    for n in range(4):
        table.upsert(rows([n]))
    query = Query(warehouse, since="1")
    change = table._opened.pair().change
    assert change is not None
    oldest = [s.snapshot_id for s in change.snapshots() if (s.sequence_number or 0) < 4]
    change.maintenance.expire_snapshots().by_ids(oldest).commit()
    for limit in ({}, {"maxFilesPerTrigger": "1"}):
        query.start(**limit)
        with pytest.raises(NotFound, match="oldest version to pull from is 3"):
            query.batch()
    with pytest.raises(NotFound, match="oldest version to pull from is 3"):
        query.between(encode_offset(Offset(1)), encode_offset(Offset(4)))


def test_a_state_that_expired_in_the_middle_is_an_error(table: Table, warehouse: Path) -> None:
    table.insert(rows([1]))
    query = Query(warehouse)
    lost = encode_offset(Offset(1, 1, Pin(123, 456)))
    with pytest.raises(NotFound, match="new checkpoint"):
        query.between(encode_offset(BEGINNING), lost)


def test_a_table_that_is_made_anew_is_not_read_from_the_middle(lake: Lake, warehouse: Path) -> None:
    table = orders(lake)
    for number in range(3):
        table.upsert(rows([number]))
    query = Query(warehouse)
    query.all()
    lake.drop_table(NAME)
    table = orders(lake)
    for number in range(5):
        table.upsert(rows([100 + number]))

    with pytest.raises(NotFound, match=r"made anew.*new checkpoint"):
        query.all()
    query.start()
    with pytest.raises(NotFound, match=r"made anew.*new checkpoint"):
        query.all()


def test_a_checkpoint_that_does_not_fit_is_refused(table: Table, warehouse: Path) -> None:
    table.upsert(rows([1]))
    query = Query(warehouse)
    with pytest.raises(InvalidRequest, match="same since as before"):
        query.between(encode_offset(BEGINNING), encode_offset(Offset(1)))
    with pytest.raises(NotFound, match="made anew"):
        query.between(encode_offset(Offset(1)), encode_offset(Offset(1, 2)))


def test_a_consumer_is_recorded_listed_and_dropped(table: Table, warehouse: Path) -> None:
    table.upsert(rows([1]))
    query = Query(warehouse, consumer="billing")
    assert query.batch() is not None
    table.upsert(rows([2]))
    assert query.batch() is not None
    (consumer,) = table.consumers()
    assert (consumer.name, consumer.version) == ("billing", 2)
    assert abs(datetime.now(UTC) - consumer.timestamp) < timedelta(minutes=5)
    table.drop_consumer("billing")
    assert table.consumers() == []
    with pytest.raises(NotFound, match="no consumer 'billing'; consumers: none"):
        table.drop_consumer("billing")


def test_a_consumer_is_recorded_when_more_is_looked_for(table: Table, warehouse: Path) -> None:
    """Spark commits a batch when the next one begins, so the last one never would be."""
    table.upsert(rows([1]))
    query = Query(warehouse, consumer="billing")
    query.reader.latestOffset(query.end, ReadAllAvailable())
    assert table.consumers() == [], "nothing was read yet"
    query.reader.latestOffset(encode_offset(Offset(1)), ReadAllAvailable())
    assert [consumer.version for consumer in table.consumers()] == [1]


def test_many_small_files_share_a_task(
    lake: Lake, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = orders(lake, options={"initial-nodes": 4})
    table.upsert(rows(range(40)))
    reader = Query(warehouse).reader
    ends = encode_offset(Offset(0)), encode_offset(Offset(1))
    assert len(reader.partitions(*ends)) == 1
    monkeypatch.setattr(iceberg_feed, "SHARE_BYTES", 1)
    assert len(reader.partitions(*ends)) == 4
    assert reader.partitions(ends[0], ends[0]) == []
    newest = reader.reportLatestOffset()
    assert newest is not None
    assert decode_offset(newest, table=NAME) == Offset(1)
