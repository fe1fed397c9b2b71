"""Two blocks with definitions: what both leave fits together, also if nobody waits."""

import psycopg
import pytest

from tests.support.stack import WITHOUT_LOCKS, serving

LEVELS = ("serializable", "repeatable read", "read committed")
SETUP = (
    "create table t (id int primary key, n int, z int)",
    "create table u (id int, n int)",
    "create view v as select id, n from t",
    "create sequence s",
    "insert into t values (1, 10, 100)",
)

NEVER_BOTH = {
    "a view over a column that goes": (
        "alter table t drop column z",
        "create view w as select z from t",
    ),
    "a view over a table that goes": (
        "drop view v; drop table t",
        "create view w as select z from t",
    ),
    "an index over a column that goes": ("alter table t drop column z", "create index i on t (z)"),
    "a view over a column of another type": (
        "alter table t alter column z type text",
        "create view w as select z + 1 as z from t",
    ),
}
"""At every level one of them has to begin again: what is made, and what it would be made over."""


def _connect(dsn: str) -> "psycopg.Connection[tuple[object, ...]]":
    return psycopg.connect(dsn, autocommit=True)


@pytest.mark.parametrize("story", NEVER_BOTH)
def test_what_is_made_has_what_it_is_made_over(story: str) -> None:
    with (
        serving(core=WITHOUT_LOCKS) as dsn,
        _connect(dsn) as one,
        _connect(dsn) as other,
    ):
        for level in LEVELS:
            one.execute("drop schema public cascade; create schema public")
            for text in SETUP:
                one.execute(text.encode())
            for connection, text in zip((one, other), NEVER_BOTH[story], strict=True):
                connection.execute(f"begin isolation level {level}; {text}".encode())
            one.execute("commit")
            with pytest.raises(psycopg.errors.SerializationFailure):
                other.execute("commit")
            assert one.execute("select relname from pg_class where relname = 'w'").fetchall() == []


@pytest.mark.parametrize(
    "text", ["create or replace view v as select id, -n as n from t", "drop view v"]
)
def test_who_writes_what_a_view_showed_rests_on_its_definition(text: str) -> None:
    with serving() as dsn, _connect(dsn) as one, _connect(dsn) as other:
        for statement in SETUP:
            one.execute(statement.encode())
        other.execute("begin")
        other.execute("insert into u select id, n from v")
        one.execute("begin")
        # It comes before the other one, which has not committed, and would have come after it.
        assert one.execute("select count(*) from u").fetchall() == [(0,)]
        one.execute(text.encode())
        one.execute("commit")
        with pytest.raises(psycopg.errors.SerializationFailure):
            other.execute("commit")
        assert one.execute("select count(*) from u").fetchall() == [(0,)]


def test_a_view_may_be_replaced_again_and_again() -> None:
    with serving() as dsn, _connect(dsn) as connection:
        for statement in SETUP:
            connection.execute(statement.encode())
        for n in range(3):
            with connection.transaction():
                replaced = f"create or replace view v as select id, n + {n} as n from t"
                connection.execute(replaced.encode())
                connection.execute("insert into u select id, n from v")
        connection.execute("insert into u select id, n from v")
        assert connection.execute("select n from u").fetchall() == [(10,), (11,), (12,), (12,)]
