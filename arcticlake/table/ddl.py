"""A schema as users type it: `order_id bigint, amount decimal(12,2) not null comment 'net'`.

sqlglot cuts the text into Spark's words; the grammar above them is small enough to follow here,
rule by rule, which keeps every error at the word that caused it:

    schema  =  field {"," field}                  |  "struct" "<" schema ">"
    field   =  name [":"] type ["not" "null"] ["comment" string]
    type    =  "array" "<" type ">"  |  "map" "<" type "," type ">"
            |  "struct" "<" [field {"," field}] ">"  |  word ["(" number {"," number} ")"]

Names keep their case, words do not have one. Which types exist is decided in `types.py`.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count
from typing import TypeVar

from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType
from sqlglot import Token, TokenType, tokenize
from sqlglot.errors import TokenError

from arcticlake.errors import InvalidRequest
from arcticlake.table.types import atomic_type, fresh_schema, unsupported_type

_Part = TypeVar("_Part")
_STRINGS = frozenset({TokenType.STRING, TokenType.RAW_STRING})


def schema_from_ddl(ddl: str) -> Schema:
    """The Iceberg schema of a Spark DDL string, with fresh ids, top-level columns first."""
    words = _Words(ddl)
    if words.peek(1) == "<" and words.take("struct"):
        fields = _struct((), words).fields
    else:
        fields = tuple(words.separated(lambda: _field((), words)))
    words.expect_end()
    return fresh_schema(StructType(*fields))


def type_from_ddl(ddl: str, column: str) -> IcebergType:
    """The Iceberg type of one Spark type such as `bigint`; `column` is named in refusals."""
    words = _Words(ddl)
    kind = _type((column,), words)
    words.expect_end()
    schema = fresh_schema(StructType(NestedField(1, column, kind, required=False)))
    return schema.fields[0].field_type


def _field(path: tuple[str, ...], words: _Words) -> NestedField:
    name = words.name()
    words.take(":")
    here = (*path, name)
    kind = _type(here, words)
    if words.take("collate"):
        raise unsupported_type(".".join(here), f"string collate {words.name()}")
    required = words.take("not")
    if required:
        words.expect("null")
    doc = words.string() if words.take("comment") else None
    return NestedField(words.next_id(), name, kind, required=required, doc=doc)


def _type(path: tuple[str, ...], words: _Words) -> IcebergType:
    column = ".".join(path)
    if words.peek(1) in {"<", "<>"}:
        if words.take("array"):
            words.expect("<")
            element = _type((*path, "element"), words)
            words.expect(">")
            return ListType(words.next_id(), element, element_required=False)
        if words.take("map"):
            words.expect("<")
            key = _type((*path, "key"), words)
            words.expect(",")
            value = _type((*path, "value"), words)
            words.expect(">")
            return MapType(words.next_id(), key, words.next_id(), value, value_required=False)
        if words.take("struct"):
            return _struct(path, words)
    word = words.type_word()
    if word == "interval":
        raise unsupported_type(column, word)
    parameters = words.numbers() if words.take("(") else []
    return atomic_type(column, word, parameters)


def _struct(path: tuple[str, ...], words: _Words) -> StructType:
    """The fields after the word `struct`, brackets included."""
    if words.take("<>"):
        return StructType()
    words.expect("<")
    fields = words.separated(lambda: _field(path, words))
    words.expect(">")
    return StructType(*fields)


class _Words:
    """The words of a DDL text, consumed from left to right."""

    def __init__(self, ddl: str) -> None:
        self._ddl = ddl
        self._ids = count(1)  # placeholders, replaced once the schema is complete
        self._place = 0
        try:
            self._tokens = tokenize(ddl, dialect="spark")
        except TokenError as error:
            raise InvalidRequest(f"the schema {ddl!r} cannot be read: {error}") from error

    def next_id(self) -> int:
        return next(self._ids)

    def peek(self, ahead: int = 0) -> str:
        """The word `ahead` places from here in lower case, or "" past the end or if quoted."""
        token = self._at(ahead)
        quoted = token is None or token.token_type in {TokenType.IDENTIFIER, *_STRINGS}
        return "" if quoted or token is None else token.text.lower()

    def take(self, word: str) -> bool:
        """Step over `word` if it comes next."""
        found = self.peek() == word
        self._place += found
        return found

    def expect(self, word: str) -> None:
        if not self.take(word):
            raise self._refusal(f"{word!r}")

    def expect_end(self) -> None:
        if self._at(0) is not None:
            raise self._refusal("',' or the end")

    def name(self) -> str:
        """A name, back-quoted or made of letters, digits and underscores."""
        token = self._at(0)
        if token is None or not (token.token_type == TokenType.IDENTIFIER or _is_bare(token)):
            raise self._refusal("a name")
        self._place += 1
        return token.text

    def type_word(self) -> str:
        """The first word of a type in lower case; never quoted."""
        token = self._at(0)
        if token is None or not _is_bare(token):
            raise self._refusal("a type")
        self._place += 1
        return token.text.lower()

    def string(self) -> str:
        """A text in quotes; 'it''s' holds a quote and 'a' 'b' is one text, as in Spark."""
        text, end = "", -1
        while (token := self._at(0)) is not None and token.token_type in _STRINGS:
            text += (self._ddl[token.start] if token.start == end + 1 else "") + token.text
            end = token.end
            self._place += 1
        if end < 0:
            raise self._refusal("a text in quotes")
        return text

    def numbers(self) -> list[int]:
        """Whole numbers up to the closing bracket."""
        found = self.separated(self._number)
        self.expect(")")
        return found

    def separated(self, part: Callable[[], _Part]) -> list[_Part]:
        """One part, or more with commas between them."""
        parts = [part()]
        while self.take(","):
            parts.append(part())
        return parts

    def _number(self) -> int:
        token = self._at(0)
        if token is None or token.token_type != TokenType.NUMBER or not token.text.isdigit():
            raise self._refusal("a whole number")
        self._place += 1
        return int(token.text)

    def _at(self, ahead: int) -> Token | None:
        place = self._place + ahead
        return self._tokens[place] if place < len(self._tokens) else None

    def _refusal(self, wanted: str) -> InvalidRequest:
        token = self._at(0)
        rest = "the end" if token is None else repr(self._ddl[token.start :][:40])
        return InvalidRequest(
            f"the schema {self._ddl!r} is not understood at {rest}: expected {wanted}; "
            'write columns as "id bigint not null, tags array<string>"'
        )


def _is_bare(token: Token) -> bool:
    """Whether the token is a word; keywords are words too, and so is `1st`, but not `1`."""
    quoted = token.token_type in {TokenType.IDENTIFIER, *_STRINGS}
    return not quoted and re.fullmatch(r"\w*[^\W\d]\w*", token.text) is not None
