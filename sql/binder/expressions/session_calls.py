"""Functions that the session evaluates before a statement runs: set_config(), pg_sleep() and more.

They are listed in `sql/data/session.txt`. current_setting() of a computed name is one of them, too;
one of a name that rows have is looked up in all settings.

    select set_config('a.b', $1, true), pg_sleep(1)
           └─▶ Supplied: the session does it before the statement runs, in this order ─▶ a parameter

INVARIANTS
  S1  a function with a side effect is called exactly once where it stands in the list of a SELECT
      without FROM, or in FROM, alone there and under nothing that could skip it. In a target list
      over rows it is called for each of them (`row_calls.py`). Anywhere else it is refused.
  S2  its arguments are computed from constants and parameters alone.
  S3  a statement is bound under the settings that hold before it runs. If it changes a setting that
      binding depends on (DateStyle, TimeZone, search_path ..), it must not compute anything else.
      Where set_config() is called for each row, no current_setting() is beside it.
  S4  the clock is a runtime parameter in rows of VALUES and in lists of SET: such a plan is good
      for every transaction. Elsewhere it is a constant, which the plan may be made of.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from sql.binder.state import RUNTIME_PARAMETER_BASE, Binding, Scope
from sql.errors import not_supported
from sql.functions.table import Function, function_by_id
from sql.plan.nodes import (
    Call,
    ColumnRef,
    Const,
    CteScan,
    Expr,
    IsTest,
    Param,
    Plan,
    Project,
    Values,
    With,
)
from sql.plan.traverse import child_expressions, column_ids
from sql.statements.bound import BoundQuery, BoundStatement, Explain
from sql.statements.runtime_parameters import RuntimeParameter
from sql.types.sql_type import BOOL, FLOAT8, INT8, TEXT, TIMESTAMPTZ, SqlType

ACCEPT_CLOCK: Final = "meridian.accept_clock"
LAST_COMMIT_TIMESTAMP: Final = "meridian.last_commit_timestamp"
"""With their schema, which keeps them apart from functions that are found by name alone."""

SIDE_EFFECT_FUNCTIONS: Final = frozenset(
    {
        ACCEPT_CLOCK,
        "pg_cancel_backend",
        "pg_reload_conf",
        "pg_sleep",
        "pg_sleep_for",
        "pg_sleep_until",
        "pg_stat_clear_snapshot",
        "pg_stat_force_next_flush",
        "pg_stat_reset",
        "pg_stat_reset_backend_stats",
        "pg_stat_reset_replication_slot",
        "pg_stat_reset_shared",
        "pg_stat_reset_single_function_counters",
        "pg_stat_reset_single_table_counters",
        "pg_stat_reset_slru",
        "pg_stat_reset_subscription_stats",
        "pg_stat_statements_reset",
        "pg_terminate_backend",
        "set_config",
    }
)


TRANSACTION_NUMBER_FUNCTIONS: Final = frozenset({"txid_current", "txid_current_if_assigned"})
"""Functions that return the transaction's number, which is assigned on first demand."""

TRANSACTION_START: Final = "now"
STATEMENT_START: Final = "statement_timestamp"
CLOCK_FUNCTIONS: Final = frozenset({TRANSACTION_START, STATEMENT_START})

SESSION_VALUES: Final = {
    **dict.fromkeys(sorted(TRANSACTION_NUMBER_FUNCTIONS), INT8),
    "pg_notification_queue_usage": FLOAT8,
    "pg_listening_channels": SqlType("_text"),
    "meridian_settings": SqlType("_text"),
    LAST_COMMIT_TIMESTAMP: INT8,
    **dict.fromkeys(sorted(CLOCK_FUNCTIONS), TIMESTAMPTZ),
}
"""Functions without arguments that have one value for the whole statement; of a set, an array.
`meridian_settings`: names of settings, each with its value behind it.
"""
_RULES: Final = frozenset(
    {
        "check constraints",
        "domain constraints",
        "index expressions",
        "COPY FROM WHERE conditions",
        "transform expressions",
    }
)
"""Clauses of a table's own, which are bound without a statement around them."""


def session_call_parameter(
    binding: Binding, name: str, args: Sequence[Expr], type_: SqlType, place: int | None
) -> Param:
    """A runtime parameter for the session's result of the call."""
    for arg in args:
        if next(iter(column_ids(arg)), None) is not None or any(_is_supplied(e) for e in _all(arg)):
            raise not_supported(f"{name}() of a computed argument", place)
    binding.uses_session = True
    binding.supplied.append(RuntimeParameter(name, args=tuple(args)))
    return Param(RUNTIME_PARAMETER_BASE + len(binding.supplied), type_)


