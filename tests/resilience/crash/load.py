"""A load of concurrent inserts that keeps its own account of what it was told.

    writers ── INSERT one row / a transaction over two tables ──▶ server ◀── readers (both tables)
        └────────────── Recorder: invoked, acknowledged, refused, unknown ──────────┘

INVARIANTS
  L1  every value is inserted once, by one transaction, and never again after an unknown outcome.
  L2  an answer counts as acknowledgement only when the driver returned without error; a broken
      connection is an unknown outcome, an SQLSTATE that says so is a refusal.
  L3  `ledger` and `copy` get the same values in one transaction: one without the other is half a
      commit.
"""

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psycopg

from tests.resilience.history.events import Add, History, ReadSet, Recorder

TABLES = ("kept", "ledger", "copy")

# What a server says when it does not know: statement completion unknown, resolution unknown.
UNKNOWN_STATES = frozenset({"40003", "08007"})


class Load:
    """One account over all crashes of one server."""

    def __init__(self, *, writers: int, readers: int) -> None:
        self._writers = writers
        self._readers = readers
        self._lock = threading.Lock()
        self._recorder = Recorder()
        self._processes = itertools.count()
        self._values = itertools.count(1)
        self.acknowledged = 0

    def create(self, dsn: str) -> None:
        """Make the tables."""
        with psycopg.connect(dsn, autocommit=True) as connection:
            for table in TABLES:
                connection.execute(f"CREATE TABLE {table} (value bigint NOT NULL)")

    def run_until(self, dsn: str, acknowledged: int, kill: Callable[[], None]) -> None:
        """Load the server; kill it once so many more transactions have been acknowledged."""
        target = self.acknowledged + acknowledged
        reached = threading.Event()
        ended = threading.Event()
        with ThreadPoolExecutor(self._writers + self._readers) as pool:
            clients = [pool.submit(self._write, dsn, target, reached) for _ in range(self._writers)]
            readers = [pool.submit(self._read_on, dsn, ended) for _ in range(self._readers)]
            # A client that ends early has lost the server by itself: then nobody will reach it.
            for client in clients:
                client.add_done_callback(lambda _: reached.set())
            reached.wait()
            kill()
            ended.set()
            for client in (*clients, *readers):
                client.result()
        assert self.acknowledged >= target, "the server went away before it was killed"

    def read(self, dsn: str) -> None:
        """Read all tables in one transaction, as one more client."""
        with psycopg.connect(dsn) as connection:
            self._read(connection)

    def read_with(self, connection: psycopg.Connection) -> bool:
        """Read over a connection that is open, as one more client; False if there is no answer."""
        try:
            self._read(connection)
        except psycopg.Error:
            return False
        return True

    def insert_with(self, connection: psycopg.Connection) -> bool:
        """Insert one value over a connection that is open; False if it is not any more."""
        return self._insert(connection)

    def history(self) -> History:
        """The account so far."""
        with self._lock:
            return self._recorder.history()

    def _write(self, dsn: str, target: int, reached: threading.Event) -> None:
        try:
            with psycopg.connect(dsn) as connection:
                while self._insert(connection):
                    if self.acknowledged >= target:
                        reached.set()
        except psycopg.OperationalError:
            return

    def _insert(self, connection: psycopg.Connection) -> bool:
        """Insert one value; False when the connection is gone."""
        with self._lock:
            process, value = next(self._processes), next(self._values)
            tables = ("kept",) if value % 2 else ("ledger", "copy")
            self._recorder.invoke(process, *(Add(table, value) for table in tables))
        try:
            connection.autocommit = len(tables) == 1
            with connection.transaction() if len(tables) > 1 else connection.cursor():
                for table in tables:
                    connection.execute(f"INSERT INTO {table} VALUES (%s)", (value,))
        except psycopg.Error as error:
            refused = error.sqlstate is not None and error.sqlstate not in UNKNOWN_STATES
            # 57P01 tells that the server ends, not what became of the statement.
            refused = refused and error.sqlstate != "57P01"
            with self._lock:
                self._recorder.fail(process) if refused else self._recorder.info(process)
            return not connection.closed
        with self._lock:
            self._recorder.ok(process)
            self.acknowledged += 1
        return True

    def _read_on(self, dsn: str, ended: threading.Event) -> None:
        while not ended.is_set():
            try:
                with psycopg.connect(dsn) as connection:
                    while not ended.is_set():
                        self._read(connection)
            except psycopg.OperationalError:
                # The server is gone, or does not accept yet another reader.
                if ended.wait(0.1):
                    return

    def _read(self, connection: psycopg.Connection) -> None:
        with self._lock:
            process = next(self._processes)
            self._recorder.invoke(process, *(ReadSet(table) for table in TABLES))
        try:
            with connection.transaction():
                answers = [ReadSet(table, _values(connection, table)) for table in reversed(TABLES)]
        except psycopg.Error:
            # A read that was not answered changes nothing and says nothing.
            with self._lock:
                self._recorder.fail(process)
            raise
        with self._lock:
            self._recorder.ok(process, *answers)


def _values(connection: psycopg.Connection, table: str) -> tuple[int, ...]:
    return tuple(row[0] for row in connection.execute(f"SELECT value FROM {table}").fetchall())
