"""The runner of one piece against the obvious answer: a dict of rows, sorted or in ranges."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from arcticlake import Lake, Table
from arcticlake.compact.job import Rewritten
from arcticlake.compact.parquet import run_in_threads, run_piece
from arcticlake.errors import CorruptData
from arcticlake.ingest import parquet as writing
from arcticlake.tree.hash import key_hash
from arcticlake.tree.node import Node
from tests.compact.lab import job_of

COLUMNS = "k string, n int, f double, v bigint"


@pytest.fixture(autouse=True)
def small_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many row groups in a file, so that segments begin and end inside files."""
    monkeypatch.setattr(writing, "ROW_GROUP_BYTES", 4096)


def batch(rng: np.random.Generator, size: int) -> pa.Table:
    numbers = rng.choice(3000, size, replace=False)
    return pa.table(
        {
            "k": [f"key {number:05d}" for number in numbers],
            "n": pa.array([None if x % 11 == 0 else int(x % 40) for x in numbers], pa.int32()),
            "f": pa.array([float("nan") if x % 13 == 0 else x / 7 for x in numbers]),
            "v": rng.integers(0, 2**40, size),
        }
    )


def history(lake: Lake, **settings: object) -> tuple[Table, dict[str, int]]:
    """Write a base and changes; return the table and its rows."""
    options = {"initial-nodes": 1}
    table = lake.create_table(
        "a.b",
        COLUMNS,
        primary_key="k",
        options=options,
        **settings,  # type: ignore[arg-type]
    )
    rng = np.random.default_rng(3)
    known: dict[str, int] = {}
    first = batch(rng, 2000)
    table.insert(first)
    for rows in (first, *(batch(rng, 500) for _ in range(3))):
        if rows is not first:
            table.upsert(rows)
        known |= dict(zip(rows["k"].to_pylist(), rows["v"].to_pylist(), strict=True))
    gone = list(known)[:300]
    table.delete(pa.table({"k": gone}))
    return table, {key: value for key, value in known.items() if key not in gone}


def files_of(done: Rewritten) -> list[pa.Table]:
    return [pq.read_table(file.path, partitioning=None) for file in done.files]


def rows_of(files: list[pa.Table]) -> dict[str, int]:
    rows = pa.concat_tables(files)
    found = dict(zip(rows["k"].to_pylist(), rows["v"].to_pylist(), strict=True))
    assert len(found) == rows.num_rows, "a key comes twice"
    return found


def test_a_hash_merge_writes_the_live_rows_once(lake: Lake) -> None:
    """HSH-01 to HSH-08."""
    table, known = history(lake)

    done = run_piece(job_of(table))

    assert len(done.files) == 1
    assert rows_of(files_of(done)) == known
    assert done.rows_read == 2000 + 3 * 500 + 300


@pytest.mark.parametrize("lanes", [2, 5])
def test_files_of_a_leaf_have_disjoint_key_ranges(lake: Lake, lanes: int) -> None:
    """HSH-03, HSH-05: in order between files, as they come inside."""
    table, known = history(lake)

    files = files_of(run_piece(replace(job_of(table), lanes=lanes)))

    assert len(files) == lanes
    assert rows_of(files) == known
    ranges = sorted((min(f["k"].to_pylist()), max(f["k"].to_pylist())) for f in files)
    assert all(high < low for (_, high), (low, _) in pairwise(ranges))
    assert max(f.num_rows for f in files) < 1.3 * len(known) / lanes


def test_rows_go_to_the_leaves_that_a_split_makes(lake: Lake) -> None:
    """SPL-07, HSH-09."""
    table, known = history(lake)
    leaves = (Node(1, 0), Node(3, 1), Node(3, 3))

    done = run_piece(replace(job_of(table), outputs=leaves))

    assert {file.node for file in done.files} == set(leaves)
    for file, rows in zip(done.files, files_of(done), strict=True):
        assert (key_hash(rows["k"]) & file.node.mask == file.node.index).all()
    assert rows_of(files_of(done)) == known


@pytest.mark.parametrize("sort", [["n", "k"], ["f"], ["k"]])
@pytest.mark.parametrize("memory", [1, 2**18, 2**30])
def test_a_sort_merge_is_sorted_whatever_memory_it_has(
    lake: Lake, sort: list[str], memory: int
) -> None:
    """SRT-02 to SRT-06: segments of any size give the same rows in the same order."""
    table, known = history(lake, sort_by=sort)
    job = job_of(table)

    done = run_piece(replace(job, memory=memory, write=replace(job.write, file_bytes_max=20_000)))

    files = files_of(done)
    assert len(files) > 1
    assert rows_of(files) == known
    rows = pa.concat_tables(files).select(sort)
    assert [order_of(row) for row in rows.to_pylist()] == sorted(
        order_of(row) for row in rows.to_pylist()
    )


def order_of(row: dict[str, object]) -> list[tuple[int, object]]:
    """NULL first, NaN last."""
    return [
        (0, 0) if value is None else (2, 0) if value != value else (1, value)  # noqa: PLR0124
        for value in row.values()
    ]


def test_rows_of_a_minor_carry_the_sequence_of_their_commit(lake: Lake) -> None:
    """MIN-04."""
    table, _ = history(lake)

    (file,) = files_of(run_piece(job_of(table, "minor")))

    counts = dict(zip(*np.unique(file["_seq"].to_numpy(), return_counts=True), strict=True))
    assert counts == {2: 500, 3: 500, 4: 500, 5: 300}


def test_a_piece_that_fails_removes_what_it_wrote(lake: Lake, tmp_path: Path) -> None:
    table, _ = history(lake)
    job = job_of(table)
    broken = replace(job.sources[-1], path=str(tmp_path / "missing.parquet"))
    job = replace(job, resolve=None, sources=(*job.sources[:-1], broken))
    job = replace(job, write=replace(job.write, location=str(tmp_path / "out")))

    with pytest.raises(CorruptData, match=r"missing\.parquet"):
        run_piece(job)

    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []


def test_tasks_in_threads_tell_as_they_end(lake: Lake) -> None:
    table, known = history(lake)
    job = job_of(table)
    heard: list[Rewritten] = []

    run_in_threads([(job,), (job,)], 2, heard.extend)

    assert len(heard) == 2
    assert rows_of(files_of(heard[0])) == known


def test_one_task_that_fails_undoes_all(lake: Lake, tmp_path: Path) -> None:
    table, _ = history(lake)
    job = job_of(table)
    job = replace(job, write=replace(job.write, location=str(tmp_path / "out")))
    broken = replace(job, sources=(replace(job.sources[0], path=str(tmp_path / "gone.parquet")),))

    with pytest.raises(CorruptData, match=r"gone\.parquet"):
        run_in_threads([(job,), (broken,)], 2, lambda _: None)

    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []
