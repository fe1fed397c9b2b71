"""Which expressions need no parentheses below which others (isSimpleNode of ruleutils.c)."""

from typing import Final

from sql.deparse.nodes import (
    AggregateCall,
    Boolean,
    CaseExpr,
    Cast,
    Constant,
    FuncExpr,
    GroupingExpr,
    Keyword,
    Listed,
    NullOrBooleanTest,
    Operation,
    SubLink,
    Subscript,
    TypedExpr,
    Var,
)

_SIMPLE: Final = (
    Var, Constant, Keyword, Subscript, Listed, FuncExpr, AggregateCall, GroupingExpr, CaseExpr,
)  # fmt: skip
_SEPARATING: Final = (Subscript, Listed, AggregateCall, GroupingExpr, CaseExpr)
_LOW: Final = frozenset("+-")
_HIGH: Final = frozenset("*/%")


def is_simple(expr: TypedExpr, parent: TypedExpr) -> bool:
    """Whether it stands below its parent without parentheses."""
    match expr:
        case Cast():
            return expr.calls or is_simple(expr.arg, expr)
        case Operation() if isinstance(parent, Operation) and expr.name != "IS DISTINCT FROM":
            return _binds_tighter(expr, parent)
        case Operation() | SubLink() | NullOrBooleanTest():
            return isinstance(parent, Boolean) or _separates(parent)
        case Boolean() if isinstance(parent, Boolean):
            return parent.name == "OR" or (parent.name == "AND" and expr.name != "OR")
        case Boolean():
            return _separates(parent)
        case _:
            return isinstance(expr, _SIMPLE)


def _separates(parent: TypedExpr) -> bool:
    if isinstance(parent, FuncExpr):
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
