"""Run a short write as a transaction of its own, or as a statement of a block; None if it must take
the general path (I3).
"""

from compute.identity_cache import IdentityCache
from coordinator.core.messages import RefusedReason
from coordinator.driver.coordination import RequestRefused
from coordinator.execution.blind_insert import run_blind_insert
from coordinator.execution.context import Done, Execution, Services
from coordinator.execution.name_dependencies import dependent_names, names_to_rest_on
from coordinator.execution.short_writes.compile import Statement, compile_short_write
from coordinator.execution.spill import spill_if_large
from coordinator.transaction.transaction import SessionTransaction
from coordinator.variables.variables import Variables
from sql.statements.bound import ParameterizedStatement
from sql.types.sql_type import Value

_known: IdentityCache[ParameterizedStatement, Statement | None] = IdentityCache()
"""Statements compiled, once for all sessions; None: it goes the general way."""


async def run_short_write(execution: Execution, prepared: ParameterizedStatement) -> Done | None:
    """Run and commit the statement, one without keys too (`blind_insert.py`). Raises LockBlocks,
    and RequestRefused.
    """
    inserted = await run_blind_insert(execution, prepared)
    if inserted is not None:
        return inserted
    services, transaction = execution.services, execution.transaction
    if transaction.is_open or transaction.read_only:
        return None
    statement = known_short_write(prepared, services)
    if statement is None:
        return None
    names = names_to_rest_on(execution, prepared, writes=True)
    change = statement(execution.parameters, names)
    if change is None:
        return None
    try:
        affected = await transaction.change_by_key(change)
    except RequestRefused as refused:
        if refused.reason in (RefusedReason.CONFLICT, RefusedReason.STALE):
            return None
        raise
    return Done(f"{prepared.tag} {affected}")


def known_short_write(prepared: ParameterizedStatement, services: Services) -> Statement | None:
    """The statement compiled; None if it goes the general way."""
    if not services.limits.short_writes:
        return None
    return _known.found(prepared, lambda: compile_short_write(prepared, services))


async def run_short_write_in_block(
    execution: Execution, prepared: ParameterizedStatement
) -> Done | None:
    """Run the statement in its block, whose snapshot it was bound under."""
    services, transaction = execution.services, execution.transaction
    statement = known_short_write(prepared, services)
    if statement is None or transaction.changed_catalog:
        return None
    values = tuple(execution.parameters)
    tag = write_in_block(services, transaction, execution.variables, prepared, statement, values)
    if tag is None:
        return None
    await spill_if_large(execution)
    return Done(tag)


def write_in_block(
    services: Services,
    transaction: SessionTransaction,
    variables: Variables,
    prepared: ParameterizedStatement,
    statement: Statement,
    values: tuple[Value, ...],
) -> str | None:
    """The same without a wait: its tag. `statement`: what `known_short_write` has said of it."""
    if transaction.read_only:
        return None
    change = statement(values, dependent_names(transaction, variables, prepared, writes=True))
    if change is None:
        return None
    done = services.coordination.change_in_block(transaction.id, change)
    if done.affected is None:
        return None
    transaction.wrote = True
    transaction.inline.added(done.nbytes)
    return f"{prepared.tag} {done.affected}"
