"""Other catalogs and stores: PostgreSQL, and a warehouse on S3 that the JVM cannot open."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import boto3
import pyarrow as pa
import pytest
from moto.server import ThreadedMotoServer
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from arcticlake import Lake
from arcticlake.errors import InvalidRequest
from arcticlake.ingest import spark as ingest_spark

SCHEMA = "id bigint, name string"


def rows(count: int, name: str) -> pa.Table:
    """Return rows with the keys below a count."""
    return pa.table({"id": list(range(count)), "name": [name] * count})


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, str]]:
    """A real S3 protocol on this machine, and the catalog properties that lead to it."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    properties = {
        "s3.endpoint": f"http://{host}:{port}",
        "s3.access-key-id": "test",
        "s3.secret-access-key": "test",
        "s3.region": "us-east-1",
    }
    client = boto3.client(
        "s3",
        endpoint_url=properties["s3.endpoint"],
        aws_access_key_id="test",
        aws_secret_access_key="test",
        region_name="us-east-1",
    )
    client.create_bucket(Bucket="lake")
    yield properties
    server.stop()


def test_a_warehouse_on_s3_takes_writes_and_gives_fresh_reads(
    spark: SparkSession,
    tmp_path: Path,
    s3: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Python tasks carry the data where the JVM has no connector (design §11)."""
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", "warehouse": "s3://lake/w", **s3}
    lake = Lake.open(catalog=catalog, spark=spark)
    table = lake.create_table("shop.users", SCHEMA, primary_key="id")

    table.insert(rows(100, "Ada"))
    monkeypatch.setattr(ingest_spark, "SMALL_BYTES", -1)
    table.upsert(spark.range(50, 120).select("id", F.lit("Bob").alias("name")))
    table.delete("id < 10")

    expected = {"Ada": 40, "Bob": 70}
    answer = table.read(where="id >= 0", columns=["name"]).groupBy("name").count().collect()
    assert {row["name"]: row["count"] for row in answer} == expected
    assert table.to_arrow().num_rows == sum(expected.values())
    assert table.verify().ok


def test_an_object_store_is_no_folder() -> None:
    with pytest.raises(InvalidRequest, match="pass the catalog"):
        Lake.open("s3://lake/w")


def test_a_catalog_on_postgresql_serves_two_lakes_at_once(tmp_path: Path) -> None:
    pgserver = pytest.importorskip("pgserver", reason="no PostgreSQL wheel for this machine")
    database = pgserver.get_server(tmp_path / "postgres")
    try:
        uri = database.get_uri().replace("postgresql://", "postgresql+psycopg2://")
        catalog = {"type": "sql", "uri": uri, "warehouse": str(tmp_path / "w")}
        first, second = Lake.open(catalog=catalog), Lake.open(catalog=catalog)
        table = first.create_table("shop.users", SCHEMA, primary_key="id")

        table.upsert(rows(10, "Ada"))
        second.table("shop.users").upsert(rows(5, "Bob"))
        third = table.upsert(rows(1, "Eve"))

        names = table.to_arrow().column("name").to_pylist()
        assert sorted(names) == ["Ada"] * 5 + ["Bob"] * 4 + ["Eve"]
        assert third.version == 3
        assert second.tables() == ["shop.users"]
        first.drop_table("shop.users", purge=True)
        assert second.tables() == []
    finally:
        database.cleanup()


def test_a_lake_is_opened_by_the_name_of_a_configured_catalog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__URI", f"sqlite:///{tmp_path}/prod.db")
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__WAREHOUSE", str(tmp_path / "w"))

    lake = Lake.open(
        catalog={
            "name": "prod",
            "type": "sql",
            "uri": f"sqlite:///{tmp_path}/prod.db",
            "warehouse": str(tmp_path / "w"),
        }
    )
    lake.create_table("shop.users", SCHEMA, primary_key="id").upsert(rows(3, "Ada"))

    assert lake.tables() == ["shop.users"]
    with pytest.raises(InvalidRequest, match="one of the two"):
        Lake.open()
