"""Describe plans for EXPLAIN: nodes with titles and details, and indented lines of text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, assert_never

from sql.functions.table import FunctionKind
from sql.plan.constant_rows import rows_as_conditions
from sql.plan.nodes import (
    Aggregate,
    AnyAll,
    Call,
    Case,
    Coalesce,
    ColumnId,
    ColumnRef,
    Const,
    CteScan,
    Distinct,
    DistinctOn,
    DistinctRows,
    Exclusion,
    Expr,
    Extreme,
    Filter,
    Frame,
    GroupBy,
    InList,
    InRows,
    IsTest,
    Join,
    JoinKind,
    Limit,
    Logical,
    Param,
    Plan,
    PlanColumn,
    Project,
    Recursive,
    Scan,
    SetOp,
    SetScan,
    Sort,
    SortKey,
    Subquery,
    SubqueryKind,
    Values,
    Window,
    WindowCall,
    With,
)
from sql.plan.traverse import inputs, plan_expressions, subqueries
from sql.statements.bound import BoundQuery, Modify
from sql.types.sql_type import format_type
from sql.types.text_output import format_text


@dataclass(frozen=True, slots=True)
class ExplainedNode:
    """A node of a plan as EXPLAIN shows it; `subplans` belong to its expressions."""

    plan: Plan
    title: str
    details: tuple[tuple[str, str], ...]
    subplans: tuple["ExplainedNode", ...]
    inputs: tuple["ExplainedNode", ...]


def explained_plan(plan: Plan) -> ExplainedNode:
    """A plan with all that is below it."""
    return _explained(plan, _Names(plan))


# --- plans -------------------------------------------------------------------------------------


def explain_lines(statement: BoundQuery | Modify) -> list[str]:
    """The plan as lines, indented two more blanks a level, PostgreSQL's arrows in front of
    inputs.
    """
    match statement:
        case BoundQuery():
            lines = _rendered(statement.plan)
            if statement.as_of is not None:
                word = "As Of At Least" if statement.as_of_at_least else "As Of"
                lines.insert(1, f"  {word}: {_Names(statement.plan).expr(statement.as_of)}")
            return lines
        case Modify():
            table = statement.table
            head = f"{statement.kind.value.capitalize()} on {table.schema}.{table.name}"
            return [head, *_indented(_rendered(statement.source))]
        case _:
            assert_never(statement)


def expression_text(expr: Expr | Aggregate | WindowCall, names: Mapping[ColumnId, str]) -> str:
    """One expression as text, columns by these names."""
    shown = _Names(None, names)
    match expr:
        case Aggregate():
            return shown.aggregate(expr)
        case WindowCall():
            return shown.window(expr)
        case _:
            return shown.expr(expr)


def _rendered(plan: Plan) -> list[str]:
    return list(_lines(explained_plan(plan)))


def _explained(plan: Plan, names: "_Names") -> ExplainedNode:
    return ExplainedNode(
        plan,
        _head(plan),
        tuple(_details(plan, names)),
        tuple(
            _explained(inner.plan, names)
            for expr in plan_expressions(plan)
            for inner in subqueries(expr)
        ),
        tuple(_explained(below, names) for below in inputs(plan)),
    )


def _lines(node: ExplainedNode) -> Iterator[str]:
    yield node.title
    for name, value in node.details:
        yield f"  {name}: {value}"
    for subplan in node.subplans:
        yield "  SubPlan"
        yield from _indented(list(_lines(subplan)), 4)
    for below in node.inputs:
        yield from _indented(list(_lines(below)))


def _indented(lines: Sequence[str], width: int = 2) -> list[str]:
    first, *rest = lines
    return [f"{' ' * width}->  {first}", *(f"{' ' * (width + 4)}{line}" for line in rest)]


def _head(plan: Plan) -> str:
    match plan:
        case Scan():
            return f"Scan on {plan.name}"
        case Values():
            return "Result" if not plan.columns else "Values Scan"
        case Project():
            return "Project"
        case Filter():
            return "Filter"
        case Join():
            kind = "" if plan.kind is JoinKind.INNER else f"{plan.kind.value.capitalize()} "
            return f"{kind}Join{' Lateral' if plan.lateral else ''}"
        case GroupBy():
            if plan.sets is not None:
                return "MixedAggregate"
            return "GroupAggregate" if plan.keys else "Aggregate"
        case Window():
            return "WindowAgg"
        case DistinctRows() | DistinctOn():
            return "Unique"
        case SetOp():
            return f"{plan.kind.value.capitalize()}{' All' if plan.all else ''}"
        case Sort():
            return "Sort"
        case Limit():
            return "Limit"
        case SetScan():
            return f"Function Scan on {', '.join(call.function.name for call in plan.calls)}"
        case With():
            return f"With {plan.name}"
        case CteScan():
            return f"CTE Scan on {plan.name}"
        case Recursive():
            return f"Recursive Union{' All' if plan.all else ''} as {plan.name}"
        case _:
            assert_never(plan)


def _details(plan: Plan, names: "_Names") -> Iterator[tuple[str, str]]:
    match plan:
        case Scan():
            columns = plan.columns + (plan.identity or ())
            yield "Output", ", ".join(column.name for column in columns)
        case SetScan():
            shown = [f"{c.function.name}({', '.join(map(names.expr, c.args))})" for c in plan.calls]
            yield "Function Call", ", ".join(shown)
        case Values():
            if plan.columns:
                yield "Rows", str(len(plan.rows))
        case Project():
            shown = [
                _output(column, expr, names)
                for column, expr in zip(plan.columns, plan.exprs, strict=True)
            ]
            yield "Output", ", ".join(shown)
        case Filter():
            yield "Filter", names.expr(plan.predicate)
        case Join():
            if plan.condition is not None:
                yield "Join Filter", names.expr(plan.condition)
        case GroupBy():
            yield from _grouping_details(plan, names)
        case Window():
            yield "Windows", ", ".join(map(names.window, plan.calls))
        case Sort():
            yield "Sort Key", ", ".join(names.sort_key(key) for key in plan.keys)
        case Limit():
            if plan.limit is not None:
                yield "Limit", names.expr(plan.limit)
            if plan.offset is not None:
                yield "Offset", names.expr(plan.offset)
            if plan.ties:
                yield "With Ties", "true"
        case DistinctOn():
            yield "Distinct Key", ", ".join(map(names.expr, plan.keys))
            if plan.order:
                yield "Order", ", ".join(map(names.sort_key, plan.order))
        case DistinctRows() | SetOp() | With() | CteScan() | Recursive():
            return


def _output(column: PlanColumn, expr: Expr, names: "_Names") -> str:
    shown = names.expr(expr)
    return shown if shown == column.name else f"{shown} AS {column.name}"


def _grouping_details(plan: GroupBy, names: "_Names") -> Iterator[tuple[str, str]]:
    if plan.sets is not None:
        for one in plan.sets:
            shown_keys = ", ".join(names.expr(plan.keys[number]) for number in one)
            yield "Group Key", f"({shown_keys})"
    elif plan.keys:
        yield "Group Key", ", ".join(names.expr(key) for key in plan.keys)
    if plan.aggregates:
        shown = [names.aggregate(aggregate) for aggregate in plan.aggregates]
        yield "Aggregates", ", ".join(shown)


class _Names:
    """Expressions as text, columns by the names that the plan gives them."""

    def __init__(self, plan: Plan | None, names: Mapping[ColumnId, str] | None = None) -> None:
        self._columns: dict[ColumnId, str] = dict(names or {})
        if plan is not None:
            self._learn(plan)

    def _learn(self, plan: Plan) -> None:
        match plan:
            case Scan():
                columns = plan.columns + (plan.identity or ())
                self._columns.update((col.id, f"{plan.name}.{col.name}") for col in columns)
            case Values() | Project() | SetOp() | Recursive() | SetScan():
                self._columns.update((column.id, column.name) for column in plan.columns)
            case CteScan():
                self._columns.update((col.id, f"{plan.name}.{col.name}") for col in plan.columns)
            case GroupBy():
                self._learn_grouping(plan)
            case Window():
                self._learn(plan.input)
                calls = zip(plan.columns, plan.calls, strict=True)
                self._columns.update((column.id, self.window(call)) for column, call in calls)
            case _:
                pass
        for below in inputs(plan):
            self._learn(below)
        for expr in plan_expressions(plan):
            for inner in subqueries(expr):
                self._learn(inner.plan)

    def _learn_grouping(self, plan: GroupBy) -> None:
        self._learn(plan.input)
        for column, key in zip(plan.key_columns, plan.keys, strict=True):
            self._columns[column.id] = self.expr(key)
        for column, aggregate in zip(plan.aggregate_columns, plan.aggregates, strict=True):
            self._columns[column.id] = self.aggregate(aggregate)
        for column, numbers in zip(plan.grouping_columns, plan.groupings, strict=True):
            shown = ", ".join(self.expr(plan.keys[number]) for number in numbers)
            self._columns[column.id] = f"GROUPING({shown})"

    def sort_key(self, key: SortKey) -> str:
        direction = " DESC" if key.descending else ""
        usual = key.nulls_first == key.descending
        nulls = "" if usual else f" NULLS {'FIRST' if key.nulls_first else 'LAST'}"
        return f"{self.expr(key.expr)}{direction}{nulls}"

    def aggregate(self, aggregate: Aggregate) -> str:
        inside = ", ".join(map(self.expr, aggregate.args)) or "*"
        distinct = "DISTINCT " if aggregate.distinct else ""
        order = ""
        if aggregate.order:
            order = f" ORDER BY {', '.join(map(self.sort_key, aggregate.order))}"
        kept = "" if aggregate.filter is None else f" FILTER (WHERE {self.expr(aggregate.filter)})"
        return f"{aggregate.function.name}({distinct}{inside}{order}){kept}"

    def window(self, call: WindowCall) -> str:
        inside = ", ".join(map(self.expr, call.args))
        star = "*" if call.function.kind is FunctionKind.AGGREGATE else ""
        kept = "" if call.filter is None else f" FILTER (WHERE {self.expr(call.filter)})"
        parts: list[str] = []
        if call.partition:
            parts.append(f"PARTITION BY {', '.join(map(self.expr, call.partition))}")
        if call.order:
            parts.append(f"ORDER BY {', '.join(map(self.sort_key, call.order))}")
        if call.frame != Frame():
            parts.append(self._frame(call.frame))
        return f"{call.function.name}({inside or star}){kept} OVER ({' '.join(parts)})"

    def _frame(self, frame: Frame) -> str:
        start, end = (
            f"{'' if bound.offset is None else self.expr(bound.offset) + ' '}{bound.kind.upper()}"
            for bound in (frame.start, frame.end)
        )
        plain = frame.exclusion is Exclusion.NO_OTHERS
        exclusion = "" if plain else f" EXCLUDE {frame.exclusion.upper()}"
        return f"{frame.mode.upper()} BETWEEN {start} AND {end}{exclusion}"

    def expr(self, expr: Expr) -> str:
        """One expression, operators in parentheses."""
        match expr:
            case Const():
                return _constant(expr)
            case Param():
                return f"${expr.index}"
            case ColumnRef():
                return self._columns.get(expr.id, f"#{expr.id}")
            case Call():
                return self._call(expr)
            case Logical():
                if len(expr.args) == 1:
                    return f"(NOT {self.expr(expr.args[0])})"
                return f"({f' {expr.op.value.upper()} '.join(map(self.expr, expr.args))})"
            case IsTest():
                return f"({self.expr(expr.arg)} {expr.test.value.upper()})"
            case Distinct():
                word = "IS NOT DISTINCT FROM" if expr.negated else "IS DISTINCT FROM"
                return f"({self.expr(expr.left)} {word} {self.expr(expr.right)})"
            case Coalesce():
                return f"COALESCE({', '.join(map(self.expr, expr.args))})"
            case Extreme():
                word = "GREATEST" if expr.greatest else "LEAST"
                return f"{word}({', '.join(map(self.expr, expr.args))})"
            case InRows():
                return self.expr(rows_as_conditions(expr))
            case Case() | InList() | AnyAll() | Subquery():
                return self._compound(expr)
            case _:
                assert_never(expr)

    def _compound(self, expr: Case | InList | AnyAll | Subquery) -> str:
        match expr:
            case Case():
                whens = [f"WHEN {self.expr(a)} THEN {self.expr(b)}" for a, b in expr.whens]
                return f"CASE {' '.join(whens)} ELSE {self.expr(expr.otherwise)} END"
            case InList():
                word = "NOT IN" if expr.negated else "IN"
                items = ", ".join(map(self.expr, expr.items))
                return f"({self.expr(expr.arg)} {word} ({items}))"
            case AnyAll():
                word = "ALL" if expr.all else "ANY"
                left, array = self.expr(expr.args[0]), self.expr(expr.args[1])
                return f"({left} {expr.function.name} {word} ({array}))"
            case Subquery(kind=SubqueryKind.SCALAR | SubqueryKind.ARRAY):
                return "(SubPlan)"
            case Subquery(kind=SubqueryKind.EXISTS):
                return "EXISTS(SubPlan)"
            case Subquery():
                left = ", ".join(map(self.expr, expr.args))
                return f"({left} {expr.kind.value.upper()} (SubPlan))"

    def _call(self, expr: Call) -> str:
        row = expr.function
        args = [self.expr(arg) for arg in expr.args[: len(expr.args) - int(row.zone)]]
        if row.kind is FunctionKind.CAST or row.name in ("narrow", "assign"):
            return f"({args[0]})::{_shown_type(expr)}"
        if row.kind is FunctionKind.OPERATOR:
            return (
                f"({row.name} {args[0]})" if len(args) == 1 else f"({f' {row.name} '.join(args)})"
            )
        return f"{row.name}({', '.join(args)})"


def _shown_type(expr: Call) -> str:
    type_ = expr.type
    if type_.name == "numeric" and type_.typmod < 0:
        return f"numeric({type_.precision},{type_.scale})"
    return format_type(type_)


_BARE: Final = frozenset({"int2", "int4", "int8", "oid", "numeric"})
"""Types whose constants are as they are written without quotes."""


def _constant(expr: Const) -> str:
    value = expr.value
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        text = value.replace("'", "''")
        return f"'{text}'"
    if isinstance(value, bytes):
        return f"'\\x{value.hex()}'"
    if expr.type.name in _BARE:
        return str(value)
    text = format_text(value, expr.type).replace("'", "''")
    return f"'{text}'::{format_type(expr.type)}"
