"""A change row: one insert, update or delete with its place in history.

Beside the business columns a change row carries four hidden ones:

    _action   +I insert, -U before image, +U after image, -D delete
    _ts       when the row entered; for people, it never decides anything
    _order    place inside its commit: the source's position, or the place in the batch
    _seq      normally null: the row inherits the sequence number of the commit of its file;
              a rewrite of change files writes the inherited number down

A row's place in history is (sequence of its commit, `_order`).

Pure.
"""

from __future__ import annotations

from enum import StrEnum

ACTION, TS, ORDER, SEQ = "_action", "_ts", "_order", "_seq"
HIDDEN_COLUMNS = (ACTION, TS, ORDER, SEQ)


class Action(StrEnum):
    """What a change row does to its key."""

    INSERT = "+I"
    UPDATE_BEFORE = "-U"
    UPDATE_AFTER = "+U"
    DELETE = "-D"
