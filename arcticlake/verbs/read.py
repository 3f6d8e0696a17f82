"""read and to_arrow: from the call to a plan, from the plan to rows.

Touches the catalog, data files and Spark.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from difflib import get_close_matches

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.schema import Schema
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame

from arcticlake.commit.history import check_one_of, version_at, versions
from arcticlake.commit.iceberg_state import TableState, load_log, load_state
from arcticlake.errors import InvalidRequest, NotFound
from arcticlake.read.arrow import extra_columns, resolve_jobs, run_jobs, scan_plan
from arcticlake.read.condition import columns_of, exact, relaxed
from arcticlake.read.iceberg import arrow_condition, load_positions
from arcticlake.read.plan import (
    Pruning,
    ScanPlan,
    only_on,
    parse_mode,
    partitions_that_may_match,
    plan_scan,
)
from arcticlake.read.spark import SparkScan, frame_of, run_jobs_on_spark
from arcticlake.resolve.bitmap import Mask
from arcticlake.resolve.job import ResolveJob
from arcticlake.spark import jvm_can_open
from arcticlake.table.iceberg import TablePair
from arcticlake.table.spec import TableSpec
from arcticlake.table.types import arrow_schema
from arcticlake.tree.files import Role
from arcticlake.tree.forest import Partition
from arcticlake.verbs.opened import Opened, hidden_schema

DRIVER_ROWS_MAX = 60_000_000
"""Keys that one read resolves on the driver; beyond, Spark tasks do it, one group each."""


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """What the caller asked of a read."""

    mode: str = "merged"
    version: int | None = None
    timestamp: str | datetime | None = None
    tag: str | None = None
    columns: tuple[str, ...] | None = None
    where: str | None = None
    metadata: bool = False


@dataclass(frozen=True, slots=True)
class PlannedRead:
    """A read that is planned and not run: state, plan and columns."""

    state: TableState
    spec: TableSpec
    plan: ScanPlan
    columns: tuple[str, ...]
    """Columns of the answer."""
    scanned: Schema
    """Columns to read: those of the answer and of the condition."""
    extra: tuple[str, ...]


def plan_read(table: Opened, request: ReadRequest, *, zone: str = "UTC") -> PlannedRead:
    """Return what a read would do; nothing but metadata is touched.

    `zone` is where a timestamp in the condition stands that names no zone itself.
    """
    mode = parse_mode(request.mode, table=table.name)
    pair = table.pair()
    state = load_state(pair, version_of(pair, request))
    schema = pair.schema(state.view.schema_id)
    spec = replace(pair.spec, schema=schema)
    columns = choose_columns(spec, request.columns)
    used = frozenset[str]() if request.where is None else columns_of(request.where, schema)
    wanted = [field for field in schema.fields if field.name in {*columns, *used}]
    pruning = None
    if request.where is not None:
        pruning = pruning_of(pair, spec, relaxed(request.where, schema, zone=zone))
    plan = plan_scan(spec, state.view, state.files, mode=mode, pruning=pruning)
    return PlannedRead(
        state=state,
        spec=spec,
        plan=plan,
        columns=columns,
        scanned=Schema(*(wanted or schema.fields[:1])),
        extra=extra_columns(mode, metadata=request.metadata),
    )


def choose_columns(
    spec: TableSpec, asked: tuple[str, ...] | None, also: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Return the columns of an answer by the names that were asked for, in any case.

    `also` are names beside the table's own that may be asked for.
    """
    if asked is None:
        return spec.columns
    known = {name.lower(): name for name in (*spec.columns, *also)}
    for name in asked:
        if name.lower() not in known:
            near = get_close_matches(name.lower(), known, n=1)
            told = (
                f"did you mean {known[near[0]]}?" if near else f"columns: {', '.join(spec.columns)}"
            )
            message = f"table {spec.name}: there is no column {name!r}; {told}"
            raise InvalidRequest(message)
    return tuple(dict.fromkeys(known[name.lower()] for name in asked))


def pruning_of(pair: TablePair, spec: TableSpec, condition: BooleanExpression) -> Pruning | None:
    """Return a condition in the forms that files are judged by; None where it says nothing."""
    if isinstance(condition, AlwaysTrue):
        return None
    specs = {(Role.BASE, number): known for number, known in pair.base.specs().items()}
    if pair.change is not None:
        specs |= {(Role.CHANGE, number): known for number, known in pair.change.specs().items()}
    on_key = only_on(condition, frozenset(spec.key)) if spec.keyed else condition
    return Pruning(schema=spec.schema, whole=condition, on_key=on_key, specs=specs)


