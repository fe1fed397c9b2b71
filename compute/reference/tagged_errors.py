"""Encode an SqlError as text, so that it can pass through an engine that calls the evaluator.

    MERIDIAN:22012:division by zero␟detail␟hint␟context␟position

INVARIANTS
  T1  a tagged error comes back the same: SQLSTATE, message, detail, hint, context, position.
"""

import re
from typing import Final

from sql.emit.duckdb.types import ERROR_TAG as LOCAL_TAG
from sql.emit.error_tag import ERROR_TAG
from sql.errors import SqlError

assert ERROR_TAG == LOCAL_TAG, "one tag for all engines"

_TAGGED: Final = re.compile(re.escape(ERROR_TAG) + r"(\w{5}):(.*)", re.DOTALL)
_SEPARATOR: Final = "\x1f"
"""Between message, detail, hint, context and position; no text of ours has it."""


def encode_error(error: SqlError) -> str:
    """Encode an error as text."""
    parts = (error.message, error.detail, error.hint, error.context, error.position)
    text = _SEPARATOR.join(str(part or "") for part in parts).rstrip(_SEPARATOR)
    return f"{ERROR_TAG}{error.sqlstate}:{text}"


def decode_error(text: str) -> SqlError | None:
    """The error that a text encodes; None if it is no tagged error (T1)."""
    found = _TAGGED.match(text)
    if found is None:
        return None
    message, *rest = found[2].split(_SEPARATOR)
    detail, hint, context, place = (*[part or None for part in rest], *[None] * 4)[:4]
    position = None if place is None else int(place)
    return SqlError(found[1], message, position, detail=detail, hint=hint, context=context)
