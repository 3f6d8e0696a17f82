"""The order of an answer, and the newest row of a key among rows that were read."""

from __future__ import annotations

import pyarrow as pa
import pytest

from arcticlake.pull.arrow import in_order, newest_of_key, pull_jobs, pull_task
from arcticlake.pull.columns import tell, travel_schema
from arcticlake.pull.plan import PullPlan, plan_pull
from arcticlake.pull.range import PullMode
from arcticlake.pull.steps import Steps
from arcticlake.resolve.kernel import Keep
from arcticlake.table.storage import Storage, storage_of
from tests.pull.test_plan import ADDED, STEPS, table

SCHEMA = pa.schema([pa.field("id", pa.int64())])


@pytest.fixture
def storage() -> Storage:
    return storage_of({})


def rows(*found: tuple[int, str, int | None, int]) -> pa.Table:
    """Rows of (key, type, order, version)."""
    batches = [
        tell(
            [pa.array([key], pa.int64())],
            pa.array([kind]),
            pa.array([order], pa.int64()),
            (version, 0, version),
            SCHEMA,
        )
        for key, kind, order, version in found
    ]
    return pa.Table.from_batches(batches, schema=travel_schema(SCHEMA))


def plan(mode: PullMode) -> PullPlan:
    return plan_pull(table(), mode, Steps(()), {}, None)


def shown(found: pa.Table) -> list[tuple[int, str]]:
    return [(row["id"], row["_change_type"]) for row in found.to_pylist()]


def test_raw_is_ordered_by_version_then_order_then_place() -> None:
    found = rows(
        (1, "insert", 5, 2), (2, "insert", 3, 2), (3, "insert", 3, 2), (4, "insert", None, 1)
    )

    ordered = in_order(found, plan(PullMode.RAW), ["id"], moves=False)

    assert [key for key, _ in shown(ordered)] == [4, 2, 3, 1]


def test_a_row_that_moves_is_deleted_before_it_comes() -> None:
    found = rows((1, "insert", 3, 2), (1, "delete", 3, 2))

    ordered = in_order(found, plan(PullMode.RAW), ["id"], moves=True)

    assert shown(ordered) == [(1, "delete"), (1, "insert")]


def test_net_is_ordered_by_version_then_key() -> None:
    found = rows((9, "insert", 1, 2), (3, "insert", 2, 2), (5, "delete", 0, 1))

    ordered = in_order(found, plan(PullMode.NET), ["id"], moves=False)

    assert [key for key, _ in shown(ordered)] == [5, 3, 9]


def test_the_newest_of_a_key_is_by_rank_then_order_and_a_move_ends_alive() -> None:
    found = rows(
        (1, "insert", 1, 1),
        (1, "delete", 0, 2),
        (2, "insert", 7, 2),
        (2, "delete", 7, 2),
        (3, "delete", None, 3),
        (3, "insert", 9, 2),
    )

    newest = newest_of_key(found, ["id"])

    assert shown(newest) == [(1, "delete"), (2, "insert"), (3, "delete")]


def test_jobs_read_keys_of_changes_alone_oldest_first(storage: Storage) -> None:
    planned = plan_pull(table(), PullMode.NET, STEPS, ADDED, None)

    jobs = pull_jobs(planned, storage, SCHEMA, pa.schema([]))

    assert all(job.bases == () and job.keep is Keep.NEWEST for job in jobs)
    assert [(f.path, f.sequence) for f in max(jobs, key=lambda job: len(job.changes)).changes] == [
        *(("b.parquet", 1), ("c.parquet", 2))
    ]


def test_a_task_knows_its_file_and_its_commit() -> None:
    planned = plan_pull(table(), PullMode.RAW, STEPS, ADDED, None)

    task = pull_task(planned.files[1])

    assert (task.scan.path, task.version, task.timestamp_ms, task.rank) == ("c.parquet", 2, 2000, 2)
