"""Write numeric operators and casts as Spark decimals: exact, overflow is 22003.

INVARIANTS
  D1  Spark runs with `allowPrecisionLoss=false` and ANSI on: a value that does not fit its decimal
      is an error.
  D2  the shortest decimal of a float is on the same side of a half as the float, unless it is the
      half itself. So the float itself is examined only where that decimal has one digit more than
      the result, a 5. Such halves are rounded up in the value of a subquery.

Not here: quotients (`spark/quotients.py`).
"""

from collections.abc import Callable
from typing import Final

from sql.emit.quotient_levels import is_rounded_product, without_widening_cast
from sql.emit.spark.quotients import quotient
from sql.emit.spark.types import bind_variable, error, spark_type, unsupported
from sql.emit.state import Scope
from sql.plan.nodes import Call
from sql.plan.traverse import has_subquery, is_volatile_expression

_MAX: Final = 38
_REPEATED_MAX: Final = 300
"""Characters of a text that is written out several times."""
_POWER_EXACT: Final = 22
"""Powers of ten up to this are exact as float8."""


def _divide(call: Call, scope: Scope) -> str:
    left, right = (
        (scope.emit(arg), arg.type) for arg in (without_widening_cast(call.args[0]), call.args[1])
    )
    return quotient(left, right, scope)


def _to_numeric(call: Call, scope: Scope) -> str:
    return scope.emit(call.args[0])


def _narrow(call: Call, scope: Scope) -> str:
    """The value, if it is the same in the narrower type."""
    x = scope.emit(call.args[0])
    narrow = f"cast({x} as {spark_type(call.type)})"
    if (call.type.scale or 0) >= (call.args[0].type.scale or 0):
        return narrow
    failure = error("22003", "numeric value has too many digits after the decimal point")
    # Spark compares two decimals in a type that holds the digits of both before the point.
    again = f"cast({narrow} as {spark_type(call.args[0].type)})"
    return f"case when {again} <> {x} then {failure} else {narrow} end"


def _places(call: Call, scope: Scope) -> int:
    known = scope.statement.known(call.args[1])
    if known is None or not isinstance(known[0], int):
        raise unsupported(f"function {call.function.id} with a computed number of digits")
    return max(min(known[0], _MAX), -_MAX)


def _round(call: Call, scope: Scope) -> str:
    return f"round({scope.emit(call.args[0])}, {_places(call, scope)})"


def _trunc(call: Call, scope: Scope) -> str:
    x, n = scope.emit(call.args[0]), _places(call, scope)
    return f"case when {x} < 0 then ceil({x}, {n}) else floor({x}, {n}) end"


def _numeric_to_integer(call: Call, scope: Scope) -> str:
    return f"round({scope.emit(call.args[0])})"


def _multiply(call: Call, scope: Scope) -> str:
    if is_rounded_product(call):
        raise unsupported("a product with so many decimals")
    x, y = map(scope.emit, call.args)
    return f"{x} * {y}"


def _modulo(call: Call, scope: Scope) -> str:
    """Spark computes the whole quotient, which has to have 38 digits at most."""
    (a, b) = (arg.type for arg in call.args)
    if (a.precision or _MAX) - (a.scale or 0) + (b.scale or 0) > _MAX:
        raise unsupported("a remainder of a quotient with so many digits")
    x, y = map(scope.emit, call.args)
    return f"{x} % {y}"


def _numeric_to_float(call: Call, scope: Scope) -> str:
    return scope.emit(call.args[0])


def _float_to_numeric(call: Call, scope: Scope) -> str:
    """15 significant digits of a float8, 6 of a float4, as PostgreSQL converts."""
    arg = call.args[0]
    digits = 15 if arg.type.name == "float8" else 6
    refusal = error("22003", "NaN and infinity are out of range for type numeric")

    def converted(x: str) -> str:
        # Spark takes no subquery as the argument of a lambda; its halves go Java's way.
        rounded = _shown(x, digits) if has_subquery(arg) else _rounded_text(x, digits, scope)
        return (
            # format_string shows NULL as text.
            f"case when {x} is null then null"
            f" when isnan({x}) or abs({x}) = double('Infinity') then {refusal}"
            f" else cast({rounded} as {spark_type(call.type)}) end"
        )

    text = f"cast({scope.emit(arg)} as double)"
    # Spark compiles what is outside of lambdas: written again is faster than bound.
    once = is_volatile_expression(arg) or len(text) > _REPEATED_MAX
    return _named(text, scope, converted) if once and not has_subquery(arg) else converted(text)


