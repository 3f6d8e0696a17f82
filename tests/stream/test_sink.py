"""Rows of a stream as the tasks of the thin door bring them into the table's columns."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from arcticlake import Lake
from arcticlake.errors import InvalidRequest
from arcticlake.ingest.plan import base_job, change_job
from arcticlake.stream.sink import (
    SinkJob,
    SinkRequest,
    parse_options,
    repeated,
    rows_to_write,
)
from arcticlake.table.change import ACTION, ORDER
from arcticlake.table.types import arrow_schema
from arcticlake.tree.forest import Forest
from tests.verbs.shop import NAME, orders, rows


def job(warehouse: Path, request: SinkRequest, key: str = "order_id") -> SinkJob:
    pair = orders(Lake.open(str(warehouse)), primary_key=key or ())._opened.pair()
    target, forest = arrow_schema(pair.spec.schema), Forest(4)
    if not key:
        return SinkJob(request, target, base_job(pair.spec, "w", pair.storage, forest), False)
    ordered = request.order_by is not None
    write = change_job(pair.spec, "w", pair.storage, forest, ordered=ordered)
    return SinkJob(request, target, write, True)


def test_options_name_the_table_and_its_rules() -> None:
    found = parse_options({"path": NAME, "order_by": "lsn", "delete_when": "op = 'D'"})

    assert found == SinkRequest(NAME, "lsn", "op = 'D'")
    with pytest.raises(InvalidRequest, match="name the table in start"):
        parse_options({"warehouse": "w"})
    with pytest.raises(InvalidRequest, match="no option 'deletewhen'; did you mean delete_when"):
        parse_options({"path": NAME, "checkpointlocation": "c", "deletewhen": "op = 'D'"})


def test_rows_become_changes_with_order_and_action(warehouse: Path) -> None:
    asked = job(warehouse, SinkRequest(NAME, "lsn", "op = 'D'"))
    incoming = rows([1, 2]).append_column("lsn", pa.array([7, 8]))
    incoming = incoming.append_column("op", pa.array(["U", "D"]))

    found = rows_to_write(incoming, pickle.loads(pickle.dumps(asked)), 5)

    assert found.column(ACTION).to_pylist() == ["+U", "-D"]
    assert found.column(ORDER).to_pylist() == [7, 8]
    assert found.column_names == asked.write.schema.names


def test_rows_of_a_table_without_a_key_stay_as_they_are(warehouse: Path) -> None:
    asked = job(warehouse, SinkRequest(NAME), key="")

    assert rows_to_write(rows([1, 1]), asked, 5).column_names == rows([1]).column_names


def test_a_column_that_the_table_lacks_is_refused(warehouse: Path) -> None:
    asked = job(warehouse, SinkRequest(NAME))

    with pytest.raises(InvalidRequest, match="there is no column lsn"):
        rows_to_write(rows([1]).append_column("lsn", pa.array([7])), asked, 5)


def test_a_key_that_two_tasks_wrote_is_told() -> None:
    one, two = pa.table({"order_id": [1, 2]}), pa.table({"order_id": [3, 2]})

    assert repeated([]) is None
    assert repeated([one, pa.table({"order_id": [3]})]) is None
    assert "order_id=2 comes twice" in str(repeated([one, two]))
