"""Decode client bytes as strict UTF-8 without NUL; errors are PostgreSQL's (22021).

INVARIANTS
  G1  text is decoded here before anything quotes, parses or compares it.
"""

from typing import Final

from sql.errors import SqlError

_SHOWN_BYTES_MAX: Final = 8


def decode_text(data: bytes) -> str:
    """The text of the bytes (G1)."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise invalid_sequence(data[error.start :]) from None
    if "\0" in text:
        raise invalid_sequence(b"\0")
    return text


def invalid_sequence(data: bytes) -> SqlError:
    """22021 for the sequence at the front of `data`."""
    length = min(_sequence_length(data[0]), len(data), _SHOWN_BYTES_MAX)
    shown = " ".join(f"0x{byte:02x}" for byte in data[:length])
    return SqlError("22021", f'invalid byte sequence for encoding "UTF8": {shown}')


def _sequence_length(first: int) -> int:
    """How long the sequence would be, by its first byte."""
    for length, mask, lead in ((2, 0xE0, 0xC0), (3, 0xF0, 0xE0), (4, 0xF8, 0xF0)):
        if first & mask == lead:
            return length
    return 1
