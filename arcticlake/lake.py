"""Open a lake; then every table is one object with thin methods.

    lake = Lake.open("warehouse")
    orders = lake.create_table("shop.orders", "id bigint, status string", primary_key="id")
    orders.upsert(df)
    orders.read().show()

Methods only name their arguments; `verbs/` does the work.

Touches whatever the verbs touch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from arcticlake.compact.plan import CompactionPlan
from arcticlake.compact.result import CompactionResult
from arcticlake.errors import InvalidRequest
from arcticlake.ingest.iceberg import Committed
from arcticlake.inspect.detail import Detail
from arcticlake.inspect.history import HistoryEntry
from arcticlake.inspect.tags import Tag
from arcticlake.inspect.tree import TreeView
from arcticlake.inspect.verdict import Verification
from arcticlake.spark import adopt_session, make_session
from arcticlake.stream.cdc_format import ChangeRequest
from arcticlake.stream.consumers import Consumer
from arcticlake.stream.spark_source import register_source
from arcticlake.table import iceberg_evolve as evolve
from arcticlake.table.ddl import schema_from_ddl
from arcticlake.table.iceberg import (
    create_pair,
    drop_pair,
    is_ours,
    load_pair,
    open_catalog,
    table_names,
)
from arcticlake.table.spec import plan_table
from arcticlake.table.types import schema_from_spark
from arcticlake.verbs import cdc as changing
from arcticlake.verbs import changes as pulling
from arcticlake.verbs import compact as compacting
from arcticlake.verbs import consumers as consuming
from arcticlake.verbs import inspect as inspecting
from arcticlake.verbs import overwrite as overwriting
from arcticlake.verbs import read as reading
from arcticlake.verbs import stream as streaming
from arcticlake.verbs import write as writing
from arcticlake.verbs.changes import ChangesRequest
from arcticlake.verbs.compact import CompactionRequest, after_write
from arcticlake.verbs.opened import Opened
from arcticlake.verbs.overwrite import OverwriteRequest
from arcticlake.verbs.read import ReadRequest
from arcticlake.verbs.sql import run_sql
from arcticlake.verbs.stream import StreamRequest
from arcticlake.verbs.write import UpsertRequest


class Lake:
    """A catalog with Arctic tables, and the Spark session that works on them."""

    def __init__(self, catalog: Catalog, spark: SparkSession | None = None) -> None:
        self.catalog = catalog
        self._spark = None if spark is None else register_source(adopt_session(spark))

    @classmethod
    def open(
        cls,
        warehouse: str | None = None,
        *,
        catalog: str | Mapping[str, str] | None = None,
        spark: SparkSession | None = None,
    ) -> Lake:
        """Open a folder (made if missing), or any pyiceberg catalog by name or properties."""
        return cls(open_catalog(None if warehouse is None else str(warehouse), catalog), spark)

    @property
    def spark(self) -> SparkSession:
        """The session in use; made on first need."""
        if self._spark is None:
            active = SparkSession.getActiveSession()
            session = make_session() if active is None else adopt_session(active)
            self._spark = register_source(session)
        return self._spark

    def create_table(
        self,
        name: str,
        schema: str | StructType | Schema,
        *,
        primary_key: str | Sequence[str] = (),
        partition_by: str | Sequence[str] = (),
        sort_by: str | Sequence[str] = (),
        bucket_by: str | None = None,
        options: Mapping[str, object] | None = None,
        if_not_exists: bool = False,
    ) -> Table:
        """Create a table; what cannot work is refused here, by name and with the reason."""
        spec = plan_table(
            name,
            _schema(schema, name),
            primary_key=_sequence(primary_key),
            partition_by=_sequence(partition_by),
            sort_by=_sequence(sort_by),
            bucket_by=bucket_by,
            options=options or {},
        )
        if if_not_exists and is_ours(self.catalog, name):
            return self.table(name)
        create_pair(self.catalog, spec, options or {})
        return self.table(name)

    def table(self, name: str) -> Table:
        """Return a table that exists."""
        load_pair(self.catalog, name)
        return Table(Opened(self.catalog, name, lambda: self.spark))

    def tables(self) -> list[str]:
        """Return the names of all Arctic tables."""
        return table_names(self.catalog)

    def sql(self, text: str) -> DataFrame:
        """Run Spark SQL; every named Arctic table is planned afresh, all else stays Spark's."""
        return run_sql(self.catalog, lambda: self.spark, text)

    def drop_table(self, name: str, *, purge: bool = False) -> None:
        """Drop a table; its files stay unless `purge` is set."""
        drop_pair(self.catalog, name, purge=purge)


