"""The number that orders changes of a key."""

from __future__ import annotations

import pyarrow as pa

from arcticlake.pull.columns import tell
from arcticlake.stream.change_order import change_order, distinct_places


def test_changes_of_a_key_are_ordered_by_one_number() -> None:
    """Version first, then the place in the commit, then the ending before its replacement."""
    schema = pa.schema([pa.field("id", pa.int64())])

    def numbers(version: int, types: list[str], places: list[int | None]) -> list[int]:
        order = pa.array(places, pa.int64())
        ids = pa.array([1] * len(types), pa.int64())
        batch = tell([ids], pa.array(types), order, (version, 0, 1), schema)
        return list(change_order(batch, distinct_places([order])).to_pylist())

    first = numbers(1, ["delete", "insert"], [None, None])
    second = numbers(2, ["update_preimage", "update_postimage", "delete"], [-5, -5, 10**15])
    assert [*first, *second] == sorted({*first, *second})
    assert second[0] == 2 * 2**31 + 2
