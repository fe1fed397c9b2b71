"""Parse json and jsonb text, and print the canonical text of a jsonb value.

    text ─ parse_json ─▶ the same text            text ─ parse_jsonb ─▶ canonical text
    canonical text ─ tree ─▶ dict, list, str, Decimal, bool, None ─ canonical ─▶ text

A json value is its text, blanks and duplicate keys included. A jsonb value is the text that
PostgreSQL shows: keys ordered by length and bytes, the last of duplicate ones, one blank behind `:`
and `,`, numbers as numeric. Trees are cached, so nobody may change one.

INVARIANTS
  S1  a text is valid here exactly if it is in PostgreSQL; the error is PostgreSQL's, with detail.
  S2  `canonical(tree(v)) == v` for every jsonb value.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Final, TypeAlias

from sql.errors import SqlError, statement_too_complex

JsonTree: TypeAlias = "bool | Decimal | str | Sequence[JsonTree] | Mapping[str, JsonTree] | None"

_WEIGHT_MAX: Final = 131_072
_SCALE_MAX: Final = 16_383
_CONTEXT_CHARACTERS: Final = 50
_TREES_KEPT: Final = 512
_TOO_DEEP: Final = "The document is nested too deeply."
_DEPTH_MAX: Final = 400
"""Levels of nesting. PostgreSQL's own limit is its stack, at some thousands."""

_ESCAPES: Final = re.compile(r'[\x00-\x1f"\\]')
_NAMED: Final = {"\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"'}
_NAMED["\\"] = "\\\\"


def parse_json(text: str) -> str:
    """A json value: the text itself, if it is valid (S1)."""
    _decoded(text)
    return text


def has_unique_keys(text: str) -> bool:
    """Whether no object of a valid json has a key twice."""
    repeated = False

    def pairs(found: list[tuple[str, object]]) -> None:
        nonlocal repeated
        repeated = repeated or len({key for key, _ in found}) < len(found)

    json.loads(text, object_pairs_hook=pairs, parse_float=str, parse_int=str)
    return not repeated


def parse_jsonb(text: str) -> str:
    """A jsonb value: the canonical text (S1)."""
    try:
        found = _JSONB_DECODER.decode(text)
    except _Overflow:
        # A key that comes twice may hide such a number: the tree does not tell.
        check_json_escapes(text)
        raise _overflow() from None
    except (ValueError, RecursionError):
        raise _error(text) from None
    if "\\u" in text or "\\U" in text:
        check_json_escapes(text)
    return canonical_jsonb(found)


def parse_jsonb_scalars(texts: Sequence[str]) -> list[str]:
    """The canonical texts of scalars. What it raises is about one of them and does not say which;
    a text with something else in it is refused as well.
    """
    together = f"[{','.join(texts)}]"
    found = _decoded(together)
    if not isinstance(found, list) or len(found) != len(texts):
        raise SqlError("22P02", "invalid input syntax for type json")
    if _SUSPICIOUS.search(together):
        check_json_escapes(together)
    return [json_scalar_text(value) for value in found]


def _decoded(text: str) -> JsonTree:
    try:
        found: JsonTree = _DECODER.decode(text)
    except (ValueError, RecursionError):
        raise _error(text) from None
    return found


def _number(text: str) -> Decimal:
    try:
        value = Decimal(text)
    except InvalidOperation:
        # Its exponent is beyond what a Decimal counts.
        return Decimal("Infinity")
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int), "a JSON number is finite"
    if (value and value.adjusted() >= _WEIGHT_MAX) or exponent < -_SCALE_MAX:
        # Only a jsonb holds numbers; `canonical_jsonb` is where it counts.
        return Decimal("Infinity")
    return value


def _no_constant(name: str) -> Decimal:
    raise ValueError(name)


class _Overflow(Exception):
    """A number is none of numeric."""


def _numeric(text: str) -> Decimal:
    value = _number(text)
    if not value.is_finite():
        raise _Overflow
    return value


_DECODER: Final = json.JSONDecoder(
    parse_float=_number, parse_int=_number, parse_constant=_no_constant
)
_JSONB_DECODER: Final = json.JSONDecoder(
    parse_float=_numeric, parse_int=_numeric, parse_constant=_no_constant
)


@lru_cache(maxsize=_TREES_KEPT)
def parse_json_tree(text: str) -> JsonTree:
    """The tree of a valid text; it is cached and must not be changed."""
    found: JsonTree = _DECODER.decode(text)
    return found


# --- text of a tree ----------------------------------------------------------------------------


def canonical_jsonb(value: JsonTree) -> str:
    """The canonical text of a tree (S2)."""
    parts: list[str] = []
    _write(value, parts, 0)
    return "".join(parts)


