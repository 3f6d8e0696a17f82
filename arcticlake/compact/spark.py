"""Tasks of a compaction on Spark: each is a job of one Python task, several at a time.

A task's description goes out as one row, and the description of its files comes back. One job for
each task, instead of one for all, tells how far the work is, starts the next task on whatever
core is free, and works the same on Spark Connect. Of a task that Spark tried twice only the answer
of the attempt that it accepted comes back, so files of other attempts are never committed. Whoever
stops the driver stops its tasks, by their tag.

Touches Spark.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import SparkSession

from arcticlake.compact.job import Rewritten, TaskJob
from arcticlake.compact.parquet import run_side_by_side, run_task


def run_on_spark(
    spark: SparkSession,
    jobs: Sequence[TaskJob],
    workers: int,
    done: Callable[[Sequence[Rewritten]], None],
) -> None:
    """Run tasks on executors; `done` hears of each as it ends."""
    tag = f"arctic-{uuid4().hex}"

    def run(job: TaskJob) -> tuple[Rewritten, ...]:
        return _run(spark, tag, job)

    run_side_by_side(run, jobs, workers, done, lambda: _interrupt(spark, tag))


def _interrupt(spark: SparkSession, tag: str) -> None:
    spark.interruptTag(tag)


def _run(spark: SparkSession, tag: str, job: TaskJob) -> tuple[Rewritten, ...]:
    spark.addTag(tag)
    rows = pa.table({"task": pa.array([pickle.dumps(job)], pa.binary())})
    frame = spark.createDataFrame(rows).coalesce(1).mapInArrow(_task, "rewritten binary")
    answers = frame.collect()
    return tuple(piece for answer in answers for piece in pickle.loads(answer[0]))  # noqa: S301


def _task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for raw in batch.column(0).to_pylist():
            done = run_task(pickle.loads(raw))  # noqa: S301 - our own driver made it
            yield pa.RecordBatch.from_pydict(
                {"rewritten": pa.array([pickle.dumps(done)], pa.binary())}
            )
