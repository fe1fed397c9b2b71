"""Keep the plan of a long chain of UNION ALL shallow.

    a UNION ALL b UNION ALL c UNION ALL d   ─▶   (a ∪ b) ∪ (c ∪ d)
    SELECT 1 UNION ALL SELECT 2 ..          ─▶   VALUES (1), (2), ..

The parser nests such a chain as deep as it is long. UNION ALL is associative and keeps the order of
its branches, so any nesting gives the same rows.
"""

from dataclasses import replace
from typing import Final

from sql.binder.state import Binding
from sql.plan.nodes import Const, Expr, Plan, PlanColumn, Project, SetOp, SetOpKind, Values

_BRANCHES_MIN: Final = 16
"""Shorter chains stay as they were written, as EXPLAIN shows them."""


def with_shallow_unions(binding: Binding, plan: Plan) -> Plan:
    """The plan of a set operation, in which a long chain at its top is a balanced tree."""
    if not _is_union_all(plan):
        return plan
    branches = _branches(plan)
    if len(branches) < _BRANCHES_MIN:
        return plan
    assert isinstance(plan, SetOp), "a union is a set operation"
    level = _with_constants_together(binding, branches, plan.columns)
    while len(level) > 2:
        pairs = zip(level[::2], level[1::2], strict=False)
        made: list[Plan] = [
            SetOp(SetOpKind.UNION, True, left, right, _renewed(binding, plan.columns))
            for left, right in pairs
        ]
        level = made + level[len(made) * 2 :]
    if len(level) == 1:
        (values,) = level
        assert isinstance(values, Values), "several branches became one, of constants"
        return replace(values, columns=plan.columns)
    return replace(plan, left=level[0], right=level[1])


def _is_union_all(plan: Plan) -> bool:
    return isinstance(plan, SetOp) and plan.kind is SetOpKind.UNION and plan.all


def _branches(plan: Plan) -> list[Plan]:
    """What the chain is made of, in order; without recursion."""
    found: list[Plan] = []
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        if isinstance(node, SetOp) and _is_union_all(node):
            waiting += (node.right, node.left)
        else:
            found.append(node)
    return found


def _with_constants_together(
    binding: Binding, branches: list[Plan], columns: tuple[PlanColumn, ...]
) -> list[Plan]:
    """The branches, of which neighbours that are rows of constants are one VALUES."""
    made: list[Plan] = []
    rows: list[tuple[Expr, ...]] = []

    def close() -> None:
        if rows:
            made.append(Values(_renewed(binding, columns), tuple(rows)))
            rows.clear()

    for branch in branches:
        row = _constants(branch, columns)
        if row is None:
            close()
            made.append(branch)
        else:
            rows.append(row)
    close()
    return made


def _constants(plan: Plan, columns: tuple[PlanColumn, ...]) -> tuple[Expr, ...] | None:
    """The only row of a branch, if it consists of constants of the chain's types."""
    if not isinstance(plan, Project) or not isinstance(plan.input, Values):
        return None
    if len(plan.input.rows) != 1 or not plan.exprs:
        return None
    pairs = zip(plan.exprs, columns, strict=True)
    same = all(isinstance(expr, Const) and expr.type == column.type for expr, column in pairs)
    return plan.exprs if same else None


def _renewed(binding: Binding, columns: tuple[PlanColumn, ...]) -> tuple[PlanColumn, ...]:
    return tuple([binding.new_column(column.name, column.type) for column in columns])
