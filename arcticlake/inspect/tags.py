"""Tags: names for versions.

Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from arcticlake.commit.history import Log, plan_view, versions
from arcticlake.errors import InvalidRequest

_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_MAIN = "main"


@dataclass(frozen=True, slots=True)
class Tag:
    """A name for one version."""

    name: str
    version: int


@dataclass(frozen=True, slots=True)
class TagPlan:
    """The snapshots that a tag names."""

    tag: Tag
    base_snapshot_id: int | None
    """None while base is empty."""
    change_snapshot_id: int | None
    """None for a table without a key."""


def check_tag_name(name: object, *, table: str) -> None:
    """Refuse a name that is not plain letters, or that is Iceberg's own."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        message = f"table {table}: tag {name!r} must be made of letters, digits, _, - and ."
        raise InvalidRequest(message)
    if name == _MAIN:
        message = f"table {table}: {_MAIN!r} is the table itself; choose another name for the tag"
        raise InvalidRequest(message)


def plan_tag(log: Log, name: str, version: object) -> TagPlan:
    """Return which snapshots a tag on a version names; the newest version without one."""
    check_tag_name(name, table=log.table)
    known = versions(log)
    if not known:
        message = f"table {log.table} has no commits yet; write something, then tag it"
        raise InvalidRequest(message)
    wanted = known[-1].version if version is None else version
    if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 1:
        message = f"table {log.table}: a tag needs a version from history(), not {wanted!r}"
        raise InvalidRequest(message)
    view = plan_view(log, wanted)
    return TagPlan(Tag(name, view.version), view.base_snapshot_id, view.change_snapshot_id)
