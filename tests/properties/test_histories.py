"""The property that all others serve: whatever is written in whatever order, a table answers like
a dict, now and for every version it ever had. Three answers always agree: the merged read, base
after a major compaction, and the dict.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.properties.conditions import conditions
from tests.properties.model import Column, Row, seen, shown
from tests.properties.walk import STEPS, Walk, start

EXAMPLES = int(os.environ.get("ARCTIC_FUZZ_EXAMPLES", "12"))
STEPS_MAX = 10


def check_now(walk: Walk) -> None:
    model = walk.model
    stored = [(stored.row, stored.version) for stored in model.rows.values()]
    check_rows(walk, walk.table.to_arrow(metadata=True), stored, model.columns)
    condition = walk.data.draw(conditions(model.columns))
    found = walk.table.to_arrow(where=condition.sql)
    matching = [(s.row, None) for s in model.rows.values() if condition.truth(s.row)]
    assert seen(found, model.columns) == shown(model.columns, matching), condition.sql


def check_rows(
    walk: Walk,
    rows: pa.Table,
    stored: Sequence[tuple[Row, int | None]],
    columns: Sequence[Column],
) -> None:
    """Rows must be the same; their version too, until a merge knows only up to which they are."""
    if not walk.model.rewritten:
        assert seen(rows, columns) == shown(columns, stored)
        return
    assert seen(rows.drop_columns("_version"), columns) == shown(
        columns, [(row, None) for row, _ in stored]
    )
    told = sorted(rows["_version"].to_pylist())
    written = sorted(version or 0 for _, version in stored)
    assert all(shown >= true for shown, true in zip(told, written, strict=True))
    assert not told or told[-1] <= walk.version


def check_history(walk: Walk) -> None:
    model = walk.model
    for moment in model.moments:
        rows = walk.table.to_arrow(version=moment.version, metadata=True)
        stored = [(stored.row, stored.version) for stored in moment.rows.values()]
        check_rows(walk, rows, stored, moment.columns)
        condition = walk.data.draw(conditions(moment.columns))
        found = walk.table.to_arrow(version=moment.version, where=condition.sql)
        matching = [(row, None) for row, _ in stored if condition.truth(row)]
        assert seen(found, moment.columns) == shown(moment.columns, matching), condition.sql
    if model.base is not None:
        base = walk.table.to_arrow(mode="base")
        expected = [(row, None) for row in model.base]
        assert seen(base, model.columns) == shown(model.columns, expected)
    unmerged = walk.table.to_arrow(mode="unmerged")
    assert model.unmerged in {unmerged.num_rows, None}
    names = [column.name for column in model.columns]
    assert unmerged.column_names == [*names, "_action", "_version", "_order"]


@settings(
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data())
@pytest.mark.timeout(0 if EXAMPLES > 100 else 300)
def test_a_table_answers_like_a_dict_now_and_at_every_version(data: st.DataObject) -> None:
    """MOR-01, SNP-10, KEY-06, CMP-07, BAT-10: merged, base, unmerged, filtered and past reads."""
    with tempfile.TemporaryDirectory() as folder:
        walk = start(data, folder)
        for _ in range(data.draw(st.integers(2, STEPS_MAX))):
            name = data.draw(st.sampled_from(sorted(STEPS)))
            STEPS[name](walk)
            check_now(walk)
        check_history(walk)
        found = walk.table.verify()
        assert found.ok, found.problems
        walk.lake.catalog.close()
