"""Groups whose values are added to, without a look at their other rows.

    changes of the input ─▶ units ─▶ sums: one row a group ─┬─ may be added to ─▶ stored row + sums
                                                            └─ others ─▶ affected keys

A unit is a change of one row: keys, arguments, conditions, and a weight of +1 or -1. A group is
added to if the view stores it, and the new values follow from the old ones. Some aggregates need
others of the same arguments beside them, their *parts* (`hidden_state.py` adds them to the query):

| aggregate | parts | without them it is added to |
| --- | --- | --- |
| all, of groups with keys | the number of rows | if a row has come, or none has gone |
| count | | |
| sum | count | if a value has come, or none has gone |
| avg | count and sum | never |
| bool_and, every | count, and how many are false | never |
| bool_or | count, and how many are true | never |
| min, max | | if none has gone that equals it, or one as extreme has come |

INVARIANTS
  S1  what is added to is equal to the bit to what the aggregate gives over all rows: whole numbers
      and numerics have one sum in every order, and avg is the quotient that the engines divide.
      Floats are left out.
  S2  equal keys are the same to the bit. Where 0 and -0 are equal, a group that is added to would
      show the key of a row that is gone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from sql.functions.table import find_cast, function_by_id
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
    Distinct,
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
from sql.types.sql_type import BOOL, INT8, NUMERIC_PRECISION_MAX, SqlType, computed_numeric

_SUMMED: Final = frozenset({"int2", "int4", "int8", "numeric"})
_EXTREMES: Final = ("min", "max")
_DECIDED_BY: Final = {"bool_and": Test.IS_FALSE, "every": Test.IS_FALSE, "bool_or": Test.IS_TRUE}
"""Which values decide what these give; of how many there are, one is enough."""

_VALUED: Final = ("sum", *_EXTREMES)
"""Those whose values are looked at; of the others the numbers are enough."""

NewColumn = Callable[[str, SqlType], PlanColumn]


def can_be_added_to(node: GroupBy) -> bool:
    """Whether all aggregates of a node are of these kinds, with the parts that they must have."""
    parts = _Parts(node)
    return _is_additive(node) and all(
        set(parts.of(call)) <= {*node.aggregates}
        for call in node.aggregates
        if call.function.name == "avg" or call.function.name in _DECIDED_BY
    )


def missing_parts(node: GroupBy) -> Sequence[Aggregate] | None:
    """The aggregates that a node lacks to be added to always; None: it never is."""
    if not _is_additive(node):
        return None
    parts = _Parts(node)
    wanted = dict.fromkeys(part for call in node.aggregates for part in parts.of(call))
    if node.keys:
        wanted[ALL_ROWS] = None
    known = {*node.aggregates}
    return [part for part in wanted if part not in known]


def _is_additive(node: GroupBy) -> bool:
    if node.sets is not None or node.grouping_columns or not node.aggregates:
        return False
    if not all(_looks_alike(key.type) for key in node.keys):
        return False
    return all(map(_is_added_to, node.aggregates))


def _looks_alike(type_: SqlType) -> bool:
    """Whether equal keys show the same, whichever row of a group they are taken from."""
    return has_exact_equality(type_) or (type_.name == "bpchar" and not type_.trim)


def _is_added_to(call: Aggregate) -> bool:
    if call.distinct or call.order:
        return False
    if any(map(has_subquery, call.args)) or (call.filter and has_subquery(call.filter)):
        return False
    match call.function.name, call.args:
        case "count", () | (_,):
            return True
        case "sum" | "avg", (arg,):
            return arg.type.name in _SUMMED and call.type.name in ("int8", "numeric")
        case "min" | "max", (arg,):
            return has_exact_equality(arg.type)
        case name, (_,):
            return name in _DECIDED_BY
        case _:
            return False


# --- the parts of aggregates ----------------------------------------------------------------------


class _Parts:
    """Which aggregates of a node are parts of others."""

    def __init__(self, node: GroupBy) -> None:
        self._node = node

    def of(self, call: Aggregate) -> tuple[Aggregate, ...]:
        """What an aggregate is made of."""
        name = call.function.name
        if name == "sum":
            return (_values(call),)
        if name == "avg":
            return (_values(call), _sum_of(call))
        if name in _DECIDED_BY:
            return (_values(call), _deciding(call))
        return ()

    def places(self, call: Aggregate) -> tuple[int, ...] | None:
        """Where they stand among the node's; None: not all do."""
        found = {one: at for at, one in reversed([*enumerate(self._node.aggregates)])}
        parts = self.of(call)
        return tuple([found[one] for one in parts]) if all(one in found for one in parts) else None


