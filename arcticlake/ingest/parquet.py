"""One writer: a stream of row batches → data files, one for each leaf that gets rows.

    batch ─ partition values, key hash ─▶ rows by (partition, leaf) ─▶ buffers ─▶ row groups

Rows wait in a buffer for each leaf; a buffer that is large enough becomes a row group, and when
all buffers together pass their limit the largest goes first, so memory stays bounded whatever the
number of leaves. A file that reaches its size is closed. What follows is the split at ingestion:
the leaf's further rows go to its two children (SPL-09, RTI-14); with a sort key, where rows come
sorted, simply the next file of the same leaf begins (SPL-05).

The writer is also the gate for rules on rows, because it alone sees every row whatever the
source: no NULL in a key or a NOT NULL column, no key twice without an order to choose by. It tells
the first problem instead of raising, so that the answer crosses process borders whole. It runs
in-process or on an executor; nothing here is visible until a commit names it.

Touches data files, which it creates and never changes.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeAlias
from uuid import uuid4

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from arcticlake.ingest.job import WriteJob, Written, WrittenFile
from arcticlake.ingest.place import Placed, directory_of, place_rows
from arcticlake.ingest.route import plan_route
from arcticlake.table.change import ACTION
from arcticlake.table.storage import Storage
from arcticlake.tree.forest import Tree
from arcticlake.tree.hash import key_hash
from arcticlake.tree.node import Node

ROW_GROUP_BYTES = 64 * 2**20
"""Arrow bytes of a row group: some 10 MB on disk, enough to compress well and to skip."""
SAMPLE_ROWS = 20_000
"""Rows that are looked at to choose encodings."""
THREADS_ROWS_MIN = 20_000
"""Fewer rows than this are written by one thread."""
ROW_GROUP_BYTES_MIN = 4 * 2**10
"""Smaller row groups are not worth their footer, however small the files are wished for."""
CHUNK_ROWS_MIN = 10_000
"""Chunks of a row group that are smaller than this on average are put together first."""
SPLIT_DEPTH_MAX = 16
"""A leaf this deep holds a 65,536th of the hashes: what still fills it is one hot key, which no
split can part. From there on the next file of the same leaf begins."""


@dataclass(slots=True)
class _LeafFile:
    """One leaf's buffer and its open file, if any."""

    partition: tuple[object, ...]
    node: Node
    lane: int
    tables: list[pa.Table] = field(default_factory=list)
    buffered: int = 0
    path: str = ""
    sink: pa.NativeFile | None = None
    writer: pq.ParquetWriter | None = None
    rows: int = 0


Place: TypeAlias = Callable[[pa.Table], Iterable[Placed]]
"""Tells where the rows of a batch go."""