def keep_partitions(state: TableState, where: str) -> frozenset[Partition]:
    """Return the partitions that may hold rows which meet a condition."""
    files, spec = state.files.all, state.pair.spec
    columns_of(where, spec.schema)  # an unknown column is told by name
    pruning = pruning_of(state.pair, spec, relaxed(where, spec.schema, zone="UTC"))
    if pruning is None:
        return frozenset(file.partition for file in files)
    return partitions_that_may_match(files, pruning)


def version_of(pair: TablePair, request: ReadRequest) -> int | None:
    """Return the version that a read names by number, moment or tag; None for the newest."""
    check_one_of(
        pair.spec.name, version=request.version, timestamp=request.timestamp, tag=request.tag
    )
    if request.timestamp is not None:
        moment = parse_moment(request.timestamp, table=pair.spec.name)
        known = versions(load_log(pair))
        return version_at(known, moment, table=pair.spec.name, asked=str(request.timestamp))
    if request.tag is not None:
        return tagged_version(pair, request.tag)
    if request.version is not None and (
        isinstance(request.version, bool) or not isinstance(request.version, int)
    ):
        message = f"table {pair.spec.name}: version must be a whole number, not {request.version!r}"
        raise InvalidRequest(message)
    return request.version


def tagged_version(pair: TablePair, tag: str) -> int:
    """Return the version that a tag names."""
    holder = pair.base if pair.change is None else pair.change
    found = holder.refs().get(tag)
    snapshot = holder.snapshot_by_id(found.snapshot_id) if found is not None else None
    if snapshot is None:
        known = ", ".join(name for name in holder.refs() if name != "main") or "none"
        message = f"table {pair.spec.name} has no tag {tag!r}; tags: {known}"
        raise NotFound(message)
    return snapshot.sequence_number or 0


def parse_moment(moment: str | datetime, *, table: str) -> int:
    """Return milliseconds since 1970 of a moment; one without a zone stands for UTC."""
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment.strip())
        except ValueError:
            message = (
                f"table {table}: timestamp {moment!r} is not ISO 8601, such as 2026-11-15T12:00:00Z"
            )
            raise InvalidRequest(message) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)


def _jobs(read: PlannedRead) -> list[ResolveJob]:
    pair = read.state.pair
    key_schema = arrow_schema(Schema(*(read.spec.schema.find_field(i) for i in read.spec.key_ids)))
    positions = load_positions(pair.base.io, read.plan.bases)
    return resolve_jobs(read.plan, pair.storage, key_schema, hidden_schema(pair), positions)


def to_arrow(table: Opened, request: ReadRequest) -> pa.Table:
    """Return the answer of a read without Spark."""
    read = plan_read(table, request)
    condition = None
    if request.where is not None:
        condition = arrow_condition(exact(request.where, read.spec.schema), read.scanned)
    rows = scan_plan(
        read.plan,
        read.state.pair.storage,
        arrow_schema(read.scanned),
        run_jobs(_jobs(read)),
        condition=condition,
        extra=read.extra,
    )
    return rows.select([*read.columns, *read.extra])


def matching_rows(table: Opened, condition: str, columns: tuple[str, ...]) -> pa.Table | DataFrame:
    """Return columns of the rows that meet a condition; by Spark where Arrow cannot judge it."""
    request = ReadRequest(columns=columns, where=condition)
    try:
        return to_arrow(table, request)
    except InvalidRequest:
        return to_spark(table, request)


def to_spark(table: Opened, request: ReadRequest) -> DataFrame:
    """Return the answer of a read as a DataFrame."""
    spark = table.session()
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    read = plan_read(table, request, zone=zone)
    pair = read.state.pair
    jobs = _jobs(read)
    dead: dict[str, Mask]
    if sum(group.rows for group in read.plan.groups) > DRIVER_ROWS_MAX:
        dead = run_jobs_on_spark(spark, jobs)
    else:
        dead = run_jobs(jobs)
    scan = SparkScan(read.scanned, pair.storage, dead, read.extra)
    by_tasks = _by_tasks(table, pair)
    frame = frame_of(spark, read.plan, scan, by_tasks=by_tasks)
    if request.where is not None:
        frame = _filtered(frame, request.where, table.name)
    answer = [*read.columns, *read.extra]
    return frame if frame.columns == answer else frame.select(*(f"`{name}`" for name in answer))


def _by_tasks(table: Opened, pair: TablePair) -> bool:
    match pair.spec.options.scan:
        case "tasks":
            return True
        case "jvm":
            return False
    return not jvm_can_open(table.session(), pair.base.location())


def _filtered(frame: DataFrame, where: str, table: str) -> DataFrame:
    try:
        return frame.where(where)
    except (AnalysisException, ParseException) as error:
        message = f"table {table}: the condition {where!r} cannot be evaluated: {error}"
        raise InvalidRequest(message) from error
