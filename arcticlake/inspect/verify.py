"""verify, file by file and unit by unit: what lies on disk against the rules of the table.

    each file   present, whole, field ids, bounds, node, partition, NOT NULL, sorted, actions
    each unit   places in history unique, each key live once, fast resolution = slow resolution

The slow resolution takes part while the whole table is small. A unit with a file that cannot be
read is left out of the second part, with a note.

Touches data files through `inspect/parquet.py`.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
)

from arcticlake.commit.history import SnapshotFact, View
from arcticlake.ingest.plan import place_terms
from arcticlake.inspect.groups import KeyedFile, Unit, check_unit, plan_units
from arcticlake.inspect.measure import is_pending
from arcticlake.inspect.parquet import Examined, FileToExamine, examine_file
from arcticlake.inspect.rows import RowRules
from arcticlake.inspect.value import decode_bound
from arcticlake.inspect.verdict import Findings, Rule
from arcticlake.table.change import ACTION, ORDER, SEQ
from arcticlake.table.hidden import change_schema
from arcticlake.table.spec import TableSpec
from arcticlake.table.storage import Storage
from arcticlake.table.types import arrow_schema
from arcticlake.tree.files import FileEntry, Role, TableFiles

ORACLE_ROWS_MAX = 200_000
"""Rows up to which the slow resolution takes part; it walks about 200,000 a second."""

Positions = Mapping[str, npt.NDArray[np.int64]]

_COMPARABLE = (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
)


@dataclass(frozen=True, slots=True)
class Subject:
    """The state of a table under examination."""

    spec: TableSpec
    view: View
    files: TableFiles
    facts: Mapping[int, SnapshotFact]
    """Snapshots of the base table's log by id."""
    storage: Storage
    load_positions: Callable[[Sequence[FileEntry]], Positions]
    """Reads the rows that other engines deleted."""
    deep: bool

    @property
    def small(self) -> bool:
        """Whether the slow resolution can take part."""
        return sum(file.rows for file in self.files.all) <= ORACLE_ROWS_MAX


@dataclass(slots=True)
class Outcome:
    """What the files of a table showed."""

    findings: Findings = field(default_factory=Findings)
    live_rows: int | None = 0
    """Rows that the resolution leaves alive; None if a unit could not be resolved."""


def verify_files(subject: Subject) -> Outcome:
    """Examine every live file, one unit at a time."""
    outcome = Outcome()
    spec = subject.spec
    alone = spec.key_decides_partition or not spec.keyed
    for unit in plan_units(subject.files.all, key_decides_partition=alone):
        members = [file for group in unit.groups for file in group]
        with ThreadPoolExecutor(max(1, min(len(members), os.cpu_count() or 1))) as pool:
            examined = list(pool.map(examine_file, (_asked(subject, f) for f in members)))
        outcome.findings.take(one.findings for one in examined)
        if spec.keyed:
            _verify_unit(subject, unit, {one.path: one for one in examined}, outcome)
    return outcome


def _verify_unit(
    subject: Subject, unit: Unit, examined: Mapping[str, Examined], outcome: Outcome
) -> None:
    findings = outcome.findings
    positions = _positions(subject, unit, findings)
    broken = sorted(path for path, one in examined.items() if one.rows is None)
    if broken or positions is None:
        outcome.live_rows = None
        findings.notes.append(f"keys of {unit.name} were not compared: not all files can be read")
        return
    groups = [
        [
            _keyed(subject, file, examined[file.path], positions)
            for file in _readable(subject, group)
        ]
        for group in unit.groups
    ]
    sound = not any(one.findings.problems for one in examined.values())
    found, alive = check_unit(groups, subject.spec.key, oracle=sound and subject.small)
    findings.take([found])
    if outcome.live_rows is not None:
        outcome.live_rows += alive


def _readable(subject: Subject, group: Sequence[FileEntry]) -> list[FileEntry]:
    """Return the files that a reader takes: base, and changes that are not merged yet."""
    return [file for file in group if file.role is Role.BASE or is_pending(file, subject.view)]


def _keyed(
    subject: Subject, file: FileEntry, examined: Examined, positions: Positions
) -> KeyedFile:
    assert examined.rows is not None, "only files that can be read are compared"
    sequence = file.sequence
    if file.role is Role.BASE:
        sequence = subject.view.base_sequence(file.snapshot_id)
    watermark, node = subject.view.watermark, file.node
    return KeyedFile(
        file.path,
        file.role,
        sequence,
        examined.rows,
        positions.get(file.path),
        after=watermark.merged(file.partition, node.mask, node.index),
    )


def _positions(subject: Subject, unit: Unit, findings: Findings) -> Positions | None:
    marked = [file for group in unit.groups for file in group if file.row_deletes]
    if not marked:
        return {}
    deletes = sorted({delete.file_path for file in marked for delete in file.row_deletes})
    findings.count(Rule.ROW_DELETES, len(deletes), "delete files")
    try:
        return subject.load_positions(marked)
    except Exception as error:  # noqa: BLE001 - Puffin, Avro and Parquet break in many ways
        message = f"row deletes of {unit.name} cannot be read: {error!r}"
        findings.add(Rule.ROW_DELETES, message, deletes[0])
        return None


def _asked(subject: Subject, file: FileEntry) -> FileToExamine:
    spec = subject.spec
    change = file.role is Role.CHANGE
    fact = subject.facts.get(file.snapshot_id)
    ours = change or fact is None or fact.ours
    table = change_schema(spec.schema, spec.key_ids) if change else spec.schema
    promised = spec.sort if fact is not None and fact.ours and not change else ()
    hidden = (ACTION, ORDER, SEQ) if change else ()
    looked = {*spec.key, *spec.names(spec.partition_source_ids), *promised, *hidden}
    columns = [c for c in table.fields if subject.deep or c.name in looked]
    rules = RowRules(
        file=file,
        key=spec.key,
        bucket=None if spec.bucket_id is None else spec.names((spec.bucket_id,))[0],
        terms=place_terms(spec),
        required=tuple(
            c.name for c in spec.schema.fields if c.required and c.field_id not in spec.key_ids
        ),
        sort=promised,
        bounds=_bounds(file, columns),
    )
    return FileToExamine(
        storage=subject.storage,
        rules=rules,
        schema=_schema(columns or list(table.fields[:1])),
        kept=(*spec.key, *hidden),
        ours=ours,
        deep=subject.deep,
    )


def _schema(columns: Sequence[NestedField]) -> pa.Schema:
    return arrow_schema(Schema(*columns))


def _bounds(file: FileEntry, columns: Sequence[NestedField]) -> dict[str, tuple[object, object]]:
    record = file.data_file
    lowers, uppers = record.lower_bounds or {}, record.upper_bounds or {}
    return {
        column.name: (_bound(column, lowers), _bound(column, uppers))
        for column in columns
        if isinstance(column.field_type, _COMPARABLE)
        and (column.field_id in lowers or column.field_id in uppers)
    }


def _bound(column: NestedField, raw: Mapping[int, bytes]) -> object:
    assert isinstance(column.field_type, _COMPARABLE), "asked for comparable columns only"
    if column.field_id not in raw:
        return None
    try:
        return decode_bound(column.field_type, raw[column.field_id])
    except (ValueError, struct.error):
        return None  # of a kind that this column no longer has; readers do not use it either
