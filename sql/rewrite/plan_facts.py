"""Find in one walk over a plan whether passes have anything to do: subqueries, failing calls, ..

INVARIANTS
  F1  a fact that is false stays false, whatever the passes of an engine do to the plan: they add
      none of these to a plan without. A fact that is true may become false; a pass then finds
      nothing to do. Only `hoist_uncorrelated_values.py` adds lateral joins, and runs behind all
      passes that look for them.
  F2  the calls of is_negative_zero() that `negative_zero.py` adds count as calls that may fail. So
      a plan in which it may add some counts as one that may fail from the beginning.

Not here: properties of single nodes (`failure_analysis.py`, `guard_expressions.py`).
"""

from dataclasses import dataclass
from typing import Final, TypeGuard, get_args

from sql.plan.nodes import Call, Const, Expr, Join, Plan, Subquery
from sql.plan.renumbering import defined_columns
from sql.plan.traverse import walk
from sql.rewrite.failure_analysis import may_have_several_rows
from sql.rewrite.guard_expressions import call_may_fail

FLOAT_NAMES: Final = frozenset({"float4", "float8"})
_EXPRESSIONS: Final = get_args(Expr)


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """Whether something stands anywhere in a plan, in its subqueries too (F1).

    `has_outer_float`: outer rows may have a float. `overflows`: a call may fail, be it by overflow
    only. `fails`: a call may fail otherwise, or a scalar subquery may have several rows.
    """

    has_subquery: bool
    has_lateral: bool
    has_outer_float: bool
    is_volatile: bool
    overflows: bool
    fails: bool

    @property
    def has_outer_rows(self) -> bool:
        """Whether a part of the plan may refer to an outer row: a subquery or a lateral side."""
        return self.has_subquery or self.has_lateral

    def may_fail(self, *, by_overflow: bool = True) -> bool:
        """Whether something may fail (F2). `by_overflow`: be it by overflow only."""
        return self.fails or self.has_outer_float or (by_overflow and self.overflows)


def facts_of(plan: Plan) -> PlanFacts:
    """The facts of a plan."""
    has_subquery = has_lateral = has_float = is_volatile = overflows = fails = False
    for node in walk(plan):
        match node:
            case Const():
                continue
            case Join():
                has_lateral = has_lateral or node.lateral
            case Call():
                is_volatile = is_volatile or node.function.volatility == "volatile"
                overflows = overflows or call_may_fail(node)
                fails = fails or (overflows and call_may_fail(node, by_overflow=False))
            case Subquery():
                has_subquery = True
                fails = fails or may_have_several_rows(node)
            case _:
                pass
        has_float = has_float or (_is_expression(node) and node.type.name in FLOAT_NAMES)
    has_outer_float = (has_subquery or has_lateral) and (has_float or _has_float_column(plan))
    return PlanFacts(has_subquery, has_lateral, has_outer_float, is_volatile, overflows, fails)


def _is_expression(node: Plan | Expr) -> TypeGuard[Expr]:
    return isinstance(node, _EXPRESSIONS)


def _has_float_column(plan: Plan) -> bool:
    return any(column.type.name in FLOAT_NAMES for column in defined_columns(plan))
