"""One writer: which files come out of which rows, and what stands in them."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from arcticlake.ingest.job import WriteJob, Written
from arcticlake.ingest.parquet import SPLIT_DEPTH_MAX, remove_files, write_batches, write_in_threads
from arcticlake.ingest.plan import base_job, change_job
from arcticlake.table.ddl import schema_from_ddl
from arcticlake.table.spec import TableSpec, plan_table
from arcticlake.table.storage import Storage
from arcticlake.tree.forest import Forest, plant
from arcticlake.tree.hash import key_hash
from arcticlake.tree.node import Node
from tests.tree.strategies import file_in

DDL = "id bigint, v string, s struct<a:int,b:array<string>>, m map<string,int>"


def spec_of(ddl: str = "id bigint, v string", **settings: object) -> TableSpec:
    given: dict[str, object] = {
        "primary_key": ("id",),
        "partition_by": (),
        "sort_by": (),
        "bucket_by": None,
        "options": {},
    }
    return plan_table("db.t", schema_from_ddl(ddl), **(given | settings))  # type: ignore[arg-type]


def job_in(folder: Path, spec: TableSpec, forest: Forest | None = None) -> WriteJob:
    return base_job(spec, str(folder), Storage(), forest or Forest(spec.options.initial_nodes))


def numbered(ids: range | list[int], width: int = 10) -> pa.Table:
    return pa.table(
        {"id": pa.array(ids, pa.int64()), "v": [f"{number:0{width}d}" for number in ids]}
    )


def rows_in(written: Written) -> list[tuple[Node, list[int]]]:
    return [(file.node, pq.read_table(file.path)["id"].to_pylist()) for file in written.files]


def check_places(written: Written, ids: set[int]) -> None:
    """Every row lies in its node, and in exactly one file."""
    found = rows_in(written)
    for node, inside in found:
        assert all(node.holds(int(h)) for h in key_hash(pa.array(inside, pa.int64())))
    everything = [number for _, inside in found for number in inside]
    assert sorted(everything) == sorted(ids)


def test_one_file_for_each_leaf_that_gets_rows(tmp_path: Path) -> None:
    """RTI-13: a commit brings one file a leaf."""
    written = write_batches(numbered(range(100)).to_batches(), job_in(tmp_path, spec_of()))

    assert sorted(str(file.node) for file in written.files) == ["3/0", "3/1", "3/2", "3/3"]
    assert written.problem is None
    check_places(written, set(range(100)))


def test_several_batches_still_make_one_file_a_leaf(tmp_path: Path) -> None:
    batches = [batch for n in range(5) for batch in numbered(range(n * 9, n * 9 + 9)).to_batches()]

    written = write_batches(batches, job_in(tmp_path, spec_of()))

    assert len(written.files) <= 4
    check_places(written, set(range(45)))


def test_rows_go_to_the_leaves_of_a_mixed_tree(tmp_path: Path) -> None:
    """SPL-08: nodes of different depth coexist."""
    forest = plant([file_in(Node(7, 1)), file_in(Node(3, 2)), file_in(Node(15, 0))], 4)

    written = write_batches(numbered(range(500)).to_batches(), job_in(tmp_path, spec_of(), forest))

    assert {file.node for file in written.files} == set(forest.tree(()).leaves)
    check_places(written, set(range(500)))


def test_a_leaf_that_gets_too_much_goes_on_in_its_children(tmp_path: Path) -> None:
    """SPL-09, RTI-14: the split at ingestion, inside one commit."""
    spec = spec_of(options={"leaf-commit-size": "4KB", "initial-nodes": 1})
    job = change_job(spec, str(tmp_path), Storage(), Forest(1), ordered=False)
    ids = list(range(5000))
    rows = numbered(ids, width=40)

    written = write_batches(_changes(rows, job).to_batches(), job)

    depths = {file.node.depth for file in written.files}
    assert {0, 1} <= depths
    assert Node(0, 0) in {file.node for file in written.files}
    check_places(written, set(ids))


def _changes(rows: pa.Table, job: WriteJob) -> pa.Table:
    hidden = {
        "_action": pa.array(["+U"] * rows.num_rows),
        "_ts": pa.array([0] * rows.num_rows).cast(pa.timestamp("us", "UTC")),
        "_order": pa.array(range(rows.num_rows)),
        "_seq": pa.nulls(rows.num_rows, pa.int64()),
    }
    for name, column in hidden.items():
        rows = rows.append_column(name, column)
    return rows.select(job.schema.names)


def test_one_hot_key_does_not_split_the_tree_for_ever(tmp_path: Path) -> None:
    spec = spec_of(options={"leaf-commit-size": "1", "initial-nodes": 1})
    job = change_job(spec, str(tmp_path), Storage(), Forest(1), ordered=True)
    rows = numbered([7] * 4000, width=120)

    written = write_batches(_changes(rows, job).to_batches(), job)

    assert len(written.files) > SPLIT_DEPTH_MAX + 1
    assert max(file.node.depth for file in written.files) == SPLIT_DEPTH_MAX
    assert sum(file.rows for file in written.files) == 4000


def test_a_full_base_file_without_sort_key_is_split_by_hash(tmp_path: Path) -> None:
    """SPL-06, SPL-07."""
    spec = spec_of(options={"target-file-size": "4KB", "initial-nodes": 1})

    written = write_batches(numbered(range(4000)).to_batches(), job_in(tmp_path, spec))

    assert len({file.node.depth for file in written.files}) > 1
    check_places(written, set(range(4000)))


def test_a_full_base_file_with_sort_key_is_followed_by_the_next_of_its_leaf(
    tmp_path: Path,
) -> None:
    """SPL-05, KEY-11: rows come sorted, so files of a leaf do not overlap in the sort key."""
    spec = spec_of(options={"target-file-size": "4KB", "initial-nodes": 1}, sort_by=("v",))

    written = write_batches(numbered(range(4000)).to_batches(), job_in(tmp_path, spec))

    ranges = [(min(ids), max(ids)) for _, ids in rows_in(written)]
    assert len(ranges) >= 2
    assert {file.node for file in written.files} == {Node(0, 0)}
    assert all(above[0] > below[1] for below, above in pairwise(ranges))
    check_places(written, set(range(4000)))


def test_many_threads_write_the_same_rows_as_one(tmp_path: Path) -> None:
    rows = numbered(range(25_000))

    written = write_in_threads(rows, job_in(tmp_path, spec_of()), 3)

    assert len(written.files) == 4
    check_places(written, set(range(25_000)))
    again = pa.concat_tables([rows, numbered([17_000])])
    assert "id=17000" in str(write_in_threads(again, job_in(tmp_path, spec_of()), 3).problem)


def test_a_table_without_a_key_writes_at_the_root(tmp_path: Path) -> None:
    spec = spec_of(primary_key=())

    written = write_batches(numbered([1, 1, 2]).to_batches(), job_in(tmp_path, spec))

    assert [(file.node, file.rows) for file in written.files] == [(Node(0, 0), 3)]
    assert written.problem is None


def test_partitions_have_files_and_folders_of_their_own(tmp_path: Path) -> None:
    """KEY-02."""
    spec = spec_of(partition_by=("v",), options={"initial-nodes": 1})
    rows = pa.table({"id": pa.array(range(6), pa.int64()), "v": ["a", "b", None, "a", "x/y", ""]})

    written = write_batches(rows.to_batches(), job_in(tmp_path, spec))

    folders = {file.partition: Path(file.path).parent.parent.name for file in written.files}
    assert folders == {
        ("a",): "v=a",
        ("b",): "v=b",
        (None,): "v=null",
        ("x/y",): "v=x%2Fy",
        ("",): "v=",
    }


def columns_of(metadata: pq.FileMetaData) -> Iterator[pq.ColumnChunkMetaData]:
    for group in range(metadata.num_row_groups):
        for column in range(metadata.num_columns):
            yield metadata.row_group(group).column(column)


def test_files_carry_ids_at_every_level_checksums_and_zstd(tmp_path: Path) -> None:
    spec = spec_of(DDL, options={"initial-nodes": 1})
    rows = pa.table(
        {
            "id": pa.array([1], pa.int64()),
            "v": ["x"],
            "s": pa.array(
                [{"a": 1, "b": ["y"]}],
                pa.struct({"a": pa.int32(), "b": pa.list_(pa.string())}),
            ),
            "m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32())),
        }
    )

    written = write_batches(rows.to_batches(), job_in(tmp_path, spec))

    file = pq.ParquetFile(written.files[0].path, page_checksum_verification=True)
    assert file.read().num_rows == 1
    assert {chunk.compression for chunk in columns_of(file.metadata)} == {"ZSTD"}
    assert sorted(_field_ids(str(file.schema))) == sorted(
        spec.schema.find_field(name).field_id for name in spec.schema.column_names
    )
    assert pickle.loads(written.files[0].footer).num_rows == 1
    assert written.files[0].size == Path(written.files[0].path).stat().st_size


def _field_ids(text: str) -> list[int]:
    """Return the ids in a Parquet schema; the levels that Parquet adds itself have none (-1)."""
    found = [int(part.split(" ")[0].rstrip(";)")) for part in text.split("field_id=")[1:]]
    return [field_id for field_id in found if field_id != -1]


def test_a_flipped_bit_in_a_file_is_noticed(tmp_path: Path) -> None:
    written = write_batches(numbered(range(2000)).to_batches(), job_in(tmp_path, spec_of()))
    path = Path(written.files[0].path)
    raw = bytearray(path.read_bytes())
    raw[200] ^= 1
    path.write_bytes(raw)

    with pytest.raises((OSError, pa.ArrowInvalid), match=r"(?i)crc|checksum|corrupt"):
        pq.ParquetFile(path, page_checksum_verification=True).read()


def test_nulls_in_key_and_required_columns_are_told(tmp_path: Path) -> None:
    job = job_in(tmp_path, spec_of("id bigint, v string not null"))
    null_key = pa.table({"id": pa.array([None], pa.int64()), "v": ["x"]})
    null_value = pa.table({"id": pa.array([1], pa.int64()), "v": pa.nulls(1, pa.string())})

    assert "NULL in id" in str(write_batches(null_key.to_batches(), job).problem)
    assert "NULL in v" in str(write_batches(null_value.to_batches(), job).problem)


def test_a_key_in_two_partitions_or_two_batches_is_found(tmp_path: Path) -> None:
    job = job_in(tmp_path, spec_of(partition_by=("v",)))
    rows = pa.table({"id": pa.array([5, 6, 5], pa.int64()), "v": ["a", "a", "b"]})

    together = write_batches(rows.to_batches(), job)
    apart = write_batches(rows.to_batches(max_chunksize=1), job)
    ordered = write_batches(rows.to_batches(), replace(job, unique=("id", "v")))

    assert "id=5" in str(together.problem) and "order_by" in str(together.problem)
    assert "id=5" in str(apart.problem)
    assert ordered.problem is None


def test_files_of_a_refused_write_are_removed(tmp_path: Path) -> None:
    written = write_batches(numbered([1, 1]).to_batches(), job_in(tmp_path, spec_of()))

    remove_files(Storage(), [file.path for file in written.files])

    assert list(tmp_path.rglob("*.parquet")) == []


def test_no_rows_make_no_file(tmp_path: Path) -> None:
    empty = numbered([])

    assert write_batches(empty.to_batches(), job_in(tmp_path, spec_of())).files == ()
    assert write_in_threads(empty, job_in(tmp_path, spec_of()), 2).files == ()
