"""Our tables inside SQL texts. `tests/spark/test_sql_rewrite.py` runs the results in Spark."""

from __future__ import annotations

import pytest

from arcticlake.errors import InvalidRequest
from arcticlake.read.sql import SqlPlan, TableRequest, plan_sql

OURS = frozenset(
    {"shop.orders", "shop.items", "shop.odd name", "shop.or😀ders", "shop.left", "shop.or`der"}
)


def plan(text: str) -> SqlPlan:
    return plan_sql(text, lambda name: name.lower() in OURS)


def names(text: str) -> list[str]:
    return [request.name for request in plan(text).tables.values()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select * from shop.orders", "select * from {arctic_0} AS orders"),
        ("select * from shop.orders o", "select * from {arctic_0} o"),
        ("select * from shop.orders as o(a, b)", "select * from {arctic_0} as o(a, b)"),
        ("select * from `shop`.orders;", "select * from {arctic_0} AS orders;"),
        ("select * from shop.`orders`", "select * from {arctic_0} AS `orders`"),
        ("select * from shop.`odd name`", "select * from {arctic_0} AS `odd name`"),
        ("select * from shop.`or``der`", "select * from {arctic_0} AS `or``der`"),
        ("select * from shop.left", "select * from {arctic_0} AS `left`"),
        (
            "select '😀', `ä` -- ü {}\nfrom shop . /* é */\n`or😀ders` -- x\nwhere 1 = 1",
            "select '😀', `ä` -- ü {{}}\nfrom {arctic_0} AS `or😀ders` -- x\nwhere 1 = 1",
        ),
        (
            "select * from shop.orders tablesample (10 percent) where id = 1",
            "select * from {arctic_0} tablesample (10 percent) AS orders where id = 1",
        ),
        (
            "select * from shop.orders tablesample (bucket 1 out of 4) repeatable (3)",
            "select * from {arctic_0} tablesample (bucket 1 out of 4) repeatable (3) AS orders",
        ),
        (
            "select * from shop.orders tablesample (5 rows) o",
            "select * from {arctic_0} tablesample (5 rows) o",
        ),
        (
            "select * from shop.orders pivot (sum(a) for b in (1, 2))",
            "select * from {arctic_0} AS orders pivot (sum(a) for b in (1, 2))",
        ),
        (
            "select * from shop.orders lateral view explode(shop.orders.tags) t as tag",
            "select * from {arctic_0} AS orders lateral view explode(orders.tags) t as tag",
        ),
        ("from shop.orders select id", "from {arctic_0} AS orders select id"),
        ("from shop.orders |> where id = 1", "from {arctic_0} AS orders |> where id = 1"),
        (
            "explain formatted select * from shop.orders",
            "explain formatted select * from {arctic_0} AS orders",
        ),
        ("describe table shop.orders", "describe table {arctic_0}"),
        (
            "create table x as select * from shop.orders",
            "create table x as select * from {arctic_0} AS orders",
        ),
        ("insert into x select id from shop.orders o", "insert into x select id from {arctic_0} o"),
        ("insert into x table shop.orders", "insert into x table {arctic_0}"),
        (
            "merge into x using shop.orders on x.a = shop.orders.a when matched then delete",
            "merge into x using {arctic_0} AS orders on x.a = orders.a when matched then delete",
        ),
        (
            "select /*+ broadcast(orders) */ * from shop.orders",
            "select /*+ broadcast(orders) */ * from {arctic_0} AS orders",
        ),
    ],
)
def test_only_the_name_changes(text: str, expected: str) -> None:
    assert plan(text).text == expected


def test_braces_of_the_text_survive_the_formatting() -> None:
    text = "select '{x}', map_from_arrays(array('{'), array('}}')) from shop.orders"
    rewritten = plan(text)

    formatted = rewritten.text.format(arctic_0="view_1")
    assert formatted == text.replace("shop.orders", "view_1 AS orders")


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ("shop.orders.status", "orders.status"),
        ("SHOP.Orders.*", "Orders.*"),
        ("`shop`.`orders`.`a b`", "`orders`.`a b`"),
        ("max(shop.orders.addr.zip)", "max(orders.addr.zip)"),
        ("shop.orders.a.b.c.d", "orders.a.b.c.d"),
        ("orders.status, status", "orders.status, status"),
        ("other.orders.status", "other.orders.status"),
    ],
)
def test_columns_with_the_full_name_follow_the_alias(columns: str, expected: str) -> None:
    text = plan(f"select {columns} from shop.orders").text

    assert text == f"select {expected} from {{arctic_0}} AS orders"


