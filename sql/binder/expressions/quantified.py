"""Comparisons with all rows of a subquery: `x op ANY (SELECT ..)`, ALL, and a row with one row.

    x < ANY (q)  ─▶  (SELECT CASE WHEN bool_or(m) THEN true WHEN bool_or(m IS NULL) THEN NULL
                             ELSE false END FROM (SELECT x < c AS m FROM q))

INVARIANTS
  Q1  any operator that returns boolean is allowed, over any number of columns; `= ANY` and `<> ALL`
      have kinds of their own (`SubqueryKind`).
"""

from collections.abc import Sequence
from typing import Final

from pglast import ast
from pglast.enums import SubLinkType

from sql.binder.expressions.operators import ROW_COMPARISONS, row_comparison
from sql.binder.expressions.whole_rows import expanded_row_fields
from sql.binder.resolve.query_result import resolve_unknown_columns
from sql.binder.state import Binding, Scope, SelectResult
from sql.errors import SqlError, not_supported
from sql.functions.table import function_by_id
from sql.parser.syntax import Node, is_a, offset_to_position
from sql.plan.nodes import (
    Aggregate,
    Case,
    ColumnRef,
    Const,
    Expr,
    GroupBy,
    IsTest,
    Plan,
    PlanColumn,
    Project,
    Subquery,
    SubqueryKind,
    Test,
)
from sql.plan.traverse import is_volatile_anywhere
from sql.types.sql_type import BOOL

_TRUE: Final = Const(True, BOOL)
_FALSE: Final = Const(False, BOOL)
_UNKNOWN: Final = Const(None, BOOL)


def quantified_comparison(
    binding: Binding, scope: Scope, node: Node, name: str, *, some: bool
) -> Expr:
    """`test op ANY (query)`, or ALL."""
    matched = _compared(binding, scope, node.testexpr, node.subselect, name, node.location)
    column = matched.columns[0]
    found, unknown = (binding.new_column(shown, BOOL) for shown in ("found", "unknown"))
    value = ColumnRef(column.id, BOOL)
    calls = (
        _aggregate("bool_or(bool)" if some else "bool_and(bool)", value),
        _aggregate("bool_or(bool)", IsTest(Test.IS_NULL, value, BOOL)),
    )
    groups = GroupBy(matched, (), (), (found, unknown), calls)
    decided = Test.IS_TRUE if some else Test.IS_FALSE
    whens: tuple[tuple[Expr, Expr], ...] = (
        (IsTest(decided, ColumnRef(found.id, BOOL), BOOL), _TRUE if some else _FALSE),
        (IsTest(Test.IS_TRUE, ColumnRef(unknown.id, BOOL), BOOL), _UNKNOWN),
    )
    answer = Case(whens, _FALSE if some else _TRUE, BOOL)
    plan = Project(groups, (binding.new_column("answer", BOOL),), (answer,))
    return Subquery(SubqueryKind.SCALAR, plan, (), BOOL)


def _row_with_subquery(binding: Binding, scope: Scope, node: Node, name: str) -> Expr | None:
    """`(a, b) op (SELECT c, d ..)`; NULL without a row, 21000 with several."""
    if node.rexpr.subLinkType != SubLinkType.EXPR_SUBLINK:
        return None
    plan = _compared(binding, scope, node.lexpr, node.rexpr.subselect, name, node.location)
    return Subquery(SubqueryKind.SCALAR, plan, (), BOOL)


ROW_COMPARISONS[ast.SubLink] = _row_with_subquery


def _aggregate(id_: str, arg: Expr) -> Aggregate:
    return Aggregate(function_by_id(id_), (arg,), False, None, (), BOOL)


def _compared(
    binding: Binding, scope: Scope, test: Node, query: Node, name: str, place: int
) -> Project:
    """The subquery with the comparison of each of its rows as the only column."""
    nodes: Sequence[Node] = (
        expanded_row_fields(binding, scope, test) if is_a(test, ast.RowExpr) else (test,)
    )
    lefts = [binding.expression(scope, part) for part in nodes]
    binding.beside.update(lefts)
    if any(map(is_volatile_anywhere, lefts)):
        # It belongs to the outer row, and would be evaluated inside.
        raise not_supported(
            "comparing a volatile function with a subquery", offset_to_position(place)
        )
    result = binding.bind_query(binding, query, scope)
    resolve_unknown_columns(binding, result)
    check_subquery_width(result, len(lefts), place)
    rights = [ColumnRef(column.id, column.type) for column in result.columns]
    pairs: list[tuple[list[Expr], list[Node]]] = [
        ([left, right], [node, node])
        for left, right, node in zip(lefts, rights, nodes, strict=True)
    ]
    column: PlanColumn = binding.new_column("matches", BOOL)
    below: Plan = result.plan
    return Project(below, (column,), (row_comparison(binding, name, pairs, place),))


def check_subquery_width(result: "SelectResult", width: int, place: int) -> None:
    """42601 unless the subquery has as many columns as the row has."""
    if len(result.columns) != width:
        amount = "few" if len(result.columns) < width else "many"
        raise SqlError("42601", f"subquery has too {amount} columns", offset_to_position(place))
