"""Text functions: format(), quoting, parse_ident(), Unicode normalization, unistr(), to_bin()."""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from compute.reference.functions.text import cast_text, quote_literal
from compute.reference.registry import Function, implements, makes
from sql.errors import SqlError, not_supported
from sql.plan.nodes import Call
from sql.types.limits import check_text_length, join_within_limit
from sql.types.sql_type import SqlType, Value, quoted_name
from sql.types.text_output import format_text

_BLANKS: Final = frozenset(" \t\n\r\f\v")
_FORMS: Final = frozenset({"NFC", "NFD", "NFKC", "NFKD"})
_HEX: Final = frozenset("0123456789abcdefABCDEF")
_DIGITS: Final = frozenset("0123456789")
_INT_MAX: Final = 2**31 - 1


# --- quoting -------------------------------------------------------------------------------------


@implements("parse_ident(text)", "parse_ident(text,bool)")
def parse_ident(text: str, strict: bool = True) -> tuple[str, ...]:
    """The names of a qualified identifier, unquoted ones in lower case."""
    parts: list[str] = []
    at = _after_blanks(text, 0)
    while True:
        name, at = _quoted_name(text, at) if text[at : at + 1] == '"' else _plain_name(text, at)
        parts.append(name)
        at = _after_blanks(text, at)
        if text[at : at + 1] != ".":
            break
        at = _after_blanks(text, at + 1)
    if at < len(text) and strict:
        raise _no_identifier(text)
    return tuple(parts)


def _after_blanks(text: str, at: int) -> int:
    while text[at : at + 1] in _BLANKS:
        at += 1
    return at


def _no_identifier(text: str, detail: str | None = None) -> SqlError:
    return SqlError("22023", f'string is not a valid identifier: "{text}"', detail=detail)


def _quoted_name(text: str, at: int) -> tuple[str, int]:
    end = text.find('"', at + 1)
    while end >= 0 and text[end + 1 : end + 2] == '"':
        end = text.find('"', end + 2)
    if end < 0:
        raise _no_identifier(text, "String has unclosed double quotes.")
    if end == at + 1:
        raise _no_identifier(text, "Quoted identifier must not be empty.")
    return text[at + 1 : end].replace('""', '"'), end + 1


def _plain_name(text: str, at: int) -> tuple[str, int]:
    end = at
    while end < len(text) and (_is_letter(text[end]) or (end > at and text[end] in "0123456789$")):
        end += 1
    if end == at:
        raise _no_identifier(text)
    name = "".join(c.lower() if c.isascii() else c for c in text[at:end])
    return name, end


def _is_letter(character: str) -> bool:
    return character == "_" or not character.isascii() or character.isalpha()


@implements("quote_nullable(text)")
def quote_nullable(text: str | None) -> str:
    """The text as a literal, or `NULL`."""
    return "NULL" if text is None else quote_literal(text)


def _output(type_: SqlType) -> Callable[[Value], str]:
    """The output function of the type; char(n) with its padding."""
    return lambda value: format_text(value, type_)


@makes("quote_literal(anyelement)", "quote_nullable(anyelement)")
def _make_quoted(call: Call) -> Function:
    type_ = call.args[0].type

    def run(value: Value) -> str:
        return quote_nullable(None if value is None else cast_text(value, type_))

    return run


# --- format() ------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Specifier:
    """`%[position][flags][width]type`. `width_at`: which argument is the width, 0: the next."""

    position: int = 0
    left: bool = False
    width: int = 0
    width_at: int | None = None
    kind: str = ""


