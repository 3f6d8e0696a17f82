from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from arcticlake import Lake, Table
from arcticlake.compact.parquet_rows import live_rows, marked_rows, measured
from arcticlake.table.change import SEQ
from tests.compact.lab import job_of


@pytest.fixture
def table(lake: Lake) -> Table:
    few = {"initial-nodes": 1}
    made = lake.create_table("shop.orders", "id bigint", primary_key="id", options=few)
    made.insert([{"id": n} for n in range(1000)])
    return made


def test_rows_come_in_batches_with_those_that_live(table: Table) -> None:
    """Batches that are dead as a whole do not come; one that lives as a whole has no mask."""
    job = measured(replace(job_of(table, "full"), memory=1))
    dead = np.zeros(1000, dtype=bool)
    dead[:100] = True
    (source,) = job.sources

    batches = list(marked_rows(job, source, dead))

    assert [rows.num_rows for rows, _ in batches[:2]] == [job.batch_rows] * 2
    assert [alive is None for _, alive in batches[:2]] == [False, True]
    assert batches[0][0]["id"][0].as_py() == job.batch_rows, "the first batch is dead"
    alive = [n for rows in live_rows(job, source, dead) for n in rows["id"].to_pylist()]
    assert alive == list(range(100, 1000))


def test_change_rows_write_down_the_sequence_of_their_commit(table: Table) -> None:
    versions = [table.upsert([{"id": n}]).version for n in (1, 2)]
    job = job_of(table, "minor")

    seen = [rows[SEQ].to_pylist() for one in job.sources for rows in live_rows(job, one, None)]

    assert seen == [[version] for version in versions]


def test_wide_rows_are_read_fewer_at_a_time(lake: Lake) -> None:
    """Text that repeats takes no room on disk; its width is seen from rows."""
    few = {"initial-nodes": 1}
    wide = lake.create_table("shop.w", "id bigint, v string", primary_key="id", options=few)
    wide.insert([{"id": n, "v": "long " * 2000} for n in range(100)])
    narrow = lake.create_table("shop.n", "id bigint", primary_key="id", options=few)
    narrow.insert([{"id": n} for n in range(100)])

    jobs = [measured(replace(job_of(table, "full"), memory=2**26)) for table in (wide, narrow)]

    assert [job.row_bytes > 10_000 for job in jobs] == [True, False]
    assert jobs[0].batch_rows < 1000 < jobs[1].batch_rows
