"""A table of orders by day, and what the tests of overwrites look at."""

from __future__ import annotations

import pyarrow as pa

from arcticlake import Lake
from arcticlake.commit.iceberg import live_entries
from arcticlake.lake import Table
from tests.verbs.shop import NAME, change_of


def by_day(lake: Lake, **settings: object) -> Table:
    """Create a table of orders that the day of each, which is in the key, separates."""
    return lake.create_table(
        NAME,
        "order_id bigint, day string, status string",
        primary_key=["order_id", "day"],
        partition_by="day",
        **settings,  # type: ignore[arg-type]
    )


def of_day(day: str | None, ids: list[int], status: str = "new") -> pa.Table:
    return pa.table(
        {
            "order_id": pa.array(ids, pa.int64()),
            "day": pa.array([day] * len(ids), pa.string()),
            "status": pa.array([status] * len(ids), pa.string()),
        }
    )


def day_keys(day: str, *ids: int) -> pa.Table:
    return of_day(day, list(ids)).drop_columns("status")


def found(table: Table, **request: object) -> dict[tuple[str, int], str]:
    read = table.to_arrow(**request).to_pylist()  # type: ignore[arg-type]
    by_key = {(row["day"], row["order_id"]): row["status"] for row in read}
    assert len(by_key) == len(read), "a key comes twice"
    return by_key


def check(table: Table) -> None:
    verdict = table.verify()
    assert verdict.ok, verdict


def kinds(table: Table) -> list[str]:
    return [entry.kind for entry in reversed(table.history())]


def live_changes(table: Table) -> int:
    change = change_of(table)
    return len(live_entries(change, change.current_snapshot()))
