"""Which expressions need no parentheses below which others (isSimpleNode of ruleutils.c)."""

from typing import Final

from sql.deparse.nodes import (
    AggregateCall,
    Boolean,
    Case,
    Cast,
    Const,
    Expr,
    FunctionCall,
    Grouping,
    Keyword,
    Listed,
    Operation,
    SubLink,
    Subscript,
    Test,
    Var,
)

_SIMPLE: Final = (
    Var, Const, Keyword, Subscript, Listed, FunctionCall, AggregateCall, Grouping, Case,
)  # fmt: skip
_SEPARATING: Final = (Subscript, Listed, AggregateCall, Grouping, Case)
_LOW: Final = frozenset("+-")
_HIGH: Final = frozenset("*/%")


def is_simple(expr: Expr, parent: Expr) -> bool:
    """Whether it stands below its parent without parentheses."""
    match expr:
        case Cast():
            return expr.calls or is_simple(expr.arg, expr)
        case Operation() if isinstance(parent, Operation) and expr.name != "IS DISTINCT FROM":
            return _binds_tighter(expr, parent)
        case Operation() | SubLink() | Test():
            return isinstance(parent, Boolean) or _separates(parent)
        case Boolean() if isinstance(parent, Boolean):
            return parent.name == "OR" or (parent.name == "AND" and expr.name != "OR")
        case Boolean():
            return _separates(parent)
        case _:
            return isinstance(expr, _SIMPLE)


def _separates(parent: Expr) -> bool:
    if isinstance(parent, FunctionCall):
        return not parent.sql_syntax
    return isinstance(parent, _SEPARATING)


def _binds_tighter(expr: Operation, parent: Operation) -> bool:
    if any(len(one.args) != 2 or len(one.name) != 1 for one in (expr, parent)):
        return False
    if not {expr.name, parent.name} <= _LOW | _HIGH:
        return False
    if (expr.name in _HIGH) == (parent.name in _HIGH):
        return expr is parent.args[0]
    return expr.name in _HIGH
