"""Orders of ten columns as Arrow tables: the rows that benchmarks write and change.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
import pyarrow as pa

SCHEMA = (
    "order_id bigint, user_id bigint, amount decimal(12,2), status string, created_at timestamp, "
    "qty int, price double, city string, note string, flag boolean"
)
COLUMNS = [part.split()[0] for part in SCHEMA.split(", ")]
FIRST_SECOND = 1_760_000_000
_STATUS = np.array(["new", "paid", "sent", "done", "back"])
_CITY = np.array([f"city {number}" for number in range(100)])


def orders(ids: np.ndarray, seed: int, *, by_time: bool = False) -> pa.Table:
    """Return orders with these ids; `by_time` makes an order's moment grow with its id."""
    rng = np.random.default_rng(seed)
    size = len(ids)
    seconds = ids if by_time else rng.integers(0, 30_000_000, size)
    rows = pl.DataFrame(
        {
            "order_id": ids,
            "user_id": rng.integers(0, 1_000_000, size),
            "cents": rng.integers(0, 1_000_000, size),
            "status": _STATUS[rng.integers(0, 5, size)],
            "created_at": (FIRST_SECOND + seconds) * 1_000_000,
            "qty": rng.integers(0, 20, size).astype(np.int32),
            "price": rng.integers(0, 100_000, size) / 7,
            "city": _CITY[rng.integers(0, 100, size)],
            "note": rng.integers(0, 2**48, size),
            "flag": rng.integers(0, 2, size).astype(bool),
        }
    )
    rows = rows.with_columns(
        (pl.col("cents").cast(pl.Decimal(12, 2)) / 100).cast(pl.Decimal(12, 2)).alias("amount"),
        pl.col("created_at").cast(pl.Datetime("us", "UTC")),
        pl.col("note").cast(pl.String),
    )
    return rows.select(COLUMNS).to_arrow()


def in_parts(rows: int, size: int) -> Iterator[np.ndarray]:
    """Yield the ids from 0 in parts of a size."""
    for start in range(0, rows, size):
        yield np.arange(start, min(rows, start + size))


def changes(rows: int, size: int, number: int) -> pa.Table:
    """Return one batch: 80 % update, 10 % insert, 10 % delete, random keys, with a column `op`."""
    rng = np.random.default_rng(1000 + number)
    old = rng.choice(rows, size * 9 // 10, replace=False)
    new = rows + number * size // 10 + np.arange(size // 10)
    operation = np.full(size, "U")
    operation[: size // 10] = "D"
    batch = orders(np.concatenate([old, new]), number)
    return batch.append_column("op", pa.array(operation))
