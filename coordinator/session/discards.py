"""Run DISCARD, DEALLOCATE and CLOSE: what a session holds by name goes."""

from coordinator import session_errors as wrong
from coordinator.execution.context import Services
from coordinator.session.named_objects import PreparedStatements
from coordinator.session.portals import Portals
from coordinator.session.statement_runner import StatementRunner
from coordinator.transaction.transaction import SessionTransaction
from coordinator.variables.session_roles import SESSION_AUTHORIZATION
from coordinator.variables.variables import Variables
from sql.statements.session import Discard


async def discard(
    services: Services,
    transaction: SessionTransaction,
    variables: Variables,
    runner: StatementRunner,
    statements: PreparedStatements,
    portals: Portals,
    what: Discard,
) -> None:
    """Run one of them. Raises 25001, 26000, 34000."""
    transaction.analyzed = True  # PostgreSQL runs these with a snapshot
    match what.what:
        case "all":
            if not transaction.warns_outside:
                raise wrong.forbidden_in_block("DISCARD ALL")
            statements.clear_named()
            await portals.close_all()
            variables.set(SESSION_AUTHORIZATION, None, local=False)
            variables.reset_all()
            services.coordination.unlock_all(transaction.owner)
            transaction.sequences.discard()
            transaction.notifications.unlisten(None)
            await runner.drop_temporary()
        case "temp" | "temporary":
            await runner.drop_temporary()
        case "sequences":
            transaction.sequences.discard()
        case "deallocate all":
            statements.clear_named()
        case "deallocate":
            if not statements.drop(what.name or ""):
                raise wrong.undefined_statement(what.name or "")
        case "close all":
            await portals.close_all()
        case "close":
            if not await portals.close(what.name or ""):
                raise wrong.undefined_cursor(what.name or "")
        case _:
            pass  # plans: nothing is kept of them
