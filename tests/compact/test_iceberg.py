"""Commits of compactions against whatever lands between plan and commit."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from arcticlake import Lake, Table
from arcticlake.commit.iceberg_state import MERGED_INTO, load_settled, load_state
from arcticlake.compact.iceberg import TRIM, trim
from arcticlake.table.iceberg import load_pair
from tests.compact.lab import opened, start
from tests.verbs.shop import keys, orders, rows, statuses

BY_STATUS: dict[str, object] = {
    "primary_key": ["order_id", "status"],
    "partition_by": ["status"],
    "options": {"initial-nodes": 1},
}


def changed_table(lake: Lake) -> Table:
    table = orders(lake, options={"initial-nodes": 2})
    table.insert(rows(range(10)))
    table.upsert(rows(range(5), "paid"))
    return table


MERGED = {n: "paid" if n < 5 else "new" for n in range(10)}


def check(table: Table, expected: dict[int, str]) -> None:
    assert statuses(table) == expected
    found = table.verify()
    assert found.ok, found.problems


def test_changes_that_land_during_a_compaction_apply_on_top(lake: Lake) -> None:
    """CMP-19: writers never wait."""
    table = changed_table(lake)
    under_way = start(table)
    table.upsert(rows([0, 20], "late"))
    table.delete(keys(9))

    landing = under_way.commit()

    expected = {**MERGED, 0: "late", 20: "late"}
    del expected[9]
    assert landing.lost == {}
    assert statuses(table, mode="base") == MERGED
    check(table, expected)
    trim(opened(table).pair())
    check(table, expected)


def test_a_batch_insert_that_lands_during_a_compaction_stays(lake: Lake) -> None:
    table = changed_table(lake)
    under_way = start(table)
    version = table.insert(rows([30, 31], "batch")).version

    landing = under_way.commit()

    assert landing.lost == {}
    check(table, {**MERGED, 30: "batch", 31: "batch"})
    assert statuses(table, version=version - 1) == MERGED


def test_an_overwrite_takes_away_the_groups_it_touched_and_no_others(lake: Lake) -> None:
    """BAT-06, BAT-07."""
    table = orders(lake, **BY_STATUS)
    table.upsert(rows(range(4), "a"))
    table.upsert(rows(range(4), "b"))
    under_way = start(table)
    table.overwrite(rows([7], "a"), where="status = 'a'")

    landing = under_way.commit()

    assert len(landing.landed) == 1
    assert list(landing.lost.values()) == ["1 of 1 input files are gone"]
    found = sorted((r["order_id"], r["status"]) for r in table.to_arrow().to_pylist())
    assert found == [(0, "b"), (1, "b"), (2, "b"), (3, "b"), (7, "a")]
    assert table.verify().ok


def test_an_overwrite_of_rows_in_base_is_noticed_although_no_change_file_is_gone(
    lake: Lake,
) -> None:
    """BAT-07: with an older change version the changes stay where they are."""
    table = orders(lake, options={"initial-nodes": 1})
    first = table.insert(rows(range(4))).version
    table.upsert(rows([1], "paid"))
    under_way = start(table)
    table.overwrite(rows([1, 2], "other"), change_version=first)

    landing = under_way.commit()

    assert landing.landed == ()
    check(table, {1: "paid", 2: "other"})


def test_the_second_of_two_compactions_of_one_group_gives_up(lake: Lake) -> None:
    table = changed_table(lake)
    first, second = start(table), start(table)

    assert first.commit().lost == {}
    trim(opened(table).pair())
    landing = second.commit()

    assert landing.landed == ()
    assert all("input files are gone" in reason for reason in landing.lost.values())
    check(table, MERGED)


def test_a_death_between_merge_and_trim_does_no_harm(lake: Lake) -> None:
    """Readers skip merged changes by the watermark; the next compaction drops them."""
    table = changed_table(lake)
    start(table).commit()

    waiting = [f for f in table.files() if f["role"] == "change"]
    check(table, MERGED)
    table.upsert(rows([3], "late"))
    check(table, {**MERGED, 3: "late"})
    table.compact("major")

    assert len(waiting) == 2
    assert [f for f in table.files() if f["role"] == "change"] == []
    check(table, {**MERGED, 3: "late"})


def test_a_reader_between_merge_and_trim_loads_base_again(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Base is loaded first: when changes are trimmed after that, the pair would lack them."""
    table = changed_table(lake)
    load_table = lake.catalog.load_table

    def load(name: object) -> object:
        if "__changes" in str(name):
            monkeypatch.setattr(lake.catalog, "load_table", load_table)
            start(table).commit()
            trim(load_pair(lake.catalog, table.name))
        return load_table(name)  # type: ignore[arg-type]

    monkeypatch.setattr(lake.catalog, "load_table", load)
    pair = load_settled(lake.catalog, table.name)

    state = load_state(pair)
    assert state.files.changes == ()
    assert state.view.watermark.through > 0
    last = pair.change.current_snapshot() if pair.change else None
    assert last is not None
    assert last.summary is not None
    told = last.summary.additional_properties
    assert (told["arctic.kind"], MERGED_INTO in told) == (TRIM, True)
    check(table, MERGED)


