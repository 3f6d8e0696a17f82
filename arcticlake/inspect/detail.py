"""What a table is and how it stands: the answer of `detail()`, from metadata alone.

After a compaction its numbers stand here too (CMP-03), as its snapshot tells them.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from arcticlake.commit.history import Log, View
from arcticlake.compact.result import Numbers
from arcticlake.inspect.history import explain_numbers, list_history
from arcticlake.inspect.measure import is_pending, measure
from arcticlake.inspect.value import partition_text, to_json
from arcticlake.table.options import DECLARED
from arcticlake.table.spec import TableSpec
from arcticlake.table.types import spark_type_name
from arcticlake.tree.files import FileEntry, TableFiles


@dataclass(frozen=True, slots=True)
class ColumnDetail:
    """One column."""

    name: str
    type: str
    """The type as DDL writes it."""
    required: bool
    field_id: int


@dataclass(frozen=True, slots=True)
class Backlog:
    """Change files that are not merged into base yet."""

    files: int
    rows: int
    bytes: int
    oldest_age_seconds: float | None
    """Time since the oldest of them was committed; None without a backlog."""


@dataclass(frozen=True, slots=True)
class Merged:
    """How far changes are merged into base."""

    through: int
    """Every change up to this version is in base."""
    ahead: int
    """How many subtrees are merged further."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What lies on disk, by table; each number says what it counts (PAC-08)."""

    base_files: int
    base_rows: int
    base_bytes: int
    change_files: int
    change_rows: int
    """Change entries, merged ones that are not dropped yet included; several may be of one key."""
    change_bytes: int
    live_rows: int | None
    """Exactly the rows that a read returns, where metadata can tell: without a backlog and without
    row deletes of another engine. None otherwise; then only a read can count them."""


@dataclass(frozen=True, slots=True)
class CompactionTotal:
    """All compactions that the kept history knows."""

    count: int
    """Snapshots of compactions; a run that rewrites changes and base makes two."""
    bytes_written: int
    seconds: float


@dataclass(frozen=True, slots=True)
class CompactionDetail:
    """The last compaction in numbers, and all of them together (CMP-03)."""

    kind: str
    """minor, major or full."""
    version: int
    """The version up to which it merged."""
    timestamp: datetime
    """When it was committed, in UTC."""
    files_removed: int
    files_added: int
    bytes_read: int
    bytes_written: int
    change_bytes: int
    """Bytes of the change files among what was read."""
    seconds: float
    write_amplification: float | None
    """Bytes written for each byte of changes; None where there were no changes."""
    total: CompactionTotal


