"""Written files → one visible version.

Changes are appended to the change table in one commit. A batch goes into base first, and then a
marker snapshot in the change table gives it its version; a reader sees it from the marker on. A
writer that dies between the two leaves an unmarked base snapshot: every writer looks for one
before it commits, and marks it, exactly once.

An overwrite goes the same way, and its marker also puts the change files of the replaced
partitions right. Nobody holds a lock meanwhile (BAT-08): a writer that dies before its base commit
leaves files that nobody sees, and one that dies after it is finished by the next writer.

Touches the catalog.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from uuid import uuid4

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.io.fileformat import DataFileStatistics
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import Table
from pyiceberg.typedef import Record

from arcticlake.commit.change import Operation, SnapshotChange
from arcticlake.commit.history import (
    BASE_SNAPSHOT,
    CHANGE_VERSION,
    CONTENT_KINDS,
    FILES,
    FOREIGN,
    KIND,
    OVERWROTE,
    ROWS,
    SCHEMA_ID,
    Log,
    SnapshotFact,
    base_places,
    unmarked,
    unremembered,
)
from arcticlake.commit.iceberg import ensure_spec, find_commit
from arcticlake.commit.iceberg_added import load_exchange
from arcticlake.commit.iceberg_state import TableState, load_log, load_state
from arcticlake.commit.loop import Done, commit
from arcticlake.commit.marks import NO_VERSION, Mark, decode_marks, encode_mark
from arcticlake.commit.replacement import (
    Exchange,
    Replacement,
    decode_replacement,
    encode_replacement,
    replaced_paths,
)
from arcticlake.errors import InternalError
from arcticlake.ingest.job import WrittenFile
from arcticlake.ingest.once import Once, properties_of, summary_of
from arcticlake.table.iceberg import TablePair, load_pair
from arcticlake.table.order import MERGED_SEQUENCE
from arcticlake.table.watermark import encode_watermark, overwritten


@dataclass(frozen=True, slots=True)
class Committed:
    """One commit as the caller sees it."""

    version: int
    rows: int
    files: int


def data_files(
    pair: TablePair, table: Table, written: Sequence[WrittenFile]
) -> tuple[DataFile, ...]:
    """Return manifest records for written files; make sure the spec of every depth exists."""
    specs: dict[int, int] = {}
    for buckets in sorted({file.node.buckets for file in written}):
        table, specs[buckets] = ensure_spec(table, pair.spec.spec_terms(buckets))
    schema = table.schema()
    statistics_plan = compute_statistics_plan(schema, table.properties)
    paths_to_ids = parquet_path_to_id_mapping(schema)
    made = []
    for file in written:
        statistics = data_file_statistics_from_parquet_metadata(
            pickle.loads(file.footer),  # noqa: S301 - made by our own writer
            statistics_plan,
            paths_to_ids,
        )
        _drop_broken_bounds(statistics)
        bucket = () if pair.spec.bucket_id is None else (file.node.index,)
        data_file = DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=file.path,
            file_format=FileFormat.PARQUET,
            partition=Record(*file.partition, *bucket),
            file_size_in_bytes=file.size,
            sort_order_id=None,
            equality_ids=None,
            key_metadata=None,
            **statistics.to_serialized_dict(),
        )
        data_file.spec_id = specs[file.node.buckets]
        made.append(data_file)
    return tuple(made)


def _drop_broken_bounds(statistics: DataFileStatistics) -> None:
    """Let a column go without bounds where they cannot be written.

    pyiceberg cuts long text and counts its last character up; after U+D7FF that is no character.
    """
    for field_id, aggregate in list(statistics.column_aggregates.items()):
        try:
            aggregate.max_as_bytes()
        except UnicodeEncodeError:
            del statistics.column_aggregates[field_id]


def append_changes(
    pair: TablePair,
    written: Sequence[WrittenFile],
    *,
    kind: str,
    properties: Mapping[str, str],
    since: int | None = None,
    once: Once | None = None,
) -> Committed | None:
    """Commit change files as one version; it conflicts with nothing.

    Rows that rest on a look-up name the version they were looked up at as `since`. A later
    version may have moved them: then nothing is committed, and None returned. A batch of a stream
    that is in the table already is answered with its version and no files.
    """
    assert pair.change is not None, "only keyed tables take changes"
    mark_all(pair)
    catalog, name = pair.base.catalog, ".".join(pair.change.name())
    added = data_files(pair, pair.change, written)
    rows = sum(file.rows for file in written)
    commit_id = uuid4().hex

    def decide(table: Table) -> SnapshotChange | Done:
        if _repeated(once, table) is not None:
            return Done("already committed")
        if since is not None and _newest_version(table) > since:
            return Done("overtaken")
        return SnapshotChange(
            operation=Operation.APPEND,
            added=added,
            summary={**_summary(pair, kind, rows, len(added)), **summary_of(once)},
            properties={**properties, **properties_of(once, table.metadata.next_sequence_number())},
        )

    table = commit(lambda: catalog.load_table(name), decide, commit_id)
    if find_commit(table, commit_id) is None:
        return _repeated(once, table)
    return Committed(_version(table, commit_id), rows, len(added))


def find_once(pair: TablePair, once: Once | None) -> Committed | None:
    """Return the version of a batch that the loaded tables have already; None if it is new."""
    return _repeated(once, pair.change or pair.base)


def _repeated(once: Once | None, table: Table) -> Committed | None:
    version = None if once is None else once.committed_in(table.properties)
    return None if version is None else Committed(version, 0, 0)


def _newest_version(table: Table) -> int:
    return max(
        (
            snapshot.sequence_number or 0
            for snapshot in table.metadata.snapshots
            if snapshot.summary is not None
            and snapshot.summary.additional_properties.get(KIND) in CONTENT_KINDS
        ),
        default=0,
    )


def append_base(
    pair: TablePair,
    written: Sequence[WrittenFile],
    *,
    check: Callable[[TableState], None],
    once: Once | None = None,
) -> Committed:
    """Commit a batch of new rows into base, and give it its version.

    `check` looks at the newest state right before every attempt and refuses keys that exist. Only
    a table without a key takes batches of a stream here; one that it has already adds no files.
    """
    assert once is None or pair.change is None, "streams into keyed tables write changes"
    catalog, name = pair.base.catalog, pair.spec.name
    added = data_files(pair, pair.base, written)
    rows = sum(file.rows for file in written)
    commit_id = uuid4().hex

    def decide(table: Table) -> SnapshotChange | Done:
        if _repeated(once, table) is not None:
            return Done("already committed")
        mark_all(load_pair(catalog, name))
        state = load_state(load_pair(catalog, name))
        check(state)
        return SnapshotChange(
            operation=Operation.APPEND,
            added=added,
            summary={
                **_summary(pair, "insert", rows, len(added)),
                **encode_watermark(state.view.watermark),
                **summary_of(once),
            },
            properties=properties_of(once, table.metadata.next_sequence_number()),
        )

    base = commit(lambda: catalog.load_table(name), decide, commit_id)
    repeated = _repeated(once, base) if find_commit(base, commit_id) is None else None
    return repeated or _with_version(pair, base, commit_id)


def overwrite_base(
    pair: TablePair,
    written: Sequence[WrittenFile],
    *,
    plan: Callable[[TableState], Replacement],
) -> Committed:
    """Commit a batch in the place of all rows of some partitions, and give it its version.

    `plan` names the partitions on the newest state right before every attempt, or refuses. The
    files to remove come from that state too, so an overwrite conflicts with nothing (BAT-06).
    """
    catalog, name = pair.base.catalog, pair.spec.name
    added = data_files(pair, pair.base, written)
    rows = sum(file.rows for file in written)
    commit_id = uuid4().hex

    def decide(_: Table) -> SnapshotChange | Done:
        mark_all(load_pair(catalog, name))
        state = load_state(load_pair(catalog, name))
        replacement = plan(state)
        if not added and replacement.partitions == frozenset():
            return Done("there is nothing to replace")
        return SnapshotChange(
            operation=Operation.OVERWRITE if added else Operation.DELETE,
            added=added,
            removed=replaced_paths(replacement, state.files.bases),
            summary={
                **_summary(pair, "overwrite", rows, len(added)),
                **encode_replacement(replacement),
                **_watermark_after(state, replacement),
            },
        )

    base = commit(lambda: catalog.load_table(name), decide, commit_id)
    if find_commit(base, commit_id) is None:
        return Committed(load_state(load_pair(catalog, name)).view.version, 0, 0)
    return _with_version(pair, base, commit_id)


def _watermark_after(state: TableState, replacement: Replacement) -> dict[str, str]:
    watermark = state.view.watermark
    if state.pair.change is None:
        return encode_watermark(watermark)
    others = {file.partition for file in state.files.all}
    return encode_watermark(
        overwritten(watermark, replacement.partitions, replacement.version, others)
    )


def _with_version(pair: TablePair, base: Table, commit_id: str) -> Committed:
    """Give a base commit that landed its version."""
    snapshot = find_commit(base, commit_id)
    assert snapshot is not None, "a commit that returned is in the table"
    assert snapshot.summary is not None, "our snapshots have a summary"
    sequence = snapshot.sequence_number or 0
    told = _told(snapshot.summary.additional_properties)
    rows, files = int(told[ROWS]), int(told[FILES])
    if pair.change is None:
        return Committed(sequence, rows, files)
    done = mark(pair, snapshot.snapshot_id, sequence, told)
    return Committed(done.version, rows, files)


def mark_all(pair: TablePair) -> None:
    """Give a version to every base snapshot that has none: a dead writer's, or a foreign one."""
    log = load_log(pair)
    for fact in unmarked(log):
        rewrote = not fact.ours and fact.operation != "append"
        place = base_places(log).get(fact.snapshot_id, MERGED_SEQUENCE) if rewrote else None
        summary = _marker_summary(fact)
        done = mark(pair, fact.snapshot_id, fact.sequence, summary, place=place)
        log = replace(log, marks={**log.marks, fact.snapshot_id: done})
    _remember_rewrites(pair, log)


