"""Change messages on Spark: every format, every move of a key, against the source itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import DataFrame, SparkSession

from arcticlake import Lake, Table
from arcticlake.errors import InvalidRequest
from arcticlake.ingest import spark as ingest_spark
from arcticlake.ingest.once import Once
from arcticlake.stream import spark_cdc
from arcticlake.stream.cdc_format import ChangeRequest
from arcticlake.verbs import cdc
from arcticlake.verbs.write import Batch
from tests.stream.source import Change, Source, act, canal, debezium, maxwell

COLUMNS = "id bigint, day string, v string"
EVERY = """id bigint, name string, amount decimal(12,2), big decimal(38,10), born date,
 at timestamp, local timestamp_ntz, ok boolean, bits binary, tags array<string>,
 place struct<`a b`: int>, weight double"""


@pytest.fixture
def lake(spark: SparkSession, warehouse: Path) -> Lake:
    """A lake on the shared session."""
    return Lake.open(str(warehouse), spark=spark)


def messages(lake: Lake, *texts: str | None) -> DataFrame:
    """Return messages as Kafka's source has them."""
    rows = [(text, place) for place, text in enumerate(texts)]
    return lake.spark.createDataFrame(rows, "value string, offset bigint")


def found(table: Table) -> dict[int, dict[str, object]]:
    rows = table.to_arrow().to_pylist()
    by_id = {row["id"]: row for row in rows}
    assert len(by_id) == len(rows), "a key comes twice"
    return by_id


def rejects(lake: Lake, table: Table) -> list[dict[str, object]]:
    rows = lake.table(f"{table.name}__rejects").to_arrow().to_pylist()
    return sorted(rows, key=lambda row: str(row["reason"]))


@pytest.mark.parametrize(
    ("format_name", "spell", "order_by", "partition_by"),
    [
        ("debezium-json", debezium, None, ["day"]),
        ("canal-json", canal, "offset", []),
        ("maxwell-json", maxwell, None, ["day"]),
    ],
)
def test_a_table_follows_its_source_through_every_move_of_a_key(
    lake: Lake,
    format_name: str,
    spell: Callable[[Change], str],
    order_by: str | None,
    partition_by: list[str],
) -> None:
    """KUP-01..04, RTI-03: keys and partitions change, swap and come back, over three batches."""
    table = lake.create_table("db.t", COLUMNS, primary_key="id", partition_by=partition_by)
    source, chance = Source(), Random(5)
    for batch in range(3):
        for _ in range(40):
            act(source, chance)
        if batch == 1 and spell is not maxwell:
            source.truncate()
            for _ in range(10):
                act(source, chance)
        log = source.take()

        table.apply_changes(
            messages(lake, *(spell(change) for change in log), None),
            format=format_name,
            order_by=order_by,
        )

        assert found(table) == source.rows
    assert [entry.kind for entry in table.history()] == ["upsert"] * 3
    assert table.verify().ok


@pytest.mark.parametrize("locate", [False, True])
def test_large_batches_give_the_same_answer(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, locate: bool
) -> None:
    """KUP-02: written by tasks, each half of a split goes to its own owner."""
    monkeypatch.setattr(ingest_spark, "SMALL_BYTES", -1)
    table = lake.create_table("db.t", COLUMNS, primary_key="id", partition_by=["day"])
    source, chance = Source(), Random(8)
    for _ in range(60):
        act(source, chance)
    source.truncate()
    for _ in range(60):
        act(source, chance)
    texts = [debezium(change, wrapped=True) for change in source.take()]

    table.apply_changes(messages(lake, *texts, "junk"), format="debezium-json", locate=locate)

    assert found(table) == source.rows
    assert [row["raw"] for row in rejects(lake, table)] == ["junk"]
    for _ in range(60):
        act(source, chance)
    texts = [debezium(change) for change in source.take()]
    table.apply_changes(messages(lake, *texts), format="debezium-json", locate=locate)
    assert found(table) == source.rows
    assert table.verify().ok


