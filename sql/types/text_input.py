"""Input functions of all types: parse text to a value as PostgreSQL's `'text'::type` does.

    parse_text(type, text) ─▶ value ─ apply_typmod ─▶ value that a column of the type can hold

INVARIANTS
  T1  a text that PostgreSQL accepts gives PostgreSQL's value; one that it refuses gives its
      SQLSTATE and message. Values that the engines cannot hold are refused (22003 for numeric,
      22008 for dates).
  T2  `parse_text` applies no modifier: `apply_typmod` alone rounds, cuts and checks lengths. The
      modifier of an interval only gives the unit of its bare numbers.
  T3  no digit of a numeric is lost silently: unconstrained numeric holds 38 digits, 18 of them
      behind the point, and a value that does not fit exactly is 22003.

The binder (literals), the wire (parameters) and COPY use it, so it knows nothing of them.
"""

import math
import re
import struct
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import partial
from typing import Final

from sql.errors import SqlError, invalid_text_representation, not_supported, out_of_engine_range
from sql.types.array_text import parse_array
from sql.types.datetime.date_input import parse_date, parse_timestamp, parse_timestamptz
from sql.types.datetime.decoder import TransactionClock
from sql.types.datetime.interval_input import parse_interval
from sql.types.datetime.time_input import parse_time, parse_timetz
from sql.types.datetime.typmods import apply_time_typmod, default_interval_unit, is_minute_to_second
from sql.types.enums import EnumType, enum_of, is_enum
from sql.types.internal_char import char_of_text
from sql.types.json.parser import parse_json, parse_jsonb
from sql.types.json.path_parser import parse_jsonpath
from sql.types.json.path_printer import canonical_path_text
from sql.types.sql_type import DISPLAY_NAMES, SECONDS_PRECISION_TYPES, SqlType, Value, format_type
from sql.types.styles import DEFAULT_STYLES, Styles

NAME_BYTES_MAX: Final = 63
CLOCK_DEPENDENT_TYPES: Final = frozenset({"date", "time", "timetz", "timestamp", "timestamptz"})
"""Types of dates and times: the meaning of a text may depend on the clock and on settings."""

_ONE_SIGN: Final = re.compile(r"\s*-[^-+]*\S\s+[^-+]*")
_BLANKS: Final = " \t\n\v\f\r"
_EXACT: Final = Context(prec=200_000, Emax=999_999_999, Emin=-999_999_999)


def parse_text(
    type_name: str,
    text: str,
    *,
    timezone: str = "UTC",
    styles: Styles = DEFAULT_STYLES,
    typmod: int = -1,
    clock: TransactionClock | None = None,
) -> Value:
    """The value of `text` for the type `type_name` (pg_type.typname), without a modifier (T1, T2).

    `clock`: for literals, which may say `now`, `today` and the like.
    """
    if type_name in CLOCK_DEPENDENT_TYPES:
        return _parse_moment(type_name, text, timezone, styles, clock)
    if type_name.startswith("_"):
        if type_name in _INTEGER_ARRAYS and _INTEGERS.fullmatch(text):
            values = tuple(map(int, text[1:-1].split(",")))
            if (
                -min(values) <= _INTEGER_ARRAYS[type_name]
                and max(values) < _INTEGER_ARRAYS[type_name]
            ):
                return values
        element = partial(
            parse_text,
            type_name[1:],
            timezone=timezone,
            styles=styles,
            typmod=typmod,
            clock=clock,
        )
        return parse_array(text, element)
    if is_enum(type_name):
        return parse_enum_label(enum_of(type_name), text)
    if type_name == "interval":
        return _parse_interval(text, typmod, styles)
    parser = _PARSERS.get(type_name)
    if parser is None:
        raise not_supported(f"input of type {DISPLAY_NAMES.get(type_name, type_name)}")
    return parser(text)


def plain_parser(type_name: str) -> Callable[[str], Value]:
    """As `parse_text`, for a type whose texts mean the same under all settings."""
    return _PARSERS[type_name]


