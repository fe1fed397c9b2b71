"""Who follows `WHERE column = constant` hears of the commits that have its values, and of those."""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import partial

import psycopg
import pytest

from coordinator.core.change_streams.steps import SubscriptionId
from coordinator.core.change_streams.value_dispatch import ValueDispatch
from coordinator.core.recent_writes import CommittedWrites
from coordinator.driver.change_streams import SubscriptionWakers
from storage.types import ShardId
from tests.session.change_streams.followers import cancel, now, subscriptions, told, until
from tests.session.change_streams.history import OFTEN_CUT, SETUP, go_on
from tests.support.stack import serving

Row = tuple[object, ...]

LINEAR = (
    *(f"SELECT * FROM k WHERE id = {key}" for key in (0, 1, 2, 3, 11, 12)),
    "SELECT id, v FROM k WHERE part = 'x' AND v > 0",
    "SELECT part FROM k WHERE id IN (4, 5, 14) AND part IS NOT NULL",
    "SELECT b FROM t WHERE a = 3",
    "SELECT a FROM u WHERE c = 2 AND a = 1",
    "SELECT b FROM both_tables WHERE b = 3",
    "SELECT a FROM t WHERE a = 1 UNION ALL SELECT b FROM t WHERE a = 7",
)
COMPARED = (
    "SELECT count(*) FROM t WHERE a = 2",
    "SELECT t.a FROM t, u WHERE t.a = u.a AND t.a = 4",
)

BULK = """
insert into u values (1, 2), (4, 9);
insert into t select g % 10, g from generate_series(1, 3000) g;
merge into k using (select g as id from generate_series(0, 15) g) n on k.id = n.id
when matched and k.id < 3 then delete
when matched then update set part = 'x' when not matched then insert values (n.id, 'm', 1);
delete from t where b % 2 = 0;
update t set a = a + 1 where b between 100 and 120;
with gone as (delete from k where v = 1 returning id) insert into u select id, 2 from gone;
truncate t;
insert into t values (1, 1), (3, 3), (4, 4);
insert into k values (0, 'y', 2), (1, 'y', 2) on conflict (id) do update set id = k.id + 100
"""


