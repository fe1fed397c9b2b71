"""COPY in binary, both ways: a header, rows of fields with their lengths, a trailer.

    signature  flags  extension │ n  size value  size value .. │ n .. │ -1

INVARIANTS
  Y1  a field is what Bind and DataRow carry in binary (`values.py`, `pgwire/rows.py`).
  Y2  chunk boundaries mean nothing.
  Y3  an error has PostgreSQL's SQLSTATE, message and context, which shows no data.
  Y4  memory is a piece of the stream and the longest row, up to `LINE_BYTES_MAX` (54000).
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from coordinator.pgwire.copy_binary_blocks import BlockDecoder
from coordinator.pgwire.copy_in import LINE_BYTES_MAX
from coordinator.pgwire.messages import BINARY_FORMAT, CopyFrames
from coordinator.pgwire.rows import RowEncoder
from coordinator.pgwire.values import decode_field
from ingest.copy_text.arrow_types import to_array
from ingest.copy_text.lines import bad_format
from sql.errors import SqlError, not_supported
from sql.types.sql_type import REG_TYPES, SqlType, Value, format_type

_SIGNATURE: Final = b"PGCOPY\n\xff\r\n\0"
_WITH_OIDS: Final = 1 << 16
_CRITICAL: Final = 0xFFFF << 16
_COUNT: Final = struct.Struct("!h")
_SIZE: Final = struct.Struct("!i")
_FLAGS_AND_LENGTH: Final = struct.Struct("!Ii")
_KIND: Final = b"d"
_TRAILER: Final = -1
_NULL: Final = -1


def _check_types(types: Sequence[SqlType]) -> None:
    if not types:
        raise not_supported("COPY in binary without columns")
    for type_ in types:
        if type_.name in REG_TYPES:
            raise not_supported(f"COPY in binary of type {format_type(type_)}")


class BinaryReader:
    """Reads one COPY FROM. `types` and `names` of the columns that the data has, in its order."""

    skipped = 0
    """There is no ON_ERROR for it."""

    def __init__(
        self, types: Sequence[SqlType], names: Sequence[str], *, relation: str = ""
    ) -> None:
        _check_types(types)
        self._types, self._names = tuple(types), tuple(names)
        self._relation = relation
        self._blocks = BlockDecoder(types)
        self._buffer = bytearray()
        self._wanted_bytes = 0
        self._header_waits = True
        self._is_over = False
        self._line = 0

    def feed(self, chunk: bytes) -> Iterator[pa.RecordBatch]:
        """Take a piece of the stream; yields the rows that are complete (Y2)."""
        self._buffer += chunk
        if len(self._buffer) >= self._wanted_bytes:
            yield from self._drained(is_final=False)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The stream has ended; yields the rest."""
        return self._drained(is_final=True)

    def drain(self) -> Iterator[pa.RecordBatch]:
        """Yields the rows that are whole."""
        return self._drained(is_final=False)

    def located(self, error: SqlError) -> SqlError:
        """An error of the stream, where the next row would begin (Y3)."""
        error.context = f"COPY {self._relation}, line {self._line + 1}"
        return error

    def line_of(self, row: int) -> int:
        """The line of a row, as PostgreSQL counts."""
        return row + 1

    def take_told(self) -> list[SqlError]:
        """Nothing is passed over."""
        return []

    def summary(self) -> SqlError | None:
        """Nothing is passed over."""
        return None

    def _drained(self, *, is_final: bool) -> Iterator[pa.RecordBatch]:
        data = bytes(self._buffer)
        start = position = self._after_header(data, is_final=is_final)
        batches: list[pa.RecordBatch] = []
        if not (self._header_waits or self._is_over):
            block = self._blocks.block(data, position)
            if block is not None:
                batches.append(pa.RecordBatch.from_arrays(block.columns, list(self._names)))
                position = block.end
                self._line += block.rows
        columns: list[list[Value]] = [[] for _ in self._types]
        while (end := self._row(data, position, columns, is_final=is_final)) is not None:
            position = end
        del self._buffer[:position]
        self._want_more(is_stuck=position == start)
        if columns[0]:
            arrays = [to_array(*pair) for pair in zip(columns, self._types, strict=True)]
            batches.append(pa.RecordBatch.from_arrays(arrays, list(self._names)))
        yield from batches

    def _want_more(self, *, is_stuck: bool) -> None:
        """Not one whole row in the buffer: look again when there is twice as much (Y4)."""
        if len(self._buffer) > LINE_BYTES_MAX:
            raise SqlError("54000", f"row exceeds the limit of {LINE_BYTES_MAX} bytes")
        self._wanted_bytes = 2 * len(self._buffer) if is_stuck else 0

    def _after_header(self, data: bytes, *, is_final: bool) -> int:
        """Where rows begin; 0 if the header has not come as a whole."""
        if not self._header_waits:
            return 0
        end = len(_SIGNATURE)
        if not _SIGNATURE.startswith(data[:end]) or (is_final and len(data) < end):
            raise bad_format("COPY file signature not recognized")
        if len(data) < end + _FLAGS_AND_LENGTH.size:
            if is_final:
                missing = "flags" if len(data) < end + 4 else "length"
                raise bad_format(f"invalid COPY file header (missing {missing})")
            return 0
        flags: int
        extension: int
        flags, extension = _FLAGS_AND_LENGTH.unpack_from(data, end)
        if flags & _WITH_OIDS:
            raise bad_format("invalid COPY file header (WITH OIDS)")
        if flags & _CRITICAL:
            raise bad_format("unrecognized critical flags in COPY file header")
        end += _FLAGS_AND_LENGTH.size + max(extension, 0)
        if extension < 0 or (is_final and len(data) < end):
            wrong = "missing length" if extension < 0 else "wrong length"
            raise bad_format(f"invalid COPY file header ({wrong})")
        if len(data) < end:
            return 0
        self._header_waits = False
        return end

    def _row(
        self, data: bytes, position: int, columns: list[list[Value]], *, is_final: bool
    ) -> int | None:
        """Add a row; where it ends, or None if it has not come as a whole."""
        if self._header_waits:
            return None
        if self._is_over:
            if position < len(data):
                raise self._located(bad_format("received copy data after EOF marker"))
            return None
        if len(data) < position + _COUNT.size:
            return None
        (count,) = _COUNT.unpack_from(data, position)
        position += _COUNT.size
        if count == _TRAILER:
            self._is_over, self._line = True, self._line + 1
            return position
        if count != len(self._types):
            self._line += 1
            message = f"row field count is {count}, expected {len(self._types)}"
            raise self._located(bad_format(message))
        fields, end, wrong = self._fields(data, position)
        if wrong is None or wrong == "invalid field size" or is_final:
            self._take(fields, columns, wrong)
            return end
        return None

    def _fields(self, data: bytes, position: int) -> tuple[list[bytes | None], int, str | None]:
        """The fields of a row that are there, where they end, and why there are no more."""
        fields: list[bytes | None] = []
        for _ in self._types:
            if len(data) < position + _SIZE.size:
                return fields, position, "unexpected EOF in COPY data"
            (size,) = _SIZE.unpack_from(data, position)
            position += _SIZE.size
            if size < _NULL:
                return fields, position, "invalid field size"
            if size == _NULL:
                fields.append(None)
                continue
            if len(data) < position + size:
                return fields, position, "unexpected EOF in COPY data"
            fields.append(data[position : position + size])
            position += size
        return fields, position, None

    def _take(
        self, fields: Sequence[bytes | None], columns: list[list[Value]], wrong: str | None
    ) -> None:
        self._line += 1
        for at, field in enumerate(fields):
            try:
                value = None if field is None else decode_field(field, self._types[at])
            except SqlError as error:
                raise self._located(error, self._names[at]) from None
            columns[at].append(value)
        if wrong is not None:
            raise self._located(bad_format(wrong), self._names[len(fields)])

    def _located(self, error: SqlError, column: str | None = None) -> SqlError:
        """The error with PostgreSQL's CONTEXT (Y3)."""
        place = "" if column is None else f", column {column}"
        error.context = f"COPY {self._relation}, line {self._line}{place}"
        return error


class BinaryWriter:
    """Writes one COPY TO."""

    def __init__(self, types: Sequence[SqlType]) -> None:
        _check_types(types)
        self._rows = RowEncoder(types, [BINARY_FORMAT] * len(types), kind=_KIND)
        self._before = _SIGNATURE + _FLAGS_AND_LENGTH.pack(0, 0)
        """The header, which clients look for in the message of what comes first (psycopg)."""

    def header(self) -> bytes:
        """No message of its own."""
        return b""

    def message(self, batch: pa.RecordBatch) -> CopyFrames:
        """The batch as a message to send."""
        frames = self._rows.encode(batch)
        if self._before and batch.num_rows:
            (size,) = _SIZE.unpack_from(frames, len(_KIND))
            end = len(_KIND) + size
            first = bytes(frames[len(_KIND) + _SIZE.size : end])
            frames = self._framed(first) + bytes(frames[end:])
        return CopyFrames(frames, batch.num_rows)

    def trailer(self) -> bytes:
        """What comes behind the rows, as a CopyData message."""
        return self._framed(_COUNT.pack(_TRAILER))

    def _framed(self, data: bytes) -> bytes:
        data, self._before = self._before + data, b""
        return _KIND + _SIZE.pack(_SIZE.size + len(data)) + data
