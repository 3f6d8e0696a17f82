"""ODS, DWD, DWS: three tables, each fed by the changes of the one before it.

    change log ─▶ ods.orders ─▶ dwd.orders, with cities ─▶ dws.sales, added up by city

Nobody scans a table to learn what is new, and no queue stands between. `run_layers` may run every
minute, or its queries may stay up: give them a trigger such as `1 minute`.
"""

import json
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from arcticlake import Lake

PLACE = Path.cwd()
WAREHOUSE = f"{PLACE}/warehouse"
LOG = PLACE / "log"

lake = Lake.open(WAREHOUSE)
spark = lake.spark
ods = lake.create_table(
    "ods.orders",
    "order_id bigint, shop_id int, amount bigint",
    primary_key="order_id",
)
dwd = lake.create_table(
    "dwd.orders",
    "order_id bigint, city string, amount bigint",
    primary_key="order_id",
)
dws = lake.create_table(
    "dws.sales", "city string, orders bigint, amount bigint", primary_key="city"
)
shops = spark.createDataFrame([(1, "Oslo"), (2, "Bergen")], "shop_id int, city string")


def changes_of(table: str) -> DataFrame:
    """Return a stream: everything that is there, then every change, in an order to apply."""
    source = spark.readStream.format("arctic").option("warehouse", WAREHOUSE)
    return source.option("order", "true").option("consumer", "next-layer").load(table)


def add_up(changes: DataFrame, _: int) -> None:
    """Compute the cities anew that a batch touched; doing it twice changes nothing.

    A change says where its order is now. Where it was before, the version before the batch knows.
    """
    first = changes.agg(F.min("_commit_version")).first()[0]
    if first is None:
        return
    before = dwd.read(version=first - 1)
    left = before.join(changes.select("order_id"), "order_id", "left_semi").select("city")
    touched = changes.select("city").union(left).dropna().distinct()
    sums = dwd.read().groupBy("city").agg(F.count("*").alias("orders"), F.sum("amount"))
    sums = sums.toDF("city", "orders", "amount")
    rows = touched.join(sums, "city", "left").fillna(0, ["orders"])
    dws.upsert(rows, delete_when="orders = 0")


def run_layers() -> None:
    """Pass on what is new, layer by layer, and end."""
    log = spark.readStream.text(str(LOG))
    ods.stream_changes(
        log,
        format="debezium-json",
        checkpoint=f"{PLACE}/checkpoints/ods",
        trigger="available-now",
    ).awaitTermination()
    found = changes_of("ods.orders").drop("_commit_version", "_commit_timestamp")
    dwd.stream_upsert(
        found.join(shops, "shop_id", "left").drop("shop_id"),
        checkpoint=f"{PLACE}/checkpoints/dwd",
        trigger="available-now",
        order_by="_change_order",
        delete_when="_change_type = 'delete'",
    ).awaitTermination()
    query = changes_of("dwd.orders").writeStream.foreachBatch(add_up)
    query = query.option("checkpointLocation", f"{PLACE}/checkpoints/dws")
    query.trigger(availableNow=True).start().awaitTermination()


def row(order_id: int, shop_id: int, amount: int) -> dict[str, int]:
    """Return an order as the database holds it."""
    return {"order_id": order_id, "shop_id": shop_id, "amount": amount}


def tell(file: str, *told: tuple[str, dict[str, int] | None, dict[str, int] | None]) -> None:
    """Write a piece of the database's log: operation, row before, row after."""
    LOG.mkdir(exist_ok=True)
    lines = []
    for at, (op, before, after) in enumerate(told):
        source = {"connector": "postgresql", "lsn": int(file) * 100 + at}
        lines.append(json.dumps({"op": op, "before": before, "after": after, "source": source}))
    text = "\n".join(lines)
    (LOG / file).write_text(text, encoding="utf-8")


tell("1", ("c", None, row(1, 1, 10)), ("c", None, row(2, 1, 20)), ("c", None, row(3, 2, 30)))
run_layers()
dws.read().orderBy("city").show()

# Order 1 gets another number, order 2 goes to another shop, order 3 is cancelled.
tell(
    "2",
    ("u", row(1, 1, 10), row(9, 1, 10)),
    ("u", row(2, 1, 20), row(2, 2, 20)),
    ("d", row(3, 2, 30), None),
)
run_layers()
dws.read().orderBy("city").show()

again = ods.read().join(shops, "shop_id").groupBy("city").agg(F.count("*"), F.sum("amount"))
assert sorted(map(tuple, again.collect())) == sorted(map(tuple, dws.read().collect()))
