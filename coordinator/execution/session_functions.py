"""Evaluate functions that act on the session: set_config, txid_current, pg_notify and others.

The binder's side is `sql/binder/expressions/session_calls.py`.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from coordinator.execution.context import Execution
from coordinator.execution.settings import apply_setting
from coordinator.execution.signals import cancel_backend, terminate_backend
from coordinator.pgwire.messages import Severity
from coordinator.statistics.server_statistics import SLRU_NAMES
from ingest.copy_text.arrow_types import to_values
from sql.binder.bind import bind_with_context
from sql.binder.expressions.serial_sequences import serial_sequence
from sql.binder.expressions.session_calls import (
    ACCEPT_CLOCK,
    LAST_COMMIT_TIMESTAMP,
    STATEMENT_START,
    TRANSACTION_START,
)
from sql.errors import SqlError, not_supported
from sql.plan.nodes import ColumnId, Expr, PlanColumn, Values
from sql.statements.runtime_parameters import RuntimeParameter
from sql.types.sql_type import Interval, Value
from storage.clock import accept_clock

_DAY_S: Final = 86_400
_SLEEP_MAX_S: Final = 365 * _DAY_S
"""Longer sleeps end then; nobody has waited for one."""


def transaction_number(execution: Execution, kind: str, *, writes: bool) -> int | None:
    """txid_current() and txid_current_if_assigned(); `writes`: the calling statement writes."""
    transaction = execution.transaction
    wrote = transaction.wrote or transaction.changed_catalog
    if transaction.number is None and kind == "txid_current_if_assigned" and not wrote:
        if writes:
            # In PostgreSQL it depends on whether the first row has been written.
            raise not_supported("txid_current_if_assigned() in a statement that writes first")
        return None
    if transaction.number is None:
        transaction.number = execution.services.coordination.new_transaction_number()
    return transaction.number


def session_value(execution: Execution, kind: str, *, writes: bool) -> Value:
    """The value of one of `SESSION_VALUES`."""
    match kind:
        case "pg_notification_queue_usage":
            return execution.services.coordination.notifications.queue.usage
        case "pg_listening_channels":
            return execution.transaction.listening_channels
        case _ if kind == TRANSACTION_START:
            return execution.transaction.now()
        case _ if kind == STATEMENT_START:
            return execution.services.clock.now()
        case _ if kind == LAST_COMMIT_TIMESTAMP:
            return execution.transaction.last_write
        case "meridian_settings":
            settings = execution.variables.shown
            names = [*settings, *execution.variables.custom_names]
            return tuple([text for name in names for text in (name, settings[name])])
        case _:
            return transaction_number(execution, kind, writes=writes)


def notify(execution: Execution, channel: Value, payload: Value) -> str:
    """pg_notify(). It shows nothing: void. NULL is the empty text."""
    execution.transaction.notifications.notify(str(channel or ""), str(payload or ""))
    return ""


async def call_session_function(execution: Execution, call: RuntimeParameter) -> Value:
    """Make the call; its result."""
    values = await evaluate_arguments(execution, call.args, call.kind)
    return await session_function(execution, call.kind, values)


async def session_function_for_row(
    execution: Execution, name: str, values: Sequence[Value]
) -> Value:
    """The call for one row of a statement, which was bound under the settings from before it."""
    bound_under = execution.variables.evaluation_key
    found = await session_function(execution, name, values)
    if execution.variables.evaluation_key != bound_under:
        raise not_supported("set_config() of such a setting for each row")
    return found


async def session_function(execution: Execution, name: str, values: Sequence[Value]) -> Value:
    """The result of a call. A strict function of NULL does nothing."""
    match name, values:
        case "set_config", (setting, value, local):
            return await _set_config(execution, setting, value, local=local is True)
        case "current_setting", (setting, *missing_ok):
            if setting is None or None in missing_ok:
                return None
            return _setting(execution, str(setting), missing_ok=missing_ok == [True])
        case _ if name.startswith("pg_stat_"):
            return reset_statistics(execution, name, values)
        case _, (None,) | (None, _) | (_, None):
            return None
        case "pg_get_serial_sequence", (str() as table, str() as column):
            return bind_with_context(
                execution.context(), lambda binding: serial_sequence(binding, table, column)
            )
        case "pg_get_serial_sequence", _:
            return None
        case "pg_cancel_backend", (int() as pid,):
            return await cancel_backend(execution, pid)
        case "pg_terminate_backend", (int() as pid, *timeout):
            (wait_ms,) = timeout or (0,)
            assert isinstance(wait_ms, int), "its type is bigint"
            return await terminate_backend(execution, pid, wait_ms)
        case _, () if name == ACCEPT_CLOCK:
            return _accept_clock(execution)
        case "pg_reload_conf", ():
            return _reload(execution)
        case "pg_sleep", (float() as seconds,):
            return await _sleep(execution, seconds)
        case "pg_sleep_for", (Interval() as span,):
            return await _sleep(
                execution, (span.months * 30 + span.days) * _DAY_S + span.micros / 1e6
            )
        case "pg_sleep_until", (int() as until,):
            return await _sleep(execution, (until - execution.services.clock.now()) / 1e6)
        case _:
            raise AssertionError(f"{name} has no such arguments")


async def evaluate_arguments(
    execution: Execution, args: Sequence[Expr], name: str
) -> Sequence[Value]:
    """The values of arguments that consist of constants and parameters."""
    columns = tuple(PlanColumn(ColumnId(n), f"a{n}", arg.type) for n, arg in enumerate(args))
    plan = Values(columns, (tuple(args),))
    in_process = execution.services.in_process
    in_process.require(plan, f"{name}() of a computed argument")
    (row,) = (await in_process.answer(execution.run(plan, {}))).to_batches()
    return [to_values(row.column(n), arg.type)[0] for n, arg in enumerate(args)]


_SHARED: Final = ("archiver", "bgwriter", "checkpointer", "io", "recovery_prefetch", "slru", "wal")
_FOR_ALL: Final = ("pg_stat_clear_snapshot", "pg_stat_force_next_flush")
"""The others are for superusers: PostgreSQL has revoked them from everybody."""
_STRICT: Final = (
    "pg_stat_reset_backend_stats", "pg_stat_reset_single_function_counters",
    "pg_stat_reset_single_table_counters", "pg_stat_statements_reset",
)  # fmt: skip


def reset_statistics(execution: Execution, name: str, values: Sequence[Value]) -> Value:
    """pg_stat_reset() and its kin; pg_stat_statements_reset(), which tells when. Raises 42501 and
    22023.
    """
    if name not in _FOR_ALL and not execution.variables.current_user.is_superuser:
        raise SqlError("42501", f"permission denied for function {name}")
    statistics, database = execution.services.statistics, execution.context().database
    match name, values:
        case "pg_stat_statements_reset", (
            int() as user,
            int() as oid,
            int() as queryid,
            bool() as m,
        ):
            return statistics.reset_statements(user, oid, queryid, extremes=m)
        case _, _ if name in _STRICT and None in values:
            return None
        case "pg_stat_reset", ():
            statistics.reset_database(database)
        case "pg_stat_reset_single_table_counters", (int() as oid,):
            statistics.reset_relation(oid, database)
        case "pg_stat_reset_shared", (None,):
            for what in _SHARED:
                statistics.reset_shared(what)
        case "pg_stat_reset_shared", (str() as what,):
            if what not in _SHARED:
                hint = 'Target must be "archiver", "bgwriter", "checkpointer", "io",'
                raise SqlError(
                    "22023",
                    f'unrecognized reset target: "{what}"',
                    hint=f'{hint} "recovery_prefetch", "slru", or "wal".',
                )
            statistics.reset_shared(what)
        case "pg_stat_reset_slru", (target,):
            named = target if target in SLRU_NAMES else SLRU_NAMES[-1]
            statistics.reset_shared("slru" if target is None else f"slru:{named}")
        case "pg_stat_reset_replication_slot", (str() as slot,):
            raise SqlError("22023", f'replication slot "{slot}" does not exist')
        case "pg_stat_reset_subscription_stats", (0,):
            raise SqlError("22023", "invalid subscription OID 0")
        case _:
            pass  # nothing of this kind is counted
    return ""


def _accept_clock(execution: Execution) -> bool:
    """Believe the wall clock; whether it was doubted. It may take history away: 42501."""
    if not execution.variables.current_user.is_superuser:
        raise SqlError("42501", "permission denied for function accept_clock")
    return accept_clock(execution.services.clock)


def _reload(execution: Execution) -> bool:
    """Read the files again that say who may connect, as SIGHUP does. Raises 42501."""
    if not execution.variables.current_user.is_superuser:
        raise SqlError("42501", "permission denied for function pg_reload_conf")
    sessions = execution.services.sessions
    assert sessions is not None, "who calls is a session"
    if not sessions.reload():
        told = SqlError("01000", "a file is broken, so nothing has changed; the log says why")
        execution.notice(told, Severity.WARNING)
    # The signal was sent, whatever it has led to.
    return True


async def _sleep(execution: Execution, seconds: float) -> str:
    """What it shows is nothing: void."""
    if seconds > 0:
        with execution.transaction.waiting("Timeout", "PgSleep"):
            await asyncio.sleep(min(seconds, _SLEEP_MAX_S))
    return ""


async def _set_config(execution: Execution, name: Value, value: Value, *, local: bool) -> str:
    if name is None:
        raise SqlError("22004", "SET requires parameter name")
    shown = None if value is None else str(value)
    await apply_setting(execution, str(name), shown, local=local)
    return execution.variables.get(str(name))


def _setting(execution: Execution, name: str, *, missing_ok: bool) -> str | None:
    try:
        return execution.variables.show(name)
    except SqlError as error:
        if missing_ok and error.sqlstate != "42501":
            return None
        raise
