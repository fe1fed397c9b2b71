"""Bind nextval(), currval(), lastval() and setval() as per-row calls or runtime parameters.

In a target list of the statement itself, or in SET of UPDATE, the call is made for each row
(`row_calls.py`). Elsewhere it is bound to a runtime parameter, numbered after those of the client:
the session computes its value before the statement runs (`ParameterizedStatement.supplied`).
PostgreSQL does the same where the call is evaluated once, as in VALUES; in a query over rows it is
refused. A column whose default is nextval() gets its values when rows are written, one for each
(`ParameterizedStatement.filled`).

A constant name becomes the relation's oid. A computed name is resolved when it is evaluated.
"""

from collections.abc import Sequence

from pglast import ast

from sql.binder.expressions.calls import type_by_name
from sql.binder.resolve.coercion import coerce_implicitly
from sql.binder.resolve.function_choice import find_function
from sql.binder.state import Binding, Scope
from sql.binder.stored.sequence_values import REGCLASS, constant_sequence, runtime_parameter
from sql.binder.stored.stored_names import is_regclass
from sql.catalog.objects import SequenceDefinition
from sql.errors import not_supported
from sql.parser.syntax import Node, is_a, offset_to_position, string_values
from sql.plan.nodes import Call, Const, Expr, Param
from sql.plan.traverse import column_ids, has_subquery
from sql.types.sql_type import INT8, TEXT

# --- calls -------------------------------------------------------------------------------------


def sequence_call(binding: Binding, scope: Scope, node: Node) -> Expr:
    """nextval(), currval(), lastval(), setval()."""
    name = string_values(node.funcname)[-1]
    nodes: Sequence[Node] = [
        without_regclass_casts(arg) if not n else arg for n, arg in enumerate(node.args or ())
    ]
    exprs = [
        binding.parameter(arg.number, arg.location)
        if not place and is_a(arg, ast.ParamRef)
        else binding.expression(scope, arg)
        for place, arg in enumerate(nodes)
    ]
    choice = find_function(name, exprs, name, node.location)
    args = tuple(
        [
            coerce_implicitly(binding, expr, arg, type_by_name(wanted))
            for expr, arg, wanted in zip(exprs[1:], nodes[1:], choice.args[1:], strict=True)
        ]
    )
    sequence: SequenceDefinition | None = None
    if exprs:
        args = (_relation(binding, exprs[0], nodes[0]), *args)
        sequence = constant_sequence(binding, args[0])
    if name == "nextval" and binding.taken:
        return binding.taken.pop(0)
    if scope.acts and not (scope.in_aggregate or scope.window_part):
        binding.acts = True
        return Call(choice.function, args, INT8, binding.new_id())
    if name == "setval":
        raise not_supported(
            "setval() anywhere but in the list of a SELECT", offset_to_position(node.location)
        )
    if scope.items:
        raise not_supported(f"{name}() for each row of a query", offset_to_position(node.location))
    if any(next(column_ids(arg), None) is not None or has_subquery(arg) for arg in args):
        raise not_supported(
            f"{name}() of a computed argument here", offset_to_position(node.location)
        )
    return runtime_parameter(binding, name, sequence, args)


def without_regclass_casts(node: Node) -> Node:
    """The node below casts to regclass."""
    while is_a(node, ast.TypeCast) and is_regclass(node.typeName):
        node = node.arg
    return node


def _relation(binding: Binding, expr: Expr, node: Node) -> Expr:
    """The argument that names a sequence: its oid if that is known now, else what makes one, or a
    text, which is looked up when the call is made.
    """
    if isinstance(expr, Param) and expr.type.name in ("unknown", "regclass"):
        return Param(binding.resolve_parameter(expr, REGCLASS).index, TEXT)
    if expr.type.name == "unknown":
        return coerce_implicitly(binding, expr, node, REGCLASS)
    if expr.type.name in ("text", "varchar"):
        return expr
    if isinstance(expr, Const) and isinstance(expr.value, int):
        return Const(expr.value, REGCLASS)
    return coerce_implicitly(binding, expr, node, REGCLASS)


# --- definitions -------------------------------------------------------------------------------
