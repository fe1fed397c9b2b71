"""The fold of all that a subscriber is told is the table, at every progress, whatever happens."""

import random
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import psycopg
import pytest

from coordinator.core.settings import CoreSettings
from tests.support.follower import Follower, Row, rows_max
from tests.support.stack import serving

OFTEN_CUT = CoreSettings(cut_age_us=30_000, subscribe_progress_us=50_000)

Write = Callable[[psycopg.Connection, random.Random], None]


def _some_writes(connection: psycopg.Connection, choices: random.Random) -> None:
    """A transaction of a few statements, some of which undo what others did."""
    with connection.transaction():
        for _ in range(choices.randint(1, 4)):
            key = choices.randrange(12)
            match choices.randrange(7):
                case 0 | 1 | 2:
                    value = choices.choice([0.0, -0.0, 1.5, None])
                    connection.execute("insert into t values (%s, %s)", (key, value))
                case 3:
                    connection.execute("update t set b = b where a = %s", (key,))
                case 4:
                    connection.execute("update t set b = -b, a = a + 1 where a = %s", (key,))
                case 5:
                    connection.execute("delete from t where a = %s", (key,))
                case _:
                    connection.execute("insert into t select a, b from t where a = %s", (key,))


def _write(dsn: str, seed: int, transactions: int) -> None:
    choices = random.Random(seed)
    with psycopg.connect(dsn, autocommit=True) as connection:
        for number in range(transactions):
            with suppress(psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected):
                _some_writes(connection, choices)
            if number == transactions // 2:
                connection.execute("truncate t")


class _Judge:
    """Compares states with what AS OF shows, on a connection of its own."""

    def __init__(self, dsn: str, query: str) -> None:
        self._connection = psycopg.connect(dsn, autocommit=True)
        self._query = query
        self.compared = 0

    def __call__(self, follower: Follower) -> None:
        assert follower.frontier is not None
        found: Counter[Row] = Counter(
            self._connection.execute(
                f"{self._query} AS OF {follower.frontier - 1}".encode()
            ).fetchall()
        )
        self.compared += 1
        if _images(found) != _images(follower.state):
            follower.problems.append(
                f"before {follower.frontier}: {found - follower.state} are missing, "
                f"{follower.state - found} are too many"
            )

    def close(self) -> None:
        self._connection.close()


def _images(rows: Counter[Row]) -> Counter[str]:
    """0 and -0 are equal in Python, and two rows for a client."""
    found: Counter[str] = Counter()
    for row, count in rows.items():
        found[repr(row).replace("-0.0", "0.0")] += count
    return found


@pytest.mark.parametrize(
    ("relation", "query"),
    [
        ("t", "TABLE t"),
        ("(SELECT b, a % 3 FROM t WHERE a > 3)", "SELECT b, a % 3 FROM t WHERE a > 3"),
    ],
)
def test_the_fold_is_the_table(relation: str, query: str) -> None:
    with serving(core=OFTEN_CUT) as dsn:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("create table t (a int, b float8)")
            connection.execute("insert into t select g, g from generate_series(1, 5) g")
        writers = [threading.Thread(target=_write, args=(dsn, seed, 40)) for seed in range(3)]
        judges = [_Judge(dsn, query) for _ in range(3)]
        followers = [Follower(relation, judge) for judge in judges]
        end = threading.Event()
        last = [1 << 62]

        def follow(follower: Follower, seed: int) -> None:
            choices = random.Random(seed)
            while follower.frontier is None or follower.frontier <= last[0]:
                most = rows_max(choices)
                follower.follow(dsn, until=lambda ts: ts > last[0], rows_max=most)

        threads = [
            threading.Thread(target=follow, args=(follower, seed))
            for seed, follower in enumerate(followers)
        ]
        for thread in (*threads, *writers):
            thread.start()
        for writer in writers:
            writer.join()
        end.set()
        with psycopg.connect(dsn, autocommit=True) as connection:
            found = connection.execute("select meridian_now()").fetchone()
            assert found is not None
            last[0] = found[0]
        for thread in threads:
            thread.join(60)
        for judge in judges:
            judge.close()
        assert [problem for follower in followers for problem in follower.problems] == []
        assert all(judge.compared > 10 for judge in judges)
