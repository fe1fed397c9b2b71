"""Who holds an advisory lock, as sessions were told: at most one of those whom it keeps apart.

INVARIANTS
  X1  between the moment at which a session is told that it holds a lock and the moment at which it
      gives it back, the same coordinator tells nobody else that he holds a conflicting mode.
  X2  who was told so has asked a coordinator that nobody had deposed when he asked (D4 of
      `coordinator/driver/driver.py`): a deposed one must not grant what its successor grants, too.
"""

from collections.abc import Callable
from dataclasses import dataclass

from coordinator.core.locking.modes import MODE_CONFLICTS, AdvisoryTag, LockMode
from storage.types import Epoch
from tests.resilience.sim.server import Server


@dataclass(frozen=True, slots=True)
class Grant:
    """A session holds a lock. `savepoint`: ROLLBACK TO this one or an earlier one gives it back;
    None: it is the session's own.
    """

    owner: int
    tag: AdvisoryTag
    mode: LockMode
    savepoint: int | None


class Holders:
    """All grants of a run. `leader`: the epoch of whoever leads now; `found`: tells a finding."""

    def __init__(self, leader: Callable[[], Epoch], found: Callable[[str, str], None]) -> None:
        self.leader = leader
        self._found = found
        self._by_server: dict[int, list[Grant]] = {}

    def told(self, server: Server, grant: Grant, leader: Epoch) -> None:
        """A session was told that it holds a lock (X1, X2)."""
        if server.epoch is None or server.epoch < leader:
            why = f"epoch {server.epoch} granted {grant}, and {leader} led when it was asked for"
            self._found("D4", why)
        holders = self._by_server.setdefault(server.number, [])
        for other in holders:
            kept_apart = other.owner != grant.owner and other.mode & MODE_CONFLICTS[grant.mode]
            if other.tag == grant.tag and kept_apart:
                self._found("exclusion", f"{other} and {grant} at once")
        holders.append(grant)

    def over(self, server: Server, grant: Grant) -> None:
        """It is about to be given back."""
        self._by_server[server.number].remove(grant)


class Grants:
    """Those of one session."""

    def __init__(self, holders: Holders, server: Server, owner: int) -> None:
        self._holders = holders
        self._server = server
        self._owner = owner
        self._mine: list[Grant] = []

    def told(self, tag: AdvisoryTag, mode: LockMode, savepoint: int | None, leader: Epoch) -> None:
        """The session holds a lock; `leader`: the epoch of who led when it was asked for."""
        grant = Grant(self._owner, tag, mode, savepoint)
        self._mine.append(grant)
        self._holders.told(self._server, grant, leader)

    def rolled_back(self, savepoint: int) -> None:
        """ROLLBACK TO; 0: the transaction is over."""
        for grant in list(self._mine):
            if grant.savepoint is not None and grant.savepoint >= savepoint:
                self._over(grant)

    def unlocked(self, tag: AdvisoryTag, mode: LockMode) -> None:
        """The session is about to give back a lock of its own, once."""
        own = Grant(self._owner, tag, mode, None)
        if own in self._mine:
            self._over(own)

    def over(self) -> None:
        """The session is about to end."""
        for grant in list(self._mine):
            self._over(grant)

    def _over(self, grant: Grant) -> None:
        self._mine.remove(grant)
        self._holders.over(self._server, grant)
