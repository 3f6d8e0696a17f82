"""format("arctic") for streams: a thin door to the same commits.

    driver      streamWriter()  loads the table, draws the SinkJob
    executors   write()         rows of one task ─▶ files, and the query's id ─▶ a message
    driver      commit()        all messages of a batch ─▶ one version, under Once(query, batch)

Spark may call `commit` again for a batch that landed, and calls `abort` with the same messages even
then. So `abort` deletes nothing: what no commit names is left to orphan removal.

Tasks are not shared out by the tree here, since a sink cannot ask for it: each task writes its own
file for each leaf. `stream_upsert` writes fewer files and takes more kinds of tables.

Touches Spark, files and the catalog.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from arcticlake.commit.iceberg_state import load_settled, load_state
from arcticlake.errors import InvalidRequest
from arcticlake.ingest.iceberg import append_base, append_changes
from arcticlake.ingest.job import Written
from arcticlake.ingest.once import Once
from arcticlake.ingest.parquet import TreeWriter, remove_files
from arcticlake.ingest.plan import base_job, change_job
from arcticlake.read.parquet import read_batches
from arcticlake.stream.sink import SinkJob, SinkRequest, parse_options, repeated, rows_to_write
from arcticlake.stream.spark_reader import StreamReader, feed_struct
from arcticlake.table.iceberg import TablePair, open_catalog, sync_change_schema
from arcticlake.table.spec import TableSpec
from arcticlake.table.types import arrow_schema, schema_from_spark

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
        self.job = _plan(load_target(self.options), parse_options(self.options), schema)

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
        commit_batch(load_target(self.options), self.job, written, _once(told, batchId), writers)

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


def load_target(options: Mapping[str, str]) -> TablePair:
    """Load the table that the options name."""
    catalog = open_catalog(options.get("warehouse"), options.get("catalog"))
    return sync_change_schema(load_settled(catalog, parse_options(options).table))


def _plan(pair: TablePair, request: SinkRequest, schema: StructType) -> SinkJob:
    """Return the job of every task; what the schema can tell is refused here."""
    spec = pair.spec
    _refuse_kind(spec, request)
    state = load_state(pair)
    if pair.change is None:
        write = base_job(spec, pair.base.location(), pair.storage, state.forest)
    else:
        place, ordered = pair.change.location(), request.order_by is not None
        write = change_job(spec, place, pair.storage, state.forest, ordered=ordered)
    job = SinkJob(request, arrow_schema(spec.schema), write, spec.keyed)
    empty = arrow_schema(schema_from_spark(schema.jsonValue())).empty_table()
    rows_to_write(empty, job, 0)
    return job


def _refuse_kind(spec: TableSpec, request: SinkRequest) -> None:
    asks = request.order_by is not None or request.delete_when is not None
    if not spec.keyed and asks:
        message = f"table {spec.name} has no primary key: rows are inserted as they come (NPK-01)"
        raise InvalidRequest(message)
    if not spec.keyed and spec.sort_ids:
        message = f"table {spec.name} has a sort key and no primary key; use stream_upsert"
        raise InvalidRequest(message)
    if spec.keyed and not spec.key_decides_partition:
        message = (
            f"table {spec.name}: its partition does not follow from its key, and format arctic "
            "cannot look rows up; use stream_upsert(..., locate=True)"
        )
        raise InvalidRequest(message)


def commit_batch(pair: TablePair, job: SinkJob, written: Written, once: Once, writers: int) -> None:
    """Commit the files of one batch, or refuse it and remove them."""
    paths = [file.path for file in written.files]
    problem = written.problem
    if problem is None and writers > 1 and job.write.unique:
        problem = repeated(_keys(job, paths))
    if problem is not None:
        remove_files(job.write.storage, paths)
        message = f"table {pair.spec.name}: {problem}; nothing was written"
        raise InvalidRequest(message)
    if pair.change is None:
        done = append_base(pair, written.files, check=lambda _: None, once=once)
    else:
        landed = append_changes(pair, written.files, kind="upsert", properties={}, once=once)
        assert landed is not None, "only a look-up can be overtaken"
        done = landed
    if done.files == 0:
        remove_files(job.write.storage, paths)


def _keys(job: SinkJob, paths: Sequence[str]) -> Iterator[pa.Table]:
    schema = pa.schema([job.write.schema.field(name) for name in job.write.unique])
    for path in paths:
        for batch in read_batches(job.write.storage, path, schema):
            yield pa.Table.from_batches([batch])


def register_source(spark: SparkSession) -> SparkSession:
    """Make the format known to a session, and return it."""
    spark.dataSource.register(ArcticSource)
    return spark
