"""Bind pg_notify(): like nextval(), it acts once for each row that a statement yields.

Where nobody counts rows, as in WHERE or under an aggregate, it is refused. Source: async.c.
"""

from typing import Final

from sql.binder.resolve.overloads import OverloadChoice
from sql.binder.state import Binding, Scope
from sql.errors import not_supported
from sql.parser.syntax import Node, offset_to_position
from sql.plan.nodes import Call, Expr
from sql.types.sql_type import VOID

NOTIFY_FUNCTION: Final = "pg_notify"


def notify_call(
    binding: Binding, scope: Scope, node: Node, choice: OverloadChoice, args: tuple[Expr, ...]
) -> Call:
    """A call for each row (`row_calls.py`)."""
    if not scope.acts or scope.in_aggregate or scope.window_part:
        what = f"{NOTIFY_FUNCTION}() anywhere but in the list of a SELECT"
        raise not_supported(what, offset_to_position(node.location))
    binding.acts = True
    return Call(choice.function, args, VOID, binding.new_id())
