from __future__ import annotations

from dataclasses import replace
from math import nan

import polars as pl
import pyarrow as pa
import pytest

from arcticlake.inspect.rows import RowRules, RowTally, first_descent, widest
from arcticlake.inspect.verdict import Findings
from arcticlake.tree.files import Role
from arcticlake.tree.hash import PlaceTerm, key_hash
from arcticlake.tree.node import ROOT, Node
from tests.inspect.lab import Place, entry

RULES = RowRules(
    file=entry("f", Place(ROOT)),
    key=("id",),
    bucket="id",
    terms=(),
    required=(),
    sort=(),
    bounds={},
)


def look(rules: RowRules, *batches: dict[str, object]) -> Findings:
    tally = RowTally(rules)
    for batch in batches:
        tally.look(pa.RecordBatch.from_pydict(batch))
    return tally.findings()


def broken(found: Findings) -> list[str]:
    return [problem.check for problem in found.problems]


def test_rows_of_another_node_are_counted_with_an_example() -> None:
    hashes = key_hash(pa.array(range(100)))
    inside = [key for key in range(100) if hashes[key] & 3 == 1]
    rules = replace(RULES, file=entry("f", Place(Node(3, 1))))

    assert not look(rules, {"id": inside}).problems

    stray = next(key for key in range(100) if hashes[key] & 3 == 2)
    found = look(rules, {"id": inside}, {"id": [stray]})
    assert broken(found) == ["nodes"]
    total = len(inside) + 1
    assert f"1 of {total} rows do not belong to node 3/1, id={stray}" in found.problems[0].message


def test_rows_of_another_partition_are_found() -> None:
    term = PlaceTerm("country", "identity", name="country")
    rules = replace(RULES, terms=(term,), file=entry("f", Place(ROOT, partition=("de",))))

    assert not look(rules, {"id": [1], "country": ["de"]}).problems
    assert broken(look(rules, {"id": [1, 2], "country": ["de", None]})) == ["partitions"]


def test_null_keys_are_found_and_deletes_need_their_key_only() -> None:
    rules = replace(RULES, required=("v",))

    assert broken(look(rules, {"id": [1, None], "v": [1, 2]})) == ["not-null"]
    assert broken(look(rules, {"id": [1, 2], "v": [1, None]})) == ["not-null"]

    change = replace(rules, file=entry("f", Place(ROOT, role=Role.CHANGE)))
    rows: dict[str, object] = {"id": [1, 2], "v": [1, None], "_order": [0, 1]}
    rows["_seq"] = pa.nulls(2, pa.int64())
    assert not look(change, {**rows, "_action": ["+I", "-D"]}).problems
    assert broken(look(change, {**rows, "_action": ["+I", "+U"]})) == ["not-null"]


def test_values_outside_the_bounds_of_the_manifest_are_found_over_all_batches() -> None:
    rules = replace(RULES, bounds={"id": (2, 8)})

    assert not look(rules, {"id": [2]}, {"id": [8]}).problems
    found = look(rules, {"id": [5]}, {"id": [1]}, {"id": [9, None]})
    assert broken(found) == ["not-null", "bounds", "bounds"]
    assert "id goes down to 1, the manifest says 2" in found.problems[1].message


def test_order_is_checked_across_batches() -> None:
    rules = replace(RULES, sort=("v",))

    assert not look(rules, {"id": [1, 2], "v": [1, 1]}, {"id": [3], "v": [2]}).problems
    found = look(rules, {"id": [1, 2], "v": [1, 3]}, {"id": [3, 4], "v": [2, 5]})
    assert broken(found) == ["sort"]
    assert "row 2 comes before the row above it" in found.problems[0].message


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"a": [1, 2, 3]}, None),
        ({"a": [1, 3, 2]}, 1),
        ({"a": [None, None, 1]}, None),
        ({"a": [1, None]}, 0),
        ({"a": [1, 1, 2], "b": ["x", "y", "a"]}, None),
        ({"a": [1, 1, 2], "b": ["y", "x", "a"]}, 0),
        ({"a": [nan, 1.0, nan]}, None),
        ({"a": [1.0, nan, 0.5], "b": [2, 1, 0]}, None),
        ({"a": [5]}, None),
    ],
)
def test_a_descent_is_the_first_row_greater_than_the_next(
    columns: dict[str, list[object]], expected: int | None
) -> None:
    assert first_descent(pl.DataFrame(columns)) == expected


def test_change_rows_need_a_known_action_and_a_place_up_to_their_commit() -> None:
    rules = replace(RULES, file=entry("f", Place(ROOT, role=Role.CHANGE, sequence=5)))
    good: dict[str, object] = {
        "id": [1, 2],
        "_action": ["+I", "-D"],
        "_order": [0, 1],
        "_seq": [None, 5],
    }

    assert not look(rules, good).problems
    assert broken(look(rules, {**good, "_action": ["+I", "??"]})) == ["changes"]
    assert broken(look(rules, {**good, "_order": [0, None]})) == ["changes"]
    assert broken(look(rules, {**good, "_seq": [0, 5]})) == ["changes"]
    assert broken(look(rules, {**good, "_seq": [None, 6]})) == ["changes"]


def test_the_widest_range_holds_both() -> None:
    assert widest((1, 5), (2, 9)) == (1, 9)
    assert widest((2, 9), (1, 5)) == (1, 9)
