"""Functions of bytea and uuid: encodings, bits, digests, versions (varlena.c, encode.c, uuid.c)."""

import base64
import binascii
import hashlib
import os
import re
import time
import uuid
import zlib
from functools import partial
from typing import Final

from compute.reference.registry import Function, implements
from sql.errors import SqlError, not_supported, out_of_range
from sql.types.sql_type import SqlType, format_type
from sql.types.text_input import parse_text

_CODECS: Final = {
    "utf8": "utf-8", "unicode": "utf-8", "latin1": "latin-1", "iso88591": "latin-1",
    "sqlascii": "",
}  # fmt: skip
_RANDOM_BYTES_MAX: Final = 1024
_V1_TICKS_TO_1970: Final = 0x01B21DD213814000
"""Steps of 100 ns from 1582-10-15."""
_PYTHON_CODECS: Final = {
    **_CODECS,
    "win1252": "cp1252", "win1251": "cp1251", "win1250": "cp1250", "latin2": "iso8859-2",
    "latin5": "iso8859-9", "koi8r": "koi8-r", "koi8": "koi8-r",
}  # fmt: skip
"""Encodings whose tables are the same in Python; others are refused."""
_SHOWN_NAMES: Final = {
    "latin-1": "LATIN1", "iso8859-2": "LATIN2", "iso8859-9": "LATIN5", "koi8-r": "KOI8R",
    "cp1250": "WIN1250", "cp1251": "WIN1251", "cp1252": "WIN1252",
}  # fmt: skip
_CONVERTED: Final = frozenset({frozenset({"iso8859-2", "cp1250"}), frozenset({"koi8-r", "cp1251"})})
"""Those of which neither is UTF8 (pg_conversion)."""
_NAMES: Final = """
    abc alt big5 euccn eucjis2004 eucjp euckr euctw gb18030 gbk iso885910 iso885913 iso885914
    iso885915 iso885916 iso88592 iso88593 iso88594 iso88595 iso88596 iso88597 iso88598 iso88599
    johab koi8u latin10 latin3 latin4 latin6 latin7 latin8 latin9 mskanji muleinternal shiftjis
    shiftjis2004 sjis tcvn tcvn5712 uhc vscii win win1253 win1254 win1255 win1256 win1257 win1258
    win866 win874 win932 win936 win949 win950 windows1250 windows1251 windows1252 windows866
"""
_KNOWN: Final = frozenset(_NAMES.split())
_CRC32C: Final = 0x82F63B78
_INT4_MAX: Final = 2**31 - 1
_V7_STEP: Final = 4096
_INTEGER_BYTES: Final = {"int2": 2, "int4": 4, "int8": 8}
_EPOCH_V1: Final = 0x01B21DD213814000


# --- encodings -----------------------------------------------------------------------------------


def _codec(name: str, role: str) -> str:
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    codec = _PYTHON_CODECS.get(plain)
    if codec is None and plain not in _KNOWN:
        raise SqlError("22023", f'invalid {role} encoding name "{name}"')
    if not codec:
        raise not_supported(f"the encoding {name}")
    return codec


@implements("convert_from(bytea,name)")
def convert_from(data: bytes, name: str) -> str:
    """Bytes of an encoding as text."""
    codec = _codec(name, "source")
    try:
        text = data.decode(codec)
    except UnicodeDecodeError as error:
        raise _invalid_bytes(name, data[error.start : error.end]) from None
    if "\0" in text:
        raise _invalid_bytes(name, b"\0")
    if codec == "cp1252" and any("\x80" <= c <= "\x9f" for c in text):
        raise _invalid_bytes(name, data[:1])
    return text


def _invalid_bytes(name: str, data: bytes) -> SqlError:
    shown = " ".join(f"0x{byte:02x}" for byte in data)
    return SqlError("22021", f'invalid byte sequence for encoding "{name}": {shown}')


@implements("convert_to(text,name)")
def convert_to(text: str, name: str) -> bytes:
    """Text as bytes of an encoding."""
    try:
        return text.encode(_codec(name, "destination"))
    except UnicodeEncodeError:
        raise SqlError(
            "22P05", f'character in encoding "UTF8" has no equivalent in encoding "{name}"'
        ) from None


@implements("convert(bytea,name,name)")
def convert(data: bytes, source: str, target: str) -> bytes:
    """Bytes of one encoding in another one, if there is a conversion."""
    codecs = _codec(source, "source"), _codec(target, "destination")
    if data and len({*codecs, "utf-8"}) > 2 and frozenset(codecs) not in _CONVERTED:
        names = " to ".join(f'"{_SHOWN_NAMES[codec]}"' for codec in codecs)
        message = f"default conversion function for encoding {names} does not exist"
        raise SqlError("42883", message)
    return convert_to(convert_from(data, source), target)


