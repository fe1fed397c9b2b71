"""COPY in another encoding: the whole stream is converted, before it is cut or after it is joined.

INVARIANTS
  E1  an encoding has one byte a character, so that a piece of a stream is a text of its own.
  E2  a character that one side does not have is 22P05, with PostgreSQL's text.
"""

from coordinator.pgwire.messages import CopyFrames
from sql.errors import SqlError
from sql.types.encodings import Encoding

_HEADER_BYTES = 5


def from_client(data: bytes, encoding: Encoding) -> bytes:
    """A piece of the client's stream in UTF-8 (E1)."""
    if data.isascii():
        return data
    try:
        return data.decode(encoding.codec).encode()
    except UnicodeDecodeError as error:
        raise _no_equivalent(data[error.start : error.end], encoding.name, "UTF8") from None


def to_client(frames: CopyFrames, encoding: Encoding) -> CopyFrames:
    """CopyData messages of UTF-8 in the client's encoding."""
    data = bytes(frames.data)
    if all(byte < 128 for byte in data):
        return frames
    made, start = bytearray(), 0
    while start < len(data):
        end = start + 1 + int.from_bytes(data[start + 1 : start + _HEADER_BYTES], "big")
        row = _encoded(data[start + _HEADER_BYTES : end], encoding)
        made += data[start : start + 1] + (len(row) + 4).to_bytes(4, "big") + row
        start = end
    return CopyFrames(bytes(made), frames.rows)


def _encoded(row: bytes, encoding: Encoding) -> bytes:
    text = row.decode()
    try:
        return text.encode(encoding.codec)
    except UnicodeEncodeError as error:
        character = text[error.start].encode()
        raise _no_equivalent(character, "UTF8", encoding.name) from None


def _no_equivalent(character: bytes, source: str, target: str) -> SqlError:
    shown = " ".join(f"0x{byte:02x}" for byte in character)
    message = (
        f'character with byte sequence {shown} in encoding "{source}" '
        f'has no equivalent in encoding "{target}"'
    )
    return SqlError("22P05", message)
