"""Polars in, Polars out: writes, reads and checks without a Spark session."""

from datetime import UTC, datetime

import polars as pl

from arcticlake import Lake

lake = Lake.open("warehouse")
readings = lake.create_table(
    "home.readings",
    "sensor string, taken_at timestamp, celsius double",
    primary_key=["sensor", "taken_at"],
    partition_by=["day(taken_at)"],
    sort_by=["taken_at"],
)

hours = [datetime(2026, 11, 15, hour, tzinfo=UTC) for hour in range(24)]
readings.insert(pl.DataFrame({"sensor": "attic", "taken_at": hours, "celsius": 18.5}))

# A reading is corrected and one is withdrawn; both are visible at once.
readings.upsert([{"sensor": "attic", "taken_at": hours[7], "celsius": 19.0}])
readings.delete([{"sensor": "attic", "taken_at": hours[8]}])

frame = pl.from_arrow(readings.to_arrow(where="taken_at >= '2026-11-15 06:00:00'"))
print(frame)
before, now = readings.to_arrow(version=1), readings.to_arrow()
print(before.num_rows, "readings before,", now.num_rows, "now")
print(readings.verify())
