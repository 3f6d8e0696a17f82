"""The table of rejects: messages that were not understood, kept with the reason.

`db.t__rejects` is a table without a key, made on first need. A batch of a stream is kept there
once, by the same name as in the table itself.

Touches the clock, files and the catalog.
"""

from __future__ import annotations

import time
from dataclasses import replace
from uuid import uuid4

import polars as pl
import pyarrow as pa

from arcticlake.errors import InvalidRequest
from arcticlake.ingest.once import Once
from arcticlake.table.ddl import schema_from_ddl
from arcticlake.table.iceberg import create_pair, is_ours
from arcticlake.table.spec import plan_table
from arcticlake.verbs.opened import Opened
from arcticlake.verbs.read import ReadRequest, to_arrow
from arcticlake.verbs.write import BATCH, insert

REJECTS_SUFFIX = "__rejects"
REJECTS_COLUMNS = "raw string, reason string, position bigint, rejected_at timestamp, batch string"


def keep_rejects(table: Opened, rejects: pa.Table, once: Once | None) -> None:
    """Append raw text, reason and position of rejects of one batch."""
    name = table.name + REJECTS_SUFFIX
    if not is_ours(table.catalog, name):
        _create(table, name)
    moment = pa.scalar(time.time_ns() // 1000, pa.timestamp("us", "UTC"))
    label = uuid4().hex if once is None else f"{once.query}:{once.batch}"
    rows = rejects.append_column("rejected_at", pa.repeat(moment, rejects.num_rows))
    rows = rows.append_column("batch", pa.repeat(label, rejects.num_rows))
    opened = Opened(table.catalog, name, table.session)
    if insert(opened, rows, replace(BATCH, once=once)).files == 0:
        # The batch was tried before, and may have been understood better then.
        request = ReadRequest(columns=("raw", "position"), where=f"batch = '{label}'")
        there = pl.DataFrame(to_arrow(opened, request))
        came = pl.DataFrame(rows)
        missing = came.join(there, on=["raw", "position"], how="anti", nulls_equal=True)
        if missing.height:
            insert(opened, missing.to_arrow())


def _create(table: Opened, name: str) -> None:
    plan = plan_table(
        name,
        schema_from_ddl(REJECTS_COLUMNS),
        primary_key=(),
        partition_by=(),
        sort_by=(),
        bucket_by=None,
        options={},
    )
    try:
        create_pair(table.catalog, plan, {})
    except InvalidRequest:
        if not is_ours(table.catalog, name):  # otherwise somebody else was faster
            raise
