"""Overwrites among changes, on partitioned tables where few keys meet in few partitions.

Random tables seldom bring a condition, an older version and changes above it together, so this
walk is narrow: three partitions, six keys, and every second step is an overwrite.
"""

from __future__ import annotations

import os
import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arcticlake import Lake
from arcticlake.errors import InvalidRequest
from arcticlake.lake import Table
from tests.properties.model import Column, Model, Row, Stored, seen, shown

EXAMPLES = int(os.environ.get("ARCTIC_FUZZ_EXAMPLES", "12"))
COLUMNS = (Column(0, "id", "int"), Column(1, "part", "string"), Column(2, "n", "int"))
PARTS: list[str | None] = ["a", "b", None]
REGIONS: dict[str | None, list[str | None]] = {
    None: PARTS,
    "part = 'a'": ["a"],
    "part <> 'a'": ["b"],
    "part is null": [None],
}


def rows(data: st.DataObject, parts: list[str | None], *, keyed_by_part: bool) -> list[Row]:
    """Draw rows with keys that are unique; a key may hold the partition or not."""
    drawn = data.draw(
        st.lists(
            st.tuples(st.integers(0, 5), st.sampled_from(parts), st.integers(0, 99)),
            max_size=5,
            unique_by=lambda row: row[:2] if keyed_by_part else row[0],
        )
    )
    return [dict(enumerate(row)) for row in drawn]


def change(data: st.DataObject, table: Table, model: Model, parts: list[str | None]) -> None:
    given = rows(data, parts, keyed_by_part=len(model.key) > 1)
    dead = data.draw(st.booleans())
    if not given:
        return
    frame = model.table_of(given)
    if dead:
        known = [row for row in given if model.key_of(row) in model.rows or not model.places]
        done = table.delete(frame.select([c.name for c in COLUMNS if c.identity in model.key]))
        for row in known:
            stored = model.rows.get(model.key_of(row))
            where = stored.row if stored else row
            model.change(done.version, model.key_of(row), where, dead=True)
        if known:
            model.committed(done.version)
        return
    done = table.upsert(frame)
    for row in given:
        model.change(done.version, model.key_of(row), row, dead=False)
    model.committed(done.version)


def overwrite(data: st.DataObject, table: Table, model: Model, parts: list[str | None]) -> None:
    able = [w for w, chosen in REGIONS.items() if set(chosen) & set(parts)]
    where = data.draw(st.sampled_from(able))
    chosen = [part for part in REGIONS[where] if part in parts]
    given = rows(data, chosen, keyed_by_part=len(model.key) > 1)
    newest = model.moments[-1].version if model.moments else 0
    older = [m.version for m in model.moments if model.batch <= m.version < newest]
    since = data.draw(st.sampled_from([None, *older]))
    start = newest if since is None else since

    def inside(row: Row) -> bool:
        return row.get(1) in REGIONS[where]

    content = model.overwritten(given, inside, start, newest + 1)
    if given and len(dict(content)) < len(content):
        with pytest.raises(InvalidRequest, match="would live twice"):
            table.overwrite(model.table_of(given), where=where, change_version=since)
        return
    done = table.overwrite(model.table_of(given), where=where, change_version=since)
    if done.version == newest:
        assert not given
        return
    model.rows = {
        key: Stored(stored.row, done.version if stored.version > newest else stored.version)
        for key, stored in content
    }
    model.batch = done.version
    model.committed(done.version)


@settings(max_examples=2 * EXAMPLES)
@given(data=st.data(), located=st.booleans())
@pytest.mark.timeout(0 if EXAMPLES > 100 else 300)
def test_an_overwrite_is_the_frame_and_the_changes_above_its_version(
    data: st.DataObject, located: bool
) -> None:
    """BAT-05, BAT-09, BAT-10: by partition, by version, before and after compactions."""
    key = (0,) if located else (0, 1)
    parts: list[str | None] = PARTS if located else ["a", "b"]
    model = Model(COLUMNS, key, places=(1,) if located else ())
    with tempfile.TemporaryDirectory() as folder:
        lake = Lake.open(folder)
        table = lake.create_table(
            "db.t",
            "id int, part string, n int",
            primary_key=[COLUMNS[identity].name for identity in key],
            partition_by="part",
            options={"locate": True, "initial-nodes": 2},
        )
        for _ in range(data.draw(st.integers(1, 3))):
            for _ in range(data.draw(st.integers(1, 3))):
                change(data, table, model, parts)
            if data.draw(st.booleans()):
                table.compact(kind=data.draw(st.sampled_from(["minor", "major"])))
            overwrite(data, table, model, parts)
            expected = [(stored.row, None) for stored in model.rows.values()]
            assert seen(table.to_arrow(), COLUMNS) == shown(COLUMNS, expected)
        for moment in model.moments:
            expected = [(stored.row, None) for stored in moment.rows.values()]
            then = table.to_arrow(version=moment.version)
            assert seen(then, COLUMNS) == shown(COLUMNS, expected), moment.version
        assert table.verify().ok
        lake.catalog.close()
