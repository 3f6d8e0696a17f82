"""The turns of other engines; runs in the environment of its own.

    act      Spark + Iceberg and DuckDB read every table, then Spark writes: one act a table
    repair   Spark rolls back the tables that Arctic refuses; both engines read again

Touches the warehouse, Spark, DuckDB and standard output.
"""

from __future__ import annotations

import os
import re
import sqlite3
import sys
from importlib.resources import files
from pathlib import Path

import duckdb
import story
from claims import claim, claim_rows, finish
from pyspark.sql import DataFrame, SparkSession

CATALOG = "arctic"
PACKAGES = (
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
    "org.xerial:sqlite-jdbc:3.53.2.0",
)
HIDDEN = ("_ts", "_order", "_seq")
KEYS = (7, 444, 1299)
TREE_DEPTHS = 3
"""Two nodes at the start, split twice: files lie in nodes of 2, 4 and 8 buckets."""


def start_spark(warehouse: Path) -> SparkSession:
    """Start Spark with the Iceberg runtime on the catalog in the warehouse."""
    settings = {
        "spark.jars.packages": ",".join(PACKAGES),
        "spark.jars.ivy": os.environ["INTEROP_JARS"],
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        f"spark.sql.catalog.{CATALOG}": "org.apache.iceberg.spark.SparkCatalog",
        f"spark.sql.catalog.{CATALOG}.type": "jdbc",
        f"spark.sql.catalog.{CATALOG}.uri": f"jdbc:sqlite:{warehouse / 'catalog.db'}",
        f"spark.sql.catalog.{CATALOG}.jdbc.schema-version": "V1",
        f"spark.sql.catalog.{CATALOG}.warehouse": str(warehouse),
        f"spark.sql.catalog.{CATALOG}.cache-enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName("interop").master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.catalog.setCurrentCatalog(CATALOG)
    return session


def start_duckdb() -> duckdb.DuckDBPyConnection:
    """Open DuckDB with the extensions that came as wheels."""
    connection = duckdb.connect()
    for name in ("avro", "httpfs", "iceberg"):
        package = files(f"duckdb_extension_{name}")
        place = package / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"
        connection.load_extension(str(place))
    connection.execute("SET TimeZone = 'UTC'")
    return connection


class Readers:
    """Two engines on one warehouse."""

    def __init__(self, warehouse: Path) -> None:
        self.warehouse = warehouse
        self.spark = start_spark(warehouse)
        self.duckdb = start_duckdb()

    def metadata(self, table: str) -> str:
        """Return the place of the newest metadata of a table."""
        namespace, name = table.split(".")
        with sqlite3.connect(self.warehouse / "catalog.db") as catalog:
            found = catalog.execute(
                "SELECT metadata_location FROM iceberg_tables "
                "WHERE table_namespace = ? AND table_name = ?",
                (namespace, name),
            ).fetchone()
        return str(found[0])

    def scan(self, table: str) -> str:
        """Return a table as DuckDB names it."""
        return f"iceberg_scan('{self.metadata(table)}')"

    def claim_equal(self, act: int, table: str, wanted: list[story.Row], what: str) -> None:
        """Claim that both engines read exactly these rows, and count them so."""
        by_spark = self.spark.table(table).drop(*HIDDEN).toArrow().to_pylist()
        claim_rows(act, by_spark, wanted, f"Spark + Iceberg reads {what}")
        columns = ", ".join(f'"{name}"' for name in wanted[0])
        query = f"SELECT {columns} FROM {self.scan(table)}"
        by_duckdb = self.duckdb.execute(query).to_arrow_table().to_pylist()
        claim_rows(act, by_duckdb, wanted, f"DuckDB reads {what}")
        counts = (
            self.spark.table(table).count(),
            self.duckdb.execute(f"SELECT count(*) FROM {self.scan(table)}").fetchone(),
        )
        same = counts == (len(wanted), (len(wanted),))
        claim(act, same, f"both count {what} alike", counts)


def files_planned(frame: DataFrame) -> int:
    """Return how many data files a query of Spark planned to read; it runs the query."""
    plan = frame._jdf.queryExecution().executedPlan()  # noqa: SLF001 - metrics are not in PySpark
    plan.executeCollect()
    return int(plan.collectLeaves().apply(0).metrics().apply("resultDataFiles").value())


def claim_lookups(readers: Readers) -> None:
    """Claim that a look-up by key reads one file of many, or one path of a tree, in both engines.

    Ids are written in random order, so it is the bucket of the key that prunes, not its bounds.
    """
    for table, limit in ((story.LOOKED_UP, 1), (story.INSERTED, TREE_DEPTHS)):
        everything = files_planned(readers.spark.table(table))
        wanted = "1 file" if limit == 1 else f"at most {limit} files, one a depth,"
        for key in KEYS:
            found = readers.spark.table(table).where(f"id = {key}")
            planned, right = files_planned(found), found.count() == 1
            text = f"Spark: id = {key} plans {wanted} of {everything} in {table}"
            claim(2, right and 1 <= planned <= limit < everything, text, planned)
            query = f"SELECT * FROM {readers.scan(table)} WHERE id = {key}"
            plan = readers.duckdb.execute(f"EXPLAIN ANALYZE {query}").fetchall()[0][1]
            told = re.search(r"Total Files Read:\s*(\d+)", plan)
            read = int(told.group(1)) if told else -1
            right = len(readers.duckdb.execute(query).fetchall()) == 1
            text = f"DuckDB: id = {key} reads {wanted} of {everything} in {table}"
            claim(2, right and 1 <= read <= limit, text, read)


def claim_placed(readers: Readers, act: int, table: str) -> None:
    """Claim that each row lies in the bucket of its key, by Iceberg's own function."""
    partition = readers.spark.table(f"{table}.partitions").schema["partition"].dataType
    for name in partition.fieldNames():
        count = int(name.rpartition("_")[2])
        wrong = readers.spark.sql(
            f"SELECT 1 FROM {table} WHERE _partition.{name} IS NOT NULL "
            f"AND {CATALOG}.system.bucket({count}, id) <> _partition.{name}"
        ).count()
        claim(act, wrong == 0, f"{table}: all rows of {name} lie in their node")


def rows_view(readers: Readers, rows: list[story.Row]) -> None:
    """Offer rows to Spark as the view `given`."""
    frame = readers.spark.createDataFrame(rows, story.SCHEMA)
    frame.createOrReplaceTempView("given")


def head(readers: Readers, table: str) -> dict[str, object]:
    """Return the newest snapshot of a table: its id, its parent, what it did."""
    newest = f"SELECT * FROM {table}.snapshots ORDER BY committed_at DESC LIMIT 1"
    return readers.spark.sql(newest).collect()[0].asDict(recursive=True)


def act_insert(readers: Readers) -> None:
    """INSERT new rows."""
    rows_view(readers, story.made(story.SPARK_INSERTED, "spark"))
    readers.spark.sql(f"INSERT INTO {story.INSERTED} SELECT * FROM given")
    claim(3, head(readers, story.INSERTED)["operation"] == "append", "Spark INSERT done")
    claim_placed(readers, 3, story.INSERTED)


def act_delete(readers: Readers) -> None:
    """DELETE rows without rewriting files."""
    table = story.DELETED
    readers.spark.sql(
        f"ALTER TABLE {table} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')"
    )
    readers.spark.sql(f"DELETE FROM {table} WHERE {story.SPARK_DELETE_CONDITION}")
    found = readers.spark.sql(f"SELECT content FROM {table}.delete_files").collect()
    kinds = {row["content"] for row in found}
    claim(4, kinds == {1}, "Spark DELETE wrote position deletes", f"{len(found)} files")


def act_overwrite(readers: Readers) -> None:
    """INSERT OVERWRITE by dynamic partitions: replaces files of one depth only."""
    table = story.OVERWRITTEN
    rows_view(readers, list(story.base_before(table).values()))
    readers.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    readers.spark.sql(f"INSERT OVERWRITE {table} SELECT * FROM given")
    readers.spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    count, wanted = readers.spark.table(table).count(), len(story.base_before(table))
    text = "Spark's dynamic INSERT OVERWRITE leaves stale rows beside new ones"
    claim(5, count > wanted, text, f"{count} rows instead of {wanted}")


def act_merge(readers: Readers) -> None:
    """MERGE by copying files."""
    table = story.MERGED
    rows_view(readers, story.made(story.SPARK_MERGED, "spark", -7))
    readers.spark.sql(
        f"MERGE INTO {table} t USING given s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET t.qty = s.qty WHEN NOT MATCHED THEN INSERT *"
    )
    claim(6, head(readers, table)["operation"] == "overwrite", "Spark MERGE copied files")


def act_rewrite(readers: Readers, act: int, table: str) -> None:
    """Compact the files of one Iceberg table."""
    readers.spark.sql(
        f"CALL {CATALOG}.system.rewrite_data_files(table => '{table}', "
        "options => map('rewrite-all', 'true'))"
    )
    done = head(readers, table)
    claim(act, done["operation"] == "replace", f"Spark rewrote the files of {table}")


def act_expire(readers: Readers) -> None:
    """Expire all but the newest snapshot of both tables, unused schemas and specs too."""
    for table in (story.EXPIRED, f"{story.EXPIRED}__changes"):
        readers.spark.sql(
            f"CALL {CATALOG}.system.expire_snapshots(table => '{table}', "
            "older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1, "
            "clean_expired_metadata => true)"
        )
        left = readers.spark.sql(f"SELECT * FROM {table}.snapshots").count()
        claim(9, left == 1, f"Spark expired all snapshots of {table} but one")


def turn_act(readers: Readers) -> None:
    """Read everything, then write: one act for each table."""
    readers.claim_equal(1, story.DAYS, story.days_base(), "base")
    changes = f"{story.DAYS}__changes"
    readers.claim_equal(1, changes, story.days_changes(), "changes")
    claim_lookups(readers)
    act_insert(readers)
    act_delete(readers)
    act_overwrite(readers)
    act_merge(readers)
    act_rewrite(readers, 7, f"{story.CHANGES}__changes")
    act_rewrite(readers, 8, story.COMPACTED)
    act_rewrite(readers, 8, story.MIXED_UP)
    act_expire(readers)


def roll_back(readers: Readers, act: int, table: str) -> None:
    """Roll a table back to the snapshot before its newest."""
    parent = head(readers, table)["parent_id"]
    readers.spark.sql(f"CALL {CATALOG}.system.rollback_to_snapshot('{table}', {parent})")
    claim(act, True, f"Spark rolled {table} back to the snapshot before")


def turn_repair(readers: Readers) -> None:
    """Repair what Arctic refuses, and read what Arctic wrote in between."""
    roll_back(readers, 5, story.OVERWRITTEN)
    roll_back(readers, 7, f"{story.CHANGES}__changes")
    roll_back(readers, 8, story.MIXED_UP)
    for act, table in ((3, story.INSERTED), (4, story.DELETED), (6, story.MERGED)):
        readers.claim_equal(act, table, list(story.base_after(table).values()), f"{table}")
    for act, table in ((8, story.COMPACTED), (9, story.EXPIRED)):
        readers.claim_equal(act, table, list(story.base_after(table).values()), f"{table}")
    readers.claim_equal(10, story.DAYS, story.days_merged(), "base after a merge")


if __name__ == "__main__":
    turn, place = sys.argv[1:]
    engines = Readers(Path(place))
    {"act": turn_act, "repair": turn_repair}[turn](engines)
    engines.spark.stop()
    finish()
