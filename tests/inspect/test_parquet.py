from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from arcticlake.inspect.parquet import Examined, FileToExamine, examine_file
from arcticlake.inspect.rows import RowRules
from arcticlake.table.storage import Storage
from arcticlake.tree.node import ROOT
from tests.inspect.lab import Place, data_file, entry, flip_byte, flip_data_byte

FIELD_ID = "PARQUET:field_id"
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), metadata={FIELD_ID: "1"}),
        pa.field("v", pa.string(), metadata={FIELD_ID: "2"}),
    ]
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "f.parquet"
    rows = pa.table({"id": range(1000), "v": [f"v{n}" for n in range(1000)]}).cast(SCHEMA)
    pq.write_table(rows, path, write_page_checksum=True, store_schema=False, row_group_size=400)
    return path


def examine(
    path: Path,
    *,
    schema: pa.Schema = SCHEMA,
    ours: bool = True,
    deep: bool = True,
    rows: int = 1000,
    size: int | None = None,
    record: dict[str, object] | None = None,
) -> Examined:
    made = entry(str(path), Place(ROOT), rows=rows)
    file = type(made)(
        **{
            **{name: getattr(made, name) for name in made.__slots__},
            "bytes": (path.stat().st_size if path.exists() else 0) if size is None else size,
            "data_file": data_file(str(path), rows, **(record or {})),
        }
    )
    rules = RowRules(file, ("id",), "id", (), (), (), {"id": (0, 999), "v": ("v0", "v999")})
    return examine_file(FileToExamine(Storage(), rules, schema, kept=("id",), ours=ours, deep=deep))


def broken(examined: Examined) -> set[str]:
    return {problem.check for problem in examined.findings.problems}


def test_a_whole_file_is_read_to_its_last_row(path: Path) -> None:
    examined = examine(path)

    assert not examined.findings.problems
    assert examined.rows is not None
    assert examined.rows["id"].to_list() == list(range(1000))


def test_a_missing_file_is_told_and_not_raised(tmp_path: Path) -> None:
    examined = examine(tmp_path / "gone.parquet")

    assert examined.rows is None
    assert [problem.message for problem in examined.findings.problems] == ["the file is missing"]
    assert examined.findings.problems[0].path == str(tmp_path / "gone.parquet")


def test_a_truncated_file_is_told(path: Path) -> None:
    whole = path.stat().st_size
    os.truncate(path, whole // 2)

    assert broken(examine(path, size=whole)) == {"files", "content"}


def test_a_flipped_byte_in_a_page_is_found_by_its_checksum(path: Path) -> None:
    flip_data_byte(path, column=1)

    assert broken(examine(path)) == {"content"}
    assert not examine(path, deep=False, schema=SCHEMA.remove(1)).findings.problems


def test_no_broken_footer_ends_the_process(path: Path) -> None:
    """PyArrow aborts when asked for a broken column chunk; reading first avoids that."""
    raw = path.read_bytes()
    footer = int.from_bytes(raw[-8:-4], "little")
    for place in range(len(raw) - 8 - footer, len(raw), 7):
        flip_byte(path, place)
        examine(path)
        path.write_bytes(raw)

    assert not examine(path).findings.problems


def test_row_count_and_column_sizes_must_be_those_of_the_manifest(path: Path) -> None:
    assert broken(examine(path, rows=999)) == {"files"}
    assert broken(examine(path, record={"value_counts": {1: 999}})) == {"files"}
    assert broken(examine(path, record={"column_sizes": {1: 1}})) == {"files"}
    assert not broken(examine(path, record={"column_sizes": {1: 1}}, ours=False))


def test_columns_that_the_manifest_counts_must_be_in_the_file(path: Path) -> None:
    wider = SCHEMA.append(pa.field("w", pa.int64(), metadata={FIELD_ID: "3"}))

    assert not broken(examine(path, schema=wider))
    assert broken(examine(path, schema=wider, record={"value_counts": {3: 1000}})) == {"field-ids"}


def test_files_of_ours_carry_field_ids_and_others_are_only_noted(tmp_path: Path) -> None:
    path = tmp_path / "plain.parquet"
    pq.write_table(pa.table({"id": range(1000), "v": ["v1"] * 1000}), path)

    assert broken(examine(path)) == {"field-ids"}
    stranger = examine(path, ours=False)
    assert not stranger.findings.problems
    assert len(stranger.findings.notes) == 1