def _parse_moment(
    type_name: str, text: str, timezone: str, styles: Styles, clock: TransactionClock | None
) -> Value:
    match type_name:
        case "timestamptz":
            return parse_timestamptz(text, timezone=timezone, order=styles.order, clock=clock)
        case "timestamp":
            return parse_timestamp(text, styles.order, clock)
        case "date":
            return parse_date(text, styles.order, clock)
        case "timetz":
            return parse_timetz(text, timezone=timezone, clock=clock)
        case _:
            return parse_time(text, clock)


def _parse_interval(text: str, typmod: int, styles: Styles) -> Value:
    # SQL's minus in front is one of all fields, unless another has a sign of its own.
    if styles.intervals == "sql_standard" and _ONE_SIGN.fullmatch(text):
        raise not_supported("a sign for all fields of an interval")
    return parse_interval(
        text, unit=default_interval_unit(typmod), minutes=is_minute_to_second(typmod)
    )


def parse_enum_label(enum: EnumType, text: str) -> str:
    """A text as a label of an enum (enum_in)."""
    if text not in enum.labels:
        shown = format_type(SqlType(enum.type_name))
        raise SqlError("22P02", f'invalid input value for enum {shown}: "{text}"')
    return text


# ---------------------------------------------------------------- bool


_BOOLEANS: Final[Mapping[str, bool]] = {
    "t": True, "tr": True, "tru": True, "true": True, "y": True, "ye": True, "yes": True,
    "on": True, "1": True, "f": False, "fa": False, "fal": False, "fals": False, "false": False,
    "n": False, "no": False, "of": False, "off": False, "0": False,
}  # fmt: skip


def _parse_bool(text: str) -> bool:
    value = _BOOLEANS.get(text.strip(_BLANKS).lower())
    if value is None:
        raise invalid_text_representation("boolean", text)
    return value


# ---------------------------------------------------------------- integers


_INTEGER: Final = re.compile(
    r"[ \t\n\v\f\r]*([+-]?)(?:0[xX]((?:_?[0-9a-fA-F])+)|0[oO]((?:_?[0-7])+)|0[bB]((?:_?[01])+)"
    r"|([0-9](?:_?[0-9])*))[ \t\n\v\f\r]*"
)
_BASES: Final = (16, 8, 2, 10)
_DIGITS_CHECKED_MAX: Final = 128
"""More digits are out of every range; converting them would cost quadratic time."""

_DIGITS_PLAIN_MAX: Final = 18
"""So many are within 64 bits, whatever they are."""

_INTEGERS: Final = re.compile(r"\{-?[0-9]{1,18}(?:,-?[0-9]{1,18})*\}", re.ASCII)
_INTEGER_ARRAYS: Final = {"_int2": 1 << 15, "_int4": 1 << 31, "_int8": 1 << 63}
"""Arrays that are often long, with the size of their smallest number."""


def _parse_integer(text: str, *, bits: int, type_name: str) -> int:
    limit = 1 << (bits - 1)
    if len(text) <= _DIGITS_PLAIN_MAX and text.isascii() and text.isdigit():
        plain = int(text)
        if plain < limit:
            return plain
    match = _INTEGER.match(text)
    if match is None:
        raise invalid_text_representation(type_name, text)
    index = next(index for index in range(4) if match[index + 2] is not None)
    digits = match[index + 2].replace("_", "").lstrip("0")
    base = _BASES[index]
    magnitude = int(digits or "0", base) if len(digits) <= _DIGITS_CHECKED_MAX else 1 << 600
    # PostgreSQL stops at the digit that overflows, before it sees rubbish behind it.
    if match.end() != len(text) and magnitude // base <= limit // base:
        raise invalid_text_representation(type_name, text)
    value = -magnitude if match[1] == "-" else magnitude
    if not -limit <= value < limit:
        raise SqlError("22003", f'value "{text}" is out of range for type {type_name}')
    return value


