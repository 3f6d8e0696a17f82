from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.expressions.parser import parse
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat

from arcticlake.read.iceberg import arrow_condition, load_positions
from arcticlake.table.ddl import schema_from_ddl
from arcticlake.tree.files import FileEntry
from arcticlake.tree.node import ROOT
from tests.tree.strategies import file_in


def delete_file(path: Path, *rows: tuple[str, int]) -> DataFile:
    """Write a position-delete file as another engine would."""
    names, positions = zip(*rows, strict=True)
    pq.write_table(pa.table({"file_path": names, "pos": pa.array(positions, pa.int64())}), path)
    return DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=str(path),
        file_format=FileFormat.PARQUET,
        record_count=len(rows),
        file_size_in_bytes=path.stat().st_size,
    )


def with_deletes(path: str, *deletes: DataFile) -> FileEntry:
    return replace(file_in(ROOT, path=path), row_deletes=deletes)


def test_positions_of_several_delete_files_are_joined_by_data_file(tmp_path: Path) -> None:
    first = delete_file(tmp_path / "d1", ("a", 3), ("a", 0), ("b", 1))
    second = delete_file(tmp_path / "d2", ("a", 3), ("a", 7))

    found = load_positions(
        PyArrowFileIO(),
        [
            with_deletes("a", first, second),
            with_deletes("b", first),
            with_deletes("c", first),
            with_deletes("d"),
        ],
    )

    assert {path: rows.tolist() for path, rows in found.items()} == {"a": [0, 3, 7], "b": [1]}


def test_no_deletes_open_no_file() -> None:
    assert load_positions(PyArrowFileIO(), [with_deletes("a")]) == {}


def test_a_condition_filters_arrow_rows_with_names_in_any_case() -> None:
    schema = schema_from_ddl("id bigint, v string")
    rows = pa.table({"id": [1, 2, None], "v": ["a", "b", None]})

    def matching(text: str) -> list[object]:
        found: list[object] = rows.filter(arrow_condition(parse(text), schema))["v"].to_pylist()
        return found

    assert matching("ID > 1") == ["b"]
    assert matching("v is null or id = 1") == ["a", None]
