"""Rows of a view at given places, as values of a scan's columns.

    places ─▶ a slice in memory, a warm row group, or a file ─▶ cells ─▶ rows, with identities

INVARIANTS
  S1  rows come in the order of the view, with the columns of the scan, and their identity last if
      it is wanted.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, TypeAlias, cast

import pyarrow as pa

from compute.access.key_index import KeyIndex
from compute.access.warm_columns import WarmColumn
from compute.identity_cache import IdentityCache
from compute.reference.arrow import to_values
from compute.reference.expressions import Row
from sql.plan.nodes import Scan
from sql.types.sql_type import SqlType, Value
from storage.batch import RowIdentity, ShardView
from storage.known_rows import Column
from storage.types import Source, is_file
from storage.unencoded_rows import UnencodedRows

_PLAIN: Final = frozenset(
    {"bool", "int2", "int4", "int8", "oid", "float4", "float8", "numeric", "text", "varchar",
     "bpchar", "name", "char", "uuid", "json", "jsonb", "bytea", "time", "timetz"}
)  # fmt: skip
"""Types whose values Arrow converts to Python as they are."""


def scanned_rows(
    index: KeyIndex,
    view: ShardView,
    scan: Scan,
    places: Sequence[RowIdentity],
    *,
    may_read: bool,
) -> list[Row] | None:
    """The rows at these places (S1); None if a file would have to be read, and may not be."""
    if len(places) == 1 and (row := _warm_row(index, view, scan, places[0])) is not None:
        return [row]
    found = rows_by_place(index, view, scan, places, may_read=may_read)
    return None if found is None else list(found.values())


def rows_by_place(
    index: KeyIndex,
    view: ShardView,
    scan: Scan,
    places: Sequence[RowIdentity],
    *,
    may_read: bool,
) -> dict[RowIdentity, Row] | None:
    """The same, by their places."""
    found: dict[RowIdentity, Row] = {}
    for source, numbers in _by_source(view, places):
        part = view.inline_slice(source)
        at: Sequence[int] = numbers
        if part is not None and isinstance(part.stored, UnencodedRows):
            rows_of_part = _stored_rows(scan, source, part.stored, numbers)
            found |= zip([(source, number) for number in numbers], rows_of_part, strict=True)
            continue
        if part is not None:
            rows = part.rows
        else:
            file = next(part.file for part in view.files if part.file.name == source)
            if not may_read and not index.rows_warm(view.shard, file, numbers):
                return None
            rows, at = index.read_rows(view.shard, file, numbers), range(len(numbers))
        cells = ScannedCells(rows, view.schema, scan)
        for number, row in zip(numbers, at, strict=True):
            identity = () if scan.identity is None else (str(source), number)
            found[source, number] = (*cells.row(row), *identity)
    return found


def _stored_rows(
    scan: Scan, source: Source, stored: UnencodedRows, numbers: Sequence[int]
) -> Iterator[Row]:
    """Of rows that are values yet: a view has them only with all fields that it has."""
    for number in numbers:
        values = cast("Row", stored.values[number])
        row = tuple([values[ordinal] for ordinal in scan.ordinals])
        yield row if scan.identity is None else (*row, str(source), number)


def _warm_row(index: KeyIndex, view: ShardView, scan: Scan, place: RowIdentity) -> Row | None:
    """The row of a file whose row group is in memory, read where it stands; None if it is
    elsewhere, or of other types than the view has now.
    """
    source, number = place
    if not is_file(source):
        return None
    file = next(part.file for part in view.files if part.file.name == source)
    warm = index.warm_row(view.shard, file, number)
    if warm is None:
        return None
    row = row_in_columns(warm[0], warm[1], view.schema, scan)
    if row is None or scan.identity is None:
        return row
    return (*row, str(source), number)


def row_in_columns(
    columns: Mapping[str, WarmColumn], at: int, schema: pa.Schema, scan: Scan
) -> Row | None:
    """The scanned columns of a row, by the names of their fields; those that are not there are
    newer. None if one has another type than the schema has now.
    """
    cells: list[Value] = []
    for name, stored, type_ in _wanted_fields(schema, scan):
        known = columns.get(name)
        if known is None:
            cells.append(None)
        elif known.type != stored:
            return None
        elif type_.name in _PLAIN:
            cells.append(known.cell(at))
        else:
            cells.append(_cell(known.values, at, type_))
    return tuple(cells)


_Fields: TypeAlias = Sequence[tuple[str, pa.DataType, SqlType]]

_wanted: IdentityCache[Scan, tuple[pa.Schema, _Fields]] = IdentityCache()
"""What `_wanted_fields` has found for a scan, and under which schema."""


def _wanted_fields(schema: pa.Schema, scan: Scan) -> _Fields:
    """The field of each scanned column, and the column's type."""
    known = _wanted.get(scan)
    if known is not None and known[0] is schema:
        return known[1]
    fields = [schema.field(ordinal) for ordinal in scan.ordinals]
    pairs = zip(fields, scan.columns, strict=True)
    found = [(field.name, field.type, column.type) for field, column in pairs]
    _wanted.put(scan, (schema, found))
    return found


def _by_source(
    view: ShardView, places: Sequence[RowIdentity]
) -> Iterator[tuple[Source, list[int]]]:
    """Rows by file or slice, all in the order of the view."""
    if len(places) > 1:
        names = [part.file.name for part in view.files] + [part.source for part in view.inline]
        order = {name: at for at, name in enumerate(names)}
        places = sorted(places, key=lambda place: (order[place[0]], place[1]))
    for source, rows in groupby(places, key=lambda place: place[0]):
        yield source, [row for _, row in rows]


class ScannedCells:
    """The scanned columns of rows of a file or slice, which may lack columns that are newer."""

    def __init__(self, rows: pa.Table, schema: pa.Schema, scan: Scan) -> None:
        self._columns: list[tuple[Column, SqlType] | None] = []
        there = {name: at for at, name in enumerate(rows.schema.names)}
        for column, ordinal in zip(scan.columns, scan.ordinals, strict=True):
            field = schema.field(ordinal)
            place = there.get(field.name)
            if place is None:
                self._columns.append(None)
                continue
            values = rows.column(place)
            if values.type != field.type:
                values = values.cast(field.type)
            self._columns.append((values, column.type))

    def row(self, number: int) -> Row:
        """The values of one row."""
        return tuple(
            [
                None if known is None else _cell(known[0], number, known[1])
                for known in self._columns
            ]
        )


def _cell(column: Column, row: int, type_: SqlType) -> Value:
    if type_.name in _PLAIN:
        return cast("Value", column[row].as_py())
    return to_values(column.slice(row, 1), type_)[0]
