"""Where literals stand among the values of a column."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
)

from arcticlake.read.literal import Constant, Place, Side, cast, parse_number, parse_zone, place

NOON = datetime(2020, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "kind", "placed"),
    [
        (Decimal("1.5"), IntegerType(), Place(1, Side.BELOW)),
        (Decimal("-1.5"), IntegerType(), Place(-2, Side.BELOW)),
        (10**12, IntegerType(), Place(2**31 - 1, Side.BELOW)),
        (-(10**12), IntegerType(), Place(-(2**31), Side.ABOVE)),
        (10**12, LongType(), Place(10**12, Side.EQUAL)),
        (Decimal("1.505"), DecimalType(5, 2), Place(Decimal("1.50"), Side.BELOW)),
        (7, DecimalType(5, 2), Place(Decimal("7.00"), Side.EQUAL)),
        (1000, DecimalType(5, 2), Place(Decimal("999.99"), Side.BELOW)),
        (Decimal("0.5"), FloatType(), Place(0.5, Side.EQUAL)),
        (Decimal("0.1"), FloatType(), Place(0.10000000149011612, Side.ABOVE)),
        (Decimal("0.1"), DoubleType(), Place(0.1, Side.EQUAL)),
        (NOON, DateType(), Place(date(2020, 1, 1), Side.BELOW)),
        (date(2020, 1, 1), TimestamptzType(), Place(NOON - timedelta(hours=12), Side.EQUAL)),
        (NOON, TimestampType(), Place(NOON.replace(tzinfo=None), Side.EQUAL)),
        ("x", StringType(), Place("x", Side.EQUAL)),
        (True, BooleanType(), Place(True, Side.EQUAL)),
        (True, IntegerType(), None),
        (1, BooleanType(), None),
        (1, StringType(), None),
        ("x", BinaryType(), None),
        (float(2**60), LongType(), None),
        (0.5, DecimalType(5, 2), None),
        (2**24 + 1, FloatType(), None),
        (10**400, DoubleType(), None),
        (1, ListType(1, IntegerType()), None),
    ],
)
def test_literal_takes_the_nearest_value_of_the_column(
    value: Constant, kind: IcebergType, placed: Place | None
) -> None:
    assert place(value, kind, UTC) == placed


@given(value=st.decimals(-(10**6), 10**6, places=4), row=st.decimals(-999, 999, places=2))
def test_side_and_value_together_order_every_row_as_the_literal_does(
    value: Decimal, row: Decimal
) -> None:
    placed = place(value, DecimalType(5, 2), UTC)

    assert placed is not None
    assert isinstance(placed.value, Decimal)
    above = row > placed.value or (row == placed.value and placed.side == Side.ABOVE)
    assert above == (row > value)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2020-01-01", datetime(2020, 1, 1, tzinfo=UTC)),
        ("2020-1-1 2:3", datetime(2020, 1, 1, 2, 3, tzinfo=UTC)),
        (" 2020-01-01T02:03:04.5 ", datetime(2020, 1, 1, 2, 3, 4, 500_000, tzinfo=UTC)),
        ("2020-01-01 02:03:04.123456789Z", datetime(2020, 1, 1, 2, 3, 4, 123_456, tzinfo=UTC)),
        ("2020-01-01 02:00:00+02:00", datetime(2020, 1, 1, tzinfo=UTC)),
        ("2020-01-01 02:00:00 -2", datetime(2020, 1, 1, 4, tzinfo=UTC)),
        ("2020", None),
        ("20200101", None),
        ("2020-13-01", None),
        ("now", None),
    ],
)
def test_timestamps_are_read_in_sparks_forms(text: str, moment: datetime | None) -> None:
    placed = place(text, TimestamptzType(), UTC)

    assert (None if placed is None else placed.value) == moment


@pytest.mark.parametrize(
    ("name", "hours"), [("UTC", 0), ("Z", 0), ("+02:00", 2), ("GMT-3", -3), ("Asia/Tokyo", 9)]
)
def test_zones_of_a_spark_session_are_known(name: str, hours: int) -> None:
    zone = parse_zone(name)

    assert NOON.astimezone(zone).utcoffset() == timedelta(hours=hours)


def test_unknown_zone_leaves_moments_without_a_place() -> None:
    assert parse_zone("Mars/Olympus") is None
    assert place(date(2020, 1, 1), TimestamptzType(), None) is None
    assert place(NOON, TimestamptzType(), None) == Place(NOON, Side.EQUAL)


@pytest.mark.parametrize(
    ("value", "kind", "result"),
    [
        ("5", IntegerType(), 5),
        ("1.50", DecimalType(3, 2), Decimal("1.50")),
        ("1.505", DecimalType(3, 2), None),
        (1, DoubleType(), 1.0),
        (Decimal("1.5"), IntegerType(), None),
        (Decimal("0.1"), FloatType(), 0.10000000149011612),
        ("x", DoubleType(), None),
        ("2020-01-01", DateType(), date(2020, 1, 1)),
        (NOON, DateType(), None),
    ],
)
def test_cast_loses_nothing(value: Constant, kind: IcebergType, result: Constant | None) -> None:
    assert cast(value, kind, UTC) == result


@pytest.mark.parametrize(
    ("text", "number"),
    [("5", 5), ("5.", Decimal(5)), ("0.10", Decimal("0.10")), ("1e3", 1000.0), ("1e999", None)],
)
def test_numbers_have_the_type_that_spark_gives_them(text: str, number: Constant | None) -> None:
    parsed = parse_number(text)

    assert parsed == number and type(parsed) is type(number)
