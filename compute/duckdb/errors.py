"""Translate DuckDB's exceptions to SQLSTATEs by class and by the fixed start of the message.

INVARIANTS
  X1  no text of an exception reaches a client, except messages of Meridian's own `error()` calls
      and of the reference evaluator; paths and values of rows stay in the log.
  X2  decisions depend only on the start of a message, where no data can stand.
"""

import logging
import re
from collections.abc import Callable, Sequence
from typing import Final

import duckdb
import pyarrow as pa

from compute.reference.tagged_errors import decode_error
from sql.emit.duckdb.types import ERROR_TAG
from sql.errors import SqlError, division_by_zero, out_of_range
from sql.types.text_input import field_overflow

log = logging.getLogger(__name__)

_TYPES: Final = {
    "INT16": "smallint", "INT32": "integer", "INT64": "bigint", "INT128": "bigint",
    "FLOAT": "real", "DOUBLE": "double precision",
}  # fmt: skip


class Interrupted(Exception):
    """The query was interrupted."""


DUCKDB_EXCEPTIONS: Final = (duckdb.Error, OSError, pa.ArrowException)
"""DuckDB's exceptions. After the first rows of a stream they are Arrow's, with DuckDB's text."""


def may_invalidate_database(error: Exception) -> bool:
    """Whether DuckDB may have invalidated its database by this error."""
    return str(error).startswith(("INTERNAL Error: ", "FATAL Error: "))


def is_database_invalidated(error: Exception) -> bool:
    """Whether an error of another statement had invalidated the database before."""
    return str(error).startswith("FATAL Error: Failed: database has been invalidated")


def translate_duckdb_error(error: Exception) -> Exception:
    """The exception that the engine raises for an exception of DuckDB."""
    text = str(error)
    if isinstance(error, duckdb.InterruptException) or text.startswith("INTERRUPT Error"):
        return Interrupted()
    for begin, make in _BEGINNINGS:
        match = begin.match(text)
        if match is not None:
            return make(match, text[match.end() :])
    log.error("the local engine failed: %s", text)
    return SqlError("XX000", "the engine failed")


def _own(_match: "re.Match[str]", rest: str) -> SqlError:
    found = decode_error(ERROR_TAG + rest)
    assert found is not None, "our own errors have an SQLSTATE"
    return found


def _integer(match: "re.Match[str]", _rest: str) -> SqlError:
    return out_of_range(_TYPES.get(match[1], "value"))


def _numeric(_match: "re.Match[str]", _rest: str) -> SqlError:
    return SqlError("22003", "numeric field overflow")


def _fitted(match: "re.Match[str]", _rest: str) -> SqlError:
    return field_overflow(int(match[1]), int(match[2]))


def _error(sqlstate: str, message: str) -> Callable[["re.Match[str]", str], SqlError]:
    return lambda _match, _rest: SqlError(sqlstate, message)


_BEGINNINGS: Final[Sequence[tuple[re.Pattern[str], Callable[["re.Match[str]", str], SqlError]]]] = [
    (re.compile(begin), make)
    for begin, make in (
        (
            r"Invalid Input Error: (?:Python exception occurred while executing the UDF:"
            rf" [\w.]*: )?{re.escape(ERROR_TAG)}",
            _own,
        ),
        (r"Invalid Input Error: Division by zero", lambda _match, _rest: division_by_zero()),
        (
            r"Invalid Input Error: More than one row returned by a subquery",
            _error("21000", "more than one row returned by a subquery used as an expression"),
        ),
        (r"Out of Range Error: Overflow in \w+ of (INT\w+|FLOAT|DOUBLE) ", _integer),
        (r"Out of Range Error: Overflow in \w+ of DECIMAL", _numeric),
        (r"Out of Range Error: .*[Tt]imestamp", _error("22008", "timestamp out of range")),
        (r"Out of Range Error: .*[Dd]ate", _error("22008", "date out of range")),
        (r"Out of Range Error: .*[Ii]nterval", _error("22008", "interval out of range")),
        (r"Out of Range Error: ", _error("22003", "value out of range")),
        (
            r"Conversion Error: Type \w+ with value [-+.\w]+ can't be cast because the value is"
            r" out of range for the destination type (\w+)",
            _integer,
        ),
        (
            r"Conversion Error: Failed to cast decimal value [-.\d]+ to type (\w+)",
            _integer,
        ),
        (
            r"Conversion Error: (?:Could not cast value|Casting value) \"?[-+.\w]+\"? to (?:type )?"
            r"DECIMAL\((\d+),(\d+)\)",
            _fitted,
        ),
        (r"Conversion Error: (?:Could not cast value|Casting value) ", _numeric),
        (
            # A date beyond what a timestamp holds.
            r"Conversion Error: Type INT32 with value \d+-\d\d-\d\d can't be cast to the"
            r" destination type INT64",
            _error("22008", "date out of range for timestamp"),
        ),
        (r"Conversion Error: .*[Tt]imestamp", _error("22008", "timestamp out of range")),
        (r"Conversion Error: Date out of range", _error("22008", "timestamp out of range")),
        (
            r"Syntax Error: Like pattern must not end",
            _error("22025", "LIKE pattern must not end with escape character"),
        ),
        (r"Not implemented Error: ", _error("0A000", "not supported on the local engine")),
        (r"Out of Memory Error: ", _error("53200", "out of memory")),
        # Texts of one batch of rows, for a function in Python, are too long together.
        (r"Invalid Input Error: Arrow Appender: ", _error("53200", "out of memory")),
        (r"IO Error: .*No space left", _error("53100", "could not write temporary file")),
        (
            r"(?:Parser|Binder) Error: .*(?:[Mm]ax(?:imum)? expression depth|stack)",
            _error("54001", "stack depth limit exceeded"),
        ),
    )
]
