"""readStream.format("arctic"): everything first and then changes, or changes from a version.

    driver      offsets and shares of files, by `spark_feed.py`
    executors   read: a share ─▶ Arrow, exactly in Spark's types

Spark sends a copy of the reader to every task. What only the driver needs is loaded when it is
first asked for, so that tasks start without pyiceberg, which would cost each of them a second.

Touches Spark and files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from arcticlake.stream.parquet_feed import FeedShare, feed_rows

if TYPE_CHECKING:
    from arcticlake.stream.spark_feed import FeedPlanner

PLANNER = "arcticlake.stream.spark_feed"


def feed_struct(options: Mapping[str, str]) -> StructType:
    """Return the columns of a stream that these options ask for."""
    struct: StructType = import_module(PLANNER).feed_struct(options)
    return struct


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads one table as a stream; a copy of it goes to every task."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self.options = dict(options)
        self.struct = schema
        self._loaded: FeedPlanner | None = None

    @property
    def _planner(self) -> FeedPlanner:
        """The driver's half, loaded on first need: tasks never do."""
        if self._loaded is None:
            planner: FeedPlanner = import_module(PLANNER).FeedPlanner(self.options, self.struct)
            self._loaded = planner
        return self._loaded

    def initialOffset(self) -> dict[str, int | str]:  # noqa: N802
        """Return where a query without a checkpoint begins."""
        return self._planner.initialOffset()

    def latestOffset(  # noqa: N802
        self, start: Mapping[str, object], limit: ReadLimit
    ) -> dict[str, int | str]:
        """Return where the next batch ends; its start if there is nothing to read."""
        return self._planner.latestOffset(start, limit)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Fix the version at which the query ends."""
        self._planner.prepareForTriggerAvailableNow()

    def read_limit(self) -> ReadLimit:
        """Return how much a batch takes."""
        return self._planner.read_limit()

    getDefaultReadLimit = read_limit  # noqa: N815 - Spark's name for it

    def reportLatestOffset(self) -> dict[str, int | str] | None:  # noqa: N802
        """Return the newest place that is known, for the progress of the query."""
        return self._planner.reportLatestOffset()

    def partitions(
        self, start: Mapping[str, object], end: Mapping[str, object]
    ) -> Sequence[InputPartition]:
        """Return the shares of a batch."""
        return self._planner.partitions(start, end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one share in Spark's own types."""
        share = partition.value
        assert isinstance(share, FeedShare)
        wanted = to_arrow_schema(self.struct, timezone="UTC")
        for batch in feed_rows(share):
            yield batch.select(wanted.names).cast(wanted)

    def commit(self, end: Mapping[str, object]) -> None:
        """Say how far a named consumer is; what it has read may expire."""
        self._planner.commit(end)
