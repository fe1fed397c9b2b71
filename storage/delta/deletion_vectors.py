"""Deletion vectors as the Delta protocol defines them ("Deletion Vectors", storage and format).

    inline   `i`: Z85 of (magic, bitmap), inside the log
    file     `u`: deletion_vector_<uuid>.bin = version byte, then per vector: size, data, CRC-32

INVARIANTS
  X1  the data is the magic number and a 64-bit Roaring bitmap in the portable format, little
      endian; sizes and checksums around it are big endian.
  X2  a descriptor names one vector for ever: its file is called after its content and the version
      that it was made for, so that no later version ever comes back to the name.
"""

import base64
import hashlib
import re
import struct
import uuid
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from pyroaring import BitMap64

from storage.errors import Corrupt

INLINE_BYTES_MAX: Final = 256
"""Larger: longer log files, which every reader parses. Smaller: one more synced file per flush."""

CANONICAL_MAX: Final = 10_000
"""Larger: fewer views that look different and are the same, and more time spent on each."""

_FILE_NAME: Final = re.compile(
    r"deletion_vector_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.bin"
)

_MAGIC: Final = struct.pack("<I", 1681511377)
_FORMAT_VERSION: Final = b"\x01"

_B85: Final = (
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
)
_Z85: Final = (
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
)
_TO_Z85: Final = bytes.maketrans(_B85, _Z85)
_FROM_Z85: Final = bytes.maketrans(_Z85, _B85)

StorageType: TypeAlias = Literal["i", "u"]


@dataclass(frozen=True, slots=True)
class DeletionVector:
    """The descriptor in an `add` or `remove` (X2). `offset` is None for inline vectors."""

    storage_type: StorageType
    path_or_inline: str
    offset: int | None
    size_bytes: int
    cardinality: int

    @property
    def file_name(self) -> str:
        """The file of an `u` vector, relative to the table."""
        assert self.storage_type == "u", "inline vectors have no file"
        prefix, encoded = self.path_or_inline[:-20], self.path_or_inline[-20:]
        name = f"deletion_vector_{uuid.UUID(bytes=z85_decode(encoded))}.bin"
        return f"{prefix}/{name}" if prefix else name


@dataclass(frozen=True, slots=True)
class VectorFile:
    """A file of deletion vectors to write."""

    name: str
    content: bytes


def z85_encode(data: bytes) -> str:
    """ZeroMQ's base 85; data is padded with zero bytes to a multiple of four."""
    padded = data + bytes(-len(data) % 4)
    return base64.b85encode(padded).translate(_TO_Z85).decode()


def z85_decode(text: str) -> bytes:
    """The padded data."""
    try:
        return base64.b85decode(text.encode().translate(_FROM_Z85))
    except ValueError as error:
        raise Corrupt(f"not Z85: {error}") from None


def encode_vectors(
    bitmaps: Mapping[str, BitMap64], version: int
) -> tuple[dict[str, DeletionVector], VectorFile | None]:
    """A descriptor for each bitmap, and the file that holds the larger ones, if there are any."""
    payloads = {key: _payload(bitmap) for key, bitmap in bitmaps.items()}
    large = {key: data for key, data in payloads.items() if len(data) > INLINE_BYTES_MAX}
    content = _FORMAT_VERSION
    offsets: dict[str, int] = {}
    for key, data in large.items():
        offsets[key] = len(content)
        content += struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    digest = hashlib.blake2b(content, digest_size=8).digest()
    identity = uuid.UUID(bytes=version.to_bytes(8, "big") + digest)
    vectors = {
        key: DeletionVector(
            storage_type="u" if key in large else "i",
            path_or_inline=z85_encode(identity.bytes if key in large else data),
            offset=offsets.get(key),
            size_bytes=len(data),
            cardinality=len(bitmaps[key]),
        )
        for key, data in payloads.items()
    }
    file = VectorFile(f"deletion_vector_{identity}.bin", content) if large else None
    return vectors, file


def vector_version(name: str) -> int | None:
    """The version that a file of vectors was made for (X2), or None: it is no such file."""
    match = _FILE_NAME.fullmatch(name)
    return None if match is None else int(match[1].replace("-", "")[:16], 16)


def decode_vector(vector: DeletionVector, content: bytes | None) -> BitMap64:
    """The bitmap of a descriptor; `content` is its file's, for `u`. Raises Corrupt."""
    if vector.storage_type == "i":
        data = z85_decode(vector.path_or_inline)[: vector.size_bytes]
    else:
        assert content is not None, "a vector in a file needs the file"
        data = _data_at(content, vector.offset or 0, vector.size_bytes)
    if data[:4] != _MAGIC:
        raise Corrupt("deletion vector without magic number")
    try:
        bitmap = BitMap64.deserialize(data[4:])
    except (ValueError, MemoryError) as error:
        raise Corrupt(f"deletion vector: {error}") from None
    if len(bitmap) != vector.cardinality:
        raise Corrupt("deletion vector with another cardinality than its descriptor")
    return bitmap


def encode_bitmap(bitmap: BitMap64) -> bytes:
    """The bitmap in the portable format: of few rows the same bytes, however it was made."""
    # Where runs and single rows take the same space, a bitmap stays as it is: so it is made anew.
    compact = BitMap64(bitmap.to_array()) if len(bitmap) <= CANONICAL_MAX else bitmap.copy()
    compact.run_optimize()
    return bytes(compact.serialize())


def _payload(bitmap: BitMap64) -> bytes:
    return _MAGIC + encode_bitmap(bitmap)


def _data_at(content: bytes, offset: int, size: int) -> bytes:
    if len(content) < offset + size + 8 or content[:1] != _FORMAT_VERSION:
        raise Corrupt("file of deletion vectors is too short or of another version")
    data = content[offset + 4 : offset + 4 + size]
    before = struct.unpack_from(">I", content, offset)[0]
    checksum = struct.unpack_from(">I", content, offset + 4 + size)[0]
    if before != size or checksum != zlib.crc32(data):
        raise Corrupt("deletion vector whose size or checksum is wrong")
    return data
