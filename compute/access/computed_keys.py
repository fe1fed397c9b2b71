"""Computed keys: unique indexes that are partial, over expressions, or with INCLUDE.

    row ─▶ predicate true? ─▶ expressions ─▶ key columns, and `true`     like any other key's
                  └ no ─────▶ NULL for `true`: a row that has no key

A computed key belongs to a table with more columns than are stored: those that its expressions
make, and one that says whether the predicate holds. Look-ups and predicates of the commit work on
the key columns of a row, wherever they come from.

INVARIANTS
  C1  the key of a row depends on its stored columns alone: expressions are immutable, and one
      evaluator computes them, for new rows, rows in files and rows of other transactions.
  C2  a row has no key if the predicate is not true of it, whatever its other columns are; its
      expressions are not evaluated, as in PostgreSQL.
  C3  every live row was evaluated without error when it came, or when the index was made. A row
      whose expressions fail later is therefore not live, and counts as a row without a key.

Not here: binding the texts (`sql/binder/stored/unique_indexes.py`), and which tables have such keys
(`coordinator/execution/dml/computed_keys.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

import pyarrow as pa

from compute.reference.arrow import to_array, to_values
from compute.reference.expressions import Evaluator, Frame, Source, compile_expression
from sql.catalog.catalog import Column, Key, Table
from sql.errors import SqlError
from sql.plan.nodes import ColumnId, ColumnRef, Expr, Plan
from sql.plan.traverse import column_ids
from sql.types.sql_type import SqlType, Value

ArrowColumn: TypeAlias = Any
"""A chunked array, or an array."""

_PER_VALUE: Final = ("text", "varchar", "int2", "int4", "int8", "bool", "date")
"""Types of which equal values, as Python compares them, are the same value."""


@dataclass(frozen=True, slots=True)
class _Made:
    """A column that is computed from the columns `ordinals`."""

    type: SqlType
    ordinals: tuple[int, ...]
    types: tuple[SqlType, ...]
    run: Evaluator

    @property
    def repeats(self) -> bool:
        """Whether equal inputs, as Python compares them, have equal values."""
        return all(type_.name in _PER_VALUE for type_ in self.types)


@dataclass(frozen=True, slots=True)
class ComputedKey(Key):
    """See the module. `columns` counts on beyond the table's own for those that are computed.

    `names`: of its columns as PostgreSQL shows them, without the predicate. `needed`: the stored
    columns that it is made of. `oid`: of its index.
    """

    oid: int = 0
    names: tuple[str, ...] = ()
    needed: tuple[int, ...] = ()
    partial: bool = False
    made: Mapping[int, _Made] = field(
        default_factory=dict[int, _Made], compare=False, hash=False, repr=False
    )

    def columns_of(self, columns: Mapping[int, ArrowColumn], *, live: bool = False) -> pa.Table:
        """The key's columns of rows whose stored columns are given by ordinal (C2).

        `live`: these rows are new: an expression that fails is their error. Else see C3.
        """
        within: Sequence[bool] | None = None
        if self.partial:
            predicate = self.made[self.columns[-1]]
            within = [value is True for value in _evaluated(predicate, columns, None, live=live)]
        found: dict[str, ArrowColumn] = {}
        for place, ordinal in enumerate(self.columns):
            made = self.made.get(ordinal)
            if made is None:
                column = columns[ordinal]
            elif within is not None and place == len(self.columns) - 1:
                column = pa.array([True if one else None for one in within], pa.bool_())
            else:
                column = to_array(_evaluated(made, columns, within, live=live), made.type)
            found[f"k{place}"] = column
        return pa.table(found)


def key_ordinals(key: Key) -> tuple[int, ...]:
    """The stored columns that a key is made of."""
    return key.needed if isinstance(key, ComputedKey) else key.columns


def computed_key(
    table: Table,
    key: Key,
    elements: Sequence[tuple[str, Expr]],
    predicate: tuple[str, Expr] | None,
    *,
    oid: int,
) -> tuple[Table, ComputedKey]:
    """The key of an index, and the table with its computed columns. `elements`: how each is shown,
    and its expression over columns that are numbered by ordinal. Raises SqlError for an expression
    that the evaluator does not know (C1).
    """
    made: dict[int, _Made] = {}
    more: list[Column] = []
    places: list[int] = []
    texts = [shown for shown, _ in elements]
    every = [*elements, *([] if predicate is None else [predicate])]
    # One over constants needs a column all the same: it says how many rows there are.
    needed = tuple(sorted({int(id_) for _, expr in every for id_ in column_ids(expr)})) or (0,)
    # Where key columns of files are remembered, this tells what they were computed of. Versions do
    # not: DDL that is rolled back takes versions that other DDL takes as well.
    said = (oid, tuple(text for text, _ in every), _shapes(table, needed))
    for place, (shown, expr) in enumerate(every):
        if isinstance(expr, ColumnRef) and place < len(elements):
            places.append(int(expr.id))
            continue
        ordinal = len(table.columns) + len(more)
        made[ordinal] = _made(table, expr)
        more.append(Column(shown, expr.type, stored=f"\0{place} of {said}"))
        places.append(ordinal)
    found = ComputedKey(
        key.name,
        tuple(places),
        nulls_distinct=key.nulls_distinct,
        index=True,
        oid=oid,
        names=tuple(texts),
        needed=needed,
        partial=predicate is not None,
        made=made,
    )
    return replace(table, columns=(*table.columns, *more)), found


def _shapes(table: Table, ordinals: Sequence[int]) -> tuple[object, ...]:
    columns = [table.columns[at] for at in ordinals]
    return tuple((column.field, column.type.name, column.type.typmod) for column in columns)


def _made(table: Table, expr: Expr) -> _Made:
    ordinals = tuple(sorted({int(id_) for id_ in column_ids(expr)}))
    frame = Frame({ColumnId(at): place for place, at in enumerate(ordinals)}, (), _no_subquery)
    types = tuple(table.columns[at].type for at in ordinals)
    return _Made(expr.type, ordinals, types, compile_expression(expr, frame))


def _no_subquery(_plan: Plan, _frame: Frame) -> Source:
    raise AssertionError("an index has no subquery")


def _evaluated(
    made: _Made, columns: Mapping[int, ArrowColumn], within: Sequence[bool] | None, *, live: bool
) -> Sequence[Value]:
    """The values for each row; NULL for those that are not within (C2)."""
    inputs = [columns[at] for at in made.ordinals]
    if not inputs:
        count = len(next(iter(columns.values()))) if within is None else len(within)
        rows: Sequence[tuple[Value, ...]] = [()] * count
    else:
        values = [to_values(one, type_) for one, type_ in zip(inputs, made.types, strict=True)]
        rows = list(zip(*values, strict=True))
    known: dict[tuple[Value, ...], Value] | None = {} if made.repeats else None
    found: list[Value] = []
    for place, row in enumerate(rows):
        if within is not None and not within[place]:
            found.append(None)
        elif known is None:
            found.append(_value(made.run, row, live=live))
        else:
            if row not in known:
                known[row] = _value(made.run, row, live=live)
            found.append(known[row])
    return found


def _value(run: Evaluator, row: tuple[Value, ...], *, live: bool) -> Value:
    try:
        return run(row)
    except (SqlError, ArithmeticError, ValueError, TypeError):
        if live:
            raise
        return None  # C3
