"""The house rules as a test: every failure names the place and what to write instead.

The map in ARCHITECTURE.md is the story of the code. Its order is the import order: a package may
import what stands above it, never what stands below. Purity is visible in file names: a file named
after an outside system is the only kind that may touch it.

Reads source files only; nothing is imported.
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
LINE_CHARACTERS_MAX = 100
TEST_WORDS_MIN = 3

NAME_PARTS_BANNED = frozenset(
    {"util", "utils", "helper", "helpers", "common", "misc", "abstract", "impl", "manager"}
    | {"factory", "processor", "handler", "core", "info"}
)
VERBS_BANNED = {
    "get": "name what comes back, or load_/find_/read_",
    "do": "name what is done",
    "process": "name what happens to it",
    "handle": "name what happens to it",
}
# Outside module -> which of our files may import it, and what the others do instead.
OUTSIDE = {
    # lake.py and verbs/ wire the stages together: they pass sessions and catalogs on by name.
    "pyspark": (r"(.*/)?spark\w*\.py|lake\.py|verbs/.*", "move it to a spark.py and pass values"),
    "pyiceberg.catalog": (
        r".*/iceberg\w*\.py|lake\.py|verbs/.*",
        "move it to an iceberg.py and pass values",
    ),
    "pyiceberg.table": (r".*/iceberg\w*\.py", "move it to an iceberg.py and pass values"),
    "pyiceberg.io": (r".*/iceberg\w*\.py", "move it to an iceberg.py and pass values"),
    "pyarrow.parquet": (r".*/parquet\w*\.py", "move it to a parquet.py and pass tables"),
    "pyarrow.dataset": (r".*/parquet\w*\.py", "move it to a parquet.py and pass tables"),
    "typer": (r"cli/.*", "return a value; cli/ shows it"),
    "click": (r"cli/.*", "return a value; cli/ shows it"),
    "rich": (r"cli/.*", "return a value; cli/ shows it"),
    "sqlglot": (
        r"table/ddl\.py|read/(condition|literal|predicate|sql)\.py",
        "parse text in one of these",
    ),
}
PARQUET_CALLS = {"read_parquet", "scan_parquet", "write_parquet", "sink_parquet"}
SHELL = re.compile(r"(.*/)?spark\w*\.py|.*/(iceberg|parquet)\w*\.py|lake\.py|verbs/.*|cli/.*")
SHELL_MODULE = re.compile(
    r"arcticlake\.((\w+\.)?spark\w*|\w+\.(iceberg|parquet)\w*|lake|verbs|cli)\b"
)
CLOCKS = re.compile(
    r"time\.(time|time_ns|monotonic|monotonic_ns|perf_counter|sleep|gmtime|localtime)"
    r"|(datetime\.)?(datetime|date)\.(now|utcnow|today)"
    r"|(uuid\.)?uuid[147]|random\.\w+|secrets\.\w+|os\.urandom"
)
LEFTOVER = re.compile(r"#.*\b(FIX" + "ME|TO" + r"DO|XX" + r"X)\b")
MACHINE_PATH = re.compile(r"(^|[^.\w])/(work|root|farm|home/\w+|Users/\w+|tmp/env)" + "/")
REGISTRY = re.compile(
    r"py" + r"pi\.org|python" + r"hosted|:/" + r"/\S+/simple\b|arti" + "factory", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Source:
    """One Python file: its path under its top directory, its text and its syntax tree."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def place(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def inside(self) -> str:
        """The path inside the package."""
        return self.place.partition("/")[2]

    @property
    def story(self) -> str:
        """The line of the map that it belongs to: a package, or a module at the top."""
        return self.inside.partition("/")[0].removesuffix(".py")

    @property
    def doc(self) -> str:
        return ast.get_docstring(self.tree) or ""

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node

    def imports(self) -> Iterator[tuple[int, str]]:
        """Every imported name, fully dotted, with its line."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((node.lineno, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{self.place}:{node.lineno}: import from `arcticlake.…`"
                yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)

    def calls(self) -> Iterator[tuple[int, str]]:
        """Every called name, as far as it is a plain dotted one, with its line."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                yield node.lineno, ast.unparse(node.func)


