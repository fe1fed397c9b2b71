"""TABLESAMPLE: filter each row with the same probability, for BERNOULLI and SYSTEM alike.

PostgreSQL's SYSTEM takes whole pages, but Meridian has no pages. REPEATABLE is refused: the
positions of rows change when files are compacted, so the same sample cannot be drawn again.
"""

from decimal import Decimal
from typing import Final

from sql.binder.expressions.calls import operator
from sql.binder.resolve.coercion import ASSIGNMENT, coerce
from sql.binder.state import Binding, Scope
from sql.errors import SqlError, datatype_mismatch, not_supported
from sql.functions.table import function_by_id
from sql.parser.syntax import Node, node_position, offset_to_position, string_values
from sql.plan.nodes import Call, Const, Expr, Filter, Plan
from sql.types.sql_type import FLOAT4, FLOAT8, format_type

_METHODS: Final = frozenset({"bernoulli", "system"})


def check_sample(node: Node) -> None:
    """Raise PostgreSQL's errors that do not depend on the table's rows."""
    *qualifier, name = names = string_values(node.method)
    if name not in _METHODS or qualifier not in ([], ["pg_catalog"]):
        name = ".".join(names)
        message = f"tablesample method {name} does not exist"
        raise SqlError("42704", message, offset_to_position(node.location))
    if len(node.args) != 1:
        message = f"tablesample method {name} requires 1 argument, not {len(node.args)}"
        raise SqlError("2202H", message, offset_to_position(node.location))
    if node.repeatable is not None:
        raise not_supported("TABLESAMPLE with REPEATABLE", offset_to_position(node.location))


def sample_rows(binding: Binding, scope: Scope, node: Node, plan: Plan) -> Plan:
    """The rows of a table that fall into the sample."""
    arg = node.args[0]
    percent = coerce(binding, binding.expression(scope, arg), arg, FLOAT4, ASSIGNMENT)
    if percent is None:
        shown = format_type(binding.expression(scope, arg).type)
        message = f"argument of TABLESAMPLE must be type real, not type {shown}"
        raise datatype_mismatch(message, node_position(arg))
    value = _percentage(percent, arg)
    random = Call(function_by_id("random()"), (), FLOAT8)
    chance = Const(value / 100, FLOAT8)
    return Filter(plan, operator(binding, "<", [random, chance], [arg, arg], None))


def _percentage(percent: Expr, node: Node) -> float:
    """The constant; what is computed when the statement runs is refused."""
    if isinstance(percent, Call) and len(percent.args) == 1:
        percent = percent.args[0]
    if not isinstance(percent, Const):
        raise not_supported("TABLESAMPLE with a computed percentage", node_position(node))
    if percent.value is None:
        raise SqlError("2202H", "TABLESAMPLE parameter cannot be null")
    assert isinstance(percent.value, int | float | Decimal), "a number"
    value = float(percent.value)
    if not 0 <= value <= 100:
        raise SqlError("2202H", "sample percentage must be between 0 and 100")
    return value
