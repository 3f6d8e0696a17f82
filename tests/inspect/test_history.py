from __future__ import annotations

import json
from datetime import UTC, datetime

from arcticlake import Lake, Table
from arcticlake.inspect.history import list_history, moment
from tests.inspect.lab import append_as_stranger, fact, keys, log_of, orders


def test_every_commit_is_one_entry_newest_first(table: Table) -> None:
    table.insert(orders(range(10)))
    table.upsert(orders(range(5, 15)))
    table.delete(keys(1, 2))

    entries = table.history()

    assert [(e.version, e.kind, e.rows) for e in entries] == [
        (3, "delete", 2),
        (2, "upsert", 10),
        (1, "insert", 10),
    ]
    assert all(entry.timestamp.tzinfo is UTC for entry in entries)
    assert entries[0].timestamp > entries[1].timestamp > entries[2].timestamp
    assert entries[2].files == 2
    assert entries[0].summary["arctic.kind"] == "delete"


def test_an_entry_becomes_json(table: Table) -> None:
    table.upsert(orders([1]))

    (entry,) = table.history()

    again = json.loads(json.dumps(entry.to_dict()))
    assert datetime.fromisoformat(again["timestamp"]) == entry.timestamp
    assert (again["version"], again["kind"], again["rows"], again["files"]) == (1, "upsert", 1, 1)


def test_a_write_of_another_engine_enters_the_history_with_the_next_writer(
    lake: Lake, table: Table
) -> None:
    table.insert(orders([1]))
    append_as_stranger(lake, orders([2]))
    table.upsert(orders([3]))

    assert [(e.version, e.kind) for e in table.history()] == [
        (3, "upsert"),
        (2, "insert"),
        (1, "insert"),
    ]
    assert table.history()[1].summary["arctic.foreign"] == "true"


def test_a_table_without_a_key_has_the_history_of_its_base_table(lake: Lake) -> None:
    table = lake.create_table("shop.log", "line string")
    table.insert(orders([1]).select(["status"]).rename_columns(["line"]))

    assert [(e.version, e.kind, e.rows) for e in table.history()] == [(1, "insert", 1)]


def test_compactions_and_an_empty_table_have_no_entries() -> None:
    assert list_history(log_of([fact(1, "major")], [fact(1, "minor")])) == []


def test_moments_are_exact_to_the_millisecond() -> None:
    assert moment(1_767_355_200_123) == datetime(2026, 1, 2, 12, 0, 0, 123_000, tzinfo=UTC)
