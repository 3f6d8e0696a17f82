"""Who wins against whom: every conflict between two commits is decided here.

A commit is planned on one state of the table and lands on a later one. What landed in between
decides:

    planned, landed:   changes  insert   overwrite*  compaction  row deletes
    ─────────────────  ───────  ───────  ──────────  ──────────  ───────────
    changes            commit   commit   commit      commit      commit
    insert             recheck  recheck  recheck     recheck     recheck
    overwrite          commit   commit   commit      commit      commit
    rollback           commit   commit   commit      commit      commit
    compaction, group  commit   commit   give up if  give up if  give up if
                                         partition   inputs are  they may
                                         touched     gone        name inputs

    * a batch overwrite, a rollback, or a foreign snapshot that is not an append

- Changes are blind appends and conflict with nothing.
- An insert promised that its keys are new, so it looks again whenever anything moved.
- Overwrite and rollback always win: they take their files from the new head (BAT-06).
- Compaction gives up group by group, the others still commit (BAT-07). A group also gives up when
  one of its inputs is gone for whatever reason: the second of two compactions of one group loses.
  What landed may be unknown, because the plan's snapshot expired; then every group gives up.
- New row deletes of another engine on an input would be lost by a rewrite that did not see them, so
  the group gives up. pyiceberg's own check misses this when one more commit follows.

Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

Partition: TypeAlias = tuple[object, ...]
"""Values of the user's partition fields, without the bucket."""


class Kind(StrEnum):
    """What a commit does, as far as others care."""

    CHANGES = "changes"
    """Upserts and deletes appended to the change table, and markers."""
    INSERT = "insert"
    """New base files with new keys; a foreign append is one."""
    OVERWRITE = "overwrite"
    """Base rows replaced by batch; a foreign snapshot that is not an append is one."""
    ROLLBACK = "rollback"
    COMPACTION = "compaction"
    """Minor, major or full: files exchanged, the same rows to read."""
    ROW_DELETES = "row-deletes"
    """Row-delete files of another engine."""


@dataclass(frozen=True, slots=True)
class Group:
    """The files that one compaction group rewrites, and the partitions they lie in."""

    inputs: frozenset[str]
    partitions: frozenset[Partition]


@dataclass(frozen=True, slots=True)
class Planned:
    """A commit that wants to land; only a compaction has groups."""

    kind: Kind
    groups: tuple[Group, ...] = ()


@dataclass(frozen=True, slots=True)
class Landed:
    """A commit that landed after the plan was made."""

    kind: Kind
    partitions: frozenset[Partition] | None = None
    """Partitions whose rows it replaced; None for the whole table."""
    named: frozenset[str] | None = None
    """Data files that its row deletes name; None if that is not known."""


class Action(StrEnum):
    """What the planned commit does now."""

    COMMIT = "commit"
    RECHECK = "recheck"
    """Check the keys against the new state, then commit on exactly that state."""
    GIVE_UP = "give-up"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What may be committed, and what not, with the reason."""

    action: Action
    groups: tuple[Group, ...] = ()
    """Groups of a compaction that may be committed."""
    lost: tuple[tuple[Group, str], ...] = ()
    """Groups that may not, each with its reason."""


def conflict(
    planned: Planned, since: Sequence[Landed] | None, *, live: Collection[str] = frozenset()
) -> Verdict:
    """Return what a planned commit may do on a new head.

    `since` is everything that landed after the plan, in either table; None if that is not known any
    more. `live` are the paths of the files on the new head, needed for a compaction.
    """
    match planned.kind:
        case Kind.CHANGES | Kind.OVERWRITE | Kind.ROLLBACK:
            return Verdict(Action.COMMIT)
        case Kind.INSERT:
            return Verdict(Action.COMMIT if since is not None and not since else Action.RECHECK)
        case Kind.COMPACTION:
            return _sort_groups(planned.groups, since, live)
        case Kind.ROW_DELETES:
            raise AssertionError("Arctic writes no row-delete files")


def _sort_groups(
    groups: Sequence[Group], since: Sequence[Landed] | None, live: Collection[str]
) -> Verdict:
    reasons = [(group, _why_lost(group, since, live)) for group in groups]
    kept = tuple(group for group, reason in reasons if reason is None)
    lost = tuple((group, reason) for group, reason in reasons if reason is not None)
    return Verdict(Action.GIVE_UP if lost and not kept else Action.COMMIT, kept, lost)


def _why_lost(group: Group, since: Sequence[Landed] | None, live: Collection[str]) -> str | None:
    if since is None:
        return "what landed since the plan is no longer known"
    gone = sum(path not in live for path in group.inputs)
    if gone:
        return f"{gone} of {len(group.inputs)} input files are gone"
    for landed in since:
        if landed.kind in {Kind.OVERWRITE, Kind.ROLLBACK} and _meets(
            landed.partitions, group.partitions
        ):
            return f"{landed.kind} replaced rows of its partition"
        if landed.kind is Kind.ROW_DELETES and _meets(landed.named, group.inputs):
            return "another engine deleted rows of its input files"
    return None


def _meets(touched: frozenset[object] | None, ours: frozenset[object]) -> bool:
    return touched is None or not touched.isdisjoint(ours)
