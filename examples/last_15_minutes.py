"""The amount of orders of the last 15 minutes, by reading only the changes of these minutes."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from arcticlake import Lake

place = Path.cwd()
lake = Lake.open(f"{place}/warehouse")
orders = lake.create_table(
    "shop.orders",
    "order_id bigint, shop string, amount double",
    primary_key="order_id",
)
orders.insert([{"order_id": n, "shop": "north", "amount": 10.0} for n in range(1000)])
seen = orders.history()[0].version

# The day goes on: new orders, one of them corrected, one of them cancelled.
orders.upsert([{"order_id": 2000 + n, "shop": "south", "amount": 5.0} for n in range(3)])
orders.upsert([{"order_id": 2001, "shop": "south", "amount": 7.5}])
orders.delete("order_id = 2002")

# A job that runs every 15 minutes keeps the version that it has seen. No table is scanned.
news = orders.changes_to_arrow(since=seen, mode="net").to_pylist()
alive = [row for row in news if row["_change_type"] != "delete"]
print("new since version", seen, "amount", sum(row["amount"] for row in alive))

# Whoever keeps nothing asks by time; before the first version there is nothing to compare with.
quarter = datetime.now(UTC) - timedelta(minutes=15)
if quarter >= orders.history()[-1].timestamp:
    print(orders.changes_to_arrow(since=quarter, mode="net").num_rows, "changes in 15 minutes")

# The same as a stream: changes after that version, each exactly once over restarts.
stream = lake.spark.readStream.format("arctic").option("warehouse", f"{place}/warehouse")
rows = stream.option("since", str(seen)).load("shop.orders")
query = (
    rows.writeStream.format("parquet")
    .option("path", f"{place}/changes")
    .option("checkpointLocation", f"{place}/checkpoints/changes")
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
print(lake.spark.read.parquet(f"{place}/changes").count(), "changes in the stream")
