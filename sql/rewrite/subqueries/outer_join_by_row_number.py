"""Rewrite outer joins whose ON clause needs both sides: join, then pick matches by row number.

    t left join u on t.k = u.k and exists (select .. t.id .. u.id)
      ─▶  of the pairs of t left join u on t.k = u.k, for each row of t: those for which the
          subquery holds; if there are none, the first one, with NULLs for u

Spark takes no subquery over both sides in ON.

INVARIANTS
  P1  a row of the row-preserving side has a number of its own (`unique_id()`), given before it is
      joined; numbers of two reads of that side are never compared.
  P2  conditions that may fail are evaluated for pairs only: rows without any are split off first.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from sql.functions.table import function_by_id
from sql.plan.conditions import conjunction, filter_plan
from sql.plan.nodes import (
    BoolOp,
    Call,
    Case,
    ColumnId,
    Const,
    Expr,
    Filter,
    Frame,
    IsTest,
    Join,
    JoinKind,
    Logical,
    Plan,
    PlanColumn,
    Project,
    SetOp,
    SetOpKind,
    SortKey,
    Subquery,
    SubqueryKind,
    Test,
    Window,
    WindowCall,
    output_columns,
)
from sql.plan.projections import append_columns, column_reference, column_references
from sql.plan.renumbering import with_fresh_ids
from sql.types.sql_type import BOOL, INT8, SqlType

_ONE: Final = Const(1, INT8)
_FALSE: Final = Const(False, BOOL)


def left_join_by_row_number(
    kept: Plan,
    padded: Plan,
    before: Sequence[Expr],
    late: Sequence[Expr],
    numbers: Iterator[int],
    *,
    fails: bool,
) -> Plan:
    """The left join of both sides on all conditions; `late` are evaluated behind the others.
    `fails`: whether they may fail; then both sides are read more than once.
    """
    if not fails:
        return _chosen(kept, padded, before, late, numbers, kind=JoinKind.LEFT)
    asked = Project(filter_plan(padded, before), (), ())
    has_pair = Subquery(SubqueryKind.EXISTS, renumbered_query(asked, numbers), (), BOOL)
    has_none = Logical(BoolOp.NOT, (has_pair,), BOOL)
    inner = JoinKind.INNER if before else JoinKind.CROSS
    pairs = _chosen(Filter(kept, has_pair), padded, before, late, numbers, kind=inner)
    shown = (*output_columns(kept), *output_columns(padded))
    nulls = [Const(None, column.type) for column in output_columns(padded)]
    alone = Project(
        Filter(kept, has_none), shown, (*column_references(output_columns(kept)), *nulls)
    )
    sides = [renumbered_query(side, numbers) for side in (pairs, alone)]
    return SetOp(SetOpKind.UNION, all=True, left=sides[0], right=sides[1], columns=shown)


def renumbered_query(plan: Plan, numbers: Iterator[int]) -> Plan:
    """The plan with new column ids (R1 of `renumbering.py`)."""
    return with_fresh_ids(plan, lambda: ColumnId(next(numbers)))[0]


def _chosen(
    kept: Plan,
    padded: Plan,
    before: Sequence[Expr],
    late: Sequence[Expr],
    numbers: Iterator[int],
    *,
    kind: JoinKind,
) -> Plan:
    """The pairs that are left of those on the conditions `before`."""

    def new(name: str, type_: SqlType) -> PlanColumn:
        return PlanColumn(ColumnId(next(numbers)), name, type_)

    row, there, holds, number = (
        new("row", INT8),
        new("there", BOOL),
        new("holds", BOOL),
        new("number", INT8),
    )
    left = append_columns(kept, {row: Call(function_by_id("unique_id()"), (), INT8)})
    right = append_columns(padded, {there: Const(True, BOOL)}) if kind is JoinKind.LEFT else padded
    condition = None if kind is JoinKind.CROSS else conjunction(before or [Const(True, BOOL)])
    answer: Expr = IsTest(Test.IS_TRUE, conjunction(late), BOOL)
    if kind is JoinKind.LEFT:
        answer = Case(((column_reference(there), answer),), _FALSE, BOOL)
    pairs = append_columns(Join(kind, left, right, condition), {holds: answer})
    order = SortKey(column_reference(holds), descending=True, nulls_first=False)
    numbering = function_by_id("row_number()")
    call = WindowCall(numbering, (), None, (column_reference(row),), (order,), Frame(), INT8)
    rows = Window(pairs, (number,), (call,))
    first = Call(function_by_id("int8 = int8"), (column_reference(number), _ONE), BOOL)
    chosen = Filter(rows, Logical(BoolOp.OR, (column_reference(holds), first), BOOL))
    shown = (*output_columns(kept), *output_columns(padded))
    found = [
        Case(
            ((column_reference(holds), column_reference(column)),),
            Const(None, column.type),
            column.type,
        )
        for column in output_columns(padded)
    ]
    return Project(chosen, shown, (*column_references(output_columns(kept)), *found))
