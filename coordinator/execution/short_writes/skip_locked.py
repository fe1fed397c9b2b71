"""Short statements that take the first free rows of a queue: SKIP LOCKED with a LIMIT.

    SELECT .. FOR UPDATE SKIP LOCKED LIMIT n                      ─▶ TakenRows, in blocks only
    UPDATE, DELETE .. WHERE key = (SELECT .. SKIP LOCKED LIMIT 1) ─▶ TakingWrite ─▶ the change of
                                                                     the row, by its key

The rows that the query selects are kept in its order (`compute/access/rows_in_order.py`). The core
chooses among them (E7 of `core/short_writes/`), and locks them if it is a block.

INVARIANTS
  T1  a query fits if it is one of rows of one table, row by row, with a constant LIMIT. ORDER BY
      is by its columns.
  T2  a statement that changes rows fits if it is a short write once the value of its query stands
      there, and if this value is its key. Without a free row it changes nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from typing import Final, cast

from compute.access.point_reads import unique_point
from compute.access.rows_in_memory import NotInMemoryError
from compute.access.rows_in_order import RowsInOrder, compile_rows_in_order
from compute.reference.expressions import Row
from coordinator.core.locking.modes import LockMode
from coordinator.core.predicates import ReadPredicate
from coordinator.core.short_writes.by_key import (
    CannotEvaluate,
    ChangedRow,
    CurrentRows,
    RowValues,
    WriteByKey,
)
from coordinator.execution.context import Services
from coordinator.execution.locking_queries import LOCK_MODES
from coordinator.execution.short_writes.statements import MakeWrite, ShortWrite, TargetTable
from sql.plan.known_rows import with_known_rows
from sql.plan.nodes import Param, output_columns
from sql.statements.bound import Modify
from sql.statements.locking import LockingQuery, LockPolicy
from sql.types.sql_type import Value
from storage.batch import RowIdentity, ShardView
from storage.fast_dataclass import fast_dataclass

TAKEN_MAX: Final = 64
"""The largest LIMIT. Larger: longer stalls of the loop."""

PASSED_MAX: Final = 1_000
"""Rows that are looked at, most of them held by others: about 2 µs each."""


@fast_dataclass(frozen=True, slots=True)
class QueueQuery:
    """A query of free rows (T1). `shown`: where its rows have what the statement reads of them."""

    target: TargetTable
    rows: RowsInOrder
    shown: Sequence[int]
    limit: int
    mode: LockMode


@fast_dataclass(frozen=True, slots=True)
class GivenQueueQuery:
    """Implements FreeRows: the same with values of parameters."""

    query: QueueQuery
    parameters: tuple[Value, ...]

    @property
    def mode(self) -> LockMode:
        """See FreeRows."""
        return self.query.mode

    def candidates(self, view: ShardView) -> Iterator[tuple[RowIdentity, RowValues]]:
        """See FreeRows."""
        rows, shown = self.query.rows, self.query.shown
        try:
            for passed, row in enumerate(rows.rows(view, self.parameters)):
                if passed == PASSED_MAX:
                    raise CannotEvaluate
                yield rows.identity(row), tuple([row[at] for at in shown])
        except NotInMemoryError as error:
            raise CannotEvaluate from error

    def row(self, view: ShardView, identity: RowIdentity) -> RowValues:
        """See FreeRows."""
        return self.query.target.row(view, identity)


@fast_dataclass(frozen=True, slots=True)
class TakenRows(ShortWrite):
    """SELECT .. FOR UPDATE SKIP LOCKED, and its kin."""

    queue: GivenQueueQuery

    @property
    def locks(self) -> LockMode | None:
        """See WriteByKey."""
        return self.queue.mode

    def reads(self) -> Iterable[ReadPredicate | None]:
        """Of the scan that skips rows nothing is validated (A9 of `validation.py`)."""
        return ()

    def evaluate(self, rows: CurrentRows) -> Sequence[ChangedRow]:
        """See WriteByKey."""
        found = rows.first_free(self.queue, self.queue.query.limit)
        return [ChangedRow(row, row.values, returned=shown) for row, shown in found]


@fast_dataclass(frozen=True, slots=True)
class TakingWrite(ShortWrite):
    """UPDATE or DELETE of the row that its query takes. `make`: with the row's values behind the
    parameters; `made`: what it has made for the last evaluation.
    """

    queue: GivenQueueQuery
    make: MakeWrite
    made: list[WriteByKey] = field(default_factory=list[WriteByKey])

    def reads(self) -> Iterable[ReadPredicate | None]:
        """See WriteByKey."""
        for write in self.made:
            yield from write.reads()

    def evaluate(self, rows: CurrentRows) -> Sequence[ChangedRow]:
        """See WriteByKey."""
        self.made.clear()
        for _, shown in rows.first_free(self.queue, 1):
            write = None
            if None not in shown:
                taken = cast("Row", shown)
                write = self.make((*self.queue.parameters, *taken), self.names)
            if write is None:
                raise CannotEvaluate
            self.made.append(write)
        return [change for write in self.made for change in write.evaluate(rows)]


def compile_queue_query(
    part: LockingQuery, services: Services, ordinals: Sequence[int] | None = None
) -> QueueQuery | None:
    """A locking part that fits (T1). `ordinals`: of its columns that are shown; None: all."""
    if part.limit is None or not 0 < part.limit <= TAKEN_MAX or len(part.rows) != 1:
        return None
    (locked,) = part.rows
    if locked.policy is not LockPolicy.SKIP or part.as_of is not None:
        return None
    if len(part.tables) != 1 or part.tables[0] is not locked.table:
        return None
    if services.in_process.refusal(part.plan) is not None:
        return None
    compiled = compile_rows_in_order(part.plan, locked.place)
    if compiled is None:
        return None
    rows, places = compiled
    wanted = range(part.shown) if ordinals is None else ordinals
    target = TargetTable(locked.table, services.key_index)
    mode = LOCK_MODES[locked.strength]
    return QueueQuery(target, rows, [places[at] for at in wanted], part.limit, mode)


def with_taken_row(
    modify: Modify, count: int, services: Services
) -> tuple[Modify, QueueQuery] | None:
    """A statement whose key is the value of its query (T2), with more parameters in the place of
    the query than the `count` ones that it has.
    """
    if len(modify.locking) != 1 or modify.locking[0].limit != 1:
        return None
    (part,) = modify.locking
    query = compile_queue_query(part, services)
    if query is None or query.target.table is not modify.table:
        return None
    columns = output_columns(part.plan)[: part.shown]
    known = [[Param(count + place, column.type)] for place, column in enumerate(columns, 1)]
    source = with_known_rows(modify.source, {part.relation: known})
    point = unique_point(source, modify.table)
    if point is None or not any(isinstance(e, Param) and e.index > count for e in point[1]):
        return None
    return replace(modify, source=source, locking=()), query
