"""The query of a view is shown as it may be run again, whatever has happened below it (W1)."""

import psycopg
import pytest

from tests.support.stack import serving

TABLES = (
    "create table w (a int, b int, c int)",
    "create schema s",
    "create table s.u (a int, d int)",
    "insert into w values (1, 2, 3), (4, 5, 6)",
    "insert into s.u values (1, 9), (4, 12)",
)

CHANGES = (
    "alter table w drop column a",
    "alter table w add a int default 7",
    'alter table w rename b to "B b"',
    "alter table s.u add c int default 8",
    "alter table w rename to ww",
    "alter schema s rename to s2",
    "alter table s2.u rename d to w",
    "alter table s2.u set schema public",
    "alter view below rename column b to bb",
    "alter view below rename to beneath",
)

VIEWS = (
    "select y from w z(x, y, q)",
    "select y from w z(x, y)",
    "select p from (w join s.u on w.b = u.d - 7) as j(x, y, z, q, p)",
    "select w.b, u.d from w, s.u",
    "select count(*), b from w natural join (select 2 as b) r group by b",
    "select b, c from w tablesample system (100)",
    "select w.*, s.u.d from (select b, c from w) w join s.u on true",
    "with w as (select b from w) select * from w, (select b as x from w) y",
    "with recursive r as (select b from w union select b + 1 from r where b < 9) select * from r",
    "select b, (select max(d) from s.u where u.a = w.c) as m from w where exists (select from s.u)",
    "select b from below union all select d from s.u",
    "select * from s.u order by u.d",
)


@pytest.mark.parametrize("query", VIEWS)
def test_what_is_shown_can_be_run_again(query: str) -> None:
    with serving() as dsn, psycopg.connect(dsn, autocommit=True) as connection:

        def rows(text: str) -> tuple[list[str], list[tuple[object, ...]]]:
            found = connection.execute(text.encode())
            return [column.name for column in found.description or ()], found.fetchall()

        for statement in TABLES:
            connection.execute(statement.encode())
        connection.execute("create view below as select b, c as a from w")
        connection.execute(f"create view v as {query}".encode())
        expected = rows("table v")
        for change in CHANGES:
            connection.execute(change.encode())
            (shown,) = connection.execute("select pg_get_viewdef('v'::regclass)").fetchone() or (
                "",
            )
            assert rows("table v") == expected, change
            assert rows(str(shown)) == expected, (change, shown)


def test_names_of_now_are_shown() -> None:
    with serving() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        for statement in TABLES:
            connection.execute(statement.encode())
        connection.execute("create view v as select w.a, d from w join s.u on u.a = w.a")
        shown = connection.execute("select pg_get_viewdef('v'::regclass)").fetchone()
        text = " SELECT w.a,\n    u.d\n   FROM (w\n     JOIN s.u ON ((u.a = w.a)));"
        assert shown == (text,)
        connection.execute("alter table w rename a to e")
        connection.execute("alter table s.u rename to uu")
        shown = connection.execute("select pg_get_viewdef('v'::regclass)").fetchone()
        text = " SELECT w.e AS a,\n    uu.d\n   FROM (w\n     JOIN s.uu ON ((uu.a = w.e)));"
        assert shown == (text,)
