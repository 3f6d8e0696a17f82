"""Tables as a few words, for the tests of the planner; and what a plan would make of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from pyiceberg.manifest import DataFile

from arcticlake.compact.plan import CompactionPlan, Facts, GroupPlan, Piece, Work
from arcticlake.table.ddl import schema_from_ddl
from arcticlake.table.options import parse_size
from arcticlake.table.spec import TableSpec, plan_table
from arcticlake.table.watermark import Watermark
from arcticlake.tree.files import FileEntry, Role
from arcticlake.tree.node import ROOT, Node
from tests.scenario import Case
from tests.tree.strategies import parse_node

MB = 2**20
MERGED = 0


def table(
    *, key: Sequence[str] = ("id",), sort: Sequence[str] = (), days: bool = False, **options: object
) -> TableSpec:
    """Return a table with 100 MB files and two initial leaves, unless told otherwise."""
    written = {"target-file-size": "100MB", "initial-nodes": 2}
    return plan_table(
        "db.t",
        schema_from_ddl("id bigint, line bigint, v bigint, day date"),
        primary_key=list(key),
        partition_by=["day"] if days else [],
        sort_by=list(sort),
        bucket_by=None,
        options=written | {name.replace("_", "-"): value for name, value in options.items()},
    )


def entry(
    name: str,
    node: Node = ROOT,
    *,
    role: Role = Role.BASE,
    size: int = 100 * MB,
    keys: tuple[object, object] = (0, 9),
    lines: tuple[object, object] | None = None,
    sort: tuple[object, object] | None = None,
    sequence: int = 1,
    oldest: int = 0,
    place: int = MERGED,
    partition: tuple[object, ...] = (),
    deletes: bool = False,
) -> FileEntry:
    """Describe a file; the snapshot of a base file is the place of its rows in history."""
    boxes = (keys, lines) if lines else (keys,)
    return FileEntry(
        path=name,
        role=role,
        partition=partition,
        node=node,
        rows=size // 1024,
        bytes=size,
        key_lower=tuple(low for low, _ in boxes),
        key_upper=tuple(high for _, high in boxes),
        sort_lower=(sort[0],) if sort else (),
        sort_upper=(sort[1],) if sort else (),
        snapshot_id=place,
        sequence=sequence,
        data_file=DataFile.from_args(),
        oldest=oldest,
        row_deletes=(DataFile.from_args(),) if deletes else (),
    )


def facts_of(
    spec: TableSpec,
    files: Iterable[FileEntry],
    *,
    version: int = 9,
    watermark: Watermark | None = None,
) -> Facts:
    listed = tuple(files)
    return Facts(
        spec=spec,
        version=version,
        watermark=watermark or Watermark(),
        bases=tuple(f for f in listed if f.role is Role.BASE),
        changes=tuple(f for f in listed if f.role is Role.CHANGE),
        base_sequence=lambda snapshot_id: snapshot_id,
        chosen=lambda _: True,
    )


@dataclass(slots=True)
class Story:
    """What a scenario says before it asks for a plan."""

    key: list[str] = field(default_factory=lambda: ["id"])
    sort: list[str] = field(default_factory=list)
    days: bool = False
    options: dict[str, object] = field(default_factory=dict)
    files: list[FileEntry] = field(default_factory=list)
    version: int = 9
    through: int = 0
    kind: str = "auto"
    parallelism: int = 2

    def facts(self) -> Facts:
        spec = table(key=self.key, sort=self.sort, days=self.days, **self.options)
        return facts_of(spec, self.files, version=self.version, watermark=Watermark(self.through))


def read_story(case: Case) -> Story:
    """Read a scenario: lines `key`, `sort`, `days`, `option`, `base`, `change`, …, `plan`."""
    story = Story()
    for word, *rest in case.words:
        match word:
            case "key":
                story.key = [name for name in rest if name != "none"]
            case "sort":
                story.sort = rest
            case "days":
                story.days = True
            case "option":
                story.options[rest[0]] = rest[1]
            case "version":
                story.version = int(rest[0])
            case "merged":
                story.through = int(rest[0])
            case "base" | "change":
                story.files.append(_read_file(Role(word), rest, story))
            case "plan":
                story.kind = rest[0]
                story.parallelism = int(rest[1]) if len(rest) > 1 else 2
            case _:
                message = f"unknown word {word}"
                raise AssertionError(message)
    return story


def _read_file(role: Role, words: Sequence[str], story: Story) -> FileEntry:
    """Read `NAME NODE SIZE`, then `keys 1..9`, `lines`, `sort`, `seq 3..5`, `place`, `day`, …"""
    name, node, size, *rest = words
    said = dict(zip(rest[::2], rest[1::2], strict=True))
    first, _, last = said.get("seq", "1").partition("..")
    sort = _read_range(said["sort"]) if "sort" in said else None
    return entry(
        name,
        parse_node(node),
        role=role,
        size=parse_size(size),
        keys=_read_range(said.get("keys", "0..9")),
        lines=_read_range(said.get("lines", "0..9")) if len(story.key) > 1 else None,
        sort=sort or ((None, None) if story.sort else None),
        sequence=int(last or first),
        oldest=int(first) if last else 0,
        place=int(said.get("place", MERGED)),
        partition=(int(said["day"]),) if story.days else (),
        deletes="deletes" in said,
    )


def _read_range(text: str) -> tuple[object, object]:
    if text == "?":
        return None, None
    low, _, high = text.partition("..")
    return int(low), int(high or low)


def outcome(facts: Facts, plan: CompactionPlan) -> Facts:
    """Return the facts after a plan was carried out: new files in place, changes merged."""
    gone: set[str] = set()
    made: list[FileEntry] = []
    ahead = dict(facts.watermark.ahead)
    for number, group in enumerate(plan.groups):
        for place, piece in enumerate(group.pieces):
            kept = {f.path for f in piece.changes if f.sequence > facts.version}
            gone |= {f.path for f in piece.files} - kept
            made += _written(f"{number}-{place}", group, piece, plan)
        if group.pieces and group.work is not Work.MINOR:
            ahead[group.partition, group.node.mask, group.node.index] = facts.version
    live = [f for f in (*facts.bases, *facts.changes) if f.path not in gone]
    mark = Watermark(facts.watermark.through, ahead)
    after = facts_of(facts.spec, [*live, *made], version=facts.version, watermark=mark)
    return replace(after, base_sequence=facts.base_sequence)


def _written(name: str, group: GroupPlan, piece: Piece, plan: CompactionPlan) -> list[FileEntry]:
    """Return what a task writes: in each output node some files, one range after the other."""
    minor = group.work is Work.MINOR
    share = piece.live_bytes // len(piece.outputs)
    count = max(1, round(share / plan.target_file_size))
    sample = piece.files[0]
    by_sort = bool(sample.sort_lower)
    found = []
    for node in piece.outputs:
        for part in range(count):
            keys = _cut([(f.key_lower[:1], f.key_upper[:1]) for f in piece.files], part, count)
            whole = _cut([(f.key_lower[:1], f.key_upper[:1]) for f in piece.files], 0, 1)
            lines = [(f.key_lower[1:], f.key_upper[1:]) for f in piece.files]
            found.append(
                entry(
                    f"{name}-{node}-{part}-{plan.kind}",
                    node,
                    role=Role.CHANGE if minor else Role.BASE,
                    size=share // count,
                    keys=whole if by_sort or minor else keys,
                    lines=_cut(lines, 0, 1) if len(sample.key_lower) > 1 else None,
                    sort=_cut([(f.sort_lower, f.sort_upper) for f in piece.files], part, count)
                    if by_sort
                    else None,
                    sequence=max(f.sequence for f in piece.files),
                    oldest=min(f.sequence_min for f in piece.files),
                    partition=group.partition,
                )
            )
    return found


def _cut(
    ranges: Sequence[tuple[tuple[object, ...], tuple[object, ...]]], part: int, count: int
) -> tuple[object, object]:
    """Return one of several equal parts of the range that all ranges span."""
    lows = [low[0] for low, _ in ranges]
    highs = [high[0] for _, high in ranges]
    if None in (*lows, *highs):
        return (part, part) if count > 1 else (None, None)
    low, high = min(lows), max(highs)  # type: ignore[type-var]
    assert isinstance(low, int) and isinstance(high, int)
    width = (high - low + 1) / count
    return low + int(part * width), max(low + int((part + 1) * width) - 1, low + int(part * width))
