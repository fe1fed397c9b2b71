"""Find and parse blocks of COPY data that pyarrow.csv splits into exactly PostgreSQL's fields.

A block is plain if all of this holds; each line names what pyarrow does otherwise.

    all lines end alike, and none holds another carriage return     takes CR, LF and CRLF mixed
    csv: quotes open behind a delimiter or an end of line, and
         close before one; the escape is the quote                  keeps other quotes as text
    text: no backslash stands before an end of a field or a line    knows no PostgreSQL escapes
    no byte order mark at the front                                 drops it
    no NUL                                                          takes it
    several columns: no empty line                                  takes it for a row of NULLs

INVARIANTS
  K1  `block_end` is the end of a line for PostgreSQL, too.
"""

from typing import Final

import numpy as np
import pyarrow as pa

from ingest.copy_text.kernels import (
    Bytes,
    Column,
    column_of,
    contains_substring,
    filter_rows,
    parse_fields,
    replace_masked,
    to_python_list,
)
from ingest.copy_text.lines import unescape_field
from ingest.copy_text.spans import without_escapes
from sql.statements.copy_options import CopyOptions

_LF, _CRLF = b"\n", b"\r\n"
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

_MEANINGS: Final[Bytes] = np.arange(256, dtype=np.uint8)
"""Of the characters behind a backslash; 0 for those that are read with others behind them."""
_MEANINGS[list(b"01234567x")] = 0
_MEANINGS[list(b"bfnrtv")] = list(b"\b\f\n\r\t\v")


class BlockCutter:
    """Cuts plain blocks off a buffer and parses them."""

    def __init__(self, options: CopyOptions) -> None:
        self._is_csv = options.format == "csv"
        self._null = options.null
        self._delimiter = options.delimiter.encode()
        self._quote = options.quote.encode()
        self._has_own_escape = self._is_csv and options.escape != options.quote
        self._options = options
        self._end_of_line = _LF

    def block_end(self, buffer: bytearray, wanted_bytes: int, end_of_line: bytes | None) -> int:
        """Where a block of about that size ends (K1); 0 where there is none to be had."""
        if end_of_line not in (_LF, _CRLF) or self._has_own_escape:
            return 0
        self._end_of_line = end_of_line
        limit = min(len(buffer), wanted_bytes)
        if not self._is_csv or buffer.find(self._quote, 0, limit) < 0:
            end = buffer.rfind(_LF, 0, limit)
            if self._is_csv or not self._is_escaped(buffer, end):
                return end + 1
            return 0
        return self._quoted_end(buffer, limit)

    def _is_escaped(self, buffer: bytearray, end: int) -> bool:
        return end > 0 and buffer[end - 1] == ord("\\")

    def _quoted_end(self, buffer: bytearray, limit: int) -> int:
        """The last line feed with an even number of quotes before it."""
        data = np.frombuffer(buffer, np.uint8, limit)
        quotes = np.flatnonzero(data == self._quote[0])
        feeds = np.flatnonzero(data == ord("\n"))
        outside = feeds[np.searchsorted(quotes, feeds) % 2 == 0]
        end = int(outside[-1]) + 1 if len(outside) else 0
        del data
        return end

    def line_count(self, block: bytes) -> int:
        """How many lines the block has, those inside quotes too."""
        return block.count(_LF)

    def row_ends(self, block: bytes) -> list[int]:
        """The lines of the block, counted from 1, on which its rows end."""
        data = np.frombuffer(block, np.uint8)
        quotes = np.flatnonzero(data == self._quote[0])
        feeds = np.flatnonzero(data == ord("\n"))
        lines: list[int] = (np.flatnonzero(np.searchsorted(quotes, feeds) % 2 == 0) + 1).tolist()
        return lines

    def is_plain(self, block: bytes, *, columns: int) -> bool:
        """See the module."""
        if block.startswith(_BYTE_ORDER_MARK) or b"\0" in block:
            return False
        if columns > 1 and (block[:1] in (b"\r", _LF) or 2 * self._end_of_line in block):
            return False
        returns = block.count(b"\r")
        if self._end_of_line == _LF and returns:
            return False
        if self._end_of_line == _CRLF:
            feeds = block.count(_LF)
            if returns != feeds or block.count(_CRLF) != feeds:
                return False
        if not self._is_csv:
            return b"\\" not in block or not self._hides_ends(block)
        return self._quote not in block or self._has_plain_quotes(block)

    def _has_plain_quotes(self, block: bytes) -> bool:
        data: Bytes = np.frombuffer(block, np.uint8)
        quotes = np.flatnonzero(data == self._quote[0])
        assert len(quotes) % 2 == 0, "K1: a block ends outside quotes"
        border = np.zeros(256, np.bool_)
        border[list(self._delimiter + b"\r\n" + self._quote)] = True
        opening, closing = quotes[0::2], quotes[1::2]
        before = np.where(opening == 0, ord("\n"), data[opening - 1])
        after = data[closing + 1]
        return bool(border[before].all() and border[after].all())

    def columns(self, block: bytes, count: int) -> list[Column]:
        """The fields of a plain block as columns of strings. Raises SqlError and ArrowInvalid."""
        quote = self._options.quote if self._is_csv else None
        columns = parse_fields(
            block, count, delimiter=self._options.delimiter, quote=quote, null=self._null
        )
        if self._is_csv or b"\\" not in block:
            return columns
        nulls = sum(column.null_count for column in columns) if self._null == "\\N" else 0
        if block.count(b"\\") == nulls:
            # Every backslash is the one of a NULL field.
            return columns
        return [self._unescaped(column) for column in columns]

    def _hides_ends(self, block: bytes) -> bool:
        """Whether a backslash may stand before what ends a field, a line or the data."""
        return any(
            b"\\" + end in block for end in (b"\n", b"\r", b".", self._delimiter)
        ) or block.endswith(b"\\")

    def _unescaped(self, texts: Column) -> Column:
        escaped = contains_substring(texts, "\\")
        if not escaped.any():
            return texts
        without = without_escapes(texts, _MEANINGS)
        if without is not None:
            return without
        patches = [
            unescape_field(text.encode()) for text in to_python_list(filter_rows(texts, escaped))
        ]
        return replace_masked(texts, escaped, column_of(patches, pa.string()))
