"""Bind a subquery that yields a row as JSON: row_to_json((SELECT e FROM (SELECT t.a, t.b) AS e)).

The subquery is bound so that it returns the row's JSON; its fields may then be of any type. If it
selects a mere row of expressions, as Hasura writes it for every object, the expression replaces it.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from pglast import ast
from pglast.enums import SetOperation, SubLinkType

from sql.binder.state import Binding, Scope
from sql.parser.syntax import Node, alias_of, column_name, is_a
from sql.plan.nodes import Expr, Plan, Project, Subquery, SubqueryKind
from sql.plan.projections import ONE_ROW
from sql.plan.traverse import column_ids, has_subquery, is_volatile_expression, substitute_columns
from sql.types.sql_type import JSON


def row_of_subquery(binding: Binding, scope: Scope, node: Node) -> Expr | None:
    """The JSON of the row that a subquery yields; None for any other expression."""
    row = _row_named(node)
    if row is None:
        return None
    outer, binding.row_asked = binding.row_asked, row
    try:
        result = binding.bind_query(binding, node.subselect, scope)
        made = binding.row_asked is None
    finally:
        binding.row_asked = outer
    if not made:
        # It is a column that is called as its table.
        return None
    plan = result.plan
    return _alone(plan) or Subquery(SubqueryKind.SCALAR, plan, (), JSON)


def _row_named(node: Node) -> Node | None:
    """The only target of a subquery, if it is ROW(..), or called as an entry of its FROM."""
    if not is_a(node, ast.SubLink) or node.subLinkType != SubLinkType.EXPR_SUBLINK:
        return None
    query = node.subselect
    targets: Sequence[Node] = query.targetList or ()
    if query.op != SetOperation.SETOP_NONE or len(targets) != 1:
        return None
    value = targets[0].val
    if _compares(query, value):
        return None
    if is_a(value, ast.RowExpr):
        return value
    if not is_a(value, ast.ColumnRef):
        return None
    *qualifier, last = value.fields
    if qualifier or is_a(last, ast.A_Star) or last.sval not in _names(query.fromClause or ()):
        return None
    return value


def _compares(query: Node, value: Node) -> bool:
    """Whether the rows themselves are compared, which their json is not."""
    if query.distinctClause or query.groupClause:
        return True
    name = column_name(value)
    keys = [key.node for key in query.sortClause or ()]
    return any(is_a(key, ast.A_Const) or column_name(key) == name for key in keys)


def _names(nodes: Sequence[Node]) -> Iterator[str]:
    """What the entries of a FROM are called."""
    for node in nodes:
        if alias_of(node) is not None:
            yield node.alias.aliasname
        elif is_a(node, ast.RangeVar):
            yield node.relname
        elif is_a(node, ast.JoinExpr):
            yield from _names((node.larg, node.rarg))


def _alone(plan: Plan) -> Expr | None:
    """The expression that a plan is, if it is of one row and of nothing else."""
    if not isinstance(plan, Project) or len(plan.exprs) != 1:
        return None
    (expr,) = plan.exprs
    below = plan.input
    while isinstance(below, Project):
        made = dict(zip([column.id for column in below.columns], below.exprs, strict=True))
        used = Counter(column_ids(expr))
        if any(used[id_] > 1 and _stands_once(part) for id_, part in made.items()):
            return None
        expr, below = substitute_columns(expr, made), below.input
    return expr if below == ONE_ROW else None


def _stands_once(expr: Expr) -> bool:
    """Its subqueries make columns of their own (P1 of `nodes.py`), its calls values."""
    return has_subquery(expr) or is_volatile_expression(expr)
