"""Encode result batches as DataRow messages, in small pieces and off the event loop.

INVARIANTS
  Y1  the loop never encodes more than `INLINE_ROWS_MAX` rows at once; more go to a thread.
  Y2  at most one piece is encoded ahead of what the client has taken.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import pyarrow as pa

from coordinator.execution.reg_names import OidNaming
from coordinator.pgwire.client_encodings import rows_to_client
from coordinator.pgwire.messages import TEXT_FORMAT, DataRows, expand_formats
from coordinator.pgwire.rows import RowEncoder
from sql.statements.bound import OutputColumn
from sql.types.encodings import Encoding
from sql.types.sql_type import OID, REG_TYPES
from sql.types.styles import DEFAULT_STYLES, Styles

INLINE_ROWS_MAX: Final = 256
"""Larger: the loop stalls longer. Smaller: a thread's hand-over (50 us) costs more than that."""

PIECE_ROWS: Final = 8_192
"""Rows encoded at once: some milliseconds of a thread, some hundred kilobytes for the socket."""

ENCODED_PIECE_BYTES: Final = 1 << 20
"""The same for wide rows, before they are encoded. Larger: a client that does not read holds more.
"""


class ResultEncoder:
    """Encodes one result. `formats` as in Bind: none, one for all, or one each. `naming`: of values
    that are oids and have names. `encoding`: the client's, None for UTF-8.
    """

    def __init__(
        self,
        columns: tuple[OutputColumn, ...],
        formats: tuple[int, ...],
        *,
        timezone: str,
        styles: Styles = DEFAULT_STYLES,
        naming: OidNaming | None = None,
        encoding: Encoding | None = None,
    ) -> None:
        codes = expand_formats(formats, len(columns))
        self._texts = [code == TEXT_FORMAT for code in codes]
        self._naming = naming
        self._encoding = encoding
        types = [
            OID if column.type.name in REG_TYPES and not text else column.type
            for column, text in zip(columns, self._texts, strict=True)
        ]
        self._types, self._codes = types, codes
        self._encoder = RowEncoder(types, codes, timezone, styles)

    async def encode(self, batch: pa.RecordBatch) -> AsyncIterator[DataRows]:
        """The batch as messages, in order (Y1)."""
        if self._naming is not None:
            batch = self._naming(batch, self._texts)
        if batch.num_rows <= INLINE_ROWS_MAX and batch.nbytes <= ENCODED_PIECE_BYTES:
            yield self._message(batch)
            return
        rows = max(1, min(PIECE_ROWS, ENCODED_PIECE_BYTES * batch.num_rows // max(batch.nbytes, 1)))
        for start in range(0, batch.num_rows, rows):
            piece = batch.slice(start, rows)
            yield await asyncio.to_thread(self._message, piece)

    def _message(self, batch: pa.RecordBatch) -> DataRows:
        rows = self._encoder.message(batch)
        if self._encoding is None:
            return rows
        return rows_to_client(rows, self._types, self._codes, self._encoding)
