"""The listener: accepts connections, limits them, hands out cancel keys, ends sessions at shutdown.

    listener ─▶ connection (one task each, made by a factory) ─▶ Session
       stop: no new connections ─▶ idle ones 57P01 ─▶ busy ones may finish (grace) ─▶ 57P01 ─▶ end

INVARIANTS
  D1  at most `connections_max` sessions at once, the last of which are for few roles.
      `strangers.py` counts connections without a session, apart from them.
  D2  a cancel key is compared in constant time, also when there is no such session.
  D3  no failure of one connection reaches another, or the server.
"""

import asyncio
import hmac
import logging
import secrets
import socket
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Protocol

from coordinator import session_errors as wrong
from coordinator.config import Settings
from coordinator.execution.context import Services
from coordinator.memory_account import MIB, OWN_BYTES, MemoryAccount
from coordinator.pgcatalog.activity import BACKGROUND_PIDS, ObservedSession
from coordinator.server.access import Access
from coordinator.server.listeners import (
    NO_SOCKET,
    SocketFile,
    accept_later,
    listen_on_path,
    socket_path,
)
from coordinator.server.login import Login
from coordinator.server.ports import take_ports
from coordinator.server.strangers import Strangers
from coordinator.server.turn_writes import TurnWrites
from coordinator.server.view_catch_up import ViewCatchUp
from coordinator.server_counters import ServerCounters
from coordinator.statistics.server_statistics import ServerStatistics
from sql.binder.resolve.role_names import session_roles
from sql.errors import SqlError
from sql.types.sql_type import Value
from storage.threads import Threads

log = logging.getLogger("meridian.server")

FINAL_SEND_TIMEOUT_S: Final = 2.0
"""Time for sessions that were ended to send why. Larger: a later exit."""


RESERVED_CONNECTIONS_ROLE: Final = 4550
"""The oid of pg_use_reserved_connections."""

SERVER_THREADS_MAX: Final = 32
"""For what takes milliseconds beside the loop: encoding, files, key checks that commits wait for.
Python's default, four more than there are cores, let few large results keep all others waiting."""

_NO_SECRET: Final = secrets.token_bytes(32)


class Interruptible(Protocol):
    """A session as the server sees it."""

    def cancel(self) -> None:
        """End the statement that runs, if any."""
        ...

    def drain(self) -> None:
        """End as soon as no transaction is open."""
        ...

    def end(self) -> None:
        """End what runs, with 57P01, and the session."""
        ...

    def observed(self, role: int) -> ObservedSession:
        """The session as it is, for pg_stat_activity; `role`: the oid of its role."""
        ...


