"""Groups whose counts and sums are added to, without a look at their other rows.

    changes of the input ─▶ units ─▶ sums: one row a group ─┬─ may be added to ─▶ stored row + sums
                                                            └─ others ─▶ affected keys

A unit is a change of one row: keys, arguments, conditions, and a weight of +1 or -1. The row of a
group is added to if the view stores it and all of this holds; so no counters have to be stored:

- a row has come to the group, or none has gone: the group is not empty after;
- count: always. sum: a value that is not NULL has come, or none has gone: then it is known whether
  the sum is NULL. min and max: no value has gone.

INVARIANTS
  S1  what is added to is equal to the bit to what the aggregate gives over all rows: whole numbers
      and numerics have one sum in every order. Floats are left out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from sql.functions.table import function_by_id
from sql.plan.changes_of_plans import has_exact_equality
from sql.plan.conditions import conjunction
from sql.plan.nodes import (
    Aggregate,
    BoolOp,
    Call,
    Case,
    Coalesce,
    ColumnRef,
    Const,
    Expr,
    Extreme,
    GroupBy,
    IsTest,
    Logical,
    Plan,
    PlanColumn,
    Project,
    Test,
)
from sql.plan.projections import column_reference, column_references
from sql.plan.traverse import has_subquery
from sql.types.sql_type import BOOL, INT8, SqlType

_SUMMED: Final = frozenset({"int2", "int4", "int8", "numeric"})
_EXTREMES: Final = ("min", "max")

NewColumn = Callable[[str, SqlType], PlanColumn]


def can_be_added_to(node: GroupBy) -> bool:
    """Whether all aggregates of a node are of these kinds."""
    if node.sets is not None or node.grouping_columns or not node.aggregates:
        return False
    return all(map(_is_additive, node.aggregates))


def _is_additive(call: Aggregate) -> bool:
    if call.distinct or call.order:
        return False
    if any(map(has_subquery, call.args)) or (call.filter and has_subquery(call.filter)):
        return False
    match call.function.name, call.args:
        case "count", () | (_,):
            return True
        case "sum", (arg,):
            return arg.type.name in _SUMMED and call.type.name in ("int8", "numeric")
        case "min" | "max", (arg,):
            return has_exact_equality(arg.type)
        case _:
            return False


@dataclass(frozen=True, slots=True)
class GroupSums:
    """The plans for one node. `units`: the columns of the changes of its input, as expressions
    over that. `sums`: of `columns`, over the units: the keys, then what `added` needs.
    """

    units: tuple[PlanColumn, ...]
    exprs: tuple[Expr, ...]
    sums: Callable[[Plan, PlanColumn], Plan]
    columns: tuple[PlanColumn, ...]
    keys: int
    may_be_added: Expr
    """Over `columns`."""
    parts: "tuple[_SumOfCall, ...]"

    def added(self, old: Sequence[Expr]) -> list[Expr]:
        """The new values of the aggregates, over the old ones and `columns`."""
        return [part.added(value) for part, value in zip(self.parts, old, strict=True)]


@dataclass(frozen=True, slots=True)
class _SumOfCall:
    """What the units say of one aggregate: how many of its values came and went, and their sums or
    extreme; over the columns of the sums.
    """

    call: Aggregate
    came: ColumnRef
    went: ColumnRef
    plus: ColumnRef | None = None
    minus: ColumnRef | None = None

    @property
    def is_known(self) -> Expr | None:
        """When the new value follows from the old one; None: always."""
        if self.call.function.name == "count":
            return None
        none_went = _compared("=", self.went, 0)
        if self.call.function.name in _EXTREMES:
            return none_went
        return Logical(BoolOp.OR, (_compared(">", self.came, 0), none_went), BOOL)

    def added(self, old: Expr) -> Expr:
        """The new value."""
        name, type_ = self.call.function.name, self.call.type
        if name == "count":
            return _sum("-", _sum("+", old, self.came), self.went)
        assert self.plus is not None, "it has values"
        if name in _EXTREMES:
            return Extreme(name == "max", (old, self.plus), type_)
        assert self.minus is not None, "a sum can be lessened"
        zero = _zero(type_)
        parts = [Coalesce((part, zero), type_) for part in (old, self.plus, self.minus)]
        total = _sum("-", _sum("+", parts[0], parts[1]), parts[2])
        return Case(((_compared(">", self.came, 0), total),), old, type_)


def group_sums(node: GroupBy, new_column: NewColumn) -> GroupSums:
    """How groups of a node are added to; `can_be_added_to` has said that they can."""
    keys = tuple([new_column(f"k{at}", key.type) for at, key in enumerate(node.keys)])
    units, exprs = list(keys), list(node.keys)
    made: dict[PlanColumn, Aggregate] = {}
    weights = new_column("weight", INT8)
    came, went = (_compared(op, column_reference(weights), 0) for op in (">", "<"))

    def unit(expr: Expr) -> ColumnRef:
        column = new_column(f"x{len(units)}", expr.type)
        units.append(column)
        exprs.append(expr)
        return column_reference(column)

    def total(call: Aggregate) -> ColumnRef:
        column = new_column(f"s{len(made)}", call.type)
        made[column] = call
        return column_reference(column)

    parts: list[_SumOfCall] = []
    for call in node.aggregates:
        condition = () if call.filter is None else (IsTest(Test.IS_TRUE, unit(call.filter), BOOL),)
        args = tuple(map(unit, call.args))
        sides = [conjunction([side, *condition]) for side in (came, went)]
        counts = [total(_count(args, side)) for side in sides]
        valued = sides if call.function.name != "count" else []
        sums = [
            total(Aggregate(call.function, args, False, side, (), call.type)) for side in valued
        ]
        parts.append(_SumOfCall(call, *counts, *sums))
    rows = [total(_count((), side)) for side in (came, went)]
    exists = Logical(BoolOp.OR, (_compared(">", rows[0], 0), _compared("=", rows[1], 0)), BOOL)
    known = [part.is_known for part in parts]
    # Without keys there always is the one group.
    conditions = [*([exists] if keys else []), *(one for one in known if one is not None)]

    def sums_of(below: Plan, weight: PlanColumn) -> Plan:
        renamed = Project(
            below, (*units, weights), (*column_references(units), column_reference(weight))
        )
        made_keys = column_references(keys)
        return GroupBy(renamed, columns[: len(keys)], made_keys, tuple(made), tuple(made.values()))

    columns = (*[new_column(c.name, c.type) for c in keys], *made)
    return GroupSums(
        tuple(units),
        tuple(exprs),
        sums_of,
        columns,
        len(keys),
        conjunction(conditions) if conditions else Const(True, BOOL),
        tuple(parts),
    )


def _count(args: tuple[Expr, ...], condition: Expr) -> Aggregate:
    function = function_by_id("count(any)" if args else "count()")
    return Aggregate(function, args, False, condition, (), INT8)


def _compared(op: str, value: Expr, number: int) -> Expr:
    return Call(function_by_id(f"int8 {op} int8"), (value, Const(number, INT8)), BOOL)


def _sum(op: str, left: Expr, right: Expr) -> Expr:
    name = left.type.name
    return Call(function_by_id(f"{name} {op} {name}"), (left, right), left.type)


def _zero(type_: SqlType) -> Const:
    if type_.name == "numeric":
        assert type_.scale is not None, "Y1 of `sql/types/sql_type.py`: numeric has a scale"
        return Const(Decimal(0).scaleb(-type_.scale), type_)
    return Const(0, type_)
