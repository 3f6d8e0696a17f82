"""What differs between two states, by key."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from arcticlake.pull.difference import differ

TYPE = "_change_type"


def rows(**columns: pa.Array) -> pa.Table:
    return pa.table(columns)


def test_rows_that_went_came_and_changed_are_told() -> None:
    before = rows(id=pa.array([1, 2, 3]), text=pa.array(["a", "b", "c"]))
    after = rows(id=pa.array([4, 3, 2]), text=pa.array(["d", "c", "B"]))

    assert differ(before, after, ["id"]).to_pylist() == [
        {"id": 1, "text": "a", TYPE: "delete"},
        {"id": 4, "text": "d", TYPE: "insert"},
        {"id": 2, "text": "B", TYPE: "update_postimage"},
    ]


@pytest.mark.parametrize(
    ("old", "new", "differs"),
    [
        (None, None, False),
        (None, 1.0, True),
        (1.0, None, True),
        (float("nan"), float("nan"), False),
        (float("nan"), 1.0, True),
        (2.0, 2.0, False),
    ],
)
def test_null_equals_null_and_nan_equals_nan(
    old: float | None, new: float | None, differs: bool
) -> None:
    before = rows(id=pa.array([1]), value=pa.array([old], pa.float64()))
    after = rows(id=pa.array([1]), value=pa.array([new], pa.float64()))

    assert differ(before, after, ["id"]).num_rows == int(differs)


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        (pa.list_(pa.int32()), [1, 2], [2, 1]),
        (pa.struct([("a", pa.int32())]), {"a": 1}, {"a": None}),
        (pa.map_(pa.string(), pa.int32()), [("a", 1)], [("a", 2)]),
        (pa.decimal128(9, 2), Decimal("1.00"), Decimal("1.01")),
        (pa.binary(), b"a", b"b"),
        (pa.bool_(), True, False),
    ],
)
def test_values_of_every_kind_are_compared(kind: pa.DataType, old: object, new: object) -> None:
    before = rows(id=pa.array([1, 2]), value=pa.array([old, old], kind))
    after = rows(id=pa.array([1, 2]), value=pa.array([old, new], kind))

    assert differ(before, after, ["id"])["id"].to_pylist() == [2]


def test_nothing_differs_between_states_without_rows() -> None:
    nothing = rows(id=pa.array([], pa.int64()), text=pa.array([], pa.string()))

    assert differ(nothing, nothing, ["id"]).num_rows == 0
    assert differ(nothing, rows(id=pa.array([1]), text=pa.array(["a"])), ["id"]).num_rows == 1


def test_a_key_may_have_several_columns() -> None:
    before = rows(id=pa.array([1, 1]), day=pa.array(["a", "b"]), text=pa.array(["x", "x"]))
    after = rows(id=pa.array([1, 1]), day=pa.array(["b", "c"]), text=pa.array(["y", "x"]))

    found = differ(before, after, ["id", "day"]).to_pylist()

    assert [(row["day"], row[TYPE]) for row in found] == [
        *(("a", "delete"), ("c", "insert"), ("b", "update_postimage"))
    ]
