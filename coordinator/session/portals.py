"""The portals of a session by name, shared by Bind and DECLARE, and the events that close them.

INVARIANTS
  N1  a portal closes at the end of its transaction. One WITH HOLD stays for good if the transaction
      committed.
  N2  ROLLBACK TO a savepoint closes the portals opened after it. An error ends their work, but
      their names stay to the block's end: using one reports the failed transaction.
"""

from collections.abc import Callable, Iterator
from typing import Final

from coordinator import session_errors as wrong
from coordinator.memory_account import MemoryAccount, MemoryOwner
from coordinator.pgcatalog.named_row import NamedRow
from coordinator.session.portal import Portal
from storage.clock import Clock

PORTAL_BYTES: Final = 2_000
"""Of a portal without its values; what an engine has for it is the engine's."""


class Portals:
    """See the module."""

    def __init__(self, clock: Clock, memory: MemoryAccount, most: int) -> None:
        self._clock = clock
        self._memory = memory
        self._most = most
        self._portals: dict[str, Portal] = {}

    def rows(self) -> Iterator[NamedRow]:
        """Of pg_cursors; a portal without a name is not listed."""
        for name, portal in self._portals.items():
            if name:
                yield {
                    "name": name,
                    "statement": portal.prepared.statement.text,
                    "is_holdable": portal.hold,
                    "is_binary": portal.binary,
                    "is_scrollable": portal.cursor is not None and portal.cursor.scroll,
                    "creation_time": portal.opened_at,
                }

    def find(self, name: str) -> Portal:
        """The portal of that name. Raises 34000."""
        portal = self._portals.get(name)
        if portal is None:
            raise wrong.undefined_portal(name)
        return portal

    def cursor(self, name: str) -> Portal | None:
        """The portal that FETCH names: that of a DECLARE, or of a Bind with a name."""
        return self._portals.get(name)

    def check_free(self, name: str) -> None:
        """Raises 42P03 if the name is taken, 53400 if there are too many."""
        if name in self._portals:
            raise wrong.duplicate_portal(name)
        if len(self._portals) >= self._most:
            raise wrong.too_many_portals(self._most)

    def open(self, name: str, portal: Portal, nbytes: int = 0) -> None:
        """A new portal, whose name is free. `nbytes`: of its values. Raises 53200."""
        assert name not in self._portals, "names are checked before"
        memory = self._memory.holding(MemoryOwner.PORTALS)
        memory.set(PORTAL_BYTES + nbytes)
        self._enter(name, portal)
        portal.memory = memory

    def _enter(self, name: str, portal: Portal) -> None:
        portal.opened_at = self._clock.now()
        self._portals[name] = portal

    def may_replace_unnamed(self) -> bool:
        """Whether nothing has to be waited for: no engine works for the portal without a name."""
        portal = self._portals.get("")
        return portal is None or portal.finished or portal.outcome is None

    def replace_unnamed(self, portal: Portal | None) -> None:
        """Close the portal without a name, and open another one."""
        before = self._portals.pop("", None)
        if before is not None and before.memory is not None:
            before.memory.close()
        if portal is not None:
            # Its values are few, and nobody could be refused here.
            self._enter("", portal)

    async def close(self, name: str) -> bool:
        """Close one, if it exists."""
        portal = self._portals.pop(name, None)
        if portal is not None:
            await portal.close()
        return portal is not None

    async def close_all(self) -> None:
        """Close all portals, also those WITH HOLD."""
        await self._close(lambda _: True)

    async def close_since(self, serial: int) -> None:
        """ROLLBACK TO (N2)."""
        await self._close(lambda portal: portal.serial >= serial and not portal.kept)

    async def fail(self, serial: int) -> None:
        """An error: the work behind these portals ends, their names stay (N2)."""
        for portal in list(self._portals.values()):
            if portal.serial >= serial and not portal.kept:
                await portal.close()

    async def end(self) -> None:
        """The transaction is about to commit, or has: close the portals without HOLD (N1)."""
        await self._close(lambda portal: not portal.hold)

    def may_end_at_once(self) -> bool:
        """Whether nothing has to be waited for when the transaction ends, and nothing stays."""
        for portal in self._portals.values():
            if portal.hold or not (portal.finished or portal.outcome is None):
                return False
        return True

    def ended_at_once(self) -> None:
        """The transaction has committed, and nothing has happened since `may_end_at_once`."""
        for portal in self._portals.values():
            if portal.memory is not None:
                portal.memory.close()
        self._portals.clear()

    def keep(self) -> None:
        """The transaction has committed: portals WITH HOLD stay (N1)."""
        for portal in self._portals.values():
            portal.kept = True

    async def rolled_back(self) -> None:
        """The transaction did not commit: only portals that were held before stay (N1)."""
        await self._close(lambda portal: not portal.kept)

    async def _close(self, goes: Callable[[Portal], bool]) -> None:
        if not self._portals:
            return
        gone = {name: portal for name, portal in self._portals.items() if goes(portal)}
        for name in gone:
            del self._portals[name]
        for portal in gone.values():
            await portal.close()