def _write(value: JsonTree, parts: list[str], depth: int) -> None:
    if depth > _DEPTH_MAX:
        raise statement_too_complex(_TOO_DEEP)
    if isinstance(value, Mapping):
        joint = "{"
        for key in sorted(value, key=jsonb_key_order):
            parts += (joint, quote_json(key), ": ")
            _write(value[key], parts, depth + 1)
            joint = ", "
        parts.append("}" if value else "{}")
    elif isinstance(value, Sequence) and not isinstance(value, str):
        joint = "["
        for item in value:
            parts.append(joint)
            _write(item, parts, depth + 1)
            joint = ", "
        parts.append("]" if value else "[]")
    else:
        parts.append(json_scalar_text(value))


def jsonb_key_order(key: str) -> tuple[int, bytes]:
    """The sort key of an object's key in jsonb: by length, then by bytes."""
    data = key.encode()
    return len(data), data


def json_scalar_text(value: JsonTree) -> str:
    """A string, number, boolean or null as JSON."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case Decimal():
            return json_number_text(value)
        case str():
            return quote_json(value)
        case _:
            raise AssertionError("a container is no scalar")


def _overflow() -> SqlError:
    return SqlError("22003", "value overflows numeric format")


def json_number_text(value: Decimal) -> str:
    """A number as numeric shows it."""
    if not value.is_finite():
        raise _overflow()
    return f"{value if value else abs(value):f}"


def quote_json(text: str) -> str:
    """A string as JSON (escape_json)."""
    escaped = _ESCAPES.sub(_escape, text) if _ESCAPES.search(text) else text
    return f'"{escaped}"'


def _escape(match: re.Match[str]) -> str:
    return _NAMED.get(match[0]) or f"\\u{ord(match[0]):04x}"


# --- the parts of a text, as they were written -------------------------------------------------

_PART: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)


def split_json_array(text: str) -> list[str] | None:
    """The texts of an array's elements; None if the valid JSON is no array."""
    if text.lstrip(" \t\n\r")[:1] != "[":
        return None
    return [part for _, part in _parts(text)]


def split_json_object(text: str) -> list[tuple[str, str]] | None:
    """Keys and the texts of their values; None if the valid JSON is no object."""
    if text.lstrip(" \t\n\r")[:1] != "{":
        return None
    return [(unquote_json(key), part) for key, part in _parts(text)]


def unquote_json(text: str) -> str:
    """The content of a JSON string. Raises 22P05 or 22P02 for characters that no text can hold."""
    if "\\u" in text:
        check_json_escapes(text)
    found = json.loads(text, strict=False)
    assert isinstance(found, str), "a JSON string"
    return found


def _parts(text: str) -> Iterator[tuple[str, str]]:
    depth, key, start = 0, "", -1
    for match in _PART.finditer(text):
        token = match[0]
        if depth == 1 and token in ("}", "]", ","):
            if start >= 0:
                yield key, text[start : match.start()].rstrip(" \t\n\r")
            start = -1
        elif depth == 1 and token == ":":
            key, start = text[start : match.start()].rstrip(" \t\n\r"), -1
        elif depth and start < 0:
            start = match.start()
        if token in ("{", "["):
            depth += 1
        elif token in ("}", "]"):
            depth -= 1


# --- errors ------------------------------------------------------------------------------------

_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*')
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORD: Final = re.compile(r"[A-Za-z0-9_\u0080-\U0010ffff]*")
_SUSPICIOUS: Final = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
"""In every text with an escape that `check_json_escapes` refuses."""
_UNICODE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)
_PUNCTUATION: Final = frozenset("{}[]:,")


def _invalid(text: str, end: int, detail: str, *, at_end: bool = False) -> SqlError:
    error = SqlError("22P02", "invalid input syntax for type json", detail=detail)
    error.context = _context(text, end, at_end=at_end)
    return error


def _context(text: str, end: int, *, at_end: bool) -> str:
    """The line up to the place of the error (report_json_context)."""
    line_start = text.rfind("\n", 0, end) + 1
    start = max(line_start, end - _CONTEXT_CHARACTERS + 1)
    if start - line_start <= 3:
        start = line_start
    prefix = "..." if start > line_start else ""
    suffix = "..." if not at_end and end < len(text) and text[end] not in "\r\n" else ""
    line = text.count("\n", 0, end) + 1
    return f"JSON data, line {line}: {prefix}{text[start:end]}{suffix}"


def _error(text: str) -> SqlError:
    """Why a text is no JSON, by a parser that looks at it token by token."""
    try:
        _Tokens(text).check()
    except SqlError as error:
        return error
    return statement_too_complex(_TOO_DEEP)


