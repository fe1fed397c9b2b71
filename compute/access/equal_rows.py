"""Find rows of a view that are equal to given ones in all columns, for tables without a key.

    slices ─▶ columns that Arrow compares: rows that may be equal ─▶ compared value by value

Each look reads the whole view: a source whose table has no key pays for that.

INVARIANTS
  E1  for each wanted row one live row is found, if so many are there; no row is found twice.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from compute.access.key_index import ReadColumns
from compute.reference.arrow import to_array, to_values
from compute.scan import conform_batch
from sql.catalog.catalog import Table
from sql.types.sql_type import Value
from storage.batch import RowIdentity, ShardView
from storage.types import Source

ExactRow: TypeAlias = tuple[Hashable, ...]
RowExact: TypeAlias = Callable[[tuple[Value, ...]], ExactRow]
"""A row such that two are equal exactly if they count as equal."""

_COMPARED_MAX: Final = 3
"""Columns that Arrow compares first. Larger: more passes. Smaller: more rows for Python."""


def find_equal_rows(
    view: ShardView,
    table: Table,
    wanted: Sequence[tuple[Value, ...]],
    exact: RowExact,
    read: ReadColumns,
) -> list[RowIdentity]:
    """The places of one row for each wanted one (E1). Blocks if the view has files."""
    left = Counter(exact(row) for row in wanted)
    sets = _value_sets(table, wanted)
    found: list[RowIdentity] = []
    for source, rows, deleted in _parts(view, table, read):
        for at, row in _candidates(table, rows, sets):
            name = exact(row)
            if at not in deleted and left[name] > 0:
                left[name] -= 1
                found.append((source, at))
        if len(found) == len(wanted):
            break
    return found


def _parts(
    view: ShardView, table: Table, read: ReadColumns
) -> Iterator[tuple[Source, pa.Table, BitMap64]]:
    """All slices, newest first: what changes often has changed lately."""
    for inline in reversed(view.inline):
        yield inline.source, conform_batch(inline.rows, view.schema), inline.deleted
    names = [column.field for column in table.columns]
    for part in reversed(view.files):
        rows = conform_batch(read(view.shard, part.file, names), view.schema)
        yield part.file.name, rows.slice(0, part.row_limit), part.deleted


def _value_sets(table: Table, wanted: Sequence[tuple[Value, ...]]) -> list[tuple[int, Any]]:
    """Of some columns that Arrow compares, the values that are wanted."""
    sets: list[tuple[int, Any]] = []
    for at, column in enumerate(table.columns):
        if column.type.name in _COMPARABLE and len(sets) < _COMPARED_MAX:
            sets.append((at, to_array([row[at] for row in wanted], column.type)))
    return sets


_COMPARABLE: Final = frozenset({"int2", "int4", "int8", "text", "varchar", "date", "bool"})


def _candidates(
    table: Table, rows: pa.Table, sets: Sequence[tuple[int, Any]]
) -> Iterator[tuple[int, tuple[Value, ...]]]:
    """Rows that may be wanted, with their places."""
    mask: Any = None
    for at, values in sets:
        column: Any = rows.column(at)
        here: Any = pc.is_in(column, value_set=values.cast(column.type))
        mask = here if mask is None else pc.and_(mask, here)
    if mask is None:
        places: Any = pa.array(range(rows.num_rows), pa.int64())
    else:
        places = pc.indices_nonzero(mask)
    chosen = rows.take(places)
    columns = [to_values(chosen.column(at), column.type) for at, column in enumerate(table.columns)]
    yield from zip(places.to_pylist(), zip(*columns, strict=True), strict=True)
