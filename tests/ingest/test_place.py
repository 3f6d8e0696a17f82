from __future__ import annotations

from datetime import date

import pyarrow as pa
import pytest

from arcticlake.ingest.place import directory_of, place_rows, readable
from arcticlake.tree.forest import Forest, Tree, plant
from arcticlake.tree.hash import PlaceTerm, key_hash
from arcticlake.tree.node import ROOT, Node
from tests.tree.strategies import file_in

DAY = PlaceTerm("at", "day", 0, "at_day")
WORD = PlaceTerm("word", "identity", 0, "word")


def test_rows_are_cut_by_partition_and_leaf_and_keep_their_order() -> None:
    count = 300
    rows = pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "at": pa.array([date(2026, 1, 1 + n % 3) for n in range(count)]),
        }
    )
    forest = plant([file_in(Node(7, 5), (20454,))], 4)

    parts = list(place_rows(rows, (DAY,), "id", forest.tree))

    assert sum(part.rows.num_rows for part in parts) == count
    for part in parts:
        ids = part.rows["id"].to_pylist()
        assert ids == sorted(ids)
        days = {(day - date(1970, 1, 1)).days for day in part.rows["at"].to_pylist()}
        assert days == set(part.partition)
        assert all(part.node.holds(int(h)) for h in key_hash(part.rows["id"]))
        assert part.node in forest.tree(part.partition).leaves
    assert len({(part.partition, part.node) for part in parts}) == len(parts)
    assert {part.node.depth for part in parts if part.partition == (20454,)} == {2, 3}
    assert {part.node.depth for part in parts if part.partition == (20455,)} == {2}


def test_null_is_a_partition_of_its_own_and_not_the_text_null() -> None:
    rows = pa.table({"id": [1, 2, 3], "word": [None, "null", None]})

    parts = {p.partition: p.rows["id"].to_pylist() for p in place_rows(rows, (WORD,), None, _none)}

    assert parts == {(None,): [1, 3], ("null",): [2]}


def _none(_: tuple[object, ...]) -> Tree:
    raise AssertionError("a table without a bucket has no tree")


def test_one_partition_and_one_leaf_are_passed_on_uncut() -> None:
    rows = pa.table({"id": [1, 2], "word": ["a", "a"]})

    parts = list(place_rows(rows, (WORD,), "id", Forest(1).tree))

    assert [(p.partition, p.node, p.rows) for p in parts] == [(("a",), ROOT, rows)]


@pytest.mark.parametrize(
    ("transform", "value", "text"),
    [
        ("identity", "a b", "a b"),
        ("identity", None, "null"),
        ("identity", b"\x00\xff", "00ff"),
        ("year", -1, "1969"),
        ("month", 0, "1970-01"),
        ("month", -1, "1969-12"),
        ("day", -1, "1969-12-31"),
        ("hour", 25, "1970-01-02-01"),
        ("truncate", 10, "10"),
    ],
)
def test_a_partition_value_reads_as_people_write_it(
    transform: str, value: object, text: str
) -> None:
    assert readable(PlaceTerm("c", transform, 0, "c"), value) == text


def test_folders_are_hive_style_and_safe_for_every_value() -> None:
    """KEY-02: a partition is a directory."""
    folders = directory_of((DAY, WORD), (0, "a/b=c ü%"), "id", Node(7, 5))

    assert folders == ["at_day=1970-01-01", "word=a%2Fb%3Dc%20%C3%BC%25", "id_bucket_8=5"]
    assert directory_of((), (), None, ROOT) == []
