"""Behaviour in text files: what goes in stands above `----`, what must come out below it.

    # Comments and empty lines are for people.
    files 3/0 7/1
    ----
    leaves 3/0 3/2 3/3 7/1 7/5

A file holds any number of cases, parted by an empty line after the answer. To write down what
comes out now, run `python -m tests.tree.test_forest --rewrite` (the test that reads the file); read
the difference before you commit it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

LINE = "----"


@dataclass(frozen=True, slots=True)
class Case:
    """One question and its answer."""

    above: tuple[str, ...]
    """Comments and the question, as written."""
    answer: str

    @property
    def words(self) -> Iterator[list[str]]:
        """The lines of the question without comments, cut into words."""
        for line in self.above:
            if line.strip() and not line.startswith("#"):
                yield line.split()


def read_cases(path: Path) -> list[Case]:
    cases: list[Case] = []
    above: list[str] = []
    below: list[str] | None = None
    for line in [*path.read_text(encoding="utf-8").splitlines(), ""]:
        if below is None:
            if line == LINE:
                below = []
            else:
                above.append(line)
        elif line:
            below.append(line)
        else:
            cases.append(Case(tuple(above), "\n".join(below)))
            above, below = [], None
    return cases


def check_scenario(path: Path, answer: Callable[[Case], str]) -> None:
    """Compare every case of a file with what comes out."""
    cases = read_cases(path)

    assert cases, f"{path} holds no case"
    for case in cases:
        assert answer(case) == case.answer, "\n".join(case.above)


def rewrite(paths: Iterable[Path], answer: Callable[[Case], str], arguments: Sequence[str]) -> None:
    """Write down what comes out now, if `--rewrite` is among the arguments."""
    if "--rewrite" not in arguments:
        return
    for path in paths:
        found = [(*case.above, LINE, answer(case), "") for case in read_cases(path)]
        path.write_text("\n".join(line for case in found for line in case), encoding="utf-8")
