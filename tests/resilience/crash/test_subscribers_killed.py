"""Subscribers of a server that is killed again and again: each has the table at the end.

    writers ─▶ server ◀── kill -9, started again
                 └─▶ subscribers: fold; connect again AS OF the last progress - 1

INVARIANTS
  Q1  the fold of all that a subscriber was told, by several servers, is the table: at the end, and
      wherever it is compared with AS OF. Nothing is missing, nothing is twice.
"""

import random
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from tests.support.follower import Follower, rows_max
from tests.support.servers import Meridian, meridian

KEYS = 50
NEVER = 1 << 62


@dataclass(frozen=True)
class Size:
    """How many of everything."""

    writers: int
    followers: int
    kills: int
    transactions: int


SHORT = Size(writers=4, followers=6, kills=3, transactions=160)
LONG = Size(writers=16, followers=50, kills=4, transactions=400)


class _Scene:
    """They work until the writers have committed enough, whatever becomes of the server."""

    def __init__(self, server: Meridian, size: Size) -> None:
        self._server = server
        self._size = size
        self.committed = 0
        self.lost = 0
        self.last = NEVER
        self.followers = [Follower("t", fetches=place % 2 == 1) for place in range(size.followers)]

    def run(self, kills: list[int]) -> None:
        size = self._size
        with ThreadPoolExecutor(size.writers + size.followers) as pool:
            writers = [pool.submit(self._write, place) for place in range(size.writers)]
            followers = [pool.submit(self._follow, place) for place in range(size.followers)]
            for kill in kills:
                while self.committed < kill and not all(w.done() for w in writers):
                    threading.Event().wait(0.01)
                self._server.kill()
                self._server.start()
            for writer in writers:
                writer.result()
            with psycopg.connect(self._server.dsn, autocommit=True) as connection:
                (self.last,) = connection.execute("select meridian_now()").fetchone() or (0,)
            for follower in followers:
                follower.result()

    def _write(self, place: int) -> None:
        choices = random.Random(place)
        while self.committed < self._size.transactions:
            try:
                with psycopg.connect(self._server.dsn, autocommit=True) as connection:
                    while self.committed < self._size.transactions:
                        _transaction(connection, choices)
                        self.committed += 1
            except psycopg.errors.SerializationFailure:
                pass
            except psycopg.OperationalError:
                threading.Event().wait(0.05)

    def _follow(self, place: int) -> None:
        follower, choices = self.followers[place], random.Random(place)
        while follower.frontier is None or follower.frontier <= self.last:
            try:
                # Less than the whole table now and then: but a snapshot comes to its end, too.
                often = place > 0 and choices.random() < 0.7
                most = 20 * rows_max(choices) if often else 1_000_000
                follower.follow(self._server.dsn, until=lambda ts: ts > self.last, rows_max=most)
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
                rows = choices.choice([20, 20, 20, 2_000])
                connection.execute(
                    "insert into t select %s, g::text from generate_series(1, %s) g", (-key, rows)
                )
                connection.execute("delete from t where a = %s and b > '3'", (-key,))


@pytest.mark.parametrize(
    "size", [SHORT, pytest.param(LONG, marks=pytest.mark.slow)], ids=["short", "long"]
)
def test_subscribers_resume_after_a_kill(tmp_path: Path, size: Size) -> None:
    rng = random.Random(34)
    with meridian(tmp_path, ("--spark-master", "none")) as server:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute("create table t (a int, b text)")
        scene = _Scene(server, size)
        scene.run(sorted(rng.sample(range(20, size.transactions - 40), size.kills)))
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            table = Counter(connection.execute("table t").fetchall())
    assert scene.lost >= size.kills, "every kill should catch somebody in the middle"
    for follower in scene.followers:
        assert follower.problems == []
        assert follower.state == table, "Q1"