class TreeWriter:
    """Writes batches through the forest; `finish` returns what was written.

    A rewrite knows where its rows go and brings its own `place`.
    """

    def __init__(self, job: WriteJob, place: Place | None = None) -> None:
        self.job = job
        self._place = place or self._place_by_forest
        self._trees: dict[tuple[object, ...], Tree] = {}
        self._leaves: dict[tuple[tuple[object, ...], Node, int], _LeafFile] = {}
        self._finished: list[WrittenFile] = []
        self._keys: list[pl.DataFrame] = []
        self._problem: str | None = None
        self._buffered = 0
        self._group_bytes = max(ROW_GROUP_BYTES_MIN, min(ROW_GROUP_BYTES, job.file_bytes_max))

    def write(self, rows: pa.Table, lane: int = 0) -> None:
        """Place the rows of one batch, in pieces small enough that a full file is noticed.

        Rows of different lanes never share a file: that is how files get disjoint key ranges.
        """
        self._problem = self._problem or null_problem(rows, self.job)
        if rows.num_rows == 0 or self._problem:
            return
        pieces = -(-rows.nbytes // self._group_bytes)
        step = max(1, -(-rows.num_rows // max(1, pieces)))
        for start in range(0, rows.num_rows, step):
            self._write_piece(rows.slice(start, step), lane)

    def _place_by_forest(self, rows: pa.Table) -> Iterable[Placed]:
        return place_rows(rows, self.job.terms, self.job.bucket, self._tree)

    def _write_piece(self, rows: pa.Table, lane: int) -> None:
        for placed in self._place(rows):
            self.take(placed, lane)

    def take(self, placed: Placed, lane: int = 0) -> None:
        """Take in rows whose place is known; nothing about them is checked."""
        self._keep_keys(placed)
        leaf = self._leaves.get((placed.partition, placed.node, lane))
        if leaf is None:
            leaf = _LeafFile(placed.partition, placed.node, lane)
            self._leaves[placed.partition, placed.node, lane] = leaf
        leaf.tables.append(placed.rows)
        size = placed.rows.nbytes
        leaf.buffered += size
        self._buffered += size
        if leaf.buffered >= self._group_bytes:
            self._flush(leaf)
        while self._buffered > self.job.buffer_bytes_max:
            self._flush(max(self._leaves.values(), key=lambda leaf: leaf.buffered))

    def finish(self) -> Written:
        """Close every file and return them, with the first repeated key if there is one."""
        for leaf in list(self._leaves.values()):
            self._flush(leaf)
            self._close(leaf)
        return Written(tuple(self._finished), self._problem or self._repeated_key())

    def abandon(self) -> None:
        """Close every file and remove them all: a rewrite that failed leaves nothing behind."""
        for leaf in self._leaves.values():
            self._close(leaf)
        remove_files(self.job.storage, [file.path for file in self._finished])

    def _tree(self, partition: tuple[object, ...]) -> Tree:
        return self._trees.get(partition) or self.job.forest.tree(partition)

    def _flush(self, leaf: _LeafFile) -> None:
        if not leaf.tables:
            return
        group = pa.concat_tables(leaf.tables)
        if group.num_rows < CHUNK_ROWS_MIN * len(leaf.tables):
            group = group.combine_chunks()  # a copy, and cheaper than to encode crumbs
        group = group.cast(self.job.schema)
        self._buffered -= leaf.buffered
        leaf.tables, leaf.buffered = [], 0
        if leaf.writer is None:
            self._open(leaf, group)
        assert leaf.writer is not None
        assert leaf.sink is not None
        leaf.writer.write_table(group, row_group_size=max(1, group.num_rows))
        leaf.rows += group.num_rows
        if leaf.sink.tell() >= self.job.file_bytes_max:
            self._close(leaf)
            if self.job.split_full_leaves and self._can_split(leaf.node):
                self._split(leaf)

    def _open(self, leaf: _LeafFile, first: pa.Table) -> None:
        folder = "/".join(directory_of(self.job.terms, leaf.partition, self.job.bucket, leaf.node))
        location = f"{self.job.location}/{folder}" if folder else self.job.location
        leaf.path = f"{location}/{uuid4()}.parquet"
        system, path = self.job.storage.open(leaf.path)
        if isinstance(system, fs.LocalFileSystem):
            system.create_dir(path.rpartition("/")[0], recursive=True)
        leaf.sink = system.open_output_stream(path)
        leaf.writer = pq.ParquetWriter(
            leaf.sink,
            self.job.schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=columns_with_few_values(first),
            write_page_checksum=True,
            store_schema=False,
        )
        leaf.rows = 0

    def _close(self, leaf: _LeafFile) -> None:
        if leaf.writer is None:
            return
        assert leaf.sink is not None
        leaf.writer.close()
        footer = leaf.writer.writer.metadata
        size = leaf.sink.tell()
        leaf.sink.close()
        leaf.writer, leaf.sink = None, None
        self._finished.append(
            WrittenFile(leaf.path, leaf.partition, leaf.node, leaf.rows, size, pickle.dumps(footer))
        )

    def _can_split(self, node: Node) -> bool:
        return self.job.bucket is not None and node.depth < SPLIT_DEPTH_MAX

    def _split(self, leaf: _LeafFile) -> None:
        """From now on the rows of this leaf go to its children."""
        tree = self._tree(leaf.partition)
        others = [node for node in tree.leaves if node != leaf.node]
        self._trees[leaf.partition] = Tree(tuple(sorted((*others, *leaf.node.split()))))
        del self._leaves[leaf.partition, leaf.node, leaf.lane]

    def _keep_keys(self, placed: Placed) -> None:
        if self.job.unique:
            frame = pl.from_arrow(placed.rows.select(list(self.job.unique)))
            assert isinstance(frame, pl.DataFrame)
            self._keys.append(frame)

    def _repeated_key(self) -> str | None:
        """Tell of a key that came twice.

        Keys of all leaves are compared, since a key may stand in two partitions, or in a leaf and
        in the child it was split into.
        """
        if not self._keys:
            return None
        keys = pl.concat(self._keys)
        if keys.n_unique() == keys.height:
            return None
        row = keys.filter(keys.is_duplicated()).row(0, named=True)
        shown = ", ".join(f"{name}={value!r}" for name, value in row.items())
        ordered = len(self.job.unique) > len(self.job.key)
        advice = (
            "their order is equal" if ordered else "give order_by, or keep one row for each key"
        )
        return f"the key {shown} comes twice in the rows; {advice}"


def columns_with_few_values(rows: pa.Table) -> list[str]:
    """Return the columns that a dictionary makes smaller, by a look at the first rows.

    A dictionary of values that are all different is built, found too large and thrown away; on a
    table of orders that is a third of the time of writing.
    """
    sample = rows.slice(0, SAMPLE_ROWS)
    return [
        name
        for name in sample.column_names
        if not pa.types.is_nested(sample.schema.field(name).type)
        and pc.count_distinct(sample.column(name)).as_py() * 4 <= sample.num_rows
    ]


def null_problem(rows: pa.Table, job: WriteJob) -> str | None:
    """Tell of a NULL where none may be."""
    for name in job.key:
        count = rows.column(name).null_count
        if count:
            return f"{count} rows have NULL in {name}; a primary key cannot be NULL"
    suspects = [name for name in job.required if rows.column(name).null_count]
    if not suspects:
        return None
    if ACTION in rows.column_names:
        rows = rows.filter(pc.starts_with(rows.column(ACTION), "+"))
    for name in suspects:
        count = rows.column(name).null_count
        if count:
            return f"{count} rows have NULL in {name}; the column is NOT NULL"
    return None


def write_in_threads(rows: pa.Table, job: WriteJob, writers_max: int) -> Written:
    """Write rows that are in memory: one writer for each share of the tree, in threads.

    The rows of a key always meet in one writer, so a repeated key is found all the same.
    """
    if job.bucket is None or rows.num_rows < THREADS_ROWS_MIN:
        return write_batches(rows.to_batches(), job)
    route = plan_route(job.forest, writers_max)
    table = np.array(route.writers, dtype=np.int32)
    numbers = table[key_hash(rows.column(job.bucket)) & np.int32(len(table) - 1)]
    shares = [rows.filter(pa.array(numbers == writer)) for writer in range(route.writer_count)]
    with ThreadPoolExecutor(len(shares)) as pool:
        done = list(pool.map(lambda share: write_batches(share.to_batches(), job), shares))
    files = tuple(file for written in done for file in written.files)
    return Written(files, next((written.problem for written in done if written.problem), None))


def remove_files(storage: Storage, paths: Iterable[str]) -> None:
    """Remove files of a write that was refused before any commit named them."""
    for path in paths:
        system, place = storage.open(path)
        system.delete_file(place)


def write_batches(batches: Iterable[pa.RecordBatch], job: WriteJob) -> Written:
    """Write a stream of batches and return the finished files."""
    writer = TreeWriter(job)
    optional = pa.schema([column.with_nullable(True) for column in job.schema])
    for batch in batches:
        rows = pa.Table.from_batches([batch])
        writer.write(rows if rows.schema.equals(optional) else rows.cast(optional))
    return writer.finish()
