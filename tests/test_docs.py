"""The docs cannot drift: what is told exists, what exists is told, and examples run.

    ```python          runs; the blocks of a page share their names and an empty folder
    ```python spark    the same, and the page needs Spark
    ```python sketch   is only compiled: it names a server that is not here
    ```sh              its `arctic` lines run in the same folder, its `export` lines are heeded
    ```text            directly below a block: exactly what that block prints

Parts between `<!-- generated -->` and `<!-- end -->` are written by
`python -m tests.test_docs --rewrite`.
"""

from __future__ import annotations

import io
import os
import re
import runpy
import shlex
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from textwrap import dedent

import pytest

from arcticlake import errors
from arcticlake.cli.main import VERBS, main
from arcticlake.lake import Lake, Table
from arcticlake.table.options import DECLARED

ROOT = Path(__file__).resolve().parent.parent
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
EXAMPLES = tuple(sorted((ROOT / "examples").glob("*.py")))
FENCE = re.compile(
    r"^```(?P<language>\w+)(?P<marks>[^\n]*)\n(?P<code>.*?)^```\n", re.MULTILINE | re.DOTALL
)
GENERATED = re.compile(r"(?<=<!-- generated -->\n)(.*?)(?=<!-- end -->)", re.DOTALL)
LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)(?:#[^)]*)?\)")
HELP_WIDTH = "90"


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block of a page, and the output that is shown below it."""

    language: str
    marks: frozenset[str]
    code: str
    line: int
    output: str | None = None


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def blocks_of(page: Path) -> tuple[Block, ...]:
    text = page.read_text(encoding="utf-8")
    found: list[Block] = []
    end = -1
    for match in FENCE.finditer(text):
        follows = end >= 0 and not text[end : match.start()].strip()
        end = match.end()
        if match["language"] == "text" and follows and found and found[-1].output is None:
            found[-1] = replace(found[-1], output=match["code"])
            continue
        line = text.count("\n", 0, match.start()) + 2
        marks = frozenset(match["marks"].split())
        found.append(Block(match["language"], marks, match["code"], line))
    return tuple(found)


def needs_spark(page: Path) -> bool:
    return any("spark" in block.marks for block in blocks_of(page))


def cases(paths: tuple[Path, ...], spark: Iterator[bool]) -> list[object]:
    return [
        pytest.param(path, id=name_of(path), marks=[pytest.mark.spark] if needed else [])
        for path, needed in zip(paths, spark, strict=True)
    ]


@cache
def told() -> str:
    """All code in the docs, fenced or between backticks."""
    parts = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        parts += [match["code"] for match in FENCE.finditer(text)]
        parts += re.findall(r"`([^`\n]+)`", FENCE.sub("", text))
    return "\n".join(parts)


def run_python(block: Block, page: Path, names: dict[str, object]) -> str:
    """Run a block under the line numbers of its page; return what it prints."""
    code = compile("\n" * (block.line - 1) + block.code, str(page), "exec")
    if "sketch" in block.marks:
        return block.output or ""
    with redirect_stdout(io.StringIO()) as printed:
        exec(code, names)
    return printed.getvalue()


def run_shell(block: Block, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the `arctic` lines of a block; return what they print."""
    if "sketch" in block.marks:
        return block.output or ""
    with redirect_stdout(io.StringIO()) as printed, redirect_stderr(io.StringIO()) as noted:
        for line in block.code.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["export"]:
                name, _, value = words[1].partition("=")
                monkeypatch.setenv(name, value)
            elif words[:1] == ["arctic"]:
                code = main(words[1:])
                assert code == 0, f"{line} ended with {code}: {noted.getvalue()}"
    return printed.getvalue()


def lines_of(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").splitlines()]


@pytest.mark.parametrize("page", cases(PAGES, map(needs_spark, PAGES)))
def test_every_block_of_a_page_runs_and_prints_what_the_page_shows(
    page: Path,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if needs_spark(page):
        request.getfixturevalue("spark")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks_of(page):
        if block.language == "python":
            printed = run_python(block, page, names)
        elif block.language == "sh":
            printed = run_shell(block, monkeypatch)
        else:
            continue
        if block.output is not None:
            place = f"{name_of(page)}:{block.line}"
            assert lines_of(printed) == lines_of(block.output), place


@pytest.mark.parametrize(
    "example", cases(EXAMPLES, (".spark" in path.read_text("utf-8") for path in EXAMPLES))
)
def test_every_example_runs(
    example: Path,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if ".spark" in example.read_text("utf-8"):
        request.getfixturevalue("spark")
    monkeypatch.chdir(tmp_path)

    with redirect_stdout(io.StringIO()) as printed:
        runpy.run_path(str(example), run_name="__main__")

    assert printed.getvalue()


@pytest.mark.parametrize("kind", [Lake, Table])
def test_every_public_method_is_in_the_docs(kind: type) -> None:
    names = [name for name in vars(kind) if not name.startswith("_") and name != "catalog"]
    missing = [name for name in names if not re.search(rf"\b{name}\b", told())]

    assert not missing, f"{kind.__name__}: not a word in docs/ about {missing}"


def test_every_error_is_in_the_docs() -> None:
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    kinds = [
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.ArcticError)
    ]

    assert kinds
    assert not [name for name in kinds if f"`{name}`" not in page]


def test_every_command_in_the_docs_exists() -> None:
    wrong = []
    for page in (*PAGES, ROOT / "CHANGELOG.md"):
        text = page.read_text(encoding="utf-8")
        verbs = re.findall(r"(?:^|`)arctic (?:--\w+ \S+ )*([a-z][a-z-]+)", text, re.MULTILINE)
        wrong += [f"{name_of(page)}: arctic {verb}" for verb in verbs if verb not in VERBS]

    assert not wrong


def test_every_link_leads_somewhere() -> None:
    wrong = []
    for page in (*PAGES, ROOT / "ARCHITECTURE.md", ROOT / "CHANGELOG.md"):
        prose = re.sub(r"`[^`\n]+`", "", FENCE.sub("", page.read_text(encoding="utf-8")))
        targets = [target for target in LINK.findall(prose) if not (page.parent / target).exists()]
        wrong += [f"{name_of(page)} → {target}" for target in targets]

    assert not wrong


def test_the_index_names_every_page() -> None:
    index = (ROOT / "README.md").read_text(encoding="utf-8")

    assert not [name_of(page) for page in PAGES[1:] if f"({name_of(page)})" not in index]


def options_text() -> str:
    rows = [
        f"| `{name}` | `{declared.metadata['written']}` | {declared.metadata['sentence']} |"
        for name, declared in DECLARED.items()
    ]
    return "\n".join(["| option | default | what it does |", "| --- | --- | --- |", *rows, ""])


def help_text() -> str:
    parts = []
    for arguments in ([], *([verb] for verb in VERBS)):
        with redirect_stdout(io.StringIO()) as printed:
            main([*arguments, "--help"])
        title = " ".join(["arctic", *arguments])
        shown = "\n".join(lines_of(printed.getvalue()))
        parts.append(f"## {title}\n\n```console\n{shown}\n```\n")
    return "\n" + "\n".join(parts) + "\n"


def generated() -> dict[Path, str]:
    """What stands in the generated part of each page."""
    return {
        ROOT / "docs" / "options.md": options_text(),
        ROOT / "docs" / "cli.md": help_text(),
    }


def test_generated_parts_are_current(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", HELP_WIDTH)
    for page, wanted in generated().items():
        part = GENERATED.search(page.read_text(encoding="utf-8"))

        assert part, f"{name_of(page)} needs <!-- generated --> and <!-- end -->"
        assert part.group(1) == wanted, "run python -m tests.test_docs --rewrite"


def test_a_page_is_cut_into_blocks_and_their_output(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        dedent(
            """\
            # Page

            ```python spark
            print(1)
            ```

            ```text
            1
            ```

            ```text
            no output
            ```
            """
        )
    )

    first, second = blocks_of(page)

    assert (first.marks, first.line, first.output) == (frozenset({"spark"}), 4, "1\n")
    assert (second.language, second.output) == ("text", None)


def rewrite() -> None:
    os.environ["COLUMNS"] = HELP_WIDTH
    for page, text in generated().items():
        known = page.read_text(encoding="utf-8")
        page.write_text(GENERATED.sub(lambda _: text, known), encoding="utf-8")  # noqa: B023


if __name__ == "__main__" and "--rewrite" in sys.argv:
    rewrite()
