from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from pyiceberg.conversions import to_bytes
from pyiceberg.types import (
    DateType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
)

from arcticlake.inspect.value import (
    decode_bound,
    natural,
    natural_bound,
    partition_labels,
    partition_order,
    partition_text,
    to_json,
)
from tests.inspect.lab import spec_of

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (DateType(), 20455, date(2026, 1, 2)),
        (TimestamptzType(), 1_767_355_200_000_000, NOON),
        (TimestampType(), 1_767_355_200_000_000, NOON.replace(tzinfo=None)),
        (LongType(), 7, 7),
        (StringType(), "x", "x"),
        (DateType(), None, None),
        (DateType(), 10**9, 10**9),  # beyond Python's calendar
    ],
)
def test_plain_values_become_python_values(
    kind: IcebergType, value: object, expected: object
) -> None:
    assert natural(kind, value) == expected


def test_a_bound_of_one_column_is_its_value_and_of_several_a_tuple() -> None:
    spec = spec_of("id bigint, day date", key=("id", "day"))

    assert natural_bound(spec, spec.key_ids[:1], (5,)) == 5
    assert natural_bound(spec, spec.key_ids, (5, 20455)) == (5, date(2026, 1, 2))
    assert natural_bound(spec, spec.key_ids, (None, None)) is None
    assert natural_bound(spec, (), ()) is None


def test_bounds_from_before_a_widening_are_read() -> None:
    assert decode_bound(LongType(), to_bytes(IntegerType(), 7)) == 7
    assert decode_bound(DoubleType(), to_bytes(FloatType(), 0.5)) == 0.5
    assert decode_bound(LongType(), to_bytes(LongType(), 7)) == 7


def test_partition_values_read_as_people_write_them() -> None:
    spec = spec_of(
        "id bigint, day date, at timestamp, name string",
        partition_by=("day", "month(at)", "at", "truncate(name, 2)", "hour(at)"),
    )

    labels = partition_labels(spec, (20455, 672, 1_767_355_200_000_000, None, 490_932))

    assert labels == {
        "day": "2026-01-02",
        "at_month": "2026-01",
        "at": "2026-01-02T12:00:00+00:00",
        "name_trunc_2": None,
        "at_hour": "2026-01-02-12",
    }
    assert [partition_text(spec, term) for term in spec.partition] == [
        "day",
        "month(at)",
        "at",
        "truncate(name, 2)",
        "hour(at)",
    ]


def test_partitions_sort_with_null_first() -> None:
    partitions = [(2, "a"), (None, "b"), (1, None), (1, "a")]

    assert sorted(partitions, key=partition_order) == [(None, "b"), (1, None), (1, "a"), (2, "a")]


def test_json_keeps_every_value() -> None:
    value = {"a": (1, Decimal("1.50")), "b": [date(2026, 1, 2), NOON], 3: b"\x00", "c": None}

    assert to_json(value) == {
        "a": [1, "1.50"],
        "b": ["2026-01-02", "2026-01-02T12:00:00+00:00"],
        "3": "AA==",
        "c": None,
    }