class _Tokens:
    """PostgreSQL's parser, which is only there to fail at the same place; the containers that are
    open stand in a list, for a text may be nested deeper than our stack.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._end = 0
        self.token = ""
        self._next()

    def _next(self) -> None:
        text = self._text
        start = self._end
        while start < len(text) and text[start] in " \t\n\r":
            start += 1
        first = text[start : start + 1]
        if not first or first in _PUNCTUATION:
            self._end = start + len(first)
        elif first == '"':
            self._end = self._string(start)
        elif first == "-" or first.isdigit():
            self._end = self._number(start)
        else:
            self._end = self._word(start)
        self.token = text[start : self._end]

    def _string(self, start: int) -> int:
        text = self._text
        match = _STRING.match(text, start)
        assert match is not None, "it begins with a quote"
        end = match.end()
        character = text[end : end + 1]
        if character == '"':
            return end + 1
        if not character or (character == "\\" and end + 1 == len(text)):
            raise _invalid(text, len(text), f'Token "{text[start:]}" is invalid.')
        if character != "\\":
            detail = f"Character with value 0x{ord(character):02x} must be escaped."
            raise _invalid(text, end, detail)
        if text[end + 1] == "u":
            stop = end + 2
            while stop < min(end + 6, len(text)) and text[stop] in "0123456789abcdefABCDEF":
                stop += 1
            if stop == len(text):
                raise _invalid(text, len(text), f'Token "{text[start:]}" is invalid.')
            detail = '"\\u" must be followed by four hexadecimal digits.'
            raise _invalid(text, stop + 1, detail)
        raise _invalid(text, end + 2, f'Escape sequence "\\{text[end + 1]}" is invalid.')

    def _number(self, start: int) -> int:
        match = _NUMBER.match(self._text, start)
        end = match.end() if match is not None else start + 1
        tail = _WORD.match(self._text, end)
        assert tail is not None, "it matches nothing, too"
        stopped = self._text[end : end + 1] in (".", "+", "-") and tail.end() == end
        if match is None or tail.end() > end or stopped:
            return self._refused(start, max(tail.end(), end))
        return end

    def _refused(self, start: int, end: int) -> int:
        """A number that goes wrong goes on over everything that numbers and words are made of."""
        text = self._text
        number = re.match(r"-?[0-9]*(?:\.[0-9]*)?(?:[eE][+-]?[0-9]*)?", text[start:])
        assert number is not None, "it matches nothing, too"
        tail = _WORD.match(text, max(end, start + number.end()))
        assert tail is not None, "it matches nothing, too"
        raise _invalid(text, tail.end(), f'Token "{text[start : tail.end()]}" is invalid.')

    def _word(self, start: int) -> int:
        match = _WORD.match(self._text, start)
        assert match is not None, "it matches nothing, too"
        end = max(match.end(), start + 1)
        word = self._text[start:end]
        if word not in ("true", "false", "null"):
            raise _invalid(self._text, end, f'Token "{word}" is invalid.')
        return end

    def _unexpected(self, wanted: str) -> SqlError:
        if not self.token:
            detail = "The input string ended unexpectedly."
            return _invalid(self._text, len(self._text), detail, at_end=True)
        return _invalid(self._text, self._end, f'Expected {wanted}, but found "{self.token}".')

    def check(self) -> None:
        """Raise for the first token that does not belong where it is."""
        opened: list[str] = []
        self._value(opened)
        while opened:
            if self.token == ",":
                self._next()
                if opened[-1] == "}":
                    self._key("string")
                self._value(opened)
            else:
                self._expect(opened[-1], f'"," or "{opened[-1]}"')
                opened.pop()
        if self.token:
            raise self._unexpected("end of input")

    def _value(self, opened: list[str]) -> None:
        """Over a value; of a container only up to the end of what comes first in it."""
        while self.token in ("[", "{"):
            opened.append("]" if self.token == "[" else "}")
            self._next()
            if self.token == opened[-1]:
                return
            if opened[-1] == "}":
                self._key('string or "}"')
        if not self.token or self.token in _PUNCTUATION:
            raise self._unexpected("JSON value")
        self._next()

    def _key(self, wanted: str) -> None:
        if not self.token.startswith('"'):
            raise self._unexpected(wanted)
        self._next()
        self._expect(":", '":"')

    def _expect(self, token: str, wanted: str) -> None:
        if self.token != token:
            raise self._unexpected(wanted)
        self._next()


def check_json_escapes(text: str) -> None:
    """Raises 22P05 or 22P02 for escapes that stand for no character; it looks at text only."""
    high = False
    last = -1
    for match in _UNICODE.finditer(text):
        code = int(match[1], 16) if match[1] else -1
        if high and (match.start() != last or not 0xDC00 <= code <= 0xDFFF):
            detail = "Unicode low surrogate must follow a high surrogate."
            if 0xD800 <= code <= 0xDBFF and match.start() == last:
                detail = "Unicode high surrogate must not follow a high surrogate."
            raise _invalid(text, last if match.start() != last else match.end(), detail)
        if code == 0:
            error = SqlError("22P05", "unsupported Unicode escape sequence")
            error.detail = "\\u0000 cannot be converted to text."
            error.context = _context(text, match.end(), at_end=False)
            raise error
        if 0xDC00 <= code <= 0xDFFF and not high:
            detail = "Unicode low surrogate must follow a high surrogate."
            raise _invalid(text, match.end(), detail)
        high, last = 0xD800 <= code <= 0xDBFF, match.end()
    if high:
        raise _invalid(text, last, "Unicode low surrogate must follow a high surrogate.")
