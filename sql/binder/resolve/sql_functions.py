"""SQL-bodied functions: inline the body of a catalog look-up function as an expression.

    pg_get_userbyid(x) ─▶ (select .. from pg_catalog.pg_roles r where r.oid = x)

INVARIANTS
  R1  the arguments are bound at the call, before the body is. Names in the body cannot capture
      names in the arguments, nor the other way round.
  R2  an argument with a subquery is computed once, however often the body uses it: copies of
      copies would grow with every call around a call.
"""

import re
from collections import Counter
from collections.abc import Mapping
from functools import cache

from pglast import parser

from sql.binder.state import Binding, Scope
from sql.parser.syntax import Node
from sql.plan.nodes import ColumnRef, Expr, Project, Subquery, SubqueryKind, Values
from sql.plan.traverse import has_subquery


def inline_sql_function(binding: Binding, text: str, args: tuple[Expr, ...]) -> Expr:
    """The body, bound with these arguments as $1, $2 .. (R1)."""
    uses = _uses(text)
    shared = {at for at, arg in enumerate(args) if uses.get(at, 0) > 1 and has_subquery(arg)}
    if not shared:
        return _body(binding, text, args)
    columns = {at: binding.new_column(f"argument{at + 1}", args[at].type) for at in sorted(shared)}
    inner = [
        ColumnRef(columns[at].id, arg.type) if at in shared else arg for at, arg in enumerate(args)
    ]
    made = tuple([args[at] for at in columns])
    below = Project(Values((), ((),)), tuple(columns.values()), made)
    body = _body(binding, text, tuple(inner))
    plan = Project(below, (binding.new_column("answer", body.type),), (body,))
    return Subquery(SubqueryKind.SCALAR, plan, (), body.type)


def _body(binding: Binding, text: str, args: tuple[Expr, ...]) -> Expr:
    binding.substitutes.append(args)
    try:
        return binding.expression(Scope(), _tree(text))
    finally:
        binding.substitutes.pop()


@cache
def _uses(text: str) -> Mapping[int, int]:
    """How often a body uses each of its arguments, which are counted from 0."""
    return Counter([int(number) - 1 for number in re.findall(r"\$(\d+)", text)])


@cache
def _tree(text: str) -> Node:
    (tree,) = parser.parse_sql(f"select {text}")
    statement: Node = tree.stmt
    return statement.targetList[0].val
