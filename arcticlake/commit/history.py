"""The single history of a table, over both of its Iceberg tables.

A version is the sequence number of a snapshot in the change table's log. Every commit that
changes what a reader sees has exactly one:

    upsert, delete     the change snapshot itself
    insert, overwrite  a base snapshot first, then a marker snapshot in the change table that
                       names it; until the marker exists, no reader sees the base snapshot
    foreign writes     a base snapshot of another engine; readers see it at once, the next
                       writer marks it

Compaction makes no version. `plan_view` picks, for one version, the newest base snapshot that
contains nothing above it, the change snapshot, and the watermark between them. A table without a
primary key has no change table: its history is the base table's own sequence.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from arcticlake.commit.marks import NO_VERSION, Mark
from arcticlake.errors import CorruptData, InvalidRequest, NotFound
from arcticlake.table.order import MERGED_SEQUENCE, UNMARKED_SEQUENCE
from arcticlake.table.watermark import Watermark, decode_watermark

COMMIT_ID, KIND, SCHEMA_ID = "arctic.commit-id", "arctic.kind", "arctic.schema-id"
BASE_SNAPSHOT, CONTAINS = "arctic.base-snapshot", "arctic.contains"
ROWS, FILES, FOREIGN = "arctic.rows", "arctic.files", "arctic.foreign"
CHANGE_VERSION, OVERWROTE = "arctic.change-version", "arctic.overwrote"

CONTENT_KINDS = frozenset({"upsert", "delete", "insert", "overwrite", "rollback"})
BASE_CONTENT_KINDS = frozenset({"insert", "overwrite", "rollback"})
_FOREIGN_CONTENT = frozenset({"append", "overwrite", "delete"})


@dataclass(frozen=True, slots=True)
class SnapshotFact:
    """What the history needs to know of one Iceberg snapshot."""

    snapshot_id: int
    sequence: int
    timestamp_ms: int
    operation: str
    schema_id: int | None
    summary: Mapping[str, str]
    mixed_before: bool = False
    """Whether the files before it lay under several partition specs; known for foreign
    dynamic overwrites only."""
    replaced: frozenset[int] | None = None
    """Sequences of the snapshots whose files it rewrote; known for foreign rewrites only, that
    is, where another engine put new data files in the place of old ones."""

    @property
    def ours(self) -> bool:
        """Whether Arctic wrote it."""
        return COMMIT_ID in self.summary

    @property
    def kind(self) -> str:
        """What the commit was; Iceberg's own word for foreign ones."""
        return self.summary.get(KIND, self.operation)

    @property
    def content(self) -> bool:
        """Whether a base snapshot changes what readers see, and so needs a version."""
        if self.ours:
            return self.kind in BASE_CONTENT_KINDS
        return self.operation in _FOREIGN_CONTENT


@dataclass(frozen=True, slots=True)
class Version:
    """One entry of the history."""

    version: int
    kind: str
    timestamp_ms: int
    rows: int
    files: int
    schema_id: int | None
    snapshot_id: int
    base_snapshot_id: int | None
    summary: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Log:
    """The main lines of both tables, oldest first; `change` is None for a table without a key."""

    table: str
    base: tuple[SnapshotFact, ...]
    change: tuple[SnapshotFact, ...] | None
    marks: Mapping[int, Mark] = field(default_factory=dict)
    """What the change table remembers of base snapshots, expired ones too, by their id."""


@dataclass(frozen=True, slots=True)
class View:
    """One state of the table: which snapshots to read, and where base rows stand in history."""

    version: int
    base_snapshot_id: int | None
    change_snapshot_id: int | None
    watermark: Watermark
    base_sequences: Mapping[int, int]
    """Sequence of the base rows that a snapshot added, where it is not 0."""
    base_versions: Mapping[int, int]
    """Version to show for the base rows that a snapshot added."""
    schema_id: int | None
    """Schema of that version; None for the present one."""

    def base_sequence(self, snapshot_id: int) -> int:
        """Return where rows of a base file that this snapshot added stand in history."""
        return self.base_sequences.get(snapshot_id, MERGED_SEQUENCE)


def versions(log: Log) -> tuple[Version, ...]:
    """Return every version, oldest first."""
    if log.change is None:
        return tuple(_version(fact, None) for fact in log.base if fact.content)
    return tuple(
        _version(fact, int(named) if (named := fact.summary.get(BASE_SNAPSHOT)) else None)
        for fact in log.change
        if fact.kind in CONTENT_KINDS
    )


def _version(fact: SnapshotFact, base_snapshot_id: int | None) -> Version:
    summary = fact.summary
    schema_id = summary.get(SCHEMA_ID)
    return Version(
        version=fact.sequence,
        kind=fact.kind if fact.ours else f"foreign {fact.operation}",
        timestamp_ms=fact.timestamp_ms,
        rows=int(summary.get(ROWS, summary.get("added-records", "0"))),
        files=int(summary.get(FILES, summary.get("added-data-files", "0"))),
        schema_id=int(schema_id) if schema_id is not None else fact.schema_id,
        snapshot_id=fact.snapshot_id,
        base_snapshot_id=base_snapshot_id,
        summary=summary,
    )


