"""Write float4 and float8 operators for Spark: IEEE arithmetic with PostgreSQL's errors.

PostgreSQL fails where IEEE gives an infinity or a zero out of ordinary numbers (22003), and
divides by zero with 22012. Spark only does the last. A tree of float operators is therefore
emitted as

    case when <first operation went wrong> then error when <second ..> .. else <plain tree> end

with the leaves written out in every condition: one CASE for the whole tree, because a CASE for
each operator would double the text at every level.

Not here: exponentials, logarithms and trigonometric functions. Java's have other last digits than
C's, so the evaluator computes them (`sql/data/functions.txt`).
"""

from typing import Final

from sql.emit.spark.types import error, spark_type
from sql.emit.state import Scope
from sql.plan.nodes import Call, Expr

_INFINITE: Final = "double('Infinity')"
_OVERFLOW: Final = error("22003", "value out of range: overflow")
_UNDERFLOW: Final = error("22003", "value out of range: underflow")
_BY_ZERO: Final = error("22012", "division by zero")


def _float(call: Call, scope: Scope) -> str:
    checks: list[str] = []
    tree = _plain(call, scope, checks)
    return f"case {' '.join(checks)} else {tree} end"


def _plain(expr: Expr, scope: Scope, checks: list[str]) -> str:
    """The operation without its errors; what finds them is added to `checks`, innermost first."""
    if not (isinstance(expr, Call) and expr.function.spark == "@float"):
        return scope.emit(expr)
    a, b = (f"cast({_plain(arg, scope, checks)} as {spark_type(expr.type)})" for arg in expr.args)
    operator = expr.function.name
    if operator == "/":
        checks.append(f"when {b} = 0D and not isnan({a}) and {a} is not null then {_BY_ZERO}")
        # With b = 0 what is left is NaN / 0 or NULL, and a itself is the answer.
        result = f"cast({a} / if({b} = 0D, 1D, {b}) as {spark_type(expr.type)})"
    else:
        result = f"({a} {operator} {b})"
    finite = f"abs({a}) <> {_INFINITE}" + (
        f" and abs({b}) <> {_INFINITE}" if operator != "/" else ""
    )
    checks.append(f"when abs({result}) = {_INFINITE} and {finite} then {_OVERFLOW}")
    if operator in "*/":
        divisor = f"{b} <> 0D" if operator == "*" else f"abs({b}) <> {_INFINITE}"
        checks.append(f"when {result} = 0D and {a} <> 0D and {divisor} then {_UNDERFLOW}")
    return result


def _sqrt(call: Call, scope: Scope) -> str:
    x = scope.emit(call.args[0])
    failure = error("2201F", "cannot take square root of a negative number")
    return f"case when {x} < 0D then {failure} else sqrt({x}) end"


def _degrees(call: Call, scope: Scope) -> str:
    x = scope.emit(call.args[0])
    result = f"({x} / 0.017453292519943295D)"
    check = f"abs({result}) = {_INFINITE} and abs({x}) <> {_INFINITE}"
    return f"case when {check} then {_OVERFLOW} else {result} end"


def _radians(call: Call, scope: Scope) -> str:
    x = scope.emit(call.args[0])
    result = f"({x} * 0.017453292519943295D)"
    return f"case when {result} = 0D and {x} <> 0D then {_UNDERFLOW} else {result} end"


def _float_narrow(call: Call, scope: Scope) -> str:
    x = scope.emit(call.args[0])
    result = f"cast({x} as float)"
    return (
        f"case when abs({result}) = {_INFINITE} and abs({x}) <> {_INFINITE} then {_OVERFLOW}"
        f" when {result} = 0D and {x} <> 0D then {_UNDERFLOW} else {result} end"
    )


_BOUNDS: Final = {
    "int2": ("smallint", "-32768D", "32768D"),
    "int4": ("integer", "-2147483648D", "2147483648D"),
    "int8": ("bigint", "-9223372036854775808D", "9223372036854775808D"),
}


def _float_to_integer(call: Call, scope: Scope) -> str:
    """Half to even, and out of range for what does not fit, NaN included."""
    x = f"rint(cast({scope.emit(call.args[0])} as double))"
    name, low, high = _BOUNDS[call.type.name]
    failure = error("22003", f"{name} out of range")
    return (
        f"case when isnan({x}) or {x} < {low} or {x} >= {high} then {failure}"
        f" else cast({x} as {spark_type(call.type)}) end"
    )


SPECIALS: Final = {
    "float": _float,
    "sqrt": _sqrt,
    "degrees": _degrees,
    "radians": _radians,
    "float_narrow": _float_narrow,
    "float_to_integer": _float_to_integer,
}
