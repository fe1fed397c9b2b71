"""What a session does at this moment, for pg_stat_activity of all sessions.

INVARIANTS
  V1  only the session itself changes it; who looks gets a value.
"""

from typing import Final

from coordinator.hidden_secrets import without_secrets
from coordinator.pgcatalog.activity import ObservedCopy, ObservedSession
from coordinator.pgwire.messages import Execute, Parse, Query
from coordinator.session.portals import Portals
from coordinator.session.requests import Identity
from coordinator.transaction.statement_waits import WaitEvent
from coordinator.transaction.transaction import SessionTransaction
from coordinator.variables.session_roles import SESSION_AUTHORIZATION
from coordinator.variables.variables import Variables
from storage.clock import Clock

QUERY_BYTES_MAX: Final = 1023
"""Of a query's text, as `track_activity_query_size` says."""

APPLICATION_BYTES_MAX: Final = 63
"""Of application_name, which is ASCII, as PostgreSQL shows it of others."""

_WAITS_FOR_CLIENT: Final = ("Client", "ClientRead")
_WAITS_FOR_READER: Final = ("Client", "ClientWrite")
_COMMITS: Final = ("IO", "WalSync")

_BETWEEN: Final = {"I": "idle", "T": "idle in transaction", "E": "idle in transaction (aborted)"}


class Activity:
    """See the module."""

    def __init__(
        self,
        clock: Clock,
        identity: Identity,
        transaction: SessionTransaction,
        variables: Variables,
    ) -> None:
        self._clock = clock
        self._identity = identity
        self._transaction = transaction
        self._variables = variables
        self._started_at = self._changed_at = clock.now()
        self._query_at: int | None = None
        self._query = ""
        self._runs = False

    def running(self, query: str) -> None:
        """A statement begins."""
        self._query_at = self._changed_at = self._clock.now()
        self._query = query[:QUERY_BYTES_MAX]
        self._runs = True

    def begins(self, message: Query | Parse | Execute, portals: Portals) -> None:
        """A message of a statement begins, perhaps one of its portal."""
        match message:
            case Query(text=text) | Parse(text=text):
                self.running(text)
            case Execute(portal=name):
                portal = portals.cursor(name)
                if portal is not None:
                    self.running(portal.prepared.statement.text)

    def answered(self, query: str) -> None:
        """A statement came, and its answer goes."""
        self._query_at = self._changed_at = self._clock.now()
        self._query = query[:QUERY_BYTES_MAX]

    def idle(self) -> None:
        """The client has its answers."""
        self._changed_at = self._clock.now()
        self._runs = False

    def _wait(self) -> WaitEvent | None:
        copy = self._transaction.progress.copy
        if not self._runs or (copy is not None and copy.waits_for_client):
            return _WAITS_FOR_CLIENT
        return _COMMITS if self._transaction.committing else self._transaction.wait_event

    def observed(self, address: str | None, role: int, *, reads: bool) -> ObservedSession:
        """The session as it is (V1). `address`: the client's; `role`: the oid of the role that it
        logged in as; `reads`: whether the client takes what it is sent.
        """
        shown = self._query.encode(errors="replace")[:QUERY_BYTES_MAX]
        is_cut = len(shown) == QUERY_BYTES_MAX
        text = without_secrets(shown.decode(errors="ignore"), is_cut=is_cut)
        progress = self._transaction.progress
        copy = progress.copy
        return ObservedSession(
            pid=self._identity.pid,
            database=self._identity.database,
            user=self._variables.get(SESSION_AUTHORIZATION),
            application=self._variables.get("application_name")[:APPLICATION_BYTES_MAX],
            address=address,
            port=self._identity.ports[0],
            started_at=self._started_at,
            transaction_at=self._transaction.started_at,
            query_at=self._query_at,
            changed_at=self._changed_at,
            state="active" if self._runs else _BETWEEN[self._transaction.status],
            query=text,
            role=role,
            wait=_WAITS_FOR_READER if self._runs and not reads else self._wait(),
            wait_began=progress.wait_began,
            copy=None
            if copy is None
            else ObservedCopy(
                copy.command, copy.relation, copy.bytes, copy.rows, copy.excluded, copy.skipped
            ),
        )
