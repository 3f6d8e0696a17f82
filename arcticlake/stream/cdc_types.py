"""Text of a change message → a typed value, as Spark SQL.

Every change format hands over column values as text. What a text may look like depends only on the
type of the column, and nothing is guessed:

    bigint, int       12                       boolean     true false 1 0
    decimal(12,2)     12.5 "12.50"             date        2026-11-15, or days since 1970
    double            1.5e3 NaN                timestamp   ISO text, or a number with a known unit
    binary            base64                   struct …    JSON

The answer of each expression is NULL where the text does not fit, so a NULL beside a text is a bad
value; the caller tells them apart. A schema part (Debezium) may say more of a column: the unit of a
moment, or that a decimal comes as the bytes of its digits. Digits that a decimal has no room for
make it unfit; a moment is cut to microseconds.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

from arcticlake.table.types import spark_type_name

TIME_UNITS: Mapping[str, str] = {
    "seconds": "try_multiply({0}, 1000000L)",
    "millis": "try_multiply({0}, 1000L)",
    "micros": "{0}",
    "nanos": "({0} DIV 1000L)",
}
"""How a number of each unit becomes microseconds."""

_SCHEMA_UNITS: Mapping[str, str] = {
    "io.debezium.time.Timestamp": "millis",
    "org.apache.kafka.connect.data.Timestamp": "millis",
    "io.debezium.time.MicroTimestamp": "micros",
    "io.debezium.time.NanoTimestamp": "nanos",
}
_BYTES_DECIMAL = "org.apache.kafka.connect.data.Decimal"

# No backslashes: they would have to be doubled for Spark's SQL and again for its regex.
_WHOLE = "^[+-]?[0-9]+$"
_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_MOMENT = f"^{_DAY}([ T][0-9]{{2}}:[0-9]{{2}}(:[0-9]{{2}}([.][0-9]{{1,9}})?)?)?"
_ZONE = " ?(Z|UTC|[+-][0-9]{2}:?[0-9]{2})"
# Years 1 to 9999 in microseconds: beyond, Spark itself fails instead of answering NULL.
_MICROS_MIN, _MICROS_MAX = -62_135_596_800_000_000, 253_402_300_799_999_999


@dataclass(frozen=True, slots=True)
class Hint:
    """What a schema part says of one column, as SQL: the name of its meaning, and a scale."""

    meaning: str
    scale: str


def quote(text: str) -> str:
    """Return a text as a literal of Spark's SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def name_of(column: str) -> str:
    """Return a column's name as Spark's SQL takes it, whatever its letters."""
    return "`" + column.replace("`", "``") + "`"


def type_ddl(kind: IcebergType) -> str:
    """Return a type as Spark's DDL takes it, with every inner name quoted."""
    match kind:
        case StructType():
            inner = ",".join(f"{name_of(f.name)}:{type_ddl(f.field_type)}" for f in kind.fields)
            return f"struct<{inner}>"
        case ListType():
            return f"array<{type_ddl(kind.element_type)}>"
        case MapType():
            return f"map<{type_ddl(kind.key_type)},{type_ddl(kind.value_type)}>"
        case UUIDType() | FixedType():
            return "binary"
    return spark_type_name(kind)


def wanted(kind: IcebergType) -> str:
    """Return what a column takes, for the reason of a refusal."""
    match kind:
        case TimestampType() | TimestamptzType():
            return f"{spark_type_name(kind)} (ISO text; a number needs time_unit)"
        case DateType():
            return "date (ISO text or days since 1970)"
        case BooleanType():
            return "boolean (true, false, 1 or 0)"
        case BinaryType() | FixedType():
            return "binary in base64"
        case DecimalType():
            return f"{spark_type_name(kind)} (a plain number)"
        case StructType() | ListType() | MapType():
            return f"{spark_type_name(kind)} in JSON"
    return spark_type_name(kind)


def cast_text(
    kind: IcebergType, text: str, *, time_unit: str | None = None, hint: Hint | None = None
) -> str:
    """Return SQL that reads a text as a type; NULL where the text does not fit."""
    match kind:
        case StringType():
            return text
        case IntegerType() | LongType() | FloatType() | DoubleType():
            return f"try_cast({text} AS {type_ddl(kind)})"
        case BooleanType():
            return (
                f"CASE WHEN lower({text}) IN ('true', '1') THEN true "
                f"WHEN lower({text}) IN ('false', '0') THEN false END"
            )
        case DecimalType():
            return _decimal(kind, text)
        case DateType():
            return _date(text)
        case TimestampType() | TimestamptzType():
            return _timestamp(kind, text, time_unit, hint)
        case UUIDType():
            return f"try_to_binary(replace({text}, '-', ''), 'hex')"
        case BinaryType() | FixedType():
            return f"try_to_binary({text}, 'base64')"
    return _nested(kind, text)


