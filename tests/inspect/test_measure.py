from __future__ import annotations

from arcticlake.inspect.measure import Amount, is_pending, measure
from arcticlake.tree.files import Role
from arcticlake.tree.node import Node
from tests.inspect.lab import Place, entry, fact, view_of


def test_an_amount_adds_up_its_files_and_says_what_it_counts() -> None:
    amount = measure([entry("a", rows=1), entry("b", rows=2)])

    assert amount == Amount(2, 3, 300)
    assert str(amount) == "2 files 3 rows 300 B"
    assert str(Amount(1, 1, 10)) == "1 file 1 row 10 B"


def test_a_change_file_waits_until_the_watermark_passes_it() -> None:
    change = [fact(number, "upsert") for number in (1, 2, 3)]
    base = [fact(1, "major", arctic__merged_through="2")]
    view = view_of(base, change)

    place = [Place(Node(3, 0), role=Role.CHANGE, sequence=number) for number in (1, 2, 3)]
    assert [is_pending(entry("f", at), view) for at in place] == [False, False, True]
