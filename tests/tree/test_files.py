from __future__ import annotations

from arcticlake.tree.files import Role, TableFiles
from arcticlake.tree.node import ROOT
from tests.tree.strategies import file_in


def test_files_of_both_tables_are_listed_together() -> None:
    base, change = file_in(ROOT), file_in(ROOT, role=Role.CHANGE)
    files = TableFiles((base,), (change,))

    assert files.all == (base, change)


def test_two_entries_with_the_same_words_are_two_files() -> None:
    """Entries are told apart by identity, so that sets of thousands stay fast."""
    assert file_in(ROOT) != file_in(ROOT)
