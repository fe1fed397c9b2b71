"""Many constants of one type as one part of a plan, and how large a plan is that has some.

    id IN (1, 2, .., 10000)     ─▶   InList(id, ConstantItems((1, .., 10000), int4))
    VALUES (1, 'a'), (2, ..)    ─▶   Values(ConstantRows((1, 2, ..) int4, ('a', ..) text))

A plan is walked dozens of times before it runs. Walks see one constant of such a list, and one row.

INVARIANTS
  M1  what a walk or a rewriting finds out of the first item is true of all: they have one type, and
      refer to no columns, parameters or queries.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final, overload

from sql.plan.nodes import Const, Expr
from sql.types.sql_type import SqlType, Value

ITEMS_MIN: Final = 64
"""Constants of a list from which on they are one part. Fewer: EXPLAIN, templates and caches see
each of them, and gain nothing."""

_EXACT: Final = frozenset({int, str, bool, bytes, type(None)})


class ConstantItems(Sequence[Expr]):
    """Constants by their values (M1)."""

    def __init__(self, values: Sequence[Value], type_: SqlType) -> None:
        self.values: Final = tuple(values)
        self.type: Final = type_

    @cached_property
    def first(self) -> Const:
        """The first one, which stands for all (M1)."""
        return Const(self.values[0], self.type)

    @cached_property
    def kinds(self) -> frozenset[type]:
        """The Python types of the values."""
        return frozenset(map(type, self.values))

    @property
    def nbytes(self) -> int:
        """About the memory of the values."""
        sizes = map(len, self.values) if self.kinds <= {str} else ()  # type: ignore[arg-type]
        return 32 * len(self.values) + sum(sizes)

    def __len__(self) -> int:
        return len(self.values)

    @overload
    def __getitem__(self, at: int) -> Const: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Expr]: ...
    def __getitem__(self, at: int | slice) -> Expr | Sequence[Expr]:
        if isinstance(at, slice):
            return ConstantItems(self.values[at], self.type)
        return Const(self.values[at], self.type)

    def __iter__(self) -> Iterator[Const]:
        return (Const(value, self.type) for value in self.values)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ConstantItems) and self.kinds | other.kinds <= _EXACT:
            same = self.values == other.values and self.type == other.type
            return same and [*map(type, self.values)] == [*map(type, other.values)]
        if isinstance(other, ConstantItems | tuple):
            return tuple(self) == tuple(other)
        return NotImplemented

    @cached_property
    def _hash(self) -> int:
        # Not that of the tuple that it equals: a cache may miss one of the two.
        exact = self.kinds <= _EXACT
        return hash((self.type, self.values if exact else tuple(map(str, self.values))))

    def __hash__(self) -> int:
        return self._hash


def packed_items(items: Sequence[Expr]) -> Sequence[Expr]:
    """The items as one part of a plan, if they are many constants of one type; else a tuple."""
    if isinstance(items, ConstantItems):
        return items
    if len(items) < ITEMS_MIN:
        return tuple(items)
    values: list[Value] = []
    first = items[0]
    for item in items:
        if type(item) is not Const or (item.type is not first.type and item.type != first.type):
            return tuple(items)
        values.append(item.value)
    return ConstantItems(values, first.type)


class ConstantRows(Sequence[tuple[Expr, ...]]):
    """Rows of constants by their columns (M1), at least one of each."""

    def __init__(self, columns: Sequence[ConstantItems]) -> None:
        self.columns: Final = tuple(columns)

    @cached_property
    def first(self) -> tuple[Const, ...]:
        """The first row, which stands for all (M1)."""
        return tuple([column.first for column in self.columns])

    @property
    def values(self) -> Sequence[tuple[Value, ...]]:
        """The rows, as values."""
        return list(zip(*[column.values for column in self.columns], strict=True))

    def __len__(self) -> int:
        return len(self.columns[0])

    @overload
    def __getitem__(self, at: int) -> tuple[Expr, ...]: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[tuple[Expr, ...]]: ...
    def __getitem__(self, at: int | slice) -> tuple[Expr, ...] | Sequence[tuple[Expr, ...]]:
        return tuple(self)[at]

    def __iter__(self) -> Iterator[tuple[Expr, ...]]:
        return zip(*self.columns, strict=True)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ConstantRows):
            return self.columns == other.columns
        return tuple(self) == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.columns)


def packed_rows(rows: Sequence[tuple[Expr, ...]]) -> Sequence[tuple[Expr, ...]]:
    """The rows as one part of a plan, if they are many, of constants of one type a column."""
    if isinstance(rows, ConstantRows) or len(rows) < ITEMS_MIN or not rows[0]:
        return rows
    columns: list[ConstantItems] = []
    for items in zip(*rows, strict=True):
        column = packed_items(items)
        if not isinstance(column, ConstantItems):
            return rows
        columns.append(column)
    return ConstantRows(columns)
