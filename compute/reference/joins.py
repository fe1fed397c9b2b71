"""Joins of the reference evaluator: nested loops, over the right rows that can match.

    condition ─▶ its first conjuncts `left column = right column` ─▶ places ─▶ right rows by key

INVARIANTS
  J3  rows come in the order of a plain nested loop, whatever was looked up.
  J4  only the conjuncts at the front are looked up: PostgreSQL stops at the first that is not true,
      so what fails behind them fails there, too.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from compute.reference.expressions import Evaluator, OuterRowCell, Row, Source
from sql.plan.conditions import compared_columns, flatten_conjuncts
from sql.plan.nodes import ColumnRef, Distinct, Join, JoinKind, output_columns
from sql.types.sql_type import WHOLE_NUMBER_TYPES

KEY_TYPES: Final = frozenset(
    {"bool", "int2", "int4", "int8", "text", "varchar", "uuid", "date", "timestamp", "timestamptz"}
)
"""Types whose values are equal in PostgreSQL exactly when they are in Python."""


class EqualPlaces(NamedTuple):
    """A place in left rows and one in right rows. `nulls`: NULL is equal to NULL."""

    left: int
    right: int
    nulls: bool


@dataclass(frozen=True, slots=True)
class JoinSides:
    """What is joined. `equal`: places of which the condition says that they are equal."""

    left: Source
    right: Source
    condition: Evaluator
    equal: Sequence[EqualPlaces]
    left_nulls: Row
    right_nulls: Row
    cell: OuterRowCell | None
    """Holds the left row while the right side runs, for LATERAL."""


def equal_places(plan: Join) -> Sequence[EqualPlaces]:
    """The places of the columns that the first conjuncts of the condition compare (J4)."""
    left = {column.id: place for place, column in enumerate(output_columns(plan.left))}
    right = {column.id: place for place, column in enumerate(output_columns(plan.right))}
    found: list[EqualPlaces] = []
    for conjunct in () if plan.condition is None else flatten_conjuncts(plan.condition):
        columns = compared_columns(conjunct)
        if columns is None or not _are_alike(*columns):
            break
        ids = [column.id for column in columns]
        if ids[0] in right and ids[1] in left:
            ids.reverse()
        if ids[0] not in left or ids[1] not in right:
            break
        found.append(EqualPlaces(left[ids[0]], right[ids[1]], isinstance(conjunct, Distinct)))
    return found


def _are_alike(first: ColumnRef, second: ColumnRef) -> bool:
    """Whether their values are equal exactly when they are in Python."""
    names = first.type.name, second.type.name
    return WHOLE_NUMBER_TYPES.issuperset(names) or (names[0] == names[1] and names[0] in KEY_TYPES)


def joined_rows(kind: JoinKind, sides: JoinSides) -> Iterator[Row]:
    """The rows of a join (J3)."""
    if sides.cell is not None:
        return _lateral(kind, sides, sides.cell)
    return _nested_loop(kind, sides)


def _nested_loop(kind: JoinKind, sides: JoinSides) -> Iterator[Row]:
    rights = list(sides.right())
    matched = [False] * len(rights)
    candidates = _candidates(rights, sides.equal)
    for left in sides.left():
        found = False
        for index, right in candidates(left):
            row = left + right
            if sides.condition(row) is True:
                found = matched[index] = True
                yield row
        if not found and kind in (JoinKind.LEFT, JoinKind.FULL):
            yield left + sides.right_nulls
    if kind in (JoinKind.RIGHT, JoinKind.FULL):
        for right, was_matched in zip(rights, matched, strict=True):
            if not was_matched:
                yield sides.left_nulls + right


def _candidates(
    rights: Sequence[Row], equal: Sequence[EqualPlaces]
) -> Callable[[Row], Iterable[tuple[int, Row]]]:
    """The right rows with their numbers that may match a left row, in order."""
    every = list(enumerate(rights))
    if not equal:
        return lambda _left: every
    lefts, places = [one.left for one in equal], [one.right for one in equal]
    strict = [at for at, one in enumerate(equal) if not one.nulls]
    by_key: dict[Row, list[tuple[int, Row]]] = {}
    for index, row in every:
        key = tuple([row[place] for place in places])
        if all(key[at] is not None for at in strict):
            by_key.setdefault(key, []).append((index, row))
    return lambda left: by_key.get(tuple([left[place] for place in lefts]), ())


def _lateral(kind: JoinKind, sides: JoinSides, cell: OuterRowCell) -> Iterator[Row]:
    for left in sides.left():
        cell.row = left
        rows = [row for right in sides.right() if sides.condition(row := left + right) is True]
        yield from rows
        if not rows and kind is JoinKind.LEFT:
            yield left + sides.right_nulls
