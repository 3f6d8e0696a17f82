"""Change rows of one batch, put right together: swaps, truncates, deletes without a partition.

**Swaps.** A source with deferred constraints may exchange two keys in one transaction, and a key is
then held twice for a moment:

    a → b     -D a      +U b (was a)
    b → a     -D b      +U a (was b)        this -D b means the old b, not the row that just came

Each split delete carries the image of the row it means. Where the row that stands there by then,
put there earlier in the same batch, is another one, the row it means was replaced already: the
delete is dropped. Images are compared where both have a value, since sources leave columns out.
Rows that look the same may also have changed and changed back; only the table can tell these two
apart, so such keys are looked up, and the rows that hold a key are counted:

    b held before     +U b: two hold it     -D b: one of two, dropped
    b was free        +U b: one holds it    -D b: the one, it goes

**Truncates** empty the table at their place: rows before the last one are dropped.

**Deletes without a partition** take the one of the row before them in the batch, or in the table;
in a swap, of the row that stood there before the one that came.

Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from arcticlake.ingest.place import PLACE, with_places
from arcticlake.stream.cdc_plan import PLACED, REJECT, SPLIT, TRUNCATE
from arcticlake.table.change import ACTION, HIDDEN_COLUMNS, ORDER, Action
from arcticlake.tree.hash import PlaceTerm

_ROW, _LAST = "__row", "__last_"


def after_truncate(rows: pa.Table) -> tuple[pa.Table, bool]:
    """Return the rows behind the last truncate, and whether there is one."""
    marks = rows.filter(pc.equal(rows.column(ACTION), TRUNCATE))
    if marks.num_rows == 0:
        return rows, False
    last = pc.max(marks.column(ORDER))
    return rows.filter(pc.greater(rows.column(ORDER), last)), True


def understood(rows: pa.Table) -> pa.Table:
    """Return the rows that are no rejects."""
    return rows.filter(pc.not_equal(rows.column(ACTION), REJECT))


def doubtful_keys(rows: pa.Table, key: Sequence[str], terms: Sequence[PlaceTerm]) -> pl.DataFrame:
    """Return the keys of split deletes of which the images do not tell which row they mean."""
    met = _met(rows, key, terms)
    return met.filter("doubtful").select(key).unique(maintain_order=True)


def drop_replaced(
    rows: pa.Table, key: Sequence[str], terms: Sequence[PlaceTerm], alive: pa.Table | None = None
) -> pa.Table:
    """Drop split deletes whose row another row of the batch has replaced already.

    `alive` are the rows that the table has of the doubtful keys, with their partition columns.
    """
    gone = replaced_rows(rows, key, terms, alive)
    if len(gone) == 0:
        return rows
    keep = np.ones(rows.num_rows, dtype=bool)
    keep[gone] = False
    return rows.filter(pa.array(keep))


def replaced_rows(
    rows: pa.Table, key: Sequence[str], terms: Sequence[PlaceTerm], alive: pa.Table | None = None
) -> npt.NDArray[np.int64]:
    """Return the numbers of split deletes that would hit a row which they do not mean."""
    met = _met(rows, key, terms)
    where = _meeting(key, terms)
    held = met.clear().select(where)
    if alive is not None:
        held = with_places(alive, terms).select(where).cast(held.schema)
    met = met.join(
        held.unique().with_columns(pl.lit(value=True).alias("held")),
        on=where,
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )
    created = pl.col(ACTION) == str(Action.INSERT)
    ends, begins = pl.col(ACTION).str.starts_with("-"), pl.col(_LAST + ACTION).is_null()
    comes = (pl.col(SPLIT) & ~ends) | (created & pl.col(_LAST + ACTION).str.starts_with("-"))
    step = pl.when(ends).then(-1).when(comes.fill_null(value=False)).then(1).otherwise(0)
    first = (pl.col("held").fill_null(value=False) | created).cast(pl.Int64)
    start = pl.when(begins).then(first).otherwise(None).forward_fill().over(where)
    holders = (start + step.cum_sum().over(where) - step).alias("holders")
    unclear = pl.col("doubtful").any().over(where)
    stale = met.with_columns(holders, unclear.alias("unclear")).filter(
        pl.col(SPLIT),
        ends,
        pl.when("unclear").then(pl.col("holders") >= 2).otherwise(pl.col("replaced")),
    )
    return stale[_ROW].cast(pl.Int64).to_numpy()


def _meeting(key: Sequence[str], terms: Sequence[PlaceTerm]) -> list[str]:
    """Return the columns that are equal where one row hides another: key and partition."""
    return [*key, *(PLACE + term.name for term in terms)]


def _met(rows: pa.Table, key: Sequence[str], terms: Sequence[PlaceTerm]) -> pl.DataFrame:
    """Return the rows that meet a split delete, in order, with what stood there before each."""
    images = _comparable(rows, key)
    sources = [term.column for term in terms]
    needed = dict.fromkeys((*key, *sources, *images, ACTION, ORDER, SPLIT))
    frame = with_places(rows.select(list(needed)), terms).with_row_index(_ROW)
    where = _meeting(key, terms)
    split = pl.col(SPLIT) & pl.col(ACTION).str.starts_with("-")
    wanted = frame.filter(split).select(where).unique()
    met = frame.join(wanted, on=where, how="semi", nulls_equal=True).sort(*where, ORDER)
    last = {_LAST + name: pl.col(name).shift(1).over(where) for name in (*images, ACTION, SPLIT)}
    differ = [pl.col(name) != pl.col(_LAST + name) for name in images]
    other = pl.any_horizontal(*differ, pl.lit(value=False)).fill_null(value=False)
    put = split & pl.col(_LAST + ACTION).str.starts_with("+").fill_null(value=False)
    return met.with_columns(**last).with_columns(
        (put & other).alias("replaced"),
        (put & ~other & pl.col(_LAST + SPLIT).fill_null(value=False)).alias("doubtful"),
    )


def _comparable(rows: pa.Table, key: Sequence[str]) -> list[str]:
    """Return the business columns whose values can be told apart."""
    return [
        column.name
        for column in rows.schema
        if column.name not in {*key, *HIDDEN_COLUMNS}
        and not column.name.startswith("__arctic_")
        and not pa.types.is_nested(column.type)
    ]


def unplaced_keys(rows: pa.Table, key: Sequence[str]) -> pl.DataFrame:
    """Return the keys of deletes whose partition no earlier row of the batch tells."""
    frame = _frame(rows.select([*key, ACTION, ORDER, PLACED, SPLIT])).sort(*key, ORDER)
    lost = ~pl.col(PLACED) & pl.col(ACTION).str.starts_with("-")
    place = pl.int_range(pl.len()).over(key)
    swapped = (place == 1) & _after_arrival(key)
    return frame.filter(lost & ((place == 0) | swapped)).select(key).unique()


def _after_arrival(key: Sequence[str]) -> pl.Expr:
    """Whether the row before brought another row to this key: a delete means the one it met."""
    came = pl.col(SPLIT) & pl.col(ACTION).str.starts_with("+")
    return came.shift(1).over(key).fill_null(value=False)


def fill_places(
    rows: pa.Table, key: Sequence[str], sources: Sequence[str], found: pl.DataFrame
) -> pa.Table:
    """Give deletes without a partition the one that their row has; without a row they go.

    `found` has key and partition columns of rows in the table. In a swap the row that a delete
    means stood there before the one that came: its place is one step further back.
    """
    frame = _frame(rows.select(list(dict.fromkeys((*key, *sources, ACTION, ORDER, PLACED, SPLIT)))))
    lost = ~pl.col(PLACED) & pl.col(ACTION).str.starts_with("-")
    known = frame.with_row_index(_ROW).with_columns(lost.alias("lost"))
    known = known.join(
        found.select(*key, *(pl.col(n).alias(f"table_{n}") for n in sources), there=True),
        on=list(key),
        how="left",
    ).sort(*key, ORDER)
    own = pl.when(pl.col(ACTION).str.starts_with("+")).then(pl.struct(*sources))
    table = pl.when("there").then(pl.struct(*(pl.col(f"table_{n}").alias(n) for n in sources)))
    first = pl.int_range(pl.len()).over(key) == 1
    stood = pl.col(ACTION).str.starts_with("+").shift(2).over(key).fill_null(value=False)
    known = known.with_columns(
        own.forward_fill().over(key).alias("before"),
        own.shift(2).over(key).alias("earlier"),
        table.alias("table"),
        _after_arrival(key).alias("met"),
        first.alias("first"),
        stood.alias("stood"),
    )
    swapped = (
        pl.when(pl.col("met") & pl.col("stood"))
        .then(pl.col("earlier"))
        .when(pl.col("met") & pl.col("first"))
        .then(pl.col("table"))
    )
    place = pl.when("lost").then(pl.coalesce(swapped, "before", "table"))
    known = known.with_columns(place.alias("place")).sort(_ROW)
    columns = dict(zip(rows.column_names, rows.columns, strict=True))
    for name in sources:
        filled = known.select(
            pl.when("lost").then(pl.col("place").struct.field(name)).otherwise(name)
        ).to_series()
        columns[name] = pa.chunked_array([filled.to_arrow()]).cast(rows.schema.field(name).type)
    keep = known.select(~pl.col("lost") | pl.col("place").is_not_null()).to_series()
    return pa.table(columns, schema=rows.schema).filter(pa.chunked_array([keep.to_arrow()]))


def _frame(rows: pa.Table) -> pl.DataFrame:
    frame = pl.from_arrow(rows)
    assert isinstance(frame, pl.DataFrame)
    return frame
