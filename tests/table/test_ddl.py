"""Schemas as users type them. `tests/spark/test_sql_rewrite.py` compares with Spark's parser."""

from __future__ import annotations

import pytest
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
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)

from arcticlake.errors import InvalidRequest
from arcticlake.table.ddl import schema_from_ddl, type_from_ddl


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("boolean", BooleanType()),
        ("tinyint", IntegerType()),
        ("byte", IntegerType()),
        ("smallint", IntegerType()),
        ("short", IntegerType()),
        ("int", IntegerType()),
        ("INTEGER", IntegerType()),
        ("bigint", LongType()),
        ("Long", LongType()),
        ("real", FloatType()),
        ("float", FloatType()),
        ("double", DoubleType()),
        ("decimal", DecimalType(10, 0)),
        ("dec", DecimalType(10, 0)),
        ("numeric(5)", DecimalType(5, 0)),
        ("decimal( 12 , 2 )", DecimalType(12, 2)),
        ("string", StringType()),
        ("varchar(10)", StringType()),
        ("char(3)", StringType()),
        ("binary", BinaryType()),
        ("date", DateType()),
        ("timestamp", TimestamptzType()),
        ("timestamp_ltz", TimestamptzType()),
        ("timestamp_ntz", TimestampType()),
    ],
)
def test_every_spelling_of_a_type_is_understood(word: str, kind: IcebergType) -> None:
    assert schema_from_ddl(f"x {word}").fields == (NestedField(1, "x", kind, required=False),)
    assert type_from_ddl(word, "x") == kind


def test_names_keep_their_case_and_words_have_none() -> None:
    schema = schema_from_ddl(
        "Order_ID BIGINT NOT NULL, `odd name` String Comment 'it\\'s', date: date, 1st int"
    )

    assert schema.fields == (
        NestedField(1, "Order_ID", LongType(), required=True),
        NestedField(2, "odd name", StringType(), required=False, doc="it's"),
        NestedField(3, "date", DateType(), required=False),
        NestedField(4, "1st", IntegerType(), required=False),
    )


def test_nested_types_get_ids_after_the_top_level() -> None:
    schema = schema_from_ddl(
        "tags array<string>, addr struct<street: string, `zip` int not null comment 'code'>,"
        " m map<string, array<bigint>>, z int"
    )

    street = NestedField(6, "street", StringType(), required=False)
    zip_code = NestedField(7, "zip", IntegerType(), required=True, doc="code")
    longs = ListType(10, LongType(), element_required=False)
    assert schema.fields == (
        NestedField(1, "tags", ListType(5, StringType(), element_required=False), required=False),
        NestedField(2, "addr", StructType(street, zip_code), required=False),
        NestedField(3, "m", MapType(8, StringType(), 9, longs, value_required=False)),
        NestedField(4, "z", IntegerType(), required=False),
    )


def test_printed_struct_is_a_schema_too() -> None:
    assert schema_from_ddl("struct<a:int,b:string>") == schema_from_ddl("a int, b string")


@pytest.mark.parametrize(
    ("ddl", "doc"),
    [
        ("x int comment 'it''s'", "it's"),
        ("x int comment 'it' 's'", "its"),
        ('x int comment "say ""hi"""', 'say "hi"'),
        ("x int comment r'a\\n'", "a\\n"),
    ],
)
def test_quotes_inside_a_comment_follow_spark(ddl: str, doc: str) -> None:
    assert schema_from_ddl(ddl).fields[0].doc == doc


@pytest.mark.parametrize(
    ("ddl", "quoted"),
    [
        ("", "at the end: expected a name"),
        ("   ", "at the end: expected a name"),
        ("a int,", "at the end: expected a name"),
        ("a", "at the end: expected a type"),
        ("a int b", "at 'b': expected ',' or the end"),
        ("a int)", "at ')': expected ',' or the end"),
        ("a `int`", "at '`int`': expected a type"),
        ("a-b int", "at '-b int': expected a type"),
        ("a int not nul", "at 'nul': expected 'null'"),
        ("a int comment 5", "at '5': expected a text in quotes"),
        ("a int default 5", "at 'default 5': expected ','"),
        ("a int comment 'x' not null", "at 'not null': expected ','"),
        ("a array<int", "at the end: expected '>'"),
        ("a array<int not null>", "at 'not null>': expected '>'"),
        ("a map<string>", "at '>': expected ','"),
        ("a decimal(1.5)", "at '1.5)': expected a whole number"),
        ("5 int", "at '5 int': expected a name"),
        ("a int comment 'x", "cannot be read"),
    ],
)
def test_errors_quote_the_part_that_is_not_understood(ddl: str, quoted: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        schema_from_ddl(ddl)

    assert quoted in refusal.value.message


@pytest.mark.parametrize(
    ("ddl", "message"),
    [
        ("a interval", "column a: type interval cannot be stored"),
        ("a struct<b: interval day to second>", "column a.b: type interval cannot be stored"),
        ("a variant", "column a: type variant cannot be stored"),
        ("a map<string, void>", "column a.value: type void cannot be stored"),
        ("a time(6)", "column a: type time(6) cannot be stored"),
        ("a string collate UNICODE", "column a: type string collate UNICODE cannot be stored"),
        ("a geometry(4326)", "column a: type geometry(4326) cannot be stored"),
        ("a sparkly", "column a: type sparkly is not known"),
        ("a varchar", "column a: varchar needs a length"),
        ("a decimal(39,2)", "column a: decimal(39,2) is out of range"),
        ("a decimal(3,5)", "column a: decimal(3,5) is out of range"),
        ("a int, A string", "column A: the name is taken by a"),
    ],
)
def test_types_that_cannot_be_stored_are_refused_by_name(ddl: str, message: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        schema_from_ddl(ddl)

    assert refusal.value.message.startswith(message)


def test_type_alone_must_end_where_it_ends() -> None:
    with pytest.raises(InvalidRequest, match="expected ',' or the end"):
        type_from_ddl("int not null", "x")
