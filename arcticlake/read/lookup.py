"""Which of some keys exist, and in which partition: the one look-up Arctic ever does.

A plain upsert needs none of this. A batch insert does, because a key that exists is an error, and
so does an upsert into a table whose partition does not follow from the key (`locate`).

Only groups of files whose nodes and key ranges meet the wanted keys are read, and of them only
key columns (and the columns asked for).

Touches data files through `read/arrow.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl
import pyarrow as pa

from arcticlake.commit.history import View
from arcticlake.read.arrow import Positions, resolve_jobs, run_jobs, scan_plan
from arcticlake.read.parquet import read_frame
from arcticlake.read.plan import ReadMode, plan_scan
from arcticlake.table.spec import TableSpec
from arcticlake.table.storage import Storage
from arcticlake.tree.files import FileEntry, TableFiles
from arcticlake.tree.forest import tops
from arcticlake.tree.hash import key_hash
from arcticlake.tree.node import Node


@dataclass(frozen=True, slots=True)
class Lookup:
    """A state of a table to look keys up in."""

    spec: TableSpec
    view: View
    files: TableFiles
    storage: Storage
    schema: pa.Schema
    """All business columns with field ids."""
    hidden_schema: pa.Schema
    positions: Positions

    @property
    def key_schema(self) -> pa.Schema:
        """Key columns with field ids."""
        return pa.schema([self.schema.field(name) for name in self.spec.key])

    def live(self, files: TableFiles, columns: Sequence[str]) -> pl.DataFrame:
        """Return columns of the live rows of some files."""
        plan = plan_scan(self.spec, self.view, files, mode=ReadMode.MERGED, pruning=None)
        jobs = resolve_jobs(plan, self.storage, self.key_schema, self.hidden_schema, self.positions)
        wanted = pa.schema([self.schema.field(name) for name in columns])
        rows = scan_plan(plan, self.storage, wanted, run_jobs(jobs), condition=None)
        frame = pl.from_arrow(rows)
        assert isinstance(frame, pl.DataFrame)
        return frame


def find_rows(lookup: Lookup, keys: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Return key and further columns of the live rows with one of the keys."""
    spec = lookup.spec
    wanted = tuple(dict.fromkeys((*spec.key, *columns)))
    bucket = spec.names((spec.bucket_id or spec.key_ids[0],))[0]
    hashes = key_hash(keys[bucket].to_arrow())
    found: list[pl.DataFrame] = []
    for top in tops(file.node for file in lookup.files.all):
        mine = keys.filter(pl.Series(hashes & top.mask == top.index))
        if mine.height == 0:
            continue
        rows = lookup.live(_files_under(lookup.files, top), wanted)
        found.append(rows.join(mine.select(spec.key), on=list(spec.key), how="semi"))
    return pl.concat(found) if found else lookup.live(TableFiles((), ()), wanted)


class MetKey(NamedTuple):
    """A key of new rows that the table knows already."""

    key: str
    live: bool
    """False: base still holds a row of it, which a pending change deleted."""


def first_met(
    lookup: Lookup, written: Sequence[tuple[str, tuple[object, ...], Node]]
) -> MetKey | None:
    """Return a key of freshly written files that the table knows; a live one before a dead one.

    `written` is (path, partition, node) of each new file; they are compared subtree by subtree.
    """
    spec = lookup.spec
    dead: MetKey | None = None
    for top in tops([*(file.node for file in lookup.files.all), *(node for _, _, node in written)]):
        new = [(path, part) for path, part, node in written if top.lineal(node)]
        old = _files_under(lookup.files, top)
        if spec.key_decides_partition:
            partitions = {part for _, part in new}
            old = TableFiles(
                tuple(f for f in old.bases if f.partition in partitions),
                tuple(f for f in old.changes if f.partition in partitions),
            )
        if not new or not old.all:
            continue
        keys = pl.concat(read_frame(lookup.storage, path, lookup.key_schema) for path, _ in new)
        if found := _first_shared(keys, lookup.live(old, spec.key)):
            return MetKey(found, live=True)
        if old.changes and old.bases and dead is None:
            held = [read_frame(lookup.storage, file.path, lookup.key_schema) for file in old.bases]
            found = _first_shared(keys, pl.concat(held))
            dead = MetKey(found, live=False) if found else None
    return dead


def _first_shared(keys: pl.DataFrame, others: pl.DataFrame) -> str | None:
    met = keys.join(others, on=keys.columns, how="semi")
    if met.height == 0:
        return None
    return ", ".join(f"{name}={value!r}" for name, value in met.row(0, named=True).items())


def _files_under(files: TableFiles, top: Node) -> TableFiles:
    def mine(file: FileEntry) -> bool:
        return top.lineal(file.node)

    return TableFiles(tuple(filter(mine, files.bases)), tuple(filter(mine, files.changes)))