@pytest.mark.parametrize(
    ("clause", "request_expected"),
    [
        ("version as of 3", TableRequest("shop.orders", version=3)),
        ("VERSION AS OF '3'", TableRequest("shop.orders", version=3)),
        ("FOR VERSION AS OF 3", TableRequest("shop.orders", version=3)),
        ("for system_version as of 3", TableRequest("shop.orders", version=3)),
        ("timestamp as of '2026-01-01'", TableRequest("shop.orders", timestamp="2026-01-01")),
        ("for timestamp as of '2026-01-01'", TableRequest("shop.orders", timestamp="2026-01-01")),
        ("for system_time as of '2026-01-01'", TableRequest("shop.orders", timestamp="2026-01-01")),
        ("timestamp\nas of date'2026-01-01'", TableRequest("shop.orders", timestamp="2026-01-01")),
    ],
)
def test_time_travel_leaves_the_text_and_enters_the_request(
    clause: str, request_expected: TableRequest
) -> None:
    rewritten = plan(f"select * from shop.orders {clause} o where o.id = 1")

    assert rewritten.text == "select * from {arctic_0} o where o.id = 1"
    assert rewritten.tables == {"arctic_0": request_expected}
    assert plan(f"select * from shop.orders {clause}").text == "select * from {arctic_0} AS orders"


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("version as of 'eod'", r"read\(tag='eod'\)"),
        ("version as of 3L", "needs a literal"),
        ("timestamp as of current_timestamp()", "needs a literal"),
        ("timestamp as of '2026-01-01' - interval 1 day", "cannot be understood"),
    ],
)
def test_time_travel_to_something_else_than_a_literal_is_refused(clause: str, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        plan(f"select * from shop.orders {clause}")


def test_each_point_in_time_of_a_table_has_one_placeholder() -> None:
    rewritten = plan(
        "select * from shop.orders a join shop.orders b on a.id = b.id"
        " join shop.orders version as of 2 c on c.id = b.id"
        " where a.id not in (select id from shop.items) and exists (select 1 from shop.orders d)"
    )

    assert rewritten.text.count("{arctic_0}") == 3
    assert rewritten.tables == {
        "arctic_0": TableRequest("shop.orders"),
        "arctic_1": TableRequest("shop.orders", version=2),
        "arctic_2": TableRequest("shop.items"),
    }


@pytest.mark.parametrize(
    "text",
    [
        "with a as (with b as (select * from shop.orders) select * from b) select * from a",
        "select 1 union all select id from shop.orders",
        "select (select max(id) from shop.orders)",
        "select * from (shop.orders) x",
        "select * from t left anti join shop.orders using (id)",
        "select * from t, lateral (select * from shop.orders o where o.id = t.id)",
        "from shop.orders insert into x select a insert into y select b",
        "with orders as (select * from shop.orders) select * from orders",
    ],
)
def test_tables_are_found_wherever_a_query_stands(text: str) -> None:
    assert names(text) == ["shop.orders"]


@pytest.mark.parametrize(
    "text",
    [
        "select * from orders",
        "select * from cat.shop.orders",
        "select * from other.orders",
        "select * from `shop.orders`",
        "select 'shop.orders' from t -- shop.orders",
        "with shop as (select 1 as orders) select shop.orders from shop",
        "select shop.orders from t as shop",
        "show tables in shop",
        "set x = {y}",
        "selec {broken} from other.t",
        "select '{' , 'open from shop.orders",
        "",
    ],
)
def test_text_without_our_tables_is_left_to_spark_as_it_is(text: str) -> None:
    assert plan(text) == SqlPlan(text, {})


def test_each_name_is_asked_for_once() -> None:
    asked: list[str] = []

    def is_ours(name: str) -> bool:
        asked.append(name)
        return name in OURS

    plan_sql("select o.id, o.id from shop.orders o join shop.orders p on o.id = p.id", is_ours)

    assert sorted(asked) == ["o.id", "p.id", "shop.orders"]


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("insert into shop.orders select 1", ".insert(df)"),
        ("insert into shop.orders (a) values (1)", ".upsert(df)"),
        ("insert overwrite table shop.orders select 1", ".overwrite(df"),
        ("insert overwrite shop.orders partition (d = 1) select 1", ".overwrite(df"),
        ("merge into shop.orders t using x on t.a = x.a when matched then delete", ".upsert(df"),
        ("update shop.orders set a = 1", ".upsert(df)"),
        ("delete from shop.orders where a = 1", ".delete('condition')"),
        ("drop table if exists shop.orders", "lake.drop_table('shop.orders')"),
        ("alter table shop.orders add column x int", "add_column"),
        ("alter table other.t rename to shop.orders", "another name"),
        ("truncate table `shop`.`orders`", ".delete('true')"),
        ("create table shop.orders (a int)", "lake.create_table"),
        ("create or replace table shop.orders as select 1", "lake.create_table"),
        ("cache table shop.orders", ".cache()"),
        ("create temp view v as select * from shop.orders", "createOrReplaceTempView"),
        ("cache table v as select * from shop.orders", "createOrReplaceTempView"),
        ("create table x like shop.orders", "cannot be used in this place"),
        ("show create table shop.orders", "detail()"),
        ("msck repair table shop.orders", "detail()"),
        ("select 1 from shop.orders; select 2", "one SQL statement at a time"),
        ("select * frm shop.orders", "cannot be understood"),
        ("table shop.orders", "cannot be understood"),
    ],
)
def test_what_cannot_run_on_our_tables_names_the_method_instead(text: str, instead: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        plan(text)

    assert instead in refusal.value.message
