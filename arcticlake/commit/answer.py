"""What an error of the catalog says about the commit that was sent.

    REFUSED   not applied, somebody else was first or holds a lock: try again on the new head
    DENIED    not applied, and trying again would not help
    UNKNOWN   applied or not: the answer was lost, late or not understood

Only errors that are known to come before the swap of the table's pointer are called REFUSED or
DENIED; everything else is UNKNOWN. Even a refusal is read back before it is believed, because a
proxy that repeats a request gets "refused" for the second copy of a commit whose first copy landed.

Pure.
"""

from __future__ import annotations

import sqlite3
from enum import Enum

from pyiceberg.exceptions import (
    AuthorizationExpiredError,
    BadRequestError,
    CommitFailedException,
    ForbiddenError,
    NoSuchNamespaceError,
    NoSuchTableError,
    RESTError,
    TooManyRequestsError,
    UnauthorizedError,
    WaitingForLockException,
)

from arcticlake.errors import ArcticError, InvalidRequest, NotFound, Unavailable

_REFUSALS = (CommitFailedException, TooManyRequestsError, WaitingForLockException)
_MISSING = (NoSuchTableError, NoSuchNamespaceError)
_DENIALS = (BadRequestError, UnauthorizedError, ForbiddenError, AuthorizationExpiredError)
_SQLITE_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_POSTGRES_BUSY = frozenset({"40001", "40P01", "55P03"})  # serialization, deadlock, lock timeout
_DRIVERS = ("sqlalchemy", "sqlite3", "psycopg", "botocore", "thrift", "google", "urllib3")


class Answer(Enum):
    """How sure it is that a commit was not applied."""

    REFUSED = "refused"
    DENIED = "denied"
    UNKNOWN = "unknown"


def answer_of(error: Exception) -> Answer:
    """Return what the error tells of the commit that raised it."""
    if isinstance(error, _REFUSALS) or is_busy(error):
        return Answer.REFUSED
    if isinstance(error, _MISSING + _DENIALS):
        return Answer.DENIED
    return Answer.UNKNOWN


def worth_repeating(error: Exception) -> bool:
    """Whether a commit that may safely be applied twice should be tried again after the error."""
    answer = answer_of(error)
    return answer is Answer.REFUSED or (answer is Answer.UNKNOWN and _is_world(error))


def is_busy(error: Exception) -> bool:
    """Whether a SQL catalog gave up waiting for a lock; its transaction is then rolled back."""
    cause = getattr(error, "orig", None) or error
    if isinstance(cause, sqlite3.OperationalError):
        return getattr(cause, "sqlite_errorcode", 0) & 0xFF in _SQLITE_BUSY
    return getattr(cause, "pgcode", getattr(cause, "sqlstate", None)) in _POSTGRES_BUSY


def as_arctic(error: Exception, doing: str) -> ArcticError | None:
    """Return the error to raise when nothing was sent; None for a fault that is not the world's."""
    if isinstance(error, ArcticError):
        return error
    if isinstance(error, _MISSING):
        return NotFound(f"{doing}: {error}; see which tables exist")
    if isinstance(error, _DENIALS):
        return InvalidRequest(f"{doing}: the catalog denies it: {error}; check its credentials")
    if _is_world(error):
        return Unavailable(f"{doing}: no answer: {error}; nothing was changed, try again later")
    return None


def _is_world(error: Exception) -> bool:
    """Whether the error comes from a network, a disk or a server, and not from a fault in code."""
    return isinstance(error, (OSError, RESTError)) or type(error).__module__.startswith(_DRIVERS)
