"""The rows of a table that a query selects, in its order, kept from one run to the next.

    view ─▶ slices that have come ─▶ the query's conditions, row by row ─┐
                                      rows that were selected before ────┴─▶ sorted ─▶ those of the
                                                                             view, one by one

For who takes the first few rows of many again and again: a queue of jobs. Between two runs, few
rows come, and those that go are left out when they are met.

INVARIANTS
  O1  the rows are those that the query without its LIMIT selects of the view, in its order.
  O2  no file is read, and a run looks at COMING_MAX rows at most that were not there before.
  O3  what is kept is that of the newest view that was asked for: slices of older ones may be
      missing. Of an older view nothing is said.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from operator import itemgetter
from typing import Final, cast

import pyarrow as pa

from compute.access.bounded_plans import is_bounded
from compute.access.rows_in_memory import NotInMemoryError
from compute.computed_values import LINEAR_BYTES_MAX, computed_values
from compute.reference.decoded_rows import decode_slices
from compute.reference.executor import PreparedPlan
from compute.reference.expressions import Row
from compute.reference.functions.ordering import ordering_key
from compute.reference.groups import CompiledKey, sort_rows
from compute.simple_plans import only_scan
from sql.errors import SqlError
from sql.plan.nodes import ColumnRef, Const, Limit, Plan, Project, Scan, Sort, output_columns
from sql.plan.system_columns import relations_with_versions
from sql.plan.traverse import is_volatile_plan
from sql.types.sql_type import Value
from storage.batch import FileSlice, InlineSlice, RowIdentity, ShardView
from storage.types import OWN, Source, Timestamp

COMING_MAX: Final = 2_000
"""Rows that one run looks at for the first time: about 2 µs each. Larger: longer stalls of the
loop. Smaller: fewer rows that come at once are looked at here."""

ORDERED_MAX: Final = 10_000
"""Rows that are kept for one set of parameters. Larger: longer sorts whenever a row comes."""

_SETS_MAX: Final = 8
"""Sets of parameters for which rows are kept."""

ORDERED_BYTES_MAX: Final = 4 << 20
"""The same in bytes, about."""

_GONE_MAX: Final = 16
"""Rows that were met and are gone, before those that are there are gathered anew."""

_SLICES_MORE: Final = 256
"""The same of slices that are known and are gone."""

_ROW_BYTES: Final = 200
"""About what a row takes without its texts."""

_BEGINNING: Final = Timestamp(0)


@dataclass(slots=True)
class _Kept:
    """What was selected for some parameters. `upto`: of the newest view (O3); `known`: slices that
    were looked at. `has_gaps`: some before those may be unknown, since a view did not show them.
    """

    schema: pa.Schema
    rows: list[Row] = field(default_factory=list[Row])
    known: set[Source] = field(default_factory=set[Source])
    upto: Timestamp = _BEGINNING
    gone: int = 0
    nbytes: int = 0
    has_gaps: bool = False


class RowsInOrder:
    """See the module. Rows are shown with the columns of the query. Not thread-safe."""

    def __init__(
        self, selected: Plan, scan: Scan, order: Sequence[CompiledKey], place: int
    ) -> None:
        self._scan = scan
        self._prepared = PreparedPlan(selected)
        self._values = computed_values(selected, LINEAR_BYTES_MAX)
        self._order = order
        self._place = place
        self._kept: dict[tuple[Value, ...], _Kept] = {}
        """By the parameters, so that those that are equal are shown alike."""

    def identity(self, row: Row) -> RowIdentity:
        """Of a row that is shown."""
        return Source(str(row[self._place])), cast("int", row[self._place + 1])

    def rows(self, view: ShardView, parameters: tuple[Value, ...]) -> Iterator[Row]:
        """Those of the view; to be read at once. Raises NotInMemoryError (O2, O3)."""
        if any(map(_has_rows, view.files)):
            raise NotInMemoryError
        own = view.inline[-1] if view.inline and view.inline[-1].source == OWN else None
        kept = self._taken_in(view, parameters, own)
        if own is not None and self._selected(view, [own], parameters):
            raise NotInMemoryError  # they would have to be sorted in
        return self._there(view, kept)

    def _there(self, view: ShardView, kept: _Kept) -> Iterator[Row]:
        """The kept rows that are in the view."""
        parts: dict[Source, InlineSlice | None] = {}
        for row in kept.rows:
            source, index = self.identity(row)
            if source not in parts:
                parts[source] = view.inline_slice(source)
            part = parts[source]
            if part is not None and index not in part.deleted:
                yield row
            elif view.is_whole:
                kept.gone += 1

    def _taken_in(
        self, view: ShardView, parameters: tuple[Value, ...], own: InlineSlice | None
    ) -> _Kept:
        """What is kept for the parameters, with the slices that have come."""
        place = tuple(map(_exact, parameters))
        kept = self._kept.get(place)
        if kept is None or kept.schema is not view.schema or _has_gap(view, kept, own):
            if len(self._kept) >= _SETS_MAX:
                self._kept.clear()
            kept = self._kept[place] = _Kept(view.schema)
        if view.upto is None or view.upto < kept.upto:
            raise NotInMemoryError
        kept.upto = view.upto
        self._tidy(view, kept)
        coming = self._coming(view, kept, own)
        if not coming:
            return kept
        found = self._selected(view, coming, parameters)
        kept.known.update([part.source for part in coming])
        # A slice of which a transaction has deleted all rows is in no view of its own.
        kept.has_gaps = kept.has_gaps or not view.is_whole
        if found:
            kept.nbytes += sum(map(_bytes, found))
            kept.rows = sort_rows(kept.rows + found, self._order)
            if len(kept.rows) > ORDERED_MAX or kept.nbytes > ORDERED_BYTES_MAX:
                del self._kept[place]
                raise NotInMemoryError
        return kept

    def _coming(
        self, view: ShardView, kept: _Kept, own: InlineSlice | None
    ) -> Sequence[InlineSlice]:
        """Slices that were not looked at: the last ones, since slices come in their order."""
        end = len(view.inline) - (own is not None)
        first = end
        while first and view.inline[first - 1].source not in kept.known:
            first -= 1
        return view.inline[first:end]

    def _selected(
        self, view: ShardView, parts: Sequence[InlineSlice], parameters: Sequence[Value]
    ) -> list[Row]:
        """The rows of slices that the query selects. What a transaction has deleted may come back,
        and stays.
        """
        if sum(part.num_rows for part in parts) > COMING_MAX:
            raise NotInMemoryError
        rows = decode_slices(self._scan, parts, deleted_too=not view.is_whole)
        computed = self._values
        if computed is not None and not computed.are_few_in_rows(parameters, rows):
            raise NotInMemoryError
        try:
            return self._prepared.rows(parameters, rows)
        except (SqlError, ArithmeticError, ValueError) as error:
            raise NotInMemoryError from error

    def _tidy(self, view: ShardView, kept: _Kept) -> None:
        """Forget what is gone, if it is much (O3)."""
        most = 2 * len(view.inline) + _SLICES_MORE
        if not view.is_whole or (kept.gone <= _GONE_MAX and len(kept.known) <= most):
            return
        kept.rows = list(self._there(view, kept))
        kept.nbytes = sum(map(_bytes, kept.rows))
        kept.known = {part.source for part in view.inline if part.source in kept.known}
        kept.gone = 0


def _has_gap(view: ShardView, kept: _Kept, own: InlineSlice | None) -> bool:
    """Whether a slice before one that is known was not looked at: it has come back."""
    if not kept.has_gaps or view.upto is None or view.upto < kept.upto:
        return False
    is_known = [part.source in kept.known for part in view.inline[: -1 if own else None]]
    kept.has_gaps = not view.is_whole
    return is_known != sorted(is_known, reverse=True)


def _exact(value: Value) -> Value:
    return str(value) if isinstance(value, float | Decimal) else value


def _bytes(row: Row) -> int:
    return _ROW_BYTES + sum([len(value) for value in row if isinstance(value, str | bytes)])


def _has_rows(part: FileSlice) -> bool:
    return part.deleted.range_cardinality(0, part.row_limit) < part.row_limit


def compile_rows_in_order(plan: Plan, place: int) -> tuple[RowsInOrder, Sequence[int]] | None:
    """A query with a LIMIT, of rows of one table, row by row; `place`: where its columns have their
    identity. With it: where the columns of the query are in rows that are shown. None: another one.
    """
    if not isinstance(plan, Project) or not isinstance(plan.input, Limit):
        return None
    limit = plan.input
    if not isinstance(limit.limit, Const) or limit.offset is not None or limit.ties:
        return None
    below = limit.input
    sort = below if isinstance(below, Sort) else None
    selected = below if sort is None else sort.input
    scan = only_scan(selected)
    if scan is None or scan.identity is None or relations_with_versions(selected):
        return None
    if not is_bounded(selected) or is_volatile_plan(selected):
        return None
    places = {column.id: at for at, column in enumerate(output_columns(selected))}
    shown = [places[expr.id] for expr in plan.exprs if isinstance(expr, ColumnRef)]
    if len(shown) < len(plan.exprs) or shown[place + 1] != shown[place] + 1:
        return None
    order: list[CompiledKey] = []
    for key in () if sort is None else sort.keys:
        if not isinstance(key.expr, ColumnRef):
            return None
        value = itemgetter(places[key.expr.id])
        compare = ordering_key(key.expr.type)
        order.append(CompiledKey(value, compare, key.descending, key.nulls_first))
    return RowsInOrder(selected, scan, order, shown[place]), shown
