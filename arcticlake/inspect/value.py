"""Values of manifests as people know them.

A manifest keeps a date as days, a timestamp as microseconds and a bound as bytes. Here they become
dates, datetimes and plain values again; `to_json` is the form that every `to_dict()` uses.

Pure.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

from pyiceberg.conversions import from_bytes
from pyiceberg.transforms import IdentityTransform, TruncateTransform
from pyiceberg.types import (
    DateType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    PrimitiveType,
    TimestampType,
    TimestamptzType,
)

from arcticlake.ingest.place import readable
from arcticlake.ingest.plan import place_terms
from arcticlake.table.spec import PartitionTerm, TableSpec
from arcticlake.tree.forest import Partition

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def natural(kind: IcebergType, value: object) -> object:
    """Return a plain Iceberg value in the Python type of its column."""
    if not isinstance(value, int):
        return value
    try:
        match kind:
            case DateType():
                return _EPOCH.date() + timedelta(days=value)
            case TimestamptzType():
                return _EPOCH + timedelta(microseconds=value)
            case TimestampType():
                return (_EPOCH + timedelta(microseconds=value)).replace(tzinfo=None)
    except OverflowError:
        pass  # Python's calendar ends in the year 9999; the plain number still tells something
    return value


def natural_bound(spec: TableSpec, ids: Sequence[int], bound: Sequence[object]) -> object:
    """Return a bound of a key: one column as its value, several as a tuple, none as None."""
    kinds = [spec.schema.find_type(field_id) for field_id in ids]
    values = tuple(natural(kind, value) for kind, value in zip(kinds, bound, strict=True))
    if not values or all(value is None for value in values):
        return None
    return values[0] if len(values) == 1 else values


def decode_bound(kind: PrimitiveType, raw: bytes) -> object:
    """Return the plain value of a bound, also of one written before its column was widened."""
    if isinstance(kind, LongType) and len(raw) == 4:
        kind = IntegerType()
    if isinstance(kind, DoubleType) and len(raw) == 4:
        kind = FloatType()
    value: object = from_bytes(kind, raw)
    return value


def partition_labels(spec: TableSpec, partition: Partition) -> dict[str, str | None]:
    """Return the values of a partition by field name, as people write them; None for null."""
    labels: dict[str, str | None] = {}
    terms = zip(spec.partition, place_terms(spec), partition, strict=True)
    for term, place, value in terms:
        shown = value
        if isinstance(term.transform, IdentityTransform) and place.transform == "identity":
            shown = natural(spec.schema.find_type(term.source_id), value)
        if isinstance(shown, datetime):
            shown = shown.isoformat()
        labels[term.name] = None if value is None else readable(place, shown)
    return labels


def partition_order(partition: Partition) -> tuple[tuple[bool, object], ...]:
    """Return a sort key for partitions; null comes first."""
    return tuple((value is not None, 0 if value is None else value) for value in partition)


def partition_text(spec: TableSpec, term: PartitionTerm) -> str:
    """Return a partition field as it is typed in `partition_by`."""
    column = spec.schema.find_field(term.source_id).name
    match term.transform:
        case IdentityTransform():
            return column
        case TruncateTransform(width=width):
            return f"truncate({column}, {width})"
    return f"{term.transform}({column})"


def to_json(value: object) -> object:
    """Return a value that JSON can hold; mappings and sequences are followed."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Mapping():
            return {str(name): to_json(inner) for name, inner in value.items()}
        case Decimal():
            return str(value)
        case bytes():
            return b64encode(value).decode()
        case date() | time():
            return value.isoformat()
        case Sequence() | frozenset() | set():
            return [to_json(inner) for inner in value]
    return str(value)
