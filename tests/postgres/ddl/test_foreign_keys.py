"""Foreign keys under sessions at once, also if none waits: no orphan is ever committed."""

import random
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from coordinator.core.settings import CoreSettings
from tests.support.stack import WITHOUT_LOCKS, serving

SESSIONS = 4
STATEMENTS = 30
PARENTS = 5


def _work(dsn: str, seed: int, level: str) -> int:
    """Insert, move and delete parents and children, at random; how many statements were done."""
    moves = random.Random(seed)
    done = 0
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"set {level}".encode())
        for _ in range(STATEMENTS):
            one, other = moves.randrange(PARENTS), moves.randrange(PARENTS)
            statement = moves.choice(
                (
                    f"insert into p values ({one})",
                    f"delete from p where id = {one}",
                    f"update p set id = {other} where id = {one}",
                    f"insert into c values ({one})",
                    f"insert into c select {one} from p where id = {one}",
                    f"update c set pid = {one} where pid = {other}",
                    f"delete from c where pid = {one}",
                    f"insert into d values ({one})",
                    f"insert into e values ({one})",
                    f"insert into e select {one} from p where id = {one}",
                )
            )
            try:
                with connection.transaction():
                    connection.execute(statement.encode())
                    if moves.random() < 0.3:
                        connection.execute(f"insert into c values ({other})".encode())
                done += 1
            except (psycopg.errors.IntegrityError, psycopg.errors.OperationalError):
                pass
    return done


_FOLLOWING = (
    b"create table e (pid int default 0 references p on update cascade on delete set default)"
)
LEVELS = (
    "default_transaction_isolation = 'read committed'",
    "default_transaction_isolation = 'repeatable read'",
    "consistency = serializable",
    "consistency = strict",
)
RACES = (
    ("insert into c values (1)", "delete from p where id = 1"),
    ("insert into c values (1)", "update p set id = 9 where id = 1"),
    ("update c set pid = 1", "delete from p where id = 1"),
    ("insert into d values (1)", "delete from p where id = 1"),
    ("insert into e values (1)", "update p set id = 9 where id = 1"),
    ("insert into c values (1)", "alter table p alter id type bigint using id + 5 * (id % 2)"),
    ("delete from p where id = 1", "alter table c alter pid type bigint using pid - 1"),
)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("race", RACES)
@pytest.mark.parametrize("later", [0, 1])
def test_of_two_who_contradict_each_other_one_commits(
    level: str, race: tuple[str, str], later: int
) -> None:
    with (
        serving(core=WITHOUT_LOCKS) as dsn,
        _connect(dsn, level) as one,
        _connect(dsn, level) as two,
    ):
        one.execute("create table p (id int primary key)")
        one.execute("create table c (pid int references p)")
        one.execute("create table d (pid int references p on delete cascade)")
        one.execute(_FOLLOWING)
        one.execute("insert into p values (1), (2)")
        one.execute("insert into c values (2)")
        for connection, statement in zip((one, two), race, strict=True):
            connection.execute("begin")
            connection.execute(statement)
        ordered = (two, one) if later == 0 else (one, two)
        ordered[0].execute("commit")
        with pytest.raises(psycopg.errors.SerializationFailure):
            ordered[1].execute("commit")
        assert _orphans(one) == []


def _connect(dsn: str, level: str) -> "psycopg.Connection[tuple[object, ...]]":
    connection = psycopg.connect(dsn, autocommit=True)
    connection.execute(f"set {level}".encode())
    return connection


def _orphans(connection: "psycopg.Connection[tuple[object, ...]]") -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for child in ("c", "d", "e"):
        found += connection.execute(
            f"select x.pid from {child} x left join p on p.id = x.pid"
            " where p.id is null and x.pid is not null".encode()
        ).fetchall()
    return found


@pytest.mark.parametrize("level", LEVELS[:3])
def test_no_orphan_is_ever_committed(level: str) -> None:
    with serving(core=CoreSettings(cut_age_us=20_000)) as dsn:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("create table p (id int primary key)")
            connection.execute("create table c (pid int references p)")
            connection.execute("create table d (pid int references p on delete cascade)")
            connection.execute(_FOLLOWING)
        with ThreadPoolExecutor(SESSIONS) as threads:
            done = sum(threads.map(_work, [dsn] * SESSIONS, range(SESSIONS), [level] * SESSIONS))
        with psycopg.connect(dsn, autocommit=True) as connection:
            assert _orphans(connection) == []
    assert done > SESSIONS


@pytest.mark.parametrize("later", [0, 1])
def test_who_follows_a_key_and_who_changes_the_row_do_not_lose_each_other(later: int) -> None:
    """The row that ON UPDATE CASCADE writes is a write like any other: first committer wins."""
    with (
        serving(core=WITHOUT_LOCKS) as dsn,
        _connect(dsn, LEVELS[0]) as one,
        _connect(dsn, LEVELS[0]) as two,
    ):
        one.execute("create table p (id int primary key)")
        one.execute("create table f (pid int references p on update cascade, n int)")
        one.execute("insert into p values (1)")
        one.execute("insert into f values (1, 0)")
        one.execute("begin")
        one.execute("update p set id = 2 where id = 1")
        two.execute("begin")
        two.execute("update f set n = 7 where pid = 1")
        ordered = (one, two) if later == 0 else (two, one)
        ordered[0].execute("commit")
        with pytest.raises(psycopg.errors.SerializationFailure):
            ordered[1].execute("commit")
        kept = one.execute("select pid, n from f").fetchall()
        assert kept == ([(2, 0)] if later == 0 else [(1, 7)])
