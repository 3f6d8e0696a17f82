from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from pyarrow import fs

from arcticlake.errors import InvalidRequest
from arcticlake.table.storage import Storage, local_path, scheme_of, storage_of

S3 = {
    "s3.endpoint": "http://127.0.0.1:9",
    "s3.access-key-id": "a",
    "s3.secret-access-key": "b",
    "s3.region": "eu-central-1",
}


@pytest.mark.parametrize("prefix", ["", "file://"])
def test_local_paths_open_with_and_without_a_scheme(tmp_path: Path, prefix: str) -> None:
    path = tmp_path / "a b#ü%20.parquet"
    path.write_bytes(b"x")

    system, place = Storage().open(f"{prefix}{path}")

    assert isinstance(system, fs.LocalFileSystem)
    assert system.open_input_file(place).read() == b"x"


def test_a_store_keeps_only_what_opens_it_and_pickles() -> None:
    storage = storage_of({**S3, "uri": "sqlite://", "warehouse": "s3://x"})

    assert dict(storage.properties) == S3
    assert pickle.loads(pickle.dumps(storage)) == storage


def test_buckets_open_through_their_own_client() -> None:
    system, place = storage_of(S3).open("s3://bucket/a/b.parquet")

    assert isinstance(system, fs.S3FileSystem)
    assert place == "bucket/a/b.parquet"
    assert system.region == "eu-central-1"
    assert storage_of(S3).open("s3a://bucket/x")[0] is not None


def test_an_unknown_scheme_is_refused_by_name() -> None:
    with pytest.raises(InvalidRequest, match="gopher"):
        Storage().open("gopher://x/y")


def test_schemes_are_read_from_locations() -> None:
    assert [scheme_of(text) for text in ("/a/b", "a:b", "S3://x", "file:///a")] == [
        "file",
        "file",
        "s3",
        "file",
    ]
    assert local_path("file:///a/b") == "/a/b"
