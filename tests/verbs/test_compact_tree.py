"""What compaction does to leaves and ranges: split, merged back, sorted, or left alone."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from arcticlake import Lake
from arcticlake.tree.hash import key_hash
from tests.verbs.compacted import check, heavy, live_files, told
from tests.verbs.shop import orders, statuses


def test_a_stream_into_one_node_grows_without_help(lake: Lake) -> None:
    """SPL-01, SPL-12: auto splits leaves as they fill, readers and writers notice nothing."""
    table = orders(lake, options={"initial-nodes": 1, "target-file-size": "2KB"})
    expected: dict[int, str] = {}
    events: list[str] = []
    for number in range(12):
        batch = heavy(range(number * 500, number * 500 + 500), f"s{number}")
        table.upsert(batch)
        expected |= told(batch)
        events += table.compact("auto").events

    assert len(table.tree().leaves) >= 16
    assert any(event.startswith("split 0/0 into") for event in events)
    check(table, expected)


def test_a_hot_leaf_is_split_and_its_neighbours_are_left_alone(lake: Lake) -> None:
    """SPL-08, SPL-14."""
    table = orders(lake, options={"initial-nodes": 4})
    table.insert(heavy(range(4000)))
    table.compact("full")
    largest = max(int(str(f["bytes"])) for f in table.files())
    table.set_options({"leaf-size": largest * 3 // 2})
    leaf = {str(f["path"]): (f["mask"], f["index"]) for f in table.files()}
    hot = next(path for path, node in leaf.items() if node == (3, 1))
    mine = heavy([n for n in range(4000, 40_000) if _leaf(n) == 1][:1500], "hot")
    table.upsert(mine)

    result = table.compact("auto")

    assert result.events == ("split 3/1 into 7/1 7/5",)
    assert leaf.keys() - live_files(table) == {hot}
    assert len(table.tree().leaves) == 5
    check(table, told(heavy(range(4000))) | told(mine))


def _leaf(key: int) -> int:
    return int(key_hash(pa.array([key], pa.int64()))[0]) & 3


def test_small_siblings_are_merged_back_but_never_below_the_initial_nodes(lake: Lake) -> None:
    """SPL-13."""
    table = orders(lake, options={"initial-nodes": 2, "leaf-size": "10KB"})
    table.insert(heavy(range(3000)))
    table.compact("full")
    grown = len(table.tree().leaves)
    table.delete("order_id >= 20")

    table.set_options({"leaf-size": "2MB"})
    events = table.compact("full").events

    assert grown >= 8
    assert len(table.tree().leaves) == 2
    assert events
    assert all(event.startswith("merge") for event in events)
    check(table, told(heavy(range(20))))


def test_base_files_outside_the_range_of_the_changes_stay(lake: Lake) -> None:
    """CMP-10, CMP-11: only what the changes may touch is rewritten."""
    options = {"initial-nodes": 1, "target-file-size": "4KB", "leaf-size": "1GB"}
    table = orders(lake, options=options)
    table.insert(heavy(range(1000)))
    table.compact("full")
    before = {str(f["path"]): f for f in table.files()}
    assert len(before) > 3
    news = heavy([998, 999, 1700], "paid")
    table.upsert(news)

    result = table.compact("major")

    gone = [before[path] for path in before.keys() - live_files(table)]
    assert [file["max_key"] for file in gone] == [999]
    assert result.files_removed == 2
    check(table, told(heavy(range(1000))) | told(news))


@pytest.mark.parametrize("kind", ["major", "full", "auto"])
def test_rows_come_out_sorted_inside_files_and_between_them(lake: Lake, kind: str) -> None:
    """KEY-11, SRT-03 to SRT-05: also where sort values are NULL or equal."""
    options = {"initial-nodes": 1, "target-file-size": "4KB"}
    table = orders(lake, sort_by=["qty", "status"], options=options)
    rng = np.random.default_rng(5)
    expected: dict[int, str] = {}
    for number in range(4):
        ids = rng.choice(2000, 500, replace=False).tolist()
        quantities = [None if n % 90 == 0 else int(n % 50) for n in ids]
        batch = heavy(ids, f"s{number}")
        table.upsert(batch.set_column(3, "qty", pa.array(quantities, pa.int32())))
        expected |= told(batch)

    table.compact(kind)

    found = [pq.read_table(path) for path in live_files(table)]
    assert len(found) > 3
    order = [(name, "ascending", "at_start") for name in ("qty", "status")]
    assert all(file.equals(file.sort_by(order)) for file in found)
    ranges = sorted(
        (min(known), max(known)) for file in found if (known := file["qty"].drop_null().to_pylist())
    )
    assert all(high <= low for (_, high), (low, _) in pairwise(ranges))
    check(table, expected)
    assert statuses(table, mode="base") == expected