@dataclass(frozen=True, slots=True)
class Detail:
    """All facts of a table at its newest version."""

    name: str
    schema: tuple[ColumnDetail, ...]
    primary_key: tuple[str, ...]
    bucket_by: str | None
    partition_by: tuple[str, ...]
    sort_by: tuple[str, ...]
    options: Mapping[str, str]
    """Every option with its value, as written or by default."""
    version: int
    backlog: Backlog
    watermark: Merged
    sizes: Sizes
    compaction: CompactionDetail | None
    """The last compaction; None where the kept history knows of none."""
    leaves: int
    format_version: int
    """Version of Arctic's own layout."""
    iceberg_format_version: int
    locations: Mapping[str, str]
    """Folders of the base and the change table."""
    tags: Mapping[str, int]
    """Version of every tag."""

    def to_dict(self) -> dict[str, object]:
        """Return the detail as JSON can hold it."""
        plain = to_json(asdict(self))
        assert isinstance(plain, dict)
        return plain

    def __str__(self) -> str:
        return explain_detail(self)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the catalog knows of a table beside its state."""

    options_written: Mapping[str, str]
    format_version: int
    iceberg_format_version: int
    locations: Mapping[str, str]
    tags: Mapping[str, int]
    leaves: int


def describe_table(
    spec: TableSpec,
    log: Log,
    view: View,
    files: TableFiles,
    *,
    around: Surroundings,
    now_ms: int,
) -> Detail:
    """Return the detail of a table in its newest state."""
    return Detail(
        name=spec.name,
        schema=tuple(
            ColumnDetail(c.name, spark_type_name(c.field_type), c.required, c.field_id)
            for c in spec.schema.fields
        ),
        primary_key=spec.key,
        bucket_by=None if spec.bucket_id is None else spec.names((spec.bucket_id,))[0],
        partition_by=tuple(partition_text(spec, term) for term in spec.partition),
        sort_by=spec.sort,
        options=_options(around.options_written),
        version=view.version,
        backlog=_backlog(log, view, files, now_ms),
        watermark=Merged(view.watermark.through, len(view.watermark.ahead)),
        sizes=_sizes(view, files),
        compaction=_compaction(log),
        leaves=around.leaves,
        format_version=around.format_version,
        iceberg_format_version=around.iceberg_format_version,
        locations=dict(around.locations),
        tags=dict(around.tags),
    )


def _options(written: Mapping[str, str]) -> dict[str, str]:
    defaults = {name: str(declared.metadata["written"]) for name, declared in DECLARED.items()}
    return {**defaults, **written}


def _backlog(log: Log, view: View, files: TableFiles, now_ms: int) -> Backlog:
    pending = [file for file in files.changes if is_pending(file, view)]
    amount = measure(pending)
    age = None
    if pending:
        age = max(0.0, (now_ms - _oldest_ms(log, pending)) / 1000)
    return Backlog(amount.files, amount.rows, amount.bytes, age)


def _oldest_ms(log: Log, pending: Sequence[FileEntry]) -> int:
    """Return when the oldest pending file was committed; at the latest, if its snapshot expired."""
    oldest = min(file.sequence for file in pending)
    line = log.change or ()
    known = [fact.timestamp_ms for fact in line if fact.sequence <= oldest]
    return known[-1] if known else line[0].timestamp_ms


def _sizes(view: View, files: TableFiles) -> Sizes:
    base, change = measure(files.bases), measure(files.changes)
    clean = not any(file.row_deletes for file in files.bases) and not any(
        is_pending(file, view) for file in files.changes
    )
    return Sizes(
        base_files=base.files,
        base_rows=base.rows,
        base_bytes=base.bytes,
        change_files=change.files,
        change_rows=change.rows,
        change_bytes=change.bytes,
        live_rows=base.rows if clean else None,
    )


def _compaction(log: Log) -> CompactionDetail | None:
    found = [(entry, entry.compaction) for entry in list_history(log) if entry.compaction]
    if not found:
        return None
    last, numbers = found[0]
    return CompactionDetail(
        kind=last.kind,
        version=last.version,
        timestamp=last.timestamp,
        files_removed=numbers.files_removed,
        files_added=numbers.files_added,
        bytes_read=numbers.bytes_read,
        bytes_written=numbers.bytes_written,
        change_bytes=numbers.change_bytes,
        seconds=numbers.seconds,
        write_amplification=numbers.write_amplification,
        total=CompactionTotal(
            count=len(found),
            bytes_written=sum(done.bytes_written for _, done in found),
            seconds=sum(done.seconds for _, done in found),
        ),
    )


def _explain_compaction(found: CompactionDetail | None) -> str:
    if found is None:
        return "none"
    numbers = Numbers(
        files_removed=found.files_removed,
        files_added=found.files_added,
        bytes_written=found.bytes_written,
        change_bytes=found.change_bytes,
        seconds=found.seconds,
    )
    return f"{found.kind}, {explain_numbers(numbers)}"


def explain_detail(detail: Detail) -> str:
    """Return the detail as text, one fact a line."""
    sizes, backlog = detail.sizes, detail.backlog
    live = "only a read can count them" if sizes.live_rows is None else f"{sizes.live_rows:,}"
    age = (
        "" if backlog.oldest_age_seconds is None else f", oldest {backlog.oldest_age_seconds:.0f} s"
    )
    columns = ", ".join(
        f"{c.name} {c.type}{' not null' if c.required else ''}" for c in detail.schema
    )
    facts = {
        "table": detail.name,
        "columns": columns,
        "primary key": ", ".join(detail.primary_key) or "none",
        "bucket by": detail.bucket_by or "none",
        "partition by": ", ".join(detail.partition_by) or "none",
        "sort by": ", ".join(detail.sort_by) or "none",
        "options": ", ".join(f"{name}={value}" for name, value in detail.options.items()),
        "version": str(detail.version),
        "base": f"{sizes.base_files} files, {sizes.base_rows:,} rows, {sizes.base_bytes:,} bytes",
        "changes": (
            f"{sizes.change_files} files, {sizes.change_rows:,} rows, {sizes.change_bytes:,} bytes"
        ),
        "live rows": live,
        "backlog": f"{backlog.files} files, {backlog.rows:,} rows, {backlog.bytes:,} bytes{age}",
        "merged through": f"{detail.watermark.through}, {detail.watermark.ahead} subtrees ahead",
        "last compaction": _explain_compaction(detail.compaction),
        "leaves": str(detail.leaves),
        "format version": f"{detail.format_version} on Iceberg {detail.iceberg_format_version}",
        "tags": ", ".join(f"{name}={version}" for name, version in detail.tags.items()) or "none",
        **{f"{role} location": place for role, place in detail.locations.items()},
    }
    width = max(map(len, facts))
    return "\n".join(f"{name:<{width}}  {fact}" for name, fact in facts.items())