def session_call_for_rows(
    binding: Binding, function: Function, args: tuple[Expr, ...], type_: SqlType
) -> Call:
    """A call that is made for each row that the statement yields."""
    binding.uses_session = binding.acts = True
    binding.sets_for_rows |= function.name == "set_config"
    return Call(function, args, type_, binding.new_id())


def depends_on_rows(expr: Expr) -> bool:
    """Whether an argument is computed from rows."""
    return next(iter(column_ids(expr)), None) is not None


def setting_of_each_row(
    binding: Binding, scope: Scope, args: Sequence[Expr], place: int | None
) -> Expr:
    """`current_setting(column [, missing_ok])`, of settings as they are before the statement."""
    if changes_settings(binding):
        raise not_supported("current_setting() of a computed argument beside set_config()", place)
    settings = session_value_parameter(binding, "meridian_settings", scope, place)
    name, *missing_ok = args
    missing = missing_ok[0] if missing_ok else Const(False, BOOL)
    return Call(function_by_id("setting_of(_text,text,bool)"), (settings, name, missing), TEXT)


def session_value_parameter(binding: Binding, name: str, scope: Scope, place: int | None) -> Param:
    """A call of one of `SESSION_VALUES`."""
    if scope.clause in _RULES:
        raise not_supported(f"{name}() in {scope.clause}", place)
    binding.uses_session = True
    return _session_value(binding, name)


def _session_value(binding: Binding, name: str) -> Param:
    known = [each.kind for each in binding.supplied]
    if name not in known:
        binding.supplied.append(RuntimeParameter(name))
        known.append(name)
    return Param(RUNTIME_PARAMETER_BASE + known.index(name) + 1, SESSION_VALUES[name])


def clock_value(binding: Binding, name: str) -> Const | Param:
    """The value of one of `CLOCK_FUNCTIONS` (S4)."""
    if (binding.makes_rows or binding.assigns) and not binding.explains:
        return _session_value(binding, name)
    binding.uses_now = binding.uses_session = True
    context = binding.context
    started = context.now if context.statement_now is None else context.statement_now
    return Const(context.now if name == TRANSACTION_START else started, TIMESTAMPTZ)


def changes_settings(binding: Binding) -> bool:
    """Whether one of the statement's calls changes a setting."""
    return any(supplied.kind == "set_config" for supplied in binding.supplied)


def check_side_effects(bound: BoundStatement, supplied: Sequence[RuntimeParameter]) -> None:
    """0A000 for a side effect in a position that may be skipped, or evaluated for every row
    (S1).
    """
    wanted = {
        RUNTIME_PARAMETER_BASE + number: call.kind
        for number, call in enumerate(supplied, 1)
        if call.kind in SIDE_EFFECT_FUNCTIONS
    }
    if not wanted:
        return
    if isinstance(bound, Explain):
        bound = bound.statement
    always: set[int] = set()
    if isinstance(bound, BoundQuery):
        always = {param.index for expr in _once(bound.plan) for param in _always(expr)}
    for index, name in wanted.items():
        if index not in always:
            raise not_supported(f"{name}() anywhere but in the list of a SELECT or alone in FROM")


def check_settings_for_rows(binding: Binding) -> None:
    """0A000 for a setting that is read beside calls that set it row by row (S3)."""
    if binding.sets_for_rows and binding.reads_settings:
        raise not_supported("set_config() for each row beside current_setting()")


def computes_more_than_calls(bound: BoundStatement) -> bool:
    """Whether a query computes more than its runtime parameters, under the settings from before
    (S3).
    """
    if not isinstance(bound, BoundQuery):
        return False
    made = _once(bound.plan)
    return not made or not all(isinstance(expr, Param | Const | ColumnRef) for expr in made)


def _once(plan: Plan) -> Sequence[Expr]:
    """The expressions of a query that makes one row of nothing else, each computed once."""
    match plan:
        case Project(input=Values(columns=(), rows=rows)) if len(rows) == 1:
            return plan.exprs
        case Project(input=Project() | With() as made):
            below = _once(made)
            return (*plan.exprs, *below) if below else ()
        case With(input=Project(input=CteScan(cte=cte)) as read) if cte == plan.cte:
            # An unread WITH query is not computed; this one is read to its end.
            below = _once(plan.definition)
            return (*read.exprs, *below) if below else ()
        case _:
            return ()


def _always(expr: Expr) -> Iterator[Param]:
    if isinstance(expr, Param):
        yield expr
    elif isinstance(expr, Call):
        for arg in expr.args:
            yield from _always(arg)
    elif isinstance(expr, IsTest):
        yield from _always(expr.arg)


def _all(expr: Expr) -> Iterator[Expr]:
    yield expr
    for child in child_expressions(expr):
        yield from _all(child)


def _is_supplied(expr: Expr) -> bool:
    return isinstance(expr, Param) and expr.index > RUNTIME_PARAMETER_BASE
