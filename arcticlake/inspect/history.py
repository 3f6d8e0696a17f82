"""The table's single history as people read it, newest first.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from arcticlake.commit.history import Log, Version, versions
from arcticlake.inspect.value import to_json

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One version: what was committed, and when."""

    version: int
    kind: str
    """upsert, delete, insert, overwrite or rollback."""
    timestamp: datetime
    """When it was committed, in UTC."""
    rows: int
    """Rows that the commit wrote."""
    files: int
    """Data files that the commit wrote."""
    summary: Mapping[str, str] = field(repr=False)
    """The summary of the snapshot that carries the version."""

    def to_dict(self) -> dict[str, object]:
        """Return the entry as JSON can hold it."""
        return {
            "version": self.version,
            "kind": self.kind,
            "timestamp": to_json(self.timestamp),
            "rows": self.rows,
            "files": self.files,
            "summary": dict(self.summary),
        }


def list_history(log: Log) -> list[HistoryEntry]:
    """Return every version, newest first."""
    return [_entry(version) for version in reversed(versions(log))]


def _entry(version: Version) -> HistoryEntry:
    return HistoryEntry(
        version=version.version,
        kind=version.kind,
        timestamp=moment(version.timestamp_ms),
        rows=version.rows,
        files=version.files,
        summary=dict(version.summary),
    )


def moment(timestamp_ms: int) -> datetime:
    """Return milliseconds since 1970 as a moment in UTC."""
    return _EPOCH + timedelta(milliseconds=timestamp_ms)
