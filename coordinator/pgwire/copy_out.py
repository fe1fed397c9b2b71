"""COPY TO STDOUT, text and csv: Arrow batches to CopyData messages, one a row, by columns.

    column ─▶ column_text ─▶ escaped or quoted, only where a cell needs it ─▶ framed rows

INVARIANTS
  O1  what is written reads back through `CopyReader` with the same options as the same rows.
  O2  a NULL is the null text, bare; a value that looks like it is quoted (csv) or escaped (text).
"""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from coordinator.pgwire.cells import join_frames
from coordinator.pgwire.client_encodings import frames_to_client
from coordinator.pgwire.column_text import text_column
from coordinator.pgwire.messages import CopyFrames
from ingest.copy_text.arrow_types import normalize_column
from ingest.copy_text.kernels import (
    Column,
    Mask,
    characters,
    choose_by_mask,
    column_of,
    contains_substring,
    equal,
    fill_nulls,
    join_pieces,
    offsets,
    replace_text,
)
from sql.statements.copy_options import CopyOptions
from sql.types.sql_type import SqlType
from sql.types.styles import DEFAULT_STYLES, Styles

_JOIN_BYTES_MAX: Final = 1 << 28
"""Estimated bytes of one join. Arrow's offsets end at 2 GiB; smaller means more pieces."""

_CELL_BYTES_ESTIMATE: Final = 40
_LETTERS: Final = (
    ("\b", "\\b"), ("\f", "\\f"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"), ("\v", "\\v"),
)  # fmt: skip


class CopyWriter:
    """Writes one COPY."""

    def __init__(
        self,
        options: CopyOptions,
        types: Sequence[SqlType],
        names: Sequence[str],
        timezone: str = "UTC",
        styles: Styles = DEFAULT_STYLES,
    ) -> None:
        assert len(types) == len(names), "a name for each type"
        self._options = options
        self._types = tuple(types)
        self._names = tuple(names)
        self._texts = tuple(text_column(type_, timezone, styles) for type_ in types)
        self._forced = frozenset(options.force_quote)
        self._is_csv = options.format == "csv"

    def header(self) -> bytes | memoryview:
        """The header line as a CopyData message; nothing if the options ask for none."""
        if not self._options.header:
            return b""
        names = [column_of([name], pa.string()) for name in self._names]
        line = self._joined([self._written(name, is_forced=False) for name in names], 1)
        return self._converted(CopyFrames(line, 1)).data

    def trailer(self) -> bytes:
        """Nothing comes behind the rows."""
        return b""

    def encode(self, batch: pa.RecordBatch) -> bytes | memoryview:
        """The rows of a batch as CopyData messages (O1, O2)."""
        if batch.num_rows == 0:
            return b""
        if batch.num_rows > 1 and self._estimated_bytes(batch) > _JOIN_BYTES_MAX:
            half = batch.num_rows // 2
            return b"".join((self.encode(batch.slice(0, half)), self.encode(batch.slice(half))))
        cells = [self._cells(column, index) for index, column in enumerate(batch.columns)]
        return self._joined(cells, batch.num_rows)

    def message(self, batch: pa.RecordBatch) -> CopyFrames:
        """The batch as a message to send."""
        return self._converted(CopyFrames(self.encode(batch), batch.num_rows))

    def _converted(self, frames: CopyFrames) -> CopyFrames:
        encoding = self._options.encoding
        if encoding is None or encoding.is_servers:
            return frames
        return frames_to_client(frames, encoding)

    def _estimated_bytes(self, batch: pa.RecordBatch) -> int:
        padding = sum(type_.length or 0 for type_ in self._types if type_.name == "bpchar")
        # Escapes double a text at worst, bytea in digits doubles it, too.
        cells = batch.num_columns * _CELL_BYTES_ESTIMATE + 4 * padding
        return 4 * batch.nbytes + batch.num_rows * cells

    def _cells(self, column: Column, index: int) -> Column:
        texts = self._texts[index](normalize_column(column, self._types[index]))
        if texts.type != pa.string():
            texts = texts.cast(pa.string())
        is_forced = self._names[index] in self._forced
        return fill_nulls(self._written(texts, is_forced=is_forced), self._options.null)

    def _written(self, texts: Column, *, is_forced: bool) -> Column:
        return self._quoted(texts, is_forced=is_forced) if self._is_csv else self._escaped(texts)

    def _joined(self, cells: Sequence[Column], rows: int) -> memoryview:
        pieces: list[Column | bytes] = []
        for index, column in enumerate(cells):
            if index:
                pieces.append(self._options.delimiter.encode())
            pieces.append(column.cast(pa.binary()))
        return join_frames(b"d", [*pieces, b"\n"], rows)

    # ------------------------------------------------------------ text

    def _escaped(self, texts: Column) -> Column:
        """Backslashes first, so that those of the escapes are not escaped again."""
        delimiter = self._options.delimiter
        escapes = [("\\", "\\\\"), *_LETTERS]
        if delimiter not in dict(escapes):
            escapes.append((delimiter, "\\" + delimiter))
        present = _bytes_in(texts)
        for character, escape in escapes:
            if character.encode() in present:
                texts = replace_text(texts, character, escape)
        return texts

    # ------------------------------------------------------------ csv

    def _quoted(self, texts: Column, *, is_forced: bool) -> Column:
        mask = self._needs_quotes(texts)
        if is_forced:
            mask[:] = True
        if not mask.any():
            return texts
        quote, escape = self._options.quote, self._options.escape
        content = texts
        if escape != quote:
            content = replace_text(content, escape, escape * 2)
        content = replace_text(content, quote, escape + quote)
        quoted = join_pieces(column_of([quote] * len(texts), pa.string()), content, quote)
        return choose_by_mask(mask, quoted, texts)

    def _needs_quotes(self, texts: Column) -> Mask:
        mask = equal(texts, self._options.null)
        present = _bytes_in(texts)
        for character in (self._options.delimiter, self._options.quote, "\n", "\r"):
            if character.encode() in present:
                mask = mask | contains_substring(texts, character)
        if len(self._types) == 1 and b"\\" in present:
            # Older readers end the data at such a line.
            mask = mask | equal(texts, "\\.")
        return mask.copy()


def _bytes_in(texts: Column) -> bytes:
    """The bytes of all cells, to look for those that need care."""
    starts = offsets(texts)
    return characters(texts)[starts[0] : starts[-1]].tobytes()
