"""tree, files, history, detail, verify and tags: from the call to the answer.

Touches the clock, the catalog, metadata and, for verify, data files.
"""

from __future__ import annotations

import time

from arcticlake.commit.history import plan_view
from arcticlake.commit.iceberg_state import TableState, load_files, load_log
from arcticlake.errors import CorruptData
from arcticlake.ingest.iceberg import mark_all
from arcticlake.inspect import iceberg as inspect_iceberg
from arcticlake.inspect.detail import Detail, Surroundings, describe_table
from arcticlake.inspect.files import list_files
from arcticlake.inspect.history import HistoryEntry, list_history
from arcticlake.inspect.line import check_log, check_merged, check_ranges
from arcticlake.inspect.tags import Tag, plan_tag
from arcticlake.inspect.tree import TreeView, draw_tree
from arcticlake.inspect.verdict import Findings, Rule, Verification
from arcticlake.inspect.verify import Subject, verify_files
from arcticlake.read.iceberg import load_positions
from arcticlake.table.iceberg import FORMAT_VERSION, TablePair
from arcticlake.table.options import options_of_properties
from arcticlake.verbs.opened import Opened, lookup_in


def tree(table: Opened) -> TreeView:
    """Return the trees of all partitions, ready to print."""
    state = table.state()
    return draw_tree(state.pair.spec, state.view, state.files, state.forest)


def files(table: Opened) -> list[dict[str, object]]:
    """Return one dict for each live file."""
    state = table.state()
    return list_files(state.pair.spec, state.view, state.files)


def history(table: Opened) -> list[HistoryEntry]:
    """Return every version and every compaction, newest first."""
    return list_history(load_log(table.pair()))


def detail(table: Opened) -> Detail:
    """Return what the table is and how it stands, from metadata alone."""
    state = table.state()
    pair = state.pair
    locations = {"base": pair.base.location()}
    if pair.change is not None:
        locations["change"] = pair.change.location()
    trees = draw_tree(pair.spec, state.view, state.files, state.forest)
    around = Surroundings(
        options_written=options_of_properties(pair.base.properties),
        format_version=int(pair.base.properties.get(FORMAT_VERSION, "0")),
        iceberg_format_version=pair.base.metadata.format_version,
        locations=locations,
        tags=inspect_iceberg.load_tags(pair),
        leaves=len(trees.leaves),
    )
    now_ms = time.time_ns() // 1_000_000
    return describe_table(
        pair.spec, state.log, state.view, state.files, around=around, now_ms=now_ms
    )


def tags(table: Opened) -> dict[str, int]:
    """Return the version of every tag, by name."""
    return inspect_iceberg.load_tags(table.pair())


def create_tag(table: Opened, name: str, version: int | None) -> Tag:
    """Give a version a name, which also keeps it from expiring."""
    mark_all(table.pair())  # so that the newest state has a version to tag
    pair = table.pair()
    plan = plan_tag(load_log(pair), name, version)
    inspect_iceberg.commit_tag(pair, plan)
    return plan.tag


def drop_tag(table: Opened, name: str) -> None:
    """Take a tag away; its version may expire from then on."""
    inspect_iceberg.drop_tag(table.pair(), name)


def verify(table: Opened, *, deep: bool) -> Verification:
    """Check the newest state; what is wrong on disk is reported, never raised."""
    pair = table.pair()
    found = Findings()
    state = _load(pair, found)
    if isinstance(state, Verification):
        return state
    spec, log, view = pair.spec, state.log, state.view
    facts = {fact.snapshot_id: fact for fact in log.base}
    found.take([check_ranges(spec, facts, state.files.bases)])
    found.take([check_merged(view, state.files.changes)])

    subject = Subject(
        spec=spec,
        view=view,
        files=state.files,
        facts=facts,
        storage=pair.storage,
        load_positions=lambda marked: load_positions(pair.base.io, marked),
        deep=deep,
    )
    outcome = verify_files(subject)
    found.take([outcome.findings])
    if spec.keyed and subject.small and outcome.live_rows is not None and not found.problems:
        _compare_answers(state, outcome.live_rows, found)
    return found.verdict(spec.name, view.version)


def _load(pair: TablePair, found: Findings) -> TableState | Verification:
    """Return the newest state; the verdict instead, where metadata does not allow one."""
    name = pair.spec.name
    try:
        log = load_log(pair)
        view = plan_view(log)
    except (CorruptData, OSError, ValueError) as error:
        found.add(Rule.HISTORY, str(error))
        return found.verdict(name, None)
    found.take([check_log(log, view), inspect_iceberg.check_metadata(pair, view)])
    if any(problem.check == Rule.METADATA for problem in found.problems):
        found.notes.append("data files were not checked: metadata does not tell which there are")
        return found.verdict(name, view.version)
    try:
        live = load_files(pair, view)
    except Exception as error:  # noqa: BLE001 - manifests that decode may still make no sense
        found.add(Rule.METADATA, f"the manifests make no sense: {error}")
        return found.verdict(name, view.version)
    return TableState(pair, log, view, live)


def _compare_answers(state: TableState, live_rows: int, found: Findings) -> None:
    """Let the reader count too: it leaves files out by key bounds, the check did not."""
    rows = lookup_in(state).live(state.files, state.pair.spec.key).height
    found.count(Rule.ANSWERS, live_rows, "live rows")
    if rows != live_rows:
        message = f"a read returns {rows} rows, {live_rows} are alive"
        found.add(Rule.ANSWERS, message)
