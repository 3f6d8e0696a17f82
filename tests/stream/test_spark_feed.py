"""A reading stream, driven as Spark drives it and without Spark: offsets, batches, restarts."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
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
from arcticlake.stream.spark_feed import feed_struct
from arcticlake.stream.spark_reader import StreamReader
from tests.verbs.shop import NAME, keys, orders, rows

Row = tuple[str, int, int, str | None]


class Query:
    """What Spark does: it keeps offsets as JSON, and may ask for the last batch again."""

    def __init__(self, warehouse: Path, **options: str) -> None:
        self.options = {"path": NAME, "warehouse": str(warehouse), "pollInterval": "0"} | options
        if "catalog" in options:
            del self.options["warehouse"]
        self.offsets: list[str] = []
        self.start()

    def start(self, **options: str) -> None:
        """Start, or start again from the checkpoint."""
        self.options |= options
        struct = feed_struct(self.options)
        self.reader = StreamReader(self.options, struct)
        self.worker: StreamReader = pickle.loads(pickle.dumps(self.reader))

    @property
    def end(self) -> dict[str, int | bool]:
        if not self.offsets:
            return self.reader.initialOffset()
        return dict(json.loads(self.offsets[-1]))

    def batch(self) -> list[dict[str, object]] | None:
        """Run one batch; None if there is nothing to read."""
        start = self.end
        end = self.reader.latestOffset(start, self.reader.getDefaultReadLimit())
        if end == start:
            return None
        found = self.between(start, end)
        self.offsets.append(json.dumps(end))
        self.reader.commit(end)
        return found

    def between(
        self, start: Mapping[str, object], end: Mapping[str, object]
    ) -> list[dict[str, object]]:
        found = []
        for share in pickle.loads(pickle.dumps(self.reader.partitions(start, end))):
            for batch in self.worker.read(share):
                found += batch.to_pylist()
        return found

    def all(self) -> list[list[dict[str, object]]]:
        batches = []
        while (found := self.batch()) is not None:
            batches.append(found)
        return batches


def told(found: list[dict[str, object]]) -> list[Row]:
    return sorted(
        (
            str(r["_change_type"]),
            int(str(r["_commit_version"])),
            int(str(r["order_id"])),
            r["status"],
        )  # type: ignore[misc]
        for r in found
    )


def flat(batches: list[list[dict[str, object]]]) -> list[dict[str, object]]:
    return [row for batch in batches for row in batch]


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


@pytest.mark.parametrize("kind", ["minor", "major", "full"])
@pytest.mark.parametrize("limit", [{}, {"maxFilesPerTrigger": "1"}, {"maxRowsPerTrigger": "2"}])
def test_compaction_between_batches_changes_nothing(
    kind: str, limit: dict[str, str], lake: Lake, warehouse: Path
) -> None:
    """INC-15..18, INC-37: in the middle of the state and of a version, with a restart each time."""
    table = orders(lake, options={"initial-nodes": 4})
    table.insert(rows(range(20)))
    table.upsert(rows(range(0, 20, 2), "paid"))
    table.delete(keys(1, 2))
    query = Query(warehouse, **limit)
    found = query.batch() or []
    table.compact(kind)
    query.start()
    sent = table.upsert(rows(range(5), "sent")).version
    while (more := query.batch()) is not None:
        found += more
        table.compact(kind)
        query.start()
    late = table.upsert(rows([7], "late")).version
    table.compact(kind)
    query.start()
    found += flat(query.all())

    first = [("insert", 3, n, "new" if n % 2 else "paid") for n in range(20) if n not in {1, 2}]
    then = [("update_postimage", sent, n, "sent") for n in range(5)]
    assert told(found) == sorted([*first, *then, ("update_postimage", late, 7, "late")])


def test_a_batch_that_is_asked_for_again_is_the_same(lake: Lake, warehouse: Path) -> None:
    """INC-19: also the very first one, whose start says nothing, after commits and compaction."""
    table = orders(lake, options={"initial-nodes": 4})
    table.insert(rows(range(20)))
    table.upsert(rows(range(0, 20, 2), "paid"))
    query = Query(warehouse, maxFilesPerTrigger="2")
    starts, found, ends = [query.end], [query.batch()], [query.end]
    for _ in range(12):
        table.upsert(rows([3], "more"))
        table.compact("major")
        starts.append(query.end)
        found.append(query.batch())
        ends.append(query.end)
    query.start()
    for start, rows_of_batch, end in zip(starts, found, ends, strict=True):
        assert told(query.between(start, end)) == told(rows_of_batch or [])
    assert json.loads(query.offsets[0])["initial"] is True


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
    assert whole == encode_offset(Offset(2)), "the trigger may ask for all there is"


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


def test_a_split_between_batches_changes_nothing(lake: Lake, warehouse: Path) -> None:
    """SPL-07, INC-37: leaves that split in the middle of the state and of a version."""
    table = orders(lake, options={"initial-nodes": 1, "leaf-size": "3KB"})
    table.upsert(rows(range(1000)))
    query = Query(warehouse, maxFilesPerTrigger="1", order="true")
    found = query.batch() or []
    splits = [*table.compact("auto").events]
    sent = table.upsert(rows(range(0, 1000, 3), "sent")).version
    found += query.batch() or []
    splits += table.compact("auto").events
    query.start()
    late = table.upsert(rows(range(5), "late")).version
    found += flat(query.all())

    assert any(event.startswith("split") for event in splits)
    assert len(table.tree().leaves) > 1
    assert told(found) == sorted(
        [
            *(("insert", 1, n, "new") for n in range(1000)),
            *(("update_postimage", sent, n, "sent") for n in range(0, 1000, 3)),
            *(("update_postimage", late, n, "late") for n in range(5)),
        ]
    )


def test_a_column_that_is_widened_asks_for_a_restart(table: Table, warehouse: Path) -> None:
    """Spark fixes the types of a query at its start, and no value is ever cut to fit them."""
    table.upsert(rows([1]))
    query = Query(warehouse)
    assert query.batch() is not None
    table.widen_column("qty", "bigint")
    table.upsert([{"order_id": 3, "status": "new", "amount": None, "qty": 2**40}])
    with pytest.raises(InvalidRequest, match=r"qty was int when.* is long now; restart"):
        query.all()
    query.start()
    assert [row["qty"] for row in flat(query.all())] == [2**40]


def test_a_new_column_shows_after_a_restart(table: Table, warehouse: Path) -> None:
    """A running query keeps its columns, by field id."""
    table.upsert(rows([1]))
    query = Query(warehouse)
    assert query.batch() is not None
    table.add_column("note", "string")
    table.rename_column("qty", "quantity")
    renamed = {"order_id": 2, "status": "new", "amount": None, "quantity": 5, "note": None}
    table.upsert([renamed])
    found = flat(query.all())
    assert "note" not in found[0]
    assert found[0]["qty"] == 5, "the same column under its old name"
    query.start()
    table.upsert([renamed | {"order_id": 3, "note": "hello"}])
    assert [row["note"] for row in flat(query.all())] == ["hello"]


def test_an_overwrite_is_told_and_its_rows_follow(table: Table, warehouse: Path) -> None:
    table.insert(rows([1, 2]))
    query = Query(warehouse)
    query.all()
    table.overwrite(rows([5]))
    found = flat(query.all())
    assert [(r["_change_type"], r["order_id"]) for r in found] == [
        ("overwrite", None),
        ("insert", 5),
    ]


def test_an_overwrite_with_changes_on_top_is_compared(table: Table, warehouse: Path) -> None:
    """BAT-04: one row could not tell which of the older changes came back."""
    table.insert(rows([1, 2, 3]))
    paid = table.upsert(rows([2], "paid")).version
    table.upsert(rows([3], "sent"))
    query = Query(warehouse)
    query.all()
    table.overwrite(rows([1, 2], "fresh"), change_version=paid)
    found = flat(query.all())

    state = {r["order_id"]: r["status"] for r in table.to_arrow().to_pylist()}
    copy: dict[object, object] = {1: "new", 2: "paid", 3: "sent"}
    for row in found:
        if row["_change_type"] == "delete":
            del copy[row["order_id"]]
        else:
            copy[row["order_id"]] = row["status"]
    assert copy == state == {1: "fresh", 2: "fresh", 3: "sent"}
    assert "overwrite" not in {row["_change_type"] for row in found}


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


def test_a_copy_in_the_order_of_changes_equals_the_table(lake: Lake, warehouse: Path) -> None:
    """`_change_order` alone decides, over batches that cut versions."""
    table = orders(lake, options={"initial-nodes": 2})
    table.insert(rows(range(6)))
    query = Query(warehouse, order="true", maxFilesPerTrigger="1")
    found = query.batch() or []
    log = [(1, "a", 3), (1, "b", 5), (1, "c", 4), (2, "x", 1), (2, "gone", 2)]
    rest = {"amount": None, "qty": None}
    changes = [{"order_id": n, "status": status, "at": at} | rest for n, status, at in log]
    table.upsert(changes, order_by="at", delete_when="status = 'gone'")
    table.upsert(rows([3], "later"))
    found += flat(query.all())

    numbers = [(row["order_id"], row["_change_order"]) for row in found]
    assert len(set(numbers)) == len(numbers), "no two changes of a key are equal"
    copy: dict[object, object] = {}
    for row in sorted(found, key=lambda row: int(str(row["_change_order"]))):
        if row["_change_type"] == "delete":
            copy.pop(row["order_id"], None)
        else:
            copy[row["order_id"]] = row["status"]
    assert copy == {r["order_id"]: r["status"] for r in table.to_arrow().to_pylist()}


def test_a_copy_follows_keys_that_change_their_partition(lake: Lake, warehouse: Path) -> None:
    """KUP-03: the delete in the old partition comes before the row in the new one."""
    table = orders(lake, partition_by=["status"], options={"initial-nodes": 1, "locate": True})
    table.upsert(rows([1, 2, 3]))
    query = Query(warehouse, order="true", maxFilesPerTrigger="1")
    found = query.batch() or []
    for status in ("paid", "new", "sent"):
        table.upsert(rows([1, 2], status))
    found += flat(query.all())

    copy: dict[object, object] = {}
    for row in sorted(found, key=lambda row: int(str(row["_change_order"]))):
        if row["_change_type"] == "delete":
            copy.pop(row["order_id"], None)
        else:
            copy[row["order_id"]] = row["status"]
    assert copy == {1: "sent", 2: "sent", 3: "new"}


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
    assert reader.reportLatestOffset() == ends[1]
    assert decode_offset(ends[1], table=NAME) == Offset(1)