def unmarked(log: Log) -> tuple[SnapshotFact, ...]:
    """Return the base snapshots that changed content and have no version yet, oldest first."""
    if log.change is None:
        return ()
    marked = _markers(log)
    return tuple(f for f in log.base if f.content and f.snapshot_id not in marked)


def _markers(log: Log) -> dict[int, int]:
    remembered = {i: mark.version for i, mark in log.marks.items() if mark.version != NO_VERSION}
    return remembered | {
        int(fact.summary[BASE_SNAPSHOT]): fact.sequence
        for fact in log.change or ()
        if BASE_SNAPSHOT in fact.summary
    }


def check_foreign(log: Log) -> None:
    """Refuse to go on where another engine did what cannot be put right by reading on."""
    for fact in log.change or ():
        if not fact.ours:
            message = (
                f"table {log.table}: snapshot {fact.snapshot_id} of its change table was written "
                f"by another program ({fact.operation}); the history is no longer known. Roll the "
                f"change table back to the snapshot before it, then run verify()"
            )
            raise CorruptData(message)
    for fact in log.base:
        if not fact.ours and fact.mixed_before:
            message = (
                f"table {log.table}: base snapshot {fact.snapshot_id} is a dynamic INSERT "
                "OVERWRITE by another engine; it replaced only files of one tree depth, so old "
                "rows stand beside new ones. Roll the base table back to the snapshot before it, "
                "and write the rows with overwrite() instead"
            )
            raise CorruptData(message)


def plan_view(log: Log, at: int | None = None) -> View:
    """Return what to read for a version; without one, the newest state."""
    check_foreign(log)
    known = versions(log)
    if at is not None:
        at = _known_version(log, known, at)
    if log.change is None:
        return _plan_keyless(log, known, at)
    markers = _markers(log)
    schema_id = None if at is None else _schema_at(known, at)
    base = _choose_base(log, markers, at, schema_id)
    if base is None and at and log.base and log.base[0].sequence > 1:
        message = (
            f"table {log.table}: version {at} cannot be read any more, the base snapshots of its "
            "time have expired; read a newer one, see history()"
        )
        raise NotFound(message)
    watermark, sequences = _watermark(log, base), base_places(log)
    check_rewrites(log, sequences, watermark)
    newest = known[-1].version if known else 0
    version = newest if at is None else at
    change = [f for f in log.change if at is None or f.sequence <= at]
    return View(
        version=version,
        base_snapshot_id=base.snapshot_id if base else None,
        change_snapshot_id=change[-1].snapshot_id if change else None,
        watermark=watermark,
        base_sequences=sequences,
        base_versions=_base_versions(log, markers),
        schema_id=None if at is None else _schema_at(known, at),
    )


def _plan_keyless(log: Log, known: Sequence[Version], at: int | None) -> View:
    base = [f for f in log.base if at is None or f.sequence <= at]
    return View(
        version=(known[-1].version if known else 0) if at is None else at,
        base_snapshot_id=base[-1].snapshot_id if base else None,
        change_snapshot_id=None,
        watermark=Watermark(),
        base_sequences={},
        base_versions={f.snapshot_id: f.sequence for f in log.base},
        schema_id=None if at is None else _schema_at(known, at),
    )


def _known_version(log: Log, known: Sequence[Version], at: int) -> int:
    """Return the version that a number stands for.

    Compactions take numbers too and change no content: theirs stand for the version before them,
    so that whoever looks at what was before a version need not know of compactions.
    """
    content = {version.version for version in known}
    line = log.base if log.change is None else log.change
    housekeeping = {fact.sequence for fact in line} - content
    number = at
    while number in housekeeping:
        number -= 1
    if number == 0 or number in content:
        return number
    if not known:
        message = f"table {log.table} has no version {at}; it has no commits yet"
        raise NotFound(message)
    oldest, newest = known[0].version, known[-1].version
    message = (
        f"table {log.table} has no version {at}; it goes from {oldest} to {newest}, see history()"
    )
    raise NotFound(message)


def _choose_base(
    log: Log, markers: Mapping[int, int], at: int | None, schema_id: int | None
) -> SnapshotFact | None:
    """Return the newest base snapshot that contains nothing above the version.

    A merge of exactly this version under another schema is left aside: it lacks columns that were
    dropped since, and the change table of that time still holds all that it merged.
    """
    chosen: SnapshotFact | None = None
    contained = 0
    for fact in log.base:
        if fact.content:
            hidden = fact.ours or at is not None
            if fact.snapshot_id not in markers and hidden:
                break  # not visible yet, and nothing of ours is ever built on top of it
            contained = max(contained, markers.get(fact.snapshot_id, 0))
        merged = int(fact.summary.get(CONTAINS, "0"))
        contained = max(contained, merged)
        if at is not None and (contained > at or (merged == at and _other(fact, schema_id))):
            break
        chosen = fact
    return chosen


