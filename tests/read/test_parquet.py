from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from arcticlake.errors import CorruptData
from arcticlake.read.parquet import (
    FileToScan,
    file_rows,
    read_batches,
    read_frame,
    run_resolve,
    scan_file,
)
from arcticlake.resolve.job import FileToResolve, ResolveJob
from arcticlake.resolve.kernel import Keep
from arcticlake.table.change import ACTION, ORDER, SEQ
from arcticlake.table.storage import Storage
from arcticlake.table.types import ARROW_FIELD_ID
from arcticlake.tree.files import Role

LOCAL = Storage()


def field(identity: int, name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, metadata={ARROW_FIELD_ID: str(identity).encode()})


KEY = pa.schema([field(1, "id", pa.int64())])
ROWS = pa.schema([field(1, "id", pa.int64()), field(2, "v", pa.string())])
HIDDEN = pa.schema(
    [field(101, ACTION, pa.string()), field(103, ORDER, pa.int64()), field(104, SEQ, pa.int64())]
)


def base(path: Path, ids: list[int]) -> str:
    rows = pa.table({"id": ids, "v": [f"v{n}" for n in ids]}, schema=ROWS)
    pq.write_table(rows, path, row_group_size=3)
    return str(path)


def change(path: Path, *rows: tuple[int, str, int, int | None]) -> str:
    ids, actions, orders, own = zip(*rows, strict=True)
    columns = [ids, [f"c{n}" for n in ids], actions, orders, own]
    schema = pa.schema([*ROWS, *HIDDEN])
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), path)
    return str(path)


def test_a_resolution_reads_keys_and_tells_dead_rows_of_every_file(tmp_path: Path) -> None:
    old = base(tmp_path / "b", [1, 2, 3, 4])
    new = change(tmp_path / "c", (2, "+U", 0, None), (3, "-D", 1, None), (9, "+I", 2, None))
    other = change(tmp_path / "d", (2, "+U", 0, 4))
    job = ResolveJob(
        LOCAL,
        KEY,
        HIDDEN,
        (FileToResolve(old, 0, positions=np.array([3])),),
        (FileToResolve(new, 5), FileToResolve(other, 7)),
    )

    dead = {path: mask.tolist() for path, mask in run_resolve(job).items()}

    assert dead == {
        old: [False, True, True, True],
        new: [False, True, False],
        other: [True],
    }


@pytest.mark.parametrize(
    "kind",
    [pa.int64(), pa.string(), pa.binary(), pa.decimal128(25, 2), pa.date32(), pa.timestamp("us")],
    ids=str,
)
@pytest.mark.parametrize("keep", Keep)
def test_shares_of_the_keys_give_the_same_answer_as_all_at_once(
    tmp_path: Path, kind: pa.DataType, keep: Keep
) -> None:
    """Where the keys of changes do not fit memory, they are resolved share by share."""
    key = pa.schema([field(1, "id", kind)])

    def values(numbers: Sequence[int]) -> pa.Array:
        plain = pa.array(numbers, pa.int64())
        if pa.types.is_date(kind):
            return plain.cast(pa.int32()).cast(kind)
        return plain.cast(pa.string()).cast(kind) if pa.types.is_binary(kind) else plain.cast(kind)

    pq.write_table(pa.table([values(range(40))], schema=key), tmp_path / "b")
    schema = pa.schema([*key, *HIDDEN])
    for name, ids in (("c", range(20, 60)), ("d", range(30, 70))):
        actions = pa.array(["-D" if n % 3 == 0 else "+U" for n in ids])
        orders, own = pa.array(range(40)), pa.nulls(40, pa.int64())
        pq.write_table(
            pa.table([values(ids), actions, orders, own], schema=schema), tmp_path / name
        )
    files = {name: str(tmp_path / name) for name in "bcd"}
    whole = ResolveJob(
        LOCAL,
        key,
        HIDDEN,
        (FileToResolve(files["b"], 4),),
        (FileToResolve(files["c"], 3), FileToResolve(files["d"], 5)),
        keep,
    )

    expected = {path: mask.tolist() for path, mask in run_resolve(whole).items()}

    for parts in (2, 5):
        found = run_resolve(replace(whole, parts=parts))
        assert {path: mask.tolist() for path, mask in found.items()} == expected


def test_live_rows_come_in_file_order_with_the_wanted_columns(tmp_path: Path) -> None:
    path = base(tmp_path / "b", list(range(7)))
    dead = np.array([True, False, False, True, True, True, False])

    batches = list(scan_file(LOCAL, path, ROWS, dead))

    assert pa.Table.from_batches(batches)["v"].to_pylist() == ["v1", "v2", "v6"]
    assert list(scan_file(LOCAL, path, ROWS, np.ones(7, dtype=bool))) == []
    assert sum(b.num_rows for b in scan_file(LOCAL, path, KEY, None)) == 7


def test_columns_that_a_file_lacks_are_null(tmp_path: Path) -> None:
    path = base(tmp_path / "b", [1, 2])
    wanted = pa.schema([field(7, "new", pa.string())])

    assert read_frame(LOCAL, path, wanted).to_dict(as_series=False) == {"new": [None, None]}
    both = read_frame(LOCAL, path, pa.schema([*wanted, *KEY]))
    assert both.to_dict(as_series=False) == {"new": [None, None], "id": [1, 2]}


def test_small_batches_give_the_same_rows(tmp_path: Path) -> None:
    path = base(tmp_path / "b", list(range(10)))

    batches = list(read_batches(LOCAL, path, ROWS, batch_rows=2))

    assert pa.Table.from_batches(batches)["id"].to_pylist() == list(range(10))
    assert len(batches) >= 5


def test_hidden_columns_come_from_the_row_or_from_its_file(tmp_path: Path) -> None:
    changes = change(tmp_path / "c", (1, "+U", 8, None), (2, "-D", 9, 3))
    bases = base(tmp_path / "b", [5])
    extra = (ACTION, "_version", ORDER)

    def rows(path: str, role: Role, version: int | None) -> list[dict[str, object]]:
        file = FileToScan(path, role, 2, version)
        batches = list(file_rows(LOCAL, file, KEY, None, extra))
        found: list[dict[str, object]] = pa.Table.from_batches(batches).to_pylist()
        return found

    assert rows(changes, Role.CHANGE, 6) == [
        {"id": 1, "_action": "+U", "_version": 6, "_order": 8},
        {"id": 2, "_action": "-D", "_version": 3, "_order": 9},
    ]
    assert rows(bases, Role.BASE, 2) == [{"id": 5, "_action": None, "_version": 2, "_order": None}]
    assert rows(bases, Role.BASE, None)[0]["_version"] is None


def test_a_missing_or_broken_file_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"no parquet at all")

    with pytest.raises(CorruptData, match=r"gone\.parquet is missing.*verify"):
        read_frame(LOCAL, str(tmp_path / "gone.parquet"), KEY)
    with pytest.raises(CorruptData, match=r"broken\.parquet cannot be opened.*verify"):
        read_frame(LOCAL, str(broken), KEY)


def test_a_flipped_bit_is_noticed_while_reading(tmp_path: Path) -> None:
    path = tmp_path / "b.parquet"
    rows = pa.table({"id": list(range(5000)), "v": ["x"] * 5000}, schema=ROWS)
    pq.write_table(rows, path, compression="none", use_dictionary=False, write_page_checksum=True)
    raw = bytearray(path.read_bytes())
    raw[2000] ^= 1
    path.write_bytes(raw)

    with pytest.raises(CorruptData, match=r"b\.parquet cannot be read.*verify"):
        read_frame(LOCAL, str(path), KEY)
