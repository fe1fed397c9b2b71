"""One PostgreSQL connection of the stash: opened when needed, dropped when in doubt.

    call ─▶ open? ── no ─▶ connect, with back-off, up to the call's deadline ─▶ refuse lossy servers
              └─ yes ─▶ one statement ─┬─▶ rows
                                       ├─▶ ERROR: it did not happen              Determinate
                                       └─▶ no answer in time, connection lost    Indeterminate

INVARIANTS
  P1  a server that may lose an acknowledged commit is not used: fsync, full_page_writes and
      synchronous_commit are read back on every new connection, as a restart may have changed them.
  P2  a statement is sent once. Not sent: Determinate. Answered by an ERROR: rolled back, so
      Determinate. Anything else: Indeterminate, and the connection is never used again.
  P3  no call waits longer than its deadline, also if the server or the network stands still.
  P4  every statement is a transaction of its own, at READ COMMITTED: no lock of ours outlives the
      server's own work, so a coordinator that is stopped or cut off holds nobody up.

Why no BEGIN .. COMMIT: it would tell "lost before COMMIT" apart from "lost during COMMIT", at the
price of P4 and of three round trips; the commit token tells them apart as well.
"""

import asyncio
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Final, Protocol, TypeAlias

import asyncpg

from storage.errors import Determinate, Indeterminate, StorageError

Row: TypeAlias = Sequence[object]
"""The types of the values are those of the statement: whoever wrote it casts them."""


class Connection(Protocol):
    """What we use of asyncpg's connection."""

    def is_closed(self) -> bool:
        """Whether it is known to be lost."""
        ...

    def terminate(self) -> None:
        """Close the socket; what waits for an answer fails."""
        ...

    async def close(self, *, timeout: float) -> None:
        """Say good-bye."""
        ...

    async def fetch(self, sql: str, *values: object) -> Sequence[Row]:
        """Prepare (once) and run one statement."""
        ...

    async def execute(self, sql: str) -> str:
        """Run several statements."""
        ...


CONNECT_S: Final = 3.0
"""For one attempt to connect. Larger: survives slower networks; a dead address is given up later.
"""

PAUSE_S: Final = 0.05
PAUSE_S_MAX: Final = 0.25
"""Between two attempts, doubling. Larger: a server that restarts is found later."""

SESSION_SETTINGS: Final = {
    "default_transaction_isolation": "read committed",
    # The tables are small and grow under plans that were made when they were empty: always by key.
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
    # Our deadlines count, not those that somebody has set for people.
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_session_timeout": "0",
    "idle_in_transaction_session_timeout": "10s",
}

# What each must be, and what is wrong otherwise.
_REQUIRED: Final = {
    "fsync": ({"on"}, "acknowledged commits would not survive a power failure"),
    "full_page_writes": ({"on"}, "a power failure could tear pages"),
    "synchronous_commit": (
        {"on", "remote_apply"},
        "acknowledged commits would not survive a crash or a fail-over",
    ),
    "default_transaction_isolation": ({"read committed"}, "the stash is proved at this level"),
    "transaction_read_only": ({"off"}, "the server is a standby, or the database read only"),
    "server_encoding": ({"UTF8"}, "keys are sorted by code point"),
}


class UnfitServer(Determinate):
    """The server answers, and must not be used (P1); waiting does not help."""


