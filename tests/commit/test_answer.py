from __future__ import annotations

import sqlite3

import pytest
from pyiceberg.exceptions import (
    BadRequestError,
    CommitFailedException,
    CommitStateUnknownException,
    NoSuchTableError,
    ServiceUnavailableError,
    TooManyRequestsError,
    UnauthorizedError,
)
from sqlalchemy.exc import OperationalError

from arcticlake.commit.answer import Answer, answer_of, as_arctic, worth_repeating
from arcticlake.errors import Conflict, InvalidRequest, NotFound, Unavailable


class PostgresError(Exception):
    """Carries a code the way psycopg2 does."""

    def __init__(self, pgcode: str) -> None:
        super().__init__(pgcode)
        self.pgcode = pgcode


def sqlite_error(code: int) -> OperationalError:
    cause = sqlite3.OperationalError("no luck")
    cause.sqlite_errorcode = code
    return OperationalError("UPDATE", {}, cause)


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (CommitFailedException(), Answer.REFUSED),
        (TooManyRequestsError(), Answer.REFUSED),
        (sqlite_error(sqlite3.SQLITE_BUSY), Answer.REFUSED),
        (sqlite_error(sqlite3.SQLITE_BUSY_SNAPSHOT), Answer.REFUSED),
        (sqlite_error(sqlite3.SQLITE_IOERR), Answer.UNKNOWN),
        (OperationalError("UPDATE", {}, PostgresError("40001")), Answer.REFUSED),
        (OperationalError("UPDATE", {}, PostgresError("57P01")), Answer.UNKNOWN),
        (BadRequestError(), Answer.DENIED),
        (UnauthorizedError(), Answer.DENIED),
        (NoSuchTableError(), Answer.DENIED),
        (CommitStateUnknownException(), Answer.UNKNOWN),
        (ServiceUnavailableError(), Answer.UNKNOWN),
        (TimeoutError(), Answer.UNKNOWN),
        (ValueError(), Answer.UNKNOWN),
    ],
)
def test_only_errors_that_come_before_the_swap_are_believed(
    error: Exception, answer: Answer
) -> None:
    assert answer_of(error) is answer


def test_an_error_before_sending_says_what_to_do_next() -> None:
    ours = Conflict("x")

    assert as_arctic(ours, "t") is ours
    assert isinstance(as_arctic(NoSuchTableError("t"), "t"), NotFound)
    assert isinstance(as_arctic(UnauthorizedError("t"), "t"), InvalidRequest)
    assert isinstance(as_arctic(ConnectionRefusedError(), "t"), Unavailable)
    assert isinstance(as_arctic(sqlite_error(sqlite3.SQLITE_IOERR), "t"), Unavailable)
    assert as_arctic(TypeError("a fault in code"), "t") is None


def test_a_fault_in_code_is_not_worth_repeating() -> None:
    assert worth_repeating(CommitFailedException())
    assert worth_repeating(ConnectionResetError())
    assert not worth_repeating(TypeError())
    assert not worth_repeating(UnauthorizedError())
