"""The columns of a scan that its table does not declare: ctid and xmin.

    t.ctid ─▶ Scan(t, ordinals=(0, 1, CTID)) ─▶ the engine computes it of where the row lies
                                                (`compute/row_versions.py`)

INVARIANTS
  S1  a scan has such a column only if the statement names it; other scans cost nothing.
  S2  nothing but an engine's scan gives them values: their ordinals are of no column of any table,
      and who looks rows up by the columns of a table leaves such scans to an engine.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from sql.functions.table import FunctionKind
from sql.plan.nodes import (
    AnyAll,
    BoolOp,
    Call,
    ColumnId,
    ColumnRef,
    Expr,
    Filter,
    InList,
    InRows,
    Join,
    Limit,
    Logical,
    Plan,
    Project,
    RelationId,
    Scan,
    Sort,
    Subquery,
    Values,
    output_columns,
)
from sql.plan.traverse import inputs, plan_expressions, plan_nodes, scans, walk

CTID: Final = 1 << 20
XMIN: Final = CTID + 1
"""Ordinals beyond those of all columns (S2)."""

SCANNED_NAMES: Final = {CTID: "__ctid", XMIN: "__xmin"}
"""What the columns of an input are called."""


def is_system_column(ordinal: int) -> bool:
    """Whether an ordinal of a scan is of such a column."""
    return ordinal >= CTID


def scans_versions(scan: Scan) -> bool:
    """Whether a scan has such a column."""
    return any(map(is_system_column, scan.ordinals))


def relations_with_versions(plan: Plan) -> frozenset[RelationId]:
    """The relations of which the plan reads such columns."""
    return frozenset([scan.relation for scan in scans(plan) if scans_versions(scan)])


def scanned_name(ordinal: int) -> str:
    """What a column of an input is called in SQL for engines."""
    return SCANNED_NAMES[ordinal] if ordinal >= CTID else f"f{ordinal}"


@dataclass(frozen=True, slots=True)
class VersionUses:
    """How a plan uses these columns.

    `shown`: the places of its output that are nothing else. `compared`: besides, they are only
    compared with values in conditions that rows must fulfil, where NULL says no like a value that
    no other row has. Otherwise a NULL may change the answer in some other way.
    """

    shown: tuple[int, ...]
    compared: bool


def version_uses(plan: Plan) -> VersionUses:
    """See VersionUses."""
    named = _named(plan)
    outputs = output_columns(plan)
    shown = tuple([place for place, column in enumerate(outputs) if column.id in named])
    plans = [plan, *(node.plan for node in walk(plan) if isinstance(node, Subquery))]
    nodes = [node for one in plans for node in plan_nodes(one)]
    compared = all(_only_compares(node, named) for node in nodes)
    return VersionUses(shown, compared)


def _named(plan: Plan) -> set[ColumnId]:
    """The columns that are system columns, under whatever name."""
    nodes = [node for node in walk(plan) if isinstance(node, Scan | Project)]
    named = {
        column.id
        for node in nodes
        if isinstance(node, Scan)
        for column, ordinal in zip(node.columns, node.ordinals, strict=True)
        if is_system_column(ordinal)
    }
    count = -1
    while count != len(named):
        count = len(named)
        named |= {
            column.id
            for node in nodes
            if isinstance(node, Project)
            for column, expr in zip(node.columns, node.exprs, strict=True)
            if isinstance(expr, ColumnRef) and expr.id in named
        }
    return named


def _only_compares(node: Plan, named: set[ColumnId]) -> bool:
    match node:
        case Scan():
            return True
        case Project():
            used = [expr for expr in node.exprs if not isinstance(expr, ColumnRef)]
            return not _names(used, named)
        case Filter():
            return _is_compared(node.predicate, named)
        case Join() | Sort() | Limit() | Values():
            return not _names(plan_expressions(node), named)
        case _:
            # Rows that are combined, numbered or compared as a whole.
            below = {column.id for part in inputs(node) for column in output_columns(part)}
            return below.isdisjoint(named) and not _names(plan_expressions(node), named)


def _names(exprs: Iterable[Expr], named: set[ColumnId]) -> bool:
    """Whether expressions name one of the columns, in their subqueries too."""
    return any(isinstance(n, ColumnRef) and n.id in named for expr in exprs for n in walk(expr))


def _is_compared(condition: Expr, named: set[ColumnId]) -> bool:
    if not _names([condition], named):
        return True
    match condition:
        case Logical(op=BoolOp.AND | BoolOp.OR):
            return all(_is_compared(part, named) for part in condition.args)
        case Call() if condition.function.name == "=" and len(condition.args) == 2:
            left, right = condition.args
            return _is_column_and_value(left, right, named) or _is_column_and_value(
                right, left, named
            )
        case AnyAll(all=False) if condition.function.name == "=":
            return _is_column_and_value(condition.args[0], condition.args[1], named)
        case InList(negated=False):
            return _is_column(condition.arg, named) and not _names(condition.items, named)
        case InRows(negated=False):
            return all(_is_column(arg, named) or not _names([arg], named) for arg in condition.args)
        case _:
            return False


def _is_column_and_value(column: Expr, value: Expr, named: set[ColumnId]) -> bool:
    return _is_column(column, named) and not _names([value], named)


def _is_column(expr: Expr, named: set[ColumnId]) -> bool:
    """The column, or a cast of it, which makes NULL of NULL."""
    while isinstance(expr, Call) and expr.function.kind is FunctionKind.CAST:
        expr = expr.args[0]
    return isinstance(expr, ColumnRef) and expr.id in named
