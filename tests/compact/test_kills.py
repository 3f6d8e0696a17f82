"""A process that writes and compacts is killed at any moment: nothing confirmed is ever lost."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from arcticlake import Lake
from tests.compact.worker import rows

KILLS = int(os.environ.get("ARCTIC_KILLS", "4"))


def expected(numbers: Iterable[int]) -> dict[int, int]:
    """Return what the table holds after some batches."""
    known: dict[int, int] = {}
    for number in numbers:
        batch = rows(number)
        known |= dict(zip(batch["id"].to_pylist(), batch["batch"].to_pylist(), strict=True))
    return known


@pytest.mark.timeout(0 if KILLS > 10 else 180)
def test_a_killed_writer_loses_nothing_that_was_confirmed(tmp_path: Path) -> None:
    """CMP-17: commits of both tables, trims and files of tasks may be cut anywhere."""
    lake = Lake.open(str(tmp_path / "lake"))
    options = {"initial-nodes": 1, "target-file-size": "1KB", "leaf-size": "2KB"}
    lake.create_table("a.b", "id bigint, batch bigint", primary_key="id", options=options)
    told = tmp_path / "told"
    told.touch()
    draw = random.Random(int(os.environ.get("ARCTIC_KILLS_SEED", "5")))
    confirmed: list[int] = []
    for _ in range(KILLS):
        first = confirmed[-1] + 2 if confirmed else 0
        worker = subprocess.Popen(
            [sys.executable, "-m", "tests.compact.worker", lake_folder(tmp_path), told, str(first)]
        )
        wait_for_more(told, len(confirmed) + 1, worker)
        time.sleep(draw.random() * 1.5)
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        confirmed = [int(line) for line in told.read_text(encoding="utf-8").splitlines()]

        table = Lake.open(lake_folder(tmp_path)).table("a.b")
        found = table.to_arrow()
        content = dict(zip(found["id"].to_pylist(), found["batch"].to_pylist(), strict=True))
        assert len(content) == found.num_rows
        under_way = confirmed[-1] + 1  # sent, perhaps landed, and never confirmed
        if under_way in content.values():
            confirmed.append(under_way)
            with told.open("a", encoding="utf-8") as line:
                line.write(f"{under_way}\n")
        assert content == expected(confirmed)
        verdict = table.verify()
        assert verdict.ok, verdict.problems
    table.compact("major")
    base = table.to_arrow(mode="base")
    assert dict(zip(base["id"].to_pylist(), base["batch"].to_pylist(), strict=True)) == content


def lake_folder(tmp_path: Path) -> str:
    return str(tmp_path / "lake")


def wait_for_more(told: Path, lines: int, worker: subprocess.Popen[bytes]) -> None:
    """Wait until the worker has confirmed a batch."""
    for _ in range(600):
        if len(told.read_text(encoding="utf-8").splitlines()) >= lines:
            return
        assert worker.poll() is None, "the worker stopped by itself"
        time.sleep(0.1)
    message = "the worker confirms nothing"
    raise AssertionError(message)
