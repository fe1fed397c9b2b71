"""Rewrite calls before binding: named to positional arguments, age(x) to its two-argument form."""

from collections.abc import Sequence

from pglast import ast
from pglast.enums import SQLValueFunctionOp

from sql.parser.named_arguments import positional_arguments
from sql.parser.syntax import Node, string_values


def rewrite_call(node: Node) -> Node:
    """The call to bind instead of this one; most often the same. Raises 42601 for wrong names."""
    name = string_values(node.funcname)[-1]
    given: Sequence[Node] = node.args or ()
    args = positional_arguments(name, given, variadic=bool(node.func_variadic))
    if name == "age" and len(args) == 1:
        today = ast.SQLValueFunction(
            op=SQLValueFunctionOp.SVFOP_CURRENT_DATE, typmod=-1, location=node.location
        )
        args = (today, *args)
    return node if args is given else _with_args(node, args)


def _with_args(node: Node, args: Sequence[Node]) -> Node:
    clauses = {
        "agg_order": node.agg_order,
        "agg_filter": node.agg_filter,
        "agg_within_group": node.agg_within_group,
        "agg_distinct": node.agg_distinct,
        "func_variadic": node.func_variadic,
        "over": node.over,
    }
    return ast.FuncCall(
        funcname=node.funcname,
        args=tuple(args),
        funcformat=node.funcformat,
        location=node.location,
        **clauses,
    )
