"""Tell which expressions may fail, and guard them with CASE in AND, OR, COALESCE and FILTER.

DuckDB computes whole columns; PostgreSQL computes an operand only for the rows that need it.

INVARIANTS
  G1  these are not computed: the right side of AND and OR for rows that its left side decides; the
      later arguments of COALESCE behind a value; the argument of an aggregate for rows that its
      FILTER leaves out. Of DuckDB's expressions only CASE and the conditions of WHERE keep to
      that. Spark computes too much for DISTINCT, and for what several aggregates share.
  G2  an operand that cannot fail is written plainly. So is one beside a volatile operand, which
      would be computed twice.

Not here: WHERE (`duckdb/expressions.py`), whose plain conditions DuckDB makes joins and filters of.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from sql.functions.table import FunctionKind, is_immutable
from sql.plan.nodes import Aggregate, BoolOp, Call, Case, Const, Expr
from sql.plan.traverse import (
    expression_nodes,
    has_subquery,
    is_volatile_anywhere,
    is_volatile_expression,
)
from sql.plan.widening_casts import WIDENING_CASTS
from sql.regex.like import like_ends_with_escape
from sql.types.numeric import is_lossless_numeric_cast

_NEVER_FAIL: Final = frozenset({"=", "<>", "<", "<=", ">", ">=", "@>", "<@", "&&", "?"})
_LIKE: Final = frozenset({"~~", "!~~", "~~*", "!~~*"})
_OVERFLOWING: Final = frozenset({"+", "-", "*"})
_WHOLE: Final = frozenset({"int2", "int4", "int8"})
_NEVER_FAILING_CASTS: Final = frozenset(
    WIDENING_CASTS
    | {"varchar::text", "bpchar::text"}
    | {f"{name}::{to}" for name in (*_WHOLE, "numeric") for to in ("float4", "float8")}
    | {"float4::float8"}
)
"""A numeric of 38 digits is within every float."""
_OPERAND_MAX: Final = 4_000
"""Of an operand's text, which is written twice: more, and nested conditions would grow too long;
less, and division by zero is found behind conditions that rule it out."""


def may_fail(expr: Expr, *, by_overflow: bool = True) -> bool:
    """Whether computing it for a row may end in an error, as far as its form shows. `by_overflow`:
    also an overflow of sums and products counts.
    """
    # A subquery's plan is computed by DuckDB for all rows in any case.
    planned: dict[int, bool] = {}
    return any(
        isinstance(node, Call) and _call_may_fail(node, by_overflow, planned)
        for node in expression_nodes(expr)
    )


def is_harmless(part: Expr) -> bool:
    """Whether a condition may be evaluated for any row, any number of times."""
    return not has_subquery(part) and not may_fail(part) and not is_volatile_expression(part)


def call_may_fail(call: Call, *, by_overflow: bool = True) -> bool:
    """Whether the call itself may fail, once its arguments are computed."""
    return _call_may_fail(call, by_overflow, {})


def _call_may_fail(call: Call, by_overflow: bool, planned: dict[int, bool]) -> bool:
    is_operator = call.function.kind is FunctionKind.OPERATOR
    if not by_overflow and is_operator and call.function.name in _OVERFLOWING:
        return False
    return not _never_fails(call) and not _is_planned(call, planned)


def _never_fails(call: Call) -> bool:
    match call.function.kind:
        case FunctionKind.OPERATOR:
            return call.function.name in _NEVER_FAIL or _is_like(call)
        case FunctionKind.FUNCTION:
            return call.function.id in ("unique_id()", "kept(any)")
        case FunctionKind.CAST if call.function.id in _NEVER_FAILING_CASTS:
            return True
        case FunctionKind.CAST if call.type.name == "numeric":
            source = call.args[0].type
            return source.name in {*_WHOLE, "numeric"} and is_lossless_numeric_cast(
                source, call.type
            )
        case _:
            return False


def _is_planned(expr: Expr, known: dict[int, bool]) -> bool:
    """Whether it is made of constants alone and fails when the statement is planned, if it does
    (K1 of `compute/constant_folding.py`). `known`: of calls in it, as a chain asks for each link.
    """
    if not isinstance(expr, Call):
        return isinstance(expr, Const)
    found = known.get(id(expr))
    if found is None:
        found = bool(expr.args) and is_immutable(expr.function)
        found = found and all(_is_planned(arg, known) for arg in expr.args)
        known[id(expr)] = found
    return found


def _is_like(expr: Call) -> bool:
    """LIKE of a known pattern, which does not end with an escape that escapes nothing."""
    if expr.function.name not in _LIKE:
        return False
    pattern = expr.args[1]
    known = pattern.value if isinstance(pattern, Const) else None
    return isinstance(known, str) and not like_ends_with_escape(known)


def guarded_logical(op: BoolOp, args: Sequence[Expr], emit: Callable[[Expr], str]) -> str:
    """AND or OR of operands, from left to right (G1)."""
    last = max((at for at, arg in enumerate(args) if may_fail(arg)), default=0)
    text = _joined(op, [emit(arg) for arg in args[last:]])
    for arg in reversed(args[:last]):
        left = emit(arg)
        if is_volatile_anywhere(arg) or len(left) > _OPERAND_MAX:
            text = _joined(op, [left, text])
            continue
        undecided = "false" if op is BoolOp.AND else "true"
        # NULL decides nothing.
        text = _joined(op, [left, f"case when {left} is not {undecided} then {text} end"])
    return text


def guarded_coalesce(args: Sequence[Expr], emit: Callable[[Expr], str]) -> str:
    """The first argument that is not NULL. DuckDB computes a part that several COALESCE share for
    all rows, but never a branch of CASE (G1).
    """
    last = max((at for at, arg in enumerate(args) if may_fail(arg)), default=0)
    text = _coalesce([emit(arg) for arg in args[last:]])
    for arg in reversed(args[:last]):
        left = emit(arg)
        if is_volatile_anywhere(arg) or len(left) > _OPERAND_MAX:
            text = _coalesce([left, text])
        else:
            text = f"(case when {left} is not null then {left} else {text} end)"
    return text


def _coalesce(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"coalesce({', '.join(texts)})"


def _joined(op: BoolOp, texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"({f' {op.value} '.join(texts)})"


def with_guarded_arguments(call: Aggregate, *, by_overflow: bool = True) -> Aggregate:
    """The call, whose arguments and sort keys are computed only for the rows of its FILTER (G1)."""
    condition = call.filter
    if condition is None or is_volatile_expression(condition):
        return call

    def guarded(expr: Expr) -> Expr:
        return guarded_value(expr, condition, by_overflow=by_overflow)

    return replace(
        call,
        args=tuple(map(guarded, call.args)),
        order=tuple(replace(key, expr=guarded(key.expr)) for key in call.order),
    )


def guarded_value(expr: Expr, condition: Expr, *, by_overflow: bool = True) -> Expr:
    """The value where the condition is true; elsewhere NULL, if it may fail there."""
    return null_unless(condition, expr) if may_fail(expr, by_overflow=by_overflow) else expr


def null_unless(condition: Expr, expr: Expr) -> Expr:
    """The value where the condition is true, elsewhere NULL."""
    return Case(((condition, expr),), Const(None, expr.type), expr.type)
