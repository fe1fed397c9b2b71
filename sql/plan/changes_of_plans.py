"""How the answer of a plan changes with its inputs: row by row, or only as a whole.

    linear      plan(rows before + rows that came - rows that went)
                  = plan(before) + plan(rows that came) - plan(rows that went)
    determined  two runs over the same rows give the same rows, to the bit

Filters, projections and UNION ALL over scans are linear. A plan is not determined where PostgreSQL
leaves several answers: LIMIT among peers, row_number(), sums of floats, 0 or -0 as the one row of a
group. Whoever has been told one of them cannot go on from another.
"""

from typing import Final

from sql.plan.nodes import (
    Aggregate,
    DistinctOn,
    DistinctRows,
    Expr,
    Filter,
    FrameMode,
    GroupBy,
    Limit,
    Plan,
    PlanColumn,
    Project,
    Recursive,
    Scan,
    SetOp,
    SetOpKind,
    Sort,
    Subquery,
    SubqueryKind,
    Window,
    WindowCall,
    output_columns,
)
from sql.plan.traverse import walk
from sql.types.enums import is_enum
from sql.types.sql_type import SqlType

_EXACT_AGGREGATES: Final = frozenset(
    {"count", "sum", "avg", "min", "max", "bool_and", "bool_or", "every", "bit_and", "bit_or"}
)
_PEERS_ALIKE: Final = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})
_ALIKE: Final = frozenset(
    {"int2", "int4", "int8", "bool", "date", "timestamp", "timestamptz", "time", "uuid", "text"}
    | {"numeric", "varchar", "bytea", "oid", "name"}
)
"""Types of which equal values are the same: not so floats, intervals, jsonb. A numeric has the
scale of its column."""


def linear_plan(plan: Plan) -> Plan | None:
    """The plan without the order of its rows if it is linear, or None."""
    match plan:
        case Scan():
            return plan
        case Sort():
            return linear_plan(plan.input)
        case Filter():
            below = linear_plan(plan.input)
            return None if below is None else Filter(below, plan.predicate)
        case Project():
            below = linear_plan(plan.input)
            return None if below is None else Project(below, plan.columns, plan.exprs)
        case SetOp(kind=SetOpKind.UNION, all=True):
            left, right = linear_plan(plan.left), linear_plan(plan.right)
            if left is None or right is None:
                return None
            return SetOp(plan.kind, plan.all, left, right, plan.columns)
        case _:
            return None


def undetermined_part(plan: Plan) -> str | None:
    """A part of the plan that has several right answers, as messages name it."""
    for node in walk(plan):
        found = _undetermined(node)
        if found is not None:
            return found
    return None


def _undetermined(node: Plan | Expr) -> str | None:
    match node:
        case Limit() if not node.ties or node.offset is not None:
            return "LIMIT or OFFSET"
        case DistinctOn():
            return "DISTINCT ON"
        case DistinctRows() if not _are_alike(output_columns(node)):
            return "DISTINCT of such values"
        case SetOp(all=False) | Recursive(all=False) if not _are_alike(node.columns):
            return "UNION, INTERSECT or EXCEPT of such values"
        case SetOp(all=True, kind=SetOpKind.INTERSECT | SetOpKind.EXCEPT) if not _are_alike(
            node.columns
        ):
            return "UNION, INTERSECT or EXCEPT of such values"
        case GroupBy():
            if not _are_alike(node.key_columns):
                return "GROUP BY of such values"
            if not all(map(_is_exact, node.aggregates)):
                return "such aggregates"
        case Window() if not all(map(_is_same_for_peers, node.calls)):
            return "such window functions"
        case Subquery(kind=SubqueryKind.ARRAY):
            return "an array of a subquery's rows"
        case _:
            pass
    return None


def _are_alike(columns: tuple[PlanColumn, ...]) -> bool:
    return all(has_exact_equality(column.type) for column in columns)


def has_exact_equality(type_: SqlType) -> bool:
    """Whether equal values of the type are the same value, to the bit."""
    return type_.name in _ALIKE or is_enum(type_.name)


def _is_exact(call: Aggregate | WindowCall) -> bool:
    """Whether its value does not depend on the order of its input."""
    name = call.function.name
    if name not in _EXACT_AGGREGATES:
        return False
    if name in ("min", "max"):
        return all(has_exact_equality(arg.type) for arg in call.args)
    # Sums of floats depend on the order; those of numerics do not.
    return not any(arg.type.name in ("float4", "float8") for arg in call.args)


def _is_same_for_peers(call: WindowCall) -> bool:
    if call.function.name in _PEERS_ALIKE:
        return True
    return call.frame.mode is not FrameMode.ROWS and _is_exact(call)
