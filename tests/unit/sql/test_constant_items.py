"""Parts of plans that walks see once: they stand for what they are made of, and rewriting keeps
that.
"""

from collections.abc import Sequence

import pytest

from sql.functions.table import function_by_id
from sql.plan.conditions import guarded_operands
from sql.plan.constant_items import ConstantItems, ConstantRows, packed_items, packed_rows
from sql.plan.constant_rows import (
    ConstantWhens,
    conditions_as_rows,
    packed_whens,
    rows_as_conditions,
)
from sql.plan.nodes import (
    BoolOp,
    Call,
    Case,
    ColumnId,
    ColumnRef,
    Const,
    Expr,
    Filter,
    InList,
    InRows,
    Logical,
    Plan,
    PlanColumn,
    Project,
    RelationId,
    Scan,
    Values,
)
from sql.plan.traverse import (
    has_more_nodes,
    has_more_parts,
    plan_expressions,
    rewrite_children,
    rewrite_node,
    substitute_columns,
    walk,
)
from sql.rewrite.guards import pull_up_failing_outputs as passes
from sql.rewrite.plan_facts import facts_of
from sql.types.sql_type import BOOL, INT4, INT8, TEXT

_A, _B = ColumnRef(ColumnId(1), INT4), ColumnRef(ColumnId(2), INT4)
_EQUAL, _PLUS = function_by_id("int4 = int4"), function_by_id("int4 + int4")
_OTHER = function_by_id("int4 <> int4")
_NUMBERS = [Const(value, INT4) for value in range(100)]


def _compared(column: Expr, value: Expr, function: object = _EQUAL) -> Call:
    assert function in (_EQUAL, _OTHER)
    return Call(function_by_id(f"int4 {function.name} int4"), (column, value), BOOL)  # type: ignore[attr-defined]


def test_items_are_those_they_were_made_of() -> None:
    items = packed_items(_NUMBERS)
    assert isinstance(items, ConstantItems)
    assert items == tuple(_NUMBERS)
    assert [*items] == _NUMBERS
    assert (items[7], len(items), items[5:7]) == (_NUMBERS[7], 100, tuple(_NUMBERS[5:7]))
    assert hash(items) == hash(packed_items(_NUMBERS))
    assert items != packed_items([*_NUMBERS[:-1], Const(True, INT4)])
    assert ConstantItems([1] * 64, INT4) != ConstantItems([True] * 64, INT4)
    assert ConstantItems([0.0] * 64, INT4) != ConstantItems([-0.0] * 64, INT4)


@pytest.mark.parametrize(
    "items",
    [
        _NUMBERS[:63],
        [*_NUMBERS, Const(1, INT8)],
        [*_NUMBERS, _A],
        [*_NUMBERS, Const("x", TEXT)],
    ],
)
def test_few_items_and_several_kinds_stay(items: Sequence[Expr]) -> None:
    assert packed_items(items) == tuple(items)
    assert isinstance(packed_items(items), tuple)


def test_a_list_is_walked_once_and_counted_whole() -> None:
    expr = InList(_A, ConstantItems([None, *range(100)], INT4), False, BOOL)
    assert len([*walk(expr)]) == 3
    assert has_more_parts(expr, 100)
    assert not has_more_parts(expr, 103)


def test_rewriting_keeps_a_list_or_rewrites_all_of_it() -> None:
    items = ConstantItems(range(100), INT4)
    expr = InList(_A, items, False, BOOL)
    moved = substitute_columns(expr, {_A.id: _B})
    assert moved == InList(_B, items, False, BOOL)
    assert isinstance(moved, InList)
    assert moved.items is items
    text = rewrite_children(expr, lambda part: Const("x", TEXT) if part == items[0] else part)
    assert isinstance(text, InList)
    assert [*text.items] == [Const("x", TEXT), *items[1:]]


def test_rows() -> None:
    rows = [(number, Const(f"x{number.value}", TEXT)) for number in _NUMBERS]
    packed = packed_rows(rows)
    assert isinstance(packed, ConstantRows)
    assert packed == tuple(rows)
    assert packed.values[3] == (3, "x3")
    columns = (PlanColumn(ColumnId(1), "a", INT4), PlanColumn(ColumnId(2), "b", TEXT))
    plan = Values(columns, packed)
    assert plan_expressions(plan) == rows[0]
    assert has_more_nodes(plan, 200)
    assert rewrite_node(plan, lambda part: part) is plan
    other = rewrite_node(plan, lambda part: Const(1, INT4) if part.type == INT4 else part)
    assert isinstance(other, Values)
    assert [*other.rows] == [(Const(1, INT4), text) for _, text in rows]
    assert isinstance(packed_rows([*rows, (_A, rows[0][1])]), list)


