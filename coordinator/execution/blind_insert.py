"""Fast path for an INSERT .. VALUES that is its whole transaction, the commonest write.

    cached plan ─▶ rows of values ─▶ Coordination.insert: queued, encoded and committed with others

The statement reads nothing, so it needs no snapshot and no transaction of the core: the definitions
that it was bound to are validated when it commits.

INVARIANTS
  I1  the path is taken only for a statement that has been bound before and still means the same.
      Anything else (a value that fails, a definition that changed) starts over on the general path.
  I2  every feature of a statement or a table beyond plain columns is either handled here, or rules
      this path out: `tests/session/keys/test_blind_insert.py` knows all fields.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast

import pyarrow as pa

from compute.computed_values import ComputedValues, computed_values
from compute.identity_cache import IdentityCache
from compute.reference.arrow import BatchMaker
from compute.reference.executor import PreparedPlan
from compute.reference.expressions import Row
from coordinator.core.messages.replies import RefusedReason
from coordinator.core.messages.requests import Insertion
from coordinator.core.short_writes.by_key import row_bytes
from coordinator.driver.coordination import LockBlocks, RequestRefused
from coordinator.execution.context import Done, Execution, InProcess
from coordinator.execution.dml.last_year import LastYear
from coordinator.execution.dml.row_sink import stored_schema
from coordinator.execution.name_dependencies import names_to_rest_on
from coordinator.execution.short_writes.given_values import (
    RuntimeValues,
    compile_runtime_values,
    leave_to_general_way,
)
from coordinator.execution.short_writes.plain_values import all_pass, value_checks
from coordinator.transaction.begun_commits import run_write_alone
from sql.catalog.catalog import SYSTEM_TIMELINE, Table
from sql.errors import SqlError
from sql.plan.nodes import Values
from sql.plan.traverse import plan_has_subquery
from sql.statements.bound import Modify, ModifyKind, ParameterizedStatement
from sql.types.sql_type import Value
from storage.unencoded_rows import VALUES_ROWS_MAX, SliceRows, UnencodedRows, schema_message

ROWS_MAX: Final = 64
"""Larger: more statements take the short way. Smaller: groups do not wait for long encodings."""

BYTES_MAX: Final = 64 << 10


class TableRows:
    """Implements RowEncoder for a table."""

    def __init__(self, table: Table) -> None:
        self.schema = stored_schema(table)
        self._encoded_schema: bytes | None = None
        self._maker = BatchMaker([column.type for column in table.columns], self.schema)
        self._checks = value_checks(table)

    @property
    def encoded_schema(self) -> bytes:
        """See RowEncoder."""
        if self._encoded_schema is None:
            self._encoded_schema = schema_message(self.schema)
        return self._encoded_schema

    def rows(self, rows: Sequence[tuple[object, ...]]) -> SliceRows:
        """See RowEncoder."""
        checks = self._checks
        if checks is None or len(rows) > VALUES_ROWS_MAX or not all_pass(checks, rows):
            return self.table(rows)
        return UnencodedRows(rows, sum(map(row_bytes, rows)), self)

    def table(self, rows: Sequence[tuple[object, ...]]) -> pa.Table:
        """See RowEncoder."""
        # They are the rows of a `BlindInsert`, which went through core and queue as objects.
        return pa.Table.from_batches([self._maker.batch(cast("Sequence[Row]", rows))])


@dataclass(frozen=True, slots=True)
class BlindInsert:
    """A statement that can be taken, compiled."""

    table: Table
    source: PreparedPlan
    values: ComputedValues | None
    """What its functions read."""
    not_null: tuple[int, ...]
    last_year: LastYear
    encoder: TableRows
    tag: str
    runtime: RuntimeValues

    def rows_and_size(self, parameters: Sequence[Value]) -> tuple[Sequence[Row], int] | None:
        """The rows with these parameters, and about their bytes; None if the general way must say
        what is wrong, or they are too large (I1).
        """
        if self.values is not None and not self.values.are_few(parameters):
            return None
        try:
            rows = self.source.rows(parameters)
        except SqlError:
            return None
        if any(row[ordinal] is None for row in rows for ordinal in self.not_null):
            return None
        nbytes = sum(map(row_bytes, rows))
        return (rows, nbytes) if nbytes <= BYTES_MAX and self.last_year.holds(rows) else None


_known: IdentityCache[ParameterizedStatement, BlindInsert | None] = IdentityCache()
"""Statements compiled, once for all sessions; None: it goes the general way."""


def _compiled(prepared: ParameterizedStatement, in_process: InProcess) -> BlindInsert | None:
    modify = prepared.bound
    if not isinstance(modify, Modify) or modify.kind is not ModifyKind.INSERT:
        return None
    table, source = modify.table, modify.source
    if modify.tables or modify.locking or modify.returning is not None:
        return None
    if table.keys or table.checks or table.foreign_keys or table.on_commit:
        return None
    if table.unique_indexes or table.feed is not None:
        return None
    if prepared.filled or any(c.generated or c.domain for c in table.columns):
        return None
    if modify.conflict is not None or modify.view_checks is not None or modify.calls is not None:
        return None
    if table.timeline != SYSTEM_TIMELINE.name or prepared.rebind or prepared.uses_now:
        return None
    if not isinstance(source, Values) or not 0 < len(source.rows) <= ROWS_MAX:
        return None
    if plan_has_subquery(source) or in_process.refusal(source) is not None:
        return None
    runtime, values = compile_runtime_values(prepared.supplied), computed_values(source)
    if runtime is None or (values is not None and values.may_grow):
        return None
    not_null = tuple(at for at, column in enumerate(table.columns) if column.not_null)
    tag = f"{prepared.tag} {len(source.rows)}"
    plan, encoder = PreparedPlan(source), TableRows(table)
    return BlindInsert(table, plan, values, not_null, LastYear(table), encoder, tag, runtime)


def known_blind_insert(
    prepared: ParameterizedStatement, in_process: InProcess
) -> BlindInsert | None:
    """The statement compiled; None if it goes another way."""
    return _known.found(prepared, lambda: _compiled(prepared, in_process))


async def run_blind_insert(execution: Execution, prepared: ParameterizedStatement) -> Done | None:
    """Run and commit the statement; None if it must take the general path (I1)."""
    services, transaction = execution.services, execution.transaction
    insert = known_blind_insert(prepared, services.in_process)
    if insert is None or transaction.is_open or transaction.read_only:
        return None
    runtime = insert.runtime
    if runtime.moves_sequences and not services.limits.short_writes:
        return None
    given = runtime.at_hand(services, transaction)
    if given is None:
        return None
    found = insert.rows_and_size((*execution.parameters, *given.values))
    if found is None:
        return None
    names = names_to_rest_on(execution, prepared, writes=True)
    runtime.take(services.coordination, transaction, given)
    try:
        insertion = Insertion(insert.table, *found, insert.encoder, names)
        await run_write_alone(transaction, insertion)
    except RequestRefused as refused:
        if refused.reason in (RefusedReason.CONFLICT, RefusedReason.STALE):
            leave_to_general_way(execution, given)
            return None
        raise
    except LockBlocks:
        leave_to_general_way(execution, given)
        raise
    return Done(insert.tag)
