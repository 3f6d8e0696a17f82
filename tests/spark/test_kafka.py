"""A real Kafka broker, where there is one: ARCTIC_KAFKA names it, as in `host:9092`.

The session must have Spark's Kafka jar; without, the test skips itself.
"""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from arcticlake import Lake
from tests.verbs.shop import statuses

SERVERS = os.environ.get("ARCTIC_KAFKA", "")


@pytest.mark.skipif(not SERVERS, reason="no Kafka broker: set ARCTIC_KAFKA=host:port")
def test_messages_of_a_topic_reach_the_table_once(
    spark: SparkSession, warehouse: Path, tmp_path: Path
) -> None:
    topic = f"arctic-{uuid4().hex}"
    orders = Lake.open(str(warehouse), spark=spark).create_table(
        "shop.orders", "order_id bigint, status string", primary_key="order_id"
    )
    sent = spark.createDataFrame(
        [("1", "new"), ("1", "paid"), ("2", "new")], "key string, value string"
    )
    try:
        kafka = sent.coalesce(1).write.format("kafka").option("kafka.bootstrap.servers", SERVERS)
        kafka.option("topic", topic).save()
    except AnalysisException as error:
        pytest.skip(f"the session has no Kafka source: {error}")
    for _ in range(2):
        stream = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", SERVERS)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .load()
            .selectExpr(
                "cast(cast(key as string) as bigint) order_id",
                "cast(value as string) status",
                "offset",
            )
        )
        query = orders.stream_upsert(
            stream, checkpoint=str(tmp_path / "cp"), trigger="available-now", order_by="offset"
        )
        query.awaitTermination()

    assert statuses(orders) == {1: "paid", 2: "new"}
    assert len(orders.history()) == 1
