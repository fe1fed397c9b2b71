"""What a server answered to one simple Query, as a value and as lines of a file.

    select a, b from t            [a int4, "b c" numeric/655366]    names, types, modifiers
                                  |1|2.50|                          a row, in text; \\N is NULL
                                  SELECT 1                          the tag
    select x                      ERROR 42703 at 8 column "x" does not exist

INVARIANTS
  W1  a line holds every byte of a value: separators, line ends, backslashes and blanks at an end
      are escaped, so that no editor changes what is expected.
  W2  the message of an error stands there for the reader; it is not compared.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import psycopg
from psycopg.pq import DiagnosticField, ExecStatus
from psycopg.pq.abc import PGconn, PGresult

_PLAIN = re.compile(r"[A-Za-z_?][A-Za-z0-9_?]*")
_ESCAPES = {"\\": "\\\\", "|": "\\p", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}
_BACK = {escape[1]: plain for plain, escape in _ESCAPES.items()} | {"s": " "}
_ERROR = re.compile(r"ERROR (\S{5})(?: at (\d+))? ?(.*)")
_COLUMN = re.compile(r'("(?:[^"]|"")*"|[^" ]+) ([^ ,/]+)(?:/(-?\d+))?(?:, |$)')

Row: TypeAlias = tuple[str | None, ...]

FIRST_USER_OID = 16_384


@dataclass(frozen=True, slots=True)
class Column:
    """A column as RowDescription has it. `type` is pg_type's name, or the OID of a type of ours."""

    name: str
    type: str
    modifier: int


@dataclass(frozen=True, slots=True)
class Rows:
    """A result with rows."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    tag: str


@dataclass(frozen=True, slots=True)
class Done:
    """A result without rows: its tag."""

    tag: str
    """Or EMPTY."""


@dataclass(frozen=True, slots=True)
class Failed:
    """An error; `position` is in characters, from 1."""

    sqlstate: str
    position: int | None
    message: str


Answer: TypeAlias = Rows | Done | Failed


def ask(connection: PGconn, text: str) -> tuple[Answer, ...]:
    """Send a simple Query; one answer for each of its statements, up to the first error."""
    connection.send_query(text.encode())
    connection.flush()
    found: list[Answer] = []
    while (result := connection.get_result()) is not None:
        found.append(to_answer(result))
    return tuple(found)


def to_answer(result: PGresult) -> Answer:
    """The value of a result in text format."""
    match result.status:
        case ExecStatus.TUPLES_OK:
            columns = tuple(_column(result, at) for at in range(result.nfields))
            rows = tuple(_row(result, at) for at in range(result.ntuples))
            return Rows(columns, rows, _text(result.command_status))
        case ExecStatus.FATAL_ERROR:
            position = _text(result.error_field(DiagnosticField.STATEMENT_POSITION))
            return Failed(
                _text(result.error_field(DiagnosticField.SQLSTATE)) or "lost!",
                int(position) if position else None,
                _text(result.error_field(DiagnosticField.MESSAGE_PRIMARY)),
            )
        case ExecStatus.EMPTY_QUERY:
            return Done("EMPTY")
        case _:
            return Done(_text(result.command_status))


def _column(result: PGresult, at: int) -> Column:
    return Column(_text(result.fname(at)), type_name(result.ftype(at)), result.fmod(at))


def type_name(oid: int) -> str:
    """pg_type.typname of a built-in type."""
    known = psycopg.postgres.types.get(oid)
    if known is None:
        # Oids of users' types are handed out as they come.
        return "user" if oid >= FIRST_USER_OID else str(oid)
    return f"{known.name}[]" if known.array_oid == oid else known.name


def _row(result: PGresult, at: int) -> Row:
    values = (result.get_value(at, column) for column in range(result.nfields))
    return tuple(None if value is None else _text(value) for value in values)


def _text(value: bytes | None) -> str:
    return "" if value is None else value.decode(errors="backslashreplace")


def show(answers: Sequence[Answer]) -> str:
    """The lines of a file."""
    return "\n".join(line for answer in answers for line in _lines(answer))


def _lines(answer: Answer) -> Iterator[str]:
    match answer:
        case Rows(columns, rows, tag):
            yield f"[{', '.join(map(_show_column, columns))}]"
            yield from (f"|{''.join(f'{_escape(value)}|' for value in row)}" for row in rows)
            yield tag
        case Failed(sqlstate, position, message):
            where = "" if position is None else f" at {position}"
            yield f"ERROR {sqlstate}{where} {_escape(message)}".rstrip(" ")
        case Done(tag):
            yield tag


def _show_column(column: Column) -> str:
    name = column.name
    if not _PLAIN.fullmatch(name):
        name = '"' + _escape(name).replace('"', '""') + '"'
    return f"{name} {column.type}" + ("" if column.modifier == -1 else f"/{column.modifier}")


def _escape(value: str | None) -> str:
    if value is None:
        return "\\N"
    found = re.sub(r"[\\|\n\r\t\0]", lambda match: _ESCAPES[match[0]], value)
    blanks = len(found) - len(found.rstrip(" "))
    return found[: len(found) - blanks] + "\\s" * blanks


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: _BACK[match[1]], text)


def read(lines: Sequence[str]) -> tuple[Answer, ...]:
    """The inverse of `show`."""
    found: list[Answer] = []
    columns: tuple[Column, ...] | None = None
    rows: list[Row] = []
    for line in lines:
        if line.startswith("["):
            columns, rows = tuple(_read_columns(line[1:-1])), []
        elif line.startswith("|"):
            rows.append(_read_row(line))
        elif error := _ERROR.fullmatch(line):
            position = int(error[2]) if error[2] else None
            found.append(Failed(error[1], position, _unescape(error[3])))
        elif columns is not None:
            found.append(Rows(columns, tuple(rows), line))
            columns = None
        else:
            found.append(Done(line))
    return tuple(found)


def _read_columns(text: str) -> Iterator[Column]:
    for name, type_, modifier in _COLUMN.findall(text):
        plain = _unescape(name[1:-1].replace('""', '"')) if name.startswith('"') else name
        yield Column(plain, type_, int(modifier or -1))


def _read_row(line: str) -> Row:
    values = line[1:-1].split("|") if len(line) > 1 else []
    return tuple(None if value == "\\N" else _unescape(value) for value in values)
