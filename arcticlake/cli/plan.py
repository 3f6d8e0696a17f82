"""A compaction plan as JSON can hold it: the facts of `explain()`, without its sentences.

It stands apart from the verb because it needs the planner, which loads Arrow; `arctic --help`
must not.

Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from arcticlake.compact.plan import CompactionPlan, GroupPlan
from arcticlake.ingest.place import readable
from arcticlake.inspect.measure import measure
from arcticlake.tree.files import FileEntry, Role


def plan_to_dict(plan: CompactionPlan) -> dict[str, object]:
    """Return a plan with one dict for each group, in the order of `explain()`."""
    return {
        "table": plan.table,
        "kind": plan.kind,
        "version": plan.version,
        "empty": plan.empty,
        "groups": [_group_to_dict(plan, group) for group in plan.groups],
        "tasks": len(plan.tasks),
        "seconds": round(plan.seconds, 3),
    }


def _group_to_dict(plan: CompactionPlan, group: GroupPlan) -> dict[str, object]:
    read = [file for piece in group.pieces for file in piece.files]
    partition = {
        term.name: None if value is None else readable(term, value)
        for term, value in zip(plan.terms, group.partition, strict=True)
    }
    return {
        "partition": partition,
        "node": str(group.node),
        "mask": group.node.mask,
        "index": group.node.index,
        "work": group.work.value,
        "reason": group.reason,
        "score": round(group.score, 3),
        "reads": _amount(read),
        "writes": {
            "files": sum(piece.output_files(plan.target_file_size) for piece in group.pieces),
            "bytes": sum(piece.live_bytes for piece in group.pieces),
        },
        "stays": _amount(group.kept),
        "pieces": len(group.pieces),
        "events": [str(event) for event in group.events],
    }


def _amount(files: Sequence[FileEntry]) -> dict[str, object]:
    """Return how much some files hold; base and change files are counted apart (PAC-08)."""
    amount = measure(files)
    change = sum(1 for file in files if file.role is Role.CHANGE)
    return {
        "files": amount.files,
        "base_files": amount.files - change,
        "change_files": change,
        "rows": amount.rows,
        "bytes": amount.bytes,
    }
