"""WriteJob: all that a writer needs to know, and Written: what it did; both pickle.

Nothing here imports pyiceberg, whose start would cost every worker a second; `ingest/plan.py`
draws the job from a table's spec on the driver.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from arcticlake.table.storage import Storage
from arcticlake.tree.forest import Forest
from arcticlake.tree.hash import PlaceTerm
from arcticlake.tree.node import Node

BUFFER_BYTES_MAX = 256 * 2**20
"""All buffers of one writer together; the worker's memory follows this number."""


@dataclass(frozen=True, slots=True)
class WriteJob:
    """All that a writer needs to know; pickles to executors."""

    location: str
    """Folder of the data files."""
    storage: Storage
    schema: pa.Schema
    """Columns to write, with field ids."""
    key: tuple[str, ...]
    bucket: str | None
    terms: tuple[PlaceTerm, ...]
    forest: Forest
    file_bytes_max: int
    split_full_leaves: bool
    unique: tuple[str, ...]
    """Columns that must be unique over all rows: the key, with the order if there is one."""
    required: tuple[str, ...]
    """Columns that are NOT NULL, beside the key; deletes need not have them."""
    buffer_bytes_max: int = BUFFER_BYTES_MAX


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """One finished file, as the committer needs it."""

    path: str
    partition: tuple[object, ...]
    node: Node
    rows: int
    size: int
    footer: bytes
    """The pickled Parquet metadata, for the statistics of the manifest."""


@dataclass(frozen=True, slots=True)
class Written:
    """What one writer did."""

    files: tuple[WrittenFile, ...]
    problem: str | None = None
    """Why these rows cannot be committed, as text; None when they can."""
