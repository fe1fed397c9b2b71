"""Encode and decode single values: parameters of Bind, fields of DataRow, in text and binary.

    bytes ─ text: `sql.types.text_input` ─┐                         ┌─ text: `sql.types.text_output`
          └ binary: this module ──────────┴─▶ Value ─ small results ┴─ binary: this module  ─▶ bytes

INVARIANTS
  L1  `decode_value(encode_value(v)) == v`, in both formats, for every value of a type.
  L2  bytes that are no value of the type are 22P03, 08P01 or what the text input says.
  L3  dates and times count from 2000-01-01 in binary, from 1970-01-01 in a Value.

Not here: whole batches (`pgwire/rows.py`).
"""

import struct
from collections.abc import Callable, Mapping
from decimal import ROUND_DOWN, Context, Decimal
from functools import partial
from typing import Final
from uuid import UUID

from coordinator.pgwire.arrays import decode_array, encode_array
from coordinator.pgwire.messages import BINARY_FORMAT, TEXT_FORMAT
from ingest.copy_text.encoding import decode_text
from sql.errors import SqlError, not_supported, out_of_engine_range
from sql.types.datetime.calendar import MICROS_PER_DAY, days_from_civil
from sql.types.datetime.date_input import DATE_DAYS_MAX, TIMESTAMP_MICROS_END
from sql.types.datetime.timetz import (
    ZONE_SECONDS_END,
    encode_timetz,
    timetz_local_time,
    timetz_offset,
)
from sql.types.enums import enum_of, is_enum, storage_type_name
from sql.types.internal_char import byte_of_char, char_of_byte
from sql.types.json.path_printer import displayed_path_text as shown_path
from sql.types.record_text import record_fields
from sql.types.sql_type import (
    DISPLAY_NAMES,
    OID,
    REG_TYPES,
    VECTOR_TYPE_OIDS,
    Interval,
    SqlType,
    Value,
    is_reg_array,
)
from sql.types.styles import DEFAULT_STYLES, Styles
from sql.types.text_input import (
    NAME_BYTES_MAX,
    apply_typmod,
    parse_enum_label,
    parse_text,
    plain_parser,
)
from sql.types.text_output import format_text
from sql.types.tuple_ids import held_tid, parse_number, parse_tid, parse_tid_array

DAYS_OF_2000: Final = days_from_civil(2000, 1, 1)
MICROS_OF_2000: Final = DAYS_OF_2000 * MICROS_PER_DAY
_DAYS_MIN: Final = days_from_civil(1, 1, 1)
_MICROS_MIN: Final = _DAYS_MIN * MICROS_PER_DAY
_STRINGS: Final = frozenset({"text", "varchar", "bpchar", "unknown", "name"})

_NUMERIC_HEADER: Final = struct.Struct("!HhHH")
_NUMERIC_NEGATIVE: Final = 0x4000
_NUMERIC_SPECIAL: Final = {0xC000: "NaN", 0xD000: "Infinity", 0xF000: "-Infinity"}
_NUMERIC_SCALE_MAX: Final = 0x3FFF
_EXACT: Final = Context(prec=400_000, Emax=999_999_999, Emin=-999_999_999)
_INTERVAL: Final = struct.Struct("!qii")
_TIMETZ: Final = struct.Struct("!qi")
_LENGTH: Final = struct.Struct("!i")
_FIELD_TYPE: Final = struct.Struct("!I")


def decode_value(
    data: bytes,
    type_: SqlType,
    code: int,
    *,
    timezone: str = "UTC",
    styles: Styles = DEFAULT_STYLES,
) -> Value:
    """The value of a parameter that is not NULL, given in text (0) or binary (1) (L2). One of a reg
    type is the text that will be looked up.
    """
    if type_.name in REG_TYPES:
        return decode_text(data) if code == TEXT_FORMAT else str(_decode_binary(data, OID))
    if is_reg_array(type_):
        # Names or numbers, which are looked up.
        if code == TEXT_FORMAT:
            return parse_text("_text", decode_text(data))
        oids = decode_array(data, type_.element or OID, partial(_decode_binary, type_=OID))
        return tuple([None if oid is None else str(oid) for oid in oids])
    if type_.name.removeprefix("_") in _SYSTEM_DECODERS:
        return _decode_system_value(data, type_, code)
    if code == TEXT_FORMAT:
        value = parse_text(type_.name, decode_text(data), timezone=timezone, styles=styles)
    else:
        value = _decode_binary(data, type_)
    return apply_typmod(value, type_, explicit=True)


def decode_field(data: bytes, type_: SqlType) -> Value:
    """A field of COPY in binary, as an assignment to a column of the type (L2)."""
    return apply_typmod(_decode_binary(data, type_), type_, explicit=False)


