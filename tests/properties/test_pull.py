"""Random histories: what a pull tells leads from any version to any later one.

A model keeps the change rows of each version and the state after it. Then for random ranges:

    raw    the rows of the model, version by version, in order
    net    the newest of each key among them
    base   what leads from base as it was to base as it is
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.catalog.sql import SqlCatalog

from arcticlake import Lake, Table
from arcticlake.errors import InvalidRequest

EXAMPLES = int(os.environ.get("ARCTIC_FUZZ_EXAMPLES", "12"))
DAYS = ("mon", "tue")
IDS = 5
Key: TypeAlias = tuple[int, str]
State: TypeAlias = dict[Key, str]
Told: TypeAlias = tuple[str, Key | None, str | None]
"""Change type, key, value."""


@dataclass
class Version:
    """One version in the model."""

    number: int
    changes: list[Told]
    """Changes as they came; of a batch, the rows that it wrote."""
    state: State
    replaces: bool = False
    on_top: bool = False
    """Whether older changes lie on top of an overwrite."""


@dataclass
class History:
    """A table beside its model."""

    data: st.DataObject
    table: Table
    ordered: bool
    versions: list[Version] = field(default_factory=list)

    @property
    def state(self) -> State:
        return dict(self.versions[-1].state) if self.versions else {}

    def text(self) -> str:
        return f"text {self.data.draw(st.integers(0, 2))}"

    def some_keys(self, *, unique: bool = True) -> list[Key]:
        some = st.tuples(st.integers(1, IDS), st.sampled_from(DAYS))
        return self.data.draw(st.lists(some, min_size=1, max_size=5, unique=unique))


def frame(keys: Sequence[Key], texts: Sequence[str | None]) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([key[0] for key in keys], pa.int64()),
            "day": pa.array([key[1] for key in keys], pa.string()),
            "text": pa.array(texts, pa.string()),
        }
    )


def apply(state: Mapping[Key, str], changes: Sequence[Told]) -> State:
    """What a reader of changes makes of them."""
    result = dict(state)
    for told, key, text in changes:
        if told == "overwrite":
            result = {}
        elif told == "delete":
            assert key is not None
            result.pop(key, None)
        else:
            assert key is not None
            assert text is not None
            result[key] = text
    return result


def upsert(walk: History) -> None:
    keys = walk.some_keys(unique=not walk.ordered)
    texts = [walk.text() for _ in keys]
    places = walk.data.draw(st.permutations(range(len(keys))))
    deletes = walk.data.draw(st.lists(st.booleans(), min_size=len(keys), max_size=len(keys)))
    rows = frame(keys, texts).append_column("op", pa.array(["D" if d else "U" for d in deletes]))
    order_by = None
    if walk.ordered:
        rows, order_by = rows.append_column("place", pa.array(places, pa.int64())), "place"
    else:
        places = list(range(len(keys)))
    done = walk.table.upsert(rows, order_by=order_by, delete_when="op = 'D'")
    in_order = sorted(zip(places, keys, texts, deletes, strict=True))
    changes: list[Told] = [
        ("delete" if deleted else "update_postimage", key, text)
        for _, key, text, deleted in in_order
    ]
    walk.versions.append(Version(done.version, changes, apply(walk.state, changes)))


def delete(walk: History) -> None:
    keys = walk.some_keys()
    done = walk.table.delete(frame(keys, [None] * len(keys)).drop_columns("text"))
    changes: list[Told] = [("delete", key, None) for key in keys]
    walk.versions.append(Version(done.version, changes, apply(walk.state, changes)))


def insert(walk: History) -> None:
    keys = [key for key in walk.some_keys() if key not in walk.state]
    if not keys:
        return
    texts = [walk.text() for _ in keys]
    done = walk.table.insert(frame(keys, texts))
    changes: list[Told] = [("insert", k, t) for k, t in zip(keys, texts, strict=True)]
    walk.versions.append(Version(done.version, changes, apply(walk.state, changes)))


def overwrite(walk: History) -> None:
    day = walk.data.draw(st.none() | st.sampled_from(DAYS))
    keys = [key for key in walk.some_keys() if day in {None, key[1]}]
    rows = dict(zip(keys, (walk.text() for _ in keys), strict=True))
    stands_for = walk.data.draw(
        st.none() | st.sampled_from([0, *(v.number for v in walk.versions)])
    )
    where = None if day is None else f"day = '{day}'"
    before = walk.versions[-1].number if walk.versions else 0
    try:
        done = walk.table.overwrite(
            frame([*rows], [*rows.values()]), where=where, change_version=stands_for
        )
    except InvalidRequest:  # it would lose a batch
        return
    if done.version == before:
        return
    state = {k: t for k, t in walk.state.items() if day not in {None, k[1]}} | rows
    on_top = [v for v in walk.versions if stands_for is not None and v.number > stands_for]
    for version in on_top:
        if not version.replaces:
            mine = [c for c in version.changes if c[1] and day in {None, c[1][1]}]
            state = apply(state, mine)
    changes: list[Told] = [("insert", key, text) for key, text in rows.items()]
    walk.versions.append(Version(done.version, changes, state, True, bool(on_top)))


def compact(walk: History) -> None:
    kind = walk.data.draw(st.sampled_from(["minor", "major", "full"]))
    to_version = None
    if kind != "minor" and walk.versions and walk.data.draw(st.booleans()):
        to_version = walk.data.draw(st.sampled_from([v.number for v in walk.versions]))
    day = walk.data.draw(st.none() | st.sampled_from(DAYS))
    where = None if day is None else f"day = '{day}'"
    walk.table.compact(kind, where=where, to_version=to_version)


def pulled(table: Table, *asked: object, **request: object) -> list[tuple[int, Told]]:
    found = table.changes_to_arrow(*asked, **request).to_pylist()  # type: ignore[arg-type]
    return [
        (
            row["_commit_version"],
            (
                row["_change_type"],
                None if row["id"] is None else (row["id"], row["day"]),
                row["text"],
            ),
        )
        for row in found
    ]


def difference(before: State, after: State) -> set[Told]:
    gone: set[Told] = {("delete", key, before[key]) for key in before.keys() - after.keys()}
    come: set[Told] = {("insert", key, after[key]) for key in after.keys() - before.keys()}
    both = before.keys() & after.keys()
    return gone | come | {("update_postimage", k, after[k]) for k in both if before[k] != after[k]}


def check_raw(walk: History, since: int, until: int, *, compare: bool) -> None:
    found = pulled(walk.table, since, until, difference=compare)
    by_version: dict[int, list[Told]] = {}
    for number, told in found:
        by_version.setdefault(number, []).append(told)
    assert [number for number, _ in found] == sorted(number for number, _ in found)
    before: State = {}
    for version in walk.versions:
        rows = by_version.pop(version.number, [])
        if not since < version.number <= until:
            assert not rows
        elif version.replaces and (compare or version.on_top):
            assert set(rows) == difference(before, version.state)
            assert len(set(rows)) == len(rows)
        elif version.replaces:
            assert rows[0] == ("overwrite", None, None)
            assert sorted(rows[1:], key=str) == sorted(version.changes, key=str)
        elif version.changes[0][0] == "insert":
            assert sorted(rows, key=str) == sorted(version.changes, key=str)
        else:
            assert rows == version.changes
        before = version.state
    assert not by_version


def check_net(walk: History, since: int, until: int) -> None:
    raw = pulled(walk.table, since, until, difference=True)
    newest = {told[1]: (number, told) for number, told in raw}

    net = pulled(walk.table, since, until, "net", difference=True)

    assert {told[1]: (number, told) for number, told in net} == newest
    assert len(net) == len(newest)
    assert [(number, told[1]) for number, told in net] == sorted(
        (number, told[1]) for number, told in net
    )
    states: dict[int, State] = {0: {}} | {
        version.number: version.state for version in walk.versions
    }
    assert apply(states[since], [told for _, told in net]) == states[until]
    pruned = pulled(walk.table, since, until, "net", difference=True, where="text = 'text 1'")
    assert pruned == [row for row in net if row[1][2] == "text 1"]
    of_day = pulled(walk.table, since, until, "net", difference=True, where="day = 'mon'")
    assert of_day == [row for row in net if row[1][1] and row[1][1][1] == "mon"]


def check_base(walk: History, since: int, until: int) -> None:
    def base(version: int) -> State:
        found = walk.table.to_arrow(mode="base", version=version).to_pylist()
        return {(row["id"], row["day"]): row["text"] for row in found}

    changes = pulled(walk.table, since, until, "base", difference=True)

    assert len({told[1] for _, told in changes}) == len(changes)
    assert apply(base(since), [told for _, told in changes]) == base(until)


@given(st.data())
@settings(max_examples=EXAMPLES)
def test_what_is_pulled_leads_from_one_version_to_another(data: st.DataObject) -> None:
    """INC-10..12, INC-32: exclusive and inclusive ends, and the newest image of a window."""
    with tempfile.TemporaryDirectory() as folder:
        lake = Lake.open(folder)
        options = {
            "initial-nodes": data.draw(st.sampled_from([1, 4])),
            "collapse-changes": data.draw(st.booleans()),
        }
        table = lake.create_table(
            *("db.t", "id bigint, day string, text string"),
            primary_key=["id", "day"],
            partition_by="day",
            options=options,
        )
        walk = History(data, table, ordered=data.draw(st.booleans()))
        steps = [upsert, upsert, delete, insert, overwrite, compact, compact]
        for step in data.draw(st.lists(st.sampled_from(steps), min_size=2, max_size=10)):
            step(walk)
        points = [0, *(version.number for version in walk.versions)]
        assert table.to_arrow().num_rows == len(walk.state)
        for _ in range(3):
            since, until = sorted(data.draw(st.tuples(*[st.sampled_from(points)] * 2)))
            check_raw(walk, since, until, compare=data.draw(st.booleans()))
            check_net(walk, since, until)
            check_base(walk, since, until)
        assert isinstance(lake.catalog, SqlCatalog)
        lake.catalog.close()