_OID: Final = re.compile(r"[ \t\n\v\f\r]*([+-]?)(0[xX][0-9a-fA-F]+|[0-9]+)[ \t\n\v\f\r]*", re.ASCII)


def _parse_oid(text: str) -> int:
    """C's strtoul, octal behind a leading 0; a negative number wraps."""
    match = _OID.match(text)
    if match is None:
        raise invalid_text_representation("oid", text)
    digits = match[2]
    rest = text[match.end() :]
    if digits[:2].lower() == "0x":
        magnitude = int(digits[2:], 16)
    elif digits[0] == "0":
        octal = re.match(r"[0-7]+", digits)
        assert octal is not None, "it begins with 0"
        rest = digits[octal.end() :] + rest
        magnitude = int(octal[0], 8)
    else:
        magnitude = int(digits) if len(digits) <= _DIGITS_CHECKED_MAX else 1 << 600
    if rest:
        raise invalid_text_representation("oid", text)
    value = -magnitude if match[1] == "-" else magnitude
    if not -(1 << 31) <= value < 1 << 32:
        raise SqlError("22003", f'value "{text}" is out of range for type oid')
    return value % (1 << 32)


# ---------------------------------------------------------------- floats


_FLOAT: Final = re.compile(
    r"[+-]?(?:(?P<decimal>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<hexadecimal>0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][+-]?[0-9]+)?)"
    r"|(?P<special>(?i:nan(?:\([0-9a-z_]*\))?|inf(?:inity)?)))"
)


def _parse_float8(text: str) -> float:
    return _parse_float(text, type_name="double precision", is_single=False)


def _parse_float4(text: str) -> float:
    return _parse_float(text, type_name="real", is_single=True)


def _parse_float(text: str, *, type_name: str, is_single: bool) -> float:
    stripped = text.strip(_BLANKS)
    match = _FLOAT.fullmatch(stripped)
    if match is None:
        raise invalid_text_representation(type_name, text)
    if match["special"] is not None:
        # C reads what stands in parentheses, and forgets it.
        return float(stripped.partition("(")[0])
    try:
        value = float.fromhex(stripped) if match["hexadecimal"] else float(stripped)
        if is_single:
            exact = None if match["hexadecimal"] else Decimal(stripped)
            value = _round_single(value, exact)
    except OverflowError:
        value = math.inf
    mantissa = (match["decimal"] or match["hexadecimal"][2:]).lower()
    mantissa = mantissa.split("p" if match["hexadecimal"] else "e")[0]
    if math.isinf(value) or (value == 0 and mantissa.strip("0.")):
        raise SqlError("22003", f'"{stripped}" is out of range for type {type_name}')
    return value


def _round_single(value: float, exact: Decimal | None) -> float:
    """`exact` (or `value`) rounded once to 32 bits: an inexact double is made odd, then cut."""
    if exact is not None and math.isfinite(value) and exact != Decimal(value):
        (bits,) = struct.unpack("<q", struct.pack("<d", value))
        if not bits & 1:
            towards = math.inf if exact > Decimal(value) else -math.inf
            value = math.nextafter(value, towards)
    return round_to_float4(value)


def round_to_float4(value: float) -> float:
    """The nearest 32-bit float; OverflowError when there is none."""
    (rounded,) = struct.unpack("<f", struct.pack("<f", value))
    assert isinstance(rounded, float), "struct gives a float for f"
    return rounded


# ---------------------------------------------------------------- numeric


_NUMERIC: Final = re.compile(
    r"[+-]?(?:[0-9](?:_?[0-9])*(?:\.(?:[0-9](?:_?[0-9])*)?)?|\.[0-9](?:_?[0-9])*)"
    r"(?:[eE][+-]?[0-9](?:_?[0-9])*)?"
)
_NUMERIC_INTEGER: Final = re.compile(
    r"([+-]?)0(?:[xX]((?:_?[0-9a-fA-F])+)|[oO]((?:_?[0-7])+)|[bB]((?:_?[01])+))"
)
_NUMERIC_SPECIAL: Final = re.compile(r"(?i:nan|[+-]?inf(?:inity)?)")
_WEIGHT_MAX: Final = 131_072
_SCALE_MAX: Final = 16_383


