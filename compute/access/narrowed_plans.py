"""Run plans in process over those rows of large relations that small ones are joined to.

    plan, small relations as rows ─▶ values that a large one is equal to ─▶ KeyIndex ─▶ its rows
                                                                ▲                        │
                                                                └── the next large one ◀─┤
                                                                           the plan ◀────┘

For plans that are run again and again over few changes, beside tables of any size: the programs of
materialized views (`compute/maintenance.py`).

INVARIANTS
  W2  the rows are those of the plan over all rows of its inputs (W1 of
      `sql/incremental/narrowed_scans.py`).
  W3  on the event loop no file is read, and the work is bounded: each plan that is run touches
      LOOP_WORK_MAX rows at most, and a scan is looked up by LOOP_ROWS_MAX keys at most. Its
      functions read few bytes (`compute/computed_values.py`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from compute.access.key_index import KeyIndex
from compute.access.key_predicates import NoSuchKeyError, SingleKey
from compute.access.scanned_rows import scanned_rows
from compute.access.sorted_keys import TooManyRows
from compute.arrow import batch_schema
from compute.computed_values import ComputedValues, computed_values
from compute.identity_cache import IdentityCache
from compute.reference.arrow import BatchMaker
from compute.reference.cost import row_work_bound
from compute.reference.decoded_rows import DecodedRows, decode_slices
from compute.reference.expressions import Row, Source
from compute.reference.joins import KEY_TYPES
from compute.reference.plans import PlanCompiler
from compute.reference.support import refusal_of_functions
from sql.catalog.catalog import Key, Table
from sql.incremental.narrowed_scans import NarrowedScan, equalities_at_joins, narrowed_scans
from sql.plan.nodes import ColumnId, Join, Plan, PlanColumn, RelationId, Scan, output_columns
from sql.plan.traverse import plan_has_subquery, plan_nodes, scans
from sql.types.sql_type import INT8, TEXT
from storage.batch import FileSlice, InlineSlice, RowIdentity, ShardView
from storage.types import OWN, ShardId

SMALL_ROWS_MAX: Final = 64
"""Rows in memory of a relation that is read whole. Larger: less looking up, more decoding."""

LOOP_ROWS_MAX: Final = 256
"""Rows of all scans of a plan on the event loop, and keys that one is looked up by. Larger: longer
stalls for everybody."""

LOOP_WORK_MAX: Final = 100_000
"""Rows that a plan may touch there; joins by equality touch far fewer than that bound says."""

ROWS_MAX: Final = 2_000
"""Rows of all scans in a thread. Larger: Python does what an engine does faster."""

_WORK_MAX: Final = 4_000_000

FILE_ROWS_MAX: Final = 2_000_000
"""Rows of a file in which columns that are no key are looked up: what the index keeps of one."""

_CANDIDATES_MAX: Final = 5_000
"""Rows with one key in one file, deleted rows included."""

_MEASURED_ROWS_MIN: Final = 1_000
"""Rows from which on it is worth to know which column tells most."""

_GROWTH: Final = 4
"""How many times larger a table must be than it was when that was measured, to do it again."""


_Asked: TypeAlias = tuple[
    RelationId, tuple[int, ...], tuple[int, ...], tuple[bool, ...], tuple[Row, ...]
]
"""A relation, the columns of its rows, those that are looked up, in which of them NULLs are equal,
and for what.
"""

_IDENTITY: Final = (
    PlanColumn(ColumnId(-1), "source", TEXT),
    PlanColumn(ColumnId(-2), "index", INT8),
)


class NotNarrowed(Enum):
    """Why a plan is not run here."""

    COLD = "a file has to be read, and may not, or it is too much for the event loop (W3)"
    ENGINE = "an engine has to run it"


@dataclass(frozen=True, slots=True)
class LargeTables:
    """The relations of some plans that may be large, and whose rows are found by key. A relation
    has the same rows in all of these plans. `known`: the rows that were found, by what was asked.
    """

    tables: Mapping[RelationId, Table]
    known: dict[_Asked, Sequence[Row]] = field(default_factory=dict[_Asked, Sequence[Row]])


class _EveryTime(PlanCompiler):
    """Scans read anew each time they run."""

    def _scan(self, plan: Scan) -> Source:
        return lambda: iter(self.read(plan))


@dataclass(slots=True)
class _Prepared:
    """A plan for some large relations, compiled. `rows`: of each scan, by its identity."""

    plan: Plan
    narrowed: Sequence[NarrowedScan]
    whole: Sequence[Scan]
    besides: Sequence[Source]
    run: Source
    rows: dict[int, Sequence[Row]]


@dataclass(slots=True)
class _Known:
    """What is remembered of a plan: with its equalities at joins, and compiled by what is large."""

    plan: Plan
    missing: str | None
    values: ComputedValues | None
    """What its functions read."""
    is_reusable: bool
    prepared: dict[frozenset[RelationId], _Prepared | None] = field(
        default_factory=dict[frozenset[RelationId], "_Prepared | None"]
    )


class NarrowedPlans:
    """See the module. `rows_now` is for the event loop, `rows_in_thread` for threads."""

    def __init__(self, index: KeyIndex) -> None:
        self._index = index
        self._known: IdentityCache[Plan, _Known] = IdentityCache()
        self._makers: IdentityCache[Plan, BatchMaker] = IdentityCache()
        self._decoded = DecodedRows()
        self._telling: dict[tuple[ShardId, tuple[int, ...]], tuple[int, int]] = {}
        """The column that tells most, and the rows of which that was found."""

    def rows_now(
        self, plan: Plan, views: Mapping[RelationId, ShardView], tables: LargeTables
    ) -> Sequence[Row] | NotNarrowed:
        """The rows of a plan, at once (W3)."""
        known = self._known.get(plan)
        if known is None:
            known = _known(plan)
            self._known.put(plan, known)
        run = _Run(self._index, self._telling, views, tables, self._decoded)
        return run.rows(known)

    def batch(self, plan: Plan, rows: Sequence[Row]) -> pa.RecordBatch:
        """Rows of a plan as a batch."""

        def maker() -> BatchMaker:
            columns = output_columns(plan)
            return BatchMaker([column.type for column in columns], batch_schema(columns))

        return self._makers.found(plan, maker).batch(rows)

    def rows_in_thread(
        self, plan: Plan, views: Mapping[RelationId, ShardView], tables: LargeTables
    ) -> Sequence[Row] | NotNarrowed:
        """The same. Blocks."""
        return _Run(self._index, self._telling, views, tables, None).rows(_known(plan))


def _known(plan: Plan) -> _Known:
    lateral = any(isinstance(node, Join) and node.lateral for node in plan_nodes(plan))
    reusable = not lateral and not plan_has_subquery(plan)
    missing = refusal_of_functions(plan)
    values = None if missing is not None else computed_values(plan)
    return _Known(equalities_at_joins(plan), missing, values, reusable)


def _prepared(plan: Plan, large: frozenset[RelationId]) -> _Prepared | None:
    narrowed = narrowed_scans(plan, large)
    if narrowed is None:
        return None
    rows: dict[int, Sequence[Row]] = {}
    compiler = _EveryTime(lambda scan: rows[id(scan)], ())
    chosen = {id(one.scan) for one in narrowed}
    whole = {id(scan): scan for scan in scans(plan) if id(scan) not in chosen}
    besides = [compiler.compile(one.beside) for one in narrowed]
    return _Prepared(plan, narrowed, [*whole.values()], besides, compiler.compile(plan), rows)


@dataclass(frozen=True, slots=True)
class _Run:
    """One run of a plan. `decoded`: of the event loop; None: this is a thread, which may read."""

    index: KeyIndex
    telling: dict[tuple[ShardId, tuple[int, ...]], tuple[int, int]]
    views: Mapping[RelationId, ShardView]
    large: LargeTables
    decoded: DecodedRows | None

    def rows(self, known: _Known) -> Sequence[Row] | NotNarrowed:
        if known.missing is not None:
            return NotNarrowed.ENGINE
        most, work = (LOOP_ROWS_MAX, LOOP_WORK_MAX) if self.decoded else (ROWS_MAX, _WORK_MAX)
        prepared = self._prepared(known)
        if prepared is None:
            return NotNarrowed.ENGINE
        sizes: dict[RelationId, int] = {}
        rows, prepared_rows = 0, prepared.rows
        for scan in prepared.whole:
            view = self.views[scan.relation]
            if view.files:
                return NotNarrowed.ENGINE
            rows += view.inline_rows
            if rows > most:
                return self._too_much(rows)
            prepared_rows[id(scan)] = found = self._whole(scan)
            sizes[scan.relation] = len(found)
        for narrowed, beside in zip(prepared.narrowed, prepared.besides, strict=True):
            # A part of the plan: if this is too much, all of it is.
            if row_work_bound(narrowed.beside, sizes) > work:
                return self._too_much_work()
            located = self._located(narrowed, [*beside()], most)
            if isinstance(located, NotNarrowed):
                return located
            rows += len(located)
            if rows > most:
                return self._too_much(rows)
            relation = narrowed.scan.relation
            prepared_rows[id(narrowed.scan)] = located
            sizes[relation] = sizes.get(relation, 0) + len(located)
        if row_work_bound(prepared.plan, sizes) > work:
            return self._too_much_work()
        if self.decoded is not None and _is_long(known.values, prepared):
            return NotNarrowed.COLD
        return [*prepared.run()]

    def _too_much_work(self) -> NotNarrowed:
        return NotNarrowed.COLD if self.decoded else NotNarrowed.ENGINE

    def _too_much(self, rows: int) -> NotNarrowed:
        return NotNarrowed.COLD if self.decoded and rows <= ROWS_MAX else NotNarrowed.ENGINE

    def _prepared(self, known: _Known) -> _Prepared | None:
        found: _Prepared | None = None
        for few in (SMALL_ROWS_MAX, LOOP_ROWS_MAX):
            large = frozenset(
                relation
                for relation, view in self.views.items()
                if relation in self.large.tables and (view.files or view.inline_rows > few)
            )
            if self.decoded is not None and known.is_reusable:
                if large not in known.prepared:
                    known.prepared[large] = _prepared(known.plan, large)
                found = known.prepared[large]
            else:
                found = _prepared(known.plan, large)
            if found is not None:
                break
        return found

    def _whole(self, scan: Scan) -> Sequence[Row]:
        parts = self.views[scan.relation].inline
        # What is made for one run is not worth remembering.
        if self.decoded is None or (parts and parts[0].source == OWN):
            return decode_slices(scan, parts)
        return self.decoded.rows(scan, parts)

    def _located(
        self, narrowed: NarrowedScan, beside: Sequence[Row], most: int
    ) -> Sequence[Row] | NotNarrowed:
        """The rows of a scan that are equal to one of these."""
        if not beside:
            return ()
        scan = narrowed.scan
        view, table = self.views[scan.relation], self.large.tables[scan.relation]
        chosen = self._key(narrowed, view, table)
        if isinstance(chosen, NotNarrowed):
            return chosen
        key, is_unique = chosen
        by_ordinal = {scan.ordinals[one.place]: one for one in narrowed.columns}
        columns = [by_ordinal[ordinal] for ordinal in key.columns]
        wanted = dict.fromkeys([tuple([row[one.equal] for one in columns]) for row in beside])
        nulls = tuple([one.nulls for one in columns])
        asked = scan.relation, scan.ordinals, key.columns, nulls, tuple(wanted)
        rows = self.large.known.get(asked)
        if rows is None:
            if len(wanted) > most:
                return self._too_much(len(wanted))
            pattern = SingleKey(table, key, ())
            places = self._every_place(view, pattern, wanted, nulls, is_unique=is_unique)
            if isinstance(places, NotNarrowed):
                return places
            if len(places) > most:
                return self._too_much(len(places))
            named = scan if scan.identity is not None else replace(scan, identity=_IDENTITY)
            rows = scanned_rows(self.index, view, named, places, may_read=self.decoded is None)
            if rows is None:
                return NotNarrowed.COLD
            self.large.known[asked] = rows
        return rows if scan.identity is not None else [row[:-2] for row in rows]

    def _every_place(
        self,
        view: ShardView,
        pattern: SingleKey,
        wanted: Iterable[Row],
        nulls: Sequence[bool],
        *,
        is_unique: bool,
    ) -> Sequence[RowIdentity] | NotNarrowed:
        """The places of the rows with these keys. `nulls`: in which columns NULLs are equal."""
        places: list[RowIdentity] = []
        for values in wanted:
            if None in values:
                if all(equal for value, equal in zip(values, nulls, strict=True) if value is None):
                    return NotNarrowed.ENGINE  # no index has NULLs
                continue
            found = self._places(view, pattern.having(values), is_unique=is_unique)
            if isinstance(found, NotNarrowed):
                return found
            places += found
            if len(places) > ROWS_MAX:
                return NotNarrowed.ENGINE
        return places

    def _places(
        self, view: ShardView, key: SingleKey, *, is_unique: bool
    ) -> Sequence[RowIdentity] | NotNarrowed:
        try:
            found = self.index.places(
                view,
                key,
                may_read=self.decoded is None,
                at_most=None if is_unique else _CANDIDATES_MAX,
                is_unique=is_unique,
            )
        except NoSuchKeyError:
            return ()
        except TooManyRows:
            return NotNarrowed.ENGINE
        return NotNarrowed.COLD if found is None else found

    # --- which columns are looked up -----------------------------------------------------------

    def _key(
        self, narrowed: NarrowedScan, view: ShardView, table: Table
    ) -> tuple[Key, bool] | NotNarrowed:
        """The columns to look up, and whether they are a unique key."""
        scan = narrowed.scan
        ordinals = [
            scan.ordinals[one.place]
            for one in narrowed.columns
            if scan.columns[one.place].type.name in KEY_TYPES
        ]
        for key in table.keys:
            if not key.deferrable and {*ordinals}.issuperset(key.columns):
                return key, True
        if not ordinals or any(part.file.rows > FILE_ROWS_MAX for part in view.files):
            return NotNarrowed.ENGINE
        found = ordinals[0] if len(ordinals) == 1 else self._most_telling(view, table, ordinals)
        return found if isinstance(found, NotNarrowed) else (Key("", (found,)), False)

    def _most_telling(
        self, view: ShardView, table: Table, ordinals: Sequence[int]
    ) -> int | NotNarrowed:
        """The column with the most different values, as the largest part of the view has it."""
        place = view.shard, tuple(ordinals)
        known = self.telling.get(place)
        part = _largest(view)
        count = part.row_limit if isinstance(part, FileSlice) else part.num_rows
        if known is not None and count <= _GROWTH * known[1]:
            return known[0]
        if count < _MEASURED_ROWS_MIN:
            return ordinals[0]
        if self.decoded is not None:
            return NotNarrowed.COLD
        counts = [self._different(view, part, table, ordinal) for ordinal in ordinals]
        chosen = ordinals[counts.index(max(counts))]
        self.telling[place] = chosen, count
        return chosen

    def _different(
        self, view: ShardView, part: FileSlice | InlineSlice, table: Table, ordinal: int
    ) -> int:
        name = table.columns[ordinal].field
        if isinstance(part, FileSlice):
            read = self.index.read_columns(view.shard, part.file, [name])
        else:
            read = part.rows.select([name] if name in part.rows.schema.names else [])
        # A column that is newer than the part is NULL there.
        column: Any = read.column(0) if read.num_columns else pa.nulls(1)
        return int(pc.count_distinct(column).as_py())


def _is_long(values: ComputedValues | None, prepared: _Prepared) -> bool:
    """Whether the functions of a plan may take long over its rows (W3)."""
    if values is None:
        return False
    scans = [*prepared.whole, *[narrowed.scan for narrowed in prepared.narrowed]]
    return not values.are_few_in_scans([(scan, prepared.rows[id(scan)]) for scan in scans])


def _largest(view: ShardView) -> FileSlice | InlineSlice:
    """Of a view that is not empty."""
    if view.files:
        return max(view.files, key=lambda part: part.row_limit)
    return max(view.inline, key=lambda part: part.num_rows)
