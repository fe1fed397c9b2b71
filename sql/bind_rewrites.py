"""Calls that are another call in PostgreSQL too: rewritten before they are bound."""

from collections.abc import Mapping, Sequence
from typing import Final

from pglast import ast
from pglast.enums import SQLValueFunctionOp

from sql.errors import SqlError, not_supported
from sql.syntax import Node, at, is_a, strings

_NAMED: Final[Mapping[str, Mapping[str, int]]] = {
    "make_interval": dict.fromkeys(
        ("years", "months", "weeks", "days", "hours", "mins", "secs"), 0
    ),
    "random_normal": {"mean": 0, "stddev": 1},
}
"""Functions whose arguments have names and defaults."""


def rewritten(node: Node) -> Node:
    """The call to bind instead of this one; most often the same."""
    name = strings(node.funcname)[-1]
    args = node.args or ()
    if name in _NAMED and _needs_more(name, args):
        return _with_args(node, _positional(name, args))
    if name == "age" and len(args) == 1:
        today = ast.SQLValueFunction(
            op=SQLValueFunctionOp.SVFOP_CURRENT_DATE, typmod=-1, location=node.location
        )
        return _with_args(node, (today, *args))
    return node


def _needs_more(name: str, args: Sequence[Node]) -> bool:
    named = any(is_a(arg, ast.NamedArgExpr) for arg in args)
    return named or len(args) < len(_NAMED[name])


def _with_args(node: Node, args: Sequence[Node]) -> Node:
    return ast.FuncCall(
        funcname=node.funcname,
        args=tuple(args),
        funcformat=node.funcformat,
        location=node.location,
    )


def _positional(name: str, args: Sequence[Node]) -> list[Node]:
    defaults = _NAMED[name]
    names = tuple(defaults)
    found: dict[str, Node] = {}
    for index, arg in enumerate(args):
        named = is_a(arg, ast.NamedArgExpr)
        key = arg.name if named else names[index] if index < len(names) else ""
        if key not in names or key in found:
            raise not_supported("such arguments by name", at(arg.location if named else None))
        if not named and any(is_a(before, ast.NamedArgExpr) for before in args[:index]):
            message = "positional argument cannot follow named argument"
            raise SqlError("42601", message)
        found[key] = arg.arg if named else arg
    return [
        found.get(key, ast.A_Const(val=ast.Integer(ival=default)))
        for key, default in defaults.items()
    ]
