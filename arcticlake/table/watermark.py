"""How far changes are merged into base, as the summary of every base snapshot tells it.

`through` = W says: every change with a commit sequence up to W is in base. `ahead` names the few
subtrees (partition, node) that are merged further, each with its own number. Both travel in the
same atomic commit as the files they describe, so a reader that loads base first and change second
always holds a consistent pair: it applies exactly the change files that are not covered.

A compaction moves it forward. A batch overwrite sets it, for the partitions that it replaces, to
the version that its rows stand for, also backwards (BAT-09, BAT-10).

Pure.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

from arcticlake.errors import CorruptData

THROUGH, AHEAD = "arctic.merged-through", "arctic.merged-ahead"

Partition = tuple[object, ...]
Subtree = tuple[Partition, int, int]
"""(partition values, mask, index)."""


@dataclass(frozen=True, slots=True)
class Watermark:
    """Every change up to `through`, and in some subtrees beyond it, is in base."""

    through: int = 0
    ahead: Mapping[Subtree, int] = field(default_factory=dict)

    def covers(self, partition: Partition, mask: int, index: int, sequence: int) -> bool:
        """Whether a change file of this node and commit sequence is merged already."""
        return sequence <= self.merged(partition, mask, index)

    def merged(self, partition: Partition, mask: int, index: int) -> int:
        """Return up to which sequence changes of this node are merged."""
        found = self.through
        if not self.ahead:
            return found
        for depth in range(mask.bit_length() + 1):  # the subtree may be named by any ancestor
            above = (1 << depth) - 1
            found = max(found, self.ahead.get((partition, above, index & above), 0))
        return found


def overwritten(
    watermark: Watermark,
    touched: Collection[Partition] | None,
    version: int,
    others: Iterable[Partition],
) -> Watermark:
    """Return the watermark after a batch that stands for `version` replaced some partitions.

    These stand exactly at that version, None says all of them; `others`, the partitions that have
    files, stand where they stood.
    """
    if touched is None:
        return Watermark(version)
    kept = {tree: merged for tree, merged in watermark.ahead.items() if tree[0] not in touched}
    if not touched or version == watermark.through:
        return Watermark(watermark.through, kept)
    if version > watermark.through:
        moved = {(partition, 0, 0): version for partition in touched}
        return Watermark(watermark.through, kept | moved)
    stayed = {
        (partition, 0, 0): watermark.merged(partition, 0, 0)
        for partition in others
        if partition not in touched
    }
    return Watermark(version, kept | stayed)


def encode_watermark(watermark: Watermark) -> dict[str, str]:
    """Return the watermark as entries of a snapshot summary."""
    summary = {THROUGH: str(watermark.through)}
    if watermark.ahead:
        rows = [
            [[encode_value(value) for value in partition], mask, index, merged]
            for (partition, mask, index), merged in watermark.ahead.items()
        ]
        summary[AHEAD] = json.dumps(rows, separators=(",", ":"), sort_keys=True)
    return summary


def decode_watermark(summary: Mapping[str, str]) -> Watermark:
    """Return the watermark that a base snapshot's summary carries."""
    try:
        ahead = {
            (tuple(decode_value(value) for value in partition), int(mask), int(index)): int(merged)
            for partition, mask, index, merged in json.loads(summary.get(AHEAD, "[]"))
        }
        return Watermark(int(summary.get(THROUGH, "0")), ahead)
    except (ValueError, TypeError) as error:
        message = f"the watermark in a base snapshot cannot be read: {error}; run verify()"
        raise CorruptData(message) from error


def encode_value(value: object) -> object:
    """Return a partition value as JSON; kinds that JSON lacks carry a tag."""
    match value:
        case None | bool() | int() | str():
            return value
        case Decimal():
            return {"decimal": str(value)}
        case bytes():
            return {"binary": b64encode(value).decode()}
        case date():
            return {"date": value.isoformat()}
    message = f"a partition value of kind {type(value).__name__} has no JSON form"
    raise TypeError(message)


def decode_value(value: object) -> object:
    """Return the partition value that `encode_value` wrote."""
    match value:
        case {"decimal": str(text)}:
            return Decimal(text)
        case {"binary": str(text)}:
            return b64decode(text)
        case {"date": str(text)}:
            return date.fromisoformat(text)
    return value