class Table:
    """One table. Every call acts on the last commit."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened

    @property
    def name(self) -> str:
        """The table's name, `database.table`."""
        return self._opened.name

    def upsert(
        self,
        df: object,
        *,
        order_by: str | None = None,
        delete_when: str | None = None,
        locate: bool = False,
    ) -> Committed:
        """Insert or replace rows by key; `delete_when` marks rows that delete instead."""
        request = UpsertRequest(order_by, delete_when, locate)
        return after_write(self._opened, writing.upsert(self._opened, df, request))

    def apply_changes(
        self,
        df: object,
        *,
        format: str,  # noqa: A002 - the word that Spark's users know
        order_by: str | None = None,
        action: str | None = None,
        time_unit: str | None = None,
        locate: bool = False,
    ) -> Committed:
        """Apply change messages of a database (Debezium, Canal, Maxwell, or rows with an action).

        All of them are one commit. What is not understood goes to the table `<name>__rejects`.
        """
        request = ChangeRequest(format, order_by, action, time_unit, locate)
        return after_write(self._opened, changing.apply_changes(self._opened, df, request))

    def delete(self, keys: object) -> Committed:
        """Delete rows by a frame of keys, or by a SQL condition."""
        write = writing.delete_where if isinstance(keys, str) else writing.delete
        return after_write(self._opened, write(self._opened, keys))  # type: ignore[arg-type]

    def insert(self, df: object) -> Committed:
        """Write rows straight into base; a key that exists already is an error."""
        return after_write(self._opened, writing.insert(self._opened, df))

    def stream_upsert(
        self,
        stream_df: object,
        *,
        checkpoint: str,
        trigger: str | None = None,
        order_by: str | None = None,
        delete_when: str | None = None,
        locate: bool = False,
        query_name: str | None = None,
    ) -> StreamingQuery:
        """Upsert every micro-batch of a stream, each exactly once; return the running query."""
        request = StreamRequest(checkpoint, trigger, query_name)
        rows = UpsertRequest(order_by, delete_when, locate)
        return streaming.stream_upsert(self._opened, stream_df, request, rows)

    def stream_changes(
        self,
        stream_df: object,
        *,
        format: str,  # noqa: A002 - the word that Spark's users know
        checkpoint: str,
        trigger: str | None = None,
        order_by: str | None = None,
        action: str | None = None,
        time_unit: str | None = None,
        locate: bool = False,
        query_name: str | None = None,
    ) -> StreamingQuery:
        """Apply every micro-batch of change messages, each exactly once; return the query."""
        request = StreamRequest(checkpoint, trigger, query_name)
        changes = ChangeRequest(format, order_by, action, time_unit, locate)
        return changing.stream_changes(self._opened, stream_df, request, changes)

    def overwrite(
        self, df: object, *, where: str | None = None, change_version: int | None = None
    ) -> Committed:
        """Replace the whole table, or whole partitions; later changes apply on top."""
        return overwriting.overwrite(self._opened, df, OverwriteRequest(where, change_version))

    def plan_compaction(
        self, kind: str = "auto", *, where: str | None = None, to_version: int | None = None
    ) -> CompactionPlan:
        """Return what `compact` would do now and why; `explain()` says it in words."""
        return compacting.plan(self._opened, CompactionRequest(kind, where, to_version))

    def compact(
        self, kind: str = "auto", *, where: str | None = None, to_version: int | None = None
    ) -> CompactionResult:
        """Merge changes into base, or small files into larger ones; readers see the same rows.

        `auto` does what is worth its price now, `minor` makes change files fewer, `major` merges
        changes into base, `full` rewrites whole partitions.
        """
        return compacting.compact(self._opened, CompactionRequest(kind, where, to_version))

    def read(
        self,
        *,
        mode: str = "merged",
        version: int | None = None,
        timestamp: str | datetime | None = None,
        tag: str | None = None,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        metadata: bool = False,
    ) -> DataFrame:
        """Return the rows as a DataFrame, fresh to the last commit."""
        asked = None if columns is None else tuple(_sequence(columns))
        request = ReadRequest(mode, version, timestamp, tag, asked, where, metadata)
        return reading.to_spark(self._opened, request)

    def to_arrow(
        self,
        *,
        mode: str = "merged",
        version: int | None = None,
        timestamp: str | datetime | None = None,
        tag: str | None = None,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        metadata: bool = False,
    ) -> pa.Table:
        """Return the same rows as `read`, as Arrow and without Spark."""
        asked = None if columns is None else tuple(_sequence(columns))
        request = ReadRequest(mode, version, timestamp, tag, asked, where, metadata)
        return reading.to_arrow(self._opened, request)

    def changes(
        self,
        since: int | str | datetime | None = None,
        until: int | str | datetime | None = None,
        mode: str = "raw",
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        difference: bool = False,
    ) -> DataFrame:
        """Return what changed after `since`, up to and with `until`: versions or moments.

        `raw` shows every change in order, `net` the newest of each key, `base` the rows that
        changed in base, also by compaction. `difference` compares the rows before and after an
        overwrite instead of telling it by one row.
        """
        asked = None if columns is None else tuple(_sequence(columns))
        request = ChangesRequest(since, until, mode, asked, where, difference)
        return pulling.changes(self._opened, request)

    def changes_to_arrow(
        self,
        since: int | str | datetime | None = None,
        until: int | str | datetime | None = None,
        mode: str = "raw",
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        difference: bool = False,
    ) -> pa.Table:
        """Return the same rows as `changes`, as Arrow and without Spark."""
        asked = None if columns is None else tuple(_sequence(columns))
        request = ChangesRequest(since, until, mode, asked, where, difference)
        return pulling.changes_to_arrow(self._opened, request)

    def tree(self) -> TreeView:
        """Return the trees of all partitions; it prints as a picture and has `.leaves`."""
        return inspecting.tree(self._opened)

    def files(self) -> list[dict[str, object]]:
        """Return one dict for each live file.

        Bounds of a key of one column are plain values, of several columns tuples.
        """
        return inspecting.files(self._opened)

    def history(self) -> list[HistoryEntry]:
        """Return every version and every compaction, newest first."""
        return inspecting.history(self._opened)

    def detail(self) -> Detail:
        """Return what the table is and how it stands, from metadata alone."""
        return inspecting.detail(self._opened)

    def verify(self, *, deep: bool = True) -> Verification:
        """Check every rule on the newest state; without `deep` only columns that a rule needs."""
        return inspecting.verify(self._opened, deep=deep)

    def create_tag(self, name: str, version: int | None = None) -> Tag:
        """Name a version, the newest by default, and keep it from expiring."""
        return inspecting.create_tag(self._opened, name, version)

    def tags(self) -> dict[str, int]:
        """Return the version of every tag, by name."""
        return inspecting.tags(self._opened)

    def drop_tag(self, name: str) -> None:
        """Take a tag away; its version may expire from then on."""
        inspecting.drop_tag(self._opened, name)

    def consumers(self) -> list[Consumer]:
        """Return the streams that read the table under a name, and how far they are."""
        return consuming.consumers(self._opened)

    def drop_consumer(self, name: str) -> None:
        """Forget a consumer; what it had not read may expire from then on."""
        consuming.drop_consumer(self._opened, name)

    def add_column(self, name: str, kind: str) -> None:
        """Add a column that may be NULL; rows written before read as NULL."""
        evolve.add_column(self._opened.pair(), name, kind)

    def rename_column(self, name: str, new_name: str) -> None:
        """Give a column another name; its data stays."""
        evolve.rename_column(self._opened.pair(), name, new_name)

    def widen_column(self, name: str, kind: str) -> None:
        """Widen int to bigint, float to double, or a decimal's precision."""
        evolve.widen_column(self._opened.pair(), name, kind)

    def drop_column(self, name: str) -> None:
        """Drop a column; key, partition and sort columns stay."""
        evolve.drop_column(self._opened.pair(), name)

    def move_column(self, name: str, *, after: str | None = None) -> None:
        """Move a column behind another one, or to the front."""
        evolve.move_column(self._opened.pair(), name, after=after)

    def set_options(self, options: Mapping[str, object]) -> None:
        """Change options; unknown names are refused with the nearest known one."""
        evolve.set_options(self._opened.pair(), options)


def _sequence(value: str | Sequence[str] | None) -> Sequence[str]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)


def _schema(schema: object, table: str) -> Schema:
    match schema:
        case str():
            return schema_from_ddl(schema)
        case StructType():
            return schema_from_spark(schema.jsonValue())
        case Schema():
            return schema
    message = (
        f"table {table}: a schema is a DDL string, a StructType or a pyiceberg Schema, "
        f"not {type(schema).__name__}"
    )
    raise InvalidRequest(message)
