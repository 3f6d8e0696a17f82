"""Rows that leave their partition: the deletes that a plain upsert cannot know of (KUP-03).

Where the partition does not follow from the key, an upsert may bring a row whose older version
lies in another partition. `move_deletes` adds a delete there, for the row that exists in the table
and for every step between the versions of one key inside the batch.

Touches data files through the look-up.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pyarrow as pa

from arcticlake.ingest.place import PLACE, with_places
from arcticlake.ingest.plan import place_terms
from arcticlake.read.lookup import Lookup, find_rows
from arcticlake.table.change import ACTION, ORDER, SEQ, TS, Action

LOCATED_ORDER = -(2**62)
"""Place of a delete for a row of the table: before all that the source may send in the commit."""


def move_deletes(lookup: Lookup, rows: pa.Table, target: pa.Schema) -> pa.Table:
    """Return deletes for every older version of a key that lies in another partition.

    `rows` has at least key, partition and order columns; `target` is the change schema.
    """
    spec = lookup.spec
    key = list(spec.key)
    sources = [name for name in spec.names(spec.partition_source_ids) if name not in key]
    terms = place_terms(spec)
    places = [PLACE + term.name for term in terms]
    incoming = with_places(rows.select([*key, *sources, ORDER, TS]), terms).sort(*key, ORDER)
    following = {f"next_{name}": pl.col(name).shift(-1).over(key) for name in (*places, ORDER)}
    steps = incoming.with_columns(**following).filter(
        pl.col(f"next_{ORDER}").is_not_null(), _differ(places, "next_{}")
    )
    # The delete takes the place of the version that left: no other row of this key has it there.
    inside = steps.with_columns(pl.col(f"next_{ORDER}").alias(ORDER)).select(incoming.columns)
    first = incoming.unique(key, keep="first", maintain_order=True)
    existing = with_places(find_rows(lookup, first.select(key), sources).to_arrow(), terms)
    left = first.join(existing, on=key, how="inner", suffix="_old").filter(
        _differ(places, "{}_old")
    )
    outside = left.with_columns(
        *(pl.col(f"{name}_old").alias(name) for name in sources),
        pl.lit(LOCATED_ORDER, dtype=pl.Int64).alias(ORDER),
    ).select(incoming.columns)
    return _deletes(pl.concat([outside, inside]), target)


def locate_deletes(lookup: Lookup, rows: pa.Table) -> pa.Table:
    """Return deletes by key, completed by the partition columns of the rows that exist."""
    spec = lookup.spec
    key = list(spec.key)
    sources = [name for name in spec.names(spec.partition_source_ids) if name not in key]
    asked = _frame(rows.select([*key, ORDER, TS]))
    existing = find_rows(lookup, asked.select(key), sources)
    return _deletes(asked.join(existing, on=key, how="inner"), rows.schema)


def _differ(names: Sequence[str], other: str) -> pl.Expr:
    return pl.any_horizontal(pl.col(name).ne_missing(pl.col(other.format(name))) for name in names)


def _frame(rows: pa.Table) -> pl.DataFrame:
    frame = pl.from_arrow(rows)
    assert isinstance(frame, pl.DataFrame)
    return frame


def _deletes(chosen: pl.DataFrame, target: pa.Schema) -> pa.Table:
    """Return change rows that delete; columns that a delete does not need are null."""
    known = chosen.to_arrow()
    schema = pa.schema([field.with_nullable(True) for field in target])
    columns = []
    for field in schema:
        if field.name == ACTION:
            columns.append(pa.array([str(Action.DELETE)] * known.num_rows, pa.string()))
        elif field.name in known.column_names and field.name != SEQ:
            columns.append(known.column(field.name).cast(field.type))
        else:
            columns.append(pa.nulls(known.num_rows, field.type))
    return pa.Table.from_arrays(columns, schema=schema)
