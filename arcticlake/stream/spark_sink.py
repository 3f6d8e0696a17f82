"""The driver's half of a writing stream: the job of the tasks, and one commit for each batch.

Touches the catalog, and files where keys of several tasks must be compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql.types import StructType

from arcticlake.commit.iceberg_state import load_settled, load_state
from arcticlake.errors import InvalidRequest
from arcticlake.ingest.iceberg import append_base, append_changes
from arcticlake.ingest.job import Written
from arcticlake.ingest.once import Once
from arcticlake.ingest.parquet import remove_files
from arcticlake.ingest.plan import base_job, change_job
from arcticlake.read.parquet import read_batches
from arcticlake.stream.sink import SinkJob, SinkRequest, parse_options, repeated, rows_to_write
from arcticlake.table.iceberg import TablePair, open_catalog, sync_change_schema
from arcticlake.table.spec import TableSpec
from arcticlake.table.types import arrow_schema, schema_from_spark


def load_target(options: Mapping[str, str]) -> TablePair:
    """Load the table that the options name."""
    catalog = open_catalog(options.get("warehouse"), options.get("catalog"))
    return sync_change_schema(load_settled(catalog, parse_options(options).table))


def plan_sink(options: Mapping[str, str], schema: StructType) -> SinkJob:
    """Return the job of every task; what the schema can tell is refused here."""
    pair, request = load_target(options), parse_options(options)
    spec = pair.spec
    _refuse_kind(spec, request)
    state = load_state(pair)
    if pair.change is None:
        write = base_job(spec, pair.base.location(), pair.storage, state.forest)
    else:
        place, ordered = pair.change.location(), request.order_by is not None
        write = change_job(spec, place, pair.storage, state.forest, ordered=ordered)
    job = SinkJob(request, arrow_schema(spec.schema), write, spec.keyed)
    empty = arrow_schema(schema_from_spark(schema.jsonValue())).empty_table()
    rows_to_write(empty, job, 0)
    return job


def _refuse_kind(spec: TableSpec, request: SinkRequest) -> None:
    asks = request.order_by is not None or request.delete_when is not None
    if not spec.keyed and asks:
        message = f"table {spec.name} has no primary key: rows are inserted as they come (NPK-01)"
        raise InvalidRequest(message)
    if not spec.keyed and spec.sort_ids:
        message = f"table {spec.name} has a sort key and no primary key; use stream_upsert"
        raise InvalidRequest(message)
    if spec.keyed and not spec.key_decides_partition:
        message = (
            f"table {spec.name}: its partition does not follow from its key, and format arctic "
            "cannot look rows up; use stream_upsert(..., locate=True)"
        )
        raise InvalidRequest(message)


def commit_batch(
    options: Mapping[str, str], job: SinkJob, written: Written, once: Once, writers: int
) -> None:
    """Commit the files of one batch, or refuse it and remove them."""
    pair = load_target(options)
    paths = [file.path for file in written.files]
    problem = written.problem
    if problem is None and writers > 1 and job.write.unique:
        problem = repeated(_keys(job, paths))
    if problem is not None:
        remove_files(job.write.storage, paths)
        message = f"table {pair.spec.name}: {problem}; nothing was written"
        raise InvalidRequest(message)
    if pair.change is None:
        done = append_base(pair, written.files, check=lambda _: None, once=once)
    else:
        landed = append_changes(pair, written.files, kind="upsert", properties={}, once=once)
        assert landed is not None, "only a look-up can be overtaken"
        done = landed
    if done.files == 0:
        remove_files(job.write.storage, paths)


def _keys(job: SinkJob, paths: Sequence[str]) -> Iterator[pa.Table]:
    schema = pa.schema([job.write.schema.field(name) for name in job.write.unique])
    for path in paths:
        for batch in read_batches(job.write.storage, path, schema):
            yield pa.Table.from_batches([batch])