class Link:
    """See the module. One call at a time."""

    def __init__(self, dsn: str, *, name: str) -> None:
        self._dsn = dsn
        self._name = name
        self._connection: Connection | None = None
        self._number = 0

    @property
    def number(self) -> int:
        """Counts the connections made: what belongs to an older one is gone."""
        return self._number

    @property
    def is_open(self) -> bool:
        """Whether a connection is there that nobody has seen fail."""
        return self._connection is not None and not self._connection.is_closed()

    async def open(self, deadline: float) -> None:
        """Be connected. Raises Determinate if that takes until the deadline (loop time)."""
        loop = asyncio.get_running_loop()
        pause = PAUSE_S
        reason: StorageError | None = None
        while not self.is_open:
            self.drop()
            try:
                self._connection = await self._connect(deadline)
                self._number += 1
            except UnfitServer:
                raise
            except StorageError as error:
                # A last attempt with no time left knows less than the one before.
                if reason is None or not isinstance(error.__cause__, TimeoutError):
                    reason = error
                if loop.time() + pause >= deadline:
                    raise reason from reason.__cause__
                await asyncio.sleep(pause)
                pause = min(2 * pause, PAUSE_S_MAX)

    async def rows(self, sql: str, *values: object, seconds: float) -> Sequence[Row]:
        """Run one statement on the open connection (P2, P3); it may answer within `seconds`."""
        with self._sending(seconds) as connection:
            return await connection.fetch(sql, *values)

    async def script(self, sql: str, *, seconds: float) -> None:
        """Run several statements; if one fails, the connection is not used any more."""
        with self._sending(seconds) as connection:
            try:
                await connection.execute(sql)
            except asyncpg.PostgresError:
                self.drop()
                raise

    @contextmanager
    def _sending(self, seconds: float) -> Generator[Connection]:
        connection = self._connection
        if connection is None or connection.is_closed():
            raise Determinate("the connection to the stash is lost")
        # Not by cancelling: asyncpg would then ask the server, which may not answer either (P3).
        timer = asyncio.get_running_loop().call_later(seconds, connection.terminate)
        try:
            yield connection
        except BaseException as error:
            failure = self._failure(error)
            if failure is error:
                raise
            raise failure from error
        finally:
            timer.cancel()

    def drop(self) -> None:
        """Throw the connection away; what it has under way may still happen."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()

    async def close(self) -> None:
        """Say good-bye, if anybody is there to hear it (P3)."""
        connection, self._connection = self._connection, None
        if connection is not None and not connection.is_closed():
            try:
                await connection.close(timeout=1.0)
            except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
                connection.terminate()

    def _failure(self, error: BaseException) -> BaseException:
        match error:
            case asyncpg.PostgresConnectionError() | OSError():
                self.drop()
                return Indeterminate(f"the stash did not answer: {error}")
            case asyncpg.PostgresError() if self.is_open:
                return Determinate(f"the stash refused: {error}")
            case asyncpg.PostgresError() | asyncpg.InterfaceError():
                self.drop()
                return Indeterminate(f"the stash did not answer: {error}")
            case _:
                # Cancelled, or a bug: whatever was sent is on its way (P2).
                self.drop()
                return error

    async def _connect(self, deadline: float) -> Connection:
        left = deadline - asyncio.get_running_loop().time()
        if left <= 0:
            raise Determinate("the stash cannot be reached in time")
        try:
            async with asyncio.timeout(min(CONNECT_S, left)):
                connection: Connection = await asyncpg.connect(
                    self._dsn,
                    server_settings={**SESSION_SETTINGS, "application_name": self._name},
                )
                try:
                    await _refuse_unfit(connection)
                except BaseException:
                    connection.terminate()
                    raise
        # A password that is wrong, or a name that does not exist, will be so in a second, too; but
        # a server that starts answers in this way as well.
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            reason = str(error) or "no answer in time"
            raise Determinate(f"cannot connect to the stash: {reason}") from error
        except ValueError as error:
            raise UnfitServer(f"cannot connect to the stash: {error}") from error
        return connection


async def _refuse_unfit(connection: Connection) -> None:
    """Raise UnfitServer unless the server keeps what it acknowledges (P1)."""
    names = [*_REQUIRED]
    rows = await connection.fetch(
        "SELECT name, current_setting(name) FROM unnest($1::text[]) AS name", names
    )
    for name, value in rows:
        allowed, reason = _REQUIRED[str(name)]
        if value not in allowed:
            raise UnfitServer(f"the stash's server is not fit: {name} is {value}: {reason}")
