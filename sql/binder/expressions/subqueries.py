"""Bind subqueries in expressions (SubLink): EXISTS, scalar, IN, NOT IN, ANY and ALL."""

from collections.abc import Sequence

from pglast import ast
from pglast.enums import SubLinkType

from sql.binder.expressions.arrays import no_array_type
from sql.binder.expressions.calls import operator, operator_name
from sql.binder.expressions.quantified import check_subquery_width, quantified_comparison
from sql.binder.expressions.whole_rows import expanded_row_fields
from sql.binder.resolve.query_result import resolve_unknown_columns
from sql.binder.resolve.unified_types import to_common_type
from sql.binder.state import Binding, Scope, SelectResult
from sql.errors import SqlError, not_supported
from sql.parser.syntax import Node, is_a, offset_to_position
from sql.plan.bpchar_calls import trim_bpchar
from sql.plan.nodes import (
    BoolOp,
    Call,
    ColumnRef,
    Expr,
    Logical,
    Plan,
    Project,
    Subquery,
    SubqueryKind,
)
from sql.types.array_text import multidimensional_array
from sql.types.sql_type import BOOL, array_of, is_type


def subquery(binding: Binding, scope: Scope, node: Node) -> Expr:
    """Any SubLink."""
    match node.subLinkType:
        case SubLinkType.EXISTS_SUBLINK:
            result = binding.bind_query(binding, node.subselect, scope)
            resolve_unknown_columns(binding, result)
            return Subquery(SubqueryKind.EXISTS, result.plan, (), BOOL)
        case SubLinkType.EXPR_SUBLINK:
            return _scalar(binding, scope, node)
        case SubLinkType.ANY_SUBLINK | SubLinkType.ALL_SUBLINK:
            return _any_all(binding, scope, node)
        case SubLinkType.ARRAY_SUBLINK:
            return _array(binding, scope, node)
        case _:
            raise not_supported("this kind of subquery", offset_to_position(node.location))


def negated_subquery(binding: Binding, scope: Scope, node: Node) -> Expr | None:
    """`NOT (x IN (SELECT ..))` as NOT IN; None if the node is something else.

    To `grouping.py` it is the negation of IN.
    """
    if (
        is_a(node, ast.SubLink)
        and node.subLinkType == SubLinkType.ANY_SUBLINK
        and _operator(binding, node) == "="
    ):
        return _membership(binding, scope, node, SubqueryKind.NOT_IN, "<>")
    return None


def _any_all(binding: Binding, scope: Scope, node: Node) -> Expr:
    name, some = _operator(binding, node), node.subLinkType == SubLinkType.ANY_SUBLINK
    if some and name == "=":
        return _membership(binding, scope, node, SubqueryKind.IN, "=")
    if not some and name == "<>":
        # The value of NOT IN, but another expression to GROUP BY, DISTINCT and ORDER BY.
        found = _membership(binding, scope, node, SubqueryKind.IN, "<>")
        return Logical(BoolOp.NOT, (found,), BOOL)
    return quantified_comparison(binding, scope, node, name, some=some)


def _operator(binding: Binding, node: Node) -> str:
    return operator_name(binding, node.operName, node.location) if node.operName else "="


def _scalar(binding: Binding, scope: Scope, node: Node) -> Expr:
    result = binding.bind_query(binding, node.subselect, scope)
    resolve_unknown_columns(binding, result)
    columns = result.columns
    if len(columns) != 1:
        raise SqlError(
            "42601", "subquery must return only one column", offset_to_position(node.location)
        )
    expr = Subquery(SubqueryKind.SCALAR, result.plan, (), columns[0].type)
    binding.places[id(expr)] = (expr, node.location)
    return expr


def _array(binding: Binding, scope: Scope, node: Node) -> Expr:
    """`ARRAY(SELECT ..)`."""
    found = _scalar(binding, scope, node)
    assert isinstance(found, Subquery), "a scalar subquery"
    if found.type.element is not None:
        raise multidimensional_array().at(offset_to_position(node.location))
    if not is_type(f"_{found.type.name}"):
        raise no_array_type(found.type, offset_to_position(node.location))
    return Subquery(SubqueryKind.ARRAY, found.plan, (), array_of(found.type))


def _membership(binding: Binding, scope: Scope, node: Node, kind: SubqueryKind, name: str) -> Expr:
    test = node.testexpr
    nodes: Sequence[Node] = (
        expanded_row_fields(binding, scope, test) if is_a(test, ast.RowExpr) else (test,)
    )
    lefts = [binding.expression(scope, part) for part in nodes]
    result = binding.bind_query(binding, node.subselect, scope)
    resolve_unknown_columns(binding, result)
    check_subquery_width(result, len(lefts), node.location)
    args, plan = _matched(binding, lefts, nodes, result, name, node.location)
    return Subquery(kind, plan, args, BOOL)


def _matched(
    binding: Binding,
    lefts: list[Expr],
    nodes: Sequence[Node],
    result: "SelectResult",
    name: str,
    place: int,
) -> tuple[tuple[Expr, ...], Plan]:
    """Both sides converted to what the operator compares, column by column."""
    args: list[Expr] = []
    rights: list[Expr] = []
    for left, node, column in zip(lefts, nodes, result.columns, strict=True):
        right = ColumnRef(column.id, column.type)
        call = operator(binding, name, [left, right], [node, node], place)
        assert isinstance(call, Call), "an operator yields a call"
        pair, _ = to_common_type(binding, list(call.args[:2]), [node, node], "IN")
        args.append(trim_bpchar(pair[0]))
        rights.append(trim_bpchar(pair[1]))
    if all(isinstance(right, ColumnRef) for right in rights):
        return tuple(args), result.plan
    columns = tuple(
        [
            binding.new_column(column.name, right.type)
            for column, right in zip(result.columns, rights, strict=True)
        ]
    )
    return tuple(args), Project(result.plan, columns, tuple(rights))
