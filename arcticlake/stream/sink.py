"""SinkJob: what a task of `writeStream.format("arctic")` needs to know, and its rows as changes.

The thin door has no Catalyst in front of it: Arrow batches come as the stream made them, and
every task brings its own into the table's columns by the rules of `ingest/normalize.py`. Spark
shares rows out as it likes, so one key may come in two tasks; `repeated` looks at the keys of all
written files together.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

import polars as pl
import pyarrow as pa

from arcticlake.errors import InvalidRequest
from arcticlake.ingest.job import WriteJob
from arcticlake.ingest.normalize import (
    cast_rows,
    changes_of,
    deleted_of,
    order_of,
    plan_columns,
    spare_columns,
)

_OPTIONS = ("warehouse", "catalog", "order_by", "delete_when")
_OF_SPARK = ("path", "checkpointlocation", "queryname")


@dataclass(frozen=True, slots=True)
class SinkRequest:
    """What the options of the stream ask for."""

    table: str
    order_by: str | None = None
    delete_when: str | None = None


@dataclass(frozen=True, slots=True)
class SinkJob:
    """One table as tasks see it; pickles to executors."""

    request: SinkRequest
    target: pa.Schema
    """The table's own columns."""
    write: WriteJob
    keyed: bool


def parse_options(options: Mapping[str, str]) -> SinkRequest:
    """Return the request in the options of a stream, or refuse it."""
    table = options.get("path", "")
    if not table:
        message = "format arctic: name the table in start(), as in start('shop.orders')"
        raise InvalidRequest(message)
    for name in options:
        if name.lower() not in (*_OPTIONS, *_OF_SPARK):
            near = get_close_matches(name.lower(), _OPTIONS, n=1)
            told = f"did you mean {near[0]}?" if near else f"use {', '.join(_OPTIONS)}"
            message = f"table {table}: a writing stream has no option {name!r}; {told}"
            raise InvalidRequest(message)
    return SinkRequest(table, options.get("order_by"), options.get("delete_when"))


def rows_to_write(rows: pa.Table, job: SinkJob, entered_micros: int) -> pa.Table:
    """Return rows of the stream as the writer takes them; refuse what does not fit."""
    asked = job.request
    spare = spare_columns(asked.order_by, asked.delete_when, rows.column_names)
    plan = plan_columns(rows.schema, job.target, table=asked.table, spare=spare)
    cast = cast_rows(rows, plan, job.target, table=asked.table)
    if not job.keyed:
        return cast
    return changes_of(
        cast,
        job.write.schema,
        order=order_of(rows, asked.order_by, table=asked.table),
        deleted=deleted_of(rows, asked.delete_when, table=asked.table),
        entered_micros=entered_micros,
    )


def repeated(keys: Iterable[pa.Table]) -> str | None:
    """Tell of a key that several tasks wrote; with an order, of a place that comes twice."""
    parts = [pl.from_arrow(part) for part in keys]
    frames = [part for part in parts if isinstance(part, pl.DataFrame)]
    if not frames:
        return None
    together = pl.concat(frames)
    if together.n_unique() == together.height:
        return None
    row = together.filter(together.is_duplicated()).row(0, named=True)
    shown = ", ".join(f"{name}={value!r}" for name, value in row.items())
    return f"the key {shown} comes twice in the rows; give order_by, or keep one row for each key"
