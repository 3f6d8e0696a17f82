"""What a compaction did, in numbers: the answer of `compact()`, and what history keeps (CMP-03).

The numbers travel in the summary of the snapshot that the compaction made, so they cannot be
lost and need no other place.

Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

NUMBERS = "arctic.compaction"


@dataclass(frozen=True, slots=True)
class Numbers:
    """What one snapshot of a compaction did."""

    files_removed: int = 0
    files_added: int = 0
    rows_read: int = 0
    rows_written: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    change_bytes: int = 0
    """Bytes of the change files among what was read: the news that made the work necessary."""
    seconds: float = 0.0
    events: tuple[str, ...] = ()
    """Leaves that were split and merged."""

    @property
    def write_amplification(self) -> float | None:
        """Bytes written for each byte of changes; None where there were no changes."""
        return self.bytes_written / self.change_bytes if self.change_bytes else None


def encode_numbers(numbers: Numbers) -> dict[str, str]:
    """Return the numbers as an entry of a snapshot summary."""
    amplification = numbers.write_amplification
    told = asdict(numbers) | {
        "seconds": round(numbers.seconds, 3),
        "write_amplification": None if amplification is None else round(amplification, 2),
    }
    return {NUMBERS: json.dumps(told, separators=(",", ":"))}


def decode_numbers(summary: Mapping[str, str]) -> Numbers | None:
    """Return the numbers that a snapshot carries; None if it is no compaction."""
    if NUMBERS not in summary:
        return None
    told = json.loads(summary[NUMBERS])
    del told["write_amplification"]
    return Numbers(**{**told, "events": tuple(told["events"])})


@dataclass(frozen=True, slots=True)
class Skipped:
    """A group that was rewritten and not committed, or could not be."""

    group: str
    reason: str

    def __str__(self) -> str:
        return f"{self.group}: {self.reason}"


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """What a call of `compact` did."""

    table: str
    kind: str
    """full, major or minor: the largest thing that was done; none if nothing was."""
    version: int
    """Changes up to this version were merged where something was."""
    numbers: Numbers
    skipped: tuple[Skipped, ...] = ()
    """Groups that gave up because somebody else was faster; nothing of them is lost."""

    @property
    def files_removed(self) -> int:
        """Files that are no longer part of the table's newest state."""
        return self.numbers.files_removed

    @property
    def files_added(self) -> int:
        """Files that took their place."""
        return self.numbers.files_added

    @property
    def bytes_written(self) -> int:
        """Size of the files that were added."""
        return self.numbers.bytes_written

    @property
    def events(self) -> tuple[str, ...]:
        """Leaves that were split and merged, one sentence each."""
        return self.numbers.events

    @property
    def seconds(self) -> float:
        """How long it took, from the plan to the last commit."""
        return self.numbers.seconds

    @property
    def write_amplification(self) -> float | None:
        """Bytes written for each byte of changes; None where there were no changes."""
        return self.numbers.write_amplification

    def to_dict(self) -> dict[str, object]:
        """Return the result as JSON can hold it."""
        return {
            "table": self.table,
            "kind": self.kind,
            "version": self.version,
            **asdict(self.numbers),
            "write_amplification": self.write_amplification,
            "events": list(self.events),
            "skipped": [asdict(skipped) for skipped in self.skipped],
        }

    def __str__(self) -> str:
        numbers = self.numbers
        if self.kind == "none":
            lines = [f"table {self.table}: nothing to do"]
        else:
            done = f"{numbers.files_removed} files became {numbers.files_added}"
            size = f"{numbers.bytes_written:,} bytes written in {numbers.seconds:.1f} s"
            what = f"{self.kind} compaction up to version {self.version}"
            lines = [f"table {self.table}: {what}, {done}, {size}"]
        lines += [f"  {event}" for event in self.events]
        lines += [f"  skipped {skipped}" for skipped in self.skipped]
        return "\n".join(lines)
