"""format("arctic") for streams: a thin door to the same commits.

    driver      streamWriter()  loads the table, draws the SinkJob
    executors   write()         rows of one task ─▶ files, and the query's id ─▶ a message
    driver      commit()        all messages of a batch ─▶ one version, under Once(query, batch)

Spark may call `commit` again for a batch that landed, and calls `abort` with the same messages even
then. So `abort` deletes nothing: what no commit names is left to orphan removal.

Tasks are not shared out by the tree here, since a sink cannot ask for it: each task writes its own
file for each leaf. `stream_upsert` writes fewer files and takes more kinds of tables.

Tasks start without pyiceberg: what only the driver needs is loaded there, from `spark_sink.py`.

Touches Spark and files.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from arcticlake.errors import InvalidRequest
from arcticlake.ingest.job import Written
from arcticlake.ingest.once import Once
from arcticlake.ingest.parquet import TreeWriter
from arcticlake.stream.sink import SinkJob, rows_to_write
from arcticlake.stream.spark_reader import StreamReader, feed_struct

PLANNER = "arcticlake.stream.spark_sink"
QUERY_ID = "sql.streaming.queryId"


@dataclass
class TaskMessage(WriterCommitMessage):
    """What one task wrote, and for which query."""

    written: Written
    query: str | None


class ArcticSource(DataSource):
    """The format by its name; the reading half is in `spark_reader.py`."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "arctic"

    def schema(self) -> StructType:
        """Return the columns of a reading stream."""
        return feed_struct(dict(self.options))

    def streamReader(self, schema: StructType) -> StreamReader:  # noqa: N802
        """Return the reader of a stream; the table is loaded on first need, on the driver."""
        return StreamReader(dict(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: N802
        """Return the writer of a stream; the table is loaded here, on the driver."""
        if overwrite:
            message = "format arctic: output mode complete is not for tables; use append or update"
            raise InvalidRequest(message)
        return StreamWriter(dict(self.options), schema)


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes micro-batches of one stream; a copy of it goes to every task."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self.options = {name.lower(): value for name, value in options.items()}
        self.job: SinkJob = import_module(PLANNER).plan_sink(self.options, schema)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:
        """Write the rows of one task; nothing is visible yet."""
        writer = TreeWriter(self.job.write)
        for batch in iterator:
            rows = pa.Table.from_batches([batch])
            writer.write(rows_to_write(rows, self.job, time.time_ns() // 1000))
        context = TaskContext.get()
        query = None if context is None else context.getLocalProperty(QUERY_ID)
        return TaskMessage(writer.finish(), query)

    def commit(
        self,
        messages: Sequence[WriterCommitMessage | None],
        batchId: int,  # noqa: N803 - Spark's own name
    ) -> None:
        """Commit what all tasks wrote as one version, unless the table has the batch."""
        told = [message for message in messages if isinstance(message, TaskMessage)]
        files = tuple(file for one in told for file in one.written.files)
        if not any(one.written.files or one.written.problem for one in told):
            return
        written = Written(files, next((m.written.problem for m in told if m.written.problem), None))
        writers = sum(bool(message.written.files) for message in told)
        commit = import_module(PLANNER).commit_batch
        commit(self.options, self.job, written, _once(told, batchId), writers)

    def abort(
        self,
        messages: Sequence[WriterCommitMessage | None],
        batchId: int,  # noqa: N803 - Spark's own name
    ) -> None:
        """Leave all files: Spark aborts also batches whose commit landed."""


def _once(messages: Sequence[TaskMessage], batch: int) -> Once:
    query = next((message.query for message in messages if message.query), None)
    if query is None:
        message = f"format arctic: batch {batch} has no query id; use stream_upsert instead"
        raise InvalidRequest(message)
    return Once(query, batch)


def register_source(spark: SparkSession) -> SparkSession:
    """Make the format known to a session, and return it."""
    spark.dataSource.register(ArcticSource)
    return spark
