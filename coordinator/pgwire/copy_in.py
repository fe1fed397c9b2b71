"""COPY FROM STDIN, text and csv: pieces of a stream in, Arrow batches out.

    chunks ─▶ buffer ─▶ block of whole lines ─ plain? ─▶ pyarrow.csv ─▶ column casts ─▶ batch
                                             └ else ───▶ line by line, value by value ─▶ batch

INVARIANTS
  I1  both ways give the same rows for the same bytes; the fast one is taken only where the block
      shows that it must (`_is_plain`), and whatever goes wrong on it is done again exactly.
  I2  chunk boundaries mean nothing.
  I3  an error has PostgreSQL's SQLSTATE and message, and `context` says relation, line and column.
  I4  memory is a few blocks, plus the longest line; that is bounded by `LINE_BYTES_MAX` (54000).
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from coordinator.pgwire.client_encodings import from_client
from ingest.copy_text.arrow_types import to_array
from ingest.copy_text.columns import column_parser, parse_field
from ingest.copy_text.kernels import Column
from ingest.copy_text.lines import FieldSplitter, LineSplitter, bad_format, check_encoding
from ingest.copy_text.plain_blocks import BlockCutter
from sql.errors import OutOfEngineRange, SqlError, not_supported
from sql.statements.copy_options import CopyOptions
from sql.types.sql_type import SqlType, Value
from sql.types.styles import DEFAULT_STYLES, Styles

BLOCK_BYTES: Final = 1 << 20
"""Input parsed at once. Larger: more memory and longer stalls; smaller: more overhead a block."""

LINE_BYTES_MAX: Final = 256 << 20
"""The longest line. PostgreSQL stops at 1 GB; a value that long fits in no message of ours."""

_SHOWN_BYTES_MAX: Final = 100


class CopyReader:
    """Reads one COPY. `types` and `names` of the columns that the data has, in its order."""

    def __init__(
        self,
        options: CopyOptions,
        types: Sequence[SqlType],
        names: Sequence[str],
        *,
        relation: str = "",
        timezone: str = "UTC",
        styles: Styles = DEFAULT_STYLES,
    ) -> None:
        assert len(types) == len(names), "a name for each type"
        if not types:
            raise not_supported("COPY into a table without columns")
        self._options = options
        self._types = tuple(types)
        self._names = tuple(names)
        self._relation = relation
        self._timezone = timezone
        self._styles = styles
        self._parsers = tuple(column_parser(type_, timezone, styles) for type_ in types)
        self._lines = LineSplitter(options)
        self._fields = FieldSplitter(options)
        # By place: what makes a quoted NULL string NULL, and what makes an unquoted one text.
        self._force_null = _places(names, options.force_null)
        self._force_not_null = _places(names, options.force_not_null)
        self._cutter = BlockCutter(options)
        self._buffer = bytearray()
        self._wanted_bytes = BLOCK_BYTES
        self._header_waits = options.header
        self._first_waits = True
        # Rows and the lines of the first of them; from one entry to the next both go on by one.
        self._row_lines: list[tuple[int, int]] = []
        self._rows = 0
        self.skipped = 0
        """Rows passed over, of ON_ERROR ignore."""
        self._told: list[SqlError] = []
        self._line_expected = 0

    # ------------------------------------------------------------ the stream

    def feed(self, chunk: bytes) -> Iterator[pa.RecordBatch]:
        """Take a piece of the stream; yields the batches that are complete (I2)."""
        if not self._lines.is_at_end:
            self._buffer += self._converted(chunk)
        return self._drained(is_final=False)

    def _converted(self, chunk: bytes) -> bytes:
        if self._options.encoding is None or self._options.encoding.is_servers:
            return chunk
        try:
            return from_client(chunk, self._options.encoding)
        except SqlError as error:
            raise self.located(error) from None

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The stream has ended; yields the rest."""
        if self._header_waits and self._options.header_match and not self._buffer:
            self._lines.line = 1
            self._add_line(b"", [])
        return self._drained(is_final=True)

    def drain(self) -> Iterator[pa.RecordBatch]:
        """Yields the rows that are whole, however few: the client waits, or may have ended."""
        left = -1
        while self._buffer and len(self._buffer) != left and not self._lines.is_at_end:
            left = len(self._buffer)
            batch = self._block(is_final=False)
            if batch is not None:
                yield batch

    def located(self, error: SqlError) -> SqlError:
        """An error of the stream, where the next line would begin (I3)."""
        return self._located(error, line=self._lines.line + 1)

    def line_of(self, row: int) -> int:
        """The line of a row, as PostgreSQL counts: where the row ends."""
        place = bisect_right(self._row_lines, row, key=_first_row) - 1
        first_row, line = self._row_lines[place]
        return line + row - first_row

    def _count(self, line: int) -> None:
        """One more row, which ends on this line."""
        if line != self._line_expected:
            self._row_lines.append((self._rows, line))
        self._rows += 1
        self._line_expected = line + 1

    def _count_block(self, block: bytes, rows: int) -> None:
        """The rows of a block that was read as a whole."""
        before, lines = self._lines.line, self._cutter.line_count(block)
        self._lines.line += lines
        if lines == rows:
            self._count(before + 1)
            self._rows += rows - 1
            self._line_expected += rows - 1
            return
        for line in self._cutter.row_ends(block):
            self._count(before + line)

    def _drained(self, *, is_final: bool) -> Iterator[pa.RecordBatch]:
        while len(self._buffer) >= self._wanted_bytes or (is_final and self._buffer):
            used = len(self._buffer)
            batch = self._block(is_final=is_final)
            if batch is not None:
                yield batch
            if self._lines.is_at_end:
                self._buffer.clear()
                return
            if len(self._buffer) == used:
                self._want_more()
                if is_final:
                    return
            else:
                self._wanted_bytes = BLOCK_BYTES

    def _want_more(self) -> None:
        """Not one whole line in the buffer: look again when there is twice as much (I4)."""
        if len(self._buffer) > LINE_BYTES_MAX:
            error = SqlError("54000", f"line exceeds the limit of {LINE_BYTES_MAX} bytes")
            raise self._located(error, line=self._lines.line + 1)
        self._wanted_bytes = 2 * len(self._buffer)

    def _block(self, *, is_final: bool) -> pa.RecordBatch | None:
        """Use up some of the buffer, at most a block if it is fast."""
        if self._first_waits:
            return self._exact(is_final=is_final, lines_max=1)
        end = self._cutter.block_end(self._buffer, BLOCK_BYTES, self._lines.end_of_line)
        if end:
            block = bytes(memoryview(self._buffer)[:end])
            batch = self._plain(block)
            if batch is not None:
                self._count_block(block, batch.num_rows)
                del self._buffer[:end]
                return batch
        return self._exact(is_final=is_final, lines_max=None)

    # ------------------------------------------------------------ the fast way

    def _plain(self, block: bytes) -> pa.RecordBatch | None:
        """The block's rows, or None where only the exact way is sure of them (I1)."""
        if self._force_null or self._force_not_null:
            return None
        if not self._cutter.is_plain(block, columns=len(self._types)):
            return None
        try:
            columns = self._cutter.columns(block, len(self._types))
            arrays = [parse(column) for parse, column in zip(self._parsers, columns, strict=True)]
            return self._batch(arrays)
        except (SqlError, pa.ArrowInvalid):
            # The exact way finds out which line it was, and what is wrong with it.
            return None

    def _batch(self, arrays: list[Column]) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(arrays, list(self._names))

    # ------------------------------------------------------------ the exact way

    def _exact(self, *, is_final: bool, lines_max: int | None) -> pa.RecordBatch | None:
        """Lines of about a block; of the whole buffer, if it does not hold one in that."""
        for limit in (BLOCK_BYTES, len(self._buffer)):
            data = bytes(memoryview(self._buffer)[:limit])
            is_whole = len(data) == len(self._buffer)
            columns: list[list[Value]] = [[] for _ in self._types]
            used = self._read_lines(
                data, columns, is_final=is_final and is_whole, lines_max=lines_max
            )
            if used or is_whole:
                break
        del self._buffer[:used]
        if not columns[0]:
            return None
        return self._batch(
            [to_array(c, type_) for c, type_ in zip(columns, self._types, strict=True)]
        )

    def _read_lines(
        self, data: bytes, columns: list[list[Value]], *, is_final: bool, lines_max: int | None
    ) -> int:
        """Add the rows of whole lines; how many bytes they were."""
        position = 0
        count = 0
        while count != lines_max:
            try:
                cut = self._lines.next_line(data, position, is_final=is_final)
            except SqlError as error:
                raise self._located(error) from None
            if cut is None:
                break
            line, position = cut
            count += 1
            self._first_waits = False
            self._add_line(line, columns)
        return position

    def _add_line(self, line: bytes, columns: list[list[Value]]) -> None:
        try:
            check_encoding(line, self._lines.end_of_line or b"")
        except SqlError as error:
            raise self._located(error) from None
        try:
            fields = self._fields.split(line)
            if self._header_waits:
                self._header_waits = False
                self._check_header(fields)
                return
            if len(fields) > len(self._types):
                raise bad_format("extra data after last expected column")
        except SqlError as error:
            raise self._located(error, shown=line) from None
        row: list[Value] = []
        for index, type_ in enumerate(self._types):
            if index == len(fields):
                missing = bad_format(f'missing data for column "{self._names[index]}"')
                raise self._located(missing, shown=line)
            field = self._forced(fields[index], index)
            try:
                row.append(None if field is None else self._value(field, type_, index))
            except SqlError as error:
                # What only we do not hold is no bad input: PostgreSQL would keep the row.
                skipped = error.sqlstate[:2] == "22" and not isinstance(error, OutOfEngineRange)
                if not self._options.skips or field is None or not skipped:
                    raise
                self._skip(field, index)
                return
        for column, value in zip(columns, row, strict=True):
            column.append(value)
        self._count(self._lines.line)

    def _skip(self, field: str, index: int) -> None:
        """Pass over the row of a field that cannot be read."""
        self.skipped += 1
        name, shown, options = self._names[index], _shortened(field.encode()), self._options
        why = "due to data type incompatibility"
        if options.verbosity == "verbose":
            where = f'at line {self._lines.line} for column "{name}": "{shown}"'
            notice = SqlError("00000", f"skipping row {why} {where}")
            notice.context = f"COPY {self._relation}"
            self._told.append(notice)
        if options.skipped_max is not None and self.skipped > options.skipped_max:
            message = f"skipped more than REJECT_LIMIT ({options.skipped_max}) rows {why}"
            raise self._located(SqlError("22P02", message), place=f', column {name}: "{shown}"')

    def take_told(self) -> list[SqlError]:
        """Notices since the last call."""
        told, self._told = self._told, []
        return told

    def summary(self) -> SqlError | None:
        """What is said of all rows that were passed over."""
        if not self.skipped or self._options.verbosity == "silent":
            return None
        rows = "1 row was" if self.skipped == 1 else f"{self.skipped} rows were"
        return SqlError("00000", f"{rows} skipped due to data type incompatibility")

    def _forced(self, field: str | None, index: int) -> str | None:
        """The field as FORCE_NULL and FORCE_NOT_NULL have it."""
        if field is None and index in self._force_not_null:
            return self._options.null
        if field == self._options.null and index in self._force_null:
            return None
        return field

    def _value(self, field: str, type_: SqlType, index: int) -> Value:
        try:
            return parse_field(field, type_, self._timezone, self._styles)
        except SqlError as error:
            place = f', column {self._names[index]}: "{_shortened(field.encode())}"'
            raise self._located(error, place=place) from None

    def _check_header(self, fields: list[str | None]) -> None:
        if not self._options.header_match:
            return
        if len(fields) != len(self._names):
            raise bad_format(
                f"wrong number of fields in header line: got {len(fields)}, "
                f"expected {len(self._names)}"
            )
        for number, (field, name) in enumerate(zip(fields, self._names, strict=True), 1):
            if field == name:
                continue
            got = f'null value ("{self._options.null}")' if field is None else f'"{field}"'
            raise bad_format(
                f'column name mismatch in header line field {number}: got {got}, expected "{name}"'
            )

    def _located(
        self,
        error: SqlError,
        *,
        line: int | None = None,
        shown: bytes | None = None,
        place: str = "",
    ) -> SqlError:
        """The error with PostgreSQL's CONTEXT (I3)."""
        if shown is not None:
            place = f': "{_shortened(shown)}"'
        number = self._lines.line if line is None else line
        error.context = f"COPY {self._relation}, line {number}{place}"
        return error


def _places(names: Sequence[str], forced: Sequence[str]) -> frozenset[int]:
    return frozenset(index for index, name in enumerate(names) if name in forced)


def _first_row(entry: tuple[int, int]) -> int:
    return entry[0]


def _shortened(data: bytes) -> str:
    """At most `_SHOWN_BYTES_MAX` bytes, cut between characters."""
    if len(data) <= _SHOWN_BYTES_MAX:
        return data.decode("utf-8", "replace")
    return data[:_SHOWN_BYTES_MAX].decode("utf-8", "ignore") + "..."
