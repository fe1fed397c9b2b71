"""Format a row for `Failing row contains (..)`, in the session's time zone and styles."""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from coordinator.variables.variables import Variables
from ingest.copy_text.arrow_types import to_values
from sql.catalog.catalog import Column
from sql.types.sql_type import Value
from sql.types.styled_output import styled_text

SHOWN_CHARACTERS_MAX: Final = 64
"""PostgreSQL cuts values there, so that an error never carries a large row."""


def failing_row(variables: Variables, columns: Sequence[Column], row: pa.RecordBatch) -> str:
    """The values of a one-row batch, separated by commas."""
    assert row.num_rows == 1, "one row fails at a time"
    return ", ".join(
        _shown(variables, column, to_values(row.column(ordinal), column.type)[0])
        for ordinal, column in enumerate(columns)
    )


def _shown(variables: Variables, column: Column, value: Value) -> str:
    if value is None:
        return "null"
    text = styled_text(value, column.type, variables.styles, timezone=variables.timezone)
    if len(text) <= SHOWN_CHARACTERS_MAX:
        return text
    return text[:SHOWN_CHARACTERS_MAX] + "..."
