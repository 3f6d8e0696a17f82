"""Marks: what the change table remembers of base snapshots after both have expired.

A marker snapshot gives a base snapshot its version, and the version says where its rows stand
among the pending changes. Snapshots expire, and any engine may expire them, while the rows stay.
So each marker leaves a table property in the same commit, which no expiry touches:

    arctic.base.<base snapshot id> = <its sequence in the base table> <version> <place of its rows>

A foreign rewrite that makes no version leaves one too, because its rows keep the place that they
had before. One property a snapshot: two writers never overwrite each other's.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from arcticlake.errors import CorruptData

MARK = "arctic.base."
NO_VERSION = 0


@dataclass(frozen=True, slots=True)
class Mark:
    """What is kept of one base snapshot."""

    sequence: int
    """Its sequence number in the base table."""
    version: int
    """The version it was given; 0 for a rewrite, which makes none."""
    place: int
    """Where the rows that it added stand in history."""


def encode_mark(snapshot_id: int, mark: Mark) -> dict[str, str]:
    """Return a mark as a table property."""
    return {f"{MARK}{snapshot_id}": f"{mark.sequence} {mark.version} {mark.place}"}


def decode_marks(properties: Mapping[str, str]) -> dict[int, Mark]:
    """Return the marks that the properties of a change table hold, by base snapshot id."""
    marks = {}
    for name, text in properties.items():
        if not name.startswith(MARK):
            continue
        try:
            sequence, version, place = (int(part) for part in text.split(" "))
            marks[int(name.removeprefix(MARK))] = Mark(sequence, version, place)
        except ValueError:
            message = f"property {name} = {text!r} of a change table cannot be read; run verify()"
            raise CorruptData(message) from None
    return marks
