"""The six kinds of error, told apart by what the caller does next.

    ArcticError
    ├── InvalidRequest   fix the call                    exit 2
    ├── NotFound         name something that exists      exit 1
    ├── Conflict         somebody else was faster: retry exit 4
    ├── Unavailable      retry later                     exit 1
    │   └── OutcomeUnknown   look before you retry       exit 5
    ├── CorruptData      stop and look                   exit 3
    └── InternalError    report it                       exit 1

A message names the table, the value and the next step. Errors cross process borders
(Spark workers, streaming drivers), so each is built from one string and pickles.

Pure.
"""

from __future__ import annotations

from typing import ClassVar


class ArcticError(Exception):
    """Root of everything Arctic raises on purpose."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidRequest(ArcticError):
    """The call cannot be carried out as given; nothing was changed."""

    exit_code = 2


class NotFound(ArcticError):
    """The table, version, tag or column does not exist."""


class Conflict(ArcticError):
    """Another writer changed what this call relied on; nothing of it is visible, retry."""

    exit_code = 4


class Unavailable(ArcticError):
    """The catalog, the store or Java does not answer; retry later."""


class OutcomeUnknown(Unavailable):
    """A commit was sent and no answer came; read the history before repeating it."""

    exit_code = 5


class CorruptData(ArcticError):
    """What lies on disk contradicts the rules of the table; stop and look."""

    exit_code = 3


class InternalError(ArcticError):
    """A rule of Arctic's own code was broken; please report it."""
