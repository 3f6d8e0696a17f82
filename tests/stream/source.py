"""A small database that tells its changes: rows in a dict, messages in every format."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from random import Random

Row = dict[str, object]
DAYS = ("2026-11-01", "2026-11-02", "2026-11-03")


@dataclass(frozen=True, slots=True)
class Change:
    """One change with both images, as a log holds it."""

    op: str
    position: int
    before: Row | None = None
    after: Row | None = None


@dataclass(slots=True)
class Source:
    """Rows by id, and the log of what was done to them."""

    rows: dict[int, Row] = field(default_factory=dict)
    log: list[Change] = field(default_factory=list)
    position: int = 100

    def insert(self, number: int, day: str, v: str | None) -> None:
        self.rows[number] = {"id": number, "day": day, "v": v}
        self._tell("c", None, self.rows[number])

    def update(self, number: int, **values: object) -> None:
        """Change a row, perhaps its key; a row that has the new key is deleted first."""
        old = self.rows.pop(number)
        new = {**old, **values}
        taken = self.rows.get(int(str(new["id"])))
        if taken is not None:
            self._tell("d", taken, None)
        self.rows[int(str(new["id"]))] = new
        self._tell("u", old, new)

    def delete(self, number: int) -> None:
        self._tell("d", self.rows.pop(number), None)

    def rotate(self, *numbers: int) -> None:
        """Exchange keys all at once, as deferred constraints allow; no key is free meanwhile."""
        old = [self.rows[number] for number in numbers]
        for row, number in zip(old, (*numbers[1:], numbers[0]), strict=True):
            self.rows[number] = {**row, "id": number}
        for row, number in zip(old, (*numbers[1:], numbers[0]), strict=True):
            self._tell("u", row, self.rows[number])

    def truncate(self) -> None:
        self.rows.clear()
        self._tell("t", None, None)

    def _tell(self, op: str, before: Row | None, after: Row | None) -> None:
        self.position += 3
        self.log.append(Change(op, self.position, before, after))

    def take(self) -> list[Change]:
        """Return the log so far and start a new one."""
        taken, self.log = self.log, []
        return taken


def act(source: Source, chance: Random) -> None:
    """Do something to the source, key changes often."""
    known = sorted(source.rows)
    deed = chance.choice(
        ("insert", "insert", "edit", "key", "key", "day", "delete", "back", "swap")
    )
    free = next(n for n in range(1, 1000) if n not in source.rows)
    if deed == "insert" or len(known) < 3:
        source.insert(free, chance.choice(DAYS), chance.choice(("x", "y", None)))
        return
    number = chance.choice(known)
    match deed:
        case "edit":
            source.update(number, v=f"v{chance.randrange(9)}")
        case "key":
            source.update(number, id=chance.choice((free, chance.choice(known))))
        case "day":
            source.update(number, day=chance.choice(DAYS), v="moved")
        case "delete":
            source.delete(number)
        case "back":
            source.update(number, id=free)
            source.update(free, id=number, v="back")
        case "swap":
            three = chance.sample(known, 3)
            alike = chance.random() < 0.5
            for place, n in enumerate(three):
                source.update(n, v="alike" if alike else f"swapped {n} {place}")
            source.rotate(*three[: chance.choice((2, 3))])


def debezium(change: Change, *, wrapped: bool = False) -> str:
    source = {"connector": "postgresql", "lsn": change.position, "table": "t"}
    payload = {"before": change.before, "after": change.after, "source": source, "op": change.op}
    return json.dumps({"schema": {"fields": []}, "payload": payload} if wrapped else payload)


def canal(change: Change) -> str:
    kind = {"c": "INSERT", "u": "UPDATE", "d": "DELETE", "t": "TRUNCATE"}[change.op]
    row = change.after or change.before
    data = None if row is None else [{n: None if v is None else str(v) for n, v in row.items()}]
    old = [_changed(change)] if change.op == "u" else None
    return json.dumps({"type": kind, "isDdl": change.op == "t", "data": data, "old": old, "es": 1})


def maxwell(change: Change) -> str:
    kind = {"c": "insert", "u": "update", "d": "delete"}[change.op]
    message: dict[str, object] = {"type": kind, "data": change.after or change.before, "xid": 1}
    if change.op == "u":
        message["old"] = _changed(change)
    return json.dumps({**message, "position": f"mysql-bin.000007:{change.position}"})


def _changed(change: Change) -> Row:
    assert change.before is not None
    assert change.after is not None
    return {n: v for n, v in change.before.items() if v != change.after[n]}
