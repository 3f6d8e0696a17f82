"""The command in this process: arguments in, exit code and both streams out."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pytest

from arcticlake.cli.call import WAREHOUSE_VARIABLE
from arcticlake.cli.main import main

SCHEMA = "order_id bigint, amount decimal(12,2), status string, at timestamp"
ROWS = """\
{"order_id": 1, "amount": 12.5, "status": "new", "at": "2026-11-15T12:00:00Z"}
{"order_id": 2, "amount": "7.25", "status": null, "at": "2026-11-15"}
"""


@dataclass(frozen=True, slots=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> object:
        return json.loads(self.out)


Arctic: TypeAlias = Callable[..., Answer]


@pytest.fixture
def arctic(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Arctic:
    """Run the command in an empty folder with a lake in `lake`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(WAREHOUSE_VARIABLE, "lake")

    def run(*arguments: str) -> Answer:
        capsys.readouterr()
        code = main(arguments)
        told = capsys.readouterr()
        return Answer(code, told.out, told.err)

    return run


@pytest.fixture
def orders(arctic: Arctic, tmp_path: Path) -> Arctic:
    """The command, with a table of two orders."""
    (tmp_path / "orders.jsonl").write_text(ROWS, encoding="utf-8")
    assert arctic("create", "shop.orders", "--schema", SCHEMA, "--key", "order_id").code == 0
    assert arctic("upsert", "shop.orders", "orders.jsonl").code == 0
    return arctic
