"""Frames of every kind are written the same; values enter columns where nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from arcticlake import Lake
from tests.verbs.shop import NAME, changed, orders, refused, rows


def as_pandas(table: pa.Table) -> object:
    return table.to_pandas()


def as_filtered_pandas(table: pa.Table) -> object:
    """Return a frame whose index is no range any more."""
    twice = pd.concat([table.to_pandas(), table.to_pandas()])
    return twice.sort_values("order_id").iloc[::2]


def as_indexed_pandas(table: pa.Table) -> object:
    return table.to_pandas().set_index("order_id")


def as_polars(table: pa.Table) -> object:
    return pl.from_arrow(table)


def as_categories(table: pa.Table) -> object:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame.with_columns(pl.col("status").cast(pl.Categorical))


def as_dictionary(table: pa.Table) -> object:
    return table.set_column(1, "status", table.column("status").dictionary_encode())


def as_large(table: pa.Table) -> object:
    return table.cast(
        pa.schema(
            {
                "order_id": pa.int32(),
                "status": pa.large_string(),
                "amount": pa.decimal128(38, 2),
                "qty": pa.int64(),
            }
        )
    )


def as_chunks(table: pa.Table) -> object:
    return pa.concat_tables([table.slice(0, 1), table.slice(1)])


def as_batch(table: pa.Table) -> object:
    return table.combine_chunks().to_batches()[0]


def as_dicts(table: pa.Table) -> object:
    return table.to_pylist()


@pytest.mark.parametrize("verb", ["upsert", "insert"])
@pytest.mark.parametrize(
    "shape",
    [
        as_pandas,
        as_filtered_pandas,
        as_indexed_pandas,
        as_polars,
        as_categories,
        as_dictionary,
        as_large,
        as_chunks,
        as_batch,
        as_dicts,
    ],
)
def test_every_kind_of_frame_is_written_the_same(
    lake: Lake, verb: str, shape: Callable[[pa.Table], object]
) -> None:
    table = orders(lake)

    getattr(table, verb)(shape(rows([1, 2, 3])))

    assert table.to_arrow().sort_by("order_id").to_pylist() == rows([1, 2, 3]).to_pylist()


def test_whole_numbers_enter_decimals_that_can_hold_them(lake: Lake) -> None:
    table = orders(lake)

    table.upsert(changed("amount", [5, 7]))
    with refused(lake, table, "amount"):
        table.upsert(changed("amount", [5, 10**11]))

    found = table.to_arrow().sort_by("order_id").column("amount").to_pylist()
    assert found == [Decimal("5.00"), Decimal("7.00")]


def test_times_without_a_zone_stand_for_utc_and_finer_units_must_not_lose(lake: Lake) -> None:
    table = lake.create_table(NAME, "id bigint, t timestamp, n timestamp_ntz", primary_key="id")
    naive = datetime(2026, 1, 2, 3, 4, 5)  # noqa: DTZ001 - that is the case
    moment = pa.array([naive], pa.timestamp("ns"))

    table.upsert(pa.table({"id": [1], "t": moment, "n": moment}))
    fine = pa.array([1], pa.int64()).cast(pa.timestamp("ns"))
    with refused(lake, table, "t", "lose data"):
        table.upsert(pa.table({"id": [2], "t": fine, "n": fine}))

    assert table.to_arrow().to_pylist() == [{"id": 1, "t": naive.replace(tzinfo=UTC), "n": naive}]


def test_nested_values_of_polars_and_pandas_are_written(lake: Lake) -> None:
    table = lake.create_table(NAME, "id bigint, s struct<a:int,b:array<string>>", primary_key="id")
    values = [{"a": 1, "b": ["x", None]}, {"a": None, "b": []}, None]

    table.upsert(pl.DataFrame({"id": [1, 2, 3], "s": values}))
    table.insert(pd.DataFrame({"id": [4, 5], "s": values[:2]}))

    found = {row["id"]: row["s"] for row in table.to_arrow().to_pylist()}
    assert found == dict(enumerate([*values, *values[:2]], start=1))
