"""SnapshotChange: what one commit does to one Iceberg table, as a value.

Planners make it, `loop` may ask for it again on every new head, `iceberg` carries it out.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pyiceberg.manifest import DataFile
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema

from arcticlake.errors import Conflict, InvalidRequest

FORMAT_VERSION = 2


class Operation(StrEnum):
    """Iceberg's word for what a snapshot did; other engines' incremental readers go by it."""

    APPEND = "append"
    """Files were added, none removed."""
    REPLACE = "replace"
    """Files were exchanged and the rows are the same: pure compaction."""
    OVERWRITE = "overwrite"
    """Files were exchanged and the rows are others; a merge of changes is this too."""
    DELETE = "delete"
    """Files were removed, none added."""


@dataclass(frozen=True, slots=True)
class SnapshotChange:
    """What one commit does to a table; without files it is a marker that carries a summary."""

    operation: Operation
    added: tuple[DataFile, ...] = ()
    """New files; each has its `spec_id` set."""
    removed: frozenset[str] = frozenset()
    """Paths of live data or delete files."""
    summary: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    """Table properties that are set in the same commit."""
    sequences: Mapping[str, int] = field(default_factory=dict)
    """Sequence numbers of added files, by path, whose rows are older than this commit."""
    manifests_of: int | None = None
    """A snapshot whose files take the place of the head's: a rollback that keeps history."""
    schema: Schema | None = None
    """The table's schema from this commit on; None leaves it as it is."""


def check_change(
    change: SnapshotChange, specs: Mapping[int, PartitionSpec], *, table: str, format_version: int
) -> None:
    """Refuse what cannot be written, before anything is."""
    if format_version != FORMAT_VERSION:
        raise InvalidRequest(
            f"table {table} has Iceberg format version {format_version}; Arctic writes version "
            f"{FORMAT_VERSION} only: copy the rows into a table made by create_table"
        )
    paths = {file.file_path for file in change.added}
    assert len(paths) == len(change.added), "a file is added twice"
    assert not change.removed & paths, "a file is added and removed at once"
    for file in change.added:
        spec = specs.get(file.spec_id)
        if spec is None or len(spec.fields) != len(file.partition):
            raise Conflict(
                f"table {table}: partition spec {file.spec_id} of {file.file_path} is gone; "
                f"plan again on the new state"
            )
