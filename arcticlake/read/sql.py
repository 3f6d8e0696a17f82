"""Our tables inside a Spark SQL text: found, cut out, and replaced by placeholders.

    select o.id, status from shop.orders VERSION AS OF 3 o join other.t on …
    select o.id, status from {arctic_0} o join other.t on …

with arctic_0 = TableRequest("shop.orders", version=3), so that `spark.sql(plan.text, **frames)`
runs the text with one DataFrame for each placeholder. The steps:

1. look for `a.b` among the words of the text; if none is ours, the text is Spark's alone;
2. note time-travel clauses and blank them, with EXPLAIN, in the copy that is parsed (same length,
   so every position still holds);
3. parse, and sort each table node: read from, described, or written to (refused, with the method
   to use instead); one-part and three-part names are never ours, so a CTE cannot be taken for one;
4. edit the user's own text at these positions: placeholder in, time travel out, an alias where
   there was none, `shop.orders.status` to `orders.status`. Nothing else changes.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from sqlglot import Dialect, Token, TokenType, exp, parse, tokenize
from sqlglot.errors import ParseError, TokenError

from arcticlake.errors import InternalError, InvalidRequest

_GAP = r"(?:\s|--[^\n]*\n|/\*.*?\*/)"
_EXPLAIN = re.compile(
    rf"{_GAP}*EXPLAIN\b(?:{_GAP}+(?:EXTENDED|CODEGEN|COST|FORMATTED)\b)?", re.IGNORECASE | re.DOTALL
)
_TRAVEL = re.compile(
    r"\s+(?:FOR\s+)?(?:(?:SYSTEM_)?VERSION\s+AS\s+OF\s+(?P<version>\d+\b|'[^'\\]*'|\"[^\"\\]*\")"
    r"|(?:TIMESTAMP|SYSTEM_TIME)\s+AS\s+OF\s+(?:(?:TIMESTAMP(?:_LTZ|_NTZ)?|DATE)\s*)?"
    r"(?P<timestamp>'[^'\\]*'|\"[^\"\\]*\"))",
    re.IGNORECASE,
)
# Words that Spark does not take as an alias, and that sqlglot takes for names.
_NOT_AN_ALIAS = frozenset({"anti", "semi", "setminus"})
# Statement → its words, and what to do instead.
_INSTEAD: Mapping[type[exp.Expr], tuple[str, str]] = {
    exp.Insert: ("INSERT INTO", "use lake.table({name!r}).insert(df) or .upsert(df)"),
    exp.Merge: ("MERGE INTO", "use lake.table({name!r}).upsert(df, delete_when=…)"),
    exp.Update: ("UPDATE", "use lake.table({name!r}).upsert(df) with the changed rows"),
    exp.Delete: ("DELETE FROM", "use lake.table({name!r}).delete('condition')"),
    exp.Drop: ("DROP", "use lake.drop_table({name!r})"),
    exp.Alter: ("ALTER", "use add_column, rename_column, … or set_options of lake.table({name!r})"),
    exp.AlterRename: ("ALTER … RENAME TO", "choose another name, this one is taken"),
    exp.TruncateTable: ("TRUNCATE", "use lake.table({name!r}).delete('true')"),
    exp.Create: ("CREATE", "the table exists; use lake.drop_table and lake.create_table"),
    exp.LoadData: ("LOAD DATA INTO", "use lake.table({name!r}).insert(spark.read…)"),
    exp.Cache: ("CACHE", "use lake.table({name!r}).read().cache()"),
    exp.Uncache: ("UNCACHE", "use unpersist() of the DataFrame"),
    exp.Refresh: ("REFRESH", "there is no need: each query plans the table afresh"),
    exp.Analyze: ("ANALYZE", "there is no need: the statistics are in the files"),
}
_OVERWRITE = ("INSERT OVERWRITE", "use lake.table({name!r}).overwrite(df, where=…)")


@dataclass(frozen=True, slots=True)
class TableRequest:
    """What to read for a placeholder: a table, now or at one point of its history."""

    name: str
    version: int | None = None
    timestamp: str | None = None


@dataclass(frozen=True, slots=True)
class SqlPlan:
    """The text for `spark.sql(text, **frames)` and the table behind each placeholder.

    Without tables pyspark does not format the text, so then its braces are single.
    """

    text: str
    tables: Mapping[str, TableRequest]


@dataclass(frozen=True, slots=True)
class TableReference:
    """One of our names in the text: [start, end) covers it and its time-travel clause."""

    name: tuple[str, str]
    start: int
    end: int
    request: TableRequest
    alias: str | None
    alias_at: int


@dataclass(frozen=True, slots=True)
class _Edit:
    start: int
    end: int
    replacement: str


def plan_sql(text: str, is_ours: Callable[[str], bool]) -> SqlPlan:
    """Plan a Spark SQL text; `is_ours("shop.orders")` says which two-part names are tables here."""
    untouched = SqlPlan(text, {})
    is_ours = cache(is_ours)  # it may ask a catalog, and `o.id` looks like a table too
    blanked = _blank(text, _EXPLAIN.match(text))
    try:
        tokens = _tokens(blanked)
    except TokenError:  # an open quote, say: Spark's message is as good as ours
        return untouched
    mentions = [m for m in _mentions(tokens) if is_ours(".".join(m.name))]
    if not mentions:
        return untouched
    travels: dict[int, re.Match[str]] = {}
    for mention in mentions:
        if travel := _TRAVEL.match(blanked, mention.end):
            travels[mention.end] = travel
            blanked = _blank(blanked, travel)
    tree = _parse(blanked, ".".join(mentions[0].name))
    references = list(_references(tree, text, tokens, travels=travels, is_ours=is_ours))
    if not references:
        return untouched
    _refuse_views(tree, references[0].request.name)
    return _rewrite(text, references, list(_qualified_names(tree, text, references)))


@dataclass(frozen=True, slots=True)
class _Mention:
    """The words `a.b`, which may be a table, or a column of a table `a`."""

    name: tuple[str, str]
    end: int


def _tokens(text: str) -> Sequence[Token]:
    tokens = tokenize(text, dialect="spark")
    if tokens and tokens[0].token_type in Dialect.get_or_raise("spark").tokenizer_class.COMMANDS:
        # sqlglot swallows the rest of such a statement as one string; look inside of it.
        rest = " " * (tokens[0].end + 1) + text[tokens[0].end + 1 :]
        return [tokens[0], *tokenize(rest, dialect="spark")]
    return tokens


def _mentions(tokens: Sequence[Token]) -> Iterator[_Mention]:
    for place in range(1, len(tokens) - 1):
        first, dot, second = tokens[place - 1 : place + 2]
        inside = place >= 2 and tokens[place - 2].token_type == TokenType.DOT
        if dot.token_type == TokenType.DOT and not inside:
            yield _Mention((first.text, second.text), second.end + 1)


def _blank(text: str, found: re.Match[str] | None) -> str:
    """The text with a match replaced by spaces, so that positions stay."""
    if found is None:
        return text
    return f"{text[: found.start()]}{' ' * len(found[0])}{text[found.end() :]}"


def _parse(text: str, name: str) -> exp.Expr:
    try:
        statements = [tree for tree in parse(text, dialect="spark") if tree is not None]
    except ParseError as error:
        found = error.errors[0] if error.errors else {}
        raise InvalidRequest(
            f"the SQL names the Arctic table {name} but cannot be understood: "
            f"{found.get('description')} at {found.get('highlight')!r}, line {found.get('line')}; "
            f"pass lake.table({name!r}).read() to spark.sql as a parameter instead"
        ) from error
    if len(statements) != 1:
        raise InvalidRequest(f"give one SQL statement at a time, not {len(statements)}")
    if isinstance(statements[0], exp.Command):
        raise InvalidRequest(
            f"{str(statements[0].this).upper()} cannot be run on the Arctic table {name}; "
            f"lake.table({name!r}) has detail(), history() and files()"
        )
    return statements[0]


def _references(
    tree: exp.Expr,
    text: str,
    tokens: Sequence[Token],
    *,
    travels: Mapping[int, re.Match[str]],
    is_ours: Callable[[str], bool],
) -> Iterator[TableReference]:
    """Every table node that is ours and read from; the others are refused."""
    for table in tree.find_all(exp.Table):
        parts = table.parts
        names = tuple(part.name for part in parts if isinstance(part, exp.Identifier))
        if len(parts) != 2 or len(names) != 2 or any("." in name for name in names):
            continue
        name = ".".join(names)
        if not is_ours(name) or table.find_ancestor(exp.Hint):
            continue
        (start, _), (_, end) = _span(parts[0], text), _span(parts[1], text)
        travel = travels.get(end)
        if table.args.get("version") is not None:
            raise InvalidRequest(
                f"time travel of {name} needs a literal right after the name, as in "
                f"{name} VERSION AS OF 3 or {name} TIMESTAMP AS OF '2026-11-15T12:00:00Z'"
            )
        end = end if travel is None else travel.end()
        yield TableReference(
            (names[0], names[1]),
            start,
            end,
            _request(name, travel),
            _new_alias(table, name, tokens),
            _sample_end(end, tokens),
        )


def _request(name: str, travel: re.Match[str] | None) -> TableRequest:
    if travel is None:
        return TableRequest(name)
    if travel["timestamp"] is not None:
        return TableRequest(name, timestamp=travel["timestamp"][1:-1])
    version = travel["version"].strip("'\"")
    if not version.isdecimal():
        raise InvalidRequest(
            f"VERSION AS OF {travel['version']} of {name}: a version is a whole number; "
            f"read a tag with lake.table({name!r}).read(tag={version!r})"
        )
    return TableRequest(name, version=int(version))


def _new_alias(table: exp.Table, name: str, tokens: Sequence[Token]) -> str | None:
    """The alias to add, so that `orders.status` still resolves; refuses what is not a read."""
    parent = table.parent.parent if isinstance(table.parent, exp.Schema) else table.parent
    role = (type(parent), table.arg_key)
    if role in {(exp.Describe, "this"), (exp.Insert, "source")}:
        return None  # DESCRIBE t, INSERT INTO x TABLE t: no place for an alias
    is_source = isinstance(parent, exp.From | exp.Join | exp.Subquery) or role in {
        (exp.Merge, "using"),
        (exp.MultitableInserts, "source"),
    }
    if not is_source:
        raise _refusal(parent, name)
    if table.alias:
        return None
    start = table.parts[1].meta["start"]
    token = next(token for token in tokens if token.start == start)
    plain = token.token_type == TokenType.VAR and token.text.lower() not in _NOT_AN_ALIAS
    if plain and re.fullmatch(r"[A-Za-z_]\w*", token.text, re.ASCII):
        return token.text
    return f"`{token.text.replace('`', '``')}`"


def _refusal(parent: exp.Expr | None, name: str) -> InvalidRequest:
    statement = _INSTEAD.get(type(parent)) if parent is not None else None
    if isinstance(parent, exp.Insert) and parent.args.get("overwrite"):
        statement = _OVERWRITE
    if statement is not None:
        verb, instead = statement
        return InvalidRequest(
            f"{verb} {name} cannot be run as SQL on an Arctic table; {instead.format(name=name)}"
        )
    return InvalidRequest(
        f"the Arctic table {name} cannot be used in this place; select from it, or take "
        f"lake.table({name!r}).read()"
    )


def _refuse_views(tree: exp.Expr, name: str) -> None:
    """A view keeps the name of the placeholder's frame, which is gone after the statement."""
    is_view = isinstance(tree, exp.Create) and str(tree.args.get("kind")).upper() == "VIEW"
    if is_view or isinstance(tree, exp.Cache):
        raise InvalidRequest(
            f"a view over the Arctic table {name} cannot be made in SQL; use "
            "lake.sql('select …').createOrReplaceTempView('name')"
        )


