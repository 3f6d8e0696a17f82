"""Rows in and out of the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.cli.conftest import Arctic


def test_rows_come_out_as_they_went_in(orders: Arctic) -> None:
    assert orders("read", "shop.orders", "--output", "json").json == [
        {"order_id": 1, "amount": "12.50", "status": "new", "at": "2026-11-15T12:00:00+00:00"},
        {"order_id": 2, "amount": "7.25", "status": None, "at": "2026-11-15T00:00:00+00:00"},
    ]


def test_a_read_takes_columns_conditions_and_limits(orders: Arctic) -> None:
    answer = orders("read", "shop.orders", "--columns", "order_id,status", "--where", "amount > 8")

    assert answer.out == "order_id  status\n       1  new\n"
    assert answer.err == "1 row\n"
    assert orders("read", "shop.orders", "--limit", "1").err == "1 row of 2\n"


def test_a_change_log_in_csv_inserts_updates_and_deletes(orders: Arctic, tmp_path: Path) -> None:
    log = "lsn,op,order_id,amount,status,at\n1,U,1,1.00,old,2026-01-01\n2,U,1,2.00,paid,2026-01-01"
    (tmp_path / "log.csv").write_text(log + "\n3,D,2,,,\n4,I,3,3,,2026-01-02T03:04:05Z\n")

    done = orders(
        *("upsert", "shop.orders", "log.csv", "--order-by", "lsn", "--delete-when", "op = 'D'"),
        *("--output", "json"),
    )

    assert isinstance(done.json, dict)
    assert done.json["version"] == 2
    rows = orders("read", "shop.orders", "--columns", "order_id,amount", "--output", "json").json
    assert rows == [{"order_id": 1, "amount": "2.00"}, {"order_id": 3, "amount": "3.00"}]
    before = orders("read", "shop.orders", "--version", "1", "--output", "json").json
    assert isinstance(before, list)
    assert [row["order_id"] for row in before] == [1, 2]


def test_an_insert_refuses_a_key_that_exists(orders: Arctic) -> None:
    answer = orders("insert", "shop.orders", "orders.jsonl")

    assert answer.code == 2
    assert "exists already" in answer.err


def test_a_delete_names_its_rows_by_condition_or_by_file(orders: Arctic, tmp_path: Path) -> None:
    (tmp_path / "keys.csv").write_text("order_id\n2\n")

    assert orders("delete", "shop.orders").code == 2
    assert orders("delete", "shop.orders", "keys.csv", "--where", "true").code == 2
    assert orders("delete", "shop.orders", "keys.csv").out == "version 2: 1 row in 1 file\n"
    nothing = orders("delete", "shop.orders", "--where", "order_id = 77")
    assert nothing.out == "nothing to do; shop.orders stays at version 2\n"


def test_a_wrong_value_is_named_with_its_place(orders: Arctic, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("order_id,amount,status,at\n5,1.005,x,2026-01-01\n")

    answer = orders("upsert", "shop.orders", "bad.csv")

    assert answer.code == 2
    assert "bad.csv, row 1: column amount is decimal(12,2), and '1.005' is none" in answer.err
    assert orders("history", "shop.orders", "--output", "json").out.count("version") == 1


@pytest.mark.spark
def test_sql_reads_tables_fresh_and_names_its_mistakes(orders: Arctic, spark: SparkSession) -> None:
    assert spark.version
    query = "select count(*) as n, sum(amount) as total from shop.orders"

    answer = orders("sql", query, "--output", "json")
    wrong = orders("sql", "select nothing from shop.orders")

    assert answer.json == [{"n": 2, "total": "19.75"}]
    assert wrong.code == 2
    assert "nothing" in wrong.err
    assert wrong.err.count("\n") == 2  # the note that Spark starts, and the error
