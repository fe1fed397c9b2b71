"""EXPLAIN: a plan as lines of text, the way PostgreSQL indents them."""

from collections.abc import Callable, Mapping, Sequence
from typing import assert_never

from sql.plan import (
    CteScan,
    DistinctOn,
    DistinctRows,
    Filter,
    GroupBy,
    Join,
    JoinKind,
    Limit,
    Plan,
    Project,
    Recursive,
    RelationId,
    Scan,
    SetOp,
    SetScan,
    Sort,
    Values,
    Window,
    With,
)
from storage.batch import ShardView


def plan_lines(plan: Plan, inputs: Mapping[RelationId, ShardView]) -> list[str]:
    """One line per node, children below and to the right."""
    lines: list[str] = []

    def visit(node: Plan, depth: int) -> None:
        arrow = "  " * depth + ("->  " if depth else "")
        lines.append(arrow + _label(node, inputs))
        for child in _children(node):
            visit(child, depth + (1 if depth == 0 else 3))

    visit(plan, 0)
    return lines


def _children(plan: Plan) -> Sequence[Plan]:
    match plan:
        case Scan() | Values() | CteScan() | SetScan():
            return ()
        case Join() | SetOp():
            return (plan.left, plan.right)
        case With():
            return (plan.definition, plan.input)
        case Recursive():
            return (plan.base, plan.step)
        case _:
            return (plan.input,)


def _label(plan: Plan, inputs: Mapping[RelationId, ShardView]) -> str:
    match plan:
        case Scan():
            return f"Scan on {plan.name}" + _size(inputs.get(plan.relation))
        case Values():
            return "Result" if not plan.columns else f"Values ({_many(len(plan.rows), 'row')})"
        case Project():
            return "Project: " + ", ".join(column.name for column in plan.columns)
        case Filter():
            return "Filter"
        case Join():
            kind = "Join" if plan.kind is JoinKind.INNER else f"{plan.kind.value.title()} Join"
            return f"Lateral {kind}" if plan.lateral else kind
        case GroupBy() if plan.sets is not None:
            return f"Aggregate ({_many(len(plan.sets), 'grouping set')})"
        case GroupBy():
            return f"Aggregate ({_many(len(plan.keys), 'key')})" if plan.keys else "Aggregate"
        case Window():
            return f"WindowAgg ({_many(len(plan.calls), 'call')})"
        case DistinctRows() | DistinctOn():
            return "Unique"
        case SetOp():
            return f"{plan.kind.value.title()}{' All' if plan.all else ''}"
        case Sort():
            return f"Sort ({_many(len(plan.keys), 'key')})"
        case Limit():
            return "Limit"
        case SetScan():
            return f"Function Scan on {', '.join(call.function.name for call in plan.calls)}"
        case With():
            return f"With {plan.name}"
        case CteScan():
            return f"CTE Scan on {plan.name}"
        case Recursive():
            return f"Recursive Union as {plan.name}"
        case _:
            assert_never(plan)


def _size(view: ShardView | None) -> str:
    if view is None:
        return ""
    in_files = sum(piece.row_limit - len(piece.deleted) for piece in view.files)
    in_memory = sum(piece.rows.num_rows - len(piece.deleted) for piece in view.inline)
    files = _many(len(view.files), "file")
    return f"  (files: {files}, {_many(in_files, 'row')}; in memory: {_many(in_memory, 'row')})"


_many: Callable[[int, str], str] = lambda count, noun: f"{count} {noun}{'' if count == 1 else 's'}"  # noqa: E731
