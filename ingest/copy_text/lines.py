r"""Split COPY input into lines and fields exactly as PostgreSQL does: the slow, certain way.

    bytes ─▶ LineSplitter ─▶ raw lines ─▶ split_text / split_csv ─▶ fields (None for NULL)

INVARIANTS
  B1  the first line's end (LF, CR or CRLF) is every line's end; another one in the data is 22P04.
  B2  `line` is the number PostgreSQL would report: of the line that was cut last, where a quoted
      field's line breaks count.
  B3  text: `\.` alone on a line ends the data, whatever follows; csv has no such mark.
"""

import re
from typing import Final

from ingest.copy_text.encoding import decode_text, invalid_sequence
from sql.errors import SqlError
from sql.statements.copy_options import CopyOptions

_LF, _CR, _CRLF = b"\n", b"\r", b"\r\n"
_BACKSLASH: Final = ord("\\")
_END_OF_DATA: Final = (-1, -1)
_NOT_ALONE: Final = "end-of-copy marker is not alone on its line"
_OTHER_NEWLINE: Final = "end-of-copy marker does not match previous newline style"


def bad_format(message: str, *, hint: str | None = None) -> SqlError:
    """22P04: the file is not what COPY takes."""
    return SqlError("22P04", message, hint=hint)


class LineSplitter:
    """Cuts lines off the front of a buffer (B1, B2, B3)."""

    def __init__(self, options: CopyOptions) -> None:
        self._is_csv = options.format == "csv"
        self._quote = options.quote.encode()
        # The escape that is the quote itself needs no attention: two toggles leave the state.
        self._escape = b"" if options.escape == options.quote else options.escape.encode()
        marks = self._quote + self._escape if self._is_csv else b"\\"
        self._special = re.compile(b"[" + re.escape(marks + _CRLF) + b"]")
        self.end_of_line: bytes | None = None
        self.line = 0
        self.is_at_end = False

    def next_line(self, data: bytes, start: int, *, is_final: bool) -> tuple[bytes, int] | None:
        """The line at `start` and where the next begins; None if it is not complete, or no more."""
        if start == len(data) or self.is_at_end:
            return None
        self.line += 1
        if self._is_csv:
            found = self._csv_end(data, start)
        else:
            found = self._text_end(data, start, is_final=is_final)
        if found == _END_OF_DATA:
            self.is_at_end = True
            return None
        if found is None or self._needs_more(data, found[1], is_final=is_final):
            if not is_final:
                self.line -= 1
                return None
            found = found or (len(data), len(data))
        end, following = found
        # PostgreSQL looks for the line breaks of a field before it knows those of the first line.
        counted = _LF if self.end_of_line == _LF else _CR
        if following > end:
            following = self._end_line(data, end)
        line = data[start:end]
        if self._is_csv:
            self.line += line.count(counted)
        return line, following

    def _needs_more(self, data: bytes, following: int, *, is_final: bool) -> bool:
        """A carriage return at the end may be half of an end of line."""
        is_cut = following == len(data) and data[following - 1 : following] == _CR
        return is_cut and not is_final and self.end_of_line != _CR

    def _end_line(self, data: bytes, end: int) -> int:
        """Check the end of line at `end` (B1); the position behind it."""
        is_return = data[end : end + 1] == _CR
        is_pair = is_return and data[end + 1 : end + 2] == _LF
        known = self.end_of_line
        if known is None:
            self.end_of_line = known = _CRLF if is_pair else _CR if is_return else _LF
        if is_return and (known == _LF or (known == _CRLF and not is_pair)):
            raise self._stray("carriage return", "\\r")
        if not is_return and known != _LF:
            raise self._stray("newline", "\\n")
        return end + len(known)

    def _stray(self, name: str, written: str) -> SqlError:
        if self._is_csv:
            hint = f"Use quoted CSV field to represent {name}."
            return bad_format(f"unquoted {name} found in data", hint=hint)
        hint = f'Use "{written}" to represent {name}.'
        return bad_format(f"literal {name} found in data", hint=hint)

    def _text_end(self, data: bytes, start: int, *, is_final: bool) -> tuple[int, int] | None:
        position = start
        while match := self._special.search(data, position):
            end = match.start()
            if data[end] != _BACKSLASH:
                return end, end + 1
            if data[end + 1 : end + 2] == b".":
                return self._end_mark(data, start, end, is_final=is_final)
            position = end + 2
        return None

    def _end_mark(
        self, data: bytes, start: int, mark: int, *, is_final: bool
    ) -> tuple[int, int] | None:
        """What the mark means; None while what follows is unknown (B3)."""
        expected = self.end_of_line
        behind = data[mark + 2 : mark + 4]
        if expected == _CRLF and behind[:1] == _CR:
            behind = behind[1:]
        elif expected == _CRLF and behind[:1] == _LF:
            raise bad_format(_OTHER_NEWLINE)
        elif expected == _CRLF and behind:
            raise bad_format(_NOT_ALONE)
        if not behind and not is_final:
            return None
        if behind[:1] not in (_CR, _LF):
            raise bad_format(_NOT_ALONE)
        if expected is not None and behind[:1] != expected[-1:]:
            raise bad_format(_OTHER_NEWLINE)
        if mark > start:
            raise bad_format(_NOT_ALONE)
        return _END_OF_DATA

    def _csv_end(self, data: bytes, start: int) -> tuple[int, int] | None:
        position = start
        is_quoted = False
        while match := self._special.search(data, position):
            end = match.start()
            mark = match[0]
            position = end + 1
            if is_quoted and mark == self._escape:
                position = end + 2
            elif mark == self._quote:
                is_quoted = not is_quoted
            elif not is_quoted and mark in (_CR, _LF):
                return end, end + 1
        return None


