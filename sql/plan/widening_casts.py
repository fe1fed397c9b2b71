"""Casts that leave every value what it is: drivers send a small number as int2."""

from typing import Final

from sql.plan.nodes import Call, Expr

WIDENING_CASTS: Final = frozenset({"int2::int4", "int2::int8", "int4::int8"})


def without_widening(expr: Expr) -> Expr:
    """What such casts stand around."""
    while isinstance(expr, Call) and expr.function.id in WIDENING_CASTS:
        (expr,) = expr.args
    return expr
