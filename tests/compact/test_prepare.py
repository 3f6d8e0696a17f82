from __future__ import annotations

import pickle

from arcticlake import Lake
from arcticlake.compact.job import TaskJob
from arcticlake.compact.prepare import WITHOUT_END, prepare_tasks
from arcticlake.resolve.kernel import Keep
from arcticlake.verbs.compact import workshop
from tests.compact.lab import opened
from tests.verbs.shop import orders, rows


def jobs(lake: Lake, kind: str, **settings: object) -> list[TaskJob]:
    table = orders(lake, **settings)
    table.insert(rows(range(20)))
    for number in range(3):
        table.upsert(rows(range(number, number + 5), "x")) if settings.get(
            "primary_key", "order_id"
        ) else table.insert(rows([number]))
    return prepare_tasks(table.plan_compaction(kind), workshop(opened(table).state()))


def test_a_hash_merge_reads_base_first_and_closes_no_file_by_size(lake: Lake) -> None:
    """HSH-04, HSH-07: rows of base, then what no base row met."""
    ((job,),) = jobs(lake, "major", options={"initial-nodes": 1, "task-memory": "64MB"})

    assert [source.role for source in job.sources] == ["base", "change", "change", "change"]
    assert job.write.file_bytes_max == WITHOUT_END
    assert (job.sort, job.lanes, job.stamps) == ((), 1, False)
    assert job.resolve is not None
    assert job.resolve.keep is Keep.LIVE
    assert job.write.buffer_bytes_max == 16 * 2**20
    assert job.rows == 35


def test_a_sort_merge_rolls_files_at_their_size(lake: Lake) -> None:
    """SRT-05."""
    ((job,),) = jobs(lake, "major", options={"initial-nodes": 1}, sort_by=["qty"])

    assert job.sort == ("qty",)
    assert job.write.file_bytes_max == 128 * 2**20


def test_change_rows_keep_their_sequence_in_a_minor(lake: Lake) -> None:
    """MIN-04: and collapse only where the table says so."""
    ((job,),) = jobs(lake, "minor", options={"initial-nodes": 1})

    assert job.stamps
    assert job.resolve is None
    assert [source.sequence for source in job.sources] == [2, 3, 4]


def test_changes_that_may_collapse_are_resolved_with_their_deletes(lake: Lake) -> None:
    """MIN-02."""
    options = {"initial-nodes": 1, "collapse-changes": True}
    ((job,),) = jobs(lake, "minor", options=options)

    assert job.resolve is not None
    assert job.resolve.keep is Keep.NEWEST


def test_rows_without_a_key_need_no_resolution(lake: Lake) -> None:
    ((job,),) = jobs(lake, "full", primary_key=())

    assert job.resolve is None
    assert job.outputs[0].buckets == 1


def test_a_job_travels_to_executors_whole(lake: Lake) -> None:
    found = jobs(lake, "major")

    assert pickle.loads(pickle.dumps(found)) == found