class _Live:
    """What was told while a history was made."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self.connection = connection
        self.rows: dict[str, list[Row]] = {}
        self.begin = self.end = 0

    def progress(self) -> int:
        """How far all have been told."""
        return min(map(_progress, self.rows.values()))

    def changes(self, query: str) -> list[Row]:
        """Rows told after the beginning, with timestamp and diff."""
        rows = [(row[0], *row[2:]) for row in self.rows[query] if row[1] is False]
        return [row for row in rows if self.begin < int(str(row[0])) < self.end]


def _progress(rows: list[Row]) -> int:
    return max([int(str(row[0])) for row in list(rows) if row[1] is True], default=0)


@pytest.fixture(scope="module")
def live() -> Iterator[_Live]:
    with serving(core=OFTEN_CUT) as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(SETUP.encode())
        found = _Live(connection)
        with ExitStack() as followers:
            for query in (*LINEAR, *COMPARED):
                statement = f"SUBSCRIBE ({query}) WITH (PROGRESS)"
                found.rows[query] = followers.enter_context(told(dsn, statement))[1]
            found.begin = now(connection)
            until(lambda: found.progress() > found.begin)
            go_on(connection, seed=34, transactions=60)
            for statement in BULK.split(";"):
                connection.execute(statement.encode())
            found.end = now(connection) + 1
            until(lambda: found.progress() >= found.end)
            cancel(connection)
        yield found


@pytest.mark.parametrize("query", LINEAR)
def test_it_is_told_live_what_it_is_told_later(live: _Live, query: str) -> None:
    """Later all commits are read, since nobody has noted which values they have."""
    options = f"WITH (SNAPSHOT = false) AS OF {live.begin} UP TO {live.end}"
    later = live.connection.execute(f"SUBSCRIBE ({query}) {options}".encode()).fetchall()
    assert later
    assert sorted(map(repr, live.changes(query))) == sorted(map(repr, later))


@pytest.mark.parametrize("query", COMPARED)
def test_the_fold_of_what_was_told_is_the_answer(live: _Live, query: str) -> None:
    fold: Counter[Row] = Counter()
    for _, progressed, diff, *values in live.rows[query]:
        if not progressed:
            fold[tuple(values)] += int(str(diff))
    answer = live.connection.execute(f"{query} AS OF {live.end - 1}".encode()).fetchall()
    assert +fold == Counter(answer)
    assert live.changes(query)


@pytest.fixture
def woken(monkeypatch: pytest.MonkeyPatch) -> list[SubscriptionId]:
    """Who was woken since it was cleared."""
    found: list[SubscriptionId] = []
    wake = SubscriptionWakers.wake

    def noted(self: SubscriptionWakers, subscriptions: Iterable[SubscriptionId]) -> None:
        ids = list(subscriptions)
        found.extend(ids)
        wake(self, ids)

    monkeypatch.setattr(SubscriptionWakers, "wake", noted)
    return found


@pytest.mark.parametrize("kept", ["in memory", "in files"])
def test_a_commit_wakes_those_whose_value_it_has(woken: list[SubscriptionId], kept: str) -> None:
    with serving() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create table t (k int primary key, v int, w text)")
        connection.execute("insert into t select g, g, 'x' from generate_series(1, 20) g")
        if kept == "in files":
            connection.execute("optimize t")
        with ExitStack() as followers:
            rows: list[list[Row]] = []
            for key in range(1, 21):
                statement = f"SUBSCRIBE (SELECT * FROM t WHERE k = {key}) WITH (SNAPSHOT = false)"
                rows.append(followers.enter_context(told(dsn, statement))[1])
            until(lambda: subscriptions(connection) == 20)
            until(lambda: _asleep(connection) == 20)
            writes = {
                "update t set v = v + 1 where k = 3": [(-1, 3, 3, "x"), (1, 3, 4, "x")],
                "delete from t where k = 3": [(-1, 3, 4, "x")],
                "insert into t values (3, 1, 'y')": [(1, 3, 1, "y")],
                "insert into t values (3, 1, '') on conflict (k) do update set v = 7": [
                    (-1, 3, 1, "y"),
                    (1, 3, 7, "y"),
                ],
                "update t set k = 40 where k = 3": [(-1, 3, 7, "y")],
                "update t set k = 3 where k = 40": [(1, 3, 7, "y")],
                "update t set w = 'z' where v = 7 and k > 2 and k < 4": [
                    (-1, 3, 7, "y"),
                    (1, 3, 7, "z"),
                ],
            }
            expected: list[Row] = []
            woken.clear()
            for write, changes in writes.items():
                connection.execute(write.encode())
                expected += changes
                until(partial(_has, rows[2], len(expected)))
            assert [row[1:] for row in rows[2]] == expected
            assert len(set(woken)) == 1
            assert [len(one) for at, one in enumerate(rows) if at != 2] == [0] * 19
            cancel(connection)


VALUES = (
    "k = 1",
    "1 = k",
    "k = 1.0",
    "k = 1::int8",
    "k = ANY ('{1, 2}')",
    "k IN (1, 2) AND d = '2020-01-01'",
    "k = 1 OR k = 2",
    "(k, d) = (1, '2020-01-01')",
    "k IS NOT DISTINCT FROM 1",
    "k BETWEEN 1 AND 1",
    "k::text = '1'",
    "d = '2020-01-01'",
    "at = '2020-01-01 01:00+01'",
    "n = 1.5",
    "n = 1.500",
    "u = '00000000-0000-0000-0000-000000000001'",
    "b = '\\x01'",
    "f = 1.5",
    "f = '-0'::float8 + 1.5",
    "e = 'x'",
    "e = 'x'::varchar",
    "e::varchar(1) = 'x'",
    "c = 'y'",
    "c = 'y  '",
    "upper(e) = 'X'",
    "o",
    "o = true",
)


def test_a_value_is_known_whatever_its_type_and_spelling(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("drop table if exists t cascade")
        connection.execute(
            "create table t (k int primary key, d date, at timestamptz, n numeric(10,2), u uuid,"
            " b bytea, f float8, e text, c char(3), o bool, v text)"
        )
        connection.execute(
            "insert into t values (1, '2020-01-01', '2020-01-01 00:00+00', 1.5,"
            " '00000000-0000-0000-0000-000000000001', '\\x01', 1.5, 'x', 'y', true, 'a')"
        )
        with ExitStack() as followers:
            found = {
                condition: followers.enter_context(
                    told(dsn, f"SUBSCRIBE (SELECT v FROM t WHERE {condition})")
                )[1]
                for condition in VALUES
            }
            until(lambda: all(len(rows) == 1 for rows in found.values()))
            connection.execute("update t set v = 'b'")
            connection.execute("update t set v = 'c' where k = 1")
            connection.execute("delete from t where e = 'x'")
            until(lambda: all(len(rows) >= 6 for rows in found.values()))
            cancel(connection)
        changes = [(1, "a"), (-1, "a"), (1, "b"), (-1, "b"), (1, "c"), (-1, "c")]
        for condition, rows in found.items():
            assert [row[1:] for row in rows[:-1]] == changes, condition
        connection.execute("drop table t")


def _has(rows: list[Row], count: int) -> bool:
    return len(rows) >= count


def _asleep(connection: psycopg.Connection) -> int:
    found = connection.execute(
        "select count(*) from meridian.subscriptions where state = 'waiting'"
    ).fetchone()
    assert found is not None
    return int(found[0])


def test_planted_values_that_are_not_known_concern_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Deleted rows of which the column was not read: everybody has to look."""
    concerned = ValueDispatch.concerned
    passed: list[bool] = []

    def known_only(
        self: ValueDispatch, shard: ShardId, writes: Iterable[CommittedWrites]
    ) -> set[SubscriptionId]:
        some = [entry for entry in writes if not entry.coarse]
        passed.append(len(some) == 0)
        return concerned(self, shard, some)

    monkeypatch.setattr(ValueDispatch, "concerned", known_only)
    with serving() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create table t (k int, v int)")
        connection.execute("insert into t values (1, 1), (2, 2)")
        statement = "SUBSCRIBE (SELECT * FROM t WHERE k = 1) WITH (PROGRESS, SNAPSHOT = false)"
        with told(dsn, statement) as (_, rows):
            until(lambda: subscriptions(connection) == 1 and _asleep(connection) == 1)
            connection.execute("truncate t")
            end = now(connection)
            until(lambda: _progress(rows) > end)
            cancel(connection)
        assert any(passed)
        assert not [row for row in rows if row[1] is False], "the plant was to lose them"
