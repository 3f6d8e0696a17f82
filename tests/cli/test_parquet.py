"""Parquet files that a user names."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from arcticlake.cli.parquet import read_parquet_rows
from arcticlake.errors import InvalidRequest


def test_a_parquet_file_keeps_its_types_whatever_its_folder_is_called(tmp_path: Path) -> None:
    folder = tmp_path / "day=1"
    folder.mkdir()
    rows = pa.table({"id": pa.array([1], pa.int16())})
    pq.write_table(rows, folder / "rows.parquet")

    assert read_parquet_rows(folder / "rows.parquet").equals(rows)


def test_a_file_that_is_no_parquet_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    path.write_text("id,name")

    with pytest.raises(InvalidRequest, match="cannot be read as Parquet"):
        read_parquet_rows(path)
