"""Spark as the judge: schemas from DDL, types, conditions and rewritten SQL texts."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from arcticlake.read.condition import columns_of
from arcticlake.read.sql import plan_sql
from arcticlake.table.ddl import schema_from_ddl
from arcticlake.table.types import schema_from_spark, spark_json
from tests.read.test_condition import FLOATS, NUMBERS, SCHEMA, TABLE, TEXTS, TIMES, TRUTHS

pytestmark = pytest.mark.spark

DDLS = [
    "a int",
    "a integer, b INT, c Int",
    "a tinyint, b byte, c smallint, d short",
    "a bigint, b long",
    "a float, b real, c double",
    "a decimal, b dec, c numeric",
    "a decimal(5), b decimal(12,2), c dec(38,38)",
    "a numeric( 7 , 3 )",
    "a string, b varchar(10), c char(3), d character(4)",
    "a binary, b boolean, c date",
    "a timestamp, b timestamp_ltz, c timestamp_ntz",
    "a timestamp(6)",
    "a int not null",
    "a int NOT NULL COMMENT 'x', b int comment 'y'",
    "a int comment 'it\\'s'",
    "a int comment 'it''s'",
    "a int comment 'it' 's'",
    'a int comment "it\'s"',
    "a int comment r'x\\n'",
    "a int comment 'x\\ny'",
    "a int comment ''",
    "`odd name` string",
    "`a``b` int",
    "`a.b` int",
    "`größe` int",
    "Order_ID bigint, ORDER_date date",
    "1st int",
    "_hidden int, a1_2 int",
    "select int, from string, order date, table int, where int",
    "date date, timestamp timestamp, string string, decimal decimal(3,1)",
    "array array<int>, map map<int,int>, struct struct<a:int>",
    "a: int",
    "a: int, b: string not null",
    "a array<string>",
    "a array<array<array<int>>>",
    "a map<string, bigint>",
    "a map<string, map<int, array<date>>>",
    "a struct<b: int, c: string>",
    "a struct<b int, c string>",
    "a struct<b: int not null comment 'c'>",
    "a struct<>",
    "a struct<`x y`: struct<z: decimal(3,1)>>",
    "a array<struct<b: map<string, struct<c: int>>>>",
    "struct<a:int,b:string>",
    "  a   int  ,\n\tb string  ",
    "/* one */ a int, -- two\n b int",
]
BAD_DDLS = [
    "a",
    "a int,",
    "a int b",
    "a int)",
    "a `int`",
    "a-b int",
    "a varchar",
    "a decimal(39,2)",
    "a decimal(3,5)",
    "a int default 5",
    "a int comment 5",
    "a int comment 'x' not null",
    "a array<int not null>",
    "a array<int",
    "a map<int>",
    "a sparkly",
    "a int not nul",
]


@pytest.mark.parametrize("ddl", DDLS)
@pytest.mark.usefixtures("spark")
def test_ddl_means_what_it_means_to_spark(ddl: str) -> None:
    theirs = StructType.fromDDL(ddl).jsonValue()

    assert isinstance(theirs, dict)
    assert schema_from_ddl(ddl) == schema_from_spark(theirs)


@pytest.mark.parametrize("ddl", BAD_DDLS)
@pytest.mark.usefixtures("spark")
def test_ddl_that_spark_refuses_is_refused(ddl: str) -> None:
    for parse in (StructType.fromDDL, schema_from_ddl):
        with pytest.raises(Exception):  # noqa: B017
            parse(ddl)


def test_field_ids_lead_spark_through_renamed_and_nested_columns(
    spark: SparkSession, tmp_path: Path
) -> None:
    pq.write_table(TABLE, tmp_path / "old.parquet")
    # The same ids under new names: Spark must follow the ids.
    renamed = spark_json(SCHEMA)
    fields = renamed["fields"]
    assert isinstance(fields, list)
    for field in fields:
        field["name"] = f"new {field['name']}".replace(".", "_")
        if field["name"] == "new addr":
            field["type"]["fields"].reverse()
    schema = StructType.fromJson(renamed)

    spark.conf.set("spark.sql.parquet.fieldId.read.enabled", "true")
    frame = spark.read.schema(schema).parquet(str(tmp_path))
    rows = {row["new row"]: row for row in frame.collect()}

    assert rows[0]["new Name"] == "apple"
    assert rows[1]["new addr"].asDict() == {"street": "Main", "zip": 7}
    assert rows[0]["new m"] == {"k": 1}
    assert rows[2]["new addr"] is None


def test_conditions_keep_the_rows_that_spark_keeps(spark: SparkSession) -> None:
    """The expected rows of tests/read/test_condition.py, asked of Spark in one query."""
    schema = StructType.fromJson(spark_json(SCHEMA))
    frame = spark.createDataFrame(TABLE, schema)
    cases = [*TRUTHS, *NUMBERS, *FLOATS, *TEXTS, *TIMES]
    truths = [f"({condition}) as c{place}" for place, (condition, _) in enumerate(cases)]
    answers = frame.selectExpr("row", *truths).orderBy("row").collect()

    kept = {
        condition: [row["row"] for row in answers if row[f"c{place}"] is True]
        for place, (condition, _) in enumerate(cases)
    }
    assert kept == dict(cases)
    assert all(columns_of(condition, SCHEMA) <= set(frame.columns) for condition, _ in cases)


@pytest.fixture(scope="module")
def frames(spark: SparkSession) -> dict[str, DataFrame]:
    orders = spark.sql(
        "select * from values (1, 'new', array('a', 'b'), named_struct('zip', 7)),"
        " (2, 'paid', array('c'), named_struct('zip', 8)), (3, 'paid', array(), null)"
        " as t(id, status, tags, addr)"
    )
    items = spark.sql("select * from values (1, 10), (1, 20), (3, 30) as t(id, price)")
    return {
        "shop.orders": orders,
        "shop.items": items,
        "shop.odd name": items,
        "shop.left": items,
        "shop.semi": items,
        "shop.minus": items,
        "shop.setminus": items,
        "shop.größe": items,
    }


def run(spark: SparkSession, frames: dict[str, DataFrame], text: str) -> list[tuple[object, ...]]:
    plan = plan_sql(text, frames.__contains__)
    by_placeholder = {
        name: frames[request.name].where("id <= 2") if request.version else frames[request.name]
        for name, request in plan.tables.items()
    }
    return [tuple(row) for row in spark.sql(plan.text, None, **by_placeholder).collect()]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("select count(*) from shop.orders", [(3,)]),
        ("select shop.orders.id, orders.status from shop.orders order by 1 limit 1", [(1, "new")]),
        ("select shop.orders.* from shop.orders where id = 3", [(3, "paid", [], None)]),
        ("select `shop`.`orders`.addr.zip from `shop`.`orders` where id = 1", [(7,)]),
        ("select '{x}', '{{y}}' from shop.orders where id = 1", [("{x}", "{{y}}")]),
        (
            "select a.id, b.id from shop.orders a join shop.orders b on a.id + 1 = b.id order by 1",
            [(1, 2), (2, 3)],
        ),
        (
            (
                "select count(*) from shop.orders o left anti join shop.orders version as of 2 v"
                " on o.id = v.id"
            ),
            [(1,)],
        ),
        ("select count(*) from shop.orders FOR SYSTEM_VERSION AS OF 2", [(2,)]),
        (
            (
                "select orders.id, sum(items.price) from shop.orders join shop.items"
                " on shop.orders.id = shop.items.id group by 1 order by 1"
            ),
            [(1, 30), (3, 30)],
        ),
        (
            "with orders as (select id from shop.orders where id < 3) select count(*) from orders",
            [(2,)],
        ),
        (
            (
                "with a as (with b as (select * from shop.orders) select * from b)"
                " select count(*) from a where exists"
                " (select 1 from shop.items where items.id = a.id)"
            ),
            [(2,)],
        ),
        ("select max(id) from shop.orders union all select max(id) from shop.items", [(3,), (3,)]),
        (
            (
                "select tag from shop.orders lateral view explode(shop.orders.tags) t as tag"
                " order by tag"
            ),
            [("a",), ("b",), ("c",)],
        ),
        ("select count(*) from shop.orders tablesample (100 percent)", [(3,)]),
        ("select orders.id from shop.orders tablesample (1 rows) where orders.id = 1", [(1,)]),
        (
            (
                "select * from (select id, status from shop.orders)"
                " pivot (count(id) for status in ('new', 'paid'))"
            ),
            [(1, 2)],
        ),
        (
            "select * from shop.items pivot (sum(price) for id in (1, 3))",
            [(30, 30)],
        ),
        (
            "select * from shop.items unpivot (v for n in (price)) as u where id = 3",
            [(3, "price", 30)],
        ),
        ("select x.id from (shop.orders) x where x.id = 1", [(1,)]),
        ("from shop.orders |> where id = 1 |> select id", [(1,)]),
        ("from shop.orders select max(id)", [(3,)]),
        ("select a, b from shop.items as i(a, b) where a = 3", [(3, 30)]),
        ("select `odd name`.price from shop.`odd name` where id = 3", [(30,)]),
        ("select max(`left`.price) from shop.left", [(30,)]),
        ("select max(price) from shop.semi", [(30,)]),
        ("select max(price) from shop.`minus`", [(30,)]),
        ("select max(setminus.price) from shop.setminus", [(30,)]),
        (
            "select '😀' /* ü */, max(`größe`.price) -- ä\n from shop . `größe` -- 😀\n",
            [("😀", 30)],
        ),
        ("select /*+ broadcast(items) */ count(*) from shop.orders, shop.items", [(9,)]),
        (
            (
                "select id, (select sum(price) from shop.items where items.id = orders.id) total"
                " from shop.orders order by id"
            ),
            [(1, 30), (2, None), (3, 30)],
        ),
        ("describe shop.items", [("id", "int", None), ("price", "int", None)]),
        ("select '{x}'", [("{x}",)]),
    ],
)
def test_rewritten_text_runs_with_frames_in_place_of_tables(
    spark: SparkSession, frames: dict[str, DataFrame], text: str, rows: list[tuple[object, ...]]
) -> None:
    assert run(spark, frames, text) == rows


def test_explain_shows_the_plan(spark: SparkSession, frames: dict[str, DataFrame]) -> None:
    [(text,)] = run(spark, frames, "explain formatted select * from shop.orders")

    assert "Physical Plan" in str(text)


def test_our_tables_can_feed_a_spark_table(
    spark: SparkSession, frames: dict[str, DataFrame]
) -> None:
    try:
        run(spark, frames, "create table copied using parquet as select id from shop.orders")
        run(spark, frames, "insert into copied select id from shop.items where price = 30")

        assert run(spark, frames, "select count(*), max(id) from copied") == [(4, 3)]
    finally:
        spark.sql("drop table if exists copied")