class _Format:
    """One call of format(): text_format()."""

    def __init__(self, text: str, args: Sequence[Value], types: Sequence[SqlType]) -> None:
        self._text = text
        self._at = 0
        self._args = args
        self._types = types
        self._used = 0
        self._length = 0
        """Of what was formatted: no piece is made that the result has no room for."""

    def run(self) -> str:
        out: list[str] = []
        while self._at < len(self._text):
            character = self._text[self._at]
            if character != "%":
                out.append(character)
                self._at += 1
                continue
            self._advance()
            if self._text[self._at] == "%":
                out.append("%")
            else:
                out.append(self._formatted(self._specifier()))
            self._at += 1
        return join_within_limit(out)

    def _advance(self) -> None:
        self._at += 1
        if self._at >= len(self._text):
            hint = 'For a single "%" use "%%".'
            raise SqlError("22023", "unterminated format() type specifier", hint=hint)

    def _number(self) -> int | None:
        start = self._at
        while self._text[self._at] in _DIGITS:
            self._advance()
            if int(self._text[start : self._at]) > _INT_MAX:
                raise SqlError("22003", "number is out of range")
        return int(self._text[start : self._at]) if self._at > start else None

    def _specifier(self) -> _Specifier:
        found = _Specifier()
        number = self._number()
        if number is not None:
            if self._text[self._at] != "$":
                found.width = number
                return self._with_kind(found)
            found.position = _counted(number)
            self._advance()
        while self._text[self._at] == "-":
            found.left = True
            self._advance()
        if self._text[self._at] == "*":
            self._advance()
            found.width_at = self._number()
            if found.width_at is None:
                found.width_at = 0
            else:
                if self._text[self._at] != "$":
                    raise SqlError("22023", 'width argument position must be ended by "$"')
                _counted(found.width_at)
                self._advance()
        else:
            found.width = self._number() or 0
        return self._with_kind(found)

    def _with_kind(self, found: _Specifier) -> _Specifier:
        found.kind = self._text[self._at]
        if found.kind not in "sIL":
            hint = 'For a single "%" use "%%".'
            message = f'unrecognized format() type specifier "{found.kind}"'
            raise SqlError("22023", message, hint=hint)
        return found

    def _argument(self, position: int) -> tuple[Value, SqlType]:
        self._used = position or self._used + 1
        if self._used > len(self._args):
            raise SqlError("22023", "too few arguments for format()")
        return self._args[self._used - 1], self._types[self._used - 1]

    def _width(self, found: _Specifier) -> int:
        if found.width_at is None:
            return found.width
        value, type_ = self._argument(found.width_at)
        if value is None:
            return 0
        if type_.name not in ("int2", "int4"):
            raise not_supported("format() with a width that is no integer")
        assert isinstance(value, int), "an integer"
        return value

    def _formatted(self, found: _Specifier) -> str:
        width = self._width(found)
        value, type_ = self._argument(found.position)
        text = self._converted(found.kind, value, type_)
        self._length += max(abs(width), len(text))
        check_text_length(self._length)
        if width < 0 or found.left:
            return text.ljust(abs(width))
        return text.rjust(width)

    def _converted(self, kind: str, value: Value, type_: SqlType) -> str:
        if value is None:
            if kind == "I":
                message = "null values cannot be formatted as an SQL identifier"
                raise SqlError("22004", message)
            return "NULL" if kind == "L" else ""
        text = _output(type_)(value)
        return text if kind == "s" else quoted_name(text) if kind == "I" else quote_literal(text)


def _counted(number: int) -> int:
    if not number:
        message = "format specifies argument 0, but arguments are numbered from 1"
        raise SqlError("22023", message)
    return number


@makes("format(text)", "format(text,any)")
def _make_format(call: Call) -> Function:
    types = [arg.type for arg in call.args[1:]]

    def run(text: str | None, *args: Value) -> str | None:
        return None if text is None else _Format(text, args, types).run()

    return run


# --- Unicode -------------------------------------------------------------------------------------


@implements("casefold(text)")
def casefold(text: str) -> str:
    """The text for caseless comparison: lower case for ASCII, a mapping of its own beyond."""
    if not text.isascii():
        raise not_supported("casefold() beyond ASCII")
    return text.lower()


def _form(name: str) -> str:
    if name.upper() not in _FORMS:
        raise SqlError("22023", f"invalid normalization form: {name}")
    return name.upper()