def test_a_column_that_comes_while_a_batch_is_applied_loses_nothing(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lake.create_table("db.t", COLUMNS, primary_key="id")
    source = Source()
    source.insert(1, "2026-11-01", "x")
    check = cdc._check

    def late(*args: object) -> None:
        check(*args)  # type: ignore[arg-type]
        monkeypatch.undo()
        table.rename_column("v", "value")
        table.add_column("v", "string")

    monkeypatch.setattr(cdc, "_check", late)
    texts = [debezium(change) for change in source.take()]
    table.apply_changes(messages(lake, *texts), format="debezium-json")

    (row,) = table.to_arrow().to_pylist()
    assert (row["id"], row["v"], row["value"]) == (1, "x", None)


def test_a_column_that_goes_while_a_batch_is_applied_is_told(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the messages bring is judged again on the new columns, and never left out silently."""
    table = lake.create_table("db.t", COLUMNS, primary_key="id")
    source = Source()
    source.insert(1, "2026-11-01", "x")
    check = cdc._check

    def late(*args: object) -> None:
        check(*args)  # type: ignore[arg-type]
        monkeypatch.undo()
        table.drop_column("v")

    monkeypatch.setattr(cdc, "_check", late)
    texts = [debezium(change) for change in source.take()]
    with pytest.raises(InvalidRequest, match="has no column v"):
        table.apply_changes(messages(lake, *texts), format="debezium-json")
    assert table.history() == []


FIELDS = [
    {
        "field": "amount",
        "name": "org.apache.kafka.connect.data.Decimal",
        "parameters": {"scale": "2"},
    },
    {
        "field": "big",
        "name": "org.apache.kafka.connect.data.Decimal",
        "parameters": {"scale": "10"},
    },
    {"field": "at", "name": "io.debezium.time.MicroTimestamp"},
    {"field": "local", "name": "io.debezium.time.Timestamp"},
]


def test_values_are_read_strictly_and_what_does_not_fit_is_kept_as_a_reject(lake: Lake) -> None:
    table = lake.create_table("db.t", EVERY, primary_key="id")
    schema = {"fields": [{"field": "before"}, {"field": "after", "fields": FIELDS}]}

    def created(**values: object) -> str:
        return json.dumps({"op": "c", "after": values})

    # Written by hand: json.dumps would round the large decimal.
    plain = (
        '{"op": "c", "after": {"ID": "1", "amount": "12.50", "big": 1234567890123456789.0123456789,'
        ' "born": 20000, "at": "2026-11-15T12:00:00+02:00", "local": "2026-11-15 12:00:00.5",'
        ' "ok": 0, "bits": "AQI=", "tags": ["a", null], "place": {"a b": 1}, "weight": "1e3"}}'
    )
    typed: dict[str, object] = {"id": 2, "amount": "/wA=", "big": "AP//////////", "ok": "TRUE"}
    typed |= {"born": "2026-11-15", "at": 1763208000000001, "local": 1763208000000}
    good = [plain, json.dumps({"schema": schema, "payload": {"op": "r", "after": typed}})]
    bad = {
        "column amount: 1.239 is no decimal(12,2)": created(id=3, amount=1.239),
        "column amount: 12345678901.5 is no decimal": created(id=3, amount="12345678901.5"),
        "column at: 17 is no timestamp (ISO text; a number needs time_unit)": created(id=3, at=17),
        "column bits: ? is no binary": created(id=3, bits="?"),
        "column born: 2026 Nov": created(id=3, born="2026 Nov"),
        "column id: 1.5 is no bigint": created(id=1.5),
        "column ok: yes is no boolean": created(id=3, ok="yes"),
        'column place: {"a b":"no"} is no struct': created(id=3, place={"a b": "no"}),
        "column name: the source did not send": json.dumps(
            {"op": "u", "after": {"id": 3, "name": "__debezium_unavailable_value"}}
        ),
        "key column id is missing": created(name="x"),
        "the operation is not known": json.dumps({"op": "x", "after": {"id": 3}}),
        "there is no row after": json.dumps({"op": "c", "before": {"id": 3}}),
        "a column comes twice": created(id=3, ID=4),
        "this is not JSON": '{"op": "c", "after": {"id": 3}',
    }

    ignored = json.dumps({"ddl": "ALTER TABLE t", "databaseName": "d"})
    table.apply_changes(
        messages(lake, *good, *bad.values(), ignored), format="debezium-json", order_by="offset"
    )

    first, second = (found(table)[number] for number in (1, 2))
    assert first["big"] == Decimal("1234567890123456789.0123456789")
    assert (first["amount"], first["born"]) == (Decimal("12.50"), date(2024, 10, 4))
    assert str(first["at"]) == "2026-11-15 10:00:00+00:00"
    assert first["local"] == datetime(2026, 11, 15, 12, 0, 0, 500000)  # noqa: DTZ001
    assert (first["ok"], first["bits"], first["tags"]) == (False, b"\x01\x02", ["a", None])
    assert (first["place"], first["weight"]) == ({"a b": 1}, 1000.0)
    assert (second["amount"], second["ok"]) == (Decimal("-2.56"), True)
    assert second["big"] == Decimal(2**64 - 1).scaleb(-10)
    assert (str(second["at"]), second["born"]) == (
        "2025-11-15 12:00:00.000001+00:00",
        date(2026, 11, 15),
    )
    kept = rejects(lake, table)
    by_raw = {row["raw"]: str(row["reason"]) for row in kept}
    for reason, text in bad.items():
        assert reason in by_raw[text]
    assert len(kept) == len(bad) and len(found(table)) == 2


def test_rejects_are_written_once_and_stop_a_batch_at_their_limit(lake: Lake) -> None:
    table = lake.create_table("db.t", COLUMNS, primary_key="id", options={"rejects-max": 1})
    good = debezium(Change("c", 5, None, {"id": 1, "day": "d", "v": "x"}))
    request, once = ChangeRequest("debezium-json"), Batch(Once("query", 3))

    with pytest.raises(InvalidRequest, match=r"2 messages were not understood.*this is not JSON"):
        table.apply_changes(messages(lake, good, "junk", "more"), format="debezium-json")
    assert found(table) == {}
    assert lake.tables() == ["db.t"]
    for _ in range(2):
        cdc.apply_changes(table._opened, messages(lake, good, "junk"), request, once)
        cdc.apply_changes(table._opened, messages(lake, "junk"), request, Batch(Once("other", 0)))

    assert {row["batch"] for row in rejects(lake, table)} == {"query:3", "other:0"}
    assert len(rejects(lake, table)) == 2
    assert len(table.history()) == 1 and set(found(table)) == {1}


def test_new_columns_fail_are_ignored_or_are_added(lake: Lake) -> None:
    table = lake.create_table("db.t", COLUMNS, primary_key="id")
    row = {"id": 1, "day": "d", "v": "x"}
    new = {"N": 7, "share": 0.5, "on": True, "zip": "01234", "tree": {"a": [1]}, "nothing": None}
    text = debezium(Change("c", 5, None, {**row, **new}))

    with pytest.raises(InvalidRequest, match="no column N, nothing, on, share, tree, zip"):
        table.apply_changes(messages(lake, text), format="debezium-json")
    table.set_options({"on-new-column": "ignore"})
    table.apply_changes(messages(lake, text), format="debezium-json")
    assert found(table) == {1: row}
    table.set_options({"on-new-column": "add"})
    table.apply_changes(messages(lake, text), format="debezium-json")

    added = {"N": 7, "share": 0.5, "on": True, "zip": "01234", "tree": '{"a":[1]}'}
    assert found(table)[1] == row | added


def test_rows_with_an_action_are_applied_in_their_order(lake: Lake) -> None:
    table = lake.create_table("db.t", COLUMNS, primary_key="id", partition_by=["day"])
    log = [
        (1, "a", "old", "+I", 1),
        (1, "a", "old", "-U", 2),
        (2, "b", "new", "+U", 2),
        (3, "a", "x", "insert", 3),
        (3, "a", None, "D", 4),
        (4, "a", "x", "?", 5),
    ]
    frame = lake.spark.createDataFrame(log, "id int, day string, v string, op string, lsn bigint")

    table.apply_changes(frame, format="rows", action="op", order_by="LSN")

    assert found(table) == {2: {"id": 2, "day": "b", "v": "new"}}
    assert [row["reason"] for row in rejects(lake, table)] == ["the operation is not known"]
    with pytest.raises(InvalidRequest, match="do not say where their row was before"):
        table.apply_changes(
            frame.limit(1).replace("+I", "U", ["op"]), format="rows", action="op", order_by="lsn"
        )


def test_rows_without_before_images_are_looked_up(lake: Lake) -> None:
    """KUP-03: the old partition of an update or a delete is found in the batch or the table."""
    table = lake.create_table("db.t", COLUMNS, primary_key="id", partition_by=["day"])
    for number in (1, 2, 3):
        table.upsert([{"id": number, "day": "a", "v": "old"}], locate=True)
    log = [
        Change("u", 10, None, {"id": 1, "day": "b", "v": "moved"}),
        Change("d", 11, {"id": 2, "day": None, "v": None}),
        Change("u", 12, None, {"id": 3, "day": "c", "v": "moved"}),
        Change("d", 13, {"id": 3, "day": None, "v": None}),
        Change("d", 14, {"id": 9, "day": None, "v": None}),
    ]
    frame = messages(lake, *map(debezium, log))

    with pytest.raises(InvalidRequest, match="locate=True"):
        table.apply_changes(frame, format="debezium-json")
    table.apply_changes(frame, format="debezium-json", locate=True)

    assert found(table) == {1: {"id": 1, "day": "b", "v": "moved"}}
    assert table.verify().ok


def test_a_request_that_cannot_work_is_refused_by_name(lake: Lake) -> None:
    table = lake.create_table("db.t", COLUMNS, primary_key="id")
    lake.create_table("db.plain", COLUMNS)
    frame = messages(lake, canal(Change("c", 1, None, {"id": 1, "day": "d", "v": None})))
    refusals: list[tuple[dict[str, str], str]] = [
        ({"format": "avro"}, "use debezium-json, canal-json, maxwell-json, rows"),
        ({"format": "rows"}, "action names the column"),
        ({"format": "canal-json", "time_unit": "days"}, "use seconds, millis, micros, nanos"),
        ({"format": "canal-json"}, "give order_by a column that orders them"),
        ({"format": "canal-json", "order_by": "nowhere"}, "no column 'nowhere' for order_by"),
        ({"format": "canal-json", "order_by": "value"}, "must be a whole number"),
    ]

    for request, reason in refusals:
        with pytest.raises(InvalidRequest, match=reason):
            table.apply_changes(frame, **request)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match="no primary key"):
        lake.table("db.plain").apply_changes(frame, format="canal-json")
    with pytest.raises(InvalidRequest, match="not streaming; use apply_changes"):
        table.stream_changes(frame, format="canal-json", checkpoint="nowhere")
    assert table.history() == []


def test_a_stream_of_messages_is_applied_once_also_after_a_restart(
    lake: Lake, tmp_path: Path
) -> None:
    table = lake.create_table("db.t", COLUMNS, primary_key="id")
    source, chance = Source(), Random(3)
    inbox, checkpoint = tmp_path / "inbox", str(tmp_path / "checkpoint")
    inbox.mkdir()
    for run in range(2):
        for _ in range(20):
            act(source, chance)
        texts = [debezium(change) for change in source.take()]
        (inbox / f"{run}.txt").write_text("\n".join([*texts, "junk"]))

        stream = lake.spark.readStream.text(str(inbox))
        query = table.stream_changes(
            stream, format="debezium-json", checkpoint=checkpoint, trigger="available-now"
        )
        query.awaitTermination()

        assert query.exception() is None
        assert found(table) == source.rows
    assert len(table.history()) == 2
    assert len(rejects(lake, table)) == 2


def test_a_message_is_parsed_once(lake: Lake) -> None:
    """The select lists stay apart: Spark must not repeat the parsing for every column."""
    spec = lake.create_table("db.t", COLUMNS, primary_key="id")._opened.pair().spec
    parsed = spark_cdc.parse_changes(messages(lake, "{}"), spec, ChangeRequest("debezium-json"))
    parsed.createOrReplaceTempView("parsed")

    plan = lake.spark.sql("EXPLAIN TABLE parsed").collect()[0][0]

    assert plan.count("from_json(") == 1
