"""Write bound expressions as Spark SQL.

INVARIANTS
  X1  every text is closed: a name, a call, a cast or a parenthesis, fit to stand anywhere.
  X2  every call is cast to the Spark type of its result, except booleans
      and text.
  X3  an expression without a template, or refused by it, is computed by the reference evaluator in
      Python workers (`worker_functions.py`).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from sql.emit import enums
from sql.emit.in_subqueries import in_by_count
from sql.emit.limits import is_correlated_single_row
from sql.emit.repeated_arguments import write_call
from sql.emit.spark import arrays as spark_arrays
from sql.emit.spark import decimals as spark_decimals
from sql.emit.spark import floats as spark_floats
from sql.emit.spark import text as spark_text
from sql.emit.spark import times as spark_times
from sql.emit.spark.array_subqueries import array_subquery_as_aggregate
from sql.emit.spark.single_row_subqueries import single_row_condition
from sql.emit.spark.types import bind_variable, error, spark_type, unsupported
from sql.emit.spark.worker_functions import native_or_in_worker
from sql.emit.state import DEPTH_MAX, TEXT_MAX, Scope
from sql.emit.templates import fill_template, function_description
from sql.errors import statement_too_complex
from sql.plan.constant_rows import rows_as_conditions
from sql.plan.folded_calls import is_folded_call
from sql.plan.nodes import (
    AnyAll,
    BoolOp,
    Call,
    Case,
    Coalesce,
    ColumnRef,
    Const,
    Distinct,
    Expr,
    Extreme,
    InList,
    InRows,
    IsTest,
    Logical,
    Param,
    Plan,
    Subquery,
    SubqueryKind,
    output_columns,
)
from sql.plan.renumbering import expression_columns, free_columns
from sql.plan.traverse import has_subquery, is_volatile_plan, scans
from sql.rewrite.failure_analysis import plan_may_fail
from sql.rewrite.outer_and_subquery_conditions import has_outer_and_subquery_condition
from sql.rewrite.trivial_scalar_subqueries import trivial_subquery_value
from sql.types.enums import is_enum, storage_type_name
from sql.types.sql_type import SqlType

Special = Callable[[Call, Scope], str]

SPECIALS: Final[dict[str, Special]] = {
    "checked": enums.domain_value_or_error,
    "enum_bound": enums.enum_first_or_last,
    "enum_compare": enums.compare_enums,
    "enum_range": enums.enum_range_of_type,
    **spark_arrays.SPECIALS,
    **spark_floats.SPECIALS,
    **spark_decimals.SPECIALS,
    **spark_text.SPECIALS,
    **spark_times.SPECIALS,
}
"""The templates that need more than text: named `@name` in the function table."""

_IN: Final = frozenset({SubqueryKind.IN, SubqueryKind.NOT_IN})
_CONDITIONS: Final = _IN | {SubqueryKind.EXISTS}
"""Subqueries that are joins where they stand as conditions."""
_CLOSED: Final = frozenset(
    {"bool", "text", "varchar", "bpchar", "name", "char", "uuid", "interval"}
)


def expression(expr: Expr, scope: Scope) -> str:
    """The text of an expression (X1)."""
    statement = scope.statement
    statement.depth += 1
    if statement.depth > DEPTH_MAX:
        raise statement_too_complex()
    text = native_or_in_worker(expr, scope, _expression)
    statement.depth -= 1
    if len(text) > TEXT_MAX:
        raise statement_too_complex()
    return text


def _expression(expr: Expr, scope: Scope) -> str:
    inner = replace(scope, filtering=False) if scope.filtering else scope
    match expr:
        case Const():
            return scope.statement.constant(expr.value, expr.type)
        case Param():
            return scope.statement.parameter(expr)
        case ColumnRef():
            return scope.columns[expr.id]
        case Call():
            return _call(expr, inner)
        case Logical():
            return _logical(expr, scope)
        case IsTest():
            return f"({inner.emit(expr.arg)} {expr.test.value})"
        case Distinct():
            return _distinct(expr, inner)
        case Case():
            whens = " ".join(
                f"when {inner.emit(when)} then {inner.emit(then)}" for when, then in expr.whens
            )
            return _typed(f"case {whens} else {inner.emit(expr.otherwise)} end", expr.type)
        case Coalesce():
            return f"coalesce({_list(expr.args, inner)})"
        case Extreme() if is_enum(expr.type.name):
            return _typed(enums.enum_greatest_or_least(expr, inner), expr.type)
        case Extreme():
            return _extreme(expr, inner)
        case InList():
            negation = "not " if expr.negated else ""
            items = ", ".join(inner.key(item, "comparing") for item in expr.items)
            return f"({inner.key(expr.arg, 'comparing')} {negation}in ({items}))"
        case InRows():
            return _logical(rows_as_conditions(expr), scope)
        case AnyAll():
            return spark_arrays.any_all(expr, inner)
        case Subquery():
            return _subquery(expr, scope)


def _list(exprs: Sequence[Expr], scope: Scope) -> str:
    return ", ".join(scope.emit(expr) for expr in exprs)


def _typed(text: str, type_: SqlType) -> str:
    return (
        f"({text})"
        if storage_type_name(type_.name) in _CLOSED
        else f"cast({text} as {spark_type(type_)})"
    )


def _comparable(type_: SqlType) -> None:
    """Intervals compare by a sum of their fields, jsonb by what it holds: Spark knows neither."""
    if not spark_arrays.compares_natively(type_):
        raise unsupported(f"comparing values of type {type_.name} here")


def _logical(expr: Logical, scope: Scope) -> str:
    if expr.op is BoolOp.NOT:
        # NOT over IN and EXISTS is still a filter for Spark; over anything else it does no harm.
        return f"(not {scope.emit(expr.args[0])})"
    return "(" + f" {expr.op.value} ".join(scope.emit(arg) for arg in expr.args) + ")"


def _distinct(expr: Distinct, scope: Scope) -> str:
    left, right = (scope.key(side, "comparing") for side in (expr.left, expr.right))
    same = f"({left} <=> {right})"
    return same if expr.negated else f"(not {same})"


def _extreme(expr: Extreme, scope: Scope) -> str:
    _comparable(expr.type)
    if len(expr.args) == 1:
        return scope.emit(expr.args[0])
    if expr.type.element is not None:
        return _extreme_of_arrays(expr, scope)
    return f"{'greatest' if expr.greatest else 'least'}({_list(expr.args, scope)})"


def _extreme_of_arrays(expr: Extreme, scope: Scope) -> str:
    """Spark orders NULL elements first."""
    row = f"struct({spark_arrays.array_sort_text('a', expr.type)} as k, a as v)"
    rows = f"transform(array({_list(expr.args, scope)}), a -> {row})"
    chosen = "array_max" if expr.greatest else "array_min"
    return f"{chosen}(filter({rows}, r -> r.v is not null)).v"


def _call(call: Call, scope: Scope) -> str:
    if any(map(has_subquery, call.args)):
        # None is computed once over a variable (O3 of `worker_functions.py`).
        return _by_template(call, scope)
    return write_call(call, scope, _by_template, _bound)


def _by_template(call: Call, scope: Scope) -> str:
    template = call.function.spark
    if template is None:
        raise unsupported(function_description(call.function))
    if template.startswith("@"):
        return _typed(SPECIALS[template[1:]](call, scope), call.type)
    if is_folded_call(call):
        raise statement_too_complex("Write sums of fewer terms for the engine spark.")
    return _typed(fill_template(template, [scope.emit(arg) for arg in call.args], error), call.type)


def _bound(name: str, fields: Sequence[str], body: str) -> str:
    given = ", ".join(f"'f{at}', {text}" for at, text in enumerate(fields))
    return bind_variable(name, f"named_struct({given})", body)


# --- subqueries --------------------------------------------------------------------------------


def _subquery(expr: Subquery, scope: Scope) -> str:
    if scope.in_lambda:
        # Sessions allow them in the arguments of lambdas; in a lambda Spark has no join for them.
        raise unsupported("a subquery in a function of an array's elements")
    inner = replace(scope, filtering=False)
    alone = trivial_subquery_value(expr)
    if alone is not None:
        return inner.emit(alone)
    if expr.kind is SubqueryKind.ARRAY:
        return inner.emit(array_subquery_as_aggregate(expr))
    as_condition = scope.filtering and expr.kind in _CONDITIONS and not _is_value(expr)
    if not as_condition:
        _check_volatile(expr.plan)
    if (of_row := single_row_condition(expr)) is not None:
        return inner.emit(of_row)
    query = scope.subplan(expr.plan, inner)
    match expr.kind:
        case SubqueryKind.SCALAR:
            return f"({_only_row(expr.plan, query, scope) or query})"
        case SubqueryKind.EXISTS:
            if as_condition:
                return f"exists ({query})"
            return f"((select count(1) from ({query}) {scope.statement.alias()}) > 0L)"
        case SubqueryKind.IN | SubqueryKind.NOT_IN:
            for arg in expr.args:
                if not is_enum(arg.type.name):
                    _comparable(arg.type)
                if not scope.nearest.issuperset(expression_columns(arg)):
                    raise unsupported("IN over columns of a query further out")
            if not as_condition:
                # Spark knows IN as a condition only.
                return in_by_count(expr, inner, query)
            left = _list(expr.args, inner)
            left = left if len(expr.args) == 1 else f"({left})"
            return f"({left} {expr.kind.value} ({query}))"


def _is_value(expr: Subquery) -> bool:
    """Whether a condition has to be a value (X1 of `outer_and_subquery_conditions.py`).

    The join that Spark makes of IN computes what it looks in of all rows.
    """
    if has_outer_and_subquery_condition(expr.plan):
        return True
    fails = expr.kind in _IN and plan_may_fail(expr.plan, by_overflow=False)
    return fails and bool(free_columns(expr.plan))


def _only_row(plan: Plan, query: str, scope: Scope) -> str | None:
    """The first row for a outer row as an aggregate: that there is but one Spark does not see in
    a row's number, and where it counts the rows it has no join by the key but of small tables.
    """
    if not is_correlated_single_row(plan, scope):
        return None
    alias, (column,) = scope.statement.alias(), output_columns(plan)
    # first() and any_value() would be volatile for Spark.
    return f"select max_by({alias}.c{column.id}, 1) as v from ({query}) {alias}"


def _check_volatile(plan: Plan) -> None:
    """Spark makes one value of it for equal rows, or one for each where it has one for all."""
    if is_volatile_plan(plan) and (free_columns(plan) or not any(scans(plan))):
        raise unsupported("a volatile function in a subquery")
