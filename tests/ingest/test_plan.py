from __future__ import annotations

import pickle

import pyarrow as pa

from arcticlake.ingest.plan import base_job, change_job, place_terms
from arcticlake.table.storage import Storage
from arcticlake.tree.forest import Forest
from arcticlake.tree.hash import PlaceTerm
from tests.ingest.test_parquet import spec_of

DDL = "id bigint, day date, name string not null, at timestamp"


def test_partition_fields_become_terms_that_executors_understand() -> None:
    spec = spec_of(DDL, partition_by=("day", "hour(at)", "truncate(name, 3)"))

    assert place_terms(spec) == (
        PlaceTerm("day", "day", 0, "day"),
        PlaceTerm("at", "hour", 0, "at_hour"),
        PlaceTerm("name", "truncate", 3, "name_trunc_3"),
    )


def test_a_change_job_requires_only_what_a_delete_has() -> None:
    spec = spec_of(DDL, options={"leaf-commit-size": "1MB"})

    job = change_job(spec, "/t", Storage(), Forest(4), ordered=False)
    ordered = change_job(spec, "/t", Storage(), Forest(4), ordered=True)

    assert job.location == "/t/data"
    assert (job.key, job.bucket, job.file_bytes_max) == (("id",), "id", 2**20)
    assert (job.unique, ordered.unique) == (("id",), ("id", "_order"))
    assert job.required == ("name",)
    assert job.split_full_leaves
    assert [f.name for f in job.schema if not f.nullable] == ["id", "_action", "_ts", "_order"]


def test_a_base_job_splits_by_hash_without_a_sort_key_and_by_range_with_one() -> None:
    """SPL-05, SPL-06."""
    plain = base_job(spec_of(DDL), "/t", Storage(), Forest(4))
    sorted_job = base_job(spec_of(DDL, sort_by=("at",)), "/t", Storage(), Forest(4))
    keyless = base_job(spec_of(DDL, primary_key=()), "/t", Storage(), Forest(4))

    assert plain.split_full_leaves and not sorted_job.split_full_leaves
    assert (keyless.bucket, keyless.unique) == (None, ())
    assert plain.schema.names == ["id", "day", "name", "at"]


def test_a_job_pickles_to_executors_with_its_field_ids() -> None:
    job = base_job(spec_of(DDL), "/t", Storage(), Forest(4))

    again = pickle.loads(pickle.dumps(job))

    assert again == job
    assert again.schema.equals(job.schema, check_metadata=True)
    assert isinstance(again.schema, pa.Schema)
