"""Determine the result columns of a bound statement before it runs, for Describe."""

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
    found = [(column.name, column.type) for column in columns]
    if [(column.name, column.type) for column in promised] != found:
        # Drivers (pgjdbc, asyncpg, pgx ..) prepare the statement anew if the routine is this one.
        message = "cached plan must not change result type"
        raise SqlError("0A000", message, routine="RevalidateCachedQuery")


def keeps_promise(promised: tuple[OutputColumn, ...] | None, bound: BoundStatement) -> bool:
    """Whether a statement has the columns that a client was promised, if it was."""
    if promised is None:
        return True
    return isinstance(bound, BoundQuery | Modify) and promised == bound.columns