@implements("length(bytea,name)")
def encoded_length(data: bytes, name: str) -> int:
    """The number of characters in bytes of an encoding."""
    return len(convert_from(data, name))


# --- encode(), decode() --------------------------------------------------------------------------


@implements("encode(bytea,text)")
def encode(data: bytes, form: str) -> str:
    """Bytes as text in hex, base64 or escape format."""
    match form.lower():
        case "hex":
            return data.hex()
        case "base64":
            text = base64.b64encode(data).decode()
            return "\n".join(text[at : at + 76] for at in range(0, len(text), 76))
        case "escape":
            return "".join(map(_escaped, data))
        case _:
            raise SqlError("22023", f'unrecognized encoding: "{form}"')


def _escaped(byte: int) -> str:
    if byte == 0 or byte > 0x7F:
        return f"\\{byte:03o}"
    return "\\\\" if byte == 0x5C else chr(byte)


@implements("decode(text,text)")
def decode(text: str, form: str) -> bytes:
    """Text in hex, base64 or escape format as bytes."""
    match form.lower():
        case "hex":
            return _hexadecimal(text)
        case "base64":
            return _base64("".join(c for c in text if c not in " \n\t\r"))
        case "escape":
            return _unescaped(text)
        case _:
            raise SqlError("22023", f'unrecognized encoding: "{form}"')


def _hexadecimal(text: str) -> bytes:
    """Blanks may stand between bytes, and not between the digits of one."""
    digits: list[str] = []
    for character in text:
        if character in " \n\t\r" and len(digits) % 2 == 0:
            continue
        if character not in "0123456789abcdefABCDEF":
            raise SqlError("22023", f'invalid hexadecimal digit: "{character}"')
        digits.append(character)
    if len(digits) % 2:
        raise SqlError("22023", "invalid hexadecimal data: odd number of digits")
    return bytes.fromhex("".join(digits))


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise SqlError("22023", "invalid base64 data") from None


def _unescaped(text: str) -> bytes:
    if text.startswith("\\x"):
        # The input function of bytea would read hexadecimal digits.
        raise not_supported("decode() of such a text from the escape format")
    value = parse_text("bytea", text)
    assert isinstance(value, bytes), "bytea is bytes"
    return value


# --- bytes and bits ------------------------------------------------------------------------------


def _index(at: int, size: int) -> int:
    if not 0 <= at < size:
        raise SqlError("2202E", f"index {at} out of valid range, 0..{size - 1}")
    return at


@implements("get_byte(bytea,int4)")
def get_byte(data: bytes, at: int) -> int:
    """The byte at an index."""
    return data[_index(at, len(data))]


@implements("set_byte(bytea,int4,int4)")
def set_byte(data: bytes, at: int, value: int) -> bytes:
    """The bytes with another byte at an index."""
    place = _index(at, len(data))
    return data[:place] + bytes([value & 0xFF]) + data[place + 1 :]