def _decimal(kind: DecimalType, text: str) -> str:
    """Refuse digits that would be rounded away; an exponent is judged on the widest decimal."""
    narrow = f"try_cast({text} AS decimal({kind.precision},{kind.scale}))"
    widest = f"try_cast({text} AS decimal(38,{38 - kind.precision + kind.scale}))"
    plain = quote("^[+-]?[0-9]*[.]?[0-9]*$")
    rounded = quote(f"[.][0-9]{{{kind.scale}}}[0-9]*[1-9]")
    return (
        f"CASE WHEN {text} RLIKE {plain} THEN if({text} RLIKE {rounded}, NULL, {narrow}) "
        f"WHEN {widest} = {narrow} THEN {narrow} END"
    )


def decimal_text(text: str, hint: Hint) -> str:
    """Return a decimal as text; where the schema part says so, it comes as base64 of its bytes.

    The bytes are one signed number of up to 128 bits, most significant first. What cannot be
    decoded stays as it is, and no decimal will be made of it.
    """
    padded = "lpad(h, 32, if(substr(h, 1, 1) >= '8', 'F', '0'))"
    high = f"CAST(conv(substr({padded}, 1, 16), 16, -10) AS decimal(20,0))"
    low = f"CAST(conv(substr({padded}, 17, 16), 16, 10) AS decimal(20,0))"
    number = f"try_add(try_multiply({high}, 18446744073709551616BD), {low})"
    unscaled = f"if(length(h) BETWEEN 1 AND 32, CAST({number} AS string), NULL)"
    bits = f"hex(try_to_binary({text}, 'base64'))"
    decoded = f"element_at(transform(array({bits}), h -> {unscaled}), 1)"
    return (
        f"if({hint.meaning} = '{_BYTES_DECIMAL}', "
        f"coalesce(concat({decoded}, 'E-', coalesce({hint.scale}, '0')), {text}), {text})"
    )


def _date(text: str) -> str:
    days = f"try_cast({text} AS int)"
    return (
        f"CASE WHEN {text} RLIKE '{_WHOLE}' THEN "
        f"if({days} BETWEEN -719162 AND 2932896, date_add(DATE'1970-01-01', {days}), NULL) "
        f"WHEN {text} RLIKE '^{_DAY}([ T]00:00:00([.]0+)?(Z|[+]00:00)?)?$' "
        f"THEN try_cast(substr({text}, 1, 10) AS date) END"
    )


def _timestamp(kind: IcebergType, text: str, time_unit: str | None, hint: Hint | None) -> str:
    zoned = isinstance(kind, TimestamptzType)
    number = _from_micros(_micros(text, time_unit, hint), zoned=zoned)
    instant = f"try_cast({text} AS timestamp)"
    with_zone = instant if zoned else _from_micros(f"unix_micros({instant})", zoned=False)
    without = instant if zoned else f"try_cast({text} AS timestamp_ntz)"
    return (
        f"CASE WHEN {text} RLIKE '{_WHOLE}' THEN {number} "
        f"WHEN {text} RLIKE '{_MOMENT}{_ZONE}$' THEN {with_zone} "
        f"WHEN {text} RLIKE '{_MOMENT}$' THEN {without} END"
    )


def _micros(text: str, time_unit: str | None, hint: Hint | None) -> str:
    number = f"try_cast({text} AS bigint)"
    plain = "CAST(NULL AS bigint)" if time_unit is None else TIME_UNITS[time_unit].format(number)
    if hint is None:
        return plain
    cases = " ".join(
        f"WHEN '{name}' THEN {TIME_UNITS[unit].format(number)}"
        for name, unit in _SCHEMA_UNITS.items()
    )
    return f"CASE {hint.meaning} {cases} ELSE {plain} END"


def _from_micros(micros: str, *, zoned: bool) -> str:
    moment = "timestamp_micros(n)"
    if not zoned:
        moment = "timestampadd(MICROSECOND, n, TIMESTAMP_NTZ'1970-01-01 00:00:00')"
    checked = f"if(n BETWEEN {_MICROS_MIN} AND {_MICROS_MAX}, {moment}, NULL)"
    return f"element_at(transform(array({micros}), n -> {checked}), 1)"


def _nested(kind: IcebergType, text: str) -> str:
    """Read JSON; one bad value inside makes the whole text unfit, where Spark would put NULL."""
    schema = quote(f"v {type_ddl(kind)}, _corrupt_record string")
    parsed = f"""from_json(concat('{{"v":', {text}, '}}'), {schema})"""
    return (
        f"element_at(transform(array({parsed}), j -> if(j._corrupt_record IS NULL, j.v, NULL)), 1)"
    )