def _parse_numeric(text: str) -> Decimal:
    stripped = text.strip(_BLANKS)
    if _NUMERIC.fullmatch(stripped):
        value = _EXACT.create_decimal(stripped.replace("_", ""))
    elif match := _NUMERIC_INTEGER.fullmatch(stripped):
        value = _radix_numeric(match)
    elif _NUMERIC_SPECIAL.fullmatch(stripped):
        raise out_of_engine_range("22003", f'value "{stripped}" is out of range for type numeric')
    else:
        raise invalid_text_representation("numeric", text)
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int), "the special values are refused above"
    if (value and value.adjusted() >= _WEIGHT_MAX) or exponent < -_SCALE_MAX:
        raise SqlError("22003", "value overflows numeric format")
    if not value:
        value = abs(value)
    # PostgreSQL has no negative scale: 1e3 is 1000.
    return value if exponent <= 0 else value.quantize(Decimal(1), context=_EXACT)


def _radix_numeric(match: re.Match[str]) -> Decimal:
    index = next(index for index in range(3) if match[index + 2] is not None)
    digits = match[index + 2].replace("_", "").lstrip("0")
    if len(digits) > _DIGITS_CHECKED_MAX:
        raise SqlError("22003", "value overflows numeric format")
    value = int(digits or "0", _BASES[index])
    return Decimal(-value if match[1] == "-" else value)


# ---------------------------------------------------------------- text, bytea, uuid


def _parse_string(text: str) -> str:
    if "\0" in text:
        raise SqlError("22021", 'invalid byte sequence for encoding "UTF8": 0x00')
    return text


def _parse_name(text: str) -> str:
    return _parse_string(text).encode()[:NAME_BYTES_MAX].decode(errors="ignore")


def _parse_char(text: str) -> str:
    return char_of_text(_parse_string(text))


_ESCAPED_BYTE: Final = re.compile(rb"\\(\\|[0-3][0-7][0-7])?")


def _parse_bytea(text: str) -> bytes:
    if text.startswith("\\x"):
        return _hex_bytes(text[2:])
    return _ESCAPED_BYTE.sub(_unescape_byte, text.encode())


def _unescape_byte(match: re.Match[bytes]) -> bytes:
    escaped = match[1]
    if escaped is None:
        raise SqlError("22P02", "invalid input syntax for type bytea")
    return escaped if escaped == b"\\" else bytes([int(escaped, 8)])


def _hex_bytes(digits: str) -> bytes:
    try:
        return bytes.fromhex(digits)
    except ValueError:
        pass
    # Blanks may stand between bytes, not inside one.
    position = 0
    while position < len(digits):
        if digits[position] in " \n\t\r":
            position += 1
            continue
        for offset in (0, 1):
            digit = digits[position + offset : position + offset + 1]
            if not digit:
                raise SqlError("22023", "invalid hexadecimal data: odd number of digits")
            if digit not in "0123456789abcdefABCDEF":
                raise SqlError("22023", f'invalid hexadecimal digit: "{digit}"')
        position += 2
    raise SqlError("22023", "invalid hexadecimal data")


_UUID: Final = re.compile(r"(?:[0-9a-f]{4}-?){7}[0-9a-f]{4}", re.IGNORECASE)


def _parse_uuid(text: str) -> str:
    digits = text[1:-1] if text.startswith("{") and text.endswith("}") else text
    if not _UUID.fullmatch(digits):
        raise invalid_text_representation("uuid", text)
    digits = digits.replace("-", "").lower()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _parse_json(text: str) -> str:
    return parse_json(_parse_string(text))


def _parse_jsonb(text: str) -> str:
    return parse_jsonb(_parse_string(text))


# ---------------------------------------------------------------- modifiers