@pytest.mark.parametrize("op", [BoolOp.OR, BoolOp.AND])
@pytest.mark.parametrize("columns", [(_A,), (_A, _B)])
def test_conditions(op: BoolOp, columns: Sequence[ColumnRef]) -> None:
    function = _EQUAL if op is BoolOp.OR else _OTHER
    within = BoolOp.AND if op is BoolOp.OR else BoolOp.OR
    parts: list[Expr] = []
    for number in _NUMBERS:
        pairs = tuple([_compared(column, number, function) for column in columns])
        parts.append(pairs[0] if len(pairs) == 1 else Logical(within, pairs, BOOL))
    (made,) = conditions_as_rows(op, parts)
    assert isinstance(made, InRows)
    assert rows_as_conditions(made) == Logical(op, tuple(parts), BOOL)
    assert conditions_as_rows(op, parts[:60]) == parts[:60]
    plus = Call(_PLUS, (_A, _B), INT4)
    moved = substitute_columns(made, {_A.id: plus})
    assert isinstance(moved, InRows)
    assert moved.args[0] == plus
    assert moved.columns == made.columns


def test_what_may_fail_keeps_its_place_among_conditions() -> None:
    parts: list[Expr] = [_compared(_A, number) for number in _NUMBERS]
    fails = _compared(Call(_PLUS, (_A, _B), INT4), _NUMBERS[0])
    assert conditions_as_rows(BoolOp.OR, [*parts, fails]) == [*parts, fails]
    absent = _compared(_B, Const(None, INT4))
    made = conditions_as_rows(BoolOp.OR, [absent, *parts])
    assert made[0] == absent
    assert isinstance(made[1], InRows)


def test_branches() -> None:
    whens = tuple([(_compared(_A, number), Const(7, INT4)) for number in _NUMBERS])
    packed = packed_whens(whens)
    assert isinstance(packed, ConstantWhens)
    assert packed == whens
    case = Case(packed, _B, INT4)
    assert has_more_parts(case, 400)
    moved = substitute_columns(case, {_A.id: _B})
    assert isinstance(moved, Case)
    assert moved.whens == tuple([(_compared(_B, number), then) for number, (_, then) in
                                 zip(_NUMBERS, whens, strict=True)])  # fmt: skip
    steps = guarded_operands(case)
    asked: list[Expr] = []

    def note(part: Expr) -> Expr:
        asked.append(part)
        return part

    rewrite_children(case, note)
    assert asked == [part for part, _ in steps]
    assert len(steps[-1][1]) == len(whens)
    mixed = (*whens, (_compared(_B, _NUMBERS[0]), Const(7, INT4)))
    assert packed_whens(mixed) == mixed


def _nested(levels: int) -> Plan:
    column = PlanColumn(ColumnId(1), "x", INT4)
    plan: Plan = Scan(RelationId("t"), "t", (column,), (0,))
    divided = function_by_id("int4 / int4")
    for level in range(2, levels + 2):
        below = ColumnRef(ColumnId(level - 1), INT4)
        made = Call(divided if level == 2 else _PLUS, (below, Const(1, INT4)), INT4)
        made_column = PlanColumn(ColumnId(level), "x", INT4)
        plan = Project(Filter(plan, _compared(below, Const(3, INT4))), (made_column,), (made,))
    return plan


def test_plans_within_each_other_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(levels: int) -> int:
        count = 0

        def counted(expr: Expr, *, by_overflow: bool = True) -> bool:
            nonlocal count
            count += 1
            return may_fail(expr, by_overflow=by_overflow)

        may_fail = passes.may_fail
        with monkeypatch.context() as patched:
            patched.setattr(passes, "may_fail", counted)
            plan = _nested(levels)
            passes.pull_up_failing_outputs(plan, facts_of(plan))
        return count

    assert asked(20) > 0
    assert asked(80) <= 5 * asked(20)
