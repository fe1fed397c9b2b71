"""R1 to R3 of `compute/duckdb/remembered_values.py`: a value is computed once, never mixed up."""

from decimal import Decimal

import pytest

from compute.duckdb import remembered_values
from compute.duckdb.remembered_values import remembering
from sql.functions.table import function_by_id
from sql.plan.nodes import Call, Const
from sql.types.sql_type import FLOAT8, NUMERIC, TEXT, SqlType, Value


class _Counting:
    """An evaluation that shows its arguments, and how often it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[Value, ...]] = []

    def __call__(self, row: tuple[Value, ...]) -> Value:
        self.asked.append(row)
        return repr(row) + str(row[0]) * (200 if row[1] == "long" else 1)


def _called(name: str, type_: SqlType) -> tuple[remembered_values.Evaluate, _Counting]:
    args = (Const(None, type_), Const(None, TEXT))
    function = function_by_id(f"{name}({type_.name},text)")
    counting = _Counting()
    return remembering(Call(function, args, TEXT), counting), counting


def test_a_value_is_computed_once() -> None:
    evaluate, counting = _called("to_char", NUMERIC)
    rows: list[tuple[Value, ...]] = [
        (Decimal("1.50"), "9"), (Decimal("2.50"), "9"), (Decimal("1.50"), "99"), (None, "9"),
    ]  # fmt: skip
    assert [evaluate(row) for row in rows * 3] == [_Counting()(row) for row in rows * 3]
    assert counting.asked == rows


def test_zeros_of_floats_are_two() -> None:
    evaluate, _ = _called("to_char", FLOAT8)
    assert evaluate((0.0, "9")) != evaluate((-0.0, "9"))


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered_values, "REMEMBERED_MAX", 2)
    evaluate, counting = _called("to_char", NUMERIC)
    for number in (1, 2, 2, 3, 3, 1):
        evaluate((Decimal(number), "9"))
    assert [int(str(row[0])) for row in counting.asked] == [1, 2, 3, 1]
    for _ in range(2):
        evaluate((Decimal(7), "long"))
    assert len(counting.asked) == 6