def _count(args: tuple[Expr, ...], condition: Expr | None) -> Aggregate:
    function = function_by_id("count(any)" if args else "count()")
    return Aggregate(function, args, False, condition, (), INT8)


ALL_ROWS: Final = _count((), None)


def _values(call: Aggregate) -> Aggregate:
    return _count(call.args, call.filter)


def _sum_of(call: Aggregate) -> Aggregate:
    type_ = call.args[0].type
    made = INT8
    if type_.name in ("int8", "numeric"):
        made = computed_numeric(NUMERIC_PRECISION_MAX, type_.scale or 0, trim=type_.trim)
    function = function_by_id(f"sum({type_.name})")
    return Aggregate(function, call.args, False, call.filter, (), made)


def _deciding(call: Aggregate) -> Aggregate:
    decides = IsTest(_DECIDED_BY[call.function.name], call.args[0], BOOL)
    filter_ = () if call.filter is None else (IsTest(Test.IS_TRUE, call.filter, BOOL),)
    return _count((), conjunction([decides, *filter_]))


# --- adding ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GroupSums:
    """The plans for one node. `units`: the columns of the changes of its input, as expressions
    over that. `sums`: of `columns`, over the units: the keys, then what the others need, which are
    over `columns` and the old values of the aggregates.
    """

    units: tuple[PlanColumn, ...]
    exprs: tuple[Expr, ...]
    sums: Callable[[Plan, PlanColumn], Plan]
    columns: tuple[PlanColumn, ...]
    keys: int
    parts: "tuple[_SumOfCall, ...]"
    places: Sequence[tuple[int, ...] | None]
    """Of the parts of each aggregate among them; None: it lacks some."""
    rows: "tuple[ColumnRef, ColumnRef] | None"
    """How many have come to a group, and how many have gone; None: there are no keys."""
    counted: int | None
    """The place of the number of rows of a group; None: nobody knows it."""

    def may_be_added(self, old: Sequence[Expr]) -> Expr:
        """Whether the new values follow from the old ones."""
        found: list[Expr] = []
        if self.rows is not None and self.counted is None:
            came, went = _compared(">", self.rows[0], 0), _compared("=", self.rows[1], 0)
            found.append(Logical(BoolOp.OR, (came, went), BOOL))
        for part, value, places in zip(self.parts, old, self.places, strict=True):
            known = part.is_known(value, has_parts=bool(places))
            found += () if known is None else (known,)
        return conjunction(found) if found else Const(True, BOOL)

    def remains(self, old: Sequence[Expr]) -> Expr:
        """Whether the group has rows after; where that is not known, it has if it is added to."""
        if self.rows is None or self.counted is None:
            return Const(True, BOOL)
        return _compared(">", self.parts[self.counted].counted(old[self.counted]), 0)

    def added(self, old: Sequence[Expr]) -> list[Expr]:
        """The new values of the aggregates."""
        made: dict[int, Expr] = {}
        for at, (part, value) in enumerate(zip(self.parts, old, strict=True)):
            if not self.places[at]:
                made[at] = part.added(value)
        # Sums are made of counts, and averages of both.
        for at in sorted(range(len(old)), key=lambda at: len(self.places[at] or ())):
            places = self.places[at]
            if places:
                made[at] = self.parts[at].made_of(old[at], [made[place] for place in places])
        return [made[at] for at in range(len(old))]


