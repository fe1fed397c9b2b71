"""Write bound expressions as DuckDB SQL.

INVARIANTS
  X1  every text is closed: a name, a call, a cast or a parenthesis, fit to stand anywhere.
  X2  every call is cast to the DuckDB type of its result, except booleans
      and text.
  X3  a function that DuckDB does not compute as PostgreSQL does is computed by the reference
      evaluator (`@reference`), for all rows or for those that the template leaves to it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from sql.emit import enums
from sql.emit.duckdb import arrays as duckdb_arrays
from sql.emit.duckdb import floats as duckdb_floats
from sql.emit.duckdb import numbers as duckdb_numbers
from sql.emit.duckdb import text as duckdb_text
from sql.emit.duckdb import times as duckdb_times
from sql.emit.duckdb.constant_lists import (
    LIST_MIN,
    array_parameter,
    constant_array,
    constants_of,
    in_constant_list,
    in_known_list,
)
from sql.emit.duckdb.equalities import (
    OPERANDS_MAX,
    in_constant_rows,
    in_groups,
    looked_up,
    merge_equalities,
    merge_rows,
)
from sql.emit.duckdb.evaluator_calls import evaluator_call
from sql.emit.duckdb.types import bind_field_variables, duckdb_type, error, unsupported
from sql.emit.in_subqueries import in_by_count
from sql.emit.repeated_arguments import write_call
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
    Subquery,
    SubqueryKind,
)
from sql.plan.renumbering import free_columns
from sql.plan.traverse import child_expressions
from sql.rewrite.guard_expressions import guarded_coalesce, guarded_logical, may_fail
from sql.types.enums import is_enum, storage_type_name
from sql.types.sql_type import SqlType

Special = Callable[[Call, Scope], str]

SPECIALS: Final[dict[str, Special]] = {
    "reference": evaluator_call,
    "checked": enums.domain_value_or_error,
    "enum_bound": enums.enum_first_or_last,
    "enum_compare": enums.compare_enums,
    "enum_range": enums.enum_range_of_type,
    **duckdb_arrays.SPECIALS,
    **duckdb_floats.SPECIALS,
    **duckdb_numbers.SPECIALS,
    **duckdb_text.SPECIALS,
    **duckdb_times.SPECIALS,
}
"""The templates that need more than text: named `@name` in the function table."""

_CLOSED: Final = frozenset(
    {"bool", "text", "varchar", "bpchar", "name", "char", "uuid", "interval"}
)


def expression(expr: Expr, scope: Scope) -> str:
    """The text of an expression (X1)."""
    statement = scope.statement
    statement.nesting += 1
    if statement.nesting > DEPTH_MAX:
        raise statement_too_complex()
    if scope.filtering and not isinstance(expr, Logical | InRows):
        scope = replace(scope, filtering=False)
    text = _expression(expr, scope)
    statement.nesting -= 1
    if len(text) > TEXT_MAX:
        raise statement_too_complex()
    return text


def _expression(expr: Expr, scope: Scope) -> str:
    match expr:
        case Const():
            found = constant_array(expr.value, expr.type, scope)
            return found or scope.statement.constant(expr.value, expr.type)
        case Param():
            found = array_parameter(expr, scope)
            return found or scope.statement.parameter(expr)
        case ColumnRef():
            return scope.columns[expr.id]
        case Call():
            return _call(expr, scope)
        case Logical():
            return _logical(expr, scope)
        case IsTest():
            return f"({scope.emit(expr.arg)} {expr.test.value})"
        case Distinct():
            negation = "not " if expr.negated else ""
            left, right = (scope.key(side, "comparing") for side in (expr.left, expr.right))
            return f"({left} is {negation}distinct from {right})"
        case Case():
            found = looked_up(expr, scope)
            if found is not None:
                return _typed(found, expr.type)
            whens = " ".join(
                f"when {scope.emit(when)} then {scope.emit(then)}" for when, then in expr.whens
            )
            return _typed(f"case {whens} else {scope.emit(expr.otherwise)} end", expr.type)
        case Coalesce():
            return guarded_coalesce(expr.args, scope.emit)
        case Extreme() if is_enum(expr.type.name):
            return _typed(enums.enum_greatest_or_least(expr, scope), expr.type)
        case Extreme():
            return _extreme(expr, scope)
        case InList():
            constants = _in_constants(expr, scope)
            if constants is not None:
                return constants
            negation = "not " if expr.negated else ""
            items = ", ".join(scope.key(item, "comparing") for item in expr.items)
            return f"({scope.key(expr.arg, 'comparing')} {negation}in ({items}))"
        case InRows():
            return in_constant_rows(expr, scope) or _logical(rows_as_conditions(expr), scope)
        case AnyAll():
            return duckdb_arrays.any_all(expr, scope)
        case Subquery():
            return _subquery(expr, scope)


def _in_constants(expr: InList, scope: Scope) -> str | None:
    """IN many constants, which DuckDB compares by themselves."""
    type_, values = expr.arg.type, constants_of(expr.items)
    if values is None or not duckdb_arrays.compares_natively(type_):
        return None
    types = {item.type for item in child_expressions(expr)}
    if any(duckdb_type(other) != duckdb_type(type_) for other in types):
        return None
    if may_fail(expr.arg, by_overflow=False) or (scope.joining and len(values) >= LIST_MIN):
        return in_known_list(expr, values, scope)
    return in_constant_list(expr.arg, values, type_, scope, negated=expr.negated)


def _extreme(expr: Extreme, scope: Scope) -> str:
    _comparable(expr.type)
    function = "greatest" if expr.greatest else "least"
    if expr.type.name in ("_float4", "_float8"):
        # DuckDB makes 0 of -0 within lists, but not where it sorts them.
        order = "desc" if expr.greatest else "asc"
        return f"list_sort([{_list(expr.args, scope)}], '{order}', 'nulls last')[1]"
    if expr.type.name == "float4":
        # Nor among doubles.
        args = ", ".join(f"cast({scope.emit(arg)} as double)" for arg in expr.args)
        return f"cast({function}({args}) as float)"
    return f"{function}({_list(expr.args, scope)})"


def _comparable(type_: SqlType) -> None:
    """DuckDB knows nothing of how jsonb compares."""
    if not duckdb_arrays.compares_natively(type_):
        raise unsupported(f"comparing values of type {type_.name} here")


def _list(exprs: Sequence[Expr], scope: Scope) -> str:
    return ", ".join(scope.emit(expr) for expr in exprs)


def _typed(text: str, type_: SqlType) -> str:
    return (
        f"({text})"
        if storage_type_name(type_.name) in _CLOSED
        else f"cast({text} as {duckdb_type(type_)})"
    )


def _logical(expr: Logical, scope: Scope) -> str:
    if expr.op is BoolOp.NOT:
        return f"(not {replace(scope, filtering=False).emit(expr.args[0])})"
    if len(expr.args) > OPERANDS_MAX:
        return _long_logical(expr, scope)
    if scope.filtering:
        return "(" + f" {expr.op.value} ".join(scope.emit(arg) for arg in expr.args) + ")"
    return guarded_logical(expr.op, expr.args, scope.emit)


def _long_logical(expr: Logical, scope: Scope) -> str:
    if any(map(may_fail, expr.args)):
        # From left to right; a COALESCE may be computed for all rows.
        return guarded_logical(expr.op, expr.args, scope.emit)
    rows, others = merge_rows(expr.op, merge_equalities(expr.op, expr.args, scope), scope)
    return in_groups(expr.op, [*rows, *map(scope.emit, others)])


def _call(call: Call, scope: Scope) -> str:
    return write_call(call, scope, _by_template, bind_field_variables)


def _by_template(call: Call, scope: Scope) -> str:
    template = call.function.duckdb
    if template is None:
        raise unsupported(function_description(call.function))
    if template.startswith("@"):
        return _typed(SPECIALS[template[1:]](call, scope), call.type)
    texts = [scope.emit(arg) for arg in call.args]
    if is_folded_call(call):
        # Nested, it would take DuckDB the cube of its length.
        x, y = scope.variable(), scope.variable()
        body = _typed(fill_template(template, [x, y], error), call.type)
        return f"list_reduce([{', '.join(texts)}], lambda {x}, {y}: {body})"
    return _typed(fill_template(template, texts, error), call.type)


# --- subqueries --------------------------------------------------------------------------------


def _subquery(expr: Subquery, scope: Scope) -> str:
    query = scope.subplan(expr.plan, scope)
    match expr.kind:
        case SubqueryKind.SCALAR:
            return f"({query})"
        case SubqueryKind.ARRAY:
            return f"coalesce(array({query}), cast([] as {duckdb_type(expr.type)}))"
        case SubqueryKind.EXISTS:
            return f"exists ({query})"
        case SubqueryKind.IN | SubqueryKind.NOT_IN:
            for arg in expr.args:
                if not is_enum(arg.type.name):
                    _comparable(arg.type)
            if len(expr.args) == 1 and not free_columns(expr.plan):
                return f"({scope.emit(expr.args[0])} {expr.kind.value} ({query}))"
            # Of several columns DuckDB takes rows with equal NULLs for equal; over a query that
            # refers to an outer one it may find NULL in a set that is empty for a row.
            return in_by_count(expr, scope, query)
