"""The table's single history as people read it, newest first.

    7 upsert          a version: rows that came, changed or went
    6 major           a compaction: 7 files → 2; a reader sees the same rows before and after
    6 upsert
    6 minor           …
    5 insert

A compaction makes no version (CMP-22): its entry carries the version up to which it merged, and
stands after the versions that were there when it landed. The numbers come out of the snapshot
that it made. Dropping change files that are merged is the second half of a compaction and no entry
of its own.

Pure.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import TypeAlias

from arcticlake.commit.history import CONTAINS, Log, SnapshotFact, Version, versions
from arcticlake.compact.explain import readable_bytes
from arcticlake.compact.result import Numbers, decode_numbers
from arcticlake.inspect.value import to_json

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_Place: TypeAlias = tuple[int, int, int]
"""Where an entry stands: behind this version, then by time, then by the order of the logs."""


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One version, or one compaction: what was committed, and when."""

    version: int
    """The version; of a compaction, the one up to which it merged."""
    kind: str
    """upsert, delete, insert, overwrite or rollback; minor, major or full for a compaction."""
    timestamp: datetime
    """When it was committed, in UTC."""
    rows: int
    """Rows that the commit wrote."""
    files: int
    """Data files that the commit wrote."""
    summary: Mapping[str, str] = field(repr=False)
    """The summary of the snapshot that carries the entry."""
    compaction: Numbers | None = None
    """What a compaction did, in numbers; None for a version."""

    @property
    def events(self) -> tuple[str, ...]:
        """Leaves that a compaction split and merged, one sentence each."""
        return () if self.compaction is None else self.compaction.events

    def explain(self) -> tuple[str, ...]:
        """Return what a compaction did, a line for its numbers and one for each event."""
        if self.compaction is None:
            return ()
        return (explain_numbers(self.compaction), *self.events)

    def to_dict(self) -> dict[str, object]:
        """Return the entry as JSON can hold it."""
        return {
            "version": self.version,
            "kind": self.kind,
            "timestamp": to_json(self.timestamp),
            "rows": self.rows,
            "files": self.files,
            "summary": dict(self.summary),
            "compaction": None if self.compaction is None else _plain(self.compaction),
        }


def list_history(log: Log) -> list[HistoryEntry]:
    """Return every version and every compaction, newest first."""
    known = versions(log)
    placed = [((version.version, -1, 0), _entry(version)) for version in known]
    placed.extend(_compactions(log, known))
    placed.sort(key=lambda found: found[0], reverse=True)
    return [entry for _, entry in placed]


def _entry(version: Version) -> HistoryEntry:
    return HistoryEntry(
        version=version.version,
        kind=version.kind,
        timestamp=moment(version.timestamp_ms),
        rows=version.rows,
        files=version.files,
        summary=dict(version.summary),
    )


def _compactions(log: Log, known: Sequence[Version]) -> Iterator[tuple[_Place, HistoryEntry]]:
    """Yield the snapshots that carry numbers, each with its place among the versions."""
    numbered = [version.version for version in known]
    # Clocks of two writers may differ, and then a later version has the earlier time.
    clock = list(accumulate((version.timestamp_ms for version in known), max))
    # Both tables in one line: a run that does both commits to the change table first.
    for number, fact in enumerate((*(log.change or ()), *log.base)):
        done = decode_numbers(fact.summary)
        if done is None:
            continue
        if CONTAINS in fact.summary and log.change is not None:
            merged = int(fact.summary[CONTAINS])
            after = max(merged, _last(numbered, bisect_right(clock, fact.timestamp_ms)))
        else:
            merged = after = _last(numbered, bisect_left(numbered, fact.sequence))
        yield (after, fact.timestamp_ms, number), _compaction(fact, merged, done)


def _last(numbered: Sequence[int], count: int) -> int:
    """Return the newest of the first versions; 0 before them all."""
    return numbered[count - 1] if count else 0


def _compaction(fact: SnapshotFact, version: int, done: Numbers) -> HistoryEntry:
    return HistoryEntry(
        version=version,
        kind=fact.kind,
        timestamp=moment(fact.timestamp_ms),
        rows=done.rows_written,
        files=done.files_added,
        summary=dict(fact.summary),
        compaction=done,
    )


def _plain(numbers: Numbers) -> dict[str, object]:
    amplification = numbers.write_amplification
    return asdict(numbers) | {
        "events": list(numbers.events),
        "write_amplification": None if amplification is None else round(amplification, 2),
    }


def explain_numbers(numbers: Numbers) -> str:
    """Return what a compaction did in one line."""
    files = f"{numbers.files_removed:,} file" + ("" if numbers.files_removed == 1 else "s")
    told = (
        f"{files} → {numbers.files_added:,}, {readable_bytes(numbers.bytes_written)} written, "
        f"{numbers.seconds:.1f} s"
    )
    amplification = numbers.write_amplification
    if amplification is None:
        return told
    return f"{told}, {amplification:.1f} bytes written for a byte of changes"


def moment(timestamp_ms: int) -> datetime:
    """Return milliseconds since 1970 as a moment in UTC."""
    return _EPOCH + timedelta(milliseconds=timestamp_ms)
