"""Checks, generated columns, defaults and domain rules are bound once, and again when they must be.

A repeated statement binds none of them. Whatever their texts refer to may change between two
statements: the second one has the new meaning.
"""

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from coordinator.planning import stored_plans
from sql.binder.bind import bind_with_context
from tests.support.stack import serving

Connection = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture
def bindings(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """One entry for each time that a stored expression is bound."""
    made: list[object] = []

    def counted(context: Any, make: Callable[[Any], Any]) -> Any:
        if context.catalog.version >= 0:  # committed
            made.append(make)
        return bind_with_context(context, make)

    monkeypatch.setattr(stored_plans, "bind_with_context", counted)
    return made


@pytest.fixture
def one() -> Iterator[Connection]:
    with serving() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


def run(connection: Connection, *statements: str) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for statement in statements:
        cursor = connection.execute(statement.encode())
        rows = cursor.fetchall() if cursor.description else []
    return rows


def outcome(connection: Connection, statement: str) -> str:
    """`ok`, or the SQLSTATE."""
    try:
        connection.execute(statement.encode())
    except psycopg.Error as error:
        return error.sqlstate or "?"
    return "ok"


def test_repeated_writes_bind_nothing(one: Connection, bindings: list[object]) -> None:
    run(
        one,
        "create domain positive as int check (value > 0)",
        "create sequence sq",
        "create table t (a positive, b int check (b < 100), c int generated always as (a + b)"
        " stored, d text default 'x' || nextval('sq'))",
        "insert into t (a, b) values (1, 1)",
    )
    assert len(bindings) == 3, "the generated column, the domain and the check"
    for n in range(2, 6):
        run(one, f"insert into t (a, b) values ({n}, {n})")
        run(one, f"update t set b = b + 1 where a = {n}")
    assert len(bindings) == 3
    run(one, "insert into t (a, b) values (6, 6)")
    run(one, "insert into t (a, b) select a + 10, b from t", "insert into t (a) select 99")
    assert len(bindings) == 4, "the default of rows that a query makes"
    run(one, "create table elsewhere (a int)", "insert into t (a, b) values (7, 7)")
    run(one, "insert into t (a, b) values (8, 8)")
    assert len(bindings) == 7, "any DDL may change what texts mean: they are bound once more"
    found = run(one, "select a, b, c, d from t order by a")
    assert found[0] == (1, 1, 2, "x1")
    assert found[5] == (6, 6, 12, "x6")


def test_an_enum_with_more_labels(one: Connection) -> None:
    run(
        one,
        "create type mood as enum ('a', 'b')",
        "create table t (m text check (m::mood < 'b'))",
    )
    insert = "insert into t values ('{}')".format
    assert [outcome(one, insert(label)) for label in ("a", "b", "c", "aa")] == [
        "ok", "23514", "22P02", "22P02",
    ]  # fmt: skip
    run(one, "alter type mood add value 'c'", "alter type mood add value 'aa' before 'b'")
    assert [outcome(one, insert(label)) for label in ("a", "b", "c", "aa")] == [
        "ok", "23514", "23514", "ok",
    ]  # fmt: skip


def test_an_altered_domain(one: Connection) -> None:
    run(
        one,
        "create domain d as int check (value > 0)",
        "create table t (x d)",
        "create table cast_there (x int check (x::d is not null))",
    )
    inserts = ["insert into t values ({})", "insert into cast_there values ({})"]

    def outcomes(value: int) -> list[str]:
        return [outcome(one, insert.format(value)) for insert in inserts]

    assert (outcomes(1), outcomes(-1)) == (["ok", "ok"], ["23514", "23514"])
    run(one, "alter domain d drop constraint d_check")
    assert outcomes(-1) == ["ok", "ok"]
    run(one, "alter domain d add constraint small check (value < 10)")
    assert (outcomes(-1), outcomes(11)) == (["ok", "ok"], ["23514", "23514"])
    with one.transaction(force_rollback=True):
        run(one, "alter domain d drop constraint small")
        assert outcomes(11) == ["ok", "ok"]
    assert outcomes(11) == ["23514", "23514"], "what was rolled back leaves no plan behind"


def test_a_renamed_sequence_and_another_of_its_name(one: Connection) -> None:
    run(one, "create sequence sq", "create table t (a text default 'x' || nextval('sq'), b int)")
    run(one, "insert into t (b) values (1)", "alter sequence sq rename to other")
    run(one, "create sequence sq start 100", "insert into t (b) values (2)")
    run(one, "insert into t (b) values (3)")
    assert run(one, "select a from t order by b") == [("x1",), ("x2",), ("x3",)]


def test_settings_that_a_check_depends_on(one: Connection) -> None:
    run(
        one,
        "create table z (t timestamptz check (extract(hour from t) < 12))",
        "create table y (d date check (d::text like '2025%'))",
    )
    morning_in_new_york = "insert into z values ('2025-01-01 13:00+00')"
    written = "insert into y values (date '2025-01-31')"
    for _ in range(2):
        run(one, "set timezone = 'UTC'", "set datestyle = 'ISO'")
        assert (outcome(one, morning_in_new_york), outcome(one, written)) == ("23514", "ok")
        run(one, "set timezone = 'America/New_York'", "set datestyle = 'SQL, DMY'")
        assert (outcome(one, morning_in_new_york), outcome(one, written)) == ("ok", "23514")


def test_names_of_a_check_do_not_depend_on_the_search_path(one: Connection) -> None:
    run(
        one,
        "create type mood as enum ('a')",
        "create table t (m text check (m::mood is not null))",
        "create schema s",
        "create type s.mood as enum ('b')",
    )
    for path in ("public", "s, public", "public"):
        run(one, f"set search_path = {path}")
        assert outcome(one, "insert into public.t values ('a')") == "ok"
        assert outcome(one, "insert into public.t values ('b')") == "22P02"


def test_the_clock_and_the_session_are_read_each_time(
    one: Connection, bindings: list[object]
) -> None:
    run(one, "set app.name = 'one'")
    run(one, "create table t (a text check (a = current_setting('app.name')))")
    assert (outcome(one, "insert into t values ('one')"), len(bindings)) == ("ok", 1)
    run(one, "set app.name = 'two'")
    assert outcome(one, "insert into t values ('one')") == "23514"
    assert outcome(one, "insert into t values ('two')") == "ok"
    assert len(bindings) == 3


def test_a_changed_table(one: Connection) -> None:
    run(one, "create table t (a int check (a > 0), b int generated always as (a * 2) stored)")
    assert outcome(one, "insert into t (a) values (-1)") == "23514"
    run(one, "alter table t rename a to c", "alter table t add check (c < 10)")
    assert outcome(one, "insert into t (c) values (-1)") == "23514"
    assert outcome(one, "insert into t (c) values (11)") == "23514"
    run(one, "alter table t drop constraint t_a_check")
    assert run(one, "insert into t (c) values (-1) returning *") == [(-1, -2)]
    run(one, "drop table t", "create table t (a int check (a < 0))")
    assert outcome(one, "insert into t values (1)") == "23514"
    assert outcome(one, "insert into t values (-1)") == "ok"


def test_ddl_that_was_rolled_back_leaves_no_meaning_behind(one: Connection) -> None:
    """The next definition takes the version that the rolled back one had (R2)."""
    run(one, "create domain d as int", "create table t (x int, check (x::d is not null))")
    with one.transaction(force_rollback=True):
        run(one, "alter domain d add constraint c1 check (value < 10)")
        assert outcome(one, "insert into t values (5)") == "ok"
    run(one, "alter domain d add constraint c2 check (value < 3)")
    assert outcome(one, "insert into t values (5)") == "23514"
    run(one, "create type e as enum ('a', 'b')", "create table u (x text, check (x::e >= 'b'))")
    with one.transaction(force_rollback=True):
        run(one, "alter type e add value 'y' after 'b'")
        assert outcome(one, "insert into u values ('b')") == "ok"
    run(one, "alter type e add value 'w' before 'b'")
    assert outcome(one, "insert into u values ('w')") == "23514"
    assert outcome(one, "insert into u values ('y')") == "22P02"


def test_ddl_of_a_block_means_nothing_to_others() -> None:
    with serving() as dsn:
        first, second = (psycopg.connect(dsn, autocommit=True) for _ in range(2))
        with first, second:
            run(first, "create domain d as int", "create table t (x int, check (x::d is not null))")
            run(first, "begin", "alter domain d add constraint c1 check (value < 10)")
            run(second, "begin", "alter domain d add constraint c2 check (value > 100)")
            assert outcome(first, "insert into t values (5)") == "ok"
            assert outcome(second, "insert into t values (5)") == "23514"
            run(first, "rollback")
            run(second, "rollback")


def test_what_a_text_names_without_a_look_up(one: Connection) -> None:
    run(
        one,
        "create table s1 (id serial)",
        "create table t (x text, check"
        " (coalesce(pg_get_serial_sequence('public.s1', 'id'), 'none') = x))",
    )
    owned, unowned = (f"insert into t values ('{x}')" for x in ("public.s1_id_seq", "none"))
    assert (outcome(one, owned), outcome(one, unowned)) == ("ok", "23514")
    run(one, "alter sequence s1_id_seq owned by none")
    assert (outcome(one, owned), outcome(one, unowned)) == ("23514", "ok")
    run(one, "drop table s1")
    assert outcome(one, owned) == "42P01"


def test_the_index_of_a_key_takes_a_name(one: Connection) -> None:
    run(
        one,
        "create schema a",
        "create schema b",
        "set search_path = a, b",
        "create table b.x (i int)",
    )
    run(one, "create table b.t (v bool, check ((to_regclass('x') = to_regclass('b.x')) = v))")
    assert outcome(one, "insert into b.t values (true)") == "ok"
    run(one, "create table a.k (i int, constraint x unique (i))")
    assert outcome(one, "insert into b.t values (true)") == "23514"


def test_zero_and_minus_zero_are_two_defaults(one: Connection) -> None:
    run(one, "create table p (k float8 primary key)", "insert into p values (0), (1)")
    run(one, "create table c (k float8 references p on delete set default)")
    run(one, "insert into c values (1)")
    with one.transaction(force_rollback=True):
        run(one, "alter table c alter k set default '0'::float8", "delete from p where k = 1")
    run(one, "alter table c alter k set default '-0'::float8", "delete from p where k = 1")
    assert run(one, "select k::text from c") == [("-0",)]


def test_a_block_with_ddl_displaces_no_plan(one: Connection, bindings: list[object]) -> None:
    run(one, "create table t (a int check (a > 0))", "insert into t values (1)")
    assert len(bindings) == 1
    with one.transaction(force_rollback=True):
        run(one, "create table u (a int)", "insert into t values (2)")
    run(one, "insert into t values (3)")
    assert len(bindings) == 1, "the block's own binding is not one of the cache"
