"""lake.sql: Spark SQL in which every Arctic table is planned afresh.

Touches the catalog and Spark.
"""

from __future__ import annotations

from collections.abc import Callable

from pyiceberg.catalog import Catalog
from pyspark.sql import DataFrame, SparkSession

from arcticlake.read.sql import plan_sql
from arcticlake.table.iceberg import is_ours
from arcticlake.verbs.opened import Opened
from arcticlake.verbs.read import ReadRequest, to_spark


def run_sql(catalog: Catalog, session: Callable[[], SparkSession], text: str) -> DataFrame:
    """Run a statement; an Arctic table's name stands for its newest state, or the one asked for."""
    plan = plan_sql(text, lambda name: is_ours(catalog, name))
    frames = {
        placeholder: to_spark(
            Opened(catalog, request.name, session),
            ReadRequest(version=request.version, timestamp=request.timestamp),
        )
        for placeholder, request in plan.tables.items()
    }
    if not frames:
        return session().sql(text)
    return session().sql(plan.text, args=None, **frames)
