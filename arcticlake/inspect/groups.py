"""Checks that need the keys of several files at once: which rows are alive, and is a key so once.

    files ─ units ─▶ lineal groups of a unit ─ resolve ─▶ live keys ─▶ each key once

A unit is the smallest set of files that may share a key. Where the key decides the partition that
is one lineal group of one partition; else it is one subtree over all partitions. Only one unit is
in memory at a time, and of it only keys, order and action.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from arcticlake.inspect.verdict import Findings, Rule
from arcticlake.resolve.bitmap import Mask
from arcticlake.resolve.kernel import KeysOfBase, KeysOfChange, resolve
from arcticlake.resolve.reference import RowAddress, RowVersion, dead_rows
from arcticlake.table.change import ACTION, ORDER, SEQ
from arcticlake.table.order import Place
from arcticlake.tree.files import FileEntry, Role
from arcticlake.tree.forest import lineal_groups, tops

_FILE, _PLACE = "__file", "__place"
_BASE_ORDER = 2**63
"""A base row at the sequence of a change wins against it, as in the kernel."""


@dataclass(frozen=True, slots=True)
class KeyedFile:
    """The keys of one readable file."""

    path: str
    role: Role
    sequence: int
    """Where its rows stand in history, as the reader has it."""
    rows: pl.DataFrame
    """Key columns; of a change file also `_action`, `_order` and `_seq`."""
    deleted: npt.NDArray[np.int64] | None = None
    """Rows that another engine deleted by position."""
    after: int = 0
    """Rows of a change file up to this sequence are in base already."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Files that may share a key, by lineal group."""

    name: str
    groups: tuple[tuple[FileEntry, ...], ...]


def plan_units(files: Sequence[FileEntry], *, key_decides_partition: bool) -> Iterator[Unit]:
    """Yield the files of both tables in units that can be judged one after the other."""
    if key_decides_partition:
        for (partition, node), members in lineal_groups(files).items():
            yield Unit(f"partition {partition!r}, node {node}", (tuple(members),))
        return
    for top in tops(file.node for file in files):
        under = [file for file in files if top.lineal(file.node)]
        groups = tuple(tuple(members) for members in lineal_groups(under).values())
        yield Unit(f"node {top}", groups)


def check_unit(
    groups: Sequence[Sequence[KeyedFile]], key: Sequence[str], *, oracle: bool
) -> tuple[Findings, int]:
    """Check the keys of a unit; return the findings and how many rows are alive.

    With `oracle` the slow resolution judges the fast one.
    """
    found = Findings()
    alive: list[pl.DataFrame] = []
    for group in groups:
        check_order(group, key, found)
        dead = _resolve(group, key)
        living = [_living(file, dead[file.path], key) for file in group]
        alive.extend(living)
        if oracle:
            _judge(group, dead, key, found)
    if not alive:
        return found, 0
    rows = pl.concat(alive)
    found.count(Rule.KEYS, rows.height, "live rows")
    _check_unique(rows, {f.path: f.role for group in groups for f in group}, key, found)
    return found, rows.height


def check_order(group: Sequence[KeyedFile], key: Sequence[str], found: Findings) -> None:
    """Check that (key, sequence, order) is unique among the change rows of a group."""
    changes = [file for file in group if file.role is Role.CHANGE]
    if not changes:
        return
    rows = pl.concat(
        file.rows.select(
            *key,
            pl.col(SEQ).fill_null(file.sequence).cast(pl.Int64).alias(_PLACE),
            ORDER,
            pl.lit(file.path).alias(_FILE),
        )
        for file in changes
    )
    found.count(Rule.ORDER, rows.height, "change rows")
    place = [*key, _PLACE, ORDER]
    twice = rows.filter(rows.select(place).is_duplicated())
    if twice.height:
        first = twice.row(0, named=True)
        message = (
            f"{twice.height} change rows share their place in history with another of the same "
            f"key, {_shown(first, key)} at version {first[_PLACE]}, order {first[ORDER]} for one"
        )
        found.add(Rule.ORDER, message, first[_FILE])


