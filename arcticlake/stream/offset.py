"""Where a reading stream stands: so many whole versions, and so many units of what comes next.

    {"version": -1, "unit": 0}                        nothing was read, nothing is decided
    {"version": 7, "unit": 3, "initial": true,        3 units of the state at version 7 were read,
     "base": 81, "change": 93}                        which lies in these two snapshots
    {"version": 7, "unit": 0}                         everything up to version 7
    {"version": 7, "unit": 2}                         and 2 units of the version after it

A unit is a file, or a version that is told without files; units of a version have a fixed order.
The state at a version names its snapshots, since a compaction may write the same state into other
files while the stream is in the middle of it. The last batch of that state names them too: Spark
asks for a batch again by its two ends alone, and the first end says nothing yet. The reader adds
the identity of the table, so that a table which is made anew is not read from the middle.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from arcticlake.errors import InvalidRequest

NO_LIMIT = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Pin:
    """The snapshots of the two tables that hold a state; None where there is none."""

    base: int | None
    change: int | None


@dataclass(frozen=True, slots=True)
class Offset:
    """One place in a stream."""

    version: int
    unit: int = 0
    pin: Pin | None = None
    """Set while, and directly after, the state at `version` is read."""


BEGINNING = Offset(-1)
"""Before the state that comes first; which one that is, the first batch decides."""


@dataclass(frozen=True, slots=True)
class Limit:
    """How much one batch takes; one unit is always taken, however large."""

    files: int = NO_LIMIT
    rows: int = NO_LIMIT


def encode_offset(offset: Offset) -> dict[str, int | bool]:
    """Return an offset as Spark keeps it in a checkpoint."""
    told: dict[str, int | bool] = {"version": offset.version, "unit": offset.unit}
    if offset.pin is not None:
        told["initial"] = True
        pinned = {"base": offset.pin.base, "change": offset.pin.change}
        told |= {name: snapshot for name, snapshot in pinned.items() if snapshot is not None}
    return told


def decode_offset(told: Mapping[str, object], *, table: str) -> Offset:
    """Return the offset in a checkpoint, or refuse it."""
    version, unit = told.get("version"), told.get("unit")
    base, change = told.get("base"), told.get("change")
    numbers = [version, unit, *(number for number in (base, change) if number is not None)]
    if any(isinstance(number, bool) or not isinstance(number, int) for number in numbers):
        message = (
            f"table {table}: {dict(told)!r} is not a place in its changes; the checkpoint belongs "
            "to another source, start with a new one"
        )
        raise InvalidRequest(message)
    assert isinstance(version, int)
    assert isinstance(unit, int)
    assert base is None or isinstance(base, int)
    assert change is None or isinstance(change, int)
    return Offset(version, unit, Pin(base, change) if told.get("initial") is True else None)


def is_before(first: Offset, second: Offset) -> bool:
    """Whether one place comes before another; units of a state come before its version is done."""
    return _place(first) < _place(second)


def _place(offset: Offset) -> tuple[int, int, int]:
    return (offset.version, 1 if offset.pin is None else 0, offset.unit)


def cut_state(start: Offset, version: int, pin: Pin, sizes: Sequence[int], limit: Limit) -> Offset:
    """Return how far a batch goes in the state that comes first; `sizes` are rows of its units."""
    first = 0 if start.pin is None else start.unit
    return Offset(version, _cut(sizes, first, limit, Limit(0, 0))[0], pin)


def cut_changes(
    start: Offset, versions: Iterable[tuple[int, Sequence[int]]], limit: Limit
) -> Offset:
    """Return how far a batch goes over the versions after `start`, each with rows of its units.

    No more versions are asked for than the batch needs.
    """
    reached, taken = Offset(start.version), Limit(0, 0)
    first = start.unit if start.pin is None else 0
    for version, sizes in versions:
        end, taken = _cut(sizes, first, limit, taken)
        if end < len(sizes):
            return Offset(reached.version, end)
        reached, first = Offset(version), 0
        if taken.files >= limit.files or taken.rows >= limit.rows:
            break
    return start if reached.version == start.version else reached


def _cut(sizes: Sequence[int], first: int, limit: Limit, taken: Limit) -> tuple[int, Limit]:
    """Return the unit before which a batch ends, and what it has taken then."""
    files, rows = taken.files, taken.rows
    for number in range(first, len(sizes)):
        full = files + 1 > limit.files or rows + sizes[number] > limit.rows
        if full and files > 0:
            return number, Limit(files, rows)
        files, rows = files + 1, rows + sizes[number]
    return len(sizes), Limit(files, rows)
