from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from arcticlake.commit.history import View
from arcticlake.read import arrow
from arcticlake.read.arrow import extra_columns, file_to_scan, resolve_jobs, run_jobs, scan_plan
from arcticlake.read.plan import ReadMode, ResolveGroup, ScanPlan
from arcticlake.table.storage import Storage
from arcticlake.table.watermark import Watermark
from arcticlake.tree.files import Role
from arcticlake.tree.node import ROOT
from tests.read.test_parquet import HIDDEN, KEY, ROWS, base, change
from tests.tree.strategies import file_in

VIEW = View(9, 1, 2, Watermark(), {1: 4}, {1: 4}, None)


def plan_of(bases: list[str], changes: list[str]) -> ScanPlan:
    old = tuple(file_in(ROOT, path=path) for path in bases)
    new = tuple(file_in(ROOT, role=Role.CHANGE, path=path, sequence=6) for path in changes)
    group = ResolveGroup((), ROOT, old, new)
    return ScanPlan("db.t", ReadMode.MERGED, VIEW, (group,), old, new, len(old) + len(new))


def test_a_plan_is_resolved_and_scanned(tmp_path: Path) -> None:
    plan = plan_of(
        [base(tmp_path / "b", [1, 2, 3])],
        [change(tmp_path / "c", (2, "+U", 0, None), (3, "-D", 1, None))],
    )

    dead = run_jobs(resolve_jobs(plan, Storage(), KEY, HIDDEN, {}))
    rows = scan_plan(plan, Storage(), ROWS, dead, condition=None, extra=("_version",))
    some = scan_plan(plan, Storage(), ROWS, dead, condition=pa.compute.field("id") == 2, extra=())

    assert sorted(rows.to_pylist(), key=str) == [
        {"id": 1, "v": "v1", "_version": 4},
        {"id": 2, "v": "c2", "_version": 6},
    ]
    assert some.to_pylist() == [{"id": 2, "v": "c2"}]


def test_a_base_file_stands_at_the_version_of_its_batch() -> None:
    plan = plan_of(["b"], [])

    (job,) = resolve_jobs(plan, Storage(), KEY, HIDDEN, {"b": np.array([1])})

    assert job.bases[0].sequence == 4
    assert job.bases[0].positions is not None
    assert file_to_scan(plan, plan.bases[0]).version == 4


def test_a_group_that_was_resolved_is_not_read_again(tmp_path: Path) -> None:
    """Files never change, so the answer is a function of their names."""
    path = tmp_path / "b"
    plan = plan_of([base(path, [1])], [change(tmp_path / "c", (1, "-D", 0, None))])
    jobs = resolve_jobs(plan, Storage(), KEY, HIDDEN, {})
    first = run_jobs(jobs)

    path.unlink()

    assert {p: m.tolist() for p, m in run_jobs(jobs).items()} == {
        p: m.tolist() for p, m in first.items()
    }


def test_the_cache_forgets_what_was_used_least() -> None:
    cache = arrow._Cache()
    mask = {"f": np.zeros(arrow.CACHE_ROWS_MAX // 2, dtype=bool)}
    for number in range(2):
        cache.keep(number, mask)
    cache.find(0)

    cache.keep(2, mask)

    assert cache.find(0) is not None
    assert cache.find(1) is None
    assert cache.find(2) is not None


def test_each_mode_has_its_hidden_columns() -> None:
    assert extra_columns(ReadMode.MERGED, metadata=False) == ()
    assert extra_columns(ReadMode.BASE, metadata=True) == ("_version",)
    assert extra_columns(ReadMode.UNMERGED, metadata=False) == ("_action", "_version", "_order")
