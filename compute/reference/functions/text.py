"""Text functions, LIKE, and casts from and to text types."""

import hashlib
import operator
import re
import string
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Final

from compute.reference.registry import Function, Maker, implements, makes
from sql.errors import SqlError
from sql.plan.nodes import Call
from sql.regex.characters import is_alphanumeric, lower, upper
from sql.regex.like import like_ends_with_escape, like_escape_at_end, like_regex, parse_like
from sql.types.limits import check_text_length, join_within_limit
from sql.types.sql_type import REG_TYPES, SqlType, Value
from sql.types.text_input import apply_typmod, parse_text
from sql.types.text_output import format_text

_INT4_MIN: Final = -(2**31)
_INT4_MAX: Final = 2**31 - 1
TEXT_MAX: Final = 67_108_864
"""Characters that repeat and padding may make; the same bound is in their Spark templates."""


def _too_large() -> SqlError:
    return SqlError("54000", "requested length too large")


@implements("initcap(text)")
def initcap(text: str) -> str:
    """The first letter of each run of letters and digits in upper case, the others in lower
    case.
    """
    out: list[str] = []
    inside = False
    for character in text:
        out.append(lower(character) if inside else upper(character))
        inside = is_alphanumeric(character)
    return "".join(out)


@implements(
    "substr(text,int4)",
    "substr(text,int4,int4)",
    "substring(text,int4)",
    "substring(text,int4,int4)",
)
def substr(text: str, start: int, length: int | None = None) -> str:
    """The part from a position counted from 1; positions before the text count too."""
    if length is None:
        return text[max(start, 1) - 1 :]
    if length < 0:
        raise SqlError("22011", "negative substring length not allowed")
    return text[max(start, 1) - 1 : max(start + length - 1, 0)]


@implements("left(text,int4)")
def left(text: str, count: int) -> str:
    """The first characters, or all but the last ones."""
    return text[:count] if count >= 0 else text[: max(len(text) + count, 0)]


@implements("right(text,int4)")
def right(text: str, count: int) -> str:
    """The last characters, or all but the first ones."""
    if count == _INT4_MIN:
        # PostgreSQL negates it, and overflows.
        return text
    return text[max(len(text) - count, 0) :] if count >= 0 else text[-count:]


@implements("lpad(text,int4)", "lpad(text,int4,text)")
def lpad(text: str, length: int, fill: str = " ") -> str:
    """The text padded on the left, or cut on the right, to the length."""
    return _padding(text, length, fill) + text[: max(length, 0)]


@implements("rpad(text,int4)", "rpad(text,int4,text)")
def rpad(text: str, length: int, fill: str = " ") -> str:
    """The text padded or cut on the right to the length."""
    return text[: max(length, 0)] + _padding(text, length, fill)


