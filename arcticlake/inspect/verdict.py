"""What `verify()` says: problems, notes, and what was looked at.

A problem breaks a rule of the table. A note is worth knowing and breaks none, such as a commit of
another engine that the next writer will give its version.

Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum


class Rule(StrEnum):
    """Every rule that is checked, by name."""

    METADATA = "metadata"
    HISTORY = "history"
    WATERMARK = "watermark"
    MARKERS = "markers"
    FILES = "files"
    CONTENT = "content"
    FIELD_IDS = "field-ids"
    BOUNDS = "bounds"
    NODES = "nodes"
    PARTITIONS = "partitions"
    NOT_NULL = "not-null"
    SORT = "sort"
    CHANGES = "changes"
    ORDER = "order"
    RANGES = "ranges"
    ROW_DELETES = "row-deletes"
    KEYS = "keys"
    ORACLE = "oracle"
    ANSWERS = "answers"

    @property
    def sentence(self) -> str:
        """What the rule says."""
        return _SENTENCES[self]


_SENTENCES = {
    Rule.METADATA: "metadata files are present and readable",
    Rule.HISTORY: "snapshots form one history",
    Rule.WATERMARK: "the watermark is not beyond the newest change",
    Rule.MARKERS: "every base commit has exactly one version",
    Rule.FILES: "files are present, with the size and row count of their manifest",
    Rule.CONTENT: "pages are readable and match their checksums",
    Rule.FIELD_IDS: "columns carry field ids",
    Rule.BOUNDS: "values lie between the bounds of the manifest",
    Rule.NODES: "rows lie in the node of their key hash",
    Rule.PARTITIONS: "rows lie in their partition",
    Rule.NOT_NULL: "keys and required columns are not null",
    Rule.SORT: "rows of a base file are sorted",
    Rule.CHANGES: "change rows have a known action and a valid place",
    Rule.ORDER: "no two changes of one key share a place in history",
    Rule.RANGES: "base files of one compaction and leaf are disjoint",
    Rule.ROW_DELETES: "row deletes of other engines are readable",
    Rule.KEYS: "a key is live once",
    Rule.ORACLE: "the fast resolution equals the slow one",
    Rule.ANSWERS: "a read returns as many rows as the resolution leaves alive",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One broken rule."""

    check: str
    message: str
    path: str | None = None

    def __str__(self) -> str:
        return f"{self.check}: {self.message}" + (f" ({self.path})" if self.path else "")


@dataclass(frozen=True, slots=True)
class Check:
    """One rule and how many things were held against it."""

    name: str
    sentence: str
    count: int
    """Files, rows, snapshots or keys, as `unit` says."""
    unit: str
    problems: int

    def __str__(self) -> str:
        found = "ok" if not self.problems else f"{self.problems} problems"
        return f"{self.name:<12} {found:<12} {self.count:,} {self.unit}: {self.sentence}"


@dataclass(frozen=True, slots=True)
class Verification:
    """The verdict on one state of a table."""

    name: str
    version: int | None
    """The version that was looked at; None when the history cannot be read."""
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether no rule is broken."""
        return not self.problems

    def to_dict(self) -> dict[str, object]:
        """Return the verdict as JSON can hold it."""
        return {
            "name": self.name,
            "version": self.version,
            "ok": self.ok,
            "problems": [
                {"check": p.check, "message": p.message, "path": p.path} for p in self.problems
            ],
            "notes": list(self.notes),
            "checks": [
                {
                    "name": c.name,
                    "sentence": c.sentence,
                    "count": c.count,
                    "unit": c.unit,
                    "problems": c.problems,
                }
                for c in self.checks
            ],
        }

    def __str__(self) -> str:
        verdict = "ok" if self.ok else f"{len(self.problems)} problems"
        return "\n".join(
            [
                f"{self.name} version {self.version}: {verdict}",
                *(f"  problem  {problem}" for problem in self.problems),
                *(f"  note     {note}" for note in self.notes),
                *(f"  checked  {check}" for check in self.checks),
            ]
        )


@dataclass(slots=True)
class Findings:
    """What checks have found so far; the one mutable thing of a verification."""

    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    counts: Counter[tuple[Rule, str]] = field(default_factory=Counter)

    def count(self, rule: Rule, number: int, unit: str) -> None:
        """Say that so many things were held against a rule."""
        self.counts[rule, unit] += number

    def add(self, rule: Rule, message: str, path: str | None = None) -> None:
        """Say that a rule is broken."""
        self.problems.append(Problem(str(rule), message, path))

    def take(self, others: Iterable[Findings]) -> None:
        """Take over what other checks found."""
        for other in others:
            self.problems.extend(other.problems)
            self.notes.extend(other.notes)
            self.counts.update(other.counts)

    def verdict(self, name: str, version: int | None) -> Verification:
        """Return the verdict; checks in the order of the rules."""
        broken = Counter(problem.check for problem in self.problems)
        order = list(Rule)
        counted = sorted(self.counts.items(), key=lambda item: order.index(item[0][0]))
        checks = tuple(
            Check(str(rule), rule.sentence, count, unit, broken[str(rule)])
            for (rule, unit), count in counted
        )
        return Verification(name, version, tuple(self.problems), tuple(self.notes), checks)