def _decode_binary(data: bytes, type_: SqlType) -> Value:
    if (element := type_.element) is not None:
        return decode_array(data, element, partial(_decode_binary, type_=element))
    if is_enum(type_.name):
        return parse_enum_label(enum_of(type_.name), decode_text(data))
    decoder = _BINARY_DECODERS.get(type_.name)
    if decoder is None:
        raise not_supported(f"binary input of type {DISPLAY_NAMES.get(type_.name, type_.name)}")
    return decoder(data)


def _decode_system_value(data: bytes, type_: SqlType, code: int) -> Value:
    """A value of tid, xid or xid8, or an array of them."""
    element = type_.element
    if code == BINARY_FORMAT:
        decoder = _SYSTEM_DECODERS[type_.name.removeprefix("_")]
        return decoder(data) if element is None else decode_array(data, element, decoder)
    text = decode_text(data)
    if type_.name == "_tid":
        return parse_tid_array(text)
    if type_.name == "tid":
        return parse_tid(text)
    if element is not None:
        return parse_text("_int8", text)
    return parse_number(type_.name, text)


def _decode_tid(data: bytes) -> Value:
    _check_length(data, _TID.size)
    return held_tid(*_TID.unpack(data))


def encode_value(value: Value, type_: SqlType, code: int, *, timezone: str = "UTC") -> bytes:
    """The bytes of a value that is not NULL, in text (0) or binary (1)."""
    if code == TEXT_FORMAT:
        return format_text(value, type_, timezone=timezone).encode()
    if type_.name in _CATALOG_ENCODERS:
        return _CATALOG_ENCODERS[type_.name](value)
    if storage_type_name(type_.name) in _STRINGS:
        return format_text(value, type_).encode()
    if type_.name == "numeric":
        assert isinstance(value, Decimal), "numeric is a Decimal"
        return encode_numeric(value, scale=type_.scale, trim=type_.trim)
    if type_.name == "record":
        return _encode_record(value, type_, code, timezone)
    if (element := type_.element) is not None:
        assert isinstance(value, tuple), "an array is a tuple"
        encode = partial(encode_value, type_=element, code=code, timezone=timezone)
        return encode_array(value, element, encode, is_vector=type_.name in VECTOR_TYPE_OIDS)
    return _BINARY_ENCODERS[type_.name](value)


# ---------------------------------------------------------------- binary in


def _fixed(layout: str) -> Callable[[bytes], Value]:
    """A decoder of one number of that struct layout."""
    packed = struct.Struct(layout)
    size, unpack = packed.size, packed.unpack

    def decode(data: bytes) -> Value:
        if len(data) != size:
            _check_length(data, size)
        value: int | float = unpack(data)[0]
        return value

    return decode


def _check_length(data: bytes, size: int) -> None:
    if len(data) < size:
        raise SqlError("08P01", "insufficient data left in message")
    if len(data) > size:
        raise SqlError("22P03", "incorrect binary data format")


def _decode_bool(data: bytes) -> bool:
    _check_length(data, 1)
    return data != b"\0"


def _decode_char(data: bytes) -> str:
    _check_length(data, 1)
    return char_of_byte(data[0])


def _encode_char(value: Value) -> bytes:
    assert isinstance(value, str), "a char is a str"
    return bytes([byte_of_char(value)])


def _decode_name(data: bytes) -> str:
    if len(data) > NAME_BYTES_MAX:
        raise SqlError(
            "42622",
            "identifier too long",
            detail="Identifier must be less than 64 characters.",
        )
    return decode_text(data)


def _decode_uuid(data: bytes) -> str:
    _check_length(data, 16)
    return str(UUID(bytes=data))


_JSONB_VERSION: Final = b"\x01"


def _decode_jsonb(data: bytes) -> Value:
    if not data:
        raise SqlError("08P01", "insufficient data left in message")
    if data[:1] != _JSONB_VERSION:
        raise SqlError("XX000", f"unsupported jsonb version number {data[0]}")
    return parse_text("jsonb", decode_text(data[1:]))


def _decode_date(data: bytes) -> int:
    _check_length(data, 4)
    days = int.from_bytes(data, "big", signed=True) + DAYS_OF_2000
    if not _DAYS_MIN <= days <= DATE_DAYS_MAX:
        raise SqlError("22008", "date out of range")
    return days


def _decode_time(data: bytes) -> int:
    _check_length(data, 8)
    micros = int.from_bytes(data, "big", signed=True)
    if not 0 <= micros <= MICROS_PER_DAY:
        raise SqlError("22008", "time out of range")
    return micros


def _decode_timetz(data: bytes) -> int:
    _check_length(data, _TIMETZ.size)
    clock, west = _TIMETZ.unpack(data)
    if not 0 <= clock <= MICROS_PER_DAY:
        raise SqlError("22008", "time out of range")
    if abs(west) >= ZONE_SECONDS_END:
        raise SqlError("22009", "time zone displacement out of range")
    return encode_timetz(clock, -west)


