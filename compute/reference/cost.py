"""Bound the number of rows that the reference engine touches for a plan.

    VALUES of n rows: n      join: left x right      a subquery: once for every row that runs it

The engine runs on the event loop and cannot be stopped, so it gets plans with a small bound only.

INVARIANTS
  K1  the bound is never below the number of rows that the engine will touch.

The function calls of a row are not counted: each has a bound of its own (`repeat` and others stop).
"""

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Final

from sql.plan.nodes import (
    Const,
    CteScan,
    Expr,
    GroupBy,
    Join,
    Plan,
    Recursive,
    RelationId,
    Scan,
    SetCall,
    SetScan,
    Values,
    Window,
    With,
)
from sql.plan.traverse import inputs, plan_expressions, plan_nodes, subqueries

SCANNED_ROWS: Final = 1_000
"""The rows assumed for a scan: the reference engine only gets inputs of about this size."""

Sizes = Mapping[RelationId, int]
"""The rows of inputs, where they are known."""

_ENDLESS: Final = 1 << 62
_OPEN: Final = "not known"


def _set_rows(call: SetCall) -> int:
    """The rows of a set of constants."""
    values = [arg.value if isinstance(arg, Const) else _OPEN for arg in call.args]
    if _OPEN in values:
        return _ENDLESS
    if any(isinstance(value, tuple) for value in values):
        return max(len(value) for value in values if isinstance(value, tuple))
    numbers = [Fraction(value) for value in values if isinstance(value, int | Decimal)]
    if len(numbers) != len(values):
        return 1 if None in values else _ENDLESS
    start, stop, *rest = numbers
    step = rest[0] if rest else Fraction(1)
    return max(int((stop - start) / step) + 1, 1) if step else 1


def series_rows(scan: SetScan) -> int:
    """The rows of generate_series, if it is called; of any other function 1."""
    calls = [call for call in scan.calls if call.function.name == "generate_series"]
    return max(map(_set_rows, calls), default=1)


_NO_SIZES: Final[Sizes] = {}


def row_work_bound(plan: Plan, sizes: Sizes = _NO_SIZES) -> int:
    """An upper bound of the rows that running the plan touches (K1)."""
    rows, total = _rows_and_work(plan, sizes)
    return rows + total


def values_row_count(plan: Plan) -> int:
    """The rows of VALUES in a plan, outside of its subqueries."""
    return sum(len(node.rows) for node in plan_nodes(plan) if isinstance(node, Values))


def _rows_and_work(plan: Plan, sizes: Sizes) -> tuple[int, int]:
    """The most rows that a plan gives, and the rows that it touches on the way."""
    below = [_rows_and_work(node, sizes) for node in inputs(plan)]
    total = sum(touched for _, touched in below)
    match plan:
        case Values():
            rows = len(plan.rows)
        case Scan():
            rows = sizes.get(plan.relation, SCANNED_ROWS)
        case Join():
            left, right = below
            # An outer join makes a row for each of its own rows that finds no partner.
            rows = left[0] * right[0] + left[0] + right[0]
        case Recursive():
            # It may never end.
            rows = _ENDLESS
        case SetScan():
            rows = max(map(_set_rows, plan.calls))
        case CteScan():
            rows = SCANNED_ROWS
        case With():
            rows = below[1][0]
        case Window():
            (rows, _), *_ = below
            # An aggregate sees its frame anew for every row.
            total += rows * rows * len(plan.calls)
        case GroupBy() if not plan.keys and plan.sets is None:
            rows = 1
        case _:
            rows = max(1, sum(made for made, _ in below))
    asked = sum(_subquery_work(expr, sizes) for expr in plan_expressions(plan))
    return rows, total + rows + max(rows, 1) * asked


def _subquery_work(root: Expr, sizes: Sizes) -> int:
    """The rows that one evaluation of an expression touches in its subqueries."""
    return sum(row_work_bound(expr.plan, sizes) for expr in subqueries(root))