def apply_typmod(value: Value, type_: SqlType, *, explicit: bool) -> Value:
    """The value as `type_` holds it: rounded, cut or refused (T3).

    `explicit`: a cast that the user wrote cuts a long text; an assignment refuses it (22001).
    """
    if isinstance(value, Decimal) and type_.name == "numeric":
        return fit_numeric(value, type_)
    if isinstance(value, tuple) and (element := type_.element) is not None:
        if type_.name in _INTEGER_ARRAYS:
            return value
        return tuple([apply_typmod(item, element, explicit=explicit) for item in value])
    if isinstance(value, str) and type_.length is not None:
        return _fit_length(value, type_, type_.length, explicit=explicit)
    if isinstance(value, str) and type_.name == "bpchar" and not type_.has_blanks:
        return value.rstrip(" ")
    return apply_time_typmod(value, type_) if type_.name in SECONDS_PRECISION_TYPES else value


def _fit_length(value: str, type_: SqlType, length: int, *, explicit: bool) -> str:
    if len(value) > length:
        if not explicit and value[length:].strip(" "):
            raise SqlError("22001", f"value too long for type {format_type(type_)}")
        value = value[:length]
    return value.rstrip(" ") if type_.name == "bpchar" else value


def fit_numeric(value: Decimal, type_: SqlType) -> Decimal:
    """The value with the type's scale: rounded if the user declared it, else exact or 22003."""
    precision, scale = type_.precision, type_.scale
    if precision is None or scale is None:
        return value
    if type_.typmod < 0 and type_.trim:
        return _fit_unconstrained(value, precision, scale)
    if value and value.adjusted() > precision:
        raise field_overflow(precision, scale)
    rounded = value.quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP, context=_EXACT)
    if rounded and rounded.adjusted() >= precision - scale:
        raise field_overflow(precision, scale)
    return rounded if rounded else abs(rounded)


def _fit_unconstrained(value: Decimal, precision: int, scale: int) -> Decimal:
    if value and value.adjusted() >= precision - scale:
        raise out_of_engine_range(
            "22003",
            "numeric field overflow",
            detail=f"Numeric without precision holds {precision - scale} digits before the point.",
        )
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int) and exponent < -scale:
        cut = value.quantize(Decimal(1).scaleb(-scale), context=_EXACT)
        if cut != value:
            raise out_of_engine_range(
                "22003",
                "numeric field overflow",
                detail=f"Numeric without precision holds {scale} digits after the point.",
                hint="Declare a precision and scale, or round the value.",
            )
        value = cut
    return value if value else abs(value)


def field_overflow(precision: int, scale: int) -> SqlError:
    """22003: a value that numeric(precision, scale) does not hold."""
    power = precision - scale
    bound = f"10^{power}" if power else "1"
    return SqlError(
        "22003",
        "numeric field overflow",
        detail=f"A field with precision {precision}, scale {scale} must round to an absolute "
        f"value less than {bound}.",
    )


def _no_record(_text: str) -> Value:
    raise SqlError("0A000", "input of anonymous composite types is not implemented")


_PARSERS: Final[Mapping[str, Callable[[str], Value]]] = {
    "bool": _parse_bool,
    "int2": partial(_parse_integer, bits=16, type_name="smallint"),
    "int4": partial(_parse_integer, bits=32, type_name="integer"),
    "int8": partial(_parse_integer, bits=64, type_name="bigint"),
    "oid": _parse_oid,
    "float4": _parse_float4,
    "float8": _parse_float8,
    "numeric": _parse_numeric,
    "text": _parse_string,
    "varchar": _parse_string,
    "unknown": _parse_string,
    "name": _parse_name,
    "char": _parse_char,
    "bpchar": _parse_string,
    "bytea": _parse_bytea,
    "uuid": _parse_uuid,
    "json": _parse_json,
    "jsonb": _parse_jsonb,
    "jsonpath": lambda text: canonical_path_text(parse_jsonpath(text)),
    "record": _no_record,
}
