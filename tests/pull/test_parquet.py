"""One file as rows of a change feed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from arcticlake import Lake, Table
from arcticlake.pull.parquet import PullTask, pull_file
from arcticlake.read.parquet import FileToScan
from arcticlake.table.types import arrow_schema
from arcticlake.tree.files import FileEntry, Role
from tests.verbs.shop import keys, orders, rows


@pytest.fixture
def table(lake: Lake) -> Table:
    return orders(lake, options={"initial-nodes": 1})


def task_of(file: FileEntry) -> PullTask:
    return PullTask(FileToScan(file.path, file.role, file.rows, 7), 7, 1000, 1)


def pulled(table: Table, role: Role) -> list[dict[str, object]]:
    state = table._opened.state()
    (file,) = state.files.changes if role is Role.CHANGE else state.files.bases
    schema = arrow_schema(state.pair.spec.schema)
    dead = np.zeros(file.rows, dtype=bool)
    dead[0] = True
    found = pull_file(state.pair.storage, task_of(file), schema, dead)
    return [row for batch in found for row in batch.to_pylist()]


def test_change_rows_carry_their_type_and_place(table: Table) -> None:
    table.delete(keys(1, 2, 3))

    found = pulled(table, Role.CHANGE)

    assert [(row["order_id"], row["_change_type"], row["_order"]) for row in found] == [
        *((2, "delete", 1), (3, "delete", 2))
    ]
    assert {row["_commit_version"] for row in found} == {7}


def test_rows_of_a_batch_are_inserts(table: Table) -> None:
    table.insert(rows([1, 2]))

    (row,) = pulled(table, Role.BASE)

    assert (row["_change_type"], row["_order"], row["_commit_version"]) == ("insert", None, 7)
    assert pa.scalar(row["_commit_timestamp"]).is_valid
