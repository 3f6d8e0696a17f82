"""The errors: each survives pickling and ends the command with its own code."""

from __future__ import annotations

import pickle

import pytest

from arcticlake import errors
from arcticlake.errors import ArcticError

KINDS = [
    errors.InvalidRequest,
    errors.NotFound,
    errors.Conflict,
    errors.Unavailable,
    errors.OutcomeUnknown,
    errors.CorruptData,
    errors.InternalError,
]


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_crosses_a_process_border(kind: type[ArcticError]) -> None:
    error = pickle.loads(pickle.dumps(kind("table shop.orders: what to do next")))

    assert type(error) is kind
    assert error.message == str(error) == "table shop.orders: what to do next"


def test_exit_codes_tell_apart_what_to_do_next() -> None:
    codes = {kind.__name__: kind.exit_code for kind in KINDS}

    assert codes == {
        "InvalidRequest": 2,
        "NotFound": 1,
        "Conflict": 4,
        "Unavailable": 1,
        "OutcomeUnknown": 5,
        "CorruptData": 3,
        "InternalError": 1,
    }