def _remember_rewrites(pair: TablePair, log: Log) -> None:
    """Keep the place of rows that another engine rewrote, for the time when its commit expires."""
    places = base_places(log)
    kept: dict[str, str] = {}
    for fact in unremembered(log):
        place = places.get(fact.snapshot_id, MERGED_SEQUENCE)
        kept |= encode_mark(fact.snapshot_id, Mark(fact.sequence, NO_VERSION, place))
    if kept and pair.change is not None:
        # Somebody else may be faster with the same; otherwise the next writer does it.
        with suppress(CommitFailedException):
            pair.base.catalog.load_table(pair.change.name()).transaction().set_properties(
                kept
            ).commit_transaction()


def _marker_summary(fact: SnapshotFact) -> dict[str, str]:
    if fact.ours:
        return _told(fact.summary)
    return {
        KIND: _foreign_kind(fact),
        ROWS: fact.summary.get("added-records", "0"),
        FILES: fact.summary.get("added-data-files", "0"),
        SCHEMA_ID: str(fact.schema_id or 0),
        FOREIGN: "true",
    }


def _told(summary: Mapping[str, str]) -> dict[str, str]:
    """Return what a marker repeats of the summary of our base commit."""
    names = (KIND, ROWS, FILES, SCHEMA_ID, CHANGE_VERSION, OVERWROTE)
    return {name: summary[name] for name in names if name in summary}


