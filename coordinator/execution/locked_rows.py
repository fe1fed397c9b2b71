"""The rows that a statement has locked, for the rest of it: as inputs, as constants, as parameters.

    part ─▶ rows, as values ─┬─▶ a relation, if the rest scans it
                             └─▶ put into its plans ─┬─ one row at most: parameters of a plan that
                                                     │  is made once, so that what is known of it
                                                     │  (keys, compiled forms) holds for each run
                                                     └─ more: constants

INVARIANTS
  L1  a statement reads the same with rows put into its plans (K1 of `sql/plan/known_rows.py`).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from compute.reference.arrow import to_batch
from compute.reference.expressions import Row
from coordinator.execution.dml.transient_relations import transient_table, transient_view
from sql.plan.known_rows import ROWS_MAX, KnownColumns, with_known_rows
from sql.plan.nodes import Const, Param, Plan, PlanColumn, RelationId, output_columns
from sql.plan.traverse import scans
from sql.statements.bound import Modify, RowCalls
from sql.statements.locking import LockingQuery
from sql.types.sql_type import Value
from storage.batch import ShardView

_REMEMBERED_MAX: Final = 1_000
"""Statements whose plans are remembered with parameters in the place of locked rows."""


@dataclass(frozen=True, slots=True)
class _Locked:
    """The rows of one part: of each, the columns that the rest of the statement reads."""

    part: LockingQuery
    rows: Sequence[Row]

    @property
    def columns(self) -> Sequence[PlanColumn]:
        return output_columns(self.part.plan)[: self.part.shown]

    def view(self) -> ShardView:
        batch = to_batch([row[: self.part.shown] for row in self.rows], self.columns)
        return transient_view(self.part.relation, transient_table(batch.columns))

    def as_constants(self) -> KnownColumns:
        return [
            [Const(row[place], column.type) for row in self.rows]
            for place, column in enumerate(self.columns)
        ]

    def as_parameters(self, first: int) -> KnownColumns:
        return [
            [Param(first + place, column.type)] if self.rows else []
            for place, column in enumerate(self.columns)
        ]

    def may_be_parameters(self) -> bool:
        """Whether it is one row, without NULL, or none."""
        return len(self.rows) <= 1 and not any(None in row[: self.part.shown] for row in self.rows)


@dataclass(slots=True)
class LockedParts:
    """See the module."""

    _parts: list[_Locked] = field(default_factory=list[_Locked])

    def add(self, part: LockingQuery, rows: Sequence[Row]) -> None:
        """The rows of a part, in the order of its plan's columns."""
        self._parts.append(_Locked(part, rows))

    def inputs(self, plans: Iterable[Plan], calls: RowCalls | None) -> dict[RelationId, ShardView]:
        """The rows as inputs of plans, as far as these scan them, or as any call might."""
        if not self._parts:
            return {}
        named = {scan.relation for plan in plans for scan in scans(plan)}
        return {
            locked.part.relation: locked.view()
            for locked in self._parts
            if calls is not None or locked.part.relation in named
        }

    def plan(self, plan: Plan) -> Plan:
        """A plan of the statement, which reads by the keys of the rows if it may."""
        few = [locked for locked in self._parts if len(locked.rows) <= ROWS_MAX]
        known = {locked.part.relation: locked.as_constants() for locked in few}
        return with_known_rows(plan, known) if known else plan

    def parameters(self, given: Sequence[Value]) -> Sequence[Value]:
        """What the parts that `modify` makes are run with: the given ones, and perhaps more."""
        if not self._parts:
            return given
        return (*given, *[value for locked in self._parts for value in _values(locked)])

    def modify(self, modify: Modify, given: Sequence[Value]) -> Modify:
        """A part that writes, likewise, to be run with `parameters(given)`."""
        if not self._parts:
            return modify
        if not all(locked.may_be_parameters() for locked in self._parts):
            return replace(modify, source=self.plan(modify.source))
        counts = (len(given), *[len(locked.rows) for locked in self._parts])
        return _remembered(modify, counts, lambda: self._with_parameters(modify, len(given)))

    def _with_parameters(self, modify: Modify, given: int) -> Modify:
        known: dict[RelationId, KnownColumns] = {}
        first = given + 1
        for locked in self._parts:
            known[locked.part.relation] = locked.as_parameters(first)
            first += len(_values(locked))
        return replace(modify, source=with_known_rows(modify.source, known))


def _values(locked: _Locked) -> Row:
    """The values of a part's rows, if they may be parameters."""
    if not locked.may_be_parameters():
        return ()
    return tuple([value for row in locked.rows for value in row[: locked.part.shown]])


_statements: dict[tuple[int, tuple[int, ...]], tuple[Modify, Modify]] = {}


def _remembered(modify: Modify, counts: tuple[int, ...], make: Callable[[], Modify]) -> Modify:
    """What was made of a statement for as many rows and parameters."""
    place = (id(modify), counts)
    known = _statements.get(place)
    if known is not None and known[0] is modify:
        return known[1]
    if len(_statements) >= _REMEMBERED_MAX:
        _statements.clear()
    made = make()
    # The statement is kept, so that its identity is not given to another one.
    _statements[place] = (modify, made)
    return made
