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

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final

import pyarrow as pa

from compute.access.key_index import KeyIndex
from compute.access.key_predicates import NewKeys, NoSuchKeyError, SingleKey
from compute.access.row_keys import RowKey
from compute.access.row_predicates import column_equality
from compute.access.scanned_rows import rows_by_place, scanned_rows
from compute.access.sorted_keys import TooManyRows
from compute.arrow import batch_schema
from compute.computed_values import computed_values
from compute.identity_cache import IdentityCache
from compute.reference.arrow import BatchMaker
from compute.reference.executor import PreparedPlan, run_over_rows
from compute.reference.expressions import Row
from compute.scan import row_count_bound
from compute.simple_plans import is_row_by_row, is_trivial_plan
from sql.catalog.catalog import Key, Table
from sql.plan.nodes import Const, Param, Plan, RelationId, Scan, output_columns
from sql.plan.read_conditions import read_conditions
from sql.plan.system_columns import relations_with_versions
from sql.plan.traverse import inputs
from sql.types.sql_type import Value
from storage.batch import ShardView

INDEXED_ROWS_MAX: Final = 200_000
"""Rows of a table that is looked up by columns that are no key. Larger: fewer scans, and longer
waits until the columns of a new file are sorted."""

ROWS_MAX: Final = 100
"""Rows that are found by columns that are no key. Larger: more work in Python."""

_CANDIDATES_MAX: Final = 5_000
"""The same in one file, deleted rows included: a row that changes often leaves many."""


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
        self._values = computed_values(plan)

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
        found = scanned_rows(index, view, self._scan, places, may_read=may_read)
        return NotAnsweredReason.FILES if found is None else found

    def keys_of(self, values: Sequence[tuple[Value, ...]]) -> NewKeys:
        """What `rows_by_key` looks up; NULL is equal to nothing. Raises pa.ArrowException,
        OverflowError if a value is outside of its column's type.
        """
        known = [one for one in values if None not in one]
        return NewKeys.of_values(self._table, self._key, known)

    def rows_by_key(
        self, index: KeyIndex, view: ShardView, keys: NewKeys, *, may_read: bool
    ) -> dict[RowKey, Row] | None:
        """`rows` for each of some values of a unique key that is not deferrable; what a look-up
        needs is done once. None: a file would have to be read (R2). Thread-safe.
        """
        files = index.files(view, keys)
        if files and not may_read and not index.is_warm(view, keys, files):
            return None
        places = index.locate(view, keys, {}, files)
        rows = rows_by_place(index, view, self._scan, [*places.values()], may_read=may_read)
        return None if rows is None else {key: rows[place] for key, place in places.items()}

    @property
    def has_functions(self) -> bool:
        """Whether the plan computes anything that may take long."""
        return self._values is not None

    def may_take_long(self, rows: Sequence[Row], parameters: Sequence[Value]) -> bool:
        """Whether running the plan over these rows is for a thread: `rows_of_plan_apart`."""
        values = self._values
        return values is not None and not values.are_few_in_rows(parameters, rows)

    def batch(self, rows: Sequence[Row]) -> pa.RecordBatch:
        """Rows of the plan as a batch."""
        return self._maker.batch(rows)

    def rows_of_plan(self, rows: list[Row], parameters: Sequence[Value]) -> list[Row]:
        """Run the plan over these rows."""
        return self._prepared.rows(parameters, rows)

    def rows_of_plan_apart(self, rows: list[Row], parameters: Sequence[Value]) -> list[Row]:
        """The same. Thread-safe."""
        return run_over_rows(self._plan, rows, parameters)


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
