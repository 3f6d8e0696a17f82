"""TableSpec: what a table is, by field id, so that a rename changes nothing here.

A table is its columns and three keys (KEY-01): partition fields separate rows into directories,
the bucket key (one column of the primary key) spreads the rows of a partition over the tree,
the sort key orders rows and files inside a leaf. Base and change table share the definition.

The same value serves creation (planned from what the user typed, all mistakes refused here) and
loading (read back from the schema and properties of the base table).

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    YearTransform,
)
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
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

from arcticlake.errors import InvalidRequest
from arcticlake.table.options import Options, parse_options
from arcticlake.table.types import check_storable, spark_type_name

CHANGE_SUFFIX = "__changes"

_KEY_TYPES = (
    IntegerType,
    LongType,
    StringType,
    DateType,
    TimestampType,
    TimestamptzType,
    DecimalType,
    BinaryType,
)
_KEY_REFUSALS: Mapping[type[IcebergType], str] = {
    BooleanType: "two values cannot spread rows over a tree, and Iceberg cannot bucket them",
    FloatType: "equal-looking floats differ in their bits; use a decimal or a bigint",
    DoubleType: "equal-looking doubles differ in their bits; use a decimal or a bigint",
    UUIDType: "readers disagree on the hash of uuids; store them as string",
}
_TERM = re.compile(
    r"\s*(?:(?P<transform>\w+)\s*\(\s*(?P<inner>`[^`]+`|[^,()]+?)\s*(?:,\s*(?P<width>\d+)\s*)?\)"
    r"|(?P<column>`[^`]+`|[^()]+?))\s*"
)
_TIME_TRANSFORMS: Mapping[str, tuple[Transform[object, int], str]] = {
    "year": (YearTransform(), "year"),
    "month": (MonthTransform(), "month"),
    "day": (DayTransform(), "day"),
    "hour": (HourTransform(), "hour"),
}


@dataclass(frozen=True, slots=True)
class PartitionTerm:
    """One partition field of the user's: a transform of one column."""

    source_id: int
    transform: Transform  # type: ignore[type-arg]
    name: str


