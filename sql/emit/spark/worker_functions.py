"""Compute expressions that Spark lacks in its Python workers, with the reference evaluator.

    a -> 'x' ->> 'y' = 'z'  ─▶  (case when f(a).e is null then f(a).v else raise_error(f(a).e) end)
                                 = 'z';  f: `$0 -> 'x' ->> 'y'`, an Arrow function of one column

An expression that Spark cannot compute itself goes to the workers whole, down to its columns:
however deep it is, rows cross to Python once. Spark computes the expressions above it, so that
joins have their keys and conditions are pushed down.

INVARIANTS
  O1  a function takes columns and values of subqueries; constants and parameters are part of it.
      Its name is a hash of all of it, so equal names are equal functions.
  O2  a function never fails for a row: it answers (v, e), and the error e is raised where v is
      used. Spark computes functions for all rows at once, also for those that a CASE passes over.
  O3  a volatile call, and one over aggregates, is written once: Spark computes equal texts together
      only if they are over columns and not volatile. One over a subquery cannot be written once:
      Spark takes no subquery among the arguments of a lambda's function.
  O4  there is no function within a lambda: Spark runs none there. The whole call that the lambda
      belongs to goes to the workers then.

Not here: running them (`compute/spark/python_functions.py`), registering them with Spark
(`compute/spark/functions.py`).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from sql.emit.spark.types import HINT, bind_variable
from sql.emit.state import Scope, WorkerFunction
from sql.errors import SqlError
from sql.functions.table import function_by_id
from sql.plan.nodes import (
    Aggregate,
    Call,
    ColumnId,
    ColumnRef,
    Const,
    Expr,
    Param,
    SortKey,
    Subquery,
)
from sql.plan.renumbering import free_columns
from sql.plan.traverse import is_volatile_expression, rewrite_children
from sql.types.sql_type import BYTEA, SqlType

NOT_SUPPORTED: Final = "0A000"
_NO_FIELDS: Final = ("'x0', true",)


class NotComputable(SqlError):
    """0A000 for good: neither the workers nor a larger expression can compute it."""


class UncorrelatedSubqueryRefused(NotComputable):
    """0A000, unless uncorrelated subqueries become columns (`hoist_uncorrelated_values.py`)."""


class FunctionInputs:
    """The columns of a function. They are told apart by their repr: 0.0 and -0.0 are equal."""

    def __init__(self) -> None:
        self.parts: list[Expr] = []
        self._columns: dict[str, ColumnRef] = {}

    def column(self, part: Expr) -> ColumnRef:
        """The column that has the values of this part."""
        found = self._columns.get(repr(part))
        if found is None:
            found = self._columns[repr(part)] = ColumnRef(ColumnId(len(self.parts)), part.type)
            self.parts.append(part)
        return found

    @property
    def types(self) -> tuple[SqlType, ...]:
        """The types of all columns."""
        return tuple([part.type for part in self.parts])


def native_or_in_worker(expr: Expr, scope: Scope, native: Callable[[Expr, Scope], str]) -> str:
    """Spark's own text of an expression, or a call of a worker's function that computes it."""
    statement = scope.statement
    depth, known = statement.depth, len(statement.functions)
    try:
        return native(expr, scope)
    except NotComputable:
        raise
    except SqlError as error:
        if error.sqlstate != NOT_SUPPORTED or scope.in_lambda:
            raise
        if _is_input(expr):
            raise NotComputable(NOT_SUPPORTED, error.message, hint=error.hint) from error
        # What the attempt has left behind.
        statement.depth = depth
        while len(statement.functions) > known:
            statement.functions.popitem()
    return _outside(expr, scope)


def _is_input(expr: Expr) -> bool:
    return isinstance(expr, Const | Param | ColumnRef | Subquery)


def _outside(expr: Expr, scope: Scope) -> str:
    inputs = FunctionInputs()

    def within(part: Expr) -> Expr:
        if isinstance(part, Param):
            return parameter_constant(part, scope)
        if isinstance(part, ColumnRef | Subquery):
            return inputs.column(part)
        return rewrite_children(part, within)

    function = within(expr)
    if any(isinstance(part, Subquery) and not free_columns(part.plan) for part in inputs.parts):
        # Spark merges the equal ones into a plan that it cannot compare where functions run.
        what = "a subquery of its own in a function that Spark lacks,"
        raise UncorrelatedSubqueryRefused(
            NOT_SUPPORTED, f"{what} on the spark engine is not supported", hint=HINT
        )
    inside = replace(scope, filtering=False)
    texts = [inside.emit(part) for part in inputs.parts]
    once = is_volatile_expression(expr)
    return _called(WorkerFunction(function, inputs.types), texts, scope, once=once)


def parameter_constant(param: Param, scope: Scope) -> Const:
    """The parameter's value as a constant, which is part of the text."""
    known = scope.statement.known(param)
    assert known is not None, "a parameter has a value"
    return Const(known[0], param.type)


def _called(function: WorkerFunction, args: Sequence[str], scope: Scope, *, once: bool) -> str:
    """The value of a function over these texts, or its error (O2, O3)."""
    # Spark has no functions without arguments.
    text = f"{scope.statement.function(function)}({', '.join(args) or 'true'})"
    if not once:
        return f"(case when {text}.e is null then {text}.v else raise_error({text}.e) end)"
    answer = scope.variable()
    value = f"case when {answer}.e is null then {answer}.v else raise_error({answer}.e) end"
    return bind_variable(answer, text, value)


def jsonb_sort_key_call(arg: Expr) -> Call:
    """A jsonb as bytes that compare as it does."""
    return Call(function_by_id("sort_key(jsonb)"), (arg,), BYTEA)


def aggregate_in_worker(call: Aggregate, scope: Scope, over: str = "") -> str:
    """The aggregate over a list of all rows: the evaluator handles NULLs, DISTINCT and order."""
    inputs = FunctionInputs()

    def column(part: Expr) -> Expr:
        if isinstance(part, Param):
            return parameter_constant(part, scope)
        if isinstance(part, Const):
            return part
        return inputs.column(part)

    args = tuple([column(arg) for arg in call.args])
    order = tuple([_over_columns(key, column) for key in call.order])
    plain = replace(call, args=args, order=order, filter=None)
    fields = [f"'x{number}', {scope.emit(part)}" for number, part in enumerate(inputs.parts)]
    row = f"named_struct({', '.join(fields or _NO_FIELDS)})"
    if call.filter is not None:
        # A list leaves out NULLs.
        row = f"case when {scope.emit(call.filter)} then {row} end"
    function = WorkerFunction(plain, inputs.types)
    return _called(function, [f"collect_list({row}){over}"], scope, once=True)


def _over_columns(key: SortKey, column: Callable[[Expr], Expr]) -> SortKey:
    return replace(key, expr=column(key.expr))
