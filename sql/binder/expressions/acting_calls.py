"""Bind functions that act on the session for each row: of advisory locks, and pg_notify().

In a target list the call is made for each row (`row_calls.py`). In a query without FROM, VALUES and
the like it is a runtime parameter, computed before the statement runs. Anywhere else it is refused:
how often an engine would evaluate it there is not known.

Sequence functions do the same, but for their first argument (`sequence_calls.py`).
"""

from collections.abc import Sequence
from typing import Final

from sql.binder.expressions.calls import converted_arguments, type_by_name
from sql.binder.expressions.session_calls import SIDE_EFFECT_FUNCTIONS
from sql.binder.resolve.function_choice import find_function
from sql.binder.state import RUNTIME_PARAMETER_BASE, Binding, Scope
from sql.binder.stored.sequence_values import SEQUENCE_FUNCTIONS
from sql.errors import not_supported
from sql.parser.syntax import Node, offset_to_position, string_values
from sql.plan.nodes import Call, Expr, Param
from sql.plan.traverse import column_ids, has_subquery
from sql.statements.runtime_parameters import RuntimeParameter

ADVISORY_LOCK_FUNCTIONS: Final = frozenset(
    {
        "pg_advisory_lock",
        "pg_advisory_lock_shared",
        "pg_advisory_unlock",
        "pg_advisory_unlock_all",
        "pg_advisory_unlock_shared",
        "pg_advisory_xact_lock",
        "pg_advisory_xact_lock_shared",
        "pg_try_advisory_lock",
        "pg_try_advisory_lock_shared",
        "pg_try_advisory_xact_lock",
        "pg_try_advisory_xact_lock_shared",
    }
)

NOTIFY_FUNCTION: Final = "pg_notify"

ACTING_FUNCTIONS: Final = ADVISORY_LOCK_FUNCTIONS | {NOTIFY_FUNCTION}
"""Functions that act for each row; a strict one of NULL does nothing."""

ROW_CALL_FUNCTIONS: Final = ACTING_FUNCTIONS | SEQUENCE_FUNCTIONS | SIDE_EFFECT_FUNCTIONS
"""Functions that the session calls for each row of a result."""


def acting_call(binding: Binding, scope: Scope, node: Node) -> Expr:
    """A call of one of ACTING_FUNCTIONS. Raises 0A000 where it may be skipped or repeated."""
    name = string_values(node.funcname)[-1]
    place = offset_to_position(node.location)
    nodes: Sequence[Node] = node.args or ()
    exprs = [binding.expression(scope, arg) for arg in nodes]
    choice = find_function(name, exprs, name, node.location)
    args = converted_arguments(binding, choice, exprs, nodes)
    result = type_by_name(choice.result)
    binding.uses_session = True
    if scope.acts and not (scope.in_aggregate or scope.window_part):
        binding.acts = True
        return Call(choice.function, args, result, binding.new_id())
    if scope.items:
        raise not_supported(f"{name}() for each row of a query", place)
    if any(next(column_ids(arg), None) is not None or has_subquery(arg) for arg in args):
        raise not_supported(f"{name}() of a computed argument here", place)
    binding.supplied.append(RuntimeParameter(name, args=args))
    return Param(RUNTIME_PARAMETER_BASE + len(binding.supplied), result)
