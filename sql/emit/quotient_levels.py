"""Choose the decimals of a numeric quotient in SQL, by PostgreSQL's rule (select_div_scale).

The text compares the quotient with the limits of each level of `sql/types/division_scale.py` (Q3
there). A level follows from the quotient itself: its weight is that of the estimate, unless the
operands begin with the same group of digits. In that case the quotient is within a factor of two of
a power of 10,000, and the estimate is the weight below that power.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sql.plan.nodes import Call, Expr
from sql.types.division_scale import DIGITS_PER_GROUP, ScaleLevel, scale_levels
from sql.types.sql_type import SqlType


@dataclass(frozen=True, slots=True)
class QuotientTexts:
    """The SQL of an engine. `below(n)`: the quotient is less than n. `same_group`: the operands
    begin with the same group. `held(p)`: the trimmed operands are multiples of 10^-p; empty if they
    always are. `result(d)`: the quotient with d decimals, all of them for None.
    """

    below: Callable[[int], str]
    same_group: str
    held: Callable[[int], str]
    result: Callable[[int | None], str]


def without_widening_cast(arg: Expr) -> Expr:
    """The dividend without the cast by which the binder widens it (`numeric.py`): the cast adds
    decimals that the operand itself does not show.
    """
    while isinstance(arg, Call) and _widens(arg):
        arg = arg.args[0]
    return arg


def _widens(call: Call) -> bool:
    source = call.args[0].type
    same = call.function.id == "numeric::numeric" and call.type.trim
    return same and (source.scale or 0) <= (call.type.scale or 0)


def quotient_by_level(left: SqlType, right: SqlType, texts: QuotientTexts) -> str:
    """The quotient of operands with the decimals of these types."""
    found = scale_levels(left, right)
    if not found:
        return texts.result(None)
    whens = [f"when {texts.below(1)} then {texts.result(None)}"]
    for level in found[:-1]:
        limit = 10 ** (DIGITS_PER_GROUP * (level.weight + 1))
        whens.append(f"when {texts.below(limit)} then {_of_weight(level.weight, found, texts)}")
    return f"case {' '.join(whens)} else {_of_weight(found[-1].weight, found, texts)} end"


def _of_weight(weight: int, found: Sequence[ScaleLevel], texts: QuotientTexts) -> str:
    """The quotient from 10^(4 weight) up to the next power of 10,000."""
    chosen = _held(found[: weight + 1], texts)
    lower = _held(found[:weight], texts)
    if chosen == lower:
        return chosen
    close = f"{texts.below(2 * 10 ** (DIGITS_PER_GROUP * weight))} and {texts.same_group}"
    return f"case when {close} then {lower} else {chosen} end"


def _held(found: Sequence[ScaleLevel], texts: QuotientTexts) -> str:
    """The quotient at the highest of these levels that the trimmed operands allow."""
    whens = []
    for level in reversed(found):
        held = texts.held(level.held)
        if not held:
            whens.append(f"else {texts.result(level.decimals)}")
            break
        whens.append(f"when {held} then {texts.result(level.decimals)}")
    else:
        whens.append(f"else {texts.result(None)}")
    if len(whens) == 1:
        return whens[0].removeprefix("else ")
    return f"case {' '.join(whens)} end"


def is_rounded_product(call: Call) -> bool:
    """Whether the product has more decimals than its type, and more than engines have."""
    return sum(arg.type.scale or 0 for arg in call.args) > (call.type.scale or 0)
