from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from arcticlake.resolve.kernel import NEWEST, Keep, KeysOfBase, KeysOfChange, resolve
from arcticlake.resolve.reference import RowVersion, dead_rows
from arcticlake.table.change import ACTION, ORDER, SEQ, Action
from arcticlake.table.order import MERGED_SEQUENCE, UNMARKED_SEQUENCE, Place

Key = tuple[object, ...]
KEY_TYPES: Mapping[str, tuple[pl.DataType, Sequence[object]]] = {
    "int": (pl.Int32(), [0, 1, -1, 2**31 - 1]),
    "long": (pl.Int64(), [0, 7, -(2**63), 2**63 - 1]),
    "string": (pl.String(), ["", "a", "A", "\U0001f600", "a" * 40]),
    "binary": (pl.Binary(), [b"", b"\x00", b"\xff" * 9]),
    "decimal": (pl.Decimal(38, 2), [Decimal("0.00"), Decimal("1.50"), Decimal(-(10**35))]),
    "date": (pl.Date(), [date(1970, 1, 1), date(1, 1, 1)]),
}


@dataclass(frozen=True)
class Group:
    """A random group of files, as rows."""

    types: tuple[pl.DataType, ...]
    bases: tuple[tuple[int, tuple[Key, ...]], ...]
    changes: tuple[tuple[int, tuple[tuple[Key, Action, int, int | None], ...]], ...]
    after: int = 0
    """Changes up to here are merged."""
    until: int = NEWEST
    """Changes above are not wanted."""
    keep: Keep = Keep.LIVE

    @property
    def key(self) -> list[str]:
        return [f"k{number}" for number in range(len(self.types))]

    def frame(self, keys: Sequence[Key]) -> pl.DataFrame:
        columns = {
            name: pl.Series(name, [key[number] for key in keys], kind)
            for number, (name, kind) in enumerate(zip(self.key, self.types, strict=True))
        }
        return pl.DataFrame(columns)


@st.composite
def groups(draw: DrawFn) -> Group:
    """Base rows have one version a key, changes any number; no two changes share a place."""
    names = draw(st.lists(st.sampled_from(sorted(KEY_TYPES)), min_size=1, max_size=3))
    keys = st.tuples(*(st.sampled_from(KEY_TYPES[name][1]) for name in names))
    base_keys = draw(st.lists(keys, max_size=12, unique=True))
    base_count = draw(st.integers(0, 3))
    bases = []
    for number in range(base_count):
        sequence = draw(
            st.sampled_from([MERGED_SEQUENCE, MERGED_SEQUENCE, 2, 4, UNMARKED_SEQUENCE])
        )
        bases.append((sequence, tuple(base_keys[number::base_count])))
    changes = []
    taken: set[tuple[Key, int, int]] = set()
    for _ in range(draw(st.integers(0, 4))):
        sequence = draw(st.sampled_from([1, 3, 5, 6]))
        rows = []
        for key in draw(st.lists(keys, max_size=10)):
            own = draw(st.none() | st.integers(1, 6))
            order = draw(st.integers(-3, 5) | st.sampled_from([-(2**62), 2**63 - 1]))
            place = (key, own if own is not None else sequence, order)
            if place in taken or own in {2, 4}:
                continue
            taken.add(place)
            rows.append((key, draw(st.sampled_from(list(Action))), order, own))
        changes.append((sequence, tuple(rows)))
    after, until = draw(st.just((0, NEWEST)) | st.tuples(st.integers(0, 6), st.integers(0, 6)))
    return Group(
        tuple(KEY_TYPES[name][0] for name in names),
        tuple(bases),
        tuple(changes),
        after,
        until,
        draw(st.sampled_from(Keep)),
    )


