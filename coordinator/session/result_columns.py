"""Determine the result columns of a bound statement before it runs, for Describe."""

from collections.abc import Sequence

from coordinator.execution.explain_columns import EXPLAIN_COLUMNS, explain_columns
from coordinator.execution.settings import show_columns
from coordinator.variables.variables import Variables
from sql.errors import SqlError
from sql.statements.bound import (
    BoundQuery,
    BoundStatement,
    Explain,
    ExplainTimestamp,
    Modify,
    ModifyingWith,
    OutputColumn,
    Subscribe,
)
from sql.statements.session import ShowVariable
from sql.types.enums import is_enum
from sql.types.sql_type import SqlType


def result_columns(bound: BoundStatement, variables: Variables) -> tuple[OutputColumn, ...] | None:
    """None if it never yields rows."""
    match bound:
        case BoundQuery() | Subscribe():
            return bound.columns
        case Modify():
            return None if bound.returning is None else bound.columns
        case ModifyingWith():
            return result_columns(bound.main, variables)
        case ShowVariable():
            return show_columns(variables, bound)
        case Explain():
            return explain_columns(bound)
        case ExplainTimestamp():
            return EXPLAIN_COLUMNS
        case _:
            return None


def check_promised_columns(
    promised: tuple[OutputColumn, ...] | None, bound: BoundStatement, variables: Variables
) -> None:
    """Raises 0A000 if a client was promised other columns than the statement has now.

    pgjdbc knows by the routine that it can prepare the statement again and go on.
    """
    if promised is None:
        return
    columns = result_columns(bound, variables) or ()
    if _told(promised) != _told(columns):
        # Drivers (pgjdbc, asyncpg, pgx ..) prepare the statement anew if the routine is this one.
        message = "cached plan must not change result type"
        raise SqlError("0A000", message, routine="RevalidateCachedQuery")


def _told(columns: Sequence[OutputColumn]) -> list[tuple[str, SqlType | int]]:
    """What a client was told of columns, or would be. An enum is its oid: its labels may change."""
    return [
        (
            column.name,
            column.type.oid if is_enum(column.type.name.removeprefix("_")) else column.type,
        )
        for column in columns
    ]


def keeps_promise(promised: tuple[OutputColumn, ...] | None, bound: BoundStatement) -> bool:
    """Whether a statement has the columns that a client was promised, if it was."""
    if promised is None:
        return True
    return isinstance(bound, BoundQuery | Modify) and promised == bound.columns
