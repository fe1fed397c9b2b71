"""Put rows that are known already into a plan: a locking query has run before its statement.

    where id = (select id ..)          ─▶  where id = 7
    where id in (select id ..)         ─▶  where id in (7, 9)
    from jobs j, x where j.id = x.id   ─▶  the same, and j.id in (7, 9)

So the statement reads by key, and depends on these rows alone: without, it would conflict with
everybody who writes to the table.

INVARIANTS
  K1  the result of the plan stays the same; what is not understood stays as it is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from sql.plan.conditions import conjunction, flatten_conjuncts
from sql.plan.nodes import (
    Call,
    ColumnId,
    ColumnRef,
    Const,
    Expr,
    Filter,
    InList,
    Join,
    JoinKind,
    Param,
    Plan,
    Project,
    RelationId,
    Scan,
    Subquery,
    SubqueryKind,
)
from sql.plan.read_conditions import is_equality
from sql.plan.traverse import plan_nodes, rewrite_queries
from sql.types.sql_type import BOOL

KnownValue: TypeAlias = Const | Param
"""A parameter stands for a value that is not NULL: the plan may run again with another."""

KnownColumns: TypeAlias = Sequence[Sequence[KnownValue]]
"""By column, the values of all rows in order."""

ROWS_MAX: Final = 100
"""Rows of a relation that are put into a plan. Larger: longer conditions, tested row by row."""


def with_known_rows(plan: Plan, known: Mapping[RelationId, KnownColumns]) -> Plan:
    """The plan with the rows of these relations, as far as they say which rows it needs (K1)."""
    return _Knowing(known).plan(plan)


@dataclass(slots=True)
class _Knowing:
    known: Mapping[RelationId, KnownColumns]

    def plan(self, plan: Plan) -> Plan:
        made = rewrite_queries(plan, self.plan, lambda expr, _within: self._value(expr))
        match made:
            case Filter(predicate=predicate):
                more = self._implied(made, predicate)
                return Filter(made.input, conjunction([predicate, *more])) if more else made
            case Join(kind=JoinKind.INNER, condition=condition) if condition is not None:
                more = self._implied(made, condition)
                return Filter(made, conjunction(more)) if more else made
            case _:
                return made

    def _value(self, query: Subquery) -> Expr | None:
        """What stands for a subquery whose rows are known."""
        values = self._single_column(query.plan)
        if values is None:
            return None
        if query.kind is SubqueryKind.SCALAR and len(values) <= 1:
            return values[0] if values else Const(None, query.type)
        is_list = query.kind is SubqueryKind.IN and len(query.args) == 1
        if not is_list or not _are_comparable(query.args[0], values):
            return None
        return InList(query.args[0], tuple(values), False, BOOL) if values else Const(False, BOOL)

    def _single_column(self, plan: Plan) -> Sequence[KnownValue] | None:
        match plan:
            case Scan(relation=relation, columns=(_,), ordinals=(ordinal,)):
                columns = self.known.get(relation)
                return None if columns is None else columns[ordinal]
            case Project(input=Scan() as scan, exprs=(ColumnRef() as ref,)):
                return self._columns(scan).get(ref.id)
            case _:
                return None

    def _columns(self, plan: Plan) -> dict[ColumnId, Sequence[KnownValue]]:
        """The columns of known relations below a node."""
        found: dict[ColumnId, Sequence[KnownValue]] = {}
        for node in reversed(list(plan_nodes(plan))):
            if isinstance(node, Scan) and node.relation in self.known:
                columns = self.known[node.relation]
                for column, ordinal in zip(node.columns, node.ordinals, strict=True):
                    found[column.id] = columns[ordinal]
            elif isinstance(node, Project):
                for column, expr in zip(node.columns, node.exprs, strict=True):
                    if isinstance(expr, ColumnRef) and expr.id in found:
                        found[column.id] = found[expr.id]
        return found

    def _implied(self, plan: Plan, condition: Expr) -> list[Expr]:
        """What a conjunction with known columns says of the columns that equal them."""
        if not _joins(plan):
            return []
        columns = self._columns(plan)
        more: list[Expr] = []
        for part in flatten_conjuncts(condition) if columns else ():
            match part:
                case Call(args=(ColumnRef() as left, ColumnRef() as right)) if is_equality(part):
                    for one, other in ((left, right), (right, left)):
                        values = columns.get(one.id)
                        unknown = other.id not in columns
                        if values and unknown and _are_comparable(other, values):
                            more.append(InList(other, tuple(values), False, BOOL))
                case _:
                    pass
        return more


def _joins(plan: Plan) -> bool:
    return any(isinstance(node, Join) for node in plan_nodes(plan))


def _are_comparable(arg: Expr, values: Sequence[KnownValue]) -> bool:
    return len(values) <= ROWS_MAX and all(
        value.type == arg.type and (isinstance(value, Param) or value.value is not None)
        for value in values
    )
