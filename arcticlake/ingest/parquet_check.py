"""Rules on rows, checked on files that another writer made: the JVM's, in a large load.

Python's own writer sees every row and checks as it goes. Files of the JVM are judged afterwards and
before the commit: NULLs by the counts in their footers, repeated keys leaf by leaf, since the rows
of one key share a leaf.

Touches data files, which it only reads, and what the other writer left beside them.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from arcticlake.ingest.job import WriteJob, Written, WrittenFile
from arcticlake.tree.node import Node

_READERS = 4


def written_by_others(job: WriteJob, folder: str, nodes: Sequence[Node]) -> Written:
    """Return the files below a folder that has one sub-folder for each leaf, and judge them."""
    system, place = job.storage.open(folder)
    everything = system.get_file_info(fs.FileSelector(place, recursive=True))
    found = [info for info in everything if info.is_file and info.extension == "parquet"]
    for info in everything:
        if info.is_file and info not in found:  # checksums and markers of the other writer
            system.delete_file(info.path)
    root = folder.removesuffix(place)
    with ThreadPoolExecutor(_READERS) as pool:
        footers = list(pool.map(lambda info: pq.read_metadata(info.path, system), found))
    files = tuple(
        WrittenFile(
            path=root + info.path,
            partition=(),
            node=nodes[int(info.path.split("/")[-2].rpartition("=")[2])],
            rows=footer.num_rows,
            size=info.size,
            footer=pickle.dumps(footer),
        )
        for info, footer in zip(found, footers, strict=True)
        if footer.num_rows
    )
    problem = next(filter(None, (_null_problem(footer, job) for footer in footers)), None)
    return Written(files, problem or _repeated_key(job, files))


def _null_problem(footer: pq.FileMetaData, job: WriteJob) -> str | None:
    for group in range(footer.num_row_groups):
        for number in range(footer.num_columns):
            column = footer.row_group(group).column(number)
            name, statistics = column.path_in_schema, column.statistics
            nulls = 0 if statistics is None else statistics.null_count or 0
            if nulls and name in job.key:
                return f"{nulls} rows have NULL in {name}; a primary key cannot be NULL"
            if nulls and name in job.required:
                return f"{nulls} rows have NULL in {name}; the column is NOT NULL"
    return None


def _repeated_key(job: WriteJob, files: Sequence[WrittenFile]) -> str | None:
    for node in sorted({file.node for file in files}):
        keys = pl.concat(_keys(job, file.path) for file in files if file.node == node)
        if keys.n_unique() == keys.height:
            continue
        row = keys.filter(keys.is_duplicated()).row(0, named=True)
        shown = ", ".join(f"{name}={value!r}" for name, value in row.items())
        return f"the key {shown} comes twice in the rows; keep one row for each key"
    return None


def _keys(job: WriteJob, path: str) -> pl.DataFrame:
    system, place = job.storage.open(path)
    rows: pa.Table = pq.read_table(place, columns=list(job.key), filesystem=system)
    frame = pl.from_arrow(rows)
    assert isinstance(frame, pl.DataFrame)
    return frame
