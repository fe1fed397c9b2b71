"""SQL-bodied functions: inline the body of a catalog look-up function as an expression.

    pg_get_userbyid(x) ─▶ (select .. from pg_catalog.pg_roles r where r.oid = x)

INVARIANTS
  R1  the arguments are bound at the call, before the body is. Names in the body cannot capture
      names in the arguments, nor the other way round.
"""

from functools import cache

from pglast import parser

from sql.binder.state import Binding, Scope
from sql.parser.syntax import Node
from sql.plan.nodes import Expr


def inline_sql_function(binding: Binding, text: str, args: tuple[Expr, ...]) -> Expr:
    """The body, bound with these arguments as $1, $2 .. (R1)."""
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