def _padding(text: str, length: int, fill: str) -> str:
    if length > TEXT_MAX:
        raise _too_large()
    missing = length - len(text)
    if missing <= 0 or not fill:
        return ""
    return (fill * (missing // len(fill) + 1))[:missing]


@implements("repeat(text,int4)")
def repeat(text: str, count: int) -> str:
    """The text repeated; 54000 if it gets too long."""
    if len(text.encode()) * count > TEXT_MAX:
        raise _too_large()
    return text * max(count, 0)


@implements("replace(text,text,text)")
def replace(text: str, old: str, new: str) -> str:
    """The text with all occurrences replaced; an empty text has none."""
    if not old:
        return text
    if len(new) > len(old):
        check_text_length(len(text) + text.count(old) * (len(new) - len(old)))
    return text.replace(old, new)


@implements("split_part(text,text,int4)")
def split_part(text: str, delimiter: str, index: int) -> str:
    """The n-th field, from the end when negative."""
    if index == 0:
        raise SqlError("22023", "field position must not be zero")
    fields = text.split(delimiter) if delimiter else [text]
    position = index - 1 if index > 0 else len(fields) + index
    return fields[position] if 0 <= position < len(fields) else ""


@implements("translate(text,text,text)")
def translate(text: str, old: str, new: str) -> str:
    """Replace characters by their counterparts and drop those without one. The first of equal ones
    counts.
    """
    table: dict[int, str | None] = {}
    for position, character in enumerate(old):
        table.setdefault(ord(character), new[position] if position < len(new) else None)
    return text.translate(table)


@implements("overlay(text,text,int4)", "overlay(text,text,int4,int4)")
def overlay(text: str, new: str, start: int, length: int | None = None) -> str:
    """`new` in place of `length` characters from `start`."""
    if start <= 0:
        raise SqlError("22011", "negative substring length not allowed")
    count = len(new) if length is None else length
    if start + count > _INT4_MAX:
        raise SqlError("22003", "integer out of range")
    return join_within_limit([substr(text, 1, start - 1), new, substr(text, start + count)])


@implements("ascii(text)")
def ascii_(text: str) -> int:
    """The code point of the first character."""
    return ord(text[0]) if text else 0


@implements("chr(int4)")
def chr_(code: int) -> str:
    """The character of a code point."""
    if code < 0:
        raise SqlError("22023", "character number must be positive")
    if code == 0:
        raise SqlError("54000", "null character not permitted")
    if code > 0x10FFFF:
        raise SqlError("54000", f"requested character too large for encoding: {code}")
    if 0xD800 <= code <= 0xDFFF:
        raise SqlError("54000", f"requested character not valid for encoding: {code}")
    return chr(code)


@implements("md5(text)", "md5(bytea)")
def md5(value: str | bytes) -> str:
    """The MD5 digest in hexadecimal."""
    data = value.encode() if isinstance(value, str) else value
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def to_hex(bits: int) -> Function:
    """The number in hexadecimal, in two's complement."""
    return lambda x: f"{x & ((1 << bits) - 1):x}"


@implements("quote_literal(text)")
def quote_literal(text: str) -> str:
    """The text as an SQL literal."""
    doubled = text.replace("'", "''")
    if "\\" not in text:
        return f"'{doubled}'"
    backslashes = doubled.replace("\\", "\\\\")
    return f"E'{backslashes}'"


implements(
    "length(text)", "length(bpchar)", "length(bytea)", "char_length(text)", "char_length(bpchar)",
    "character_length(text)", "character_length(bpchar)", "octet_length(bytea)", "textlen(text)",
)(len)  # fmt: skip
implements("bit_length(bytea)")(lambda x: len(x) * 8)
implements("octet_length(text)")(lambda x: len(x.encode()))
implements("bit_length(text)")(lambda x: len(x.encode()) * 8)
implements("lower(text)")(lower)
implements("upper(text)")(upper)
implements("strpos(text,text)", "position(text,text)")(lambda x, part: x.find(part) + 1)
implements("reverse(text)")(lambda x: x[::-1])
implements("starts_with(text,text)", "text ^@ text")(str.startswith)
implements("text || text", "bytea || bytea")(operator.add)
implements("btrim(text)")(lambda x: x.strip(" "))
implements("ltrim(text)")(lambda x: x.lstrip(" "))
implements("rtrim(text)", "char_trimmed(bpchar)")(lambda x: x.rstrip(" "))
implements("btrim(text,text)")(lambda x, c: x.strip(c) if c else x)
implements("ltrim(text,text)")(lambda x, c: x.lstrip(c) if c else x)
implements("rtrim(text,text)")(lambda x, c: x.rstrip(c) if c else x)
implements("char_padded(bpchar,int4)")(str.ljust)
implements("to_hex(int4)")(to_hex(32))
implements("to_hex(int8)")(to_hex(64))


# --- patterns ----------------------------------------------------------------------------------


@cache
def _like_pattern(pattern: str) -> re.Pattern[str]:
    """Of a pattern that ends with an escape: what comes before that and leaves a character."""
    ends_badly = like_ends_with_escape(pattern)
    parts = parse_like(pattern[:-1] if ends_badly else pattern)
    return re.compile(like_regex(parts, re.escape, open_end=ends_badly), re.DOTALL)


@implements("like(text,text)")
def like(text: str, pattern: str) -> bool:
    """LIKE with the default escape. An escape at the end fails where a character meets it."""
    found = _like_pattern(pattern).fullmatch(text) is not None
    if found and like_ends_with_escape(pattern):
        raise like_escape_at_end()
    return found


def ilike(text: str, pattern: str) -> bool:
    """ILIKE."""
    return like(lower(text), lower(pattern))


_ASCII_LOWER: Final = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def ilike_of_names(text: str, pattern: str) -> bool:
    """ILIKE under the collation "C": letters beyond ASCII have one case."""
    return like(text.translate(_ASCII_LOWER), pattern.translate(_ASCII_LOWER))


@implements("bytea ~~ bytea")
def bytes_like(data: bytes, pattern: bytes) -> bool:
    """LIKE of bytes: each byte is a character."""
    return like(data.decode("latin-1"), pattern.decode("latin-1"))


def make_pattern(function: Function) -> Maker:
    """LIKE and regular expressions: they see the blanks of char(n)."""

    def make(call: Call) -> Function:
        type_ = call.args[0].type
        width = type_.length if type_.name == "bpchar" else None
        if width is None:
            return function
        return lambda text, pattern: function(text.ljust(width), pattern)

    return make


def negate_match(function: Function) -> Function:
    """The opposite."""
    return lambda *args: not function(*args)


makes("text ~~ text", "bpchar ~~ text")(make_pattern(like))
makes("text !~~ text", "bpchar !~~ text")(make_pattern(negate_match(like)))
makes("text ~~* text", "bpchar ~~* text")(make_pattern(ilike))
makes("text !~~* text", "bpchar !~~* text")(make_pattern(negate_match(ilike)))
implements("name ~~ text")(like)
implements("name ~~* text")(ilike_of_names)
implements("notlike(text,text)", "name !~~ text")(negate_match(like))
implements("name !~~* text")(negate_match(ilike_of_names))
implements("bytea !~~ bytea")(negate_match(bytes_like))


# --- casts -------------------------------------------------------------------------------------

_TEXTS: Final = ("text", "varchar", "bpchar", "name")
_READ: Final = (
    "char", "bool", "int2", "int4", "int8", "oid", "float4", "float8", "numeric", "date",
    "timestamp", "timestamptz", "time", "timetz", "interval", "bytea", "uuid", "json", "jsonb",
    "anyarray", "enum", *REG_TYPES,
)  # fmt: skip
"""Types that a cast reads from a text."""
_WRITTEN: Final = (*_READ, "record", "jsonpath")
"""Types that a cast writes as a text."""


def cast_text(value: Value, type_: SqlType, zone: str = "UTC") -> str:
    """`value::text`: the output function's text, except for booleans, and for char(n) without
    padding.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and type_.name not in ("record", "jsonpath"):
        return value
    return format_text(value, type_, timezone=zone)


@makes(
    *[
        f"{source}::{text}"
        for source in _WRITTEN
        for text in _TEXTS
        if (source, text) != ("char", "bpchar")
    ]
)
def make_to_text(call: Call) -> Function:
    """A cast to a text type, with its length."""
    source, target = call.args[0].type, call.type
    if target.name == "name":
        # No cast of its own: what the output function writes is read, a boolean as a letter.
        return lambda value, zone="UTC": parse_text(
            "name", format_text(value, source, timezone=zone)
        )
    return lambda value, zone="UTC": apply_typmod(
        cast_text(value, source, zone), target, explicit=True
    )


@makes(
    *[
        f"{source}::{target}"
        for source, target in product(_TEXTS, repeat=2)
        if source != target or source in ("varchar", "bpchar")
    ]
)
def make_text_to_text(call: Call) -> Function:
    """Cut to the length; char(n) without padding."""
    target = call.type

    def run(value: str) -> Value:
        fitted = apply_typmod(value, target, explicit=True)
        if target.name == "bpchar" and not target.has_blanks and isinstance(fitted, str):
            return fitted.rstrip(" ")
        if target.name == "name":
            return parse_text("name", value)
        return fitted

    return run


@makes("assign(varchar)", "assign(bpchar)")
def make_assign(call: Call) -> Function:
    """An assignment cast to a column: a text that is too long is refused."""
    target = call.type

    def run(value: str) -> Value:
        fitted = apply_typmod(value, target, explicit=False)
        if target.name == "bpchar" and isinstance(fitted, str):
            return fitted.rstrip(" ")
        return fitted

    return run


@makes(*[f"{text}::{target}" for text in _TEXTS for target in _READ])
def make_parse(call: Call) -> Function:
    """A cast from a text type: the target's input function."""
    target = call.type
    return lambda text, zone="UTC": apply_typmod(
        parse_text(target.name, text, timezone=zone), target, explicit=True
    )


@makes("text || anynonarray", "anynonarray || text")
def make_concatenate(call: Call) -> Function:
    """`text || anything`."""
    left, right = (arg.type for arg in call.args[:2])
    return lambda a, b: cast_text(a, left) + cast_text(b, right)


@makes("octet_length(bpchar)")
def make_octet_length(call: Call) -> Function:
    """octet_length(), including the padding of char(n)."""
    type_ = call.args[0].type
    return lambda value: len(format_text(value, type_).encode())


def _outputs(call: Call, skipped: int) -> list[Callable[[Value], str]]:
    def output(type_: SqlType) -> Callable[[Value], str]:
        return lambda value: format_text(value, type_)

    return [output(arg.type) for arg in call.args[skipped:]]


@makes("concat(any)")
def make_concat(call: Call) -> Function:
    """concat(): NULLs are left out."""
    outputs = _outputs(call, 0)
    return lambda *args: join_within_limit(
        [output(value) for output, value in zip(outputs, args, strict=True) if value is not None]
    )


@makes("concat_ws(text,any)")
def make_concat_ws(call: Call) -> Function:
    """concat_ws(): NULL if the separator is; NULL values are left out."""
    outputs = _outputs(call, 1)

    def run(separator: str | None, *args: Value) -> Value:
        if separator is None:
            return None
        shown = [
            output(value) for output, value in zip(outputs, args, strict=True) if value is not None
        ]
        return join_within_limit(shown, separator)

    return run
