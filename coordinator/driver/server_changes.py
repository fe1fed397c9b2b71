"""Catalog changes that the server makes by itself, each set in a transaction of its own."""

from collections.abc import Callable, Sequence
from typing import Final

from coordinator.core.messages.catalog_changes import CatalogChange
from coordinator.core.messages.identities import ConnectionId
from coordinator.core.messages.replies import RefusedReason
from coordinator.driver.coordination import Coordination, RequestRefused
from sql.catalog.catalog import Catalog

SERVER: Final = ConnectionId(0)
"""The owner of what no session does."""

ATTEMPTS_MAX: Final = 10
"""Somebody may change the same things meanwhile."""


async def change_catalog_alone(
    coordination: Coordination,
    owner: ConnectionId,
    changes_of: Callable[[Catalog], Sequence[CatalogChange]],
) -> None:
    """Commit what `changes_of` makes of the catalog, again if somebody was faster.

    Raises RequestRefused, and what `changes_of` raises.
    """
    for attempt in range(1, ATTEMPTS_MAX + 1):
        txn = coordination.begin(owner)
        try:
            changes = changes_of((await coordination.snapshot(txn)).catalog)
            if changes:
                coordination.change_catalog(txn, changes)
            await coordination.commit(txn)
        except RequestRefused as refused:
            again = refused.reason in (RefusedReason.CONFLICT, RefusedReason.STALE)
            if not again or attempt == ATTEMPTS_MAX:
                raise
        except BaseException:
            coordination.abort(txn)
            raise
        else:
            return
