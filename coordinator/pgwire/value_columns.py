"""Decode many values of one type and format at once, as batches of drivers send them.

INVARIANTS
  V1  the values are those of the decoder, one by one, and so are the errors.
"""

import struct
from collections.abc import Callable, Sequence
from typing import Final

from coordinator.pgwire.messages import BINARY_FORMAT
from coordinator.pgwire.values import PLAIN_DECODERS
from sql.types.sql_type import Value

_NUMBERS: Final = {"int2": "h", "int4": "i", "int8": "q", "oid": "I", "float4": "f", "float8": "d"}
"""Types whose binary form is one number of `struct`."""


class ValueColumn:
    """Decodes values of one type; `decode_one`: one that is not NULL."""

    def __init__(self, decode_one: Callable[[bytes], Value]) -> None:
        self.decode_one = decode_one

    def decode(self, data: Sequence[bytes | None]) -> Sequence[Value]:
        """The values; None is NULL. Raises what `decode_one` raises."""
        decode_one = self.decode_one
        return [None if one is None else decode_one(one) for one in data]


class _NumberColumn(ValueColumn):
    def __init__(self, decode_one: Callable[[bytes], Value], layout: str) -> None:
        super().__init__(decode_one)
        self._layout = layout
        self._size = struct.calcsize(f"!{layout}")

    def decode(self, data: Sequence[bytes | None]) -> Sequence[Value]:
        known = [one for one in data if one is not None]
        if len(known) < len(data) or not _has_lengths(known, self._size):
            return super().decode(data)
        return struct.unpack(f"!{len(known)}{self._layout}", b"".join(known))


def _has_lengths(data: Sequence[bytes], size: int) -> bool:
    return set(map(len, data)) <= {size}


def plain_column(type_name: str, format_code: int) -> ValueColumn | None:
    """None if a setting or a modifier could change what the values are."""
    decode_one = PLAIN_DECODERS[format_code].get(type_name)
    if decode_one is None:
        return None
    layout = _NUMBERS.get(type_name) if format_code == BINARY_FORMAT else None
    return ValueColumn(decode_one) if layout is None else _NumberColumn(decode_one, layout)
