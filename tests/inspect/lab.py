"""What the tests here build on: real tables without Spark, and ways to break them on disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record

from arcticlake import Lake, Table
from arcticlake.commit.history import COMMIT_ID, KIND, Log, SnapshotFact, View, plan_view
from arcticlake.inspect.verdict import Verification
from arcticlake.table.ddl import schema_from_ddl
from arcticlake.table.spec import TableSpec, plan_table
from arcticlake.tree.files import FileEntry, Role
from arcticlake.tree.node import Node

LEAF = Node(3, 0)
ORDERS = "id bigint, amount decimal(12,2), status string, at timestamp"
JANUARY = datetime(2026, 1, 1)  # noqa: DTZ001 - written as UTC, as a plain Arrow column is


@contextmanager
def opened_lake(folder: Path) -> Iterator[Lake]:
    lake = Lake.open(str(folder))
    try:
        yield lake
    finally:
        assert isinstance(lake.catalog, SqlCatalog)
        lake.catalog.close()


def orders_table(lake: Lake, *, leaves: int = 2) -> Table:
    options = {"initial-nodes": leaves}
    return lake.create_table("shop.orders", ORDERS, primary_key="id", options=options)


def orders(ids: Iterable[int], status: str = "new") -> pa.Table:
    numbers = list(ids)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "amount": [Decimal(number) / 100 for number in numbers],
            "status": [f"{status}-{number}" for number in numbers],
            "at": [JANUARY + timedelta(seconds=number) for number in numbers],
        }
    )


def keys(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def append_as_stranger(lake: Lake, rows: pa.Table, name: str = "shop.orders") -> None:
    """Append to base as any Iceberg writer does, without a look at keys."""
    base = lake.catalog.load_table(name)
    base.append(rows.cast(base.schema().as_arrow()))


def paths(table: Table, role: str = "base") -> list[Path]:
    return [Path(str(file["path"])) for file in table.files() if file["role"] == role]


def flip_data_byte(path: Path, column: int = 0) -> None:
    """Flip a bit in the middle of a column's pages."""
    chunk = pq.read_metadata(path).row_group(0).column(column)
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    flip_byte(path, start + chunk.total_compressed_size // 2)


def flip_byte(path: Path, place: int) -> None:
    raw = bytearray(path.read_bytes())
    raw[place] ^= 0x10
    path.write_bytes(raw)


def swap(path: Path, other: Path) -> None:
    first, second = path.read_bytes(), other.read_bytes()
    path.write_bytes(second)
    other.write_bytes(first)


def broken(verdict: Verification) -> set[str]:
    """Return the names of the broken rules."""
    return {problem.check for problem in verdict.problems}


def spec_of(
    ddl: str = "id bigint, day date, v double",
    *,
    key: tuple[str, ...] = ("id",),
    partition_by: tuple[str, ...] = (),
    sort_by: tuple[str, ...] = (),
) -> TableSpec:
    return plan_table(
        "shop.orders",
        schema_from_ddl(ddl),
        primary_key=key,
        partition_by=partition_by,
        sort_by=sort_by,
        bucket_by=None,
        options={},
    )


def data_file(path: str, rows: int, **record: object) -> DataFile:
    """Return a manifest record with nothing in it but what is given."""
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=rows,
        **{"file_size_in_bytes": 100, **record},  # type: ignore[arg-type]
    )


@dataclass(frozen=True)
class Place:
    """Where a made-up file lies; the rest of it has defaults."""

    node: Node = LEAF
    partition: tuple[object, ...] = ()
    role: Role = Role.BASE
    snapshot_id: int = 1
    sequence: int = 1


def entry(
    path: str,
    place: Place = Place(),  # noqa: B008 - frozen
    *,
    rows: int = 10,
    keys: tuple[object, object] = (None, None),
    sort: tuple[object, object] | None = None,
) -> FileEntry:
    """Return a made-up file of a table whose key is one column."""
    return FileEntry(
        path=path,
        role=place.role,
        partition=place.partition,
        node=place.node,
        rows=rows,
        bytes=rows * 100,
        key_lower=(keys[0],),
        key_upper=(keys[1],),
        sort_lower=() if sort is None else (sort[0],),
        sort_upper=() if sort is None else (sort[1],),
        snapshot_id=place.snapshot_id,
        sequence=place.sequence,
        data_file=data_file(path, rows),
    )


def fact(
    snapshot_id: int,
    kind: str | None,
    *,
    sequence: int = 0,
    operation: str = "append",
    **summary: str,
) -> SnapshotFact:
    """Return a snapshot of ours, or without a kind one of another engine."""
    ours = {} if kind is None else {KIND: kind, COMMIT_ID: f"c{snapshot_id}"}
    told = {name.replace("__", ".").replace("_", "-"): value for name, value in summary.items()}
    return SnapshotFact(
        snapshot_id=snapshot_id,
        sequence=sequence or snapshot_id,
        timestamp_ms=1_000 * snapshot_id,
        operation=operation,
        schema_id=0,
        summary={**ours, **told},
    )


def log_of(base: Iterable[SnapshotFact] = (), change: Iterable[SnapshotFact] | None = ()) -> Log:
    return Log("shop.orders", tuple(base), None if change is None else tuple(change))


def view_of(base: Iterable[SnapshotFact] = (), change: Iterable[SnapshotFact] | None = ()) -> View:
    return plan_view(log_of(base, change))
