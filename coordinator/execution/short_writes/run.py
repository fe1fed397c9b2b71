"""Run a short write as a transaction of its own, or as a statement of a block, SELECT FOR UPDATE of
a row too; None if it must take the general path (I3).
"""

from compute.identity_cache import IdentityCache
from coordinator.core.messages.locks import LockRows
from coordinator.core.messages.replies import RefusedReason
from coordinator.core.short_writes.by_key import WriteAnswer
from coordinator.driver.coordination import LockBlocks, RequestRefused
from coordinator.execution.blind_insert import run_blind_insert
from coordinator.execution.context import (
    Done,
    Execution,
    Outcome,
    Rows,
    Services,
    stream_table,
    tag_with_count,
)
from coordinator.execution.name_dependencies import dependent_names, names_to_rest_on
from coordinator.execution.short_writes.compile import CompiledWrite, compile_short_write
from coordinator.execution.short_writes.given_values import leave_to_general_way
from coordinator.execution.short_writes.locking_reads import compile_locking_read
from coordinator.execution.spill import spill_if_large
from coordinator.transaction.begun_commits import run_write_alone
from coordinator.transaction.transaction import SessionTransaction
from coordinator.variables.variables import Variables
from sql.statements.bound import BoundQuery, ParameterizedStatement
from sql.types.sql_type import Value

_known: IdentityCache[ParameterizedStatement, CompiledWrite | None] = IdentityCache()
"""Statements compiled, once for all sessions; None: it goes the general way."""


async def run_short_write(execution: Execution, prepared: ParameterizedStatement) -> Outcome | None:
    """Run and commit the statement, one without keys too (`blind_insert.py`). Raises LockBlocks,
    and RequestRefused.
    """
    services, transaction = execution.services, execution.transaction
    if transaction.refused_shortly:
        transaction.refused_shortly = False
        return None
    inserted = await run_blind_insert(execution, prepared)
    if inserted is not None:
        return inserted
    if transaction.is_open or transaction.read_only:
        return None
    statement = known_short_write(prepared, services)
    if statement is None or statement.only_locks:
        return None
    given = statement.runtime.at_hand(services, transaction)
    if given is None:
        return None
    names = names_to_rest_on(execution, prepared, writes=True)
    change = statement.make((*execution.parameters, *given.values), names)
    if change is None:
        return None
    statement.runtime.take(services.coordination, transaction, given)
    try:
        answer = await run_write_alone(transaction, change)
    except LockBlocks:
        leave_to_general_way(execution, given)
        raise
    except RequestRefused as refused:
        if refused.reason in (RefusedReason.CONFLICT, RefusedReason.STALE):
            leave_to_general_way(execution, given)
            return None
        raise
    return _outcome(statement, prepared, WriteAnswer(answer.affected, answer.returned))


def _outcome(
    statement: CompiledWrite, prepared: ParameterizedStatement, answer: WriteAnswer
) -> Outcome:
    """What the statement is answered, once it is acknowledged."""
    returning = statement.returning
    if returning is None:
        return Done(f"{prepared.tag} {answer.affected}")
    rows = stream_table(returning.table(answer.returned))
    return Rows(returning.columns, rows, tag_with_count(prepared.tag))


def known_short_write(prepared: ParameterizedStatement, services: Services) -> CompiledWrite | None:
    """The statement compiled; None if it goes the general way."""
    if not services.limits.short_writes:
        return None
    return _known.found(prepared, lambda: _compiled(prepared, services))


def _compiled(prepared: ParameterizedStatement, services: Services) -> CompiledWrite | None:
    if isinstance(prepared.bound, BoundQuery):
        return compile_locking_read(prepared, services)
    return compile_short_write(prepared, services)


async def run_short_write_in_block(
    execution: Execution, prepared: ParameterizedStatement
) -> Outcome | None:
    """Run the statement in its block, whose snapshot it was bound under. It waits for locks: raises
    StatementRestart, and what `lock_rows` does.
    """
    services, transaction = execution.services, execution.transaction
    statement = known_short_write(prepared, services)
    if statement is None or transaction.changed_catalog:
        return None
    values = tuple(execution.parameters)
    variables = execution.variables
    answer = write_in_block(services, transaction, variables, prepared, statement, values)
    if isinstance(answer, LockRows) and statement.waits:
        # As for rows that a scan has found: it begins again, or goes on with them.
        await transaction.lock_rows(answer.rows, answer.mode, implicit=answer.implicit)
        answer = write_in_block(services, transaction, variables, prepared, statement, values)
    if answer is None or isinstance(answer, LockRows):
        return None
    if statement.only_locks:
        await services.coordination.confirm_locks(transaction.id)
    await spill_if_large(execution)
    return _outcome(statement, prepared, answer)


def write_in_block(
    services: Services,
    transaction: SessionTransaction,
    variables: Variables,
    prepared: ParameterizedStatement,
    statement: CompiledWrite,
    values: tuple[Value, ...],
) -> WriteAnswer | LockRows | None:
    """The same without a wait, or what is to be waited for. `statement`: what `known_short_write`
    has said of it.
    """
    if transaction.read_only:
        return None
    given = statement.runtime.at_hand(services, transaction)
    if given is None:
        return None
    writes = not statement.only_locks
    names = dependent_names(transaction, variables, prepared, writes=writes)
    change = statement.make((*values, *given.values), names)
    if change is None:
        return None
    done = services.coordination.change_in_block(transaction.id, change)
    if done.affected is None:
        return done.in_the_way
    statement.runtime.take(services.coordination, transaction, given)
    transaction.wrote = transaction.wrote or writes
    transaction.inline.added(done.nbytes)
    return WriteAnswer(done.affected, done.returned)
