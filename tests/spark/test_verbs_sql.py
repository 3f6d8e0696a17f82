"""lake.sql: our tables planned afresh, everything else left to Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from arcticlake import Lake
from arcticlake.errors import InvalidRequest


@pytest.fixture
def lake(spark: SparkSession, warehouse: Path) -> Lake:
    """Two tables that can be joined."""
    made = Lake.open(str(warehouse), spark=spark)
    orders = made.create_table("shop.orders", "id bigint, user bigint", primary_key="id")
    users = made.create_table("shop.users", "id bigint, name string", primary_key="id")
    orders.upsert([{"id": i, "user": i % 2} for i in range(10)])
    users.upsert([{"id": 0, "name": "Ada"}, {"id": 1, "name": "Bob"}])
    return made


def test_joins_ctes_and_subqueries_see_the_last_commit(lake: Lake) -> None:
    text = """
        with big as (select * from shop.orders where id > (select min(id) from shop.orders))
        select u.name, count(*) as n
        from big join `shop`.`users` u on big.user = u.id
        group by u.name order by u.name
    """
    first = [(row.name, row.n) for row in lake.sql(text).collect()]
    lake.table("shop.orders").delete("id = 9")

    assert first == [("Ada", 4), ("Bob", 5)]
    assert [(row.name, row.n) for row in lake.sql(text).collect()] == [("Ada", 4), ("Bob", 4)]


def test_self_join_and_time_travel_in_one_statement(lake: Lake) -> None:
    lake.table("shop.orders").delete("id < 5")
    text = (
        "select count(*) as n from shop.orders version as of 1 old "
        "left anti join shop.orders on old.id = orders.id"
    )

    assert lake.sql(text).first().n == 5  # type: ignore[union-attr]


def test_tables_that_are_not_ours_stay_sparks(lake: Lake) -> None:
    lake.spark.range(3).createOrReplaceTempView("numbers")
    text = "select count(*) as n from numbers join shop.orders o on numbers.id = o.id"

    assert lake.sql(text).first().n == 3  # type: ignore[union-attr]
    assert lake.sql("select '{x}' as b").count() == 1


def test_writing_by_sql_names_the_method_to_use(lake: Lake) -> None:
    with pytest.raises(InvalidRequest, match="upsert"):
        lake.sql("insert into shop.orders values (1, 2)")
