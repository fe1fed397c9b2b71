"""Answer queries that fix columns of one table by equality: look the rows up, run the plan here.

    plan ─▶ PointRead: the columns, what they must equal, the plan compiled ─┐
    view, parameters ─▶ KeyIndex.places ─▶ the rows, as values ──────────────┴─▶ a batch

Rows with other values cannot change the answer (D1 of `sql/plan/read_conditions.py`).

INVARIANTS
  R1  a query is answered here only if it only selects, compares and sorts columns
      (`is_trivial_plan`), or is the source of an UPDATE or DELETE that the reference engine can
      run.
  R2  rows in memory are read at once; a file is read only for a caller that may block.
  R3  columns that are no key are used only in tables of at most INDEXED_ROWS_MAX rows, and only if
      they match at most ROWS_MAX rows; an engine answers the other queries.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import groupby
from typing import Final, cast

import pyarrow as pa

from compute.access.key_index import KeyIndex
from compute.access.key_predicates import NoSuchKeyError, SingleKey
from compute.access.row_predicates import column_equality
from compute.access.sorted_keys import TooManyRows
from compute.arrow import batch_schema
from compute.identity_cache import IdentityCache
from compute.reference.arrow import BatchMaker, to_values
from compute.reference.executor import PreparedPlan
from compute.reference.expressions import Row
from compute.scan import row_count_bound
from compute.simple_plans import is_row_by_row, is_trivial_plan
from sql.catalog.catalog import Key, Table
from sql.plan.nodes import Const, Param, Plan, RelationId, Scan, output_columns
from sql.plan.read_conditions import read_conditions
from sql.plan.system_columns import relations_with_versions
from sql.plan.traverse import inputs
from sql.types.sql_type import SqlType, Value
from storage.batch import RowIdentity, ShardView
from storage.known_rows import Column
from storage.types import Source, is_file
from storage.unencoded_rows import UnencodedRows

INDEXED_ROWS_MAX: Final = 200_000
"""Rows of a table that is looked up by columns that are no key. Larger: fewer scans, and longer
waits until the columns of a new file are sorted."""

ROWS_MAX: Final = 100
"""Rows that are found by columns that are no key. Larger: more work in Python."""

_CANDIDATES_MAX: Final = 5_000
"""The same in one file, deleted rows included: a row that changes often leaves many."""

_PLAIN: Final = frozenset(
    {"bool", "int2", "int4", "int8", "oid", "float4", "float8", "numeric", "text", "varchar",
     "bpchar", "name", "char", "uuid", "json", "jsonb", "bytea", "time", "timetz"}
)  # fmt: skip
"""Types whose values Arrow converts to Python as they are."""


class NotAnsweredReason(Enum):
    """Why the query is not answered here."""

    FILES = "a file has to be read, and may not (R2)"
    ENGINE = "too many rows for columns that are no key (R3)"


class PointRead:
    """See the module. Two threads must not call `answer` at once."""

    def __init__(
        self, plan: Plan, table: Table, key: Key, wanted: Sequence[Const | Param], *, unique: bool
    ) -> None:
        self._plan = plan
        self._table = table
        self._key = key
        self._wanted = wanted
        self._unique = unique
        self._single = SingleKey(table, key, ())
        self._scan = scan_of(plan)
        columns = output_columns(plan)
        self._maker = BatchMaker([column.type for column in columns], batch_schema(columns))
        self._prepared = PreparedPlan(plan)

    @property
    def is_unique(self) -> bool:
        """Whether the values are those of a unique key: at most one row has them."""
        return self._unique

    def rows(
        self,
        index: KeyIndex,
        view: ShardView,
        parameters: Sequence[Value],
        *,
        may_read: bool,
    ) -> list[Row] | NotAnsweredReason:
        """The rows of the scan that have the values, in the order of the view. Thread-safe."""
        if not self._unique and row_count_bound(view) > INDEXED_ROWS_MAX:
            return NotAnsweredReason.ENGINE
        values = [point_value(expr, parameters) for expr in self._wanted]
        if None in values:
            return []
        try:
            key = self._single.having(tuple(values))
            at_most = None if self._unique else _CANDIDATES_MAX
            places = index.places(
                view,
                key,
                may_read=may_read,
                at_most=at_most,
                is_unique=self._unique and not self._key.deferrable,
            )
        except NoSuchKeyError:
            return []
        except TooManyRows:
            return NotAnsweredReason.ENGINE
        if places is None:
            return NotAnsweredReason.FILES
        if at_most is not None and len(places) > ROWS_MAX:
            return NotAnsweredReason.ENGINE
        return self._read(index, view, places, may_read=may_read)

    def answer(self, rows: list[Row], parameters: Sequence[Value]) -> pa.RecordBatch:
        """Run the plan over these rows."""
        return self.batch(self.rows_of_plan(rows, parameters))

    def batch(self, rows: Sequence[Row]) -> pa.RecordBatch:
        """Rows of the plan as a batch."""
        return self._maker.batch(rows)

    def rows_of_plan(self, rows: list[Row], parameters: Sequence[Value]) -> list[Row]:
        """The same, as values."""
        return self._prepared.rows(parameters, rows)

    def _read(
        self, index: KeyIndex, view: ShardView, places: Sequence[RowIdentity], *, may_read: bool
    ) -> list[Row] | NotAnsweredReason:
        if len(places) == 1 and (row := self._warm_row(index, view, places[0])) is not None:
            return [row]
        found: list[Row] = []
        for source, numbers in _by_source(view, places):
            part = view.inline_slice(source)
            at: Sequence[int] = numbers
            if part is not None and isinstance(part.stored, UnencodedRows):
                found += self._as_stored(source, part.stored, numbers)
                continue
            if part is not None:
                rows = part.rows
            else:
                file = next(part.file for part in view.files if part.file.name == source)
                if not may_read and not index.rows_warm(view.shard, file, numbers):
                    return NotAnsweredReason.FILES
                rows, at = index.read_rows(view.shard, file, numbers), range(len(numbers))
            cells = ScannedCells(rows, view.schema, self._scan)
            if self._scan.identity is None:
                found += [cells.row(row) for row in at]
            else:
                pairs = zip(numbers, at, strict=True)
                found += [(*cells.row(row), str(source), number) for number, row in pairs]
        return found

    def _as_stored(
        self, source: Source, stored: UnencodedRows, numbers: Sequence[int]
    ) -> Iterator[Row]:
        """The scanned columns of rows that are values yet (U1 of `unencoded_rows.py`): a view has
        them only with the fields that it has.
        """
        ordinals, has_identity = self._scan.ordinals, self._scan.identity is not None
        for number in numbers:
            values = cast("Row", stored.values[number])
            row = tuple([values[ordinal] for ordinal in ordinals])
            yield (*row, str(source), number) if has_identity else row

    def _warm_row(self, index: KeyIndex, view: ShardView, place: RowIdentity) -> Row | None:
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
        row = row_in_columns(warm[0], warm[1], view.schema, self._scan)
        if row is None or self._scan.identity is None:
            return row
        return (*row, str(source), number)


def row_in_columns(
    columns: Mapping[str, Column], at: int, schema: pa.Schema, scan: Scan
) -> Row | None:
    """The scanned columns of a row, by the names of their fields; those that are not there are
    newer. None if one has another type than the schema has now.
    """
    cells: list[Value] = []
    for column, ordinal in zip(scan.columns, scan.ordinals, strict=True):
        field = schema.field(ordinal)
        known = columns.get(field.name)
        if known is not None and known.type != field.type:
            return None
        cells.append(None if known is None else _cell(known, at, column.type))
    return tuple(cells)


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


def point_value(expr: Const | Param, parameters: Sequence[Value]) -> Value:
    """What a column must be equal to, as the values of columns are."""
    if isinstance(expr, Const):
        return expr.value
    value = parameters[expr.index - 1]
    return value.rstrip(" ") if isinstance(value, str) and expr.type.has_blanks else value


def scan_of(plan: Plan) -> Scan:
    """The scan of a plan with one input at each node."""
    while not isinstance(plan, Scan):
        (plan,) = inputs(plan)
    return plan


_queries: IdentityCache[Plan, tuple[Table, PointRead | None]] = IdentityCache()
_changes: IdentityCache[Plan, tuple[Table, PointRead | None]] = IdentityCache()


def plan_point_query(plan: Plan, table: Table) -> PointRead | None:
    """A point read for a query over a table; None if an engine has to answer it (R1)."""
    return _known(_queries, plan, table, is_trivial_plan)


def plan_point_change(plan: Plan, table: Table) -> PointRead | None:
    """A point read for the source of an UPDATE or DELETE; None if an engine has to run it (R1)."""
    return _known(_changes, plan, table, is_row_by_row)


def _known(
    cache: IdentityCache[Plan, tuple[Table, PointRead | None]],
    plan: Plan,
    table: Table,
    fits: Callable[[Plan], bool],
) -> PointRead | None:
    known = cache.get(plan)
    if known is not None and known[0] is table:
        return known[1]
    is_point = fits(plan) and not relations_with_versions(plan)
    made = _point_read(plan, table) if is_point else None
    cache.put(plan, (table, made))
    return made


_Equalities = dict[int, Const | Param]
"""By ordinal, what a column must be equal to."""


def _equalities(plan: Plan, table: Table) -> _Equalities:
    conditions = read_conditions(plan).get(RelationId(table.shard)) or ()
    if len(conditions) != 1:
        return {}
    found = [column_equality(expr) for expr in conditions[0].all_of]
    return dict([pair for pair in found if pair is not None])


def _point_of(wanted: _Equalities, table: Table) -> tuple[Key, list[Const | Param]] | None:
    for key in table.keys:
        if wanted.keys() >= set(key.columns):
            return key, [wanted[ordinal] for ordinal in key.columns]
    return None


def bounding_key(plan: Plan, table: Table) -> Key | None:
    """The unique key whose columns a plan fixes by equality: at most one row counts."""
    point = _point_of(_equalities(plan, table), table)
    return None if point is None else point[0]


def unique_point(plan: Plan, table: Table) -> tuple[Key, Sequence[Const | Param]] | None:
    """A unique key by which a plan, row by row over one table, selects, and its values."""
    if not is_row_by_row(plan) or relations_with_versions(plan):
        return None
    return _point_of(_equalities(plan, table), table)


def _point_read(plan: Plan, table: Table) -> PointRead | None:
    wanted = _equalities(plan, table)
    point = _point_of(wanted, table)
    if point is not None:
        return PointRead(plan, table, point[0], point[1], unique=True)
    if not wanted:
        return None
    columns = tuple(sorted(wanted))
    by_value = Key("", columns)
    return PointRead(plan, table, by_value, [wanted[at] for at in columns], unique=False)