@implements("get_bit(bytea,int8)")
def get_bit(data: bytes, at: int) -> int:
    """The bit at an index; the lowest bit of a byte comes first."""
    place = _index(at, len(data) * 8)
    return data[place // 8] >> place % 8 & 1


@implements("set_bit(bytea,int8,int4)")
def set_bit(data: bytes, at: int, value: int) -> bytes:
    """The bytes with another bit at an index."""
    place = _index(at, len(data) * 8)
    if value not in (0, 1):
        raise SqlError("22023", "new bit must be 0 or 1")
    mask = 1 << place % 8
    byte = data[place // 8] & ~mask | (mask if value else 0)
    return data[: place // 8] + bytes([byte]) + data[place // 8 + 1 :]


@implements(
    "substr(bytea,int4)",
    "substr(bytea,int4,int4)",
    "substring(bytea,int4)",
    "substring(bytea,int4,int4)",
)
def substr(data: bytes, start: int, length: int | None = None) -> bytes:
    """From a position counted from 1."""
    if length is None:
        return data[max(start, 1) - 1 :]
    if length < 0:
        raise SqlError("22011", "negative substring length not allowed")
    return data[max(start, 1) - 1 : max(start + length - 1, 0)]


@implements("overlay(bytea,bytea,int4)", "overlay(bytea,bytea,int4,int4)")
def overlay(data: bytes, new: bytes, start: int, length: int | None = None) -> bytes:
    """`new` in place of `length` bytes from `start`."""
    if start <= 0:
        raise SqlError("22011", "negative substring length not allowed")
    count = len(new) if length is None else length
    if start + count > _INT4_MAX:
        raise SqlError("22003", "integer out of range")
    return substr(data, 1, start - 1) + new + substr(data, start + count)


@implements("crc32c(bytea)")
def _crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (_CRC32C if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def _digest(name: str) -> Function:
    return lambda data: hashlib.new(name, data, usedforsecurity=False).digest()


# --- uuid ----------------------------------------------------------------------------------------


@implements("gen_random_uuid()", "uuidv4()")
def uuidv4() -> str:
    """A random UUID."""
    return str(uuid.UUID(bytes=os.urandom(16), version=4))


@implements("gen_random_bytes(int4)")
def random_bytes(count: int) -> bytes:
    """gen_random_bytes() of pgcrypto."""
    if not 1 <= count <= _RANDOM_BYTES_MAX:
        raise SqlError("39000", "Length not in range")
    return os.urandom(count)


@implements("meridian_time_uuid(bytea)")
def uuidv1(random: bytes) -> str:
    """A UUID of the time, and of a random clock sequence and node that is no network card's."""
    ticks = time.time_ns() // 100 + _V1_TICKS_TO_1970  # noqa: TID251 - as for uuidv7()
    sequence = int.from_bytes(random[:2]) & 0x3FFF
    node = int.from_bytes(random[2:8]) | 1 << 40
    low, middle, high = ticks & 0xFFFFFFFF, ticks >> 32 & 0xFFFF, ticks >> 48 & 0x0FFF
    value = low << 96 | middle << 80 | 1 << 76 | high << 64 | 2 << 62 | sequence << 48 | node
    return str(uuid.UUID(int=value))


@implements("uuidv7()")
def uuidv7() -> str:
    """A UUID of the time in milliseconds, the fraction of one, then random bits."""
    nanos = time.time_ns()  # noqa: TID251 - not ordered with anything of ours
    fraction = nanos % 1_000_000 * _V7_STEP // 1_000_000
    random = int.from_bytes(os.urandom(8)) >> 2
    value = nanos // 1_000_000 << 80 | 7 << 76 | fraction << 64 | 2 << 62 | random
    return str(uuid.UUID(int=value))


@implements("uuid_extract_version(uuid)")
def uuid_version(text: str) -> int | None:
    """The version of a UUID; NULL if it is of another variant."""
    value = uuid.UUID(text).int
    return value >> 76 & 15 if value >> 62 & 3 == 2 else None


@implements("uuid_extract_timestamp(uuid)")
def uuid_timestamp(text: str) -> int | None:
    """The time in a UUID of version 1 or 7."""
    value = uuid.UUID(text).int
    match uuid_version(text):
        case 1:
            ticks = uuid.UUID(text).time - _EPOCH_V1
            return ticks // 10 if ticks >= 0 else -(-ticks // 10)
        case 7:
            return (value >> 80) * 1000
        case _:
            return None


# --- integers ------------------------------------------------------------------------------------


def _to_bytes(size: int, value: int) -> bytes:
    """An integer of so many bytes, the most significant one first."""
    return value.to_bytes(size, signed=True)


def _from_bytes(name: str, data: bytes) -> int:
    """The integer of a type; of fewer bytes than it has, these are the last ones (bytea_int4)."""
    size = _INTEGER_BYTES[name]
    if len(data) > size:
        raise out_of_range(format_type(SqlType(name)))
    return int.from_bytes(data.rjust(size, b"\0"), signed=True)


implements("sha224(bytea)")(_digest("sha224"))
implements("sha384(bytea)")(_digest("sha384"))
implements("sha512(bytea)")(_digest("sha512"))
implements("crc32(bytea)")(zlib.crc32)
implements("bit_count(bytea)")(lambda data: int.from_bytes(data).bit_count())
implements("reverse(bytea)")(lambda data: data[::-1])
implements("position(bytea,bytea)")(lambda data, part: data.find(part) + 1)
implements("btrim(bytea,bytea)")(lambda data, ends: data.strip(ends) if ends else data)
implements("ltrim(bytea,bytea)")(lambda data, ends: data.lstrip(ends) if ends else data)
implements("rtrim(bytea,bytea)")(lambda data, ends: data.rstrip(ends) if ends else data)
implements("byteacat(bytea,bytea)")(lambda a, b: a + b)
for _name, _size in _INTEGER_BYTES.items():
    implements(f"{_name}::bytea")(partial(_to_bytes, _size))
    implements(f"bytea::{_name}")(partial(_from_bytes, _name))


implements("sha256(bytea)")(lambda x: hashlib.sha256(x).digest())
implements("meridian_sha1(bytea)")(lambda x: hashlib.sha1(x, usedforsecurity=False).digest())
