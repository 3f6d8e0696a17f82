"""Rows of any files in order, with any memory: chains, runs, files that others wrote."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from arcticlake import Lake, Table
from arcticlake.compact import parquet_rows, parquet_sort
from arcticlake.compact.job import PieceJob, Source
from arcticlake.compact.parquet_rows import measured
from arcticlake.compact.parquet_sort import follow_up, sorted_rows
from arcticlake.read import parquet
from arcticlake.tree.files import Role
from tests.compact.lab import job_of

LITTLE = 2**12
MUCH = 2**30


def orders(ids: range | np.ndarray, times: range | np.ndarray) -> pa.Table:
    return pa.table({"id": list(ids), "at": list(times), "note": [f"note {n}" for n in ids]})


@pytest.fixture
def table(lake: Lake) -> Table:
    return lake.create_table(
        "shop.orders",
        "id bigint, at bigint, note string",
        primary_key="id",
        sort_by=["at"],
        options={"initial-nodes": 1},
    )


def with_memory(table: Table, memory: int) -> PieceJob:
    return measured(replace(job_of(table, "full"), memory=memory))


def times_of(job: PieceJob) -> list[int]:
    return [at for rows in sorted_rows(job, {}) for at in rows["at"].to_pylist()]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How many whole rows are read of every file."""
    counts: dict[str, int] = {}
    whole = parquet.read_batches

    def counted(storage: object, path: str, *args: object, **more: object) -> Iterator[object]:
        for batch in whole(storage, path, *args, **more):  # type: ignore[arg-type]
            counts[path] = counts.get(path, 0) + batch.num_rows
            yield batch

    monkeypatch.setattr(parquet_rows, "read_batches", counted)
    return counts


@pytest.fixture
def spilled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows every run has that waits in the temporary folder."""
    runs: list[int] = []
    spill = parquet_sort._spill

    def counted(rows: pa.Table, path: Path) -> None:
        runs.append(rows.num_rows)
        spill(rows, path)

    monkeypatch.setattr(parquet_sort, "_spill", counted)
    return runs


def test_files_that_follow_each_other_pass_by_once(
    table: Table, read: dict[str, int], spilled: list[int]
) -> None:
    """SRT-03: the steady state, in which nothing but the changes is sorted."""
    for start in (2000, 0, 1000):
        table.insert(orders(range(start, start + 1000), range(start, start + 1000)))

    job = with_memory(table, LITTLE)
    read.clear()

    assert times_of(job) == list(range(3000))
    assert sorted(read.values()) == [1000] * 3
    assert spilled == []


def test_files_that_overlap_are_sorted_in_runs(
    table: Table, read: dict[str, int], spilled: list[int]
) -> None:
    rng = np.random.default_rng(1)
    times = rng.integers(0, 10_000, 3000)
    for start in (0, 1000, 2000):
        table.insert(orders(range(start, start + 1000), times[start : start + 1000]))

    job = with_memory(table, LITTLE)
    read.clear()

    assert times_of(job) == sorted(times.tolist())
    assert sorted(read.values()) == [1000] * 3
    assert sum(spilled) > 1500, "of three files that overlap only one is a chain"


def test_rows_that_fit_are_sorted_at_once(table: Table, spilled: list[int]) -> None:
    for start in (0, 1000):
        table.insert(orders(range(start, start + 1000), range(1000)))

    (rows,) = sorted_rows(with_memory(table, MUCH), {})

    assert rows.num_rows == 2000
    assert spilled == []


def test_memory_bounds_what_comes_at_once(table: Table) -> None:
    table.insert(orders(range(5000), np.full(5000, 7)))
    table.insert(orders(range(5000, 10_000), np.full(5000, 7)))

    tables = list(sorted_rows(with_memory(table, 2**18), {}))

    assert sum(rows.num_rows for rows in tables) == 10_000
    assert max(rows.nbytes for rows in tables) < 2**18


def test_rows_that_take_no_room_on_disk_are_bounded_too(table: Table) -> None:
    """Repeated text is small in a file and large in memory."""
    for start in (0, 4000):
        ids = range(start, start + 4000)
        table.insert(pa.table({"id": ids, "at": ids[::-1], "note": ["long " * 200] * 4000}))
    job = with_memory(table, 2**22)

    tables = list(sorted_rows(job, {}))

    assert job.row_bytes > 1000
    assert sum(rows.num_rows for rows in tables) == 8000
    assert max(rows.nbytes for rows in tables) < 2**21


def test_a_file_that_is_not_in_order_is_found_out(
    table: Table, read: dict[str, int], spilled: list[int]
) -> None:
    """Another engine may write base files; nothing tells how their rows lie."""
    table.insert(orders(range(1000), range(1000)))
    table.insert(orders(range(1000, 2000), range(1000, 2000)))
    job = with_memory(table, LITTLE)
    last = job.sources[1].path.removeprefix("file://")
    rows = pq.read_table(last)
    pq.write_table(rows.take(np.random.default_rng(1).permutation(1000)), last)

    read.clear()

    assert times_of(job) == list(range(2000))
    assert sum(spilled) > 800, "it goes through runs"
    assert sorted(read.values()) == [1000, 1000]


def source(name: str, low: int, high: int) -> Source:
    return Source(name, Role.BASE, 1, 1, (low, high))


def test_the_longest_line_of_files_is_chosen() -> None:
    wide = source("wide", 0, 100)
    line = [source("a", 0, 10), source("b", 10, 20), source("c", 50, 60)]

    assert follow_up([wide, *reversed(line)]) == line
    assert follow_up([]) == []
