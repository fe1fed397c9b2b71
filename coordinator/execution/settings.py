"""Execute SET, RESET, SHOW, LISTEN and transaction control: statements about the session itself."""

from typing import TypeAlias

import pyarrow as pa

from coordinator import session_errors as wrong
from coordinator.execution.context import Done, Execution, Rows, stream_table
from coordinator.pgwire.messages import Severity
from coordinator.variables.session_roles import ROLE, SESSION_AUTHORIZATION, look_up_role
from coordinator.variables.variables import TRANSACTION_MODES, Variables
from sql.binder.resolve.role_names import session_roles
from sql.errors import SqlError
from sql.statements.bound import OutputColumn
from sql.statements.session import (
    Listen,
    NotificationStatement,
    Notify,
    ResetVariable,
    SetVariable,
    ShowVariable,
    TransactionControl,
    TransactionVerb,
    Unlisten,
)
from sql.types.sql_type import TEXT
from storage.types import Timestamp

AsOf: TypeAlias = tuple[Timestamp, bool]
"""A timestamp, and whether a later one would do."""


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
        rows = [(variables.show(statement.name),)]
    return Rows(columns, stream_table(text_table(columns, rows)), lambda _count: "SHOW")


def text_table(columns: tuple[OutputColumn, ...], rows: list[tuple[str, ...]]) -> pa.Table:
    """Rows of text as a result."""
    names = [column.name for column in columns]
    arrays = [pa.array([row[place] for row in rows], pa.string()) for place in range(len(columns))]
    return pa.Table.from_arrays(arrays, names=names)


async def execute_set(execution: Execution, statement: SetVariable | ResetVariable) -> Done:
    """SET, SET LOCAL, RESET."""
    match statement:
        case SetVariable():
            if statement.local and execution.transaction.warns_outside:
                words = "SET LOCAL can only be used in transaction blocks"
                _warn(execution, "25P01", words)
            for item in (statement, *statement.also):
                await apply_setting(execution, item.name, item.value, local=item.local)
            return Done("SET")
        case ResetVariable(name="all"):
            execution.transaction.fix_modes()
            execution.variables.reset_all()
            return Done("RESET")
        case ResetVariable():
            await apply_setting(execution, statement.name, None, local=False)
            return Done("RESET")


def execute_notification(execution: Execution, statement: NotificationStatement, tag: str) -> Done:
    """LISTEN, UNLISTEN, NOTIFY: they take effect when the transaction commits."""
    pending = execution.transaction.notifications
    match statement:
        case Listen(channel=channel):
            pending.listen(channel)
        case Unlisten(channel=channel):
            pending.unlisten(channel)
        case Notify(channel=channel, payload=payload):
            pending.notify(channel, payload)
    return Done(tag)


async def apply_setting(execution: Execution, name: str, value: str | None, *, local: bool) -> None:
    """Set a variable, or a mode of the transaction; None is DEFAULT."""
    key = name.lower()
    if key in TRANSACTION_MODES:
        execution.transaction.set_mode(key, value, local=local, alone=execution.alone)
        return
    execution.transaction.fix_modes()
    if key in (ROLE, SESSION_AUTHORIZATION) and value is not None:
        value = await _looked_up_role(execution, key, value)
    execution.variables.set(name, value, local=local)


async def _looked_up_role(execution: Execution, setting: str, value: str) -> str:
    """The role in the newest catalog, or in the transaction's own if that has definitions."""
    variables, catalog = execution.variables, execution.services.coordination.newest_catalog
    if execution.transaction.changed_catalog:
        catalog = (await execution.transaction.snapshot()).catalog
    return look_up_role(
        session_roles(catalog, variables.owner_alias),
        setting,
        value,
        connected=variables.connected,
        session_user=variables.session_user,
    )


async def execute_control(
    execution: Execution, control: TransactionControl, as_of: AsOf | None = None
) -> Done:
    """BEGIN, COMMIT, ROLLBACK, SET TRANSACTION, savepoints. `as_of`: of BEGIN."""
    transaction = execution.transaction
    match control.verb:
        case TransactionVerb.BEGIN | TransactionVerb.START:
            tag = "BEGIN" if control.verb is TransactionVerb.BEGIN else "START TRANSACTION"
            if transaction.in_block:
                _warn(execution, "25001", "there is already a transaction in progress")
            if as_of is not None:
                ts, at_least = as_of
                await transaction.begin_as_of(control, ts, at_least=at_least)
            else:
                transaction.begin_block(control)
            return Done(tag)
        case TransactionVerb.SET:
            if transaction.warns_outside:
                words = "SET TRANSACTION can only be used in transaction blocks"
                _warn(execution, "25P01", words)
            # It counts all the same, up to the end of the implicit transaction.
            if control.snapshot is not None:
                await transaction.adopt(control.snapshot)
            else:
                transaction.set_modes(control)
            return Done("SET")
        case TransactionVerb.COMMIT | TransactionVerb.ROLLBACK:
            return await _end(execution, control)
        case TransactionVerb.SAVEPOINT | TransactionVerb.RELEASE | TransactionVerb.ROLLBACK_TO:
            return _savepoint(execution, control.verb, control.name or "")


def _warn(execution: Execution, sqlstate: str, message: str) -> None:
    execution.notice(SqlError(sqlstate, message), Severity.WARNING)


async def _end(execution: Execution, control: TransactionControl) -> Done:
    transaction = execution.transaction
    if not transaction.in_block:
        if control.chain:
            raise wrong.only_in_block(f"{control.verb.value.upper()} AND CHAIN")
        _warn(execution, "25P01", "there is no transaction in progress")
    modes = execution.variables.modes if control.chain else None
    if control.verb is TransactionVerb.ROLLBACK:
        transaction.rollback()
        committed = False
    else:
        committed = await transaction.commit()
    if modes is not None:
        transaction.begin_chained(modes)
    return Done("COMMIT" if committed else "ROLLBACK")


def _savepoint(execution: Execution, verb: TransactionVerb, name: str) -> Done:
    transaction = execution.transaction
    match verb:
        case TransactionVerb.SAVEPOINT:
            transaction.savepoint(name)
            return Done("SAVEPOINT")
        case TransactionVerb.RELEASE:
            transaction.release(name)
            return Done("RELEASE")
        case _:
            transaction.rollback_to(name)
            return Done("ROLLBACK")