def _named(text: str, scope: Scope, use: Callable[[str], str]) -> str:
    """What `use` makes of a name for the value of this text."""
    name = scope.variable()
    return bind_variable(name, text, use(name))


def _rounded_text(x: str, digits: int, scope: Scope) -> str:
    """A finite number with so many significant digits: C's printf, to which halves go by the
    binary value and exact ones to even. Java's rounds the shortest decimal, and halves up: the
    other way only where that has one digit more, a 5 (D2).
    """
    plain, mantissa = _shown(x, digits), _mantissa(x)

    def unless_up(x: str) -> str:
        def unless_other(shortest: str) -> str:
            half = f"length({shortest}) = {digits + 1} and {shortest} like '%5'"
            down = _named(f"left({shortest}, {digits})", scope, lambda kept: _down(x, kept, scope))
            return f"case when {half} then {down} end"

        return _named(f"trim(both '0' from replace({_mantissa(x)}, '.', ''))", scope, unless_other)

    # What most numbers are not, without looking closer.
    candidate = (
        f"length({mantissa}) > {digits} and ({mantissa} like '%5' or {mantissa} like '%5.0')"
    )
    down = _named(x, scope, unless_up)
    return f"case when {candidate} then coalesce({down}, {plain}) else {plain} end"


def _shown(x: str, digits: int) -> str:
    return f"format_string('%.{digits - 1}e', {x})"


def _mantissa(x: str) -> str:
    return f"substring_index(cast(abs({x}) as string), 'E', 1)"


def _down(x: str, kept: str, scope: Scope) -> str:
    """The text of x without its last digit, a 5; NULL if it is to be rounded up. `kept`: the other
    digits, as text.
    """
    half = f"(cast({kept} as double) + 0.5D)"
    power = f"cast(rint(log10({half} / abs({x}))) as int)"

    def text(fields: str) -> str:
        n, c = f"{fields}.n", f"{fields}.c"
        # |x| * c, or half * c, is beside the other number: of both the difference is exact.
        a, b = f"if({n} >= 0, abs({x}), {half})", f"if({n} >= 0, {half}, abs({x}))"
        rest = _named(f"named_struct('a', {a}, 'b', {b}, 'c', {c})", scope, _product_less)
        beyond = f"{rest} * if({n} >= 0, 1D, -1D)"
        even = f"cast({kept} as bigint) % 2 = 0"
        sign = f"if({x} < 0D, '-', '')"
        shorter = f"concat({sign}, {kept}, 'E', cast(-{n} as string))"

        def answer(s: str) -> str:
            return f"if({s} < 0D or ({s} = 0D and {even}), {shorter}, null)"

        return _named(beyond, scope, answer)

    def with_power(n: str) -> str:
        scale = f"cast(concat('1E', cast(abs({n}) as string)) as double)"
        known = _named(f"named_struct('n', {n}, 'c', {scale})", scope, text)
        return f"case when abs({n}) <= {_POWER_EXACT} then {known} end"

    return _named(power, scope, with_power)


def _product_less(of: str) -> str:
    """Of a struct a * c - b, rounded once: Dekker's product, the halves of whose factors are made
    with 2^27 + 1.
    """
    product = f"({of}.a * {of}.c)"
    halves: list[str] = []
    for factor in (f"{of}.a", f"{of}.c"):
        wide = f"({factor} * 134217729D)"
        high = f"({wide} - ({wide} - {factor}))"
        halves += [high, f"({factor} - {high})"]
    high_a, low_a, high_c, low_c = halves
    error_of = (
        f"((({high_a} * {high_c} - {product}) + {high_a} * {low_c}) + {low_a} * {high_c})"
        f" + {low_a} * {low_c}"
    )
    return f"(({product} - {of}.b) + ({error_of}))"


SPECIALS: Final = {
    "modulo": _modulo,
    "multiply": _multiply,
    "divide": _divide,
    "to_numeric": _to_numeric,
    "narrow": _narrow,
    "round": _round,
    "trunc": _trunc,
    "numeric_to_integer": _numeric_to_integer,
    "numeric_to_float": _numeric_to_float,
    "float_to_numeric": _float_to_numeric,
}
