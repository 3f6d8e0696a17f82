"""The driver's half of a reading stream: where batches end, and what is in them.

    initialOffset   where a new query begins; says nothing of a state yet
    latestOffset    asks the catalog now and then, and cuts a batch by its limits
    partitions      the two ends of a batch ─▶ shares of files
    commit          a named consumer says how far it is; latestOffset does so too

The columns are those of the query's start; a restart takes up new ones. What a checkpoint says is
enough to read a batch again: nothing that this process remembers decides about rows (INC-19).

Touches the catalog, and files where a state must be resolved.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    ReadMaxRows,
)
from pyspark.sql.types import StructType

from arcticlake.errors import InvalidRequest, NotFound
from arcticlake.pull.range import Moment, plan_range
from arcticlake.pull.spark import told_struct
from arcticlake.stream.change_order import CHANGE_ORDER
from arcticlake.stream.consumers import Consumer
from arcticlake.stream.feed import FeedRequest, parse_feed
from arcticlake.stream.iceberg_consumers import record_consumer
from arcticlake.stream.iceberg_feed import (
    Seen,
    load_units,
    look,
    pin_state,
    plan_state,
    share_changes,
    share_state,
    state_files,
    units_between,
)
from arcticlake.stream.offset import (
    BEGINNING,
    NO_LIMIT,
    Limit,
    Offset,
    Pin,
    cut_changes,
    cut_state,
    decode_offset,
    encode_offset,
)
from arcticlake.table.iceberg import open_catalog
from arcticlake.table.spec import TableSpec
from arcticlake.table.types import arrow_schema


def feed_struct(options: Mapping[str, str]) -> StructType:
    """Return the columns of a stream that these options ask for."""
    request = parse_feed(options)
    seen = look(open_catalog(request.warehouse, request.catalog), request.table)
    return _struct(seen.pair.spec.schema, request)


def _struct(schema: Schema, request: FeedRequest) -> StructType:
    struct = told_struct(schema)
    return struct.add(CHANGE_ORDER, "long") if request.ordered else struct


class FeedPlanner:
    """Plans the batches of one stream; its methods are those of Spark's reader."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self.request = parse_feed(options)
        self.struct = schema
        self._table: _WatchedTable | None = None
        self._target: int | None = None
        self._recorded: int | None = None

    def initialOffset(self) -> dict[str, int | str]:  # noqa: N802
        """Return where a query without a checkpoint begins."""
        since = self.request.since
        if since is None:
            return self._encode(BEGINNING)
        if isinstance(since, Moment) and since.milliseconds > time.time() * 1000:
            message = (
                f"table {self.request.table}: since {since.asked} is not over yet, so the version "
                "at that moment is not known; name a moment that has passed, or a version"
            )
            raise InvalidRequest(message)
        return self._encode(Offset(plan_range(self._watched.seen.log, since, None).since))

    def latestOffset(  # noqa: N802
        self, start: Mapping[str, object], limit: ReadLimit
    ) -> dict[str, int | str]:
        """Return where the next batch ends; its start if there is nothing to read."""
        first = self._decode(start)
        self._record(first)  # Spark commits a batch only when the next one begins
        newest = self._target
        if newest is None:
            newest = self._watched.newest_after(first.version)
        allowed = Limit() if isinstance(limit, ReadAllAvailable) else self.request.limit
        return self._encode(self._end(first, newest, allowed))

    def _end(self, start: Offset, newest: int, limit: Limit) -> Offset:
        seen = self._watched.seen
        if start == BEGINNING and newest == 0:
            return start
        if start == BEGINNING or start.pin is not None:
            version = newest if start.pin is None else start.version
            pin = start.pin or pin_state(seen, version)
            sizes = self._watched.state_sizes(version, pin)
            if start == BEGINNING or start.unit < len(sizes):
                return cut_state(start, version, pin, sizes, limit)
        if newest <= start.version:
            return start
        if limit == Limit():
            plan_range(seen.log, start.version, newest)
            return Offset(newest)
        found = load_units(seen, start.version, newest)
        sized = ((version, [unit.rows for unit in units]) for version, units in found)
        return cut_changes(start, sized, limit)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Fix the version at which the query ends."""
        self._target = self._watched.newest

    def read_limit(self) -> ReadLimit:
        """Return the limit of the options; where there are two, `latestOffset` heeds both."""
        limit = self.request.limit
        if limit.rows != NO_LIMIT:
            return ReadMaxRows(limit.rows)
        return ReadMaxFiles(limit.files) if limit.files != NO_LIMIT else ReadAllAvailable()

    def reportLatestOffset(self) -> dict[str, int | str] | None:  # noqa: N802
        """Return the newest place that is known, for the progress of the query."""
        return None if self._table is None else self._encode(Offset(self._table.newest))

    def partitions(
        self, start: Mapping[str, object], end: Mapping[str, object]
    ) -> Sequence[InputPartition]:
        """Return the shares of a batch."""
        first, last = self._decode(start), self._decode(end)
        if first == last:
            return []
        watched, ordered = self._watched, self.request.ordered
        seen = watched.holding(last)
        if last.pin is not None:
            shares = share_state(seen, first, last, watched.schema, ordered=ordered)
        elif first == BEGINNING:
            message = (
                f"table {self.request.table}: the checkpoint began at a version, and the query now "
                "asks for everything; give the same since as before, or a new checkpoint"
            )
            raise InvalidRequest(message)
        else:
            units = units_between(seen, first, last)
            shares = share_changes(seen, units, watched.schema, ordered=ordered)
        return [InputPartition(share) for share in shares]

    def commit(self, end: Mapping[str, object]) -> None:
        """Say how far a named consumer is; what it has read may expire."""
        self._record(self._decode(end))

    def _record(self, done: Offset) -> None:
        name, version = self.request.consumer, done.version
        if name is not None and version >= 0 and version != self._recorded:
            record_consumer(self._watched.seen.pair, Consumer(name, version, datetime.now(UTC)))
            self._recorded = version

    def _encode(self, offset: Offset) -> dict[str, int | str]:
        return {**encode_offset(offset), "table": self._watched.identity}

    def _decode(self, told: Mapping[str, object]) -> Offset:
        identity = told.get("table")
        if identity is not None and identity != self._watched.identity:
            raise NotFound(_made_anew(self.request.table))
        return decode_offset(told, table=self.request.table)

    @property
    def _watched(self) -> _WatchedTable:
        """The table, loaded on first need: tasks never do."""
        if self._table is None:
            self._table = _WatchedTable(self.request, self.struct)
        return self._table


class _WatchedTable:
    """A table that is loaded again at most once in an interval, unless it must be."""

    def __init__(self, request: FeedRequest, struct: StructType) -> None:
        self._catalog = open_catalog(request.warehouse, request.catalog)
        self._request = request
        self._state: tuple[int, Pin, list[int]] | None = None
        self._types: dict[int, IcebergType] = {}
        self.identity = ""
        self._look()
        self.schema = _business(self.seen.pair.spec, struct, request)

    def newest_after(self, version: int) -> int:
        """Return the newest version; the catalog is asked if nothing above one is known."""
        waited = time.monotonic() - self._looked
        if self.newest <= max(version, 0) and waited >= self._request.poll_seconds:
            self._look()
        return self.newest

    def holding(self, offset: Offset) -> Seen:
        """Return a state that knows the versions of an offset."""
        if self.newest < offset.version + bool(offset.unit and offset.pin is None):
            self._look()
        return self.seen

    def state_sizes(self, version: int, pin: Pin) -> list[int]:
        """Return the rows of the units of a state; Spark asks many times a second."""
        if self._state is None or self._state[:2] != (version, pin):
            files = state_files(plan_state(self.seen, version, pin))
            self._state = (version, pin, [file.rows for file in files])
        return self._state[2]

    def _look(self) -> None:
        self._looked = time.monotonic()
        self.seen: Seen = look(self._catalog, self._request.table)
        self.newest = self.seen.newest
        identity = str(self.seen.pair.base.metadata.table_uuid)
        if self.identity not in {"", identity}:
            raise NotFound(_made_anew(self._request.table))
        self.identity = identity
        self._check_types()

    def _check_types(self) -> None:
        """Stop where a column was widened: its values may not fit the type that Spark expects."""
        for field in self.seen.pair.spec.schema.fields:
            first = self._types.setdefault(field.field_id, field.field_type)
            if first != field.field_type:
                message = (
                    f"table {self._request.table}: column {field.name} was {first} when the query "
                    f"began and is {field.field_type} now; restart the query, it goes on where it "
                    "is"
                )
                raise InvalidRequest(message)


def _made_anew(table: str) -> str:
    return (
        f"table {table} was dropped and made anew since the stream began, and its versions count "
        "from 1 again; start with a new checkpoint"
    )


def _business(spec: TableSpec, struct: StructType, request: FeedRequest) -> pa.Schema:
    """Return the business columns of a stream, with the ids that they have now."""
    fields = {field.name: field for field in spec.schema.fields}
    now = {field.name: field.dataType for field in _struct(spec.schema, request).fields}
    for field in struct.fields:
        if now.get(field.name) != field.dataType:
            message = (
                f"table {request.table}: the stream expects a column {field.name} of type "
                f"{field.dataType.simpleString()}, which is not what the table has now; load it "
                "again and restart the query"
            )
            raise InvalidRequest(message)
    missing = [name for name in spec.key if name not in struct.names]
    if missing:
        message = (
            f"table {request.table}: the schema of the stream leaves out {', '.join(missing)} of "
            "the primary key; leave schema() away and select columns afterwards"
        )
        raise InvalidRequest(message)
    return arrow_schema(Schema(*(fields[name] for name in struct.names if name in fields)))