def _other(fact: SnapshotFact, schema_id: int | None) -> bool:
    own = fact.summary.get(SCHEMA_ID, fact.schema_id)
    return schema_id is not None and own is not None and int(own) != schema_id


def _watermark(log: Log, base: SnapshotFact | None) -> Watermark:
    """Return the watermark in force at a base snapshot: that of the last one of ours up to it."""
    newest = Watermark()
    for fact in log.base:
        if fact.ours:
            newest = decode_watermark(fact.summary)
        if base is not None and fact.snapshot_id == base.snapshot_id:
            return newest
    return Watermark()


def base_places(log: Log) -> dict[int, int]:
    """Return where rows that a base snapshot added stand in history, where it is not 0.

    A foreign append is an insert. A foreign rewrite keeps the place of the rows it rewrote: pending
    changes that are newer than those still apply on top of it. Rows of a batch overwrite stand at
    the change version that they stand for.
    """
    markers = _markers(log)
    places = {snapshot_id: mark.place for snapshot_id, mark in log.marks.items()}
    place_of = {0: MERGED_SEQUENCE} | {mark.sequence: mark.place for mark in log.marks.values()}
    for fact in log.base:
        if fact.snapshot_id in log.marks:
            continue
        if not fact.ours and fact.replaced is not None:
            known = fact.replaced or place_of  # row by row: any row may have been taken
            place = max(place_of.get(sequence, MERGED_SEQUENCE) for sequence in known)
        elif fact.ours and fact.content and CHANGE_VERSION in fact.summary:
            place = int(fact.summary[CHANGE_VERSION])
        elif fact.content and (fact.ours or fact.operation == "append"):
            place = markers.get(fact.snapshot_id, UNMARKED_SEQUENCE)
        else:
            continue
        place_of[fact.sequence] = places[fact.snapshot_id] = place
    return {snapshot_id: place for snapshot_id, place in places.items() if place}


def unremembered(log: Log) -> tuple[SnapshotFact, ...]:
    """Return the foreign rewrites that make no version and whose place is not kept yet."""
    if log.change is None:
        return ()
    rewrites = [f for f in log.base if not f.ours and f.replaced is not None and not f.content]
    return tuple(f for f in rewrites if f.snapshot_id not in log.marks)


def _waiting(log: Log) -> set[int]:
    """Return the sequences of commits of changes; those that expired are what no marker was."""
    known = log.change or ()
    expired = range(1, known[0].sequence) if known else range(0)
    marked = set(_markers(log).values())
    return {f.sequence for f in known if f.kind in {"upsert", "delete"}} | (set(expired) - marked)


def check_rewrites(log: Log, sequences: Mapping[int, int], watermark: Watermark) -> None:
    """Refuse a foreign rewrite of rows from before and after a change that still waits.

    Such a file holds rows that the change must reach and rows that came after it, and nothing
    tells them apart any more.
    """
    rewrites = [fact for fact in log.base if not fact.ours and fact.replaced is not None]
    if not rewrites:
        return
    waiting = _waiting(log)
    place_of = {mark.sequence: mark.place for mark in log.marks.values()}
    place_of |= {f.sequence: sequences.get(f.snapshot_id, MERGED_SEQUENCE) for f in log.base}
    for fact in rewrites:
        before = {seq for seq in place_of if seq < fact.sequence} | {0}
        places = {place_of.get(seq, MERGED_SEQUENCE) for seq in fact.replaced or before}
        # What was merged when it came stays so for its rows, wherever an overwrite set others to.
        merged = max(watermark.through, _watermark(log, fact).through)
        low, high = max(min(places), merged), max(places)
        if any(low < sequence <= high for sequence in waiting):
            message = (
                f"table {log.table}: base snapshot {fact.snapshot_id}, by another engine, rewrote "
                "rows from before and after changes that are not merged yet; which rows they "
                "reach is no longer known. Roll the base table back to the snapshot before it, "
                "and let the other engine write when nothing is pending"
            )
            raise CorruptData(message)


def _base_versions(log: Log, markers: Mapping[int, int]) -> dict[int, int]:
    shown = {}
    for fact in log.base:
        if fact.snapshot_id in markers:
            shown[fact.snapshot_id] = markers[fact.snapshot_id]
        elif CONTAINS in fact.summary:
            shown[fact.snapshot_id] = int(fact.summary[CONTAINS])
    return shown


def _schema_at(known: Sequence[Version], at: int) -> int | None:
    return next((v.schema_id for v in known if v.version == at), None)


def version_at(known: Sequence[Version], timestamp_ms: int, *, table: str, asked: str) -> int:
    """Return the newest version at or before a moment (INC-08); before the first is an error."""
    found = [v.version for v in known if v.timestamp_ms <= timestamp_ms]
    if not found:
        message = f"table {table} has no version at or before {asked} (INC-09); see history()"
        raise NotFound(message)
    return found[-1]


def check_one_of(table: str, **asked: object) -> None:
    """Refuse a read that names more than one point in time."""
    given = [name for name, value in asked.items() if value is not None]
    if len(given) > 1:
        message = f"table {table}: give only one of {' and '.join(given)}"
        raise InvalidRequest(message)
