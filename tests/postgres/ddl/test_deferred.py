"""Deferred constraints under sessions that do not wait for each other, and after a restart."""

import random
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from coordinator.core.settings import CoreSettings
from storage.memory import MemoryObjectStore, MemoryStash
from tests.support.stack import WITHOUT_LOCKS, serving

LEVELS = ("read committed", "repeatable read", "serializable")
SESSIONS = 4
TRANSACTIONS = 30
KEYS = 5

_TABLES = (
    "create table p (id int primary key)",
    "create table c (pid int references p deferrable initially deferred)",
    "create table k (id int unique deferrable initially deferred, v int)",
    "insert into p values (1), (2)",
    "insert into c values (2)",
    "insert into k values (1, 1), (2, 2)",
)

RACES = (
    (["insert into c values (1)"], ["delete from p where id = 1"]),
    (["insert into c values (1)"], ["update p set id = 9 where id = 1"]),
    # Each brings what the other one misses, and neither knows of the other.
    (["insert into c values (7)", "insert into p values (7)"], ["delete from p where id = 2"]),
    (["delete from p where id = 2", "delete from c where pid = 2"], ["insert into c values (2)"]),
    (["insert into k values (7, 1)"], ["insert into k values (7, 2)"]),
    (
        ["insert into k values (1, 9)", "update k set id = 8 where v = 9"],
        ["insert into k values (8, 8)"],
    ),
    (["update k set id = 3 - id"], ["insert into k values (1, 9)", "delete from k where v = 1"]),
)


def _connect(dsn: str, level: str) -> "psycopg.Connection[tuple[object, ...]]":
    connection = psycopg.connect(dsn, autocommit=True)
    connection.execute(f"set default_transaction_isolation = '{level}'".encode())
    return connection


def _wrong(connection: "psycopg.Connection[tuple[object, ...]]") -> list[tuple[object, ...]]:
    orphans = "select pid from c left join p on p.id = pid where id is null and pid is not null"
    doubled = "select id from k where id is not null group by id having count(*) > 1"
    return connection.execute(f"({orphans}) union all ({doubled})".encode()).fetchall()


def _commits(connection: "psycopg.Connection[tuple[object, ...]]") -> bool:
    try:
        connection.execute("commit")
    except (psycopg.errors.IntegrityError, psycopg.errors.SerializationFailure):
        return False
    return True


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("race", RACES)
def test_no_order_of_two_commits_breaks_a_deferred_constraint(
    level: str, race: tuple[list[str], list[str]]
) -> None:
    with (
        serving(core=WITHOUT_LOCKS) as dsn,
        _connect(dsn, level) as one,
        _connect(dsn, level) as two,
    ):
        for text in _TABLES:
            one.execute(text.encode())
        for first in (0, 1):
            for connection, statements in zip((one, two), race, strict=True):
                connection.execute("begin")
                for text in statements:
                    connection.execute(text.encode())
            ordered = (one, two) if first == 0 else (two, one)
            done = [_commits(connection) for connection in ordered]
            assert done != [True, True] or race is RACES[2]
            assert _wrong(one) == []
            for text in ("delete from c", "delete from p", "delete from k", *_TABLES[3:]):
                one.execute(text.encode())


def _work(dsn: str, seed: int, level: str) -> int:
    moves = random.Random(seed)
    done = 0
    with _connect(dsn, level) as connection:
        for _ in range(TRANSACTIONS):
            try:
                with connection.transaction():
                    for _ in range(moves.randrange(1, 4)):
                        one, other = moves.randrange(KEYS), moves.randrange(KEYS)
                        statement = moves.choice(
                            (
                                f"insert into p select {one} except select id from p",
                                f"delete from p where id = {one}",
                                f"insert into c values ({one})",
                                f"update c set pid = {one} where pid = {other}",
                                f"delete from c where pid = {one}",
                                f"insert into k values ({one}, {other})",
                                f"update k set id = {one} where v = {other}",
                                f"delete from k where id = {one}",
                                "set constraints all immediate",
                            )
                        )
                        connection.execute(statement.encode())
                done += 1
            except (psycopg.errors.IntegrityError, psycopg.errors.OperationalError):
                pass
    return done


@pytest.mark.parametrize("level", LEVELS)
def test_nothing_that_is_deferred_is_ever_forgotten(level: str) -> None:
    with serving(core=CoreSettings(cut_age_us=20_000)) as dsn, _connect(dsn, level) as look:
        for text in _TABLES:
            look.execute(text.encode())
        with ThreadPoolExecutor(SESSIONS) as threads:
            done = sum(threads.map(_work, [dsn] * SESSIONS, range(SESSIONS), [level] * SESSIONS))
        assert _wrong(look) == []
    assert done > SESSIONS


def test_the_catalog_remembers_what_is_deferred() -> None:
    stash, store = MemoryStash(), MemoryObjectStore()
    with serving(stash=stash, store=store) as dsn, _connect(dsn, LEVELS[0]) as one:
        for text in _TABLES:
            one.execute(text.encode())
    restarted = serving(stash=stash.crash(), store=store.crash())
    with restarted as dsn, _connect(dsn, LEVELS[0]) as one:
        one.execute("begin")
        one.execute("insert into c values (77)")
        one.execute("insert into k values (1, 1)")
        with pytest.raises(psycopg.errors.ForeignKeyViolation) as violation:
            one.execute("commit")
        assert violation.value.diag.constraint_name == "c_pid_fkey"
        assert one.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
