"""Encode a WriteBatch as bytes for the txns shard, and decode it.

    "MWB1" │ crc32 │ header length │ rows length │ header │ rows │ bitmaps ...
           └ of everything after it               │        └ an Arrow IPC stream, or nothing
                                                  └ JSON: staged files, sources of the deletes
    "MWB2": the same, but the rows are │ schema length │ Arrow IPC schema │ JSON: [[..], ..]

INVARIANTS
  E1  decode(encode(batch)) equals the batch.
  E2  any other bytes raise Corrupt: torn, flipped, extended, empty.
  E3  the same batch gives the same bytes, whatever the order its deletes were made in.

The checksum is the stash's last line of defence, not its first: it is here because a batch goes
through other hands (a database, its pages, its backups) before recovery trusts it. The rows of an
Arrow stream are decoded without a copy: they point into the value.
"""

import json
import struct
import zlib
from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyroaring import BitMap64

from storage.batch import DataFile, Deletes, WriteBatch
from storage.errors import Corrupt
from storage.types import Source
from storage.unencoded_rows import UnencodedRows, table_of_json

_MAGIC, _MAGIC_OF_VALUES = b"MWB1", b"MWB2"
_SCHEMA_LENGTH = struct.Struct("<I")
_PREFIX = struct.Struct("<4sIII")
_CHECKSUMMED_FROM = 8
# Arrow wants its buffers on multiples of eight; the prefix is two of them.
_ALIGNMENT = 8
# "Encapsulated message format" of Arrow: a continuation marker, and no message behind it.
_END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"


def encode_batch(batch: WriteBatch) -> bytes:
    """The bytes of a batch (E1, E3). Files are named, not read."""
    sources = sorted(batch.deletes)
    bitmaps = [batch.deletes[source].serialize() for source in sources]
    header = _encode_header(batch.staged, sources, bitmaps)
    magic, rows = _MAGIC, b""
    if isinstance(batch.rows, UnencodedRows):
        magic, rows = _MAGIC_OF_VALUES, _encode_values(batch.rows)
    elif batch.rows is not None:
        rows = _encode_rows(batch.rows)
    lengths = struct.pack("<II", len(header), len(rows))
    checksum = zlib.crc32(lengths)
    for part in (header, rows, *bitmaps):
        checksum = zlib.crc32(part, checksum)
    return b"".join((magic, struct.pack("<I", checksum), lengths, header, rows, *bitmaps))


def decode_batch(value: bytes) -> WriteBatch:
    """The batch of these bytes. Raises Corrupt if `encode_batch` did not make them (E2)."""
    if len(value) < _PREFIX.size or value[: len(_MAGIC)] not in (_MAGIC, _MAGIC_OF_VALUES):
        raise Corrupt("not a write batch")
    magic, checksum, header_length, rows_length = _PREFIX.unpack_from(value)
    if zlib.crc32(memoryview(value)[_CHECKSUMMED_FROM:]) != checksum:
        raise Corrupt("a write batch does not match its checksum")
    rows_start = _PREFIX.size + header_length
    bitmaps_start = rows_start + rows_length
    staged: tuple[DataFile, ...] = ()
    deletes: Deletes = {}
    if header_length:
        header = json.loads(value[_PREFIX.size : rows_start])
        staged = tuple(DataFile(Source(name), *rest) for name, *rest in header["staged"])
        deletes = _decode_deletes(dict(header["deletes"]), value, bitmaps_start)
    rows = None
    if rows_length and magic == _MAGIC_OF_VALUES:
        rows = _decode_values(value[rows_start:bitmaps_start])
    elif rows_length:
        rows = pa.ipc.open_stream(pa.py_buffer(value).slice(rows_start, rows_length)).read_all()
    return WriteBatch(rows, staged, deletes)


def _encode_header(
    staged: Sequence[DataFile], sources: Sequence[Source], bitmaps: Sequence[bytes]
) -> bytes:
    # The usual batch has neither files nor deletes, and no header.
    if not staged and not sources:
        return b""
    header = json.dumps(
        {
            "staged": [(file.name, file.rows, file.size_bytes, file.stats_json) for file in staged],
            "deletes": [
                (source, len(bitmap)) for source, bitmap in zip(sources, bitmaps, strict=True)
            ],
        },
        separators=(",", ":"),
    ).encode()
    return header + b" " * (-len(header) % _ALIGNMENT)


def _encode_rows(rows: pa.Table) -> bytes:
    """An Arrow IPC stream. For few rows a stream writer costs five times as much, but only it
    writes dictionaries.
    """
    if any(pa.types.is_nested(kind) or pa.types.is_dictionary(kind) for kind in rows.schema.types):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
        return sink.getvalue().to_pybytes()
    batches = [batch.serialize() for batch in rows.to_batches()]
    return b"".join((rows.schema.serialize(), *batches, _END_OF_STREAM))


def _encode_values(rows: UnencodedRows) -> bytes:
    schema = rows.encoder.encoded_schema
    return b"".join((_SCHEMA_LENGTH.pack(len(schema)), schema, rows.to_json()))


def _decode_values(encoded: bytes) -> pa.Table:
    (length,) = _SCHEMA_LENGTH.unpack_from(encoded)
    start = _SCHEMA_LENGTH.size
    return table_of_json(encoded[start : start + length], encoded[start + length :])


def _decode_deletes(lengths: Mapping[str, int], value: bytes, start: int) -> Deletes:
    deletes: dict[Source, BitMap64] = {}
    for source, length in lengths.items():
        deletes[Source(source)] = BitMap64.deserialize(value[start : start + length])
        start += length
    return deletes
