"""Queries that are followed: the fold of what is told is their answer, at every progress.

Views and UNION ALL are told commit by commit; joins, aggregates and the like are compared. The same
histories for all: several tables in one transaction, cuts, compactions, ALTERs, TRUNCATE.
"""

import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass

import psycopg
import pytest
from psycopg.rows import TupleRow

from coordinator.core.settings import CoreSettings
from tests.session.change_streams.history import now
from tests.support.follower import Follower, Row, rows_max
from tests.support.stack import serving

OFTEN = CoreSettings(cut_age_us=30_000, subscribe_progress_us=50_000, subscribe_compare_us=20_000)

UNION = (
    "SELECT b, a FROM t WHERE a > 3 UNION ALL SELECT c, k + 1 FROM u UNION ALL SELECT b, -a FROM t"
)
JOIN = "SELECT t.a, u.c, t.b FROM t LEFT JOIN u ON t.a = u.k"
GROUPS = "SELECT a % 3 AS g, count(*), sum(a), min(b) FROM t GROUP BY 1"

SETUP = f"""
create table t (a int, b int);
create table u (k int, c int);
insert into t select g, g from generate_series(1, 5) g;
insert into u select g, -g from generate_series(1, 5) g;
create view filtered as select b, a * 2 as twice from t where a % 2 = 0;
create view over_both as {UNION};
create view nested as select twice from filtered where b > 0 union all select k from u;
create view joined as {JOIN};
create materialized view stored as {GROUPS};
create materialized view exact with (refresh = 'on commit') as {GROUPS};
create view over_exact as select g, count + 1 as more from exact where g is not null;
"""


def _write_some(connection: psycopg.Connection, choices: random.Random) -> None:
    """A transaction over both tables."""
    with connection.transaction():
        for _ in range(choices.randint(1, 4)):
            key, value = choices.randrange(9), choices.choice([None, -1, 0, 1, 2])
            match choices.randrange(8):
                case 0 | 1:
                    connection.execute("insert into t values (%s, %s)", (key, value))
                case 2:
                    connection.execute("insert into u values (%s, %s)", (key, value))
                case 3:
                    connection.execute("update t set b = %s where a = %s", (value, key))
                case 4:
                    connection.execute("update u set k = k + 1 where k = %s", (key,))
                case 5:
                    connection.execute("delete from t where a = %s", (key,))
                case 6:
                    connection.execute("delete from u where k = %s", (key,))
                case _:
                    connection.execute("update t set a = a where a = %s", (key,))


def _write(dsn: str, seed: int, transactions: int) -> None:
    choices = random.Random(seed)
    with psycopg.connect(dsn, autocommit=True) as connection:
        for number in range(transactions):
            with suppress(psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected):
                _write_some(connection, choices)
            with suppress(psycopg.Error):
                if number == transactions // 3:
                    connection.execute("truncate t, u" if seed % 2 else "truncate u")
                if number % 8 == 3:
                    connection.execute("refresh materialized view stored")
                if number % 10 == 5:
                    connection.execute("optimize t")
                if number == transactions // 2:
                    connection.execute(f"alter table t add column more{seed} int default 7")


RESUMED = {
    "over_both": "TABLE over_both",
    "nested": "TABLE nested",
    "stored": "TABLE stored",
    "exact": GROUPS,
    "(SELECT count, min FROM exact WHERE g = 1)": f"SELECT count, min FROM ({GROUPS}) WHERE g = 1",
    "over_exact": f"SELECT g, count + 1 FROM ({GROUPS}) WHERE g IS NOT NULL",
    "(SELECT max(count), count(*) FROM exact, u WHERE g = k)": (
        f"SELECT max(count), count(*) FROM ({GROUPS}), u WHERE g = k"
    ),
    "joined": "TABLE joined",
    f"({GROUPS})": GROUPS,
}
"""Relations and the queries that they are; without one: the query in parentheses."""

BEGUN_ANEW = {
    "(SELECT a, b FROM t ORDER BY a, b LIMIT 3)": "",
    "(SELECT string_agg(a::text, ',' ORDER BY a) FROM t)": "",
}
"""Those that are never resumed, since they have several answers (these happen to have one)."""


@dataclass(slots=True)
class Followed:
    """Compares each state of one follower with the answer at its timestamp."""

    query: str
    reader: psycopg.Connection[TupleRow]
    compared: int = 0

    def __call__(self, follower: Follower) -> None:
        assert follower.frontier is not None
        statement = f"{self.query} AS OF {follower.frontier - 1}".encode()
        found: Counter[Row] = Counter(self.reader.execute(statement).fetchall())
        self.compared += 1
        if found != follower.state:
            follower.problems.append(
                f"before {follower.frontier}: {found - follower.state} are missing, "
                f"{follower.state - found} are too many"
            )


def _follow_all(dsn: str) -> list[str]:
    """What followers of all queries found wrong, who were killed often, beside writers."""
    with ExitStack() as stack:
        followed = [
            (Follower(relation, resumes=resumes), query or relation[1:-1])
            for resumes, queries in ((True, RESUMED), (False, BEGUN_ANEW))
            for relation, query in queries.items()
        ]
        judges: list[Followed] = []
        for follower, query in followed:
            reader = stack.enter_context(psycopg.connect(dsn, autocommit=True))
            judges.append(Followed(query, reader))
            follower.progressed = judges[-1]
        last = [1 << 62]

        def follow(follower: Follower, seed: int) -> None:
            choices = random.Random(seed)
            while follower.frontier is None or follower.frontier <= last[0]:
                most = rows_max(choices) if follower.resumes else 1_000
                follower.follow(dsn, until=lambda ts: ts > last[0], rows_max=most)

        threads = [
            threading.Thread(target=follow, args=(follower, seed))
            for seed, (follower, _) in enumerate(followed)
        ]
        writers = [threading.Thread(target=_write, args=(dsn, seed, 25)) for seed in range(2)]
        for thread in (*threads, *writers):
            thread.start()
        for writer in writers:
            writer.join()
        with psycopg.connect(dsn, autocommit=True) as other:
            last[0] = now(other)
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        assert all(judge.compared > 5 for judge in judges)
        assert sum(follower.altered for follower, _ in followed) > 0
        return [
            f"{follower.relation}: {it}" for follower, _ in followed for it in follower.problems
        ]


@pytest.fixture
def dsn() -> Iterator[str]:
    with serving(core=OFTEN, maintained=True) as found:
        with psycopg.connect(found, autocommit=True) as connection:
            connection.execute(SETUP.encode())
        yield found


def test_the_fold_is_the_answer(dsn: str) -> None:
    assert _follow_all(dsn) == []
