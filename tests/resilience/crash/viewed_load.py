"""A bank whose views follow its accounts, on servers that are struck again and again.

    writers: transfers, accounts that come and go ─▶ server ◀── strike: kill -9, or a successor
    readers: the sum is constant ──────────────────────┘
    at the end: every view AS OF many timestamps, and at shared cuts by a foreign reader

INVARIANTS
  E1  the sum of all balances is what it always was: whenever it is read, and AS OF every timestamp.
  E2  at every timestamp a view has the rows of its query. Where stored rows answer, these are they.
  E3  a foreign reader finds in the files of a cut, if the view is exact there, what its query says.
"""

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from tests.support.foreign_readers import DeltaRs
from tests.support.log_cuts import cuts_of_versions

Connection = psycopg.Connection[tuple[Any, ...]]

ACCOUNTS = 40
BALANCE = 100
TOTAL = ACCOUNTS * BALANCE
VIEWS = {
    "total": "SELECT sum(balance) AS total, count(*) > 0 AS any_account FROM account",
    "of_branch": (
        "SELECT b.name, count(*) AS n, sum(a.balance) AS total FROM account a"
        " JOIN branch b ON b.id = a.branch GROUP BY b.name"
    ),
    "rich": (
        "SELECT a.id, b.name, a.balance FROM account a JOIN branch b ON b.id = a.branch"
        " WHERE a.balance > 100"
    ),
    "extremes": (
        "SELECT branch, min(balance) AS least, max(balance) AS greatest FROM account"
        " GROUP BY branch"
    ),
}
COLUMNS = {
    "total": "CAST(total AS bigint), any_account",
    "of_branch": "name, n, CAST(total AS bigint)",
    "rich": "id, name, balance",
    "extremes": "branch, least, greatest",
}
NOW = "SELECT meridian_now()"
STORED = "SELECT table_name FROM meridian.materialized_views WHERE state = 'exact'"


@dataclass(frozen=True, slots=True)
class ViewedLoadSize:
    """How many of everything; between strikes there are so many commits. `looks`: timestamps at
    which all views are compared at the end.
    """

    writers: int
    readers: int
    strikes: int
    between: int
    looks: int