@cache
def sources(*tops: str) -> tuple[Source, ...]:
    found = []
    for top in tops:
        for path in sorted((ROOT / top).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            found.append(Source(path, text, ast.parse(text)))
    return tuple(found)


@cache
def story_map() -> tuple[str, ...]:
    """The modules of the map in ARCHITECTURE.md, in its order: `table/spec.py`, `lake.py`, …"""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    block = re.search(r"## The map\n.*?```\n(.*?)```", text, re.DOTALL)
    assert block, "ARCHITECTURE.md needs a section '## The map' with a fenced block"
    modules, package = [], ""
    for line in block.group(1).splitlines():
        if top := re.match(r"  (\w+)(/|\.py)(\s|$)", line):
            package = top.group(1) + "/" if top.group(2) == "/" else ""
            modules += [] if package else [f"{top.group(1)}.py"]
        elif inner := re.match(r"    (\w+\.py)(\s|$)", line):
            modules.append(package + inner.group(1))
    return tuple(modules)


@cache
def story_order() -> tuple[str, ...]:
    """Packages and top modules in reading order."""
    return tuple(dict.fromkeys(name.partition("/")[0].removesuffix(".py") for name in story_map()))


def is_name(dotted: str, root: str) -> bool:
    return dotted == root or dotted.startswith(root + ".")


def length_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function with its signature and without its docstring."""
    assert function.end_lineno is not None
    lines = function.end_lineno - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function) is not None and first.end_lineno is not None:
        lines -= first.end_lineno - first.lineno + 1
    return lines


def rule_sizes(source: Source) -> Iterator[str]:
    lines = source.text.splitlines()
    if len(lines) > FILE_LINES_MAX:
        yield f"1: {len(lines)} lines, at most {FILE_LINES_MAX}: find the second idea in it"
    for function in source.functions():
        if length_of(function) > FUNCTION_LINES_MAX:
            yield (
                f"{function.lineno}: {function.name} has {length_of(function)} lines, at most "
                f"{FUNCTION_LINES_MAX}: give a step of it a name"
            )
    for number, line in enumerate(lines, start=1):
        if len(line) > LINE_CHARACTERS_MAX:
            yield f"{number}: {len(line)} characters, at most {LINE_CHARACTERS_MAX}"


def rule_leftovers(source: Source) -> Iterator[str]:
    for number, line in enumerate(source.text.splitlines(), start=1):
        if LEFTOVER.search(line):
            yield f"{number}: a left-over note: do it, or write an issue"
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ExceptHandler) and node.type is None:
            yield f"{node.lineno}: bare except: name the errors you expect"


def rule_story(source: Source) -> Iterator[str]:
    if not source.doc:
        yield "1: no docstring: open with the story of the module"
    elif source.path.name != "__init__.py" and not re.search(
        r"\b(Pure\b|[Tt]ouches\b)", source.doc
    ):
        yield "1: end the docstring with 'Pure.' or with what it 'Touches …'"


def rule_purity(source: Source) -> Iterator[str]:
    if re.search(r"\bPure\.", source.doc):
        for line, name in source.imports():
            if SHELL_MODULE.match(name):
                yield f"{line}: a pure module imports {name}: take its values as arguments"


def rule_names(source: Source) -> Iterator[str]:
    names = [(1, source.path.stem)]
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.append((node.lineno, node.name))
        if isinstance(node, ast.ClassDef) and node.name.lstrip("_").startswith("Base"):
            yield f"{node.lineno}: {node.name}: 'base' is the base table; name the idea"
    for line, name in names:
        parts = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().strip("_").split("_")
        for part in sorted(NAME_PARTS_BANNED.intersection(parts)):
            yield f"{line}: {name} has the empty word '{part}': name the idea"
        if parts[0] in VERBS_BANNED and len(parts) > 1:
            yield f"{line}: {name}: {VERBS_BANNED[parts[0]]}"


def rule_outside(source: Source) -> Iterator[str]:
    for line, name in source.imports():
        for outside, (allowed, instead) in OUTSIDE.items():
            if is_name(name, outside) and not re.fullmatch(allowed, source.inside):
                yield f"{line}: {name} is only for {allowed}: {instead}"
    for line, name in source.calls():
        if name.rpartition(".")[2] in PARQUET_CALLS and "/parquet" not in source.inside:
            yield f"{line}: {name}: Parquet files are opened in a parquet.py; pass tables"


def rule_order(source: Source) -> Iterator[str]:
    order = story_order()
    if source.inside == "__init__.py" or source.story not in order:
        return
    above = order[: order.index(source.story) + 1]
    for line, name in source.imports():
        if not is_name(name, "arcticlake"):
            continue
        target = name.split(".")[1]
        if target not in order and source.story != "cli":
            yield f"{line}: {name}: import the module itself, `arcticlake.<package>.<module>`"
        elif target in order and target not in above:
            yield f"{line}: {source.story} comes before {target} in the map; lake.py wires them"


def rule_inner_imports(source: Source) -> Iterator[str]:
    for function in source.functions():
        for node in ast.walk(function):
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield f"{node.lineno}: import inside {function.name}: move it to the top"


def rule_calls(source: Source) -> Iterator[str]:
    for line, name in source.calls():
        if name == "print":
            yield f"{line}: print: return the text; cli/output.py writes it"
        if CLOCKS.fullmatch(name) and not SHELL.fullmatch(source.inside):
            yield f"{line}: {name} in a pure file: take the time or the id as an argument"


def rule_signatures(source: Source) -> Iterator[str]:
    for function in source.functions():
        spec = function.args
        arguments = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs, spec.vararg, spec.kwarg]
        hints = [argument.annotation for argument in arguments if argument] + [function.returns]
        if any(hint and re.search(r"\bAny\b", ast.unparse(hint)) for hint in hints):
            yield f"{function.lineno}: {function.name} has Any in its signature: write object"


def rule_in_map(source: Source) -> Iterator[str]:
    if source.path.name != "__init__.py" and source.inside not in story_map():
        yield f"1: add a line for {source.inside} to the map in ARCHITECTURE.md"


def rule_has_test(source: Source) -> Iterator[str]:
    if source.path.name == "__init__.py":
        return
    package, _, module = source.inside.removesuffix(".py").rpartition("/")
    dotted = source.place.removesuffix(".py").replace("/", ".")
    flat = "_".join(part for part in (package, module) if part)
    if (ROOT / "tests" / package / f"test_{module}.py").exists():
        return
    for test in sources("tests/spark"):
        named = test.path.name == f"test_{flat}.py"
        if named or any(is_name(name, dotted) for _, name in test.imports()):
            return
    own = "/".join(part for part in ("tests", package, f"test_{module}.py") if part)
    yield f"1: no test: write {own}, or import it in a test under tests/spark/"


def rule_tests_are_sentences(source: Source) -> Iterator[str]:
    for function in source.functions():
        words = function.name.split("_")
        if words[0] == "test" and len(words) - 1 < TEST_WORDS_MIN:
            yield f"{function.lineno}: {function.name}: say what holds, in a sentence"


def rule_no_mocks(source: Source) -> Iterator[str]:
    for line, name in source.imports():
        if is_name(name, "unittest.mock") or is_name(name, "mock") or is_name(name, "pytest_mock"):
            yield f"{line}: {name}: pass the value in instead of replacing our own code"


EVERYWHERE = (rule_sizes, rule_leftovers)
IN_PACKAGE = (
    rule_story,
    rule_purity,
    rule_names,
    rule_outside,
    rule_order,
    rule_inner_imports,
    rule_calls,
    rule_signatures,
    rule_in_map,
    rule_has_test,
)
IN_TESTS = (rule_tests_are_sentences, rule_no_mocks, rule_inner_imports)
ALL_TOPS = ("arcticlake", "tests", "benchmarks", "examples", "interop")
Rule = Callable[[Source], Iterator[str]]


@pytest.mark.parametrize(
    ("rule", "tops"),
    [
        *((rule, ALL_TOPS) for rule in EVERYWHERE),
        *((rule, ("arcticlake",)) for rule in IN_PACKAGE),
        *((rule, ("tests",)) for rule in IN_TESTS),
    ],
    ids=lambda value: value.__name__ if callable(value) else value[0],
)
def test_every_file_keeps_the_rule(rule: Rule, tops: tuple[str, ...]) -> None:
    offences = [f"{source.place}:{text}" for source in sources(*tops) for text in rule(source)]

    assert not offences, "\n" + "\n".join(offences)


def test_the_map_names_only_modules_that_exist_and_each_once() -> None:
    modules = story_map()
    gone = [name for name in modules if not (ROOT / "arcticlake" / name).is_file()]
    twice = sorted({name for name in modules if modules.count(name) > 1})

    assert not gone, f"take these lines out of the map in ARCHITECTURE.md: {gone}"
    assert not twice, f"named twice in the map in ARCHITECTURE.md: {twice}"


def test_the_package_docstring_repeats_the_reading_order() -> None:
    door = next(source for source in sources("arcticlake") if source.inside == "__init__.py")
    told = re.findall(r"^\s+(\w+)/", door.doc, re.MULTILINE)
    packages = dict.fromkeys(name.partition("/")[0] for name in story_map() if "/" in name)

    assert told == list(packages), "arcticlake/__init__.py: one indented line `name/  …` a package"


def test_no_tracked_file_names_a_machine_or_a_registry() -> None:
    git = shutil.which("git")
    if git is None:
        pytest.skip("needs git to know which files are tracked")
    listed = subprocess.run(
        [git, "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    offences = []
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if not path.is_file():
            continue
        for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), start=1):
            if MACHINE_PATH.search(line):
                offences.append(f"{name}:{number}: a path of one machine: make it relative")
            if REGISTRY.search(line):
                offences.append(f"{name}:{number}: a package registry: leave the choice to pip")

    assert not offences, "\n" + "\n".join(offences)
