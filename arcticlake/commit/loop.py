"""A commit has three outcomes: committed, not committed, unknown. Nobody ever guesses.

    load the head ─► decide ─► write manifests ─► send ──────────────► committed
         ▲                                          │ any error
         │                                          ▼
         │            not committed           read back: is our commit id in the table?
         └──────────── wait a little ◄──────────────┼──────────────► committed
                                                    ▼
                                                 unknown: OutcomeUnknown, look before you repeat

Why it is safe to go round again. Every attempt carries the same commit id, is made on a head that
does not contain that id, and asks the catalog to apply it only if the head is still that one. Of
two attempts at most one can land, even if the first is still under way when the second is sent.

Why an error is read back even when it says "refused". A proxy or a server that repeats a request
internally answers "refused" for the second copy of a commit whose first copy landed. The last
attempt is read back like every other.

When "not committed" is certain after an error that says nothing: another snapshot holds the
sequence number that ours would have had, so the head has moved and ours can never land any more.
As long as that is not so, we look again a few times and then say that we do not know.

No branch deletes a file. Expiry must keep snapshots for longer than `seconds_max`, because an
expired snapshot cannot be read back.

Touches the catalog and files, through `iceberg` only; the clock is an argument.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from arcticlake.commit.answer import Answer, answer_of, as_arctic, is_busy
from arcticlake.commit.change import SnapshotChange
from arcticlake.commit.iceberg import (
    WALL_CLOCK,
    Clock,
    StagedSnapshot,
    Table,
    find_commit,
    send_snapshot,
    stage_snapshot,
)
from arcticlake.commit.iceberg_metadata import forget_old_metadata
from arcticlake.errors import Conflict, InternalError, OutcomeUnknown


@dataclass(frozen=True, slots=True)
class Done:
    """There is nothing to commit, because what was wanted is already so."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long to try. With four writers on one table, three tries are common and eight rare."""

    attempts_max: int = 20
    seconds_max: float = 120.0
    pause_seconds_min: float = 0.02
    pause_seconds_max: float = 1.0
    looks_max: int = 5
    """Looks at the table after an error that says nothing, before the outcome is unknown."""
    look_pause_seconds: float = 0.5


LIMITS = Limits()
Load: TypeAlias = Callable[[], Table]
Decide: TypeAlias = Callable[[Table], SnapshotChange | Done]


def commit(
    load: Load,
    decide: Decide,
    commit_id: str,
    *,
    limits: Limits = LIMITS,
    clock: Clock = WALL_CLOCK,
) -> Table:
    """Commit what `decide` wants of the newest head, exactly once; return the table with it.

    `decide` is asked again for every head. It applies its rules to what was committed since its
    plan, and may raise Conflict, or say Done. A commit id that is in the table already is done too.
    """
    table = _load(load, limits, clock)
    uuid = table.metadata.table_uuid
    end = clock.now() + limits.seconds_max
    refusal: Exception | None = None
    for attempt in range(limits.attempts_max):
        if find_commit(table, commit_id) is not None or isinstance(wanted := decide(table), Done):
            return table
        try:
            staged = _stage(table, wanted, commit_id)
        except Conflict:
            # Perhaps `decide` saw a newer head than the one this was made for.
            newest = _load(load, limits, clock)
            if newest.metadata.current_snapshot_id == table.metadata.current_snapshot_id:
                raise
            table = newest
            continue
        try:
            landed = send_snapshot(table, staged)
        except Exception as error:  # noqa: BLE001 - whatever it says, the table is asked
            refusal = error
        else:
            forget_old_metadata(table, landed)
            return landed
        _pause(attempt, limits, clock)
        table = _read_back(load, staged, commit_id, refusal, limits=limits, clock=clock)
        if table.metadata.table_uuid != uuid:
            raise Conflict(f"table {_name(table)} was replaced by another one; open it again")
        if clock.now() >= end:
            break
    if find_commit(table, commit_id) is not None:
        return table
    raise Conflict(
        f"table {_name(table)}: {attempt + 1} attempts lost against other writers; nothing was "
        f"committed, try again"
    ) from refusal


def _load(load: Load, limits: Limits, clock: Clock) -> Table:
    """Load the head; a locked catalog is waited for, one that does not answer is Unavailable."""
    for tries in range(limits.attempts_max):
        try:
            return load()
        except Exception as error:
            if is_busy(error) and tries + 1 < limits.attempts_max:
                _pause(tries, limits, clock)
                continue
            raise (as_arctic(error, "loading the head of a table") or error) from error
    raise InternalError("limits allow no attempt to load a table")


def _stage(table: Table, change: SnapshotChange, commit_id: str) -> StagedSnapshot:
    """Write manifests; whatever goes wrong here, nothing has been sent."""
    try:
        return stage_snapshot(table, change, commit_id)
    except Exception as error:
        doing = f"table {_name(table)}: writing manifests"
        raise (as_arctic(error, doing) or error) from error


def _read_back(
    load: Load,
    staged: StagedSnapshot,
    commit_id: str,
    error: Exception,
    *,
    limits: Limits,
    clock: Clock,
) -> Table:
    """Return the newest table once it is certain that our commit is in it or never will be."""
    answer = answer_of(error)
    for look in range(limits.looks_max):
        if look > 0:
            clock.sleep(limits.look_pause_seconds)
        try:
            table = load()
        except Exception:  # noqa: BLE001, S112 - not seeing the table is no news of the commit
            continue
        if find_commit(table, commit_id) is not None:
            return table
        if answer is Answer.DENIED:
            raise (as_arctic(error, f"table {_name(table)}: committing") or error) from error
        if answer is Answer.REFUSED or _superseded(table, staged):
            return table
    raise OutcomeUnknown(
        f"commit {commit_id} was sent and no clear answer came ({error}). It may or may not be in "
        f"the table: look for its id in history() before you repeat it; no file was deleted"
    ) from error


def _superseded(table: Table, staged: StagedSnapshot) -> bool:
    """Whether another snapshot took the place in history that ours was made for."""
    ours = staged.snapshot
    if table.metadata.current_snapshot_id == ours.parent_snapshot_id:
        return False
    return any(s.sequence_number == ours.sequence_number for s in table.metadata.snapshots)


def _pause(attempt: int, limits: Limits, clock: Clock) -> None:
    """Wait a random while that doubles with every attempt, so that writers do not march in step."""
    longest = min(limits.pause_seconds_max, limits.pause_seconds_min * 2**attempt)
    clock.sleep(longest * (0.5 + 0.5 * clock.random()))


def _name(table: Table) -> str:
    return ".".join(table.name())
