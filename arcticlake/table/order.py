"""The order of two versions of a row.

A version's place in history is (sequence of its commit, order inside the commit). A base row that
compaction wrote stands at place 0: every change that is still pending is newer. A base row that a
batch insert wrote stands at the version of that insert, so an older pending delete of the same
key does not reach it. Clocks never take part.

Pure.
"""

from __future__ import annotations

from typing import NamedTuple

MERGED_SEQUENCE = 0
"""Sequence of base rows that are older than every pending change."""

UNMARKED_SEQUENCE = 2**62
"""Sequence of rows that another engine appended to base and that have no version yet: they are
newer than every change there is, and the next writer gives them their version."""


class Place(NamedTuple):
    """Where one version of a row stands in history."""

    sequence: int
    order: int


def newer(place: Place, other: Place) -> bool:
    """Whether the first place comes after the second."""
    return place > other
