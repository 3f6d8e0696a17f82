"""Every table option, declared once: name, kind, default and the sentence that documents it.

The declaration below is the only list: the parser, `docs/options.md`, `detail()` and the errors
all read it. An unknown name is refused with the nearest known one, because a setting that is
ignored in silence is the most common complaint about systems like this one.

Options are kept as table properties `arctic.option.<name>` of the base table, as the user wrote
them, so that any tool that shows Iceberg properties shows them too.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from difflib import get_close_matches

from arcticlake.errors import InvalidRequest

PROPERTY_PREFIX = "arctic.option."

TASK_MEMORY_MIN = 64 * 2**20

_SIZE = re.compile(r"(?P<number>\d+(\.\d+)?)\s*(?P<unit>[kmgt]?i?b?)", re.IGNORECASE)
_SIZE_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def parse_size(text: str) -> int:
    """Return bytes: '128MB', '1.5 GiB' and '4096' are understood; units are powers of 1024."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        message = "a size such as 128MB, 1GB or 65536"
        raise ValueError(message)
    unit = match["unit"].lower().rstrip("b").rstrip("i")
    return int(float(match["number"]) * _SIZE_UNITS[unit])


def parse_positive_size(text: str) -> int:
    """Return bytes, at least one."""
    size = parse_size(text)
    if size < 1:
        message = "a size above 0, such as 128MB"
        raise ValueError(message)
    return size


def parse_leaf_size(text: str) -> int:
    """Return bytes; 0 for `auto`."""
    if text.strip().lower() == "auto":
        return 0
    try:
        return parse_positive_size(text)
    except ValueError:
        message = "auto, or a size such as 512MB"
        raise ValueError(message) from None


def parse_task_memory(text: str) -> int:
    """Return bytes, enough for a few row groups."""
    size = parse_size(text)
    if size < TASK_MEMORY_MIN:
        message = "a size of at least 64MB, such as 1GB"
        raise ValueError(message)
    return size


def parse_flag(text: str) -> bool:
    """Return a truth value from 'true' or 'false'."""
    match text.strip().lower():
        case "true":
            return True
        case "false":
            return False
    message = "true or false"
    raise ValueError(message)


def parse_node_count(text: str) -> int:
    """Return a power of two from 1 to 65536."""
    message = "a power of two from 1 to 65536"
    if not text.strip().isdigit():
        raise ValueError(message)
    count = int(text)
    if count < 1 or count > 2**16 or count & (count - 1):
        raise ValueError(message)
    return count


def parse_scan(text: str) -> str:
    """Return one of the three ways to scan."""
    choice = text.strip().lower()
    if choice not in {"auto", "jvm", "tasks"}:
        message = "auto, jvm or tasks"
        raise ValueError(message)
    return choice


def parse_new_column(text: str) -> str:
    """Return what happens to a column that only the source has."""
    choice = text.strip().lower()
    if choice not in {"fail", "add", "ignore"}:
        message = "fail, add or ignore"
        raise ValueError(message)
    return choice


def parse_count(text: str) -> int:
    """Return a whole number from 0."""
    if not (text.strip().isascii() and text.strip().isdigit()):
        message = "a whole number from 0, such as 100"
        raise ValueError(message)
    return int(text)