@dataclass(frozen=True, slots=True)
class _SumOfCall:
    """What the units say of one aggregate: how many of its values came and went, and their sums or
    extremes; over the columns of the sums.
    """

    call: Aggregate
    came: ColumnRef
    went: ColumnRef
    plus: ColumnRef | None = None
    minus: ColumnRef | None = None

    def is_known(self, old: Expr, *, has_parts: bool) -> Expr | None:
        """When the new value follows from the old one; None: always."""
        name = self.call.function.name
        if name == "count" or has_parts:
            return None
        none_went = _compared("=", self.went, 0)
        if name not in _EXTREMES:
            return Logical(BoolOp.OR, (_compared(">", self.came, 0), none_went), BOOL)
        plus, minus = self._sides()
        extreme = Extreme(name == "max", (plus, minus), self.call.type)
        replaced = Distinct(extreme, plus, True, BOOL)
        return Logical(BoolOp.OR, (none_went, Distinct(old, minus, False, BOOL), replaced), BOOL)

    def counted(self, old: Expr) -> Expr:
        """The new value of a count."""
        return _sum("-", _sum("+", old, self.came), self.went)

    def added(self, old: Expr) -> Expr:
        """The new value, from the old one alone."""
        name, type_ = self.call.function.name, self.call.type
        if name == "count":
            return self.counted(old)
        if name in _EXTREMES:
            return Extreme(name == "max", (old, self._sides()[0]), type_)
        return Case(((_compared(">", self.came, 0), self._total(old)),), old, type_)

    def made_of(self, old: Expr, parts: Sequence[Expr]) -> Expr:
        """The new value, from those of the parts, of which the first is the number of values."""
        type_, (count, *others) = self.call.type, parts
        match self.call.function.name, others:
            case "sum", ():
                value = self._total(old)
            case "avg", (total,):
                value = _quotient(total, count, self.call)
            case name, (deciding,):
                value = _compared("=" if _DECIDED_BY[name] is Test.IS_FALSE else ">", deciding, 0)
            case _:
                raise AssertionError("others have no parts")
        return Case(((_compared(">", count, 0), value),), Const(None, type_), type_)

    def _total(self, old: Expr) -> Expr:
        type_ = self.call.type
        plus, minus = self._sides()
        parts = [Coalesce((part, _zero(type_)), type_) for part in (old, plus, minus)]
        # What went is taken off what came first: the sum may lie at the end of its range.
        return _sum("+", parts[0], _sum("-", parts[1], parts[2]))

    def _sides(self) -> tuple[Expr, Expr]:
        assert self.plus is not None, "it has values"
        assert self.minus is not None, "it has values"
        return self.plus, self.minus


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
        valued = sides if call.function.name in _VALUED else []
        sums = [
            total(Aggregate(call.function, args, False, side, (), call.type)) for side in valued
        ]
        parts.append(_SumOfCall(call, *counts, *sums))
    rows = (total(_count((), came)), total(_count((), went))) if keys else None

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
        tuple(parts),
        [_Parts(node).places(call) for call in node.aggregates],
        rows,
        node.aggregates.index(ALL_ROWS) if ALL_ROWS in node.aggregates else None,
    )


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


def _quotient(total: Expr, count: Expr, call: Aggregate) -> Expr:
    """An average, as the engines make it of its sum and its count."""
    source = call.args[0].type
    types = (
        computed_numeric(NUMERIC_PRECISION_MAX, source.scale or 0, trim=source.trim),
        computed_numeric(19, 0, trim=False),
    )
    sides = [_as_numeric(side, type_) for side, type_ in zip((total, count), types, strict=True)]
    return Call(function_by_id("numeric / numeric"), tuple(sides), call.type)


def _as_numeric(value: Expr, type_: SqlType) -> Expr:
    if value.type == type_:
        return value
    cast = find_cast(value.type.name, "numeric")
    assert cast is not None, "all numbers have one"
    return Call(cast, (value,), type_)
