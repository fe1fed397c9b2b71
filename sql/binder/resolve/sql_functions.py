"""Calls that are shorthand for an expression: those that look something up in the catalogs.

    pg_get_userbyid(x) ─▶ (select .. from pg_catalog.pg_roles r where r.oid = x)

INVARIANTS
  R1  the arguments are bound where the call stands, before the expression is; nothing of the
      expression's names can capture theirs, and nothing of theirs can be meant by it.
"""

from functools import cache

from pglast import parser

from sql.binder.state import Binding, Scope
from sql.parser.syntax import Node
from sql.plan.nodes import Expr


def stand_in(binding: Binding, text: str, args: tuple[Expr, ...]) -> Expr:
    """The expression with these arguments (R1)."""
    binding.substitutes.append(args)
    try:
        return binding.expression(Scope(), _tree(text))
    finally:
        binding.substitutes.pop()


@cache
def _tree(text: str) -> Node:
    (tree,) = parser.parse_sql(f"select {text}")
    statement: Node = tree.stmt
    return statement.targetList[0].val
