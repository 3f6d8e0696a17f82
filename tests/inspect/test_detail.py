from __future__ import annotations

import json

from arcticlake import Lake, Table
from arcticlake.inspect.detail import Surroundings, describe_table
from arcticlake.tree.files import Role, TableFiles
from arcticlake.tree.node import ROOT
from tests.inspect.lab import Place, entry, fact, log_of, orders, spec_of, view_of

AROUND = Surroundings({}, 1, 2, {"base": "b"}, {}, 1)


def test_a_table_is_described_by_its_keys_options_and_sizes(lake: Lake) -> None:
    table = lake.create_table(
        "shop.visits",
        "id bigint, day date, v double",
        primary_key=["day", "id"],
        partition_by="day",
        sort_by="v",
        options={"target-file-size": "64MB"},
    )

    detail = table.detail()

    assert [(c.name, c.type, c.required) for c in detail.schema] == [
        ("id", "bigint", True),
        ("day", "date", True),
        ("v", "double", False),
    ]
    assert (detail.primary_key, detail.bucket_by) == (("day", "id"), "id")
    assert (detail.partition_by, detail.sort_by) == (("day",), ("v",))
    assert detail.options["target-file-size"] == "64MB"
    assert detail.options["initial-nodes"] == "4"
    assert (detail.version, detail.format_version, detail.iceberg_format_version) == (0, 1, 2)
    assert set(detail.locations) == {"base", "change"}


def test_counters_say_what_they_count(table: Table) -> None:
    """PAC-08: base rows, change rows and live rows are never mixed up."""
    table.insert(orders(range(10)))
    assert table.detail().sizes.live_rows == 10

    table.upsert(orders(range(5, 15)))
    table.create_tag("noon")
    detail = table.detail()

    assert (detail.sizes.base_files, detail.sizes.base_rows) == (2, 10)
    assert (detail.sizes.change_files, detail.sizes.change_rows) == (2, 10)
    assert detail.sizes.live_rows is None
    assert (detail.backlog.files, detail.backlog.rows) == (2, 10)
    assert detail.backlog.bytes == detail.sizes.change_bytes
    assert detail.backlog.oldest_age_seconds is not None
    assert 0 <= detail.backlog.oldest_age_seconds < 60
    assert (detail.watermark.through, detail.watermark.ahead, detail.leaves) == (0, 0, 2)
    assert detail.tags == {"noon": 2}


def test_a_detail_becomes_json_and_text(table: Table) -> None:
    table.upsert(orders([1]))
    detail = table.detail()

    again = json.loads(json.dumps(detail.to_dict()))

    assert again["backlog"]["rows"] == 1
    assert again["schema"][0] == {
        "name": "id",
        "type": "bigint",
        "required": True,
        "field_id": 1,
    }
    assert "live rows        only a read can count them" in str(detail).splitlines()


def test_a_detail_tells_of_the_last_compaction_and_of_all_of_them(table: Table) -> None:
    """CMP-03, GOV-05: the numbers are refreshed by each compaction."""
    assert table.detail().compaction is None
    table.insert(orders(range(100)))
    for start in (0, 20, 40):
        table.upsert(orders(range(start, start + 20), "paid"))
    minor = table.compact("minor")
    major = table.compact("major")

    detail = table.detail()
    found = detail.compaction

    assert found is not None
    assert (found.kind, found.version) == ("major", 4)
    assert found.timestamp == table.history()[0].timestamp
    assert (found.files_removed, found.files_added) == (major.files_removed, major.files_added)
    assert (found.bytes_read, found.bytes_written) == (
        major.numbers.bytes_read,
        major.bytes_written,
    )
    assert found.write_amplification == major.write_amplification
    assert 0 < found.seconds <= found.total.seconds
    assert found.total.count == 2
    assert found.total.bytes_written == minor.bytes_written + major.bytes_written
    assert (detail.backlog.files, detail.sizes.live_rows) == (0, 100)


def test_the_last_compaction_is_one_line_of_the_text(table: Table) -> None:
    """CMP-03."""
    table.upsert(orders(range(10)))
    assert "last compaction  none" in str(table.detail()).splitlines()

    table.compact("major")

    (line,) = [text for text in str(table.detail()).splitlines() if text.startswith("last comp")]
    assert line.startswith("last compaction  major, 2 files → 2, ")
    assert line.endswith(" bytes written for a byte of changes")
    again = json.loads(json.dumps(table.detail().to_dict()))["compaction"]
    assert (again["kind"], again["total"]["count"]) == ("major", 1)


def test_the_age_of_the_backlog_is_that_of_its_oldest_file() -> None:
    change = [fact(number, "upsert") for number in (2, 3, 4)]
    base = [fact(1, "major", arctic__merged_through="2")]
    files = TableFiles(
        (), tuple(entry("f", Place(ROOT, role=Role.CHANGE, sequence=n)) for n in (2, 3, 4))
    )

    detail = describe_table(
        spec_of("id bigint"),
        log_of(base, change),
        view_of(base, change),
        files,
        around=AROUND,
        now_ms=10_000,
    )

    assert (detail.backlog.files, detail.backlog.oldest_age_seconds) == (2, 7.0)
    assert (detail.sizes.change_files, detail.watermark.through) == (3, 2)


def test_the_age_is_at_least_that_of_the_oldest_snapshot_when_others_expired() -> None:
    change = [fact(5, "upsert")]
    files = TableFiles((), (entry("f", Place(ROOT, role=Role.CHANGE, sequence=2)),))

    detail = describe_table(
        spec_of("id bigint"),
        log_of((), change),
        view_of((), change),
        files,
        around=AROUND,
        now_ms=6_000,
    )

    assert detail.backlog.oldest_age_seconds == 1.0
