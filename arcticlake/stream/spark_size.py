"""How large is a micro-batch? Nobody knows before it is computed, so the last one is the guess.

    last batch small   ─▶ the rows come to the driver and are written here, without a shuffle
    last batch large   ─▶ the rows are written by tasks, one for each share of the tree

Both ways write the same rows; a wrong guess costs time and nothing else, since a batch that is much
larger than the last takes the other way: after small batches only so many rows come as are small,
and one more; after larger ones, where such a limit would cost, Spark's own limit of results holds.
What is small is meant in bytes; before rows have shown how wide they are, it is a number of rows.

Touches Spark.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame

from arcticlake.ingest.spark import collect_unless_huge

BYTES_SMALL = 192 * 2**20
"""Rows that are written on the driver: some 1.5 million of ten columns. To shuffle as many takes
a third of the time of a batch on two cores."""
BYTES_TINY = 24 * 2**20
"""After a batch of so much the next one comes without a limit on its rows."""
ROWS_SMALL = 100_000
"""What is small while nobody knows how wide rows are."""


class BatchSize:
    """What the last micro-batches tell of the next one."""

    def __init__(self) -> None:
        self.rows = 0
        """Rows of the last batch; the first is taken for a small one."""
        self.row_bytes = 0
        """How wide rows are; 0 while none were seen."""

    @property
    def rows_small(self) -> int:
        """How many rows are few."""
        return BYTES_SMALL // self.row_bytes if self.row_bytes else ROWS_SMALL

    def collect(self, _: DataFrame, projected: DataFrame, schema: pa.Schema) -> pa.Table | None:
        """Return the rows of a batch that is small; None for one that is, or should be, large."""
        small = self.rows_small
        if self.rows > small:
            return None
        known = self.rows * self.row_bytes > BYTES_TINY
        rows = collect_unless_huge(projected if known else projected.limit(small + 1), schema)
        if rows is None or rows.num_rows == 0:
            return rows
        limited = not known and rows.num_rows > small
        self.rows, self.row_bytes = rows.num_rows, max(1, rows.nbytes // rows.num_rows)
        return None if limited else rows
