"""The rules for incoming rows, on Arrow schemas alone."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from arcticlake.errors import InvalidRequest
from arcticlake.ingest.normalize import (
    assignable,
    cast_rows,
    changes_of,
    deleted_of,
    order_of,
    plan_columns,
    rows_of,
    spare_columns,
)
from arcticlake.table.change import Action
from arcticlake.table.ddl import schema_from_ddl
from arcticlake.table.hidden import change_schema
from arcticlake.table.types import arrow_schema

TARGET = arrow_schema(schema_from_ddl("id bigint, name string, price decimal(9,2)"))
ROWS = pa.table({"id": [1], "name": ["x"], "price": pa.array([Decimal("1.00")])})


def test_columns_are_matched_without_case_and_given_in_table_order() -> None:
    plan = plan_columns(
        pa.schema({"PRICE": pa.int64(), "Id": pa.int32(), "name": pa.string()}),
        TARGET,
        table="db.t",
    )

    assert plan.targets == ("id", "name", "price")
    assert plan.sources == ("Id", "name", "PRICE")


def test_spare_columns_are_dropped_and_partial_rows_may_lack_columns() -> None:
    source = pa.schema({"id": pa.int64(), "lsn": pa.int64()})

    plan = plan_columns(source, TARGET, table="db.t", spare=["LSN"], partial=True)

    assert plan.targets == ("id",)
    with pytest.raises(InvalidRequest, match=r"db\.t: there is no column lsn"):
        plan_columns(source, TARGET, table="db.t", partial=True)
    with pytest.raises(InvalidRequest, match="lack column name, price"):
        plan_columns(source, TARGET, table="db.t", spare=["lsn"])


@pytest.mark.parametrize(
    ("given", "wanted", "answer"),
    [
        (pa.int8(), pa.int64(), True),
        (pa.uint64(), pa.int32(), True),
        (pa.float64(), pa.int32(), True),
        (pa.int64(), pa.decimal128(9, 2), True),
        (pa.null(), pa.list_(pa.int64()), True),
        (pa.large_string(), pa.string(), True),
        (pa.string_view(), pa.string(), True),
        (pa.binary(4), pa.binary(), True),
        (pa.dictionary(pa.int8(), pa.string()), pa.string(), True),
        (pa.date32(), pa.timestamp("us"), True),
        (pa.timestamp("ns", "UTC"), pa.timestamp("us"), True),
        (pa.large_list(pa.int8()), pa.list_(pa.int64()), True),
        (pa.struct({"a": pa.int8()}), pa.struct({"a": pa.int64()}), True),
        (pa.map_(pa.string(), pa.int8()), pa.map_(pa.string(), pa.int64()), True),
        (pa.string(), pa.int64(), False),
        (pa.int64(), pa.string(), False),
        (pa.string(), pa.binary(), False),
        (pa.bool_(), pa.int64(), False),
        (pa.int64(), pa.bool_(), False),
        (pa.timestamp("us"), pa.date32(), False),
        (pa.string(), pa.timestamp("us"), False),
        (pa.int64(), pa.timestamp("us"), False),
        (pa.struct({"b": pa.int8()}), pa.struct({"a": pa.int8()}), False),
        (pa.list_(pa.string()), pa.list_(pa.int64()), False),
        (pa.struct({"a": pa.int8()}), pa.map_(pa.string(), pa.int8()), False),
        (pa.dictionary(pa.int8(), pa.string()), pa.int64(), False),
    ],
)
def test_a_value_changes_its_type_only_inside_its_family(
    given: pa.DataType, wanted: pa.DataType, answer: bool
) -> None:
    assert assignable(given, wanted) is answer


def cast(values: pa.Array, kind: str) -> list[object]:
    target = arrow_schema(schema_from_ddl(f"c {kind}"))
    rows = pa.table({"c": values})
    plan = plan_columns(rows.schema, target, table="db.t")
    found: list[object] = cast_rows(rows, plan, target, table="db.t")["c"].to_pylist()
    return found


def test_casts_keep_every_value_or_refuse() -> None:
    assert cast(pa.array([1.0, None]), "int") == [1, None]
    assert cast(pa.array([2**31 - 1]), "int") == [2**31 - 1]
    assert cast(pa.array([3, None], pa.uint8()), "decimal(20,18)") == [Decimal(3), None]
    assert cast(pa.array([0.1]), "float") == [pytest.approx(0.1)]
    midnight = datetime(2026, 1, 2)  # noqa: DTZ001 - a column without a zone
    assert cast(pa.array([date(2026, 1, 2)]), "timestamp_ntz") == [midnight]
    assert cast(pa.nulls(2), "array<string>") == [None, None]
    refused: list[tuple[pa.Array, str]] = [
        (pa.array([2**31]), "int"),
        (pa.array([2.5]), "bigint"),
        (pa.array([2**60]), "double"),
        (pa.array([10**8]), "decimal(9,2)"),
        (pa.array([Decimal("0.001")]), "decimal(9,2)"),
        (pa.array([1], pa.int64()).cast(pa.timestamp("ns")), "timestamp"),
    ]
    for values, kind in refused:
        with pytest.raises(InvalidRequest, match=r"db\.t: column c"):
            cast(values, kind)


def test_a_time_without_a_zone_stands_for_utc() -> None:
    naive = datetime(2026, 6, 1, 12)  # noqa: DTZ001 - that is the case
    berlin = pa.array([naive]).cast(pa.timestamp("us", "Europe/Berlin"))

    assert cast(pa.array([naive]), "timestamp") == [naive.replace(tzinfo=UTC)]
    assert cast(berlin, "timestamp") == [naive.replace(tzinfo=UTC)]


def test_frames_of_every_kind_become_arrow() -> None:
    frame = pd.DataFrame({"a": [1, 2]}, index=pd.Index([7, 8], name="b"))
    unnamed = frame.reset_index(drop=True).iloc[1:]

    assert rows_of(frame, table="db.t").column_names == ["b", "a"]
    assert rows_of(unnamed, table="db.t").to_pylist() == [{"a": 2}]
    assert rows_of(pl.DataFrame({"a": ["x"]}), table="db.t").to_pylist() == [{"a": "x"}]
    assert rows_of([{"a": 1}, {"b": 2}], table="db.t").to_pylist() == [
        {"a": 1, "b": None},
        {"a": None, "b": 2},
    ]
    with pytest.raises(InvalidRequest, match=r"db\.t: a set is no frame"):
        rows_of({1}, table="db.t")
    with pytest.raises(InvalidRequest, match=r"db\.t: the rows are not of one kind"):
        rows_of([{"a": 1}, {"a": "x"}], table="db.t")


def test_spare_columns_are_those_that_the_order_or_the_condition_names() -> None:
    names = ["op", "OP2", "lsn", "my col", "x", "D"]

    assert spare_columns("LSN", None, names) == ["lsn"]
    assert spare_columns(None, "OP = 'x D' and `my col` > 1", names) == ["op", "my col"]
    assert spare_columns(None, "op2 = 'it''s x'", names) == ["OP2"]
    assert spare_columns(None, None, names) == []


def test_conditions_mark_rows_and_unknown_is_no_delete() -> None:
    rows = pa.table({"Op": ["D", "U", None], "n": [1, 2, 3]})
    target = arrow_schema(change_schema(schema_from_ddl("n bigint"), (1,)))

    marks = deleted_of(rows, "op = 'D' or N > 2", table="db.t")
    changes = changes_of(
        rows.select(["n"]), target, order=None, deleted=marks, entered_micros=1_000_000
    )

    assert changes["_action"].to_pylist() == ["-D", "+U", "-D"]
    assert deleted_of(rows, None, table="db.t") is None
    unknown = deleted_of(rows, "op = 'D'", table="db.t")
    again = changes_of(rows.select(["n"]), target, order=None, deleted=unknown, entered_micros=1)
    assert again["_action"].to_pylist() == ["-D", "+U", "+U"]


def test_change_rows_carry_action_order_time_and_no_sequence() -> None:
    """KEY-25."""
    target = arrow_schema(change_schema(schema_from_ddl("id bigint, v string"), (1,)))
    rows = pa.table({"id": pa.array([1, 2]), "v": ["a", "b"]})

    plain = changes_of(rows, target, order=None, deleted=None, entered_micros=1_000_000)
    deletes = changes_of(
        rows,
        target,
        order=order_of(rows, "ID", table="db.t"),
        deleted=None,
        entered_micros=1,
        action=Action.DELETE,
    )

    assert plain.column_names == ["id", "v", "_action", "_ts", "_order", "_seq"]
    assert plain["_order"].to_pylist() == [0, 1]
    assert plain["_ts"].to_pylist() == [datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)] * 2
    assert plain["_seq"].null_count == 2
    assert deletes["_action"].to_pylist() == ["-D", "-D"]
    assert deletes["_order"].to_pylist() == [1, 2]


def test_a_binary_fraction_is_not_rounded_into_a_decimal_in_silence() -> None:
    source = pa.schema({"price": pa.float64(), "id": pa.int32(), "name": pa.string()})

    with pytest.raises(InvalidRequest, match=r"column price is decimal.* bring double; cast it"):
        plan_columns(source, TARGET, table="db.t")
