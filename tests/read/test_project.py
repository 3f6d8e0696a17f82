"""Columns of old files as the table wants them now, matched by id at every level."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa
import pytest

from arcticlake.read.project import field_id, find_field, project
from arcticlake.table.types import ARROW_FIELD_ID


def column(
    identity: int | None, name: str, kind: pa.DataType, *, nullable: bool = True
) -> pa.Field:
    metadata = None if identity is None else {ARROW_FIELD_ID: str(identity).encode()}
    return pa.field(name, kind, nullable=nullable, metadata=metadata)


def batch_of(field: pa.Field, values: Sequence[object]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(values, field.type)], schema=pa.schema([field]))


def shaped(found: pa.Field, wanted: pa.Field, values: Sequence[object]) -> list[object]:
    """Project a batch, whole and as a slice, and return its values."""
    batch = batch_of(found, values)
    result = project(batch, pa.schema([wanted]))
    assert result.schema.field(0).type == wanted.type
    assert result.schema.names == [wanted.name]
    answer: list[object] = result.column(0).to_pylist()
    sliced = project(batch.slice(1), pa.schema([wanted])).column(0).to_pylist()
    assert sliced == answer[1:]
    return answer


def test_a_renamed_column_is_found_and_a_new_one_of_the_same_name_is_empty() -> None:
    old = column(1, "a", pa.int64())

    assert shaped(old, column(1, "b", pa.int64()), [1, None]) == [1, None]
    assert shaped(old, column(2, "a", pa.int64()), [1, None]) == [None, None]


def test_a_file_without_ids_is_matched_by_name() -> None:
    assert shaped(column(None, "a", pa.int64()), column(7, "a", pa.int64()), [1, 2]) == [1, 2]
    assert shaped(column(None, "a", pa.int64()), column(7, "b", pa.int64()), [1, 2]) == [None] * 2


@pytest.mark.parametrize(
    ("narrow", "wide", "values"),
    [
        (pa.int32(), pa.int64(), [1, None, -(2**31)]),
        (pa.float32(), pa.float64(), [0.5, None, -0.0]),
        (pa.decimal128(5, 2), pa.decimal128(30, 2), [Decimal("1.50"), None, Decimal("-9.99")]),
    ],
)
def test_a_narrower_column_is_widened(
    narrow: pa.DataType, wide: pa.DataType, values: list[object]
) -> None:
    assert shaped(column(1, "a", narrow), column(1, "a", wide), values) == values


def test_fields_of_structs_are_matched_by_id_too() -> None:
    old = column(1, "s", pa.struct([column(2, "a", pa.int32()), column(3, "b", pa.string())]))
    new = column(
        1,
        "t",
        pa.struct(
            [column(3, "c", pa.string()), column(2, "a", pa.int64()), column(9, "b", pa.int8())]
        ),
    )

    assert shaped(old, new, [{"a": 1, "b": "x"}, None, {"a": None, "b": None}]) == [
        {"c": "x", "a": 1, "b": None},
        None,
        {"c": None, "a": None, "b": None},
    ]


def test_lists_and_maps_of_structs_are_shaped_inside() -> None:
    inner = pa.struct([column(3, "x", pa.int32())])
    wider = pa.struct([column(4, "y", pa.string()), column(3, "z", pa.int64())])
    values = [[{"x": 1}, None], None, [], [{"x": None}, {"x": 5}]]
    expected = [
        [{"y": None, "z": 1}, None],
        None,
        [],
        [{"y": None, "z": None}, {"y": None, "z": 5}],
    ]

    listed = column(1, "l", pa.list_(column(2, "element", inner)))
    assert shaped(listed, column(1, "l", pa.list_(column(2, "element", wider))), values) == expected

    def mapped(kind: pa.StructType) -> pa.Field:
        key = column(2, "key", pa.string(), nullable=False)
        return column(1, "m", pa.map_(key, column(5, "value", kind)))

    pairs = [None if v is None else [(str(n), one) for n, one in enumerate(v)] for v in values]
    wanted = [None if v is None else [(str(n), one) for n, one in enumerate(v)] for v in expected]
    assert shaped(mapped(inner), mapped(wider), pairs) == wanted


def test_required_fields_inside_structs_keep_null_structs() -> None:
    inner = column(2, "a", pa.int32(), nullable=False)
    field = column(1, "s", pa.struct([inner]))

    assert shaped(field, field, [{"a": 1}, None, {"a": 3}]) == [{"a": 1}, None, {"a": 3}]


def test_large_lists_of_other_writers_become_lists() -> None:
    large = column(1, "l", pa.large_list(column(2, "item", pa.large_string())))
    plain = column(1, "l", pa.list_(column(2, "element", pa.string())))

    assert shaped(large, plain, [["a"], None, []]) == [["a"], None, []]


def test_ids_are_read_from_fields() -> None:
    wanted = column(5, "a", pa.int64())
    present = pa.schema([column(4, "a", pa.int64()), column(5, "b", pa.int64())])

    found = find_field(wanted, present)

    assert found is not None and found.name == "b"
    assert field_id(wanted) == 5
    assert field_id(pa.field("a", pa.int64())) is None
