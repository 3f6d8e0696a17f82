"""Which files a pull opens, and what it compares."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO

from arcticlake import Lake, Table
from arcticlake.commit.iceberg_state import load_log
from arcticlake.pull.columns import RANK
from arcticlake.pull.iceberg import key_schema, load_added, load_difference, order_schema
from arcticlake.pull.range import PullMode, Range
from arcticlake.pull.steps import Steps, plan_steps
from arcticlake.table.types import arrow_schema
from tests.verbs.shop import keys, orders, rows


@pytest.fixture
def table(lake: Lake) -> Table:
    return orders(lake, options={"initial-nodes": 1})


def steps_of(table: Table, since: int, until: int, *, difference: bool = False) -> Steps:
    log = load_log(table._opened.pair())
    return plan_steps(log, Range(since, until), PullMode.RAW, difference=difference)


def test_originals_are_found_after_compactions_took_them_away(table: Table) -> None:
    """INC-17: entries that the commit itself added."""
    first = table.insert(rows([1, 2])).version
    second = table.upsert(rows([2, 3])).version
    third = table.delete(keys(1)).version
    table.compact("minor")
    table.compact("major")
    table.compact("full")

    added = load_added(table._opened.pair(), steps_of(table, 0, third).steps)

    counts = {version: [file.rows for file in files] for version, files in added.items()}
    assert counts == {first: [2], second: [2], third: [1]}


def test_only_manifests_of_the_range_are_opened(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """INC-16: the list of each snapshot and the one manifest that it wrote."""
    for number in range(12):
        last = table.upsert(rows([number])).version
    pair = table._opened.pair()
    steps = steps_of(table, last - 2, last).steps
    opened: list[str] = []
    original = PyArrowFileIO.new_input

    def record(self: PyArrowFileIO, location: str) -> object:
        opened.append(location.rpartition("/")[2])
        return original(self, location)

    monkeypatch.setattr(PyArrowFileIO, "new_input", record)
    load_added(pair, steps)

    assert len(steps) == 2
    assert len({name for name in opened if not name.startswith("snap-")}) <= 2


def test_a_difference_is_what_a_reader_sees_before_and_after(table: Table) -> None:
    table.upsert(rows([1, 2, 3]))
    last = table.overwrite(rows([2, 4], "over")).version
    pair = table._opened.pair()
    (step,) = steps_of(table, last - 1, last, difference=True).steps

    found = load_difference(pair, step, 5, arrow_schema(pair.spec.schema)).to_pylist()

    assert [(row["order_id"], row["_change_type"]) for row in found] == [
        *((1, "delete"), (3, "delete"), (4, "insert"), (2, "update_postimage"))
    ]
    assert {(row["_commit_version"], row[RANK]) for row in found} == {(last, 5)}


def test_a_resolution_reads_keys_and_three_hidden_columns(table: Table) -> None:
    assert key_schema(table._opened.pair()).names == ["order_id"]
    assert order_schema().names == ["_action", "_order", "_seq"]
    assert order_schema().field("_seq").type == pa.int64()
