"""Remember what slow functions have made of small arguments: columns repeat their values.

    to_char(12.5, 'FM990.00') ─▶ known ─ no ─▶ evaluated, and known from now on

INVARIANTS
  R1  a value is a function of its arguments alone: sessions share what is remembered. So it is for
      every function of the evaluator that is not volatile; what a session has set is an argument.
  R2  arguments that are equal are the same. Those of a column have one type, and one scale. Floats
      are left out: 0 and -0 are equal.
  R3  memory is bounded: at REMEMBERED_MAX all are forgotten, and large values are not remembered.
"""

from collections.abc import Callable
from typing import Final

from sql.plan.nodes import Call
from sql.types.sql_type import Value

Evaluate = Callable[[tuple[Value, ...]], Value]

REMEMBERED_MAX: Final = 1 << 17
"""Larger: more memory, some 300 bytes each. Smaller: a column with more values gains nothing."""
_LENGTH_MAX: Final = 100
"""Characters, bytes or elements of a value, or of an argument, that is remembered."""
_SLOW: Final = frozenset({"to_char", "to_number", "to_date", "to_timestamp"})
_SLOW_PREFIX: Final = "regexp_"
_FLOATS: Final = frozenset({"float4", "float8"})


def remembering(call: Call, evaluate: Evaluate) -> Evaluate:
    """The evaluation of a call, which remembers if the call is slow (R1, R2)."""
    function = call.function
    if not (function.name in _SLOW or function.name.startswith(_SLOW_PREFIX)):
        return evaluate
    if function.volatility == "volatile" or any(arg.type.name in _FLOATS for arg in call.args):
        return evaluate
    known: dict[tuple[Value, ...], Value] = {}
    nothing = object()

    def remembered(row: tuple[Value, ...]) -> Value:
        found = known.get(row, nothing)
        if found is not nothing:
            return found  # type: ignore[return-value]  # only values are known
        value = evaluate(row)
        if not (_is_large(value) or any(map(_is_large, row))):
            if len(known) >= REMEMBERED_MAX:
                known.clear()
            known[row] = value
        return value

    return remembered


def _is_large(value: Value) -> bool:
    return isinstance(value, str | bytes | tuple) and len(value) > _LENGTH_MAX
