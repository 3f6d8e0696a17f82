"""What a writer must know, drawn from a table's spec: the WriteJob of each role.

Pure.
"""

from __future__ import annotations

import pyarrow as pa
from pyiceberg.transforms import TruncateTransform
from pyiceberg.types import DateType

from arcticlake.ingest.job import WriteJob
from arcticlake.table.change import ORDER
from arcticlake.table.hidden import change_schema
from arcticlake.table.spec import PartitionTerm, TableSpec
from arcticlake.table.storage import Storage
from arcticlake.table.types import arrow_schema
from arcticlake.tree.forest import Forest
from arcticlake.tree.hash import PlaceTerm


def place_terms(spec: TableSpec) -> tuple[PlaceTerm, ...]:
    """Return the partition fields as executors see them."""
    return tuple(_place_term(spec, term) for term in spec.partition)


def _place_term(spec: TableSpec, term: PartitionTerm) -> PlaceTerm:
    column = spec.schema.find_field(term.source_id)
    width = term.transform.width if isinstance(term.transform, TruncateTransform) else 0
    kind = str(term.transform).partition("[")[0]
    if kind == "identity" and isinstance(column.field_type, DateType):
        kind = "day"  # the same days since 1970, and people read them as a date
    return PlaceTerm(column.name, kind, width, term.name)


def changes_schema(spec: TableSpec) -> pa.Schema:
    """Return the columns of change files, the hidden ones last, with field ids."""
    return arrow_schema(change_schema(spec.schema, spec.key_ids))


def change_job(
    spec: TableSpec, location: str, storage: Storage, forest: Forest, *, ordered: bool
) -> WriteJob:
    """Return the job of a writer of change files.

    Without an order, a key may come once; with one, each place of a key may.
    """
    return WriteJob(
        location=f"{location}/data",
        storage=storage,
        schema=changes_schema(spec),
        key=spec.key,
        bucket=_bucket(spec),
        terms=place_terms(spec),
        forest=forest,
        file_bytes_max=spec.options.leaf_commit_size,
        split_full_leaves=True,
        unique=(*spec.key, ORDER) if ordered else spec.key,
        required=_required(spec),
    )


def base_job(spec: TableSpec, location: str, storage: Storage, forest: Forest) -> WriteJob:
    """Return the job of a writer of base files.

    With a sort key rows come sorted, and a full file is followed by the next one of its leaf:
    that is the range split. Without, a full leaf is split by hash (SPL-05, SPL-06).
    """
    return WriteJob(
        location=f"{location}/data",
        storage=storage,
        schema=arrow_schema(spec.schema),
        key=spec.key,
        bucket=_bucket(spec),
        terms=place_terms(spec),
        forest=forest,
        file_bytes_max=spec.options.target_file_size,
        split_full_leaves=not spec.sort_ids,
        unique=spec.key,
        required=_required(spec),
    )


def _bucket(spec: TableSpec) -> str | None:
    return None if spec.bucket_id is None else spec.schema.find_field(spec.bucket_id).name


def _required(spec: TableSpec) -> tuple[str, ...]:
    return tuple(
        column.name
        for column in spec.schema.fields
        if column.required and column.field_id not in spec.key_ids
    )
