"""What a pull needs of the two tables: the files of single snapshots, and rows to compare.

Only manifests that the snapshots of the range wrote themselves are opened (INC-16, INC-17), so the
cost follows the range and not the table. Comparing is the exception: it reads what the partitions
of an overwrite held before and after it.

Touches manifests and data files.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyiceberg.schema import Schema

from arcticlake.commit.history import View
from arcticlake.commit.iceberg_added import added_files, load_touched
from arcticlake.commit.iceberg_state import load_files
from arcticlake.pull.columns import CHANGE_TYPE, tell, travel_schema
from arcticlake.pull.difference import differ
from arcticlake.pull.steps import Step, Told
from arcticlake.read.arrow import resolve_jobs, run_jobs, scan_plan
from arcticlake.read.iceberg import load_positions
from arcticlake.read.plan import plan_scan
from arcticlake.table.change import ACTION, ORDER, SEQ
from arcticlake.table.hidden import HIDDEN_FIELDS
from arcticlake.table.iceberg import TablePair
from arcticlake.table.types import arrow_schema
from arcticlake.tree.files import FileEntry, Role, TableFiles
from arcticlake.tree.forest import Partition


def key_schema(pair: TablePair) -> pa.Schema:
    """Return the key columns with field ids."""
    return arrow_schema(Schema(*(pair.spec.schema.find_field(i) for i in pair.spec.key_ids)))


def order_schema() -> pa.Schema:
    """Return the hidden columns that a resolution reads, with field ids."""
    wanted = (ACTION, ORDER, SEQ)
    return arrow_schema(Schema(*(field for field in HIDDEN_FIELDS if field.name in wanted)))


def load_added(pair: TablePair, steps: Sequence[Step]) -> dict[int, list[FileEntry]]:
    """Return the files that each version brought."""
    found = {}
    for step in steps:
        if step.told is Told.DIFFERENCE:
            continue
        table = pair.base if step.role is Role.BASE else pair.change
        assert table is not None, "only a table with a key has changes"
        found[step.version] = added_files(pair.spec, table, step.role, step.snapshot_id)
    return found


def load_difference(pair: TablePair, step: Step, rank: int, schema: pa.Schema) -> pa.Table:
    """Return what a version changed, by comparing the rows before and at it."""
    assert step.before is not None, "a difference names what it compares"
    assert step.after is not None, "a difference names what it compares"
    touched = None if step.batch is None else load_touched(pair, step.batch)
    before, after = (_rows(pair, step, view, touched, schema) for view in (step.before, step.after))
    rows = differ(before, after, pair.spec.key)
    commit = (step.version, step.timestamp_ms, rank)
    batches = [
        tell(
            [batch.column(name) for name in schema.names],
            batch.column(CHANGE_TYPE),
            pa.nulls(batch.num_rows, pa.int64()),
            commit,
            schema,
        )
        for batch in rows.to_batches()
    ]
    return pa.Table.from_batches(batches, schema=travel_schema(schema))


def _rows(
    pair: TablePair,
    step: Step,
    view: View,
    touched: frozenset[Partition] | None,
    schema: pa.Schema,
) -> pa.Table:
    live = load_files(pair, view)
    if touched is not None:
        live = TableFiles(
            tuple(file for file in live.bases if file.partition in touched),
            tuple(file for file in live.changes if file.partition in touched),
        )
    plan = plan_scan(pair.spec, view, live, mode=step.reading, pruning=None)
    positions = load_positions(pair.base.io, plan.bases)
    jobs = resolve_jobs(plan, pair.storage, key_schema(pair), order_schema(), positions)
    return scan_plan(plan, pair.storage, schema, run_jobs(jobs), condition=None)