def _resolve(group: Sequence[KeyedFile], key: Sequence[str]) -> dict[str, Mask]:
    bases = [
        KeysOfBase(file.path, file.sequence, file.rows) for file in group if file.role is Role.BASE
    ]
    changes = [
        KeysOfChange(file.path, file.sequence, file.rows, after=file.after)
        for file in group
        if file.role is Role.CHANGE
    ]
    dead = dict(resolve(bases, changes, key))
    for file in group:
        if file.deleted is not None:
            dead[file.path][file.deleted] = True
    return dead


def _living(file: KeyedFile, dead: Mask, key: Sequence[str]) -> pl.DataFrame:
    rows = file.rows.select(*key, pl.lit(file.path).alias(_FILE))
    return rows.filter(pl.Series(~dead, dtype=pl.Boolean))


def _check_unique(
    rows: pl.DataFrame, roles: Mapping[str, Role], key: Sequence[str], found: Findings
) -> None:
    twice = rows.filter(rows.select(key).is_duplicated())
    if not twice.height:
        return
    keys = twice.group_by(list(key), maintain_order=True).agg(pl.col(_FILE))
    first = keys.row(0, named=True)
    paths = sorted(set(first[_FILE]))
    where = "in base" if all(roles[path] is Role.BASE for path in paths) else "in base and changes"
    message = (
        f"live more than once {where}: {keys.height} keys, {_shown(first, key)} for one, in "
        f"{', '.join(paths)}"
    )
    found.add(Rule.KEYS, message, paths[0])


def _judge(
    group: Sequence[KeyedFile], dead: Mapping[str, Mask], key: Sequence[str], found: Findings
) -> None:
    """Hold the fast resolution against the slow one, row by row."""
    versions = [version for file in group for version in _versions(file, key)]
    found.count(Rule.ORACLE, len(versions), "rows")
    versions = _without_replaced(group, versions)
    expected = dead_rows(versions)
    repeated = _repeated(versions, dead)
    for version in versions:
        path, row = version.address
        if version.key in repeated or (version.address in expected) == bool(dead[path][row]):
            continue
        shown = _shown(dict(zip(key, version.key, strict=True)), key)
        verdict = "dead" if dead[path][row] else "alive"
        message = f"row {row} with {shown} is {verdict} by the fast resolution only"
        found.add(Rule.ORACLE, message, path)
        return


def _versions(file: KeyedFile, key: Sequence[str]) -> Iterator[RowVersion]:
    deleted = set() if file.deleted is None else set(file.deleted.tolist())
    keys = file.rows.select(key).rows()
    if file.role is Role.BASE:
        place = Place(file.sequence, _BASE_ORDER)
        for row, value in enumerate(keys):
            yield RowVersion((file.path, row), value, place, row not in deleted)
        return
    places = file.rows.select(pl.col(SEQ).fill_null(file.sequence), ORDER, ACTION).rows()
    for row, (value, (sequence, order, action)) in enumerate(zip(keys, places, strict=True)):
        alive = str(action).startswith("+")
        if sequence <= file.after:
            continue
        yield RowVersion((file.path, row), value, Place(sequence, order), alive)


def _without_replaced(
    group: Sequence[KeyedFile], versions: Sequence[RowVersion]
) -> list[RowVersion]:
    """Leave out rows that another engine deleted and wrote anew: only the new row counts."""
    deleted = {
        (file.path, row)
        for file in group
        if file.deleted is not None
        for row in file.deleted.tolist()
    }
    if not deleted:
        return list(versions)
    bases = {file.path for file in group if file.role is Role.BASE}
    kept = {v.key for v in versions if v.address[0] in bases and v.address not in deleted}
    return [v for v in versions if v.address not in deleted or v.key not in kept]


def _repeated(versions: Sequence[RowVersion], dead: Mapping[str, Mask]) -> set[tuple[object, ...]]:
    """Return keys that live more than once: told elsewhere, and the slow answer keeps only one."""
    seen: dict[tuple[object, ...], RowAddress] = {}
    repeated = set()
    for version in versions:
        path, row = version.address
        if not dead[path][row] and seen.setdefault(version.key, version.address) != version.address:
            repeated.add(version.key)
    return repeated


def _shown(row: Mapping[str, object], key: Sequence[str]) -> str:
    return ", ".join(f"{name}={row[name]!r}" for name in key)
