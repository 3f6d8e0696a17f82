"""What a batch tells of itself before it is written."""

from __future__ import annotations

import pyarrow as pa
import pytest

from arcticlake.stream.cdc_plan import (
    EXTRA,
    NOTES,
    PLACED,
    POSITION,
    RAW,
    REASON,
    REJECT,
    SPLIT,
    TRUNCATE,
)
from arcticlake.stream.cdc_survey import Survey, kind_of, rejects_of, show_rejects, survey_rows
from arcticlake.table.change import ACTION, ORDER

SCHEMA = pa.schema([pa.field(ACTION, pa.string()), pa.field(ORDER, pa.int64()), *NOTES])


def row(action: str, order: int | None, **notes: object) -> dict[str, object]:
    return {ACTION: action, ORDER: order, PLACED: True, SPLIT: False, **notes}


def batch(*rows: dict[str, object]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), SCHEMA)


def test_everything_that_may_stop_a_batch_is_counted() -> None:
    rows = batch(
        row("+I", 1, **{EXTRA: ["b", "a"]}),
        row("+U", None, **{EXTRA: ["a"]}),
        row("-D", 4, **{SPLIT: True, PLACED: False}),
        row(TRUNCATE, 7),
        row(TRUNCATE, 5, **{PLACED: False}),
        row(REJECT, None, **{REASON: "no", RAW: "junk", POSITION: 3}),
    )

    assert survey_rows(rows) == Survey(1, 1, 1, 1, 7, ("a", "b"))


def test_an_empty_batch_has_nothing_in_it() -> None:
    assert survey_rows(batch()) == Survey(0, 0, 0, 0, None, ())


def test_the_first_reasons_are_shown() -> None:
    bad = [row(REJECT, None, **{REASON: f"r{n}", RAW: "junk", POSITION: n}) for n in range(5)]

    shown = show_rejects(rejects_of(batch(row("+I", 1), *bad)))

    assert shown.startswith("position 0: r0 in 'junk'; position 1: r1")
    assert "r3" not in shown


@pytest.mark.parametrize(
    ("seen", "kind"),
    [
        ({"BIGINT", "VOID"}, "bigint"),
        ({"BIGINT", "DECIMAL"}, "double"),
        ({"BOOLEAN"}, "boolean"),
        ({"STRING", "BIGINT"}, "string"),
        ({"OBJECT<a: BIGINT>"}, "string"),
        ({"VOID"}, None),
    ],
)
def test_a_new_column_gets_the_narrowest_type_that_holds_all(
    seen: set[str], kind: str | None
) -> None:
    assert kind_of(seen) == kind
