from __future__ import annotations

import pickle

import pyarrow as pa

from arcticlake.resolve.job import FileToResolve, ResolveJob
from arcticlake.resolve.kernel import NEWEST, Keep
from arcticlake.table.storage import Storage


def test_a_job_travels_whole_and_means_live_rows_of_all_commits() -> None:
    """What nobody says is: nothing is merged, nothing is too new, and deletes end a key."""
    schema = pa.schema([pa.field("k", pa.int64())])
    job = ResolveJob(Storage(), schema, schema, (FileToResolve("b", 0),), (FileToResolve("c", 3),))

    again = pickle.loads(pickle.dumps(job))

    assert again == job
    assert again.keep is Keep.LIVE
    assert (again.changes[0].after, again.changes[0].until) == (0, NEWEST)
