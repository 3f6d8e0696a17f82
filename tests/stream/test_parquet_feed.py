"""One share of a micro-batch, from real files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa

from arcticlake import Lake
from arcticlake.pull.columns import overwrite_row, travel_schema
from arcticlake.stream.iceberg_feed import (
    look,
    pin_state,
    share_changes,
    share_state,
    units_between,
)
from arcticlake.stream.offset import BEGINNING, Offset
from arcticlake.stream.parquet_feed import FeedShare, feed_rows
from arcticlake.table.types import arrow_schema
from tests.verbs.shop import NAME, orders, rows


def test_a_state_and_its_changes_are_told_apart(warehouse: Path) -> None:
    table = orders(Lake.open(str(warehouse)))
    table.upsert(rows([1, 2]))
    table.upsert(rows([1], "paid"))
    seen = look(table._opened.catalog, NAME)
    schema = arrow_schema(seen.pair.spec.schema)
    end = Offset(2, 2, pin_state(seen, 2))
    state = share_state(seen, BEGINNING, end, schema, ordered=False)
    assert _told(state) == [("insert", 1, "paid"), ("insert", 2, "new")]
    changes = share_changes(seen, units_between(seen, Offset(0), Offset(2)), schema, ordered=True)
    assert _told(changes) == [
        ("update_postimage", 1, "new"),
        ("update_postimage", 1, "paid"),
        ("update_postimage", 2, "new"),
    ]


def test_rows_without_a_file_travel_with_the_share(warehouse: Path) -> None:
    table = orders(Lake.open(str(warehouse)))
    pair = table._opened.pair()
    schema = arrow_schema(pair.spec.schema)
    told = pa.Table.from_batches([overwrite_row(3, 0, schema)], schema=travel_schema(schema))
    share = FeedShare(pair.storage, schema, True, rows=told)
    (row,) = [row for batch in feed_rows(share) for row in batch.to_pylist()]
    assert (row["_change_type"], row["_change_order"]) == ("overwrite", 3 * 2**31 + 1)


def test_reading_a_share_needs_no_catalog_library() -> None:
    code = "import sys, arcticlake.stream.parquet_feed; print('pyiceberg' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def _told(shares: list[FeedShare]) -> list[tuple[str, int, str]]:
    found = [row for share in shares for batch in feed_rows(share) for row in batch.to_pylist()]
    return sorted((row["_change_type"], row["order_id"], row["status"]) for row in found)
