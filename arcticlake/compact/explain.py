"""A compaction plan as text.

Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from arcticlake.compact.plan import CompactionPlan


def explain_plan(plan: CompactionPlan) -> str:
    """Return the plan as people read it."""
    return f"{plan.table}: {plan.kind}"
