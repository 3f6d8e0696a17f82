"""Tables as a whole in the terminal: create, list, change, drop (LOG-04)."""

from __future__ import annotations

from tests.cli.conftest import Arctic


def test_a_table_is_made_with_all_its_keys_and_options(arctic: Arctic) -> None:
    made = arctic(
        *("create", "shop.sales", "--schema", "region string, id bigint, day date, n int"),
        *("--key", "region,id", "--partition", "region", "--sort", "day", "--bucket", "id"),
        *("--option", "initial-nodes=2", "--output", "json"),
    )

    assert made.json == {"table": "shop.sales", "created": True}
    facts = arctic("describe", "shop.sales", "--output", "json").json
    assert isinstance(facts, dict)
    assert facts["primary_key"] == ["region", "id"]
    assert facts["partition_by"] == ["region"]
    assert facts["sort_by"] == ["day"]
    assert facts["bucket_by"] == "id"
    assert facts["options"]["initial-nodes"] == "2"
    assert arctic("tables").out == "shop.sales\n"


def test_a_table_that_exists_is_refused_or_left_alone(orders: Arctic) -> None:
    again = ("create", "shop.orders", "--schema", "id int")

    assert orders(*again).code == 2
    assert orders(*again, "--if-not-exists").out == "shop.orders exists already\n"
    assert "amount" in orders("describe", "shop.orders").out


def test_an_unknown_option_is_refused_with_the_nearest_one(arctic: Arctic) -> None:
    answer = arctic("create", "a.b", "--schema", "id int", "--option", "target_size=1MB")

    assert answer.code == 2
    assert "did you mean target-file-size?" in answer.err


def test_columns_are_added_renamed_moved_and_dropped(orders: Arctic) -> None:
    orders("add-column", "shop.orders", "qty", "int")
    orders("widen-column", "shop.orders", "qty", "bigint")
    orders("rename-column", "shop.orders", "qty", "pieces")
    orders("move-column", "shop.orders", "pieces", "--after", "order_id")
    orders("drop-column", "shop.orders", "status")

    facts = orders("describe", "shop.orders", "--output", "json").json
    assert isinstance(facts, dict)
    assert [(column["name"], column["type"]) for column in facts["schema"]] == [
        ("order_id", "bigint"),
        ("pieces", "bigint"),
        ("amount", "decimal(12,2)"),
        ("at", "timestamp"),
    ]


def test_options_change_one_by_one(orders: Arctic) -> None:
    assert orders("set-options", "shop.orders", "target-file-size=1MB", "scan=tasks").code == 0

    facts = orders("describe", "shop.orders", "--output", "json").json
    assert isinstance(facts, dict)
    assert facts["options"]["target-file-size"] == "1MB"
    assert facts["options"]["scan"] == "tasks"


def test_a_drop_that_nobody_confirms_drops_nothing(orders: Arctic) -> None:
    refused = orders("drop", "shop.orders")

    assert refused.code == 2
    assert "--yes" in refused.err
    assert orders("tables").out == "shop.orders\n"
    assert orders("drop", "shop.orders", "--yes").out == "dropped shop.orders\n"
    assert orders("tables").out == ""
    assert orders("drop", "shop.orders", "--yes").code == 1
