"""Subscribers of servers that are struck again and again: each has the table at the end.

    writers ─▶ server ◀── strike: kill -9 and started again, or another one takes over
                 └─▶ subscribers: fold; connect again AS OF the last progress - 1

INVARIANTS
  Q1  the fold of all that a subscriber was told, by several servers, is the table: at the end, and
      wherever it is compared with AS OF. Nothing is missing, nothing is twice.
"""

import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import psycopg

from tests.support.follower import Follower, rows_max

KEYS = 50
PAUSE_S = 0.5
RELATIONS = ("t", "(SELECT b FROM t WHERE a = 7)", "t", "(SELECT a, b FROM t WHERE b > '3')")
NEVER = 1 << 62


@dataclass(frozen=True, slots=True)
class FollowedLoadSize:
    """How many of everything. The writers stop after so many transactions, or so many seconds; then
    they pause between transactions, since all subscribers are one process, and must follow.
    """

    writers: int
    followers: int
    strikes: int
    transactions: int = NEVER
    seconds: int = 0


class FollowedLoad:
    """Writers, and subscribers of the table that they write to. `dsn`: who leads now, or soon."""

    def __init__(self, dsn: Callable[[], str], size: FollowedLoadSize) -> None:
        self._dsn = dsn
        self._size = size
        self._ended = threading.Event()
        self.committed = 0
        self.lost = 0
        self.last = NEVER
        self.followers = [
            Follower(RELATIONS[place % len(RELATIONS)], fetches=place % 2 == 1)
            for place in range(size.followers)
        ]

    def create(self) -> None:
        """The table, which is empty."""
        with psycopg.connect(self._dsn(), autocommit=True) as connection:
            connection.execute("create table t (a int, b text)")

    def run(self, strike: Callable[[], None]) -> None:
        """Until the writers have done enough, and all subscribers have heard of it."""
        size = self._size
        with ThreadPoolExecutor(size.writers + size.followers) as pool:
            writers = [pool.submit(self._write, place) for place in range(size.writers)]
            followers = [pool.submit(self._follow, place) for place in range(size.followers)]
            for number in range(1, size.strikes + 1):
                if size.seconds:
                    threading.Event().wait(size.seconds / (size.strikes + 1))
                else:
                    self._wait(number * size.transactions // (size.strikes + 1), writers)
                strike()
            if size.seconds:
                threading.Event().wait(size.seconds / (size.strikes + 1))
                self._ended.set()
            for writer in writers:
                writer.result()
            with psycopg.connect(self._dsn(), autocommit=True) as connection:
                (self.last,) = connection.execute("select meridian_now()").fetchone() or (0,)
            for follower in followers:
                follower.result()

    def judge(self) -> None:
        """Q1, at the end."""
        assert self.lost >= self._size.strikes, "every strike should catch somebody in the middle"
        with psycopg.connect(self._dsn(), autocommit=True) as connection:
            for relation in RELATIONS:
                rows = connection.execute(f"SELECT * FROM {relation} AS x".encode()).fetchall()
                for follower in self.followers:
                    if follower.relation == relation:
                        assert follower.problems == []
                        assert follower.state == Counter(rows), f"Q1: {relation}"

    def _wait(self, committed: int, writers: Sequence[Future[None]]) -> None:
        while self.committed < committed and not all(writer.done() for writer in writers):
            threading.Event().wait(0.01)

    @property
    def _is_enough(self) -> bool:
        return self._ended.is_set() or self.committed >= self._size.transactions

    def _write(self, place: int) -> None:
        choices = random.Random(place)
        while not self._is_enough:
            try:
                with psycopg.connect(self._dsn(), autocommit=True) as connection:
                    while not self._is_enough:
                        _transaction(connection, choices)
                        self.committed += 1
                        self._ended.wait(PAUSE_S if self._size.seconds else 0)
            except psycopg.errors.SerializationFailure:
                pass
            except psycopg.OperationalError:
                threading.Event().wait(0.05)

    def _follow(self, place: int) -> None:
        follower, choices = self.followers[place], random.Random(place)
        while follower.frontier is None or follower.frontier <= self.last:
            try:
                # Less than the whole table now and then: but a snapshot comes to its end, too.
                often = place > 0 and choices.random() < 0.5
                most = 20 * rows_max(choices) if often else 1_000_000
                follower.follow(self._dsn(), until=lambda ts: ts > self.last, rows_max=most)
            except psycopg.OperationalError:
                self.lost += 1
                threading.Event().wait(0.05)


def _transaction(connection: psycopg.Connection, choices: random.Random) -> None:
    key = choices.randrange(KEYS)
    with connection.transaction():
        match choices.randrange(5):
            case 0 | 1:
                connection.execute("insert into t values (%s, %s)", (key, str(key)))
            case 2:
                connection.execute("update t set b = b || '.' where a = %s", (key,))
            case 3:
                connection.execute("delete from t where a = %s", (key,))
            case _:
                rows = choices.choice([*[20] * 9, 2_000])
                connection.execute(
                    "insert into t select %s, g::text from generate_series(1, %s) g", (-key, rows)
                )
                connection.execute("delete from t where a = %s and b > '3'", (-key,))
