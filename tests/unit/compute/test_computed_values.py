"""What the functions of a plan read, and which of them may give much (V1, V2)."""

import pytest

from compute.computed_values import COMPUTED_BYTES_MAX, ComputedValues, computed_values
from compute.reference.functions.strings import _Format  # pyright: ignore[reportPrivateUsage]
from sql.errors import SqlError
from sql.functions.table import functions, operators
from sql.plan.nodes import (
    Call,
    ColumnId,
    ColumnRef,
    Const,
    Expr,
    Param,
    PlanColumn,
    Project,
    Values,
)
from sql.types.sql_type import INT4, TEXT

LONG = "x" * (COMPUTED_BYTES_MAX + 1)
GIVEN, OTHER = Param(1, TEXT), Param(2, TEXT)


def call(name: str, *args: Expr, overload: int = 0) -> Call:
    rows = [row for row in functions(name) if len(row.args) == len(args)]
    return Call(rows[overload], args, TEXT)


def joined(left: Expr, right: Expr) -> Call:
    (row,) = [row for row in operators("||") if row.args == ("text", "text")]
    return Call(row, (left, right), TEXT)


def values_of(*exprs: Expr) -> ComputedValues | None:
    columns = [PlanColumn(ColumnId(at), f"c{at}", expr.type) for at, expr in enumerate(exprs)]
    return computed_values(Values(tuple(columns), (exprs,)))


def test_what_passes_through_is_not_counted() -> None:
    assert values_of(GIVEN, OTHER) is None
    found = values_of(GIVEN, call("upper", OTHER))
    assert found is not None
    assert not found.may_grow
    assert found.are_few([LONG, "x"])
    assert not found.are_few(["x", LONG])


def test_constants_count() -> None:
    assert values_of(call("upper", Const("x", TEXT))) is None
    found = values_of(call("upper", Const(LONG, TEXT)))
    assert found is not None
    assert found.may_grow


def test_what_may_grow() -> None:
    replaced = call("replace", GIVEN, Const("a", TEXT), OTHER)
    doubled: Expr = GIVEN
    for _ in range(12):
        doubled = joined(doubled, doubled)
    growing = (
        call("repeat", GIVEN, Param(2, INT4)),
        call("replace", replaced, Const("b", TEXT), OTHER),
        doubled,
    )
    for expr in growing:
        found = values_of(expr)
        assert found is not None
        assert found.may_grow
    once = values_of(replaced)
    assert once is not None
    assert not once.may_grow


def test_format_makes_no_piece_that_has_no_room() -> None:
    with pytest.raises(SqlError) as raised:
        _Format("%1000s%1073741823s", ("x", "y"), (TEXT, TEXT)).run()
    assert raised.value.sqlstate == "54000"
    assert _Format("%3s|%-2s", ("x", "y"), (TEXT, TEXT)).run() == "  x|y "


def test_a_column_that_stands_for_itself_ends() -> None:
    """Numbers of columns are unique in a plan's scope, and may come again above it."""
    given = PlanColumn(ColumnId(0), "a", TEXT)
    below = Values((given,), ((GIVEN,),))
    same = ColumnRef(given.id, TEXT)
    passing = Project(below, (given,), (same,))
    found = computed_values(Project(passing, (given,), (call("upper", same),)))
    assert found is not None
    assert found.may_grow
    shown = PlanColumn(ColumnId(1), "b", TEXT)
    once = computed_values(Project(passing, (shown,), (call("upper", same),)))
    assert once is not None
    assert not once.may_grow
