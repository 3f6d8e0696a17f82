"""The range of a pull: which versions, by number or by moment.

    since ──(───────────]── until        since is not in the range, until is (INC-10..12)

Both may be a version or a moment; a moment stands for the newest version at or before it (INC-08).
Without `since` the range begins before the first version, without `until` it ends at the newest.
A range of which something has expired is an error that names the oldest version to pull from: an
empty answer would say that nothing happened.

Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from arcticlake.commit.history import Log, SnapshotFact, Version, versions
from arcticlake.commit.replacement import newest_version
from arcticlake.errors import InvalidRequest, NotFound


class PullMode(StrEnum):
    """What a pull shows of its range."""

    RAW = "raw"
    """Every change, in order."""
    NET = "net"
    """One row a key: its newest change."""
    BASE = "base"
    """One row a key whose row in base changed, also by compaction."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time, and how it was written."""

    milliseconds: int
    asked: str


@dataclass(frozen=True, slots=True)
class Range:
    """The versions above `since`, up to and with `until`."""

    since: int
    until: int

    def holds(self, version: int) -> bool:
        """Whether a version is in the range."""
        return self.since < version <= self.until

    @property
    def empty(self) -> bool:
        """Whether no version can be in it."""
        return self.since == self.until


def parse_pull_mode(mode: object, *, table: str) -> PullMode:
    """Return the mode of a name."""
    try:
        return PullMode(str(mode))
    except ValueError:
        message = f"table {table}: unknown mode {mode!r} of changes; use raw, net or base"
        raise InvalidRequest(message) from None


def plan_range(log: Log, since: object, until: object) -> Range:
    """Return the range between two points: versions, moments or None."""
    known, newest = versions(log), newest_version(log)
    first = 0 if since is None else _version(log, known, since, "since")
    last = newest if until is None else _version(log, known, until, "until")
    if first > last:
        message = (
            f"table {log.table}: since {_told(since, first)} comes after until "
            f"{_told(until, last)}; changes are pulled forwards, exchange the two"
        )
        raise InvalidRequest(message)
    found = Range(first, last)
    if not found.empty:
        _check_kept(log, found)
    return found


def _told(asked: object, version: int) -> str:
    return f"{asked.asked} (version {version})" if isinstance(asked, Moment) else str(version)


def _version(log: Log, known: Sequence[Version], point: object, name: str) -> int:
    newest = newest_version(log)
    if isinstance(point, Moment):
        return _version_at(log, known, point, name)
    if isinstance(point, bool) or not isinstance(point, int):
        message = (
            f"table {log.table}: {name} must be a version, which is a whole number, or a moment in "
            f"ISO 8601, not {point!r}; versions go from {oldest_since(log)} to {newest}"
        )
        raise InvalidRequest(message)
    if point < 0:
        message = (
            f"table {log.table}: {name} {point} is below 0, which stands before the first version; "
            f"versions go from {oldest_since(log)} to {newest}"
        )
        raise InvalidRequest(message)
    if point > newest:
        message = (
            f"table {log.table} has no version {point} yet, which {name} names; the newest is "
            f"{newest} and the oldest to pull from {oldest_since(log)}, see history()"
        )
        raise NotFound(message)
    return point


def _version_at(log: Log, known: Sequence[Version], moment: Moment, name: str) -> int:
    found = [v.version for v in known if v.timestamp_ms <= moment.milliseconds]
    if found:
        return found[-1]
    told = "it has none yet"
    if known:
        at = datetime.fromtimestamp(known[0].timestamp_ms / 1000, UTC).isoformat()
        told = f"the first that is kept is {known[0].version}, of {at}"
    message = (
        f"table {log.table} has no version at or before {moment.asked}, which {name} names "
        f"(INC-09); {told}. Leave since away to pull from the beginning"
    )
    raise NotFound(message)


def oldest_since(log: Log) -> int:
    """Return the oldest version after which every commit is still there."""
    return max([_line(log)[0].sequence - 1 if _line(log) else 0, *lost_batches(log)])


def lost_batches(log: Log) -> list[int]:
    """Return the versions that name a base snapshot which has expired."""
    there = {None, *(fact.snapshot_id for fact in log.base)}
    return [v.version for v in versions(log) if v.base_snapshot_id not in there]


def _line(log: Log) -> Sequence[SnapshotFact]:
    return log.base if log.change is None else log.change


def _check_kept(log: Log, asked: Range) -> None:
    line = _line(log)
    expired = bool(line) and line[0].sequence > asked.since + 1
    if expired or any(map(asked.holds, lost_batches(log))):
        raise expired_range(log, asked, oldest_since(log))


def expired_range(log: Log, asked: Range, oldest: int) -> NotFound:
    """Return the error of a range of which something is gone."""
    return NotFound(
        f"table {log.table}: the changes after version {asked.since} up to {asked.until} have "
        f"expired in part; the oldest version to pull from is {oldest}: use since={oldest}, or "
        "read the whole table and pull from the version that was read"
    )
