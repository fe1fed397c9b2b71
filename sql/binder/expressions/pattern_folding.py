"""Fold LIKE ESCAPE and SIMILAR TO patterns of constants, so that engines get a constant pattern."""

from collections.abc import Callable
from typing import Final

from sql.plan.nodes import Call, Const, Expr
from sql.regex.like import similar_regex, with_default_escape

_FOLDED: Final[dict[str, Callable[..., str]]] = {
    "like_escape": with_default_escape,
    "similar_to_escape": similar_regex,
}


def fold_pattern(expr: Expr) -> Expr:
    """The constant value of a pattern-making call; any other expression unchanged."""
    if not isinstance(expr, Call) or expr.function.name not in _FOLDED:
        return expr
    values: list[object] = []
    for arg in expr.args:
        if not isinstance(arg, Const):
            return expr
        values.append(arg.value)
    if None in values:
        return Const(None, expr.type)
    return Const(_FOLDED[expr.function.name](*values), expr.type)
