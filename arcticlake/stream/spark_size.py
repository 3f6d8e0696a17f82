"""How large is a micro-batch? Nobody knows before it is computed, so the last one is the guess.

    last batch small   ─▶ take at most ROWS_SMALL + 1 rows to the driver
                            all of them came   ─▶ written here, without a shuffle
                            there are more     ─▶ the rows take the other way
    last batch large   ─▶ written by tasks, one for each share of the tree

Both ways write the same rows; a wrong guess costs time and nothing else. A stream that grows
suddenly computes at most ROWS_SMALL + 1 rows of each task twice, once.

Touches Spark.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame

from arcticlake.ingest.spark import collect

ROWS_SMALL = 100_000
"""Rows that are written on the driver: some 15 MB of ten columns."""


class BatchSize:
    """What the last micro-batch tells of the next one."""

    def __init__(self) -> None:
        self.rows = 0
        """Rows of the last batch; the first is taken for a small one."""

    def collect(self, _: DataFrame, projected: DataFrame, schema: pa.Schema) -> pa.Table | None:
        """Return the rows of a batch that is small; None for one that is, or should be, large."""
        if self.rows > ROWS_SMALL:
            return None
        rows = collect(projected.limit(ROWS_SMALL + 1), schema)
        self.rows = rows.num_rows
        return rows if rows.num_rows <= ROWS_SMALL else None
