"""The obvious slow answer: which rows are alive, by one dict. Oracle of the kernel.

Walk all versions of all keys, keep the newest of each. It is alive unless it is a delete; all
others are dead. Nothing here is fast and nothing needs to be.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from arcticlake.table.order import Place, newer

RowAddress = tuple[str, int]
"""(file, row)."""


class RowVersion(NamedTuple):
    """One version of one key: a base row or a change row."""

    address: RowAddress
    key: tuple[object, ...]
    place: Place
    alive: bool
    """False for deletes and before images: they end the key."""


def dead_rows(versions: Iterable[RowVersion]) -> set[RowAddress]:
    """Return the addresses of all rows that a reader must not see."""
    newest: dict[tuple[object, ...], RowVersion] = {}
    dead: set[RowAddress] = set()
    for version in versions:
        rival = newest.get(version.key)
        if rival is None or newer(version.place, rival.place):
            newest[version.key] = version
            loser = rival
        else:
            loser = version
        if loser is not None:
            dead.add(loser.address)
    dead.update(version.address for version in newest.values() if not version.alive)
    return dead
