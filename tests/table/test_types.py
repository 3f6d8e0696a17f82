"""Types between Spark, Iceberg and Arrow."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.io.pyarrow import schema_to_pyarrow
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
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
)

from arcticlake.errors import InvalidRequest
from arcticlake.table.types import (
    arrow_schema,
    check_storable,
    schema_from_spark,
    spark_json,
    spark_type_name,
)

ADDRESS = StructType(
    NestedField(20, "street", StringType(), required=False, doc="where"),
    NestedField(21, "zip", IntegerType(), required=True),
)
EVERYTHING = Schema(
    NestedField(1, "a", BooleanType(), required=False),
    NestedField(2, "b", IntegerType(), required=True),
    NestedField(3, "c", LongType(), required=False, doc="the count"),
    NestedField(4, "d", FloatType(), required=False),
    NestedField(5, "e", DoubleType(), required=False),
    NestedField(6, "f", DecimalType(12, 2), required=False),
    NestedField(7, "g", DateType(), required=False),
    NestedField(8, "h", TimestamptzType(), required=False),
    NestedField(9, "i", TimestampType(), required=False),
    NestedField(10, "j", StringType(), required=False),
    NestedField(11, "k", BinaryType(), required=False),
    NestedField(12, "l", ADDRESS, required=False),
    NestedField(13, "m", ListType(30, ADDRESS.model_copy(), element_required=False)),
    NestedField(14, "n", MapType(40, StringType(), 41, LongType(), value_required=True)),
)


def spark_field(name: str, kind: object, **more: object) -> dict[str, object]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}, **more}


def spark_struct(*fields: dict[str, object]) -> dict[str, object]:
    return {"type": "struct", "fields": list(fields)}


def one(kind: IcebergType, name: str = "x") -> Schema:
    return Schema(NestedField(1, name, kind, required=False))


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("boolean", BooleanType()),
        ("byte", IntegerType()),
        ("short", IntegerType()),
        ("integer", IntegerType()),
        ("long", LongType()),
        ("float", FloatType()),
        ("double", DoubleType()),
        ("decimal(38,18)", DecimalType(38, 18)),
        ("date", DateType()),
        ("timestamp", TimestamptzType()),
        ("timestamp_ntz", TimestampType()),
        ("string", StringType()),
        ("varchar(10)", StringType()),
        ("char(3)", StringType()),
        ("binary", BinaryType()),
    ],
)
def test_every_spark_type_that_iceberg_holds_has_one_iceberg_type(
    word: str, kind: IcebergType
) -> None:
    schema = schema_from_spark(spark_struct(spark_field("x", word)))

    assert schema.fields == (NestedField(1, "x", kind, required=False),)


@pytest.mark.parametrize(
    ("kind", "instead"),
    [
        ("interval", "bigint"),
        ("interval day to second", "bigint"),
        ("variant", "JSON"),
        ("void", "string"),
        ("time(6)", "microseconds"),
        ("geometry(OGC:CRS84)", "WKB"),
        ("geography(OGC:CRS84, SPHERICAL)", "WKB"),
        ("string collate UNICODE", "without a collation"),
        ({"type": "udt", "class": "x", "sqlType": "string"}, "struct or array"),
        ("sparkly", "use one of"),
    ],
)
def test_what_iceberg_cannot_hold_is_refused_by_path_and_name(kind: object, instead: str) -> None:
    inner = {"type": "array", "elementType": kind, "containsNull": True}
    with pytest.raises(InvalidRequest, match=instead) as refusal:
        schema_from_spark(spark_struct(spark_field("a", spark_struct(spark_field("b", inner)))))

    assert "column a.b.element: type " in refusal.value.message


def test_collation_that_spark_hides_in_the_metadata_is_refused() -> None:
    field = spark_field("x", "string", metadata={"__COLLATIONS": {"x": "icu.UNICODE"}})
    with pytest.raises(InvalidRequest, match=r"string collate icu\.UNICODE"):
        schema_from_spark(spark_struct(field))


def test_fresh_ids_name_the_top_level_first() -> None:
    element = spark_struct(spark_field("p", "long"), spark_field("q", "long", nullable=False))
    schema = schema_from_spark(
        spark_struct(
            spark_field("a", {"type": "array", "elementType": element, "containsNull": False}),
            spark_field(
                "m",
                {
                    "type": "map",
                    "keyType": "string",
                    "valueType": "date",
                    "valueContainsNull": False,
                },
            ),
            spark_field("z", "string", metadata={"comment": "last"}, nullable=False),
        )
    )

    assert [f.field_id for f in schema.fields] == [1, 2, 3]
    assert schema == assign_fresh_schema_ids(schema)
    assert schema.find_field("a.element").required
    assert schema.find_field("a.element.q").required
    assert schema.find_field("m.value").required
    assert schema.find_field("z") == NestedField(3, "z", StringType(), required=True, doc="last")


def test_spark_json_and_back_is_the_same_schema() -> None:
    fresh = assign_fresh_schema_ids(EVERYTHING)

    assert schema_from_spark(spark_json(fresh)) == fresh


def test_spark_json_carries_the_id_of_every_struct_field() -> None:
    found: dict[str, object] = {}

    def collect(kind: object, path: str) -> None:
        match kind:
            case {"type": "struct", "fields": list(fields)}:
                for field in fields:
                    found[path + field["name"]] = field["metadata"]["parquet.field.id"]
                    collect(field["type"], f"{path}{field['name']}.")
            case {"type": "array", "elementType": element}:
                collect(element, f"{path}element.")

    collect(spark_json(EVERYTHING), "")
    assert found["c"] == 3
    assert found["l.zip"] == found["m.element.zip"] == 21
    assert len(found) == 18


def test_uuid_and_fixed_are_bytes_in_spark() -> None:
    schema = Schema(
        NestedField(1, "u", UUIDType(), required=False),
        NestedField(2, "f", FixedType(4), required=False),
    )

    fields = spark_json(schema)["fields"]
    assert isinstance(fields, list)
    assert [field["type"] for field in fields] == ["binary", "binary"]


@pytest.mark.parametrize("reading", [spark_json, arrow_schema, check_storable])
@pytest.mark.parametrize(
    "kind", [TimeType(), TimestampNanoType(), UnknownType(), ListType(2, TimeType())]
)
def test_types_beyond_v2_are_refused_in_every_reading(reading: object, kind: IcebergType) -> None:
    assert callable(reading)
    with pytest.raises(InvalidRequest, match=r"column x(\.element)?: type .* cannot be stored"):
        reading(one(kind, "x"))


def test_arrow_schema_is_pyicebergs_with_small_offsets() -> None:
    schema = Schema(*EVERYTHING.fields, NestedField(50, "o", FixedType(4), required=False))

    def small(kind: pa.DataType) -> pa.DataType:
        if pa.types.is_large_string(kind):
            return pa.string()
        if pa.types.is_large_binary(kind):
            return pa.binary()
        if pa.types.is_large_list(kind):
            return pa.list_(small_field(kind.value_field))
        if pa.types.is_struct(kind):
            return pa.struct([small_field(field) for field in kind])
        if pa.types.is_map(kind):
            return pa.map_(small_field(kind.key_field), small_field(kind.item_field))
        return kind

    def small_field(field: pa.Field) -> pa.Field:
        ids = {b"PARQUET:field_id": field.metadata[b"PARQUET:field_id"]}
        return field.with_type(small(field.type)).with_metadata(ids)

    expected = pa.schema([small_field(field) for field in schema_to_pyarrow(schema)])
    assert arrow_schema(schema).equals(expected, check_metadata=True)


def test_storable_schema_passes() -> None:
    check_storable(EVERYTHING)
    check_storable(one(UUIDType()))


def test_schema_without_columns_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="no columns"):
        check_storable(Schema())


@pytest.mark.parametrize(
    "name", ["_action", "_TS", "_order", "_seq", "_version", "_commit_version"]
)
def test_names_of_hidden_columns_are_reserved(name: str) -> None:
    with pytest.raises(InvalidRequest, match=f"column {name}: the name is kept"):
        check_storable(one(LongType(), name))
    check_storable(one(LongType(), f"{name}_id"))


def test_a_dot_in_a_name_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"column a\.b: a dot"):
        check_storable(one(LongType(), "a.b"))


def test_reserved_names_are_free_inside_a_struct() -> None:
    check_storable(one(StructType(NestedField(2, "_order", LongType(), required=False))))


def test_names_that_differ_by_case_only_are_refused_at_every_depth() -> None:
    pair = StructType(
        NestedField(2, "zip", LongType(), required=False),
        NestedField(3, "ZIP", LongType(), required=False),
    )
    with pytest.raises(InvalidRequest, match=r"column x\.ZIP: the name is taken by x\.zip"):
        check_storable(one(pair))
    with pytest.raises(InvalidRequest, match=r"column x\.value\.ZIP"):
        check_storable(one(MapType(7, StringType(), 8, pair)))


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (LongType(), "bigint"),
        (DecimalType(12, 2), "decimal(12,2)"),
        (TimestamptzType(), "timestamp"),
        (TimestampType(), "timestamp_ntz"),
        (ListType(1, StringType()), "array<string>"),
        (MapType(1, StringType(), 2, IntegerType()), "map<string,int>"),
        (ADDRESS, "struct<street:string,zip:int>"),
        (UUIDType(), "uuid"),
        (TimeType(), "time"),
    ],
)
def test_type_names_are_those_that_a_spark_user_writes(kind: IcebergType, name: str) -> None:
    assert spark_type_name(kind) == name