def _foreign_kind(fact: SnapshotFact) -> str:
    return "insert" if fact.operation == "append" else "overwrite"


def mark(
    pair: TablePair,
    base_snapshot_id: int,
    sequence: int,
    summary: Mapping[str, str],
    *,
    place: int | None = None,
) -> Mark:
    """Commit the marker of a base snapshot, unless somebody else did; return what is kept of it.

    `place` is where its rows stand in history; without one, at the version that they get. An
    overwrite says it in its summary, and its marker sets the change files right as well.
    """
    assert pair.change is not None, "a table without a key needs no markers"
    catalog, name = pair.base.catalog, ".".join(pair.change.name())
    replacement = decode_replacement(summary)
    place = place if replacement is None else replacement.version

    def decide(table: Table) -> SnapshotChange | Done:
        if base_snapshot_id in decode_marks(table.properties):
            return Done()
        version = table.metadata.next_sequence_number()
        kept = Mark(sequence, version, version if place is None else place)
        exchange = Exchange()
        if replacement is not None:
            log = load_log(replace(pair, change=table))
            exchange = load_exchange(pair.spec, table, log, replacement)
        return SnapshotChange(
            operation=exchange.operation,
            added=tuple(file.data_file for file in exchange.added),
            removed=exchange.removed,
            sequences={file.path: file.sequence for file in exchange.added},
            summary={**summary, BASE_SNAPSHOT: str(base_snapshot_id)},
            properties=encode_mark(base_snapshot_id, kept),
        )

    table = commit(lambda: catalog.load_table(name), decide, uuid4().hex)
    found = decode_marks(table.properties).get(base_snapshot_id)
    if found is None:
        message = f"table {pair.spec.name}: the marker of base snapshot {base_snapshot_id} is gone"
        raise InternalError(message)
    return found


def _summary(pair: TablePair, kind: str, rows: int, files: int) -> dict[str, str]:
    return {
        KIND: kind,
        ROWS: str(rows),
        FILES: str(files),
        SCHEMA_ID: str(pair.base.metadata.current_schema_id),
    }


def _version(table: Table, commit_id: str) -> int:
    snapshot = find_commit(table, commit_id)
    assert snapshot is not None, "a commit that returned is in the table"
    return snapshot.sequence_number or 0
