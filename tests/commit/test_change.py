from __future__ import annotations

import pytest
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation as IcebergOperation

from arcticlake.commit.change import Operation, SnapshotChange, check_change
from arcticlake.errors import Conflict, InvalidRequest
from tests.commit.lab import append, stand_in


def test_operations_are_icebergs() -> None:
    assert {op.value for op in Operation} == {op.value for op in IcebergOperation}


def test_only_format_version_2_is_written(table: Table) -> None:
    for version in (1, 3):
        with pytest.raises(InvalidRequest, match=f"format version {version}"):
            check_change(append(), table.specs(), table="db.t", format_version=version)


def test_a_file_of_an_unknown_spec_or_of_another_shape_is_a_conflict(table: Table) -> None:
    for file in (stand_in(table, 0, spec_id=9), stand_in(table, 0, "more")):
        with pytest.raises(Conflict, match="is gone"):
            check_change(append(file), table.specs(), table="db.t", format_version=2)


def test_a_file_is_added_once_and_not_removed_at_the_same_time(table: Table) -> None:
    file = stand_in(table)
    both = SnapshotChange(Operation.OVERWRITE, (file,), frozenset({file.file_path}))

    for change in (append(file, file), both):
        with pytest.raises(AssertionError):
            check_change(change, table.specs(), table="db.t", format_version=2)
