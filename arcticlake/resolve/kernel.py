"""The fast answer: keys of base and change files → a mask of dead rows for every file.

    1. stack the change rows of the group: key, sequence, order, alive, address; rows that base
       holds already, by the watermark, and rows above the version asked for stay out
    2. the newest of each key wins; every other change row is dead, and so is a winning delete
    3. a base row whose key has a winner is dead, unless the row itself is newer (a batch insert
       after the change): then the winner is dead instead

Only key, order and action columns come in; no value is ever read to decide. `reference.py` is
the oracle: both must give the same answer on every history.

Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

import numpy as np
import polars as pl

from arcticlake.resolve.bitmap import Mask
from arcticlake.table.change import ACTION, ORDER, SEQ

NEWEST = 2**62
"""A sequence above every commit."""
PILE_ROWS = 4 * 2**20
"""Base rows that meet the changes at once."""

_FILE, _ROW, _PLACE, _ALIVE = "__file", "__row", "__sequence", "__alive"


@dataclass(frozen=True, slots=True)
class KeysOfBase:
    """The key columns of one base file, or of its next part, rows in file order."""

    path: str
    sequence: int
    """The version of the batch insert that wrote the file; 0 when pending changes are all newer."""
    keys: pl.DataFrame


@dataclass(frozen=True, slots=True)
class KeysOfChange:
    """Key, `_action`, `_order` and `_seq` columns of one change file, rows in file order."""

    path: str
    sequence: int
    """The commit sequence that rows without a `_seq` of their own inherit."""
    rows: pl.DataFrame
    after: int = 0
    """Rows up to this sequence are in base already: dead, and they decide nothing."""
    until: int = NEWEST
    """Rows above this sequence belong to a later state: dead, and they decide nothing."""


class Keep(StrEnum):
    """Which rows stay alive."""

    LIVE = "live"
    """The newest of each key, unless it is a delete: what a reader sees."""
    NEWEST = "newest"
    """The newest change of each key, deletes too: changes that collapse without a base."""
    EVERY = "every"
    """Every change that is not merged yet: what waits, side by side."""


def resolve(
    bases: Iterable[KeysOfBase],
    changes: Sequence[KeysOfChange],
    key: Sequence[str],
    keep: Keep = Keep.LIVE,
) -> dict[str, Mask]:
    """Return for every file of the group which of its rows are dead.

    Bases are taken one at a time, so they may be read as they are needed.
    """
    if keep is Keep.EVERY:
        return _out_of_reach(bases, changes)
    dead: dict[str, Mask] = {}
    winners = None
    if changes:
        deletes_live = keep is Keep.NEWEST
        winners = _in_history_order(changes, key, deletes_live).unique(list(key), keep="last")
        for number, file in enumerate(changes):
            alive = winners.filter((pl.col(_FILE) == number) & pl.col(_ALIVE))
            mask = np.ones(file.rows.height, dtype=bool)
            mask[alive[_ROW].to_numpy()] = False
            dead[file.path] = mask
    parts: dict[str, list[Mask]] = defaultdict(list)
    for pile in _in_piles(bases, winners):
        for base, mask in zip(pile, _meet_pile(pile, winners, changes, key, dead), strict=True):
            parts[base.path].append(mask)
    for path, masks in parts.items():
        dead[path] = masks[0] if len(masks) == 1 else np.concatenate(masks)
    return dead


def _in_piles(
    bases: Iterable[KeysOfBase], winners: pl.DataFrame | None
) -> Iterator[list[KeysOfBase]]:
    """Yield base files that can be met at once: many small ones cost no more than a large one."""
    oldest = NEWEST if winners is None or winners.height == 0 else _oldest(winners)
    pile: list[KeysOfBase] = []
    rows = 0
    for base in bases:
        if base.sequence >= oldest:
            yield [base]
            continue
        pile.append(base)
        rows += base.keys.height
        if rows >= PILE_ROWS:
            yield pile
            pile, rows = [], 0
    if pile:
        yield pile


def _meet_pile(
    pile: Sequence[KeysOfBase],
    winners: pl.DataFrame | None,
    changes: Sequence[KeysOfChange],
    key: Sequence[str],
    dead: dict[str, Mask],
) -> list[Mask]:
    if winners is None or winners.height == 0:
        return [np.zeros(base.keys.height, dtype=bool) for base in pile]
    if pile[0].sequence >= _oldest(winners):
        return [_meet(base, winners, changes, key, dead) for base in pile]
    shared = _shared(pl.concat([base.keys for base in pile]), winners, key)
    ends = np.cumsum([base.keys.height for base in pile])
    return np.split(shared, ends[:-1])


def _out_of_reach(bases: Iterable[KeysOfBase], changes: Sequence[KeysOfChange]) -> dict[str, Mask]:
    dead: dict[str, Mask] = {}
    for base in bases:
        mask = np.zeros(base.keys.height, dtype=bool)
        dead[base.path] = np.concatenate([dead[base.path], mask]) if base.path in dead else mask
    for file in changes:
        place = file.rows[SEQ].fill_null(file.sequence)
        dead[file.path] = ~place.is_between(file.after + 1, file.until).to_numpy()
    return dead


def _in_history_order(
    changes: Sequence[KeysOfChange], key: Sequence[str], deletes_live: bool
) -> pl.DataFrame:
    """Return all change rows, oldest first; fresh files mostly lie in that order already."""
    stacked = _stack(changes, key, deletes_live)
    fresh = all(file.rows[SEQ].null_count() == file.rows.height for file in changes)
    by_commit = all(a.sequence < b.sequence for a, b in pairwise(changes))
    if fresh and by_commit and all(file.rows[ORDER].is_sorted() for file in changes):
        return stacked
    return stacked.sort(_PLACE, ORDER)


def _stack(changes: Sequence[KeysOfChange], key: Sequence[str], deletes_live: bool) -> pl.DataFrame:
    frames = [
        file.rows.select(
            *key,
            pl.col(ORDER),
            pl.col(SEQ).fill_null(file.sequence).cast(pl.Int64).alias(_PLACE),
            (pl.col(ACTION).str.starts_with("+") | deletes_live).alias(_ALIVE),
            pl.lit(number, dtype=pl.Int32).alias(_FILE),
            pl.int_range(pl.len(), dtype=pl.Int64).alias(_ROW),
        ).pipe(_in_reach, file)
        for number, file in enumerate(changes)
    ]
    return pl.concat(frames, how="vertical")


def _in_reach(rows: pl.DataFrame, file: KeysOfChange) -> pl.DataFrame:
    """Return the rows that take part; nearly always all of them, without a look at each."""
    if file.after == 0 and file.until == NEWEST:
        return rows
    return rows.filter(pl.col(_PLACE) > file.after, pl.col(_PLACE) <= file.until)


def _meet(
    file: KeysOfBase,
    winners: pl.DataFrame,
    changes: Sequence[KeysOfChange],
    key: Sequence[str],
    dead: dict[str, Mask],
) -> Mask:
    """Let a base file of a batch meet the winners: the older side of every shared key is dead."""
    rows = file.keys.select(*key, pl.int_range(pl.len(), dtype=pl.Int64).alias("__base_row"))
    met = rows.join(winners, on=list(key), how="inner")
    newer_change = met.filter(pl.col(_PLACE) > file.sequence)
    mask = np.zeros(file.keys.height, dtype=bool)
    mask[newer_change["__base_row"].to_numpy()] = True
    older_change = met.filter(pl.col(_PLACE) <= file.sequence)
    for number, change in enumerate(changes):
        beaten = older_change.filter(pl.col(_FILE) == number)[_ROW]
        dead[change.path][beaten.to_numpy()] = True
    return mask


def _oldest(winners: pl.DataFrame) -> int:
    oldest = winners[_PLACE].min()
    assert isinstance(oldest, int), "a group without changes is not resolved"
    return oldest


def _shared(keys: pl.DataFrame, winners: pl.DataFrame, key: Sequence[str]) -> Mask:
    """Return which rows have a winner, where every winner is newer than the files.

    Only winners in the range of the rows count, so that the set to look in stays small where base
    files lie in the order of their keys.
    """
    ends = keys.select(low=pl.col(key[0]).min(), high=pl.col(key[0]).max())
    near = winners.filter(winners[key[0]].is_between(ends["low"], ends["high"]))
    if len(key) == 1:  # the common case, a fifth faster than a join
        return keys[key[0]].is_in(near[key[0]].implode()).to_numpy().copy()
    rows = keys.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("__base_row"))
    met = rows.join(near.select(*key), on=list(key), how="semi")
    mask = np.zeros(keys.height, dtype=bool)
    mask[met["__base_row"].to_numpy()] = True
    return mask
