"""Arguments, exit codes and the one form of errors (LOG-04)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from arcticlake import __version__
from arcticlake.cli.main import explain_failure, form_of, shared_first
from arcticlake.cli.output import Form
from arcticlake.errors import Conflict, CorruptData, InvalidRequest, NotFound, OutcomeUnknown
from tests.cli.conftest import Arctic

ROOT = Path(__file__).resolve().parents[2]


def test_shared_choices_may_stand_anywhere_before_two_dashes() -> None:
    given = ["read", "t", "--output", "json", "--limit", "1", "--warehouse=w", "--", "--catalog"]

    assert shared_first(given) == [
        *("--output", "json", "--warehouse=w"),
        *("read", "t", "--limit", "1", "--", "--catalog"),
    ]


def test_the_form_is_known_even_when_the_arguments_are_wrong() -> None:
    assert form_of(["--output", "json", "nonsense"]) is Form.JSON
    assert form_of(["--output=json"]) is Form.JSON
    assert form_of(["read"]) is Form.TEXT


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidRequest("m"), 2),
        (NotFound("m"), 1),
        (Conflict("m"), 4),
        (OutcomeUnknown("m"), 5),
        (CorruptData("m"), 3),
        (ZeroDivisionError("m"), 1),
    ],
)
def test_every_error_has_its_exit_code(error: Exception, code: int) -> None:
    assert explain_failure(error).exit_code == code


def test_wrong_use_is_one_line_and_exit_code_two(arctic: Arctic) -> None:
    answer = arctic("raed", "shop.orders")

    assert answer.code == 2
    assert answer.out == ""
    assert answer.err.startswith("error: No such command 'raed'")
    assert answer.err.count("\n") == 1


def test_errors_in_json_leave_stdout_empty(arctic: Arctic) -> None:
    answer = arctic("tables", "--output", "json")

    assert (answer.code, answer.out) == (1, "")
    assert json.loads(answer.err)["error"]["kind"] == "NotFound"


def test_without_a_verb_the_help_is_shown(arctic: Arctic) -> None:
    answer = arctic()

    assert answer.code == 2
    assert "Commands:" in answer.err


def test_a_catalog_that_is_typed_wins_over_a_warehouse_that_is_set(arctic: Arctic) -> None:
    answer = arctic("--catalog", "nowhere", "tables")

    assert answer.code == 2
    assert "nowhere" in answer.err


def test_the_version_is_that_of_the_package(arctic: Arctic) -> None:
    assert arctic("version").out == f"arctic {__version__}\n"
    assert arctic("version", "--output", "json").json == {"version": __version__}


def test_the_command_runs_as_a_module_and_loads_no_engine_for_its_help() -> None:
    probe = (
        "import sys; from arcticlake.cli.main import main; main(['--help']); "
        "sys.exit(any(name in sys.modules for name in ('pyspark', 'pyiceberg', 'polars')))"
    )
    run = subprocess.run(
        [sys.executable, "-c", probe],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stderr
    assert "Commands:" in run.stdout