def check_encoding(line: bytes, end_of_line: bytes) -> None:
    """Raises 22021 unless the line is UTF-8 without NUL; what is cut short shows what follows."""
    if not line.isascii() or b"\0" in line:
        decode_text(line + end_of_line)


# ---------------------------------------------------------------- fields


class FieldSplitter:
    """Cuts a line into fields: text, or None for NULL."""

    def __init__(self, options: CopyOptions) -> None:
        self._delimiter = options.delimiter.encode()
        self._null = options.null.encode()
        self._quote = options.quote.encode()
        self._escape = options.escape.encode()
        mark = re.escape(self._delimiter)
        self._raw_text = re.compile(
            b"((?:[^\\\\" + mark + b"]|\\\\.)*\\\\?)(?:" + mark + b"|$)", re.DOTALL
        )
        self._csv_special = re.compile(b"[" + re.escape(self._delimiter + self._quote) + b"]")
        self._quoted_special = re.compile(b"[" + re.escape(self._quote + self._escape) + b"]")
        self.split = self._split_csv if options.format == "csv" else self._split_text

    def _split_text(self, line: bytes) -> list[str | None]:
        if b"\\" not in line:
            return [None if raw == self._null else raw.decode() for raw in self._plain(line)]
        fields: list[str | None] = []
        position = 0
        while True:
            match = self._raw_text.match(line, position)
            assert match is not None, "every rest of a line begins with a field"
            raw = match[1]
            fields.append(None if raw == self._null else unescape_field(raw))
            if match.end() == len(line) and not match[0].endswith(self._delimiter):
                return fields
            if match.end(1) == len(line):
                return fields
            position = match.end()

    def _plain(self, line: bytes) -> list[bytes]:
        return line.split(self._delimiter)

    def _split_csv(self, line: bytes) -> list[str | None]:
        if self._quote not in line:
            return [None if raw == self._null else raw.decode() for raw in self._plain(line)]
        fields: list[str | None] = []
        position = 0
        while position <= len(line):
            field, position = self._csv_field(line, position)
            fields.append(field)
        return fields

    def _csv_field(self, line: bytes, start: int) -> tuple[str | None, int]:
        """The field at `start` and where the next begins; beyond the line behind the last."""
        pieces: list[bytes] = []
        position = start
        saw_quote = False
        while match := self._csv_special.search(line, position):
            pieces.append(line[position : match.start()])
            position = match.end()
            if match[0] == self._delimiter:
                break
            saw_quote = True
            quoted, position = self._quoted(line, position)
            pieces.append(quoted)
        else:
            pieces.append(line[position:])
            position = len(line) + 1
        content = b"".join(pieces)
        if not saw_quote and content == self._null:
            return None, position
        return content.decode(), position

    def _quoted(self, line: bytes, start: int) -> tuple[bytes, int]:
        """What stands up to the closing quote, and where that ends."""
        pieces: list[bytes] = []
        position = start
        while match := self._quoted_special.search(line, position):
            pieces.append(line[position : match.start()])
            position = match.end()
            following = line[position : position + 1]
            if match[0] == self._escape and following and following in self._quote + self._escape:
                pieces.append(following)
                position += 1
            elif match[0] == self._quote:
                return b"".join(pieces), position
            else:
                pieces.append(match[0])
        raise bad_format("unterminated CSV quoted field")


_ESCAPED: Final = re.compile(rb"\\(x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|.)?", re.DOTALL)
_LETTERS: Final = {
    b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v",
}  # fmt: skip


def unescape_field(raw: bytes) -> str:
    """The text of a field of the text format, which is not NULL."""
    if b"\\" not in raw:
        return raw.decode()
    content = _ESCAPED.sub(_unescape, raw)
    if b"\0" in content:
        raise invalid_sequence(b"\0")
    return decode_text(content)


def _unescape(match: re.Match[bytes]) -> bytes:
    escaped = match[1]
    if escaped is None:
        # A lone backslash at the end of the line says nothing.
        return b""
    if escaped[:1] == b"x" and len(escaped) > 1:
        return bytes([int(escaped[1:], 16)])
    if escaped[0] in b"01234567":
        return bytes([int(escaped, 8) & 0xFF])
    return _LETTERS.get(escaped, escaped)
