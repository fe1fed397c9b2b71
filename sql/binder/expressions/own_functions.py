"""Functions of schema `meridian`: the session's own timestamps, and the clock. None has arguments.

query_timestamp() is where the statement reads, a bigint for AS OF; last_commit_timestamp() is of
the session's last commit that wrote, NULL before there is one. accept_clock() believes the wall
clock as it is (`storage/clock.py`).
"""

from typing import Final

from sql.binder.expressions.session_calls import (
    ACCEPT_CLOCK,
    LAST_COMMIT_TIMESTAMP,
    session_call_parameter,
    session_value_parameter,
)
from sql.binder.state import Binding, Scope
from sql.catalog.meridian_schema import SYSTEM_SCHEMA_NAMES
from sql.parser.syntax import Node, offset_to_position, string_values
from sql.plan.nodes import Const, Expr
from sql.types.sql_type import BOOL, INT8

_FORMS: Final = ("agg_star", "agg_distinct", "agg_order", "agg_filter", "over", "args")
"""What none of them takes: with one it is no function of ours."""


def own_function(binding: Binding, scope: Scope, node: Node) -> Expr | None:
    """The call of one of them, or None for any other function."""
    names = string_values(node.funcname)
    if len(names) != 2 or names[0] not in SYSTEM_SCHEMA_NAMES:
        return None
    if any(getattr(node, form) for form in _FORMS):
        return None
    place = offset_to_position(node.location)
    match names[1]:
        case "query_timestamp":
            binding.tells_timestamp = binding.uses_session = True
            return Const(binding.context.logical_now, INT8)
        case "last_commit_timestamp":
            return session_value_parameter(binding, LAST_COMMIT_TIMESTAMP, scope, place)
        case "accept_clock":
            return session_call_parameter(binding, ACCEPT_CLOCK, (), BOOL, place)
        case _:
            return None
