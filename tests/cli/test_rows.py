"""Files of text become the types of the table, or nothing at all."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from arcticlake.cli.rows import from_json, read_rows
from arcticlake.errors import InvalidRequest, NotFound

TARGET = pa.schema(
    [
        ("id", pa.int64()),
        ("price", pa.decimal128(6, 2)),
        ("weight", pa.float64()),
        ("open", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("local", pa.timestamp("us")),
        ("name", pa.string()),
        ("raw", pa.binary()),
    ]
)
WANTED = {
    "id": 1,
    "price": Decimal("2.50"),
    "weight": 0.5,
    "open": True,
    "day": date(2026, 11, 15),
    "at": datetime(2026, 11, 15, 10, tzinfo=UTC),
    "local": datetime(2026, 11, 15, 12),  # noqa: DTZ001 - a timestamp without a zone
    "name": "",
    "raw": b"\x00\xff",
}


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_csv_values_become_the_types_of_the_table(tmp_path: Path) -> None:
    head = "id,price,weight,open,day,at,local,name,raw,lsn,op"
    full = '1, 2.5 ,0.5,true,2026-11-15,2026-11-15T12:00:00+02:00,2026-11-15 12:00:00,"",AP8=,7,U'
    path = write(tmp_path, "rows.csv", f"{head}\n{full}\n{',' * 10}\n")

    first, second = read_rows(path, TARGET).to_pylist()

    assert first == {**WANTED, "lsn": 7, "op": "U"}
    assert set(second.values()) == {None}


def test_json_lines_become_the_types_of_the_table(tmp_path: Path) -> None:
    full = (
        '{"id": 1, "price": 2.5, "weight": 0.5, "open": true, "day": "2026-11-15", "at": '
        '"2026-11-15T10:00:00Z", "local": "2026-11-15T12:00:00", "name": "", "raw": "AP8="}'
    )
    path = write(tmp_path, "rows.jsonl", f'{full}\n\n{{"lsn": 8}}\n')

    first, second = read_rows(path, TARGET).to_pylist()

    assert first == {**WANTED, "lsn": None}
    assert second == {**dict.fromkeys(TARGET.names), "lsn": 8}


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ("id", "1.5"),
        ("id", "9223372036854775808"),
        ("price", "1.005"),
        ("price", "12345.00"),
        ("open", "yes"),
        ("day", "15.11.2026"),
        ("at", "noon"),
        ("local", "2026-11-15T12:00:00Z"),
        ("raw", "not base64"),
    ],
)
def test_a_csv_value_that_does_not_fit_is_named_with_its_row(
    tmp_path: Path, column: str, text: str
) -> None:
    path = write(tmp_path, "rows.csv", f"{column}\n\n{text}\n")

    with pytest.raises(InvalidRequest, match=rf"row \d: column {column} is .*'{text}' is none"):
        read_rows(path, TARGET)


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ("id", '"1"'),
        ("id", "true"),
        ("id", "1.0"),
        ("price", '"much"'),
        ("open", "1"),
        ("day", "20261115"),
        ("local", '"2026-11-15T12:00:00Z"'),
        ("name", "5"),
        ("raw", '"?"'),
    ],
)
def test_a_json_value_that_does_not_fit_is_named_with_its_line(
    tmp_path: Path, column: str, text: str
) -> None:
    path = write(tmp_path, "rows.json", f'{{"id": 1}}\n{{"{column}": {text}}}\n')

    with pytest.raises(InvalidRequest, match=f"line 2: column {column} is "):
        read_rows(path, TARGET)


def test_a_decimal_in_json_is_never_rounded(tmp_path: Path) -> None:
    path = write(tmp_path, "rows.jsonl", '{"price": 1.005}\n')

    with pytest.raises(InvalidRequest, match="price"):
        read_rows(path, TARGET)


def test_nested_values_follow_their_types() -> None:
    kind = pa.struct({"tags": pa.list_(pa.string()), "counts": pa.map_(pa.int64(), pa.float64())})
    given = {"tags": ["a", None], "counts": {"1": 2, "3": "NaN"}}

    read = from_json(given, kind)

    assert isinstance(read, dict)
    assert read["tags"] == ["a", None]
    assert read["counts"][0] == (1, 2.0)
    with pytest.raises(ValueError, match="other"):
        from_json({"other": 1}, kind)


def test_nested_columns_are_too_much_for_csv(tmp_path: Path) -> None:
    path = write(tmp_path, "rows.csv", "tags\na\n")

    with pytest.raises(InvalidRequest, match="JSON lines or Parquet"):
        read_rows(path, pa.schema({"tags": pa.list_(pa.string())}))


@pytest.mark.parametrize("text", ["[1]", "{", '{"id": 1, "ID": 2}'])
def test_a_line_must_be_one_object(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, "rows.jsonl", text)
    if text.startswith('{"id"'):
        assert read_rows(path, TARGET).num_columns == 2  # the table refuses it by name
        return

    with pytest.raises(InvalidRequest, match="line 1"):
        read_rows(path, TARGET)


def test_a_file_must_exist_and_have_a_known_ending(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="does not exist"):
        read_rows(tmp_path / "none.csv", TARGET)
    with pytest.raises(NotFound, match="not a file"):
        read_rows(tmp_path, TARGET)
    with pytest.raises(InvalidRequest, match=r"ending \.xlsx is not known"):
        read_rows(write(tmp_path, "rows.xlsx", ""), TARGET)
    with pytest.raises(InvalidRequest, match="cannot be read as CSV"):
        read_rows(write(tmp_path, "rows.csv", ""), TARGET)
