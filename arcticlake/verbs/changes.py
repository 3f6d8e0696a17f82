"""changes and changes_to_arrow: from the call to a plan, from the plan to rows in order.

    range ─▶ steps ─▶ files of these commits ─▶ plan ─▶ resolve (net, base) ─▶ scan ─▶ order

A range of few bytes is read here, as Arrow, also for a DataFrame; a larger one by Spark tasks.

A condition may name the columns of the table and the three that a pull adds. A row that tells of an
overwrite has no values and concerns all rows, so what a condition says of values passes it by.

Touches the catalog, data files and Spark.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import BooleanExpression
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType, TimestamptzType
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from arcticlake.commit.history import Log
from arcticlake.commit.iceberg_state import load_log
from arcticlake.errors import InvalidRequest
from arcticlake.pull.arrow import in_order, newest_of_key, overwrite_rows, pull_jobs, scan_pull
from arcticlake.pull.columns import (
    CHANGE_TYPE,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    OVERWRITE,
    TOLD_COLUMNS,
)
from arcticlake.pull.iceberg import key_schema, load_added, load_difference, order_schema
from arcticlake.pull.plan import PullPlan, plan_pull
from arcticlake.pull.range import Moment, PullMode, parse_pull_mode, plan_range
from arcticlake.pull.spark import (
    in_order_on_spark,
    newest_on_spark,
    pull_frame,
    told_struct,
    with_overwrites,
)
from arcticlake.pull.steps import plan_steps
from arcticlake.read.arrow import run_jobs
from arcticlake.read.condition import columns_of, exact, relaxed
from arcticlake.read.iceberg import arrow_condition
from arcticlake.read.plan import only_on
from arcticlake.read.spark import run_jobs_on_spark
from arcticlake.resolve.bitmap import Mask
from arcticlake.table.iceberg import TablePair
from arcticlake.table.spec import TableSpec
from arcticlake.table.types import arrow_schema
from arcticlake.verbs.opened import Opened
from arcticlake.verbs.read import DRIVER_ROWS_MAX, choose_columns, parse_moment, pruning_of

IN_PROCESS_BYTES_MAX = 64 * 2**20
"""Files of a range that are read on the driver; Spark tasks read more."""

_TOLD_ID_FIRST = 1_000_001_001
_TOLD_FIELDS = (
    NestedField(_TOLD_ID_FIRST, CHANGE_TYPE, StringType()),
    NestedField(_TOLD_ID_FIRST + 1, COMMIT_VERSION, LongType()),
    NestedField(_TOLD_ID_FIRST + 2, COMMIT_TIMESTAMP, TimestamptzType()),
)


@dataclass(frozen=True, slots=True)
class ChangesRequest:
    """What the caller asked of a pull."""

    since: int | str | datetime | None = None
    until: int | str | datetime | None = None
    mode: str = PullMode.RAW.value
    columns: tuple[str, ...] | None = None
    where: str | None = None
    difference: bool = False


@dataclass(frozen=True, slots=True)
class PlannedPull:
    """A pull that is planned and not run."""

    pair: TablePair
    plan: PullPlan
    columns: tuple[str, ...]
    """Business columns of the answer."""
    scanned: Schema
    """Columns to read: those of the answer, of the condition and of the order."""

    @property
    def spec(self) -> TableSpec:
        """The table, with its present columns."""
        return self.pair.spec

    @property
    def moves(self) -> bool:
        """Whether a key may change its partition."""
        return self.spec.keyed and not self.spec.key_decides_partition

    @property
    def answer(self) -> list[str]:
        """All columns of the answer."""
        return [*self.columns, *TOLD_COLUMNS]

    @property
    def judged(self) -> Schema:
        """What a condition may speak of, of the columns that are read."""
        return Schema(*self.scanned.fields, *_TOLD_FIELDS)


def plan_changes(table: Opened, request: ChangesRequest, *, zone: str = "UTC") -> PlannedPull:
    """Return what a pull would do; nothing but metadata is touched."""
    mode = parse_pull_mode(request.mode, table=table.name)
    pair = table.pair()
    spec, log = pair.spec, load_log(pair)
    _check_request(spec, request)
    chosen = choose_columns(spec, request.columns, TOLD_COLUMNS)
    columns = tuple(name for name in chosen if name not in TOLD_COLUMNS)  # always there anyway
    used, pruning = frozenset[str](), None
    if request.where is not None:
        whole = Schema(*spec.schema.fields, *_TOLD_FIELDS)
        used = columns_of(request.where, whole)
        condition = relaxed(request.where, whole, zone=zone)
        pruning = pruning_of(pair, spec, only_on(condition, frozenset(spec.columns)))
    asked = plan_range(log, _point(log, request.since), _point(log, request.until))
    steps = plan_steps(log, asked, mode, difference=request.difference)
    plan = plan_pull(spec, mode, steps, load_added(pair, steps.steps), pruning)
    needed = {*columns, *used, *(spec.key if plan.one_of_key else ())}
    if plan.differences:
        needed.update(spec.columns)  # any value may be the one that differs
    wanted = [field for field in spec.schema.fields if field.name in needed]
    return PlannedPull(pair, plan, columns, Schema(*(wanted or spec.schema.fields[:1])))


def _point(log: Log, point: object) -> object:
    if isinstance(point, str | datetime):
        return Moment(parse_moment(point, table=log.table), str(point))
    return point


def _check_request(spec: TableSpec, request: ChangesRequest) -> None:
    if request.difference and not spec.keyed:
        message = (
            f"table {spec.name} has no primary key, so rows before and after an overwrite cannot "
            "be compared; leave difference away"
        )
        raise InvalidRequest(message)


def changes_to_arrow(table: Opened, request: ChangesRequest) -> pa.Table:
    """Return the answer of a pull without Spark."""
    pull = plan_changes(table, request)
    condition = None
    if request.where is not None:
        condition = exact(request.where, pull.judged)
    return _rows(pull, condition, _resolved(pull)).select(pull.answer)


def _resolved(pull: PlannedPull) -> dict[str, Mask]:
    if not pull.plan.groups:
        return {}
    jobs = pull_jobs(pull.plan, pull.pair.storage, key_schema(pull.pair), order_schema())
    return run_jobs(jobs)


def _rows(
    pull: PlannedPull, condition: BooleanExpression | None, dead: dict[str, Mask]
) -> pa.Table:
    """Return the rows of a pull in order, as they travel, read on the driver."""
    plan, pair, key = pull.plan, pull.pair, pull.spec.key
    schema = arrow_schema(pull.scanned)
    passes = None if condition is None else arrow_condition(condition, pull.judged)
    early = None if plan.chosen_again else passes
    parts = [load_difference(pair, step, rank, schema) for step, rank in plan.differences]
    rows = pa.concat_tables([*parts, scan_pull(plan, pair.storage, schema, dead, early)])
    if plan.chosen_again:
        rows = newest_of_key(rows, key)
    if passes is not None:
        rows = rows.filter(passes)
    told = overwrite_rows(plan, schema)
    if condition is not None:
        told = told.filter(_of_overwrites(condition, pull))
    return in_order(pa.concat_tables([told, rows]), plan, key, moves=pull.moves)


def _of_overwrites(condition: BooleanExpression, pull: PlannedPull) -> pc.Expression:
    """Return what a condition says of rows without values: only its terms on the three columns."""
    return arrow_condition(only_on(condition, frozenset(TOLD_COLUMNS)), pull.judged)


def changes(table: Opened, request: ChangesRequest) -> DataFrame:
    """Return the answer of a pull as a DataFrame."""
    spark = table.session()
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    pull = plan_changes(table, request, zone=zone)
    plan = pull.plan
    small = plan.bytes <= IN_PROCESS_BYTES_MAX
    if small or plan.differences:
        names = [field.name for field in pull.judged.fields]
        rows = _rows(pull, None, _resolved(pull)).select(names)
        frame = spark.createDataFrame(rows, told_struct(pull.scanned))
        return _judged(frame, pull, request.where, zone).select(*map(_quoted, pull.answer))
    dead: dict[str, Mask]
    if plan.rows_to_resolve > DRIVER_ROWS_MAX:
        jobs = pull_jobs(plan, pull.pair.storage, key_schema(pull.pair), order_schema())
        dead = run_jobs_on_spark(spark, jobs)
    else:
        dead = _resolved(pull)
    frame = pull_frame(spark, plan, pull.pair.storage, pull.scanned, dead)
    if plan.chosen_again:
        frame = newest_on_spark(frame, pull.spec.key)
    told = overwrite_rows(plan, arrow_schema(pull.scanned))
    frame = _judged(with_overwrites(spark, frame, told), pull, request.where, zone)
    ordered = in_order_on_spark(frame, plan, pull.spec.key, moves=pull.moves)
    return ordered.select(*map(_quoted, pull.answer))


def _judged(frame: DataFrame, pull: PlannedPull, where: str | None, zone: str) -> DataFrame:
    """Return the rows that meet a condition, as Spark judges it, and overwrites that may."""
    if where is None:
        return frame
    try:
        plain = frame.where(where)
    except (AnalysisException, ParseException) as error:
        message = f"table {pull.spec.name}: the condition {where!r} cannot be evaluated: {error}"
        raise InvalidRequest(message) from error
    if not pull.plan.overwrites:
        return plain
    rows = overwrite_rows(pull.plan, arrow_schema(pull.scanned))
    passes = _of_overwrites(relaxed(where, pull.judged, zone=zone), pull)
    kept = rows.filter(passes)[COMMIT_VERSION].to_pylist()
    told = F.col(CHANGE_TYPE) == OVERWRITE
    shown = F.when(told, F.col(COMMIT_VERSION).isin(kept)).otherwise(F.expr(where))
    return frame.where(shown)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
