"""The result columns of EXPLAIN and of EXPLAIN TIMESTAMP."""

from typing import Final

from sql.statements.bound import Explain, OutputColumn
from sql.types.sql_type import JSON, TEXT

EXPLAIN_COLUMNS: Final = (OutputColumn("QUERY PLAN", TEXT),)
_JSON_COLUMNS: Final = (OutputColumn("QUERY PLAN", JSON),)


def explain_columns(statement: Explain) -> tuple[OutputColumn, ...]:
    """The columns of the answer."""
    return _JSON_COLUMNS if statement.options.json else EXPLAIN_COLUMNS
