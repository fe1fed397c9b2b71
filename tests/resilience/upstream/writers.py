"""Clients of the upstream: transactions over several tables, whose parts can be told from outside.

transfer  two balances change, whose sum stays; a tick of its writer is counted
rename    an account gets another key
rewrite   a large value comes, or stays while others of its row change (unchanged TOAST)
sweep     old ticks go; the table without a key loses and gains rows
undone    a savepoint takes back what would break the sum
"""

import random
import threading
from dataclasses import dataclass, field

import psycopg

from tests.resilience.faults.running import Reachable

ACCOUNTS = 50
BALANCE = 1_000
TOTAL = ACCOUNTS * BALANCE
RENAMED = 1_000
"""What is added to a key, and taken away again."""

LARGE = 20_000
"""Bytes of a value that PostgreSQL keeps apart from its row."""

SCHEMA = (
    "CREATE TABLE accounts (id int PRIMARY KEY, balance int NOT NULL, note text)",
    "ALTER TABLE accounts ALTER COLUMN note SET STORAGE EXTERNAL",
    "CREATE TABLE counts (writer int PRIMARY KEY, n int NOT NULL)",
    "CREATE TABLE ticks (writer int, n int, at timestamptz DEFAULT clock_timestamp(), "
    "PRIMARY KEY (writer, n))",
    "CREATE TABLE loose (a int, b text)",
    "ALTER TABLE loose REPLICA IDENTITY FULL",
    f"INSERT INTO accounts SELECT i, {BALANCE}, repeat('n', {LARGE}) "
    f"FROM generate_series(1, {ACCOUNTS}) i",
    "CREATE PUBLICATION everything FOR ALL TABLES",
)
TABLES = ("accounts", "counts", "ticks", "loose")


@dataclass(slots=True)
class Marks:
    """What each writer has committed: number and a position of the log that is not before it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    by_writer: dict[int, list[tuple[int, int]]] = field(default_factory=dict)

    def add(self, writer: int, n: int, position: int) -> None:
        with self.lock:
            self.by_writer.setdefault(writer, []).append((n, position))

    def acknowledged(self, position: int) -> dict[int, int]:
        """The newest number of each writer that upstream has heard "done" of."""
        with self.lock:
            return {
                writer: max((n for n, at in marks if at <= position), default=0)
                for writer, marks in self.by_writer.items()
            }

    def newest(self) -> dict[int, int]:
        with self.lock:
            return {writer: marks[-1][0] for writer, marks in self.by_writer.items()}


class Writer(threading.Thread):
    """One client; it goes on until it is told to end, through restarts of its server. `server`: who
    reads the upstream.
    """

    def __init__(
        self, dsn: str, number: int, marks: Marks, ended: threading.Event, server: Reachable
    ) -> None:
        super().__init__(daemon=True)
        self._dsn = dsn
        self._server = server
        self._number = number
        self._marks = marks
        self._ended = ended
        self._random = random.Random(number)
        self._last = 0
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._ended.is_set():
                try:
                    self._session()
                except psycopg.OperationalError:
                    self._ended.wait(0.1)
        except BaseException as failure:
            self.failure = failure
            raise

    def _session(self) -> None:
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            found = connection.execute(
                "SELECT n FROM counts WHERE writer = %s", [self._number]
            ).fetchone()
            # A COMMIT whose answer was lost may have happened.
            self._last = found[0] if found else 0
            while not self._ended.is_set():
                self._once(connection)

    def _once(self, connection: psycopg.Connection) -> None:
        n = self._last + 1
        try:
            with connection.transaction():
                self._work(connection, n)
        except (
            psycopg.errors.UniqueViolation,
            psycopg.errors.DeadlockDetected,
        ):
            return
        self._last = n
        told = connection.execute("SELECT (pg_current_wal_insert_lsn() - '0/0')::int8").fetchone()
        assert told is not None
        self._marks.add(self._number, n, told[0])
        self._committed(n)

    def _committed(self, n: int) -> None:
        """Its COMMIT has returned."""

    def _work(self, connection: psycopg.Connection, n: int) -> None:
        rng = self._random
        execute = connection.execute
        execute(
            "INSERT INTO counts VALUES (%s, %s) ON CONFLICT (writer) DO UPDATE SET n = excluded.n",
            [self._number, n],
        )
        execute("INSERT INTO ticks (writer, n) VALUES (%s, %s)", [self._number, n])
        one, other = sorted(rng.sample(range(1, ACCOUNTS + 1), 2))
        by = "UPDATE accounts SET balance = balance + %s WHERE id IN (%s, %s)"
        amount = rng.randint(1, 9)
        done = execute(by, [-amount, one, one + RENAMED]).rowcount
        execute(by, [amount * done, other, other + RENAMED])
        match rng.randrange(8):
            case 0:
                key = "CASE WHEN id > %s THEN id - %s ELSE id + %s END"
                execute(
                    f"UPDATE accounts SET id = {key} WHERE id = %s",
                    [RENAMED, RENAMED, RENAMED, one],
                )
            case 1:
                execute(
                    "UPDATE accounts SET note = repeat(%s, %s) WHERE id = %s",
                    [str(n % 10), LARGE, other],
                )
                execute("UPDATE accounts SET balance = balance WHERE id = %s", [other])
            case 2:
                execute("INSERT INTO loose SELECT i % 3, 'x' FROM generate_series(1, 6) i")
            case 3:
                execute("DELETE FROM loose WHERE ctid = (SELECT ctid FROM loose LIMIT 1)")
            case 4:
                execute("DELETE FROM ticks WHERE writer = %s AND n < %s", [self._number, n - 20])
            case 5:
                execute("SAVEPOINT s")
                execute("UPDATE accounts SET balance = balance + 7")
                execute("ROLLBACK TO s")
            case 6:
                execute("UPDATE loose SET b = b || %s WHERE a = 1", [str(n % 7)])
            case _:
                pass
