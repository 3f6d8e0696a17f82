"""Where a literal stands among the values that a column can hold.

SQL compares an int column with 1.5, a date with a timestamp, a float with 0.1. No value of the
column equals such a literal, yet `>` and `<` have exact answers. So a literal is *placed*: the
nearest value that the column can hold, and on which side of the literal that value lies.

    int column, literal 1.5       value 1, BELOW    x > 1.5  is  x > 1,   x < 1.5  is  x <= 1
    int column, literal 10^12     value 2^31-1, BELOW: every int is smaller
    decimal(5,2), literal 1.505   value 1.50, BELOW

Where Spark's own answer depends on settings, or on rounding that Arrow does differently, the
literal has no place (None), and the caller must do without the comparison.

Pure.
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal, InvalidOperation
from enum import IntEnum
from fractions import Fraction
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
)

# What a literal can be: timestamps with a zone are aware datetimes, those without are naive.
Constant = bool | int | Decimal | float | str | bytes | date | datetime

_FLOAT_MAX = struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]
_DOUBLE_EXACT = 2**53  # below it every whole number is a double
_DECIMAL_DIGITS = 38
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)")
_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_TIMESTAMP = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)? ?(Z|UTC|[+-]\d{1,2}(?::?\d{2})?)?)?"
)


class Side(IntEnum):
    """Where the placed value lies, seen from the literal."""

    BELOW = -1
    EQUAL = 0
    ABOVE = 1


@dataclass(frozen=True, slots=True)
class Place:
    """The nearest value of a column to a literal."""

    value: Constant
    side: Side


def parse_zone(name: str) -> tzinfo | None:
    """The time zone of Spark's `spark.sql.session.timeZone`, None if it is not known here."""
    if name.upper() in {"UTC", "Z", "GMT", "ETC/UTC"}:
        return UTC
    if offset := re.fullmatch(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?", name):
        minutes = int(offset[2]) * 60 + int(offset[3] or 0)
        return timezone(timedelta(minutes=-minutes if offset[1] == "-" else minutes))
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return None


def place(value: Constant, kind: IcebergType, zone: tzinfo | None) -> Place | None:
    """Place a literal among the values of a column; None where the answer would be a guess."""
    match kind:
        case IntegerType() | LongType():
            return _place_whole(value, kind)
        case DecimalType():
            return _place_decimal(value, kind)
        case FloatType() | DoubleType():
            return _place_float(value, kind)
        case DateType():
            return _place_date(value, zone)
        case TimestamptzType():
            moment = _moment(value, zone)
            return None if moment is None else Place(moment, Side.EQUAL)
        case TimestampType():
            return _place_local(value, zone)
        case StringType():
            return Place(value, Side.EQUAL) if isinstance(value, str) else None
        case BinaryType():
            return Place(value, Side.EQUAL) if isinstance(value, bytes) else None
        case BooleanType():
            return Place(value, Side.EQUAL) if isinstance(value, bool) else None
    return None


def cast(value: Constant, kind: IcebergType, zone: tzinfo | None) -> Constant | None:
    """The literal as another type, None unless nothing is lost."""
    if isinstance(value, str) and isinstance(kind, DecimalType | FloatType | DoubleType):
        if _NUMBER.fullmatch(value) is None:
            return None
        value = Decimal(value)
    placed = place(value, kind, zone)
    if placed is not None and isinstance(kind, FloatType):
        return placed.value  # a float literal is rounded, that is what it was written for
    return placed.value if placed is not None and placed.side == Side.EQUAL else None


def parse_number(text: str) -> Constant | None:
    """A number as Spark types it: whole, decimal, or double when it has an exponent."""
    try:
        if "e" in text.lower():
            double = float(text)
            return double if math.isfinite(double) else None
        return Decimal(text) if "." in text else int(text)
    except (ValueError, InvalidOperation):
        return None


def _place_whole(value: Constant, kind: IntegerType | LongType) -> Place | None:
    lower, upper = kind.min, kind.max
    if isinstance(value, str):
        # Spark casts the text, to what depends on its ANSI setting: only plain numbers are sure.
        if re.fullmatch(r"[+-]?\d{1,19}", value) and lower <= int(value) <= upper:
            return Place(int(value), Side.EQUAL)
        return None
    if isinstance(value, float) and abs(value) >= _DOUBLE_EXACT:
        return None  # Spark compares doubles, and this far out several longs are one double
    digits = 20 if isinstance(kind, LongType) else 10
    if not _is_number(value) or not _fits_decimal(value, digits, 0):
        return None
    assert isinstance(value, int | float | Decimal)
    if not LongType.min <= value <= LongType.max:
        return None  # against such a literal Spark takes `<` and `>` for true even on NULL
    return _on_grid(value, 1, lower, upper)


def _place_decimal(value: Constant, kind: DecimalType) -> Place | None:
    if isinstance(value, float) or not _is_number(value):
        return None  # Spark would compare doubles
    if not _fits_decimal(value, kind.precision - kind.scale, kind.scale):
        return None
    limit = 10**kind.precision - 1
    placed = _on_grid(value, 10**kind.scale, -limit, limit)
    assert isinstance(placed.value, int)
    sign, digits = int(placed.value < 0), tuple(map(int, str(abs(placed.value))))
    return Place(Decimal((sign, digits, -kind.scale)), placed.side)


def _on_grid(value: Constant, steps: int, lower: int, upper: int) -> Place:
    """Floor a number to the grid of 1/steps, cut to [lower, upper] steps."""
    assert isinstance(value, int | float | Decimal)
    scaled = Fraction(value) * steps
    floor = min(max(math.floor(scaled), lower), upper)
    return Place(floor, Side((floor > scaled) - (floor < scaled)))


def _fits_decimal(value: Constant, digits: int, scale: int) -> bool:
    """Whether Spark can widen column and literal to one decimal without rounding either."""
    if isinstance(value, float):
        return True
    assert isinstance(value, int | Decimal)
    _, literal_digits, exponent = Decimal(value).as_tuple()
    assert isinstance(exponent, int)
    literal_scale = max(-exponent, 0)
    whole = max(len(literal_digits) + exponent, 0)
    return max(whole, digits) + max(literal_scale, scale) <= _DECIMAL_DIGITS


def _place_float(value: Constant, kind: FloatType | DoubleType) -> Place | None:
    if not _is_number(value):
        return None
    assert isinstance(value, int | float | Decimal)
    try:
        double = float(value)
    except OverflowError:
        return None
    if not math.isfinite(double):
        return None
    if isinstance(kind, DoubleType):
        return Place(double, Side.EQUAL)  # Spark rounds the literal to a double in the same way
    single = float32(double)
    side = Side((single > double) - (single < double))
    if isinstance(value, int) and (side != Side.EQUAL or double != value):
        return None  # float or double arithmetic, depending on Spark's ANSI setting
    return Place(single, side)


def float32(value: float) -> float:
    """The float nearest to a double, the largest one where it would be infinite."""
    if abs(value) > _FLOAT_MAX:
        return math.copysign(_FLOAT_MAX, value)
    single: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return single


def _place_date(value: Constant, zone: tzinfo | None) -> Place | None:
    if isinstance(value, str):
        day = _parsed(_DATE, value)
        return None if day is None else Place(day.date(), Side.EQUAL)
    local = _place_local(value, zone)
    if local is None:
        return None
    assert isinstance(local.value, datetime)
    day = datetime.combine(local.value, datetime.min.time())
    return Place(day.date(), Side.EQUAL if day == local.value else Side.BELOW)


def _place_local(value: Constant, zone: tzinfo | None) -> Place | None:
    """A moment without a zone; one with a zone has a place only where the session is in UTC."""
    moment = _parsed(_TIMESTAMP, value) if isinstance(value, str) else _midnight(value)
    if moment is None or (
        moment.tzinfo is not None and (zone is not UTC or isinstance(value, str))
    ):
        return None
    return Place(moment.replace(tzinfo=None), Side.EQUAL)


def _moment(value: Constant, zone: tzinfo | None) -> datetime | None:
    """A point in time; what is written without a zone is meant in `zone`."""
    moment = _parsed(_TIMESTAMP, value) if isinstance(value, str) else _midnight(value)
    if moment is None or (moment.tzinfo is None and zone is None):
        return None
    try:
        return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
    except OverflowError:
        return None


def _midnight(value: Constant) -> datetime | None:
    if isinstance(value, datetime):
        return value
    return datetime.combine(value, datetime.min.time()) if isinstance(value, date) else None


def _parsed(form: re.Pattern[str], text: str) -> datetime | None:
    """The moment that a text spells in Spark's form, aware if it names a zone."""
    found = form.fullmatch(text.strip())
    if found is None:
        return None
    year, month, day, *clock = found.groups(default="")
    hour, minute, second, fraction, zone = clock or [""] * 5
    try:
        return datetime(
            int(year),
            int(month),
            int(day),
            int(hour or 0),
            int(minute or 0),
            int(second or 0),
            int(fraction[:6].ljust(6, "0")),  # Spark cuts what is finer than a microsecond
            tzinfo=parse_zone(zone) if zone else None,
        )
    except ValueError:
        return None


def _is_number(value: Constant) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)