class ViewedLoad:
    """See the module. `dsn`: who leads now, or soon."""

    def __init__(self, dsn: Callable[[], str], size: ViewedLoadSize, seed: int = 1) -> None:
        self._dsn = dsn
        self._size = size
        self._seed = seed
        self._ended = threading.Event()
        self._progress = threading.Condition()
        self.committed = 0
        self.lost = 0
        self.read = 0
        self.problems: list[str] = []
        self.times: list[int] = []
        self.stored = Counter[str]()
        """By view, at how many timestamps stored rows have answered."""

    def create(self) -> None:
        """The bank and its views."""
        with self._connected() as connection:
            connection.execute("CREATE TABLE branch (id int PRIMARY KEY, name text)")
            connection.execute(
                "CREATE TABLE account (id int PRIMARY KEY, branch int, balance bigint)"
            )
            connection.execute("INSERT INTO branch SELECT i, 'b' || i FROM generate_series(0, 4) i")
            connection.execute(
                f"INSERT INTO account SELECT i, i % 5, {BALANCE}"
                f" FROM generate_series(1, {ACCOUNTS}) i"
            )
            for name, query in VIEWS.items():
                connection.execute(
                    f"CREATE MATERIALIZED VIEW {name} WITH (refresh = 'on commit')"
                    f" AS {query}".encode()
                )

    def run(self, strike: Callable[[], None]) -> None:
        """Until all strikes are done, and enough was committed behind the last."""
        size = self._size
        with ThreadPoolExecutor(size.writers + size.readers) as pool:
            work = [pool.submit(self._serve, self._write, place) for place in range(size.writers)]
            work += [pool.submit(self._serve, self._read, -place) for place in range(size.readers)]
            try:
                for number in range(size.strikes):
                    self._wait((number + 1) * size.between)
                    strike()
                self._wait((size.strikes + 1) * size.between)
            finally:
                self._ended.set()
            for one in work:
                one.result()

    def settle(self) -> None:
        """However slow the machine is, all views are exact now, and at the next cut."""
        with self._connected() as connection:
            for name in VIEWS:
                connection.execute(f"REFRESH MATERIALIZED VIEW {name}".encode())
            connection.execute("CREATE TABLE settled AS SELECT 1 AS one")

    def judge(self, warehouse: Path) -> None:
        """E1 to E3, on a server that is struck no more; it has settled, and cut since."""
        assert self.problems == []
        assert self.lost >= self._size.strikes, "every strike should catch somebody in the middle"
        assert self.read, "somebody should have read the sum"
        choices = random.Random(self._seed)
        with self._connected() as connection:
            cuts = self._shared_cuts(connection, warehouse)
            looks = choices.sample(self.times, min(self._size.looks, len(self.times)))
            for at in sorted({*looks, *cuts, _one(connection, NOW)}):
                self._compare(connection, at)
            assert all(self.stored[name] for name in VIEWS), f"E2 says nothing: {self.stored}"
            self._compare_foreign(connection, warehouse, cuts)

    # --- while it runs -------------------------------------------------------------------------

    def _connected(self) -> Connection:
        return psycopg.connect(self._dsn(), autocommit=True)

    def _wait(self, committed: int) -> None:
        with self._progress:
            done = self._progress.wait_for(lambda: self.committed >= committed, 240)
        assert done, f"only {self.committed} of {committed} transactions"

    def _serve(self, step: Callable[[Connection, random.Random], None], place: int) -> None:
        choices = random.Random(self._seed * 1_000 + place)
        while not self._ended.is_set():
            try:
                with self._connected() as connection:
                    while not self._ended.is_set():
                        with suppress(psycopg.errors.SerializationFailure):
                            step(connection, choices)
            except psycopg.OperationalError:
                self.lost += 1
                self._ended.wait(0.05)

    def _write(self, connection: Connection, choices: random.Random) -> None:
        one, other = choices.sample(range(1, ACCOUNTS + 1), 2)
        amount, kind = choices.randint(1, 9), choices.randrange(6)
        with connection.transaction():
            match kind:
                case 0:  # an account comes, with money of another one, and goes to another branch
                    number = choices.randrange(1_000, 1 << 30)
                    _pay(connection, one, -amount)
                    connection.execute(
                        "INSERT INTO account VALUES (%s, %s, %s)", (number, one % 5, amount)
                    )
                case 1:  # one that came goes again, and leaves its money
                    found = connection.execute(
                        "DELETE FROM account WHERE id = (SELECT max(id) FROM account"
                        " WHERE id >= 1000) RETURNING balance"
                    ).fetchall()
                    for (balance,) in found:
                        _pay(connection, one, balance)
                case 2:
                    connection.execute(
                        "UPDATE account SET branch = %s WHERE id = %s", (amount % 5, one)
                    )
                case _:
                    _pay(connection, one, -amount)
                    _pay(connection, other, amount)
        with self._progress:
            self.committed += 1
            self._progress.notify_all()

    def _read(self, connection: Connection, choices: random.Random) -> None:
        """E1: of views, together, and of one of them at some earlier time."""
        with connection.transaction():
            now = _one(connection, NOW)
            found = [_sum(connection, name, "") for name in ("total", "of_branch")]
        self._expect(now, found)
        if self.times:
            at = choices.choice(self.times)
            self._expect(at, [_sum(connection, "total", f" AS OF {at}")])
        assert isinstance(now, int)
        self.times.append(now)
        self.read += 1

    def _expect(self, at: object, found: Sequence[object]) -> None:
        if any(one != TOTAL for one in found):
            self.problems.append(f"E1: {found} at {at}")

    # --- at the end ----------------------------------------------------------------------------

    def _compare(self, connection: Connection, at: int) -> None:
        """E1, E2, at one timestamp."""
        self._expect(at, [_sum(connection, "account", f" AS OF {at}", "balance")])
        for name in VIEWS:
            text = f"SELECT {COLUMNS[name]} FROM {name} AS OF {at}"
            connection.execute("SET view_reads = definition")
            rows = _bag(connection.execute(text.encode()))
            connection.execute("SET view_reads = stored")
            try:
                stored = _bag(connection.execute(text.encode()))
            except psycopg.errors.ObjectNotInPrerequisiteState:
                continue
            self.stored[name] += 1
            assert stored == rows, f"E2: {name} AS OF {at}: {stored - rows} and not {rows - stored}"
        assert self.problems == []

    def _shared_cuts(self, connection: Connection, warehouse: Path) -> dict[int, dict[str, int]]:
        """By timestamp, the version of each table, where all of them have one."""
        paths = _paths(connection, warehouse)
        versions = {name: cuts_of_versions(path) for name, path in paths.items()}
        cuts = sorted({cut for known in versions.values() for cut in known.values()})
        found: dict[int, dict[str, int]] = {}
        for cut in cuts:
            at = {
                name: max((number for number, own in known.items() if own <= cut), default=-1)
                for name, known in versions.items()
            }
            if all(number >= 0 for number in at.values()):
                found[cut] = at
        return dict(list(found.items())[-self._size.looks :])

    def _compare_foreign(
        self,
        connection: Connection,
        warehouse: Path,
        cuts: dict[int, dict[str, int]],
    ) -> None:
        """E3."""
        reader, paths = DeltaRs(), _paths(connection, warehouse)
        compared = 0
        connection.execute("SET view_reads = stored")
        for cut, versions in cuts.items():
            for name, query in VIEWS.items():
                text = f"SELECT {COLUMNS[name]} FROM {name}"
                try:
                    ours = _bag(connection.execute(f"{text} AS OF {cut}".encode()))
                except psycopg.errors.ObjectNotInPrerequisiteState:
                    continue
                stored = Counter(map(tuple, reader.query(text, paths, versions)))
                computed = f"SELECT {COLUMNS[name]} FROM ({query}) AS x"
                assert stored == Counter(map(tuple, reader.query(computed, paths, versions)))
                assert stored == ours, f"E3: {name} at {cut}"
                compared += 1
        assert compared >= len(VIEWS), f"E3 says nothing: {compared} views of {len(cuts)} cuts"


def _paths(connection: Connection, warehouse: Path) -> dict[str, Path]:
    shards = connection.execute("SELECT DISTINCT table_name, shard FROM meridian.cuts").fetchall()
    return {str(name): warehouse / str(shard) for name, shard in shards}


def _pay(connection: Connection, account: int, amount: object) -> None:
    connection.execute("UPDATE account SET balance = balance + %s WHERE id = %s", (amount, account))


def _one(connection: Connection, text: str) -> object:
    ((found,),) = connection.execute(text.encode()).fetchall()
    return found


def _sum(connection: Connection, name: str, at: str, column: str = "total") -> object:
    return _one(connection, f"SELECT CAST(sum({column}) AS bigint) FROM {name}{at}")


def _bag(rows: Iterable[tuple[object, ...]]) -> Counter[tuple[object, ...]]:
    return Counter(map(tuple, rows))