@implements("normalize(text)", "normalize(text,text)")
def normalize(text: str, form: str = "NFC") -> str:
    """The text in a normalization form; characters that Python does not know are refused."""
    return unicodedata.normalize(_form(form), _known(text))  # type: ignore[arg-type]


@implements("is_normalized(text)", "is_normalized(text,text)")
def is_normalized(text: str, form: str = "NFC") -> bool:
    """Whether it is in that form."""
    return unicodedata.is_normalized(_form(form), _known(text))  # type: ignore[arg-type]


def _known(text: str) -> str:
    if not text.isascii() and any(unicodedata.category(c) == "Cn" for c in text):
        raise not_supported("normalization of characters that are newer than this server")
    return text


@implements("unicode_assigned(text)")
def unicode_assigned(text: str) -> bool:
    """Whether every character is assigned; Python's older Unicode can only confirm it."""
    if any(unicodedata.category(c) == "Cn" for c in text):
        raise not_supported("unicode_assigned() of characters that are unknown to this server")
    return True


@implements("unistr(text)")
def unistr(text: str) -> str:
    r"""Unicode escapes: `\XXXX`, `\+XXXXXX`, `\uXXXX`, `\UXXXXXXXX`, `\\`."""
    out: list[str] = []
    at = high = 0
    while at < len(text):
        if text[at] != "\\":
            code, at = ord(text[at]), at + 1
            escaped = False
        elif text[at + 1 : at + 2] == "\\":
            code, at, escaped = ord("\\"), at + 2, False
        else:
            code, at = _escape(text, at + 1)
            escaped = True
        if high:
            if not (escaped and 0xDC00 <= code <= 0xDFFF):
                raise _surrogates()
            out.append(chr(0x10000 + ((high & 0x3FF) << 10) + (code & 0x3FF)))
            high = 0
        elif escaped and 0xD800 <= code <= 0xDBFF:
            high = code
        elif escaped and 0xDC00 <= code <= 0xDFFF:
            raise _surrogates()
        else:
            out.append(chr(code))
    if high:
        raise _surrogates()
    return "".join(out)


def _surrogates() -> SqlError:
    return SqlError("42601", "invalid Unicode surrogate pair")


def _escape(text: str, at: int) -> tuple[int, int]:
    for sign, count in (("", 4), ("u", 4), ("+", 6), ("U", 8)):
        digits = text[at + len(sign) : at + len(sign) + count]
        if text.startswith(sign, at) and len(digits) == count and _HEX.issuperset(digits):
            code = int(digits, 16)
            if not 0 < code <= 0x10FFFF:
                raise SqlError("22023", f"invalid Unicode code point: {code:04X}")
            return code, at + len(sign) + count
    hint = "Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX."
    raise SqlError("42601", "invalid Unicode escape", hint=hint)


def _in_base(spec: str, bits: int) -> Function:
    return lambda x: format(x & ((1 << bits) - 1), spec)


@implements("num_nulls(any)")
def _nulls(*args: Value) -> int:
    return sum(arg is None for arg in args)


implements("quote_ident(text)")(quoted_name)
implements("num_nonnulls(any)")(lambda *args: len(args) - _nulls(*args))
implements("text ~<~ text", "bpchar ~<~ bpchar")(lambda a, b: a < b)
implements("text ~<=~ text", "bpchar ~<=~ bpchar")(lambda a, b: a <= b)
implements("text ~>=~ text", "bpchar ~>=~ bpchar")(lambda a, b: a >= b)
implements("text ~>~ text", "bpchar ~>~ bpchar")(lambda a, b: a > b)
implements("to_bin(int4)")(_in_base("b", 32))
implements("to_bin(int8)")(_in_base("b", 64))
implements("to_oct(int4)")(_in_base("o", 32))
implements("to_oct(int8)")(_in_base("o", 64))
implements("textcat(text,text)")(lambda a, b: a + b)