def test_minor_and_major_of_the_same_changes_may_cross(lake: Lake) -> None:
    """Whoever lands second, each change counts once: the watermark is judged row by row."""
    table = orders(lake, options={"initial-nodes": 1})
    table.insert(rows(range(5)))
    table.upsert(rows([1, 2], "one"))
    table.upsert(rows([2, 3], "two"))
    major = start(table)
    table.upsert(rows([3, 4], "three"))
    minor = start(table, "minor")

    assert major.commit().lost == {}
    assert minor.commit().lost == {}

    expected = {0: "new", 1: "one", 2: "two", 3: "three", 4: "three"}
    check(table, expected)
    table.upsert(rows([1], "four"))
    check(table, {**expected, 1: "four"})
    trim(opened(table).pair())
    table.compact("major")
    check(table, {**expected, 1: "four"})
    assert statuses(table, mode="base") == {**expected, 1: "four"}


def test_minor_that_lost_its_inputs_gives_up(lake: Lake) -> None:
    table = orders(lake, options={"initial-nodes": 1})
    for number in range(3):
        table.upsert(rows([number], "x"))
    minor = start(table, "minor")
    table.compact("major")

    landing = minor.commit()

    assert landing.landed == ()
    check(table, {0: "x", 1: "x", 2: "x"})


def test_a_foreign_append_during_a_compaction_is_kept(lake: Lake) -> None:
    table = changed_table(lake)
    under_way = start(table)
    base = lake.catalog.load_table(table.name)
    base.append(rows([40], "foreign").cast(base.schema().as_arrow()))

    assert under_way.commit().lost == {}

    check(table, {**MERGED, 40: "foreign"})


def test_writers_and_compactions_at_the_same_time_agree_with_a_dict(lake: Lake) -> None:
    """SPL-08: a split under way loses nothing of what is written meanwhile."""
    table = orders(lake, options={"initial-nodes": 1, "target-file-size": "1KB"})
    other = lake.table(table.name)

    def write() -> dict[int, str]:
        known: dict[int, str] = {}
        for number in range(8):
            ids = range(number * 40, number * 40 + 80)
            table.upsert(rows(ids, f"s{number}"))
            known |= dict.fromkeys(ids, f"s{number}")
        return known

    def compact() -> list[str]:
        return [other.compact(kind).kind for kind in ("major", "minor", "auto", "major", "full")]

    with ThreadPoolExecutor(2) as pool:
        written, compacted = pool.submit(write), pool.submit(compact)
        expected, kinds = written.result(), compacted.result()

    assert set(kinds) <= {"none", "minor", "major", "full"}
    check(table, expected)
    table.compact("major")
    assert statuses(table, mode="base") == expected
    assert (
        pa.compute.max(table.to_arrow(metadata=True)["_version"]).as_py() <= table.detail().version
    )


@pytest.mark.parametrize("table_ending", ["orders", "orders__changes"])
@pytest.mark.parametrize("landed", [True, False])
def test_a_stop_at_any_commit_loses_no_file_of_the_table(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, table_ending: str, landed: bool
) -> None:
    """A commit that was sent may have landed: its files are never removed on the way out."""
    table = orders(lake, **BY_STATUS)
    table.insert(rows(range(4000), "a"))
    table.insert(rows(range(10), "b"))
    for number in range(9):
        table.upsert(rows([number], "a", qty=number))
    table.upsert(rows(range(10), "b", qty=9))
    commit = SqlCatalog.commit_table

    def stop(self: SqlCatalog, told: object, *rest: object) -> object:
        mine = told.name()[-1] == table_ending  # type: ignore[attr-defined]
        if mine and not landed:
            raise KeyboardInterrupt
        done = commit(self, told, *rest)  # type: ignore[arg-type]
        if mine:
            raise KeyboardInterrupt
        return done

    before = sorted(map(str, table.to_arrow().to_pylist()))
    monkeypatch.setattr(SqlCatalog, "commit_table", stop)
    with pytest.raises(KeyboardInterrupt):
        table.compact("auto")
    monkeypatch.undo()

    assert sorted(map(str, table.to_arrow().to_pylist())) == before
    assert table.verify().ok
    table.compact("major")
    assert sorted(map(str, table.to_arrow(mode="base").to_pylist())) == before
