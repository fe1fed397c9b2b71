"""Arrays in PostgreSQL's binary format (array_recv and array_send).

    dimensions, has NULLs, OID of the elements; for every dimension length and lower bound;
    the elements, each behind its length (-1: NULL)

INVARIANTS
  R1  an array has at most one dimension and begins at 1; others are 0A000, and what is no array is
      PostgreSQL's own error.
"""

import struct
from collections.abc import Callable
from typing import Final

from sql.errors import SqlError, not_supported
from sql.types.sql_type import TYPE_NAMES_BY_OID, SqlType, Value, format_type

_HEADER: Final = struct.Struct("!iiI")
_DIMENSION: Final = struct.Struct("!ii")
_LENGTH: Final = struct.Struct("!i")
_DIMENSIONS_MAX: Final = 6
_NULL: Final = _LENGTH.pack(-1)


def decode_array(
    data: bytes, element: SqlType, decode: Callable[[bytes], Value]
) -> tuple[Value, ...]:
    """The elements of a binary array."""
    dimensions, flags, oid = _unpacked(_HEADER, data, 0)
    if dimensions < 0:
        raise SqlError("22P03", f"invalid number of dimensions: {dimensions}")
    if dimensions > _DIMENSIONS_MAX:
        message = f"number of array dimensions ({dimensions}) exceeds the maximum allowed"
        raise SqlError("54000", f"{message} ({_DIMENSIONS_MAX})")
    if flags not in (0, 1):
        raise SqlError("22P03", "invalid array flags")
    if oid != element.oid:
        raise _wrong_element(oid, element)
    place, count = _HEADER.size, 1 if dimensions else 0
    for _ in range(dimensions):
        length, lower = _unpacked(_DIMENSION, data, place)
        place += _DIMENSION.size
        count *= length
        if length < 0:
            raise SqlError("22P03", "invalid array size")
        if lower != 1 and length:
            raise not_supported("an array that does not begin at 1")
    if count and dimensions > 1:
        raise not_supported("an array of several dimensions")
    return _elements(data, place, count, decode)


def _elements(
    data: bytes, place: int, count: int, decode: Callable[[bytes], Value]
) -> tuple[Value, ...]:
    values: list[Value] = []
    for _ in range(count):
        (length,) = _unpacked(_LENGTH, data, place)
        place += _LENGTH.size
        if length == -1:
            values.append(None)
            continue
        if length < -1 or place + length > len(data):
            raise SqlError("22P03", "insufficient data left in message")
        values.append(decode(data[place : place + length]))
        place += length
    if place != len(data):
        raise SqlError("22P03", "incorrect binary data format")
    return tuple(values)


def _unpacked(layout: struct.Struct, data: bytes, place: int) -> tuple[int, ...]:
    if place + layout.size > len(data):
        raise SqlError("08P01", "insufficient data left in message")
    return layout.unpack_from(data, place)


def _wrong_element(oid: int, element: SqlType) -> SqlError:
    name = TYPE_NAMES_BY_OID.get(oid & 0xFFFF_FFFF)
    given = "???" if name is None else format_type(SqlType(name))
    wanted = format_type(element.bare())
    return SqlError(
        "42804",
        f"binary data has array element type {oid & 0xFFFFFFFF} ({given}) instead of expected"
        f" {element.oid} ({wanted})",
    )


def encode_array(
    values: tuple[Value, ...],
    element: SqlType,
    encode: Callable[[Value], bytes],
    *,
    is_vector: bool = False,
) -> bytes:
    """The array in binary; an empty one has no dimension. A vector begins at 0, and has one."""
    has_null = int(None in values)
    has_dimension = is_vector or bool(values)
    parts = [_HEADER.pack(int(has_dimension), has_null, element.oid)]
    if has_dimension:
        parts.append(_DIMENSION.pack(len(values), 0 if is_vector else 1))
    for value in values:
        if value is None:
            parts.append(_NULL)
        else:
            cell = encode(value)
            parts += (_LENGTH.pack(len(cell)), cell)
    return b"".join(parts)
