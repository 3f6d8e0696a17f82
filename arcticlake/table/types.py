"""The vocabulary between Spark, Iceberg and Arrow: one table of types, four readings.

    StructType.jsonValue() ──schema_from_spark──▶ Iceberg Schema ──spark_json──▶ StructType.fromJson
                                                        └────────arrow_schema──▶ pyarrow.Schema

Iceberg is the truth: every type that Iceberg v2 can hold has one Spark name and one Arrow type,
and what it cannot hold is refused by name, with the type to use instead. Field ids travel along
as metadata, since columns are matched by id and never by name.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count

import pyarrow as pa
from pyiceberg.schema import Schema, assign_fresh_schema_ids
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
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

from arcticlake.errors import InvalidRequest

RESERVED_NAMES = (
    "_action",
    "_ts",
    "_order",
    "_seq",
    "_version",
    "_change_type",
    "_commit_version",
    "_commit_timestamp",
)
SPARK_FIELD_ID = "parquet.field.id"
ARROW_FIELD_ID = b"PARQUET:field_id"

# Every spelling of Spark, in DDL and in JSON, of the types without parameters.
_PLAIN: Mapping[str, PrimitiveType] = {
    "boolean": BooleanType(),
    "tinyint": IntegerType(),
    "byte": IntegerType(),
    "smallint": IntegerType(),
    "short": IntegerType(),
    "int": IntegerType(),
    "integer": IntegerType(),
    "bigint": LongType(),
    "long": LongType(),
    "float": FloatType(),
    "real": FloatType(),
    "double": DoubleType(),
    "date": DateType(),
    "timestamp": TimestamptzType(),
    "timestamp_ltz": TimestamptzType(),
    "timestamp_ntz": TimestampType(),
    "string": StringType(),
    "binary": BinaryType(),
}
_DECIMALS = frozenset({"decimal", "dec", "numeric"})
_LIMITED_STRINGS = frozenset({"varchar", "char", "character"})
_ATOM = re.compile(r"(?P<name>[a-z_]+)\s*(?:\((?P<parameters>[\s\d,]*)\))?")

# Arrow type, Spark's JSON name, Spark's DDL name.
_PRIMITIVES: Mapping[type[PrimitiveType], tuple[pa.DataType, str, str]] = {
    BooleanType: (pa.bool_(), "boolean", "boolean"),
    IntegerType: (pa.int32(), "integer", "int"),
    LongType: (pa.int64(), "long", "bigint"),
    FloatType: (pa.float32(), "float", "float"),
    DoubleType: (pa.float64(), "double", "double"),
    DateType: (pa.date32(), "date", "date"),
    TimestamptzType: (pa.timestamp("us", tz="UTC"), "timestamp", "timestamp"),
    TimestampType: (pa.timestamp("us"), "timestamp_ntz", "timestamp_ntz"),
    StringType: (pa.string(), "string", "string"),
    BinaryType: (pa.binary(), "binary", "binary"),
    # Spark reads the Parquet form of a uuid as its 16 bytes and fails when asked for a string.
    UUIDType: (pa.uuid(), "binary", "uuid"),
}

# First word of a type that cannot be stored → what to use instead.
_INSTEAD: Mapping[str, str] = {
    "interval": "bigint (a number of microseconds or months)",
    "calendarinterval": "bigint (a number of microseconds or months)",
    "variant": "string (the value as JSON)",
    "void": "the type that the values will have, for example string",
    "null": "the type that the values will have, for example string",
    "unknown": "the type that the values will have, for example string",
    "time": "bigint (microseconds since midnight) or string",
    "udt": "the struct or array that the user-defined type is stored as",
    "geometry": "binary (WKB)",
    "geography": "binary (WKB)",
    "collate": "string without a collation, and compare lower(column)",
    "timestamp_ns": "timestamp_ntz (microseconds)",
    "timestamptz_ns": "timestamp (microseconds)",
    "object": "binary",
}


def unsupported_type(column: str, type_name: str) -> InvalidRequest:
    """The refusal of a type that Iceberg v2 cannot hold; names column, type and replacement."""
    word = "collate" if "collate" in type_name.lower() else re.split(r"\W", type_name.lower())[0]
    if word in _INSTEAD:
        return InvalidRequest(
            f"column {column}: type {type_name} cannot be stored in an Iceberg v2 table; "
            f"use {_INSTEAD[word]}"
        )
    known = ", ".join(sorted({*_PLAIN, "decimal", "varchar", "char", "array", "map", "struct"}))
    return InvalidRequest(f"column {column}: type {type_name} is not known; use one of {known}")


def atomic_type(column: str, name: str, parameters: Sequence[int] = ()) -> PrimitiveType:
    """The Iceberg type of a Spark type word and its parameters, as in `decimal` (12, 2)."""
    word = name.lower()
    spelled = f"{word}({','.join(map(str, parameters))})" if parameters else word
    if word in _DECIMALS and len(parameters) <= 2:
        precision, scale = (*parameters, 0)[:2] if parameters else (10, 0)
        if not (1 <= precision <= 38 and 0 <= scale <= precision):
            raise InvalidRequest(
                f"column {column}: {spelled} is out of range; "
                "use decimal(p,s) with 1 <= p <= 38 and 0 <= s <= p"
            )
        return DecimalType(precision, scale)
    if word in _LIMITED_STRINGS:
        if len(parameters) != 1 or parameters[0] < 1:
            raise InvalidRequest(f"column {column}: {word} needs a length, for example {word}(10)")
        return StringType()
    if word in _PLAIN and (
        not parameters or (word.startswith("timestamp") and spelled[-3:] == "(6)")
    ):
        return _PLAIN[word]
    raise unsupported_type(column, spelled)


def schema_from_spark(fields: Mapping[str, object]) -> Schema:
    """The Iceberg schema of `StructType.jsonValue()`, with fresh ids, top-level columns first."""
    struct = _from_json((), fields, count(1))
    assert isinstance(struct, StructType), f"not the JSON of a StructType: {fields}"
    return fresh_schema(struct)


def fresh_schema(struct: StructType) -> Schema:
    """A schema of these fields with ids 1, 2, … as Iceberg gives them: outer fields first."""
    refuse_duplicates(struct)
    return assign_fresh_schema_ids(Schema(*struct.fields))


def _from_json(path: tuple[str, ...], kind: object, ids: Iterator[int]) -> IcebergType:
    """One type of Spark's JSON form; `ids` are placeholders until the schema is complete."""
    column = ".".join(path)
    match kind:
        case str():
            return _from_json_word(column, kind)
        case {"type": "struct", "fields": list(fields)}:
            return StructType(*(_field_from_json(path, field, ids) for field in fields))
        case {"type": "array", "elementType": element, "containsNull": nullable}:
            return ListType(
                next(ids),
                _from_json((*path, "element"), element, ids),
                element_required=not nullable,
            )
        case {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": nullable}:
            return MapType(
                next(ids),
                _from_json((*path, "key"), key, ids),
                next(ids),
                _from_json((*path, "value"), value, ids),
                value_required=not nullable,
            )
        case {"type": word}:
            raise unsupported_type(column, str(word))
    raise unsupported_type(column, str(kind))


def _from_json_word(column: str, word: str) -> PrimitiveType:
    parsed = _ATOM.fullmatch(word.lower())
    if parsed is None:
        raise unsupported_type(column, word)
    return atomic_type(column, parsed["name"], [int(n) for n in re.findall(r"\d+", word)])


def _field_from_json(path: tuple[str, ...], field: object, ids: Iterator[int]) -> NestedField:
    match field:
        case {"name": str(name), "type": kind, "nullable": nullable, "metadata": dict(metadata)}:
            # Spark hides a collation in the metadata and calls the column a plain string.
            if collations := metadata.get("__COLLATIONS"):
                raise unsupported_type(
                    ".".join((*path, name)), f"string collate {next(iter(collations.values()))}"
                )
            return NestedField(
                next(ids),
                name,
                _from_json((*path, name), kind, ids),
                required=not nullable,
                doc=metadata.get("comment"),
            )
    raise InvalidRequest(f"column {'.'.join(path)}: not the JSON of a StructField: {field}")


def spark_json(schema: Schema) -> dict[str, object]:
    """`StructType.fromJson` of this is the Spark schema; each field carries its Iceberg id."""
    return _struct_json((), schema.as_struct())


def _struct_json(path: tuple[str, ...], struct: StructType) -> dict[str, object]:
    fields: list[object] = []
    for field in struct.fields:
        metadata: dict[str, object] = {SPARK_FIELD_ID: field.field_id}
        if field.doc:
            metadata["comment"] = field.doc
        fields.append(
            {
                "name": field.name,
                "type": _type_json((*path, field.name), field.field_type),
                "nullable": field.optional,
                "metadata": metadata,
            }
        )
    return {"type": "struct", "fields": fields}


def _type_json(path: tuple[str, ...], kind: IcebergType) -> object:
    match kind:
        case StructType():
            return _struct_json(path, kind)
        case ListType():
            return {
                "type": "array",
                "elementType": _type_json((*path, "element"), kind.element_type),
                "containsNull": not kind.element_required,
            }
        case MapType():
            return {
                "type": "map",
                "keyType": _type_json((*path, "key"), kind.key_type),
                "valueType": _type_json((*path, "value"), kind.value_type),
                "valueContainsNull": not kind.value_required,
            }
        case DecimalType():
            return f"decimal({kind.precision},{kind.scale})"
        case FixedType():
            return "binary"
        case PrimitiveType() if type(kind) in _PRIMITIVES:
            return _PRIMITIVES[type(kind)][1]
    raise unsupported_type(".".join(path), str(kind))


def arrow_schema(schema: Schema) -> pa.Schema:
    """The Arrow schema whose Parquet files carry the field ids at every level."""
    return pa.schema([_arrow_field((), field) for field in schema.fields])


def _arrow_field(path: tuple[str, ...], field: NestedField) -> pa.Field:
    return pa.field(
        field.name,
        _arrow_type((*path, field.name), field.field_type),
        nullable=field.optional,
        metadata={ARROW_FIELD_ID: str(field.field_id).encode()},
    )


def _arrow_type(path: tuple[str, ...], kind: IcebergType) -> pa.DataType:
    match kind:
        case StructType():
            return pa.struct([_arrow_field(path, field) for field in kind.fields])
        case ListType():
            return pa.list_(_arrow_field(path, kind.element_field))
        case MapType():
            return pa.map_(_arrow_field(path, kind.key_field), _arrow_field(path, kind.value_field))
        case DecimalType():
            return pa.decimal128(kind.precision, kind.scale)
        case FixedType():
            return pa.binary(len(kind))
        case PrimitiveType() if type(kind) in _PRIMITIVES:
            return _PRIMITIVES[type(kind)][0]
    raise unsupported_type(".".join(path), str(kind))


def check_storable(schema: Schema) -> None:
    """Refuse a schema that the two tables cannot hold: types, names, duplicates, emptiness."""
    if not schema.fields:
        raise InvalidRequest("the schema has no columns; give at least one, as in 'id bigint'")
    refuse_duplicates(schema.as_struct())
    for field in schema.fields:
        if field.name.lower() in RESERVED_NAMES:
            raise InvalidRequest(
                f"column {field.name}: the name is kept for a column of Arctic's own; rename it"
            )
        if "." in field.name:
            raise InvalidRequest(
                f"column {field.name}: a dot in a name reads like a field of a struct; rename it"
            )
    # The readings below refuse what they do not know, by path.
    arrow_schema(schema)


def refuse_duplicates(struct: StructType, path: tuple[str, ...] = ()) -> None:
    """Refuse two fields of one struct whose names differ by case only, at every depth."""
    seen: dict[str, str] = {}
    for field in struct.fields:
        here = (*path, field.name)
        if not field.name:
            raise InvalidRequest(f"a column of {'.'.join(path) or 'the schema'} has no name")
        if field.name.lower() in seen:
            raise InvalidRequest(
                f"column {'.'.join(here)}: the name is taken by "
                f"{'.'.join((*path, seen[field.name.lower()]))} (case is ignored); rename one"
            )
        seen[field.name.lower()] = field.name
        _refuse_duplicates_inside(field.field_type, here)


def _refuse_duplicates_inside(kind: IcebergType, path: tuple[str, ...]) -> None:
    match kind:
        case StructType():
            refuse_duplicates(kind, path)
        case ListType():
            _refuse_duplicates_inside(kind.element_type, (*path, "element"))
        case MapType():
            _refuse_duplicates_inside(kind.key_type, (*path, "key"))
            _refuse_duplicates_inside(kind.value_type, (*path, "value"))


def spark_type_name(kind: IcebergType) -> str:
    """The type as a Spark user would write it, for messages: `bigint`, `decimal(12,2)`."""
    match kind:
        case StructType():
            inner = ",".join(f"{f.name}:{spark_type_name(f.field_type)}" for f in kind.fields)
            return f"struct<{inner}>"
        case ListType():
            return f"array<{spark_type_name(kind.element_type)}>"
        case MapType():
            return f"map<{spark_type_name(kind.key_type)},{spark_type_name(kind.value_type)}>"
        case DecimalType():
            return f"decimal({kind.precision},{kind.scale})"
        case PrimitiveType() if type(kind) in _PRIMITIVES:
            return _PRIMITIVES[type(kind)][2]
    return str(kind)
