"""The type `"char"` (char.c): one byte, as the character of that code; '' for the byte 0.

INVARIANTS
  C1  a byte beyond ASCII is held as its octal escape, which is also its text. Equality is right;
      the order among others is that of the escape.
"""

import re
from typing import Final

from sql.errors import SqlError, not_supported

_ASCII_MAX: Final = 0x7F
_SIGNED_MIN, _SIGNED_MAX = -128, 127
_OCTAL: Final = re.compile(r"\\([0-7]{3})")


def char_of_byte(code: int) -> str:
    """The value of a byte (C1)."""
    if code > _ASCII_MAX:
        return f"\\{code:03o}"
    return chr(code) if code else ""


def byte_of_char(value: str) -> int:
    """The byte of a value."""
    return int(value[1:], 8) if len(value) > 1 else ord(value or "\0")


def integer_of_char(value: str) -> int:
    """The cast to integer: the byte is signed."""
    code = byte_of_char(value)
    return code if code <= _SIGNED_MAX else code - 256


def char_as_text(value: str) -> str:
    """The value as a character(n). PostgreSQL stores the byte 0 there, and we cannot."""
    if not value:
        raise not_supported("the byte 0 in a character value")
    return value


def char_of_text(text: str) -> str:
    """The value that the input function reads: an octal escape, or the first byte of a text."""
    octal = _OCTAL.fullmatch(text)
    if octal is not None:
        return char_of_byte(int(octal[1], 8) & 0xFF)
    return char_of_byte((text.encode() or b"\0")[0])


def char_of_integer(value: int) -> str:
    """The cast from integer, of a signed byte. Raises 22003."""
    if not _SIGNED_MIN <= value <= _SIGNED_MAX:
        raise SqlError("22003", '"char" out of range')
    return char_of_byte(value & 0xFF)
