"""stream_upsert, from the call to a query that runs.

    stream ─▶ micro-batch ─▶ Once(query, batch) ─▶ the same upsert as a batch ─▶ one commit

Everything that the schema can tell is refused before the query starts. Spark hands every
micro-batch to `_Door`, at least once; the table takes it exactly once (`ingest/once.py`). A batch
that breaks a rule of rows stops the query with the same error that `upsert` raises, and nothing
of it is visible.

On Spark Connect the door is sent to the server and opened again there, from the properties of the
catalog.

Touches Spark, files and the catalog.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from pyiceberg.catalog import Catalog, load_catalog
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from arcticlake.errors import InvalidRequest, NotFound
from arcticlake.ingest import spark as ingest_spark
from arcticlake.ingest.iceberg import Committed
from arcticlake.stream.once import METADATA, Once, query_id
from arcticlake.stream.spark_size import BatchSize
from arcticlake.stream.trigger import parse_trigger
from arcticlake.verbs.compact import after_write
from arcticlake.verbs.opened import Opened
from arcticlake.verbs.write import Batch, UpsertRequest, check_upsert, upsert

WriteBatch: TypeAlias = Callable[[Opened, DataFrame, Once], Committed]
"""Commits the rows of one micro-batch under its name."""

Request = TypeVar("Request")


@dataclass(frozen=True, slots=True)
class StreamRequest:
    """What the caller asked of a stream, whatever its rows."""

    checkpoint: str
    trigger: str | None = None
    query_name: str | None = None


def stream_upsert(
    table: Opened, frame: object, request: StreamRequest, rows: UpsertRequest
) -> StreamingQuery:
    """Start a query that upserts every micro-batch of a streaming frame, each exactly once."""
    stream = streaming_frame(frame, table.name, "upsert")
    spec = table.pair_to_write().spec
    check_upsert(spec, rows)
    if spec.keyed:
        ingest_spark.project_changes(
            stream, spec, order_by=rows.order_by, delete_when=rows.delete_when
        )
    else:
        ingest_spark.project_rows(stream, spec)
    return start(table, stream, request, MicroBatch(upsert, rows))


@dataclass(slots=True)
class MicroBatch(Generic[Request]):
    """Commits one micro-batch after the other by a verb; remembers how large they are."""

    verb: Callable[[Opened, DataFrame, Request, Batch], Committed]
    request: Request
    size: BatchSize = field(default_factory=BatchSize)

    def __call__(self, table: Opened, frame: DataFrame, once: Once) -> Committed:
        """Commit a micro-batch."""
        done = self.verb(table, frame, self.request, Batch(once, self.size.collect))
        if done.files:
            self.size.rows = done.rows
        return done


def streaming_frame(frame: object, table: str, verb: str) -> DataFrame:
    """Return the frame if it is a stream; refuse all others with the verb that takes them."""
    if not isinstance(frame, DataFrame):
        message = (
            f"table {table}: a {type(frame).__name__} is no stream; pass a streaming DataFrame "
            f"from spark.readStream, or use {verb}()"
        )
        raise InvalidRequest(message)
    if not frame.isStreaming:
        message = f"table {table}: the frame is not streaming; use {verb}() for a batch"
        raise InvalidRequest(message)
    return frame


def start(
    table: Opened, frame: DataFrame, request: StreamRequest, write: WriteBatch
) -> StreamingQuery:
    """Start a query that hands every micro-batch, with its name, to `write`."""
    trigger = parse_trigger(request.trigger, table=table.name)
    checkpoint = str(request.checkpoint or "").strip()  # a Path will do
    if not checkpoint:
        message = (
            f"table {table.name}: checkpoint is {request.checkpoint!r}; a stream needs a folder of "
            "its own, and finds its place there after a restart"
        )
        raise InvalidRequest(message)
    table.session()  # a session that Arctic has not seen yet gets its settings
    writer: DataStreamWriter = frame.writeStream.foreachBatch(_Door(table, checkpoint, write))
    writer = writer.option("checkpointLocation", checkpoint)
    if request.query_name is not None:
        writer = writer.queryName(request.query_name)
    if trigger.available_now:
        writer = writer.trigger(availableNow=True)
    elif trigger.pause is not None:
        writer = writer.trigger(processingTime=trigger.pause)
    # With "update" a stateless stream sends new rows, an aggregate only the groups that changed.
    return writer.outputMode("update").start()


class _Door:
    """What Spark calls with every micro-batch; it pickles, for servers of Spark Connect."""

    def __init__(self, table: Opened, checkpoint: str, write: WriteBatch) -> None:
        self.table = table
        self.checkpoint = checkpoint
        self.write = write
        self.query: str | None = None

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Commit one micro-batch, unless the table has it."""
        if self.query is None:
            self.query = load_query_id(frame.sparkSession, self.checkpoint)
        done = self.write(self.table, frame, Once(self.query, batch))
        if done.files:
            after_write(self.table, done)

    def __reduce__(self) -> tuple[object, ...]:
        catalog: Catalog = self.table.catalog
        properties = dict(catalog.properties)
        return _reopen, (catalog.name, properties, self.table.name, self.checkpoint, self.write)


def _reopen(
    catalog: str, properties: dict[str, str], table: str, checkpoint: str, write: WriteBatch
) -> _Door:
    opened = load_catalog(catalog, **properties)
    return _Door(Opened(opened, table, _active_session), checkpoint, write)


def _active_session() -> SparkSession:
    session = SparkSession.getActiveSession()
    return SparkSession.builder.getOrCreate() if session is None else session


def load_query_id(spark: SparkSession, checkpoint: str) -> str:
    """Return the id in a checkpoint; the JVM reads it, which can open all that Spark can."""
    place = f"{checkpoint.rstrip('/')}/{METADATA}"
    lines = spark.read.option("__globPaths__", "false").text(place).collect()
    if not lines:
        message = f"checkpoint {checkpoint}: its file {METADATA!r} is empty; start with a new one"
        raise NotFound(message)
    return query_id("\n".join(line[0] for line in lines), checkpoint)