def _decode_timestamp(data: bytes) -> int:
    _check_length(data, 8)
    micros = int.from_bytes(data, "big", signed=True) + MICROS_OF_2000
    if not _MICROS_MIN <= micros < TIMESTAMP_MICROS_END:
        raise SqlError("22008", "timestamp out of range")
    return micros


def _decode_interval(data: bytes) -> Interval:
    _check_length(data, _INTERVAL.size)
    micros, days, months = _INTERVAL.unpack(data)
    value = Interval(months, days, micros)
    infinite = (
        Interval(2**31 - 1, 2**31 - 1, 2**63 - 1),
        Interval(-(2**31), -(2**31), -(2**63)),
    )
    if value in infinite:
        raise SqlError("22008", "interval out of range")
    return value


def _decode_numeric(data: bytes) -> Decimal:
    if len(data) < _NUMERIC_HEADER.size:
        raise SqlError("08P01", "insufficient data left in message")
    count, weight, sign, scale = _NUMERIC_HEADER.unpack_from(data)
    _check_length(data, _NUMERIC_HEADER.size + 2 * count)
    if sign in _NUMERIC_SPECIAL:
        name = _NUMERIC_SPECIAL[sign]
        raise out_of_engine_range("22003", f'value "{name}" is out of range for type numeric')
    if sign not in (0, _NUMERIC_NEGATIVE):
        raise SqlError("22P03", 'invalid sign in external "numeric" value')
    if scale > _NUMERIC_SCALE_MAX:
        raise SqlError("22P03", 'invalid scale in external "numeric" value')
    groups = struct.unpack_from(f"!{count}H", data, _NUMERIC_HEADER.size)
    if any(group > 9999 for group in groups):
        raise SqlError("22P03", 'invalid digit in external "numeric" value')
    digits = "".join(f"{group:04d}" for group in groups) or "0"
    value = _EXACT.create_decimal(f"{'-' if sign else ''}{digits}E{4 * (weight - count + 1)}")
    # Digits beyond the display scale are cut, those missing up to it are zeros.
    value = value.quantize(Decimal(1).scaleb(-scale), rounding=ROUND_DOWN, context=_EXACT)
    return value if value else abs(value)


_BINARY_DECODERS: Final[Mapping[str, Callable[[bytes], Value]]] = {
    "bool": _decode_bool,
    "int2": _fixed("!h"),
    "int4": _fixed("!i"),
    "int8": _fixed("!q"),
    "oid": _fixed("!I"),
    "float4": _fixed("!f"),
    "float8": _fixed("!d"),
    "numeric": _decode_numeric,
    "text": decode_text,
    "varchar": decode_text,
    "unknown": decode_text,
    "bpchar": decode_text,
    "name": _decode_name,
    "char": _decode_char,
    "bytea": bytes,
    "uuid": _decode_uuid,
    "json": lambda data: parse_text("json", decode_text(data)),
    "jsonb": _decode_jsonb,
    "date": _decode_date,
    "time": _decode_time,
    "timetz": _decode_timetz,
    "timestamp": _decode_timestamp,
    "timestamptz": _decode_timestamp,
    "interval": _decode_interval,
}


def _of_text(type_name: str) -> Callable[[bytes], Value]:
    parse = plain_parser(type_name)
    return lambda data: parse(decode_text(data))


_PLAIN_TYPES: Final = ("bool", "int2", "int4", "int8", "oid", "float4", "float8", "text", "uuid")
PLAIN_DECODERS: Final[Mapping[int, Mapping[str, Callable[[bytes], Value]]]] = {
    TEXT_FORMAT: {name: _of_text(name) for name in _PLAIN_TYPES},
    BINARY_FORMAT: {name: _BINARY_DECODERS[name] for name in _PLAIN_TYPES},
}
"""`decode_value` of types that have no modifier and that no setting changes, by format and name: at
a third of its cost."""


# ---------------------------------------------------------------- binary out


