"""Units of versions, and the state that a stream begins with."""

from __future__ import annotations

from pathlib import Path

import pytest

from arcticlake import Lake, Table
from arcticlake.errors import NotFound
from arcticlake.stream.iceberg_feed import (
    load_units,
    look,
    pin_state,
    plan_state,
    state_files,
    units_between,
)
from arcticlake.stream.offset import Offset, Pin
from tests.verbs.shop import NAME, orders, rows


@pytest.fixture
def table(warehouse: Path) -> Table:
    return orders(Lake.open(str(warehouse)), options={"initial-nodes": 4})


def test_a_pinned_state_keeps_its_files(table: Table) -> None:
    """A compaction writes the same state anew; a stream in the middle of it must not notice."""
    table.upsert(rows(range(20)))
    catalog = table._opened.catalog
    before = look(catalog, NAME)
    pin = pin_state(before, 1)
    files = state_files(plan_state(before, 1, pin))
    table.compact("major")
    after = look(catalog, NAME)
    assert pin_state(after, 1) != pin
    again = state_files(plan_state(after, 1, pin))
    assert [file.path for file in again] == [file.path for file in files]
    with pytest.raises(NotFound, match="state at version 1, and that has expired"):
        plan_state(after, 1, Pin(1, 2))


def test_units_of_a_version_have_a_fixed_order(table: Table) -> None:
    table.upsert(rows(range(20)))
    table.upsert(rows(range(20), "paid"))
    seen = look(table._opened.catalog, NAME)
    first, second = ([u.file.path for u in us if u.file] for _, us in load_units(seen, 0, 2))
    assert first == sorted(first)
    assert len(first) == 4
    whole = units_between(seen, Offset(0), Offset(2))
    parts = [
        *units_between(seen, Offset(0), Offset(0, 3)),
        *units_between(seen, Offset(0, 3), Offset(1, 1)),
        *units_between(seen, Offset(1, 1), Offset(2)),
    ]
    for units in (whole, parts):
        assert [unit.file.path for unit in units if unit.file] == [*first, *second]
