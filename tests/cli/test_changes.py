"""Changes in the terminal."""

from __future__ import annotations

import pytest

from arcticlake.cli.changes import changes
from arcticlake.cli.main import VERBS
from tests.cli.conftest import Arctic


@pytest.fixture
def changed(orders: Arctic) -> Arctic:
    assert orders("delete", "shop.orders", "--where", "order_id = 1").code == 0
    return orders


def test_changes_is_a_verb_of_the_command() -> None:
    assert VERBS["changes"] is changes


def test_changes_are_rows_with_their_type_and_version(changed: Arctic) -> None:
    """INC-10, INC-11."""
    found = changed("changes", "shop.orders", "--columns", "order_id,status")

    assert found.code == 0
    lines = [line.split()[:4] for line in found.out.splitlines()]
    assert lines[0] == ["order_id", "status", "_change_type", "_commit_version"]
    assert [line[0] for line in lines[1:]] == ["1", "2", "1"]
    assert found.err.strip() == "3 rows"
    since = changed("changes", "shop.orders", "--since", "1", "--until", "2")
    assert since.err.strip() == "1 row"
    some = changed("changes", "shop.orders", "--limit", "2")
    assert some.err.strip() == "2 rows of 3"


def test_changes_as_json_are_a_list_of_rows(changed: Arctic) -> None:
    found = changed(
        *("changes", "shop.orders", "--mode", "net", "--where", "order_id = 1"),
        *("--columns", "order_id", "--output", "json"),
    ).json

    assert isinstance(found, list)
    (row,) = found
    told = str(row.pop("_commit_timestamp"))
    assert row == {"order_id": 1, "_change_type": "delete", "_commit_version": 2}
    assert told.startswith("20")
    again = changed("changes", "shop.orders", "--since", told, "--output", "json")
    assert again.json == []


@pytest.mark.parametrize(
    ("asked", "code", "words"),
    [
        (("--since", "9"), 1, "no version 9 yet"),
        (("--since", "1999-01-01"), 1, "no version at or before 1999-01-01"),
        (("--since", "soon"), 2, "not ISO 8601"),
        (("--since", "2", "--until", "1"), 2, "since 2 comes after until 1"),
        (("--mode", "all"), 2, "use raw, net or base"),
        (("--columns", "statu"), 2, "did you mean status?"),
    ],
)
def test_what_cannot_be_is_told_with_an_exit_code(
    changed: Arctic, asked: tuple[str, ...], code: int, words: str
) -> None:
    """INC-09."""
    answer = changed("changes", "shop.orders", *asked)

    assert answer.code == code
    assert words in answer.err
