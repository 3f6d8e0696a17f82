from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql.types import LongType

from arcticlake import Lake
from arcticlake.errors import InvalidRequest
from arcticlake.stream.spark_reader import StreamReader, feed_struct
from tests.verbs.shop import NAME, orders, rows


def test_workers_start_without_pyiceberg() -> None:
    """Importing it would cost every Python worker a second, for reading and for writing."""
    code = "import sys, arcticlake.stream.spark_source; sys.exit('pyiceberg' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_reader_that_was_used_on_the_driver_is_not_needed_by_tasks(
    lake: Lake, warehouse: Path
) -> None:
    orders(lake).upsert(rows([1, 2]))
    options = {"path": NAME, "warehouse": str(warehouse), "order": "true"}
    struct = feed_struct(options)
    assert struct["_change_order"].dataType == LongType()
    task: StreamReader = pickle.loads(pickle.dumps(StreamReader(options, struct)))
    driver = StreamReader(options, struct)

    start = driver.initialOffset()
    end = driver.latestOffset(start, driver.getDefaultReadLimit())
    shares = driver.partitions(start, end)

    read = [row for share in shares for batch in task.read(share) for row in batch.to_pylist()]
    assert sorted(row["order_id"] for row in read) == [1, 2]
    assert task._loaded is None


def test_options_that_do_not_exist_are_refused_when_the_stream_is_loaded(warehouse: Path) -> None:
    with pytest.raises(InvalidRequest, match="did you mean pollInterval"):
        feed_struct({"path": NAME, "warehouse": str(warehouse), "pollIntervall": "1"})
