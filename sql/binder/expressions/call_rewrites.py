"""Rewrite calls before binding: named to positional arguments, age(x) to its two-argument form,
parameters declared void to nothing.
"""

from collections.abc import Sequence

from pglast import ast
from pglast.enums import SQLValueFunctionOp

from sql.binder.state import Binding
from sql.parser.named_arguments import positional_arguments
from sql.parser.syntax import Node, is_a, string_values
from sql.types.sql_type import VOID


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


def without_void_parameters(binding: Binding, node: Node) -> Node:
    """A call without the parameters that its client declares void (ParseFuncOrColumn).

    pgjdbc says so of the result in `{? = call f(?)}`.
    """
    if binding.substitutes or not any(is_a(arg, ast.ParamRef) for arg in node.args or ()):
        return node
    kept = tuple(arg for arg in node.args if not _is_void(binding, arg))
    if len(kept) == len(node.args):
        return node
    return _with_args(node, kept)


def _is_void(binding: Binding, node: Node) -> bool:
    return is_a(node, ast.ParamRef) and (
        binding.parameter(node.number or 0, node.location).type == VOID
    )