def encode_numeric(value: Decimal, *, scale: int | None, trim: bool) -> bytes:
    """Groups of four digits; the display scale is the type's, or what the digits need."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "the special values are refused on input"
    unscaled = int("".join(map(str, digits)))
    if trim:
        while exponent < 0 and unscaled % 10 == 0:
            unscaled, exponent = unscaled // 10, exponent + 1
        display_scale = max(-exponent, 0)
    else:
        display_scale = max(-exponent, 0) if scale is None else scale
    return encode_unscaled(unscaled, exponent, display_scale, is_negative=bool(sign))


def encode_unscaled(
    unscaled: int, exponent: int, display_scale: int, *, is_negative: bool
) -> bytes:
    """`unscaled * 10**exponent` as the binary numeric."""
    shift = exponent % 4
    unscaled, exponent = unscaled * 10**shift, exponent - shift
    groups: list[int] = []
    while unscaled:
        unscaled, group = divmod(unscaled, 10_000)
        groups.append(group)
    weight = len(groups) - 1 + exponent // 4 if groups else 0
    first = next((index for index, group in enumerate(groups) if group), 0)
    groups = groups[first:][::-1]
    sign = _NUMERIC_NEGATIVE if is_negative and groups else 0
    return struct.pack(f"!HhHH{len(groups)}H", len(groups), weight, sign, display_scale, *groups)


def _packing(layout: str) -> Callable[[Value], bytes]:
    return struct.Struct(layout).pack


def _encode_bytea(value: Value) -> bytes:
    assert isinstance(value, bytes), "bytea is bytes"
    return value


def _encode_uuid(value: Value) -> bytes:
    assert isinstance(value, str), "uuid is a str"
    return UUID(value).bytes


def _encode_json(value: Value) -> bytes:
    assert isinstance(value, str), "json is a str"
    return value.encode()


def _encode_date(value: Value) -> bytes:
    assert isinstance(value, int), "date is an int"
    return struct.pack("!i", value - DAYS_OF_2000)


def _encode_timetz(value: Value) -> bytes:
    assert isinstance(value, int), "timetz is an int"
    return _TIMETZ.pack(timetz_local_time(value), -timetz_offset(value))


def _encode_timestamp(value: Value) -> bytes:
    assert isinstance(value, int), "timestamps are ints"
    return struct.pack("!q", value - MICROS_OF_2000)


def _encode_interval(value: Value) -> bytes:
    assert isinstance(value, Interval), "interval is an Interval"
    return _INTERVAL.pack(value.micros, value.days, value.months)


def _encode_record(value: Value, type_: SqlType, code: int, timezone: str) -> bytes:
    """The fields, each behind its type and its length (record_send)."""
    if type_.fields is None:
        raise not_supported("binary output of rows of several types")
    parts = [_LENGTH.pack(len(type_.fields))]
    values = record_fields(value, type_, timezone)
    for part, field in zip(values, type_.fields, strict=True):
        parts.append(_FIELD_TYPE.pack(field.oid))
        if part is None:
            parts.append(_LENGTH.pack(-1))
        else:
            data = encode_value(part, field, code, timezone=timezone)
            parts += (_LENGTH.pack(len(data)), data)
    return b"".join(parts)


def _no_aclitem(_value: Value) -> bytes:
    raise SqlError("42883", "no binary output function available for type aclitem")


def _encode_tid(value: Value) -> bytes:
    assert isinstance(value, str), "tid is a text"
    block, _, number = value.strip("()").partition(",")
    return _TID.pack(int(block), int(number))


def _encode_lsn(value: Value) -> bytes:
    assert isinstance(value, str), "pg_lsn is a text"
    high, _, low = value.partition("/")
    return struct.pack("!II", int(high, 16), int(low, 16))


def _encode_written_oid(value: Value) -> bytes:
    """An element of an array of a reg type, which comes as a text."""
    assert isinstance(value, str), "an element of a reg type is a text"
    return struct.pack("!I", int(value))


_TID: Final = struct.Struct("!IH")
_SYSTEM_DECODERS: Final[Mapping[str, Callable[[bytes], Value]]] = {
    "tid": _decode_tid,
    "xid": _fixed("!I"),
    "cid": _fixed("!I"),
    "xid8": _fixed("!Q"),
}
_CATALOG_ENCODERS: Final[Mapping[str, Callable[[Value], bytes]]] = {
    "xid": _packing("!I"),
    "cid": _packing("!I"),
    "xid8": _packing("!Q"),
    "tid": _encode_tid,
    "pg_lsn": _encode_lsn,
    "aclitem": _no_aclitem,
}
"""Types that only catalogs have, if they are not sent as the types that they are held as."""

_BINARY_ENCODERS: Final[Mapping[str, Callable[[Value], bytes]]] = {
    "bool": _packing("!?"),
    "char": _encode_char,
    "int2": _packing("!h"),
    "int4": _packing("!i"),
    "int8": _packing("!q"),
    "oid": _packing("!I"),
    "float4": _packing("!f"),
    "float8": _packing("!d"),
    "bytea": _encode_bytea,
    "uuid": _encode_uuid,
    "json": _encode_json,
    "jsonpath": lambda value: _JSONB_VERSION + _encode_json(shown_path(value)),
    "jsonb": lambda value: _JSONB_VERSION + _encode_json(value),
    "date": _encode_date,
    "time": _packing("!q"),
    "timetz": _encode_timetz,
    "timestamp": _encode_timestamp,
    "timestamptz": _encode_timestamp,
    "interval": _encode_interval,
    **dict.fromkeys(REG_TYPES, _encode_written_oid),
    "void": lambda _: b"",
}