@dataclass(frozen=True, slots=True)
class TableSpec:
    """Columns, keys and options of one table; every column is named by its field id."""

    name: str
    schema: Schema
    key_ids: tuple[int, ...]
    bucket_id: int | None
    partition: tuple[PartitionTerm, ...]
    sort_ids: tuple[int, ...]
    options: Options

    @property
    def keyed(self) -> bool:
        """Whether the table has a primary key, and therefore a change table."""
        return bool(self.key_ids)

    @property
    def key(self) -> tuple[str, ...]:
        """Names of the primary key columns, in key order."""
        return self.names(self.key_ids)

    @property
    def sort(self) -> tuple[str, ...]:
        """Names of the sort key columns."""
        return self.names(self.sort_ids)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all business columns, in table order."""
        return tuple(column.name for column in self.schema.fields)

    @property
    def partition_source_ids(self) -> tuple[int, ...]:
        """Ids of the columns that the partition fields are made of."""
        return tuple(dict.fromkeys(term.source_id for term in self.partition))

    @property
    def key_decides_partition(self) -> bool:
        """Whether a key alone tells the partition of its row."""
        return set(self.partition_source_ids) <= set(self.key_ids)

    def names(self, ids: Sequence[int]) -> tuple[str, ...]:
        """Return the present names of columns."""
        return tuple(self.schema.find_field(field_id).name for field_id in ids)

    def spec_terms(self, buckets: int) -> tuple[PartitionTerm, ...]:
        """Return the fields of the Iceberg partition spec for one depth of the tree."""
        if self.bucket_id is None:
            return self.partition
        column = self.schema.find_field(self.bucket_id).name
        bucket = PartitionTerm(
            self.bucket_id, BucketTransform(buckets), f"{column}_bucket_{buckets}"
        )
        return (*self.partition, bucket)


def plan_table(
    name: str,
    schema: Schema,
    *,
    primary_key: Sequence[str],
    partition_by: Sequence[str],
    sort_by: Sequence[str],
    bucket_by: str | None,
    options: Mapping[str, object],
) -> TableSpec:
    """Return the spec of a new table, or refuse it with the reason."""
    check_name(name)
    check_storable(schema)
    schema = assign_fresh_schema_ids(schema)
    key = [_column(schema, column, name) for column in primary_key]
    _check_key(key, name)
    partition = tuple(_parse_term(text, schema, name) for text in partition_by)
    _check_partition(partition, name)
    sort = tuple(_sort_column(schema, text, name) for text in sort_by)
    key_ids = tuple(column.field_id for column in key)
    spec = TableSpec(
        name=name,
        schema=_require_keys(schema, key_ids),
        key_ids=key_ids,
        bucket_id=_plan_bucket(key, partition, bucket_by, schema, name),
        partition=partition,
        sort_ids=tuple(column.field_id for column in sort),
        options=parse_options(options, table=name),
    )
    for column in spec.columns:
        check_column_name(spec, column)
    return spec


def check_column_name(spec: TableSpec, column: str) -> None:
    """Refuse a column with the name of a partition field, which Iceberg does not allow."""
    taken = {
        t.name.lower() for t in spec.partition if not isinstance(t.transform, IdentityTransform)
    }
    if spec.bucket_id is not None:
        bucket = re.escape(spec.schema.find_field(spec.bucket_id).name)
        if re.fullmatch(rf"{bucket}_bucket_\d+", column, re.IGNORECASE):
            taken.add(column.lower())
    if column.lower() in taken:
        message = (
            f"table {spec.name}: column {column} has the name of a partition field of the table; "
            "choose another name"
        )
        raise InvalidRequest(message)


def check_name(name: str) -> None:
    """Refuse a table name that is not `database.table` in plain letters."""
    if not re.fullmatch(r"\w+\.\w+", name):
        message = f"table name {name!r} must read database.table, in letters, digits and _"
        raise InvalidRequest(message)
    if name.endswith(CHANGE_SUFFIX):
        message = f"table name {name!r}: the ending {CHANGE_SUFFIX} is kept for change tables"
        raise InvalidRequest(message)


def _column(schema: Schema, column: str, table: str) -> NestedField:
    wanted = column.strip().strip("`")
    for known in schema.fields:
        if known.name.lower() == wanted.lower():
            return known
    names = [known.name for known in schema.fields]
    near = get_close_matches(wanted, names, n=1)
    hint = f"did you mean {near[0]}?" if near else f"columns: {', '.join(names)}"
    message = f"table {table}: there is no column {wanted!r}; {hint}"
    raise InvalidRequest(message)


def _check_key(key: Sequence[NestedField], table: str) -> None:
    ids = [column.field_id for column in key]
    if len(set(ids)) != len(ids):
        message = f"table {table}: a column stands twice in the primary key; name it once"
        raise InvalidRequest(message)
    for column in key:
        if isinstance(column.field_type, _KEY_TYPES):
            continue
        reason = _KEY_REFUSALS.get(type(column.field_type), "only plain columns can be keys")
        kind = spark_type_name(column.field_type)
        message = f"table {table}: {column.name} {kind} cannot be in the primary key: {reason}"
        raise InvalidRequest(message)


def _require_keys(schema: Schema, key_ids: tuple[int, ...]) -> Schema:
    columns = [
        NestedField(c.field_id, c.name, c.field_type, required=True, doc=c.doc)
        if c.field_id in key_ids
        else c
        for c in schema.fields
    ]
    return Schema(*columns, identifier_field_ids=list(key_ids))


def _parse_term(text: str, schema: Schema, table: str) -> PartitionTerm:
    match = _TERM.fullmatch(text)
    if match is None:
        raise InvalidRequest(_term_advice(text, table))
    if match["column"] is not None:
        column = _column(schema, match["column"], table)
        transform: Transform = IdentityTransform()  # type: ignore[type-arg]
        name = column.name
    else:
        column = _column(schema, match["inner"], table)
        kind = match["transform"].lower().removesuffix("s")
        width = match["width"]
        if kind in _TIME_TRANSFORMS and width is None:
            transform, suffix = _TIME_TRANSFORMS[kind]
            name = f"{column.name}_{suffix}"
        elif kind == "truncate" and width is not None and int(width) > 0:
            transform, name = TruncateTransform(int(width)), f"{column.name}_trunc_{width}"
        else:
            raise InvalidRequest(_term_advice(text, table))
    kind_name = spark_type_name(column.field_type)
    if isinstance(column.field_type, (FloatType, DoubleType)) or not transform.can_transform(
        column.field_type
    ):
        message = f"table {table}: cannot partition by {text!r}: {column.name} is {kind_name}"
        raise InvalidRequest(message)
    return PartitionTerm(column.field_id, transform, name)


def _term_advice(text: str, table: str) -> str:
    return (
        f"table {table}: partition field {text!r} is not understood; use a column, "
        "year/month/day/hour(column) or truncate(column, width); buckets come from the primary key"
    )


def _check_partition(partition: Sequence[PartitionTerm], table: str) -> None:
    seen: set[tuple[int, str]] = set()
    for term in partition:
        identity = (term.source_id, str(term.transform))
        if identity in seen:
            message = f"table {table}: partition field {term.name} is given twice"
            raise InvalidRequest(message)
        seen.add(identity)


def _sort_column(schema: Schema, text: str, table: str) -> NestedField:
    column = _column(schema, text, table)
    if not column.field_type.is_primitive:
        kind = spark_type_name(column.field_type)
        message = f"table {table}: cannot sort by {column.name}: {kind} has no order"
        raise InvalidRequest(message)
    return column


def _plan_bucket(
    key: Sequence[NestedField],
    partition: Sequence[PartitionTerm],
    bucket_by: str | None,
    schema: Schema,
    table: str,
) -> int | None:
    if bucket_by is not None:
        column = _column(schema, bucket_by, table)
        if column not in key:
            message = f"table {table}: bucket_by {bucket_by!r} must be a primary key column"
            raise InvalidRequest(message)
        return column.field_id
    if not key:
        return None
    sources = {term.source_id for term in partition}
    free = [column for column in key if column.field_id not in sources]
    return (free or list(key))[0].field_id