class Server:
    """See the module."""

    def __init__(
        self, settings: Settings, connection: "Callable[[Server], asyncio.BaseProtocol]"
    ) -> None:
        self.settings = settings
        self.access = Access(settings)
        self._connection = connection
        self.memory = MemoryAccount(
            (settings.memory_max_mb - settings.local_memory_mb) * MIB - OWN_BYTES,
            settings.memory_max_mb * MIB,
        )
        self.counters = ServerCounters()
        self.turn_writes = TurnWrites()
        self._services: Services | None = None
        self._sessions: dict[int, tuple[bytes, Interruptible]] = {}
        self._roles: dict[int, int] = {}
        """The oid of each session's role, by pid."""
        self._leaving: dict[int, asyncio.Event] = {}
        """Set when a session is over, for those who wait for that; by pid."""
        self.strangers = Strangers(settings.connections_unauthenticated_max)
        self._next_pid = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._group: asyncio.TaskGroup | None = None
        self._catch_up: ViewCatchUp | None = None
        self._listeners: list[asyncio.Server] = []
        self._socket: SocketFile | None = None
        self.stopping = False
        self.started_at = 0
        self.port = 0

    # --- life -----------------------------------------------------------------------------------

    @property
    def services(self) -> Services:
        """The services that the sessions share."""
        assert self._services is not None, "connections come after accept()"
        return self._services

    async def bind(self, taken: Sequence[socket.socket] = ()) -> int:
        """Take the ports, if they are not taken yet, without accepting anybody. Returns the first.

        Raises SettingsError.
        """
        loop = asyncio.get_running_loop()
        # Whatever `to_thread` is told, here and below, ends (T1 of `storage/threads.py`).
        loop.set_default_executor(Threads(SERVER_THREADS_MAX, thread_name_prefix="server"))
        sockets = taken or await asyncio.to_thread(take_ports, self.settings)
        self._listeners = await accept_later(self._connect, sockets)
        self.port = sockets[0].getsockname()[1]
        return self.port

    async def bind_socket(self) -> None:
        """Take the Unix socket, which may lie in the data directory. Raises SettingsError."""
        named = self.settings.unix_socket_directory
        if named == NO_SOCKET:
            return
        directory = Path(named) if named else self.settings.data_path
        path = socket_path(directory.absolute(), self.port)
        permissions = int(self.settings.unix_socket_permissions, 8)
        taken = await listen_on_path(self._connect, path, permissions)
        if taken is not None:
            self._listeners.append(taken[0])
            self._socket = taken[1]

    def _connect(self) -> asyncio.BaseProtocol:
        return self._connection(self)

    async def accept(self, group: asyncio.TaskGroup, services: Services) -> None:
        """Accept connections; their tasks run in `group`."""
        assert self._listeners, "bind comes before accept"
        self._group = group
        self._services = replace(
            services,
            sessions=self,
            memory=self.memory,
            counters=self.counters,
            statistics=ServerStatistics(
                services.clock.now, is_on=self.settings.statement_statistics
            ),
        )
        self.started_at = services.clock.now()
        self._catch_up = ViewCatchUp(self._services)
        self.spawn(self._catch_up.run())
        for listener in self._listeners:
            await listener.start_serving()

    def views_changed(self) -> None:
        """Definitions or exact intervals of materialized views have changed."""
        if self._catch_up is not None:
            self._catch_up.wake()

    def stop_catch_up(self) -> None:
        """Views that are behind stay so until they are refreshed."""
        if self._catch_up is not None:
            self._catch_up.stop()

    @property
    def socket_directory(self) -> str:
        """Where the Unix socket is; empty if there is none."""
        return "" if self._socket is None else str(self._socket.path.parent)

    def close_listeners(self) -> None:
        """Let go of ports and the Unix socket; nobody is accepted any more."""
        for listener in self._listeners:
            listener.close()
        if self._socket is not None:
            self._socket.remove()
            self._socket = None

    async def stop(self) -> None:
        """Stop accepting; let what is in flight finish within the grace period; end the rest."""
        self.stopping = True
        self.close_listeners()
        self.stop_catch_up()
        for _, session in list(self._sessions.values()):
            session.drain()
        await self._gone(self.settings.shutdown_grace_s)
        for _, session in list(self._sessions.values()):
            session.end()
        await self._gone(FINAL_SEND_TIMEOUT_S)
        for task in list(self._tasks):
            task.cancel()
        await self._gone(FINAL_SEND_TIMEOUT_S)

    async def _gone(self, seconds: float) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)

    def spawn(self, work: Coroutine[object, object, None]) -> bool:
        """Run a connection's task; it handles its own failures (D3). False: nobody is served any
        more, as the server is about to end.
        """
        assert self._group is not None, "connections come after listen()"
        try:
            task = self._group.create_task(work)
        except RuntimeError:
            # The driver has failed, and the group with it; a group tells in no other way.
            work.close()
            return False
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    # --- sessions -------------------------------------------------------------------------------

    def check_limits(self, login: Login) -> None:
        """Raise 53300 if no session may begin, or none of the role (D1); 57P03 at the end."""
        if self.stopping:
            raise SqlError("57P03", "the database system is shutting down")
        settings = self.settings
        left = settings.connections_max - len(self._sessions) - 1
        if left < 0:
            raise wrong.too_many_connections()
        roles = session_roles(self.services.coordination.newest_catalog, "")
        role = roles.by_oid(login.oid)
        if role is None or role.superuser:
            return
        if left < settings.superuser_reserved_connections:
            raise wrong.reserved_for_superusers()
        reserved = settings.superuser_reserved_connections + settings.reserved_connections
        if left < reserved and not roles.has(role.oid, RESERVED_CONNECTIONS_ROLE):
            raise wrong.reserved_for_members()
        if 0 <= role.limit <= sum(oid == login.oid for oid in self._roles.values()):
            raise SqlError("53300", f'too many connections for role "{role.name}"')

    def new_pid(self) -> int:
        """A process id for a session: what cancel requests and logs call it."""
        self._next_pid = self._next_pid % (BACKGROUND_PIDS - 1) + 1
        while self._next_pid in self._sessions:
            self._next_pid += 1
        return self._next_pid

    def enter(self, pid: int, secret: bytes, session: Interruptible, role: int) -> None:
        """A session of the role with this oid begins."""
        self._sessions[pid] = (secret, session)
        self.counters.sessions += 1
        self._roles[pid] = role

    def leave(self, pid: int) -> None:
        """It is over; its key opens nothing any more."""
        self._sessions.pop(pid, None)
        self._roles.pop(pid, None)
        left = self._leaving.pop(pid, None)
        if left is not None:
            left.set()

    def observe(self) -> Sequence[ObservedSession]:
        """See Sessions."""
        entered = self._sessions.items()
        return [session.observed(self._roles[pid]) for pid, (_, session) in entered]

    def reload(self) -> bool:
        """See Sessions."""
        return self.access.reload()

    def file_rows(self, relation: str) -> Sequence[Mapping[str, Value]] | None:
        """See Sessions."""
        return self.access.file_rows(relation)

    def cancel_backend(self, pid: int) -> bool:
        """See Sessions."""
        _, session = self._sessions.get(pid, (_NO_SECRET, None))
        if session is not None:
            session.cancel()
        return session is not None

    def terminate_backend(self, pid: int) -> bool:
        """See Sessions."""
        _, session = self._sessions.get(pid, (_NO_SECRET, None))
        if session is not None:
            session.end()
        return session is not None

    def role_of(self, pid: int) -> int | None:
        """See Sessions."""
        return self._roles.get(pid)

    async def has_left(self, pid: int, seconds: float) -> bool:
        """See Sessions."""
        if pid not in self._sessions:
            return True
        left = self._leaving.setdefault(pid, asyncio.Event())
        try:
            async with asyncio.timeout(seconds):
                await left.wait()
        except TimeoutError:
            return False
        return True

    def cancel(self, pid: int, secret: bytes) -> None:
        """A cancel request: silent, whether the key is right or not (D2)."""
        expected, session = self._sessions.get(pid, (_NO_SECRET, None))
        right = hmac.compare_digest(expected, secret)
        if right and session is not None:
            log.debug("cancel request pid=%s", pid)
            session.cancel()
