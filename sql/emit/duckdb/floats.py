"""Write float4 and float8 operators for DuckDB: IEEE arithmetic with PostgreSQL's errors.

PostgreSQL fails where IEEE gives an infinity or a zero out of ordinary numbers (22003), and
divides by zero with 22012. A tree of float operators is therefore emitted as

    case when <first operation went wrong> then error when <second ..> .. else <plain tree> end

with the leaves written out in every condition: one CASE for the whole tree, because a CASE for
each operator would double the text at every level.
"""

from collections.abc import Callable
from typing import Final

from sql.emit.duckdb.types import duckdb_type, error
from sql.emit.state import Scope
from sql.plan.nodes import Call, Expr

_ZERO: Final = "cast(0 as double)"
_OVERFLOW: Final = error("22003", "value out of range: overflow")
_UNDERFLOW: Final = error("22003", "value out of range: underflow")
_BY_ZERO: Final = error("22012", "division by zero")


def _float(call: Call, scope: Scope) -> str:
    checks: list[str] = []
    tree = _plain(call, scope, checks)
    return f"case {' '.join(checks)} else {tree} end"


def _plain(expr: Expr, scope: Scope, checks: list[str]) -> str:
    """The operation without its errors; what finds them is added to `checks`, innermost first."""
    if not (isinstance(expr, Call) and expr.function.duckdb == "@float"):
        return scope.emit(expr)
    a, b = (f"cast({_plain(arg, scope, checks)} as {duckdb_type(expr.type)})" for arg in expr.args)
    operator = expr.function.name
    result = f"({a} {operator} {b})"
    if operator == "/":
        checks.append(f"when {b} = {_ZERO} and not isnan({a}) then {_BY_ZERO}")
        # What is left of b = 0 is NaN / 0, and that is NaN.
        checks.append(f"when isinf{result} and not isinf({a}) then {_OVERFLOW}")
        divisor = f"not isinf({b})"
    else:
        finite = f"not isinf({a}) and not isinf({b})"
        checks.append(f"when isinf{result} and {finite} then {_OVERFLOW}")
        divisor = f"{b} <> {_ZERO}"
    if operator in "*/":
        checks.append(f"when {result} = {_ZERO} and {a} <> {_ZERO} and {divisor} then {_UNDERFLOW}")
    return result


def _sqrt(call: Call, scope: Scope) -> str:
    x = scope.emit(call.args[0])
    failure = error("2201F", "cannot take square root of a negative number")
    return f"case when {x} < {_ZERO} then {failure} else sqrt({x}) end"


def _exp(call: Call, scope: Scope) -> str:
    x = scope.emit(call.args[0])
    return (
        f"case when isinf(exp({x})) and not isinf({x}) then {_OVERFLOW}"
        f" when exp({x}) = {_ZERO} and not isinf({x}) then {_UNDERFLOW} else exp({x}) end"
    )


def _logarithm(function: str) -> Callable[[Call, Scope], str]:
    zero = error("2201E", "cannot take logarithm of zero")
    negative = error("2201E", "cannot take logarithm of a negative number")

    def emit(call: Call, scope: Scope) -> str:
        x = scope.emit(call.args[0])
        return (
            f"case when {x} = {_ZERO} then {zero} when {x} < {_ZERO} then {negative}"
            f" else {function}({x}) end"
        )

    return emit


def _degrees(call: Call, scope: Scope) -> str:
    x = scope.emit(call.args[0])
    result = f"({x} / cast('0.017453292519943295' as double))"
    return f"case when isinf{result} and not isinf({x}) then {_OVERFLOW} else {result} end"


def _radians(call: Call, scope: Scope) -> str:
    x = scope.emit(call.args[0])
    result = f"({x} * cast('0.017453292519943295' as double))"
    return f"case when {result} = {_ZERO} and {x} <> {_ZERO} then {_UNDERFLOW} else {result} end"


def _power(call: Call, scope: Scope) -> str:
    """C's pow with PostgreSQL's errors."""
    x, y = (scope.emit(arg) for arg in call.args)
    zero = error("2201F", "zero raised to a negative power is undefined")
    root = error("2201F", "a negative number raised to a non-integer power yields a complex result")
    ordinary = f"not isinf({x}) and not isinf({y})"
    result = f"power({x}, {y})"
    return (
        f"case when {x} = {_ZERO} and {y} < {_ZERO} then {zero}"
        f" when {x} < {_ZERO} and isfinite({y}) and trunc({y}) <> {y} then {root}"
        f" when isinf({result}) and {ordinary} then {_OVERFLOW}"
        f" when {result} = {_ZERO} and {x} <> {_ZERO} and {ordinary} then {_UNDERFLOW}"
        f" else {result} end"
    )


def _float_narrow(call: Call, scope: Scope) -> str:
    x = scope.emit(call.args[0])
    # The smallest numbers that are rounded away from the range, at either end.
    largest, smallest = "3.4028235677973366e38", "7.006492321624085e-46"
    return (
        f"case when abs({x}) >= cast('{largest}' as double) and isfinite({x}) then {_OVERFLOW}"
        f" when abs({x}) <= cast('{smallest}' as double) and {x} <> {_ZERO} then {_UNDERFLOW}"
        f" else cast({x} as float) end"
    )


def _float_to_integer(call: Call, scope: Scope) -> str:
    """Half to even; DuckDB refuses what does not fit, NaN included."""
    return scope.emit(call.args[0])


SPECIALS: Final = {
    "float": _float,
    "sqrt": _sqrt,
    "exp": _exp,
    "ln": _logarithm("ln"),
    "log10": _logarithm("log10"),
    "degrees": _degrees,
    "radians": _radians,
    "power": _power,
    "float_narrow": _float_narrow,
    "float_to_integer": _float_to_integer,
}
