"""Orders from Kafka go into a keyed table, each message exactly once.

With KAFKA_SERVERS set (`host:9092`) the topic `orders` is read by Spark's own Kafka source, whose
jar Spark fetches at the start: `spark.jars.packages`. Without, a folder of files plays the topic,
so that the example runs anywhere. The rest is the same: a message has a value and an offset.
"""

import json
import os
from pathlib import Path

import pyspark
from pyspark.sql import functions as F

from arcticlake import Lake
from arcticlake.spark import make_session

SERVERS = os.environ.get("KAFKA_SERVERS")
KAFKA = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
MESSAGES = [
    '{"op": "c", "order_id": 1, "status": "new"}',
    '{"op": "c", "order_id": 2, "status": "new"}',
    '{"op": "u", "order_id": 1, "status": "paid"}',
    '{"op": "d", "order_id": 2, "status": null}',
]

PLACE = Path.cwd()  # Spark may have another idea of where a relative path begins

session = make_session(config={"spark.jars.packages": KAFKA} if SERVERS else {})
lake = Lake.open(f"{PLACE}/warehouse", spark=session)
orders = lake.create_table(
    "shop.orders", "order_id bigint, status string", primary_key="order_id", if_not_exists=True
)

if SERVERS:
    topic = (
        lake.spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", SERVERS)
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .load()
    )
else:
    (PLACE / "topic").mkdir(exist_ok=True)
    lines = [json.dumps({"offset": at, "value": text}) for at, text in enumerate(MESSAGES)]
    (PLACE / "topic/0.json").write_text("\n".join(lines), encoding="utf-8")
    topic = lake.spark.readStream.schema("offset bigint, value string").json(f"{PLACE}/topic")

# Messages of one key share a partition of the topic, so the offset orders the changes of a key.
message = F.from_json(F.col("value").cast("string"), "op string, order_id bigint, status string")
changes = topic.select(message.alias("m"), "offset").select("m.*", "offset")

query = orders.stream_upsert(
    changes,
    checkpoint=f"{PLACE}/checkpoints/orders",
    trigger="available-now",
    order_by="offset",
    delete_when="op = 'd'",
)
query.awaitTermination()

print(f"version {orders.history()[0].version}")
orders.read().show()
