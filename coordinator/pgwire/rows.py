"""Encode Arrow batches as DataRow messages, column by column; a few rows value by value.

    RecordBatch ─▶ column_text / column_binary ─▶ cells ─▶ join_rows ─▶ bytes for the socket
               └─ few rows: values, one by one ──────────────────────▶

INVARIANTS
  W1  both ways give the same bytes; which one runs is a matter of speed only.
  W2  what is encoded at once is bounded by `_JOIN_BYTES_MAX`: larger batches are cut in halves.
"""

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import pyarrow as pa

from coordinator.pgwire.cells import Cells, join_rows, valid_mask, variable_cells
from coordinator.pgwire.column_binary import binary_column
from coordinator.pgwire.column_text import text_column
from coordinator.pgwire.messages import TEXT_FORMAT, DataRows
from coordinator.pgwire.values import encode_value
from ingest.copy_text.arrow_types import normalize_column, to_values
from ingest.copy_text.kernels import Column
from sql.errors import not_supported
from sql.types.record_text import styles_change_fields
from sql.types.sql_type import SqlType, Value
from sql.types.styled_output import styled_text
from sql.types.styles import DEFAULT_STYLES, Styles

FEW_ROWS_MAX: Final = 40
"""Up to here rows are made one by one: about where the cost of starting the column way is paid."""

_JOIN_BYTES_MAX: Final = 1 << 28
"""Estimated bytes of one join. Arrow's offsets end at 2 GiB; smaller means more pieces."""

_NULL: Final = b"\xff\xff\xff\xff"
_CELL_BYTES_ESTIMATE: Final = 40
_ROW_HEADER: Final = struct.Struct("!ciH")
_LENGTH: Final = struct.Struct("!i")

Encode = Callable[[Value], bytes]


class RowEncoder:
    """Encodes the batches of one result. `formats`: one code per column, 0 text or 1 binary.
    `kind`: of the messages; rows of COPY in binary look like DataRows.
    """

    def __init__(
        self,
        types: Sequence[SqlType],
        formats: Sequence[int],
        timezone: str = "UTC",
        styles: Styles = DEFAULT_STYLES,
        *,
        kind: bytes = b"D",
    ) -> None:
        assert len(types) == len(formats), "one format for each column"
        for type_, code in zip(types, formats, strict=True):
            if code != TEXT_FORMAT and styles_change_fields(styles, type_):
                raise not_supported("binary output of rows under this DateStyle or IntervalStyle")
        self._types = tuple(types)
        self._kind = kind
        self._columns = tuple(
            _column_encoder(type_, code, timezone, styles)
            for type_, code in zip(types, formats, strict=True)
        )
        self._singles = tuple(
            _single_encoder(type_, code, timezone, styles)
            for type_, code in zip(types, formats, strict=True)
        )

    def encode(self, batch: pa.RecordBatch) -> bytes | memoryview:
        """The framed DataRows of a batch, in order (W1, W2)."""
        assert batch.num_columns == len(self._types), "one column for each type"
        if batch.num_rows <= FEW_ROWS_MAX:
            return self.encode_singly(batch)
        if batch.num_rows > 1 and self._estimated_bytes(batch) > _JOIN_BYTES_MAX:
            half = batch.num_rows // 2
            return b"".join((self.encode(batch.slice(0, half)), self.encode(batch.slice(half))))
        return self.encode_columns(batch)

    def message(self, batch: pa.RecordBatch) -> DataRows:
        """The batch as a message to send."""
        return DataRows(self.encode(batch), batch.num_rows)

    def encode_columns(self, batch: pa.RecordBatch) -> bytes | memoryview:
        """The column way; for more than one or two rows."""
        if batch.num_rows == 0:
            return b""
        cells = [
            encode(normalize_column(column, type_))
            for encode, column, type_ in zip(self._columns, batch.columns, self._types, strict=True)
        ]
        return join_rows(cells, batch.num_rows, self._kind)

    def encode_singly(self, batch: pa.RecordBatch) -> bytes:
        """The plain way: value by value."""
        cells = [
            [_NULL if value is None else _cell(encode(value)) for value in to_values(column, type_)]
            for encode, column, type_ in zip(
                self._singles,
                (normalize_column(c, t) for c, t in zip(batch.columns, self._types, strict=True)),
                self._types,
                strict=True,
            )
        ]
        return self._framed(zip(*cells, strict=True) if cells else [()] * batch.num_rows)

    def encode_values(self, rows: Sequence[Sequence[Value]]) -> bytes:
        """The framed DataRows of values of the types, which are as those of a batch (W1)."""
        singles = self._singles
        return self._framed(
            [
                _NULL if value is None else _cell(encode(value))
                for value, encode in zip(row, singles, strict=True)
            ]
            for row in rows
        )

    def _framed(self, rows: Iterable[Sequence[bytes]]) -> bytes:
        count = len(self._types)
        framed: list[bytes] = []
        for cells in rows:
            body = b"".join(cells)
            framed.append(_ROW_HEADER.pack(self._kind, len(body) + 6, count) + body)
        return b"".join(framed)

    def _estimated_bytes(self, batch: pa.RecordBatch) -> int:
        padding = sum(type_.length or 0 for type_ in self._types if type_.name == "bpchar")
        # bytea doubles as text; the rest of a cell is its length and at most a number's digits.
        cells = batch.num_columns * _CELL_BYTES_ESTIMATE + 4 * padding
        return 2 * batch.nbytes + batch.num_rows * cells


def _cell(data: bytes) -> bytes:
    return _LENGTH.pack(len(data)) + data


def _column_encoder(
    type_: SqlType, code: int, timezone: str, styles: Styles
) -> Callable[[Column], Cells]:
    if code != TEXT_FORMAT:
        return binary_column(type_)
    text = text_column(type_, timezone, styles)
    return lambda column: variable_cells(text(column), valid_mask(column))


def _single_encoder(type_: SqlType, code: int, timezone: str, styles: Styles) -> Encode:
    if code == TEXT_FORMAT:
        if styles.writes(type_.name):
            return lambda value: styled_text(value, type_, styles, timezone=timezone).encode()
        if type_.name in ("int2", "int4", "int8", "oid"):
            return _encoded_integer
        if type_.name in ("text", "varchar"):
            return _encoded
    return lambda value: encode_value(value, type_, code, timezone=timezone)


def _encoded_integer(value: Value) -> bytes:
    assert isinstance(value, int), "integers are ints"
    return b"%d" % value


def _encoded(value: Value) -> bytes:
    assert isinstance(value, str), "text is a str"
    return value.encode()