def _sample_end(end: int, tokens: Sequence[Token]) -> int:
    """Where an alias belongs: behind `TABLESAMPLE (…) REPEATABLE (…)`, if that follows."""
    following = [token for token in tokens if token.start >= end]
    if not following or following[0].token_type != TokenType.TABLE_SAMPLE:
        return end
    depth = 0
    for place, token in enumerate(following):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        after = following[place + 1].text.upper() if place + 1 < len(following) else ""
        if token.token_type == TokenType.R_PAREN and depth == 0 and after != "REPEATABLE":
            return token.end + 1
    return end


def _qualified_names(
    tree: exp.Expr, text: str, references: Sequence[TableReference]
) -> Iterator[_Edit]:
    """Cut `shop.` from `shop.orders.status`, where orders is the alias now."""
    ours = {_folded(reference.name) for reference in references if reference.alias is not None}
    for column in tree.find_all(exp.Column):
        parts = column.parts
        in_hint = column.find_ancestor(exp.Hint) is not None  # placed apart from the text
        if len(parts) > 2 and not in_hint and _folded([p.name for p in parts[:2]]) in ours:
            yield _Edit(_span(parts[0], text)[0], _span(parts[1], text)[0], "")


def _folded(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name.lower() for name in names)


def _span(identifier: exp.Expr, text: str) -> tuple[int, int]:
    """Where an identifier stands in the text, quotes included."""
    start, end = identifier.meta.get("start", 0), identifier.meta.get("end", -1) + 1
    if text[start:end].strip("`").replace("``", "`") != identifier.name.strip("`"):
        raise InternalError(f"the place of {identifier.name!r} in the SQL text is not known")
    return start, end


def _rewrite(
    text: str, references: Sequence[TableReference], qualified: Sequence[_Edit]
) -> SqlPlan:
    placeholders: dict[TableRequest, str] = {}
    edits = list(qualified)
    for reference in sorted(references, key=lambda reference: reference.start):
        placeholder = placeholders.setdefault(reference.request, f"arctic_{len(placeholders)}")
        edits.append(_Edit(reference.start, reference.end, f"{{{placeholder}}}"))
        if reference.alias is not None:
            alias = f" AS {reference.alias}".replace("{", "{{").replace("}", "}}")
            edits.append(_Edit(reference.alias_at, reference.alias_at, alias))
    pieces, place = [], 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        pieces += [_escaped(text[place : edit.start]), edit.replacement]
        place = edit.end
    pieces.append(_escaped(text[place:]))
    return SqlPlan("".join(pieces), {name: request for request, name in placeholders.items()})


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
