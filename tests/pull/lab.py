"""A log as values: versions of both tables without a catalog, for tests of planning."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyiceberg.manifest import DataFile

from arcticlake.commit.history import BASE_SNAPSHOT, COMMIT_ID, CONTAINS, KIND, Log, SnapshotFact
from arcticlake.table.watermark import AHEAD, THROUGH
from arcticlake.tree.files import FileEntry, Role
from arcticlake.tree.node import ROOT, Node

BASE_IDS = 100
"""Base snapshot of sequence n has the id 100 + n, change snapshot n the id n."""


def fact(
    sequence: int, kind: str, summary: Mapping[str, str], *, first_id: int = 0
) -> SnapshotFact:
    told = {COMMIT_ID: f"{first_id}-{sequence}", KIND: kind, **summary}
    return SnapshotFact(first_id + sequence, sequence, sequence * 1000, "append", 0, told)


def change(sequence: int, kind: str = "upsert") -> SnapshotFact:
    return fact(sequence, kind, {})


def marker(sequence: int, base: int, kind: str = "insert", **summary: str) -> SnapshotFact:
    return fact(sequence, kind, {BASE_SNAPSHOT: str(BASE_IDS + base), **summary})


def batch(sequence: int, kind: str = "insert", *, through: int = 0, **summary: str) -> SnapshotFact:
    return fact(sequence, kind, {THROUGH: str(through), **summary}, first_id=BASE_IDS)


def merge(
    sequence: int, contains: int, through: int, ahead: Mapping[int, int] | None = None
) -> SnapshotFact:
    """A compaction; `ahead` names nodes of depth 1 that are merged further."""
    told = {CONTAINS: str(contains), THROUGH: str(through)}
    if ahead:
        told[AHEAD] = json.dumps([[[], 1, index, merged] for index, merged in ahead.items()])
    return fact(sequence, "major", told, first_id=BASE_IDS)


def log(base: list[SnapshotFact], changes: list[SnapshotFact] | None) -> Log:
    return Log("a.b", tuple(base), None if changes is None else tuple(changes))


def file(
    path: str,
    sequence: int,
    *,
    role: Role = Role.CHANGE,
    node: Node = ROOT,
    partition: tuple[object, ...] = (),
) -> FileEntry:
    return FileEntry(
        path=path,
        role=role,
        partition=partition,
        node=node,
        rows=1,
        bytes=10,
        key_lower=(None,),
        key_upper=(None,),
        sort_lower=(),
        sort_upper=(),
        snapshot_id=sequence,
        sequence=sequence,
        data_file=DataFile.from_args(file_path=path),
    )