def slow_answer(group: Group) -> set[tuple[str, int]]:
    versions = [
        RowVersion((f"b{number}", row), key, Place(sequence, 0), alive=True)
        for number, (sequence, keys) in enumerate(group.bases)
        for row, key in enumerate(keys)
    ]
    outside = set()
    for number, (sequence, rows) in enumerate(group.changes):
        for row, (key, action, order, own) in enumerate(rows):
            place = Place(sequence if own is None else own, order)
            if not group.after < place.sequence <= group.until:
                outside.add((f"c{number}", row))
                continue
            alive = group.keep is not Keep.LIVE or action.startswith("+")
            versions.append(RowVersion((f"c{number}", row), key, place, alive=alive))
    return outside if group.keep is Keep.EVERY else dead_rows(versions) | outside


def fast_answer(group: Group) -> set[tuple[str, int]]:
    bases = [
        KeysOfBase(f"b{number}", sequence, group.frame(part))
        for number, (sequence, keys) in enumerate(group.bases)
        for part in (keys[:2], keys[2:])
    ]
    changes = []
    for number, (sequence, rows) in enumerate(group.changes):
        frame = group.frame([row[0] for row in rows]).with_columns(
            pl.Series(ACTION, [str(row[1]) for row in rows], pl.String),
            pl.Series(ORDER, [row[2] for row in rows], pl.Int64),
            pl.Series(SEQ, [row[3] for row in rows], pl.Int64),
        )
        changes.append(
            KeysOfChange(f"c{number}", sequence, frame, after=group.after, until=group.until)
        )
    found = resolve(iter(bases), changes, group.key, group.keep)
    assert {path: len(mask) for path, mask in found.items()} == {
        **{f"b{number}": len(keys) for number, (_, keys) in enumerate(group.bases)},
        **{file.path: file.rows.height for file in changes},
    }
    return {(path, row) for path, mask in found.items() for row in mask.nonzero()[0].tolist()}


@settings(max_examples=int(os.environ.get("ARCTIC_FUZZ_EXAMPLES", "60")))
@given(group=groups())
def test_the_fast_answer_is_the_obvious_one(group: Group) -> None:
    """MOR: for one key the newest version is alive unless it is a delete; all others are dead."""
    assert fast_answer(group) == slow_answer(group)


def one_key(
    base: int | None, *changes: tuple[int, Action, int, int | None]
) -> set[tuple[str, int]]:
    """Answer for one key: base row at a sequence, change rows each in a file of its own."""
    key: Key = (1,)
    group = Group(
        (pl.Int64(),),
        () if base is None else ((base, (key,)),),
        tuple((sequence, ((key, action, order, own),)) for sequence, action, order, own in changes),
    )
    assert fast_answer(group) == slow_answer(group)
    return fast_answer(group)


UP, DELETE = Action.UPDATE_AFTER, Action.DELETE


def test_a_change_hides_the_base_row_of_its_key() -> None:
    assert one_key(0, (3, UP, 0, None)) == {("b0", 0)}


def test_a_delete_hides_the_base_row_and_itself() -> None:
    assert one_key(0, (3, DELETE, 0, None)) == {("b0", 0), ("c0", 0)}


def test_a_batch_insert_after_a_delete_is_alive() -> None:
    """A delete that was pending before the insert does not reach it."""
    assert one_key(4, (3, DELETE, 0, None)) == {("c0", 0)}
    assert one_key(4, (3, UP, 0, None)) == {("c0", 0)}
    assert one_key(4, (3, DELETE, 0, None), (5, UP, 0, None)) == {("b0", 0), ("c0", 0)}


def test_order_decides_inside_a_commit_and_the_sequence_between_commits() -> None:
    assert one_key(None, (3, UP, 9, None), (4, UP, 1, None)) == {("c0", 0)}
    assert one_key(None, (3, UP, 9, None), (3, UP, 1, None)) == {("c1", 0)}


def test_a_row_that_keeps_its_own_sequence_stands_where_it_was_committed() -> None:
    """A rewrite of change files writes the inherited sequence down; order survives it."""
    assert one_key(None, (9, UP, 0, 2), (5, DELETE, 0, None)) == {("c0", 0), ("c1", 0)}


def test_files_of_equal_content_and_empty_files_are_no_matter() -> None:
    group = Group((pl.Int64(),), ((0, ()), (0, ((5,),))), ((3, ()),))

    assert fast_answer(group) == set()
