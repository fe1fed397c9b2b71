"""SET, RESET, SHOW, DISCARD and transaction control: statements about the session itself."""

import pyarrow as pa

from coordinator.execution import Done, Execution, Rows, held
from coordinator.pgwire.messages import Severity
from coordinator.variables import Variables
from sql.errors import SqlError
from sql.statements import (
    OutputColumn,
    ResetVariable,
    SetVariable,
    ShowVariable,
    TransactionControl,
    TransactionVerb,
)
from sql.types import TEXT


def show_columns(variables: Variables, statement: ShowVariable) -> tuple[OutputColumn, ...]:
    """The columns of SHOW: one called after the variable, or three for SHOW ALL."""
    if statement.name == "all":
        return tuple(OutputColumn(name, TEXT) for name in ("name", "setting", "description"))
    return (OutputColumn(variables.canonical(statement.name), TEXT),)


def execute_show(execution: Execution, statement: ShowVariable) -> Rows:
    """SHOW."""
    variables = execution.variables
    columns = show_columns(variables, statement)
    if statement.name == "all":
        rows: list[tuple[str, ...]] = [
            (row.name, row.value, row.description) for row in variables.all()
        ]
    else:
        rows = [(variables.get(statement.name),)]
    return Rows(columns, held(text_table(columns, rows)), lambda _count: "SHOW")


def text_table(columns: tuple[OutputColumn, ...], rows: list[tuple[str, ...]]) -> pa.Table:
    """Rows of text as a result."""
    names = [column.name for column in columns]
    arrays = [pa.array([row[place] for row in rows], pa.string()) for place in range(len(columns))]
    return pa.Table.from_arrays(arrays, names=names)


def execute_set(execution: Execution, statement: SetVariable | ResetVariable) -> Done:
    """SET, SET LOCAL, RESET."""
    match statement:
        case SetVariable():
            if statement.local and not execution.transaction.in_block:
                warning = SqlError("25P01", "SET LOCAL can only be used in transaction blocks")
                execution.notice(warning, Severity.WARNING)
            for item in (statement, *statement.also):
                execution.variables.set(item.name, item.value, local=item.local)
            return Done("SET")
        case ResetVariable():
            execution.variables.reset(statement.name)
            return Done("RESET")


async def execute_control(execution: Execution, control: TransactionControl) -> Done:
    """BEGIN, COMMIT, ROLLBACK, SET TRANSACTION."""
    transaction = execution.transaction
    warning: SqlError | None = None
    match control.verb:
        case TransactionVerb.BEGIN | TransactionVerb.START:
            warning = transaction.begin_block(control)
            tag = "BEGIN" if control.verb is TransactionVerb.BEGIN else "START TRANSACTION"
        case TransactionVerb.SET:
            warning = transaction.set_modes(control)
            tag = "SET"
        case TransactionVerb.COMMIT:
            warning = _outside(execution, control)
            modes = _modes(execution, control)
            tag = "COMMIT" if await transaction.commit() else "ROLLBACK"
            _chain(execution, modes)
        case TransactionVerb.ROLLBACK:
            warning = _outside(execution, control)
            modes = _modes(execution, control)
            transaction.rollback()
            tag = "ROLLBACK"
            _chain(execution, modes)
    if warning is not None:
        execution.notice(warning, Severity.WARNING)
    return Done(tag)


def _outside(execution: Execution, control: TransactionControl) -> SqlError | None:
    if execution.transaction.in_block:
        return None
    if control.chain:
        word = control.verb.value.upper()
        raise SqlError("25P01", f"{word} AND CHAIN can only be used in transaction blocks")
    return SqlError("25P01", "there is no transaction in progress")


def _modes(execution: Execution, control: TransactionControl) -> TransactionControl | None:
    if not control.chain:
        return None
    return TransactionControl(TransactionVerb.BEGIN, read_only=execution.transaction.read_only)


def _chain(execution: Execution, modes: TransactionControl | None) -> None:
    if modes is not None:
        execution.transaction.begin_block(modes)
