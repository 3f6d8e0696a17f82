"""What the tests here build on: a real catalog, a small table, real and stand-in files."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestEntry
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, Transform
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, StringType

from arcticlake.commit.iceberg import (
    Clock,
    Operation,
    Snapshot,
    SnapshotChange,
    commit_snapshot,
    live_entries,
)

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True), NestedField(2, "name", StringType())
)


@dataclass(frozen=True)
class Term:
    """A partition field as a caller of `ensure_spec` names it."""

    source_id: int
    transform: Transform  # type: ignore[type-arg]
    name: str


def bucket(buckets: int) -> tuple[Term, ...]:
    return (Term(1, BucketTransform(buckets), f"id_bucket_{buckets}"),)


@contextmanager
def sqlite_catalog(folder: Path, kind: type[SqlCatalog] = SqlCatalog) -> Iterator[SqlCatalog]:
    catalog = kind("lab", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    try:
        yield catalog
    finally:
        catalog.close()


def create(catalog: SqlCatalog, name: str = "db.t", **properties: str) -> Table:
    catalog.create_namespace_if_not_exists(name.split(".", maxsplit=1)[0])
    spec = PartitionSpec(PartitionField(1, 1000, BucketTransform(4), "id_bucket_4"))
    return catalog.create_table(name, SCHEMA, partition_spec=spec, properties=properties)


def stand_in(
    table: Table, *partition: object, spec_id: int = 0, rows: int = 10, size: int = 100
) -> DataFile:
    """Describe a file that is not there; enough for everything but reading rows."""
    path = f"{table.location()}/data/{uuid.uuid4().hex}.parquet"
    low, high = (value.to_bytes(8, "little") for value in (1, rows))
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(*(partition or (0,))),
        record_count=rows,
        file_size_in_bytes=size,
        column_sizes={1: 40, 2: 40},
        value_counts={1: rows, 2: rows},
        null_value_counts={1: 0, 2: 0},
        nan_value_counts={},
        lower_bounds={1: low, 2: b"a"},
        upper_bounds={1: high, 2: b"z"},
        key_metadata=None,
        split_offsets=[4],
        equality_ids=None,
        sort_order_id=None,
    )
    file.spec_id = spec_id
    return file


def real_files(table: Table, ids: list[int], *, spec_id: int) -> list[DataFile]:
    """Write one Parquet file for each bucket of the spec that the ids fall into."""
    spec = table.specs()[spec_id]
    hashed = spec.fields[0].transform.transform(LongType())
    nodes: dict[int, list[int]] = {}
    for value in ids:
        node = hashed(value)
        assert node is not None
        nodes.setdefault(node, []).append(value)
    return [_real_file(table, node, rows, spec_id) for node, rows in sorted(nodes.items())]


def _real_file(table: Table, node: int, ids: list[int], spec_id: int) -> DataFile:
    rows = pa.table(
        {"id": ids, "name": [f"n{value}" for value in ids]}, schema=table.schema().as_arrow()
    )
    folder = Path(table.location()) / "data"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{uuid.uuid4().hex}.parquet"
    pq.write_table(rows, path)
    statistics = data_file_statistics_from_parquet_metadata(
        parquet_metadata=pq.read_metadata(path),
        stats_columns=compute_statistics_plan(table.schema(), table.properties),
        parquet_column_mapping=parquet_path_to_id_mapping(table.schema()),
    )
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=str(path),
        file_format=FileFormat.PARQUET,
        partition=Record(node),
        file_size_in_bytes=path.stat().st_size,
        sort_order_id=None,
        equality_ids=None,
        key_metadata=None,
        **statistics.to_serialized_dict(),
    )
    file.spec_id = spec_id
    return file


def append(*files: DataFile, **summary: str) -> SnapshotChange:
    return SnapshotChange(Operation.APPEND, added=files, summary=summary)


def swap(removed: list[str], *added: DataFile) -> SnapshotChange:
    return SnapshotChange(Operation.OVERWRITE, added=added, removed=frozenset(removed))


def commit_id() -> str:
    return uuid.uuid4().hex


def put(table: Table, change: SnapshotChange) -> Table:
    return commit_snapshot(table, change, commit_id())


def head(table: Table) -> Snapshot:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return snapshot


def summary(table: Table) -> dict[str, str]:
    told = head(table).summary
    assert told is not None
    return told.additional_properties


def live(table: Table) -> list[ManifestEntry]:
    return live_entries(table, table.current_snapshot())


def paths(table: Table) -> set[str]:
    return {entry.data_file.file_path for entry in live(table)}


def files_under(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.suffix in {".avro", ".parquet", ".json"}}


class FakeClock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.time = 0.0
        self.naps: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.time += seconds
        self.naps.append(seconds)

    @property
    def clock(self) -> Clock:
        return Clock(now=lambda: self.time, sleep=self.sleep, random=lambda: 0.5)