def _option(
    name: str, *, default: object, written: str, parse: Callable[[str], object], sentence: str
) -> object:
    facts = {"name": name, "written": written, "parse": parse, "sentence": sentence}
    return field(default=default, metadata=facts)


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one table, parsed."""

    target_file_size: int = _option(  # type: ignore[assignment]
        "target-file-size",
        default=128 * 2**20,
        written="128MB",
        parse=parse_positive_size,
        sentence="Size at which a data file is closed and the next one begins.",
    )
    initial_nodes: int = _option(  # type: ignore[assignment]
        "initial-nodes",
        default=4,
        written="4",
        parse=parse_node_count,
        sentence="How many leaves the tree of a new partition starts with; a power of two.",
    )
    leaf_commit_size: int = _option(  # type: ignore[assignment]
        "leaf-commit-size",
        default=64 * 2**20,
        written="64MB",
        parse=parse_positive_size,
        sentence="How much a leaf may take in one commit; further rows go to its children.",
    )
    leaf_size: int = _option(  # type: ignore[assignment]
        "leaf-size",
        default=0,
        written="auto",
        parse=parse_leaf_size,
        sentence="How much base a leaf may hold before a compaction splits it in two; auto is four "
        "times `target-file-size`.",
    )
    task_memory: int = _option(  # type: ignore[assignment]
        "task-memory",
        default=2**30,
        written="1GB",
        parse=parse_task_memory,
        sentence="How much memory one task of a compaction may take; larger groups are cut.",
    )
    compact_after_write: bool = _option(  # type: ignore[assignment]
        "compact-after-write",
        default=False,
        written="false",
        parse=parse_flag,
        sentence="Run the compaction that `auto` finds worth its price after every write.",
    )
    collapse_changes: bool = _option(  # type: ignore[assignment]
        "collapse-changes",
        default=False,
        written="false",
        parse=parse_flag,
        sentence="Let a minor compaction keep only the newest waiting change of a key.",
    )
    locate: bool = _option(  # type: ignore[assignment]
        "locate",
        default=False,
        written="false",
        parse=parse_flag,
        sentence="Look up the partition of existing keys on every upsert; needed when partition "
        "columns are not part of the primary key.",
    )
    scan: str = _option(  # type: ignore[assignment]
        "scan",
        default="auto",
        written="auto",
        parse=parse_scan,
        sentence="Who reads Parquet for `read()`: jvm, tasks (Python workers), or auto.",
    )
    on_new_column: str = _option(  # type: ignore[assignment]
        "on-new-column",
        default="fail",
        written="fail",
        parse=parse_new_column,
        sentence="What `apply_changes` does with a column that the table does not have: fail, add "
        "(to the table), or ignore.",
    )
    rejects_max: int = _option(  # type: ignore[assignment]
        "rejects-max",
        default=100,
        written="100",
        parse=parse_count,
        sentence="How many messages of one batch may go to the table of rejects before "
        "`apply_changes` stops instead.",
    )

    @property
    def leaf_bytes_max(self) -> int:
        """How much base a leaf may hold before it is split."""
        return self.leaf_size or 4 * self.target_file_size

    @property
    def leaf_change_bytes_max(self) -> int:
        """How much may wait in a leaf before it is split."""
        return 4 * self.leaf_commit_size


def _name(declared: Field[object]) -> str:
    return str(declared.metadata["name"])


DECLARED: Mapping[str, Field[object]] = {_name(f): f for f in fields(Options)}


def parse_options(written: Mapping[str, object], *, table: str) -> Options:
    """Return the options with defaults filled in; refuse what is unknown or malformed."""
    values: dict[str, object] = {}
    for name, raw in written.items():
        declared = DECLARED.get(name)
        if declared is None:
            raise InvalidRequest(_unknown(name, table))
        text = str(raw).lower() if isinstance(raw, bool) else str(raw)
        try:
            values[declared.name] = declared.metadata["parse"](text)
        except ValueError as wanted:
            message = f"table {table}: option {name} is {raw!r}; it takes {wanted}"
            raise InvalidRequest(message) from None
    return Options(**values)  # type: ignore[arg-type]


def _unknown(name: str, table: str) -> str:
    near = get_close_matches(name.lower().replace("_", "-"), DECLARED, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]}?" if near else f"known options: {', '.join(DECLARED)}"
    return f"table {table}: unknown option {name!r}; {hint}"


def options_to_properties(written: Mapping[str, object]) -> dict[str, str]:
    """Return the table properties that keep the options as the user wrote them."""
    return {
        PROPERTY_PREFIX + name: str(raw).lower() if isinstance(raw, bool) else str(raw)
        for name, raw in written.items()
    }


def options_of_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the options that the table properties keep."""
    return {
        name.removeprefix(PROPERTY_PREFIX): value
        for name, value in properties.items()
        if name.startswith(PROPERTY_PREFIX)
    }
