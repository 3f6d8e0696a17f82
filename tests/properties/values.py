"""Column types with their odd values: the ends of every range, and what breaks naive code."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache

import pyarrow as pa

from arcticlake.table.ddl import schema_from_ddl
from arcticlake.table.types import arrow_schema

NAN, INFINITY = math.nan, math.inf
TEXTS = ["", "a", "Z", "zz", "é", "\U0001f600", "x" * 20, "x" * 20 + "y", "\U0010ffff" * 17, "a\0b"]
MOMENTS = [
    datetime(1, 1, 1),  # noqa: DTZ001 - the zone is added where there is one
    datetime(1969, 12, 31, 23, 59, 59, 999_999),  # noqa: DTZ001
    datetime(2026, 3, 1, 12, 30),  # noqa: DTZ001
    datetime(2026, 3, 1, 18, 45),  # noqa: DTZ001
    datetime(9999, 12, 31, 23, 59, 59, 999_999),  # noqa: DTZ001
]

VALUES: Mapping[str, Sequence[object]] = {
    "boolean": [True, False],
    "int": [0, 1, -1, 7, 2**31 - 1, -(2**31)],
    "bigint": [0, 1, -5, 2**40, 2**63 - 1, -(2**63)],
    "float": [0.0, -0.0, 1.5, NAN, INFINITY, -INFINITY, 2.0**-149],
    "double": [0.0, -0.0, -2.25, NAN, INFINITY, -INFINITY, 5e-324, 1.7e308],
    "string": TEXTS,
    "binary": [b"", b"\0", b"\xff" * 20, b"abc"],
    "date": [date(1, 1, 1), date(1969, 12, 31), date(2026, 2, 28), date(9999, 12, 31)],
    "timestamp": [moment.replace(tzinfo=UTC) for moment in MOMENTS],
    "timestamp_ntz": MOMENTS,
    "decimal(9,2)": [Decimal("0.00"), Decimal("-1.50"), Decimal("9999999.99")],
    "decimal(20,2)": [Decimal("0.00"), Decimal("-1.50"), Decimal("999999999999999999.99")],
    "decimal(38,10)": [Decimal("0E-10"), Decimal(f"-{'9' * 28}.{'9' * 10}"), Decimal("1E-10")],
    "struct<a:int,b:string>": [{"a": None, "b": None}, {"a": 1, "b": "\U0001f600"}],
    "array<string>": [[], [None], ["a", "", None]],
    "map<string,double>": [[], [("k", NAN)], [("a", None), ("b", -0.0)]],
    "array<struct<x:int,y:array<date>>>": [
        [{"x": None, "y": None}, None],
        [{"x": 1, "y": [date(2026, 1, 1)]}],
    ],
}
KEY_KINDS = [
    "int",
    "bigint",
    "string",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
    "decimal(9,2)",
    "decimal(38,10)",
]
WIDER = {"int": "bigint", "float": "double", "decimal(9,2)": "decimal(20,2)"}


@cache
def arrow_type(kind: str) -> pa.DataType:
    return arrow_schema(schema_from_ddl(f"c {kind}")).field(0).type


def plain(value: object) -> object:
    """Return a value that equals another one exactly when readers must not tell them apart."""
    match value:
        case float():
            return "NaN" if math.isnan(value) else struct.pack("d", value)
        case dict():
            return tuple((name, plain(inner)) for name, inner in value.items())
        case list() | tuple():
            return tuple(plain(inner) for inner in value)
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC).isoformat()
    return value
