"""Real tables, broken on purpose: every damage is reported, with its path, and nothing raises."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from arcticlake import Lake, Table
from tests.inspect.lab import (
    append_as_stranger,
    broken,
    flip_data_byte,
    keys,
    orders,
    orders_table,
    paths,
    swap,
)


@pytest.fixture
def filled(table: Table) -> Table:
    table.insert(orders(range(100)))
    table.upsert(orders(range(50, 150), "changed"))
    table.delete(keys(1, 2, 60))
    table.insert(orders([1], "again"))
    return table


def test_a_healthy_table_is_ok_and_every_rule_was_checked(filled: Table) -> None:
    verdict = filled.verify()

    assert verdict.ok, str(verdict)
    assert verdict.version == 4
    counts = {check.name: check.count for check in verdict.checks}
    assert counts["files"] == len(filled.files())
    assert counts["content"] == counts["nodes"] == counts["bounds"] == 204
    assert counts["keys"] == counts["answers"] == filled.to_arrow().num_rows == 148
    assert counts["oracle"] == 204
    assert filled.verify(deep=False).ok


def test_an_empty_table_is_ok(table: Table) -> None:
    assert table.verify().ok


def test_a_deleted_file_is_reported(filled: Table) -> None:
    victim = paths(filled)[0]
    victim.unlink()

    verdict = filled.verify()

    assert [(p.check, p.path) for p in verdict.problems] == [("files", str(victim))]
    assert "missing" in verdict.problems[0].message
    assert any("were not compared" in note for note in verdict.notes)


def test_a_truncated_file_is_reported(filled: Table) -> None:
    victim = paths(filled, "change")[0]
    os.truncate(victim, victim.stat().st_size - 100)

    verdict = filled.verify()

    assert broken(verdict) == {"files", "content"}
    assert {problem.path for problem in verdict.problems} == {str(victim)}


def test_a_flipped_byte_in_any_column_is_reported(filled: Table) -> None:
    victim = max(paths(filled), key=lambda path: path.stat().st_size)
    whole = victim.read_bytes()
    for column in range(4):
        victim.write_bytes(whole)
        flip_data_byte(victim, column)

        verdict = filled.verify()

        assert [(p.check, p.path) for p in verdict.problems] == [("content", str(victim))]


def test_a_quick_verify_reads_only_the_columns_that_rules_need(filled: Table) -> None:
    victim = max(paths(filled), key=lambda path: path.stat().st_size)
    flip_data_byte(victim, column=2)

    assert not filled.verify().ok
    assert filled.verify(deep=False).ok


def test_swapped_files_of_two_leaves_are_reported(filled: Table) -> None:
    here, there = (
        Path(str(file["path"]))
        for file in filled.files()
        if file["role"] == "base" and file["version"] == 1
    )
    swap(here, there)

    verdict = filled.verify()

    assert "nodes" in broken(verdict)
    assert {p.path for p in verdict.problems if p.check == "nodes"} == {str(here), str(there)}


def test_swapped_files_of_two_partitions_are_reported(lake: Lake) -> None:
    table = lake.create_table(
        "shop.visits",
        "id bigint, day date",
        primary_key=["id", "day"],
        partition_by="day",
        options={"initial-nodes": 1},
    )
    days = [date(2026, 1, 1)] * 5 + [date(2026, 1, 2)] * 5
    table.insert(pa.table({"id": range(10), "day": days}))
    assert table.verify().ok
    swap(*paths(table))

    assert {"partitions", "bounds"} <= broken(table.verify())


def test_a_key_that_another_engine_appended_again_is_reported(lake: Lake, filled: Table) -> None:
    append_as_stranger(lake, orders([10, 11], "twin"))

    verdict = filled.verify()

    assert broken(verdict) == {"keys"}
    assert any("id=10" in problem.message for problem in verdict.problems)
    assert any("another engine" in note for note in verdict.notes)


def test_new_rows_of_another_engine_are_welcome(lake: Lake, filled: Table) -> None:
    append_as_stranger(lake, orders([1000, 1001]))

    verdict = filled.verify()

    assert verdict.ok, str(verdict)
    filled.upsert(orders([1000], "ours"))
    assert filled.verify().ok
    assert not filled.verify().notes


def test_a_key_alive_in_two_partitions_is_reported(lake: Lake) -> None:
    table = lake.create_table(
        "shop.users", "id bigint, country string", primary_key="id", partition_by="country"
    )
    table.insert(pa.table({"id": [1, 2], "country": ["de", "de"]}))
    table.upsert(pa.table({"id": [1], "country": ["fr"]}), locate=True)
    assert table.verify().ok, str(table.verify())
    append_as_stranger(lake, pa.table({"id": [2], "country": ["fr"]}), "shop.users")

    assert broken(table.verify()) == {"keys"}


def test_rows_out_of_order_in_a_sorted_file_are_reported(lake: Lake) -> None:
    table = lake.create_table(
        "shop.sorted",
        "id bigint, v bigint",
        primary_key="id",
        sort_by="v",
        options={"initial-nodes": 1},
    )
    table.insert(pa.table({"id": range(10), "v": [n * 7 % 10 for n in range(10)]}))
    assert table.verify().ok
    (victim,) = paths(table)
    rows = pq.read_table(victim)
    pq.write_table(rows.take(list(reversed(range(10)))), victim, store_schema=False)

    assert "sort" in broken(table.verify())


def test_a_rewritten_file_without_field_ids_is_reported(filled: Table) -> None:
    victim = paths(filled)[0]
    rows = pq.read_table(victim)
    plain = rows.cast(pa.schema([field.remove_metadata() for field in rows.schema]))
    pq.write_table(plain, victim)

    assert "field-ids" in broken(filled.verify())


def test_change_rows_with_unknown_actions_are_reported(filled: Table) -> None:
    victim = paths(filled, "change")[0]
    rows = pq.read_table(victim)
    place = rows.column_names.index("_action")
    other = pa.array(["+X"] * rows.num_rows, pa.string())
    wrong = rows.set_column(place, rows.schema.field("_action"), other)
    pq.write_table(wrong, victim, store_schema=False)

    verdict = filled.verify()

    assert "changes" in broken(verdict)
    assert any("'+X'" in problem.message for problem in verdict.problems)


def test_lost_rows_are_reported(filled: Table) -> None:
    victim = paths(filled)[0]
    rows = pq.read_table(victim)
    pq.write_table(rows.slice(1), victim, store_schema=False)

    assert "files" in broken(filled.verify())


def test_a_missing_manifest_is_reported_although_it_was_read_before(filled: Table) -> None:
    base = filled._opened.pair().base
    snapshot = base.current_snapshot()
    assert snapshot is not None
    filled.to_arrow()
    Path(snapshot.manifest_list).unlink()

    verdict = filled.verify()

    assert [(p.check, p.path) for p in verdict.problems] == [("metadata", snapshot.manifest_list)]


def test_a_snapshot_of_another_program_in_the_change_table_is_reported(
    lake: Lake, filled: Table
) -> None:
    change = lake.catalog.load_table("shop.orders__changes")
    change.append(change.scan(limit=1).to_arrow().cast(change.schema().as_arrow()))

    verdict = filled.verify()

    assert broken(verdict) == {"history"}
    assert verdict.version is None


def test_renamed_widened_and_new_columns_are_fine(lake: Lake) -> None:
    table = lake.create_table("shop.wide", "id int, qty int, note string", primary_key="id")
    table.insert(
        pa.table({"id": pa.array(range(20), pa.int32()), "qty": range(20)}).append_column(
            "note", pa.array(["x"] * 20)
        )
    )
    table.rename_column("note", "remark")
    table.widen_column("qty", "bigint")
    table.add_column("extra", "string")
    table.upsert(
        pa.table({"id": range(10, 30), "qty": range(20), "remark": ["y"] * 20, "extra": ["z"] * 20})
    )
    table.drop_column("extra")

    verdict = table.verify()

    assert verdict.ok, str(verdict)


def test_nested_columns_are_read_too(lake: Lake) -> None:
    table = lake.create_table(
        "shop.nested",
        "id bigint, tags array<string>, place struct<x: double, y: double>, m map<string, int>",
        primary_key="id",
        options={"initial-nodes": 1},
    )
    rows = pa.table(
        {
            "id": range(200),
            "tags": [[f"a{n}"] if n % 3 else None for n in range(200)],
            "place": [{"x": n / 7, "y": None} for n in range(200)],
            "m": pa.array([[("k", n)] for n in range(200)], pa.map_(pa.string(), pa.int32())),
        }
    )
    table.insert(rows)
    assert table.verify().ok, str(table.verify())
    flip_data_byte(paths(table)[0], column=2)

    assert broken(table.verify()) == {"content"}


def test_a_table_without_a_key_is_checked_file_by_file(lake: Lake) -> None:
    table = lake.create_table(
        "shop.log", "line string, level string not null", partition_by="level"
    )
    table.insert(pa.table({"line": ["a", "b", "a"], "level": ["x", "y", "x"]}))
    verdict = table.verify()
    assert verdict.ok, str(verdict)
    assert "keys" not in {check.name for check in verdict.checks}
    paths(table)[0].unlink()

    assert broken(table.verify()) == {"files"}


def test_many_leaves_are_judged_one_after_the_other(lake: Lake) -> None:
    table = orders_table(lake, leaves=16)
    table.insert(orders(range(200)))
    table.upsert(orders(range(100, 300)))

    verdict = table.verify()

    assert verdict.ok, str(verdict)
    assert {check.name: check.count for check in verdict.checks}["keys"] == 300
