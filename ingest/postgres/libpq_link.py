"""A connection of libpq that never blocks the loop.

    wanted ─▶ libpq ─▶ socket;  the loop tells when the socket can be read or written

INVARIANTS
  L1  no call here waits within libpq: connecting, sending, receiving go on when the loop says so.
  L2  no password is in an error: what libpq says is passed on without it.
  L3  one query at a time; whoever else asks waits in line.
  L4  the loop watches the socket only while it is open. Its number is soon another socket's, which
      the loop would then take for watched.

libpq's own ways to find passwords (environment, password file) are closed: what is not given is
not there.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from ingest.reader import ReaderFailure

if TYPE_CHECKING:
    from psycopg.pq.abc import PGconn, PGresult

_CONNECTING_SECONDS_MAX: Final = 15.0
QUERY_SECONDS_MAX: Final = 30.0
_OPTIONS: Final = " ".join(
    f"-c {setting}"
    for setting in (
        "datestyle=ISO,MDY", "intervalstyle=postgres", "timezone=UTC", "extra_float_digits=3",
        "bytea_output=hex", "search_path=pg_catalog", "statement_timeout=0", "lock_timeout=0",
        "synchronous_commit=local",
        "idle_in_transaction_session_timeout=0", "default_transaction_isolation=read\\ committed",
    )
)  # fmt: skip
"""Texts of values depend on these, so they are ours, whatever the role or database has."""

_ENDING: Final = (b"FATAL", b"PANIC")
"""Severities with which upstream ends the connection."""

Row = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """Where an upstream is, and who we are there. `host_address`: what `host` was resolved to."""

    host: str
    database: str
    user: str
    port: int = 5432
    password: str | None = field(default=None, repr=False)
    ssl_mode: str = "prefer"
    ssl_root_cert: str = ""
    host_address: str = ""

    def parameters(self, application_name: str, *, replication: bool) -> Mapping[str, str]:
        """As libpq names them."""
        return {
            "host": self.host,
            **({"hostaddr": self.host_address} if self.host_address else {}),
            "port": str(self.port),
            "dbname": self.database,
            "user": self.user,
            "password": self.password or "",
            "passfile": "/nonexistent/none",
            "sslmode": self.ssl_mode,
            **({"sslrootcert": self.ssl_root_cert} if self.ssl_root_cert else {}),
            "application_name": application_name,
            "client_encoding": "UTF8",
            "options": _OPTIONS,
            **({"replication": "database"} if replication else {}),
        }


def conninfo(parameters: Mapping[str, str]) -> bytes:
    """A connection string; every value is quoted."""
    quoted = (
        f"{name}='{value.replace(chr(92), chr(92) * 2).replace(chr(39), chr(92) + chr(39))}'"
        for name, value in parameters.items()
    )
    return " ".join(quoted).encode()


class LibpqLink:
    """One connection; made by `connect`."""

    def __init__(self, pgconn: "PGconn", password: str | None) -> None:
        self._pgconn = pgconn
        self._password = password
        self._lock = asyncio.Lock()
        self._waiting: asyncio.Future[None] | None = None
        self._unwatch: Callable[[], object] | None = None
        self._closed = False

    @staticmethod
    async def connect(
        address: PostgresAddress, application_name: str, *, replication: bool = False
    ) -> "LibpqLink":
        """Raises 08001, or what upstream answers, such as 28P01."""
        from psycopg import pq

        parameters = address.parameters(application_name, replication=replication)
        pgconn = pq.PGconn.connect_start(conninfo(parameters))
        link = LibpqLink(pgconn, address.password)
        try:
            async with asyncio.timeout(_CONNECTING_SECONDS_MAX):
                await link._finish_connecting()
        except TimeoutError:
            link.close()
            where = f"{address.host}:{address.port}"
            raise ReaderFailure("08001", f"upstream {where} does not answer") from None
        except BaseException:
            link.close()
            raise
        return link

    async def _finish_connecting(self) -> None:
        from psycopg import pq

        status, polled = pq.ConnStatus, pq.PollingStatus
        while True:
            if self._pgconn.status == status.BAD:
                raise self._connecting_failure()
            match self._pgconn.connect_poll():
                case polled.OK:
                    break
                case polled.READING:
                    await self._ready(writing=False)
                case polled.WRITING:
                    await self._ready(writing=True)
                case _:
                    raise self._connecting_failure()
        self._pgconn.nonblocking = 1

    def _connecting_failure(self) -> ReaderFailure:
        message = self._clean(self._pgconn.get_error_message())
        # libpq tells no SQLSTATE of a connection that failed.
        hint, code = "", "08001"
        if "password" in message and ("failed" in message or "no password" in message):
            code, hint = "28P01", "Look at USER and PASSWORD of the connection."
        elif "pg_hba.conf" in message or "must be superuser or replication role" in message:
            code, hint = "28000", "Upstream's pg_hba.conf must let the role in."
        elif "permission denied to start WAL sender" in message:
            code, hint = "42501", "Upstream: ALTER ROLE .. REPLICATION."
        return ReaderFailure(code, f"cannot connect to upstream: {message}", hint=hint)

    async def _ready(self, *, writing: bool) -> None:
        """Wait until the socket can be used (L1)."""
        loop = asyncio.get_running_loop()
        socket = self._pgconn.socket
        ready: asyncio.Future[None] = loop.create_future()
        add, remove = (
            (loop.add_writer, loop.remove_writer)
            if writing
            else (loop.add_reader, loop.remove_reader)
        )
        add(socket, _settle, ready)
        self._waiting, self._unwatch = ready, partial(remove, socket)
        try:
            await ready
        finally:
            self._waiting = None
            self._stop_watching()

    def _stop_watching(self) -> None:
        """L4. Whoever waits may have been woken, and not have gone on yet."""
        if self._unwatch is not None:
            self._unwatch()
            self._unwatch = None

    def _clean(self, message: str) -> str:
        """L2, and in one line."""
        if self._password:
            message = message.replace(self._password, "<hidden>")
        return " ".join(message.split()).removeprefix("ERROR: ").removeprefix("FATAL: ")

    @property
    def server_version(self) -> int:
        """Such as 180003."""
        if self.closed:
            raise ReaderFailure("08003", "the connection is closed")
        return self._pgconn.server_version

    @property
    def backend_pid(self) -> int:
        """Of upstream's process."""
        return self._pgconn.backend_pid

    async def query(
        self, text: str, *, seconds: float | None = QUERY_SECONDS_MAX, broken: bool = False
    ) -> list[Row]:
        """All rows of a query. A failure has upstream's SQLSTATE; `broken` is for it."""
        async with self._lock:
            self._check_open()
            try:
                async with asyncio.timeout(seconds):
                    result = await self._result(text)
            except TimeoutError:
                self.close()
                raise ReaderFailure("57014", "upstream does not answer in time") from None
            except asyncio.CancelledError:
                # The answer of this query would be taken for that of the next.
                self.close()
                raise
        self._check(result, broken=broken)
        return _rows(result)

    async def _result(self, text: str) -> "PGresult":
        from psycopg import pq

        await self._send(text)
        last: PGresult | None = None
        while (result := await self._next_result()) is not None:
            last = result
            if result.status in (pq.ExecStatus.COPY_BOTH, pq.ExecStatus.COPY_OUT):
                break
        assert last is not None, "a query has a result"
        return last

    async def _send(self, text: str) -> None:
        from psycopg import OperationalError

        try:
            self._pgconn.send_query(text.encode())
            while self._pgconn.flush():
                await self._ready(writing=True)
        except OperationalError:
            raise self._lost() from None

    def _consume(self) -> None:
        from psycopg import OperationalError

        try:
            self._pgconn.consume_input()
        except OperationalError:
            raise self._lost() from None

    def _lost(self) -> ReaderFailure:
        message = self._clean(self._pgconn.get_error_message())
        self.close()
        return ReaderFailure("08006", f"connection to upstream is lost: {message}")

    def _check(self, result: "PGresult", *, broken: bool = False) -> None:
        from psycopg import pq

        if result.status not in (pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.BAD_RESPONSE):
            return
        code = result.error_field(pq.DiagnosticField.SQLSTATE)
        if code is None:
            raise self._lost()
        primary = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b""
        hint = result.error_field(pq.DiagnosticField.MESSAGE_HINT) or b""
        if (result.error_field(pq.DiagnosticField.SEVERITY_NONLOCALIZED) or b"") in _ENDING:
            self.close()
        raise ReaderFailure(
            code.decode(),
            f"upstream: {self._clean(primary.decode())}",
            hint=self._clean(hint.decode()),
            broken=broken,
        )

    async def copy_out(self, text: str) -> AsyncIterator[bytes]:
        """The lines of COPY .. TO STDOUT, as upstream sends them."""
        async with self._lock:
            self._check_open()
            whole = False
            try:
                self._check(await self._result(text))
                while (data := await self._next_line()) != b"":
                    yield data
                await self._ended()
                whole = True
            finally:
                if not whole:
                    self.close()

    async def _next_result(self) -> "PGresult | None":
        while self._pgconn.is_busy():
            await self._ready(writing=False)
            self._consume()
        return self._pgconn.get_result()

    async def _next_line(self) -> bytes:
        while (data := self._received()) is None:
            await self._ready(writing=False)
            self._consume()
        return data

    async def _ended(self) -> None:
        """The results behind the last line tell whether it was the last."""
        while (result := await self._next_result()) is not None:
            self._check(result)

    async def start_streaming(self, text: str) -> None:
        """START_REPLICATION: from here on `next_message` and `send` are for COPY BOTH."""
        async with asyncio.timeout(QUERY_SECONDS_MAX):
            self._check(await self._result(text))

    def _received(self) -> bytes | None:
        """A message; None if there is none yet, empty at the end."""
        from psycopg import OperationalError

        try:
            count, data = self._pgconn.get_copy_data(1)
        except OperationalError:
            raise self._lost() from None
        if count == 0:
            return None
        return bytes(data) if count > 0 else b""

    def next_message(self) -> bytes | None:
        """A message of the stream that is here already; None if none is."""
        self._check_open()
        data = self._received()
        if data is None:
            self._consume()
            data = self._received()
        if data != b"":
            return data
        result = self._pgconn.get_result()
        if result is not None:
            self._check(result)
        raise ReaderFailure("08006", "upstream has ended the stream")

    async def wait_readable(self, seconds: float) -> bool:
        """Whether something comes within so many seconds."""
        self._check_open()
        try:
            async with asyncio.timeout(seconds):
                await self._ready(writing=False)
        except TimeoutError:
            return False
        return True

    def wake(self) -> None:
        """End `wait_readable`."""
        if self._waiting is not None:
            _settle(self._waiting)

    def send(self, body: bytes) -> bool:
        """Send a message of COPY BOTH if the socket takes it; otherwise it comes with the next."""
        from psycopg import OperationalError

        if self._closed:
            return False
        try:
            self._pgconn.put_copy_data(body)
            return not self._pgconn.flush()
        except OperationalError:
            # Reading finds out, and says why. libpq may have closed the socket (L4).
            self._stop_watching()
            self.wake()
            return False

    def _check_open(self) -> None:
        if self._closed:
            raise ReaderFailure("08003", "the connection to upstream is closed")

    @property
    def closed(self) -> bool:
        """Whether `close` was called, here or by a failure."""
        return self._closed

    def close(self) -> None:
        """End it, and whatever waits for it."""
        if self._closed:
            return
        self._closed = True
        self._stop_watching()
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(
                ReaderFailure("08003", "the connection to upstream is closed")
            )
        self._pgconn.finish()


def _settle(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


def _rows(result: "PGresult") -> list[Row]:
    def cell(row: int, column: int) -> str | None:
        value = result.get_value(row, column)
        return None if value is None else value.decode()

    columns = range(result.nfields)
    return [tuple([cell(row, at) for at in columns]) for row in range(result.ntuples)]


def quote_name(name: str) -> str:
    """A name of upstream as an identifier; the one way in which such names enter SQL."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """A text of upstream, or of ours, as a literal."""
    escaped = text.replace("'", "''")
    return f" E'{escaped.replace(chr(92), chr(92) * 2)}'" if "\\" in text else f"'{escaped}'"


def quote_names(names: Sequence[str]) -> str:
    """A list of identifiers."""
    return ", ".join(map(quote_name, names))
