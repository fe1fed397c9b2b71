"""Enums and domains beyond one statement: drivers, restarts, the past, others who change them."""

import asyncio
from enum import Enum

import asyncpg
import psycopg
import pytest
from psycopg import errors
from psycopg.types.enum import EnumInfo, register_enum

from coordinator.pgwire.messages import (
    Bind,
    BindComplete,
    Describe,
    ParameterDescription,
    Parse,
    Sync,
    Target,
)
from storage.memory import MemoryObjectStore, MemoryStash
from tests.support.stack import WITHOUT_LOCKS, running, serving
from tests.support.wire import WireClient, show

_SCRIPT = (
    "create type mood as enum ('sad', 'ok', 'happy')",
    "create table t (id int primary key, m mood, ms mood[])",
    "insert into t values (1, 'ok', '{sad,happy}'), (2, 'sad', null)",
)


class Mood(Enum):
    """What psycopg makes of the type."""

    sad = "sad"
    ok = "ok"
    happy = "happy"


def _execute(
    connection: "psycopg.Connection[tuple[object, ...]]", *statements: str
) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for statement in statements:
        cursor = connection.execute(statement.encode())
        rows = cursor.fetchall() if cursor.description else []
    return rows


def test_psycopg_knows_an_enum() -> None:
    with serving() as dsn, psycopg.connect(dsn, autocommit=True) as one:
        _execute(one, *_SCRIPT)
        info = EnumInfo.fetch(one, "mood")
        assert info is not None
        assert [*info.labels] == ["sad", "ok", "happy"]
        register_enum(info, one, Mood)
        one.execute("insert into t values (3, %s, %s)", (Mood.happy, [Mood.sad, Mood.ok]))
        for binary in (False, True):
            found = one.execute("select m, ms from t where m = %s", (Mood.happy,), binary=binary)
            assert found.fetchall() == [(Mood.happy, [Mood.sad, Mood.ok])]
            found = one.execute("select id from t where m = any(%b)", ([Mood.sad],), binary=binary)
            assert found.fetchall() == [(2,)]


@pytest.mark.parametrize("text", ["", "PREPARE p AS SELECT 1"])
def test_an_enum_is_declared_for_what_takes_no_values(text: str) -> None:
    with serving() as dsn, psycopg.connect(dsn, autocommit=True) as one, WireClient(dsn) as client:
        _execute(one, *_SCRIPT)
        ((oid,),) = _execute(one, "select 'mood'::regtype::oid")
        assert isinstance(oid, int)
        client.send(Parse("", text, (oid,)), Describe(Target.STATEMENT, ""), Sync())
        assert ParameterDescription((oid,)) in client.answers(1)
        client.send(Bind("", "", (), (b"happy",)), Sync())
        assert BindComplete() in client.answers(1)
        client.send(Bind("", "", (), (b"angry",)), Sync())
        assert show(client.answers(1)[0]).startswith("ERROR 22P02")
        client.send(Parse("", text, (99999,)), Describe(Target.STATEMENT, ""), Sync())
        assert show(client.answers(1)[0]).startswith("ERROR 42704")


def test_asyncpg_introspects_an_enum() -> None:
    asyncio.run(_with_asyncpg())


async def _with_asyncpg() -> None:
    async with running() as stack:
        one = await asyncpg.connect(stack.dsn)
        for statement in _SCRIPT:
            await one.execute(statement)
        rows = await one.fetch("select m, ms from t where m = $1", "ok")
        assert [tuple(row) for row in rows] == [("ok", ["sad", "happy"])]
        await one.execute("insert into t values ($1, $2, $3)", 3, "happy", ["ok", None])
        assert await one.fetchval("select ms from t where id = 3") == ["ok", None]
        with pytest.raises(asyncpg.InvalidTextRepresentationError):
            await one.execute("insert into t values ($1, $2)", 4, "bad")
        await one.close()


def test_a_prepared_statement_takes_a_label_that_came_later() -> None:
    with (
        serving() as dsn,
        psycopg.connect(dsn, autocommit=True) as one,
        psycopg.connect(dsn, autocommit=True) as other,
    ):
        _execute(one, *_SCRIPT)
        insert, below = "insert into t values (%s, %s)", "select id from t where m < %s"
        one.execute(insert, (3, "ok"), prepare=True)
        assert one.execute(below, ("ok",), prepare=True).fetchall() == [(2,)]
        _execute(other, "alter type mood add value 'bad' before 'sad'")
        one.execute(insert, (4, "bad"), prepare=True)
        assert sorted(one.execute(below, ("ok",), prepare=True)) == [(2,), (4,)]


def test_after_a_restart_and_in_the_past() -> None:
    stash, store = MemoryStash(), MemoryObjectStore()
    with serving(stash=stash, store=store) as dsn, psycopg.connect(dsn, autocommit=True) as one:
        _execute(one, *_SCRIPT)
        ((before,),) = _execute(one, "select read_ts from meridian.timelines")
        _execute(one, "alter type mood rename value 'ok' to 'fine'")
        _execute(one, "alter type mood add value 'bad' before 'sad'")
        _execute(one, "insert into t values (3, 'bad')")
    with (
        serving(stash=stash.crash(), store=store.crash()) as dsn,
        psycopg.connect(dsn, autocommit=True) as one,
    ):
        assert _execute(one, "select id, m from t order by m, id") == [
            (3, "bad"),
            (2, "sad"),
            (1, "fine"),
        ]
        past = f"select id, m from t order by m desc as of {before}"
        assert _execute(one, past) == [(1, "ok"), (2, "sad")]
        _execute(one, "drop table t", "drop type mood", "create type mood as enum ('x')")


def test_a_table_is_not_made_of_an_enum_that_changes_meanwhile() -> None:
    with (
        serving() as dsn,
        psycopg.connect(dsn) as one,
        psycopg.connect(dsn, autocommit=True) as other,
    ):
        _execute(other, *_SCRIPT, "create type gone as enum ('a')")
        for change, make in (
            ("alter type mood add value 'new'", "create table made (m mood)"),
            ("drop type gone", "create table made (g gone[])"),
            ("alter type mood rename to feeling", "create table made (m mood)"),
        ):
            _execute(one, make)
            _execute(other, change)
            with pytest.raises(errors.SerializationFailure):
                one.commit()
        assert _execute(one, "select count(*) from pg_class where relname = 'made'") == [(0,)]


def test_a_row_is_not_written_by_a_definition_that_is_no_more() -> None:
    with (
        serving(core=WITHOUT_LOCKS) as dsn,
        psycopg.connect(dsn) as one,
        psycopg.connect(dsn, autocommit=True) as other,
    ):
        _execute(other, *_SCRIPT)
        _execute(one, "insert into t values (3, 'ok')")
        _execute(other, "alter type mood rename value 'ok' to 'fine'")
        with pytest.raises(errors.SerializationFailure):
            one.commit()
        _execute(one, "insert into t values (3, 'fine')")
        one.commit()
        assert _execute(one, "select id from t where m = 'fine' order by id") == [(1,), (3,)]


def test_a_domain_holds_after_a_restart_and_for_whoever_writes_meanwhile() -> None:
    stash, store = MemoryStash(), MemoryObjectStore()
    with (
        serving(stash=stash, store=store, core=WITHOUT_LOCKS) as dsn,
        psycopg.connect(dsn) as one,
        psycopg.connect(dsn, autocommit=True) as other,
    ):
        _execute(other, "create domain d as int default 7 check (value > 0)")
        _execute(other, "create table t (v d)")
        _execute(one, "insert into t values (5)")
        _execute(other, "alter domain d add constraint small check (value < 4)")
        with pytest.raises(errors.SerializationFailure):
            one.commit()
        with pytest.raises(errors.CheckViolation) as violation:
            _execute(one, "insert into t values (5)")
        found = violation.value.diag
        assert (found.datatype_name, found.constraint_name) == ("d", "small")
        one.rollback()
        _execute(one, "insert into t values (2)")
        one.commit()
        with pytest.raises(errors.CheckViolation):
            _execute(other, "alter domain d add constraint smaller check (value < 2)")
    with (
        serving(stash=stash.crash(), store=store.crash()) as dsn,
        psycopg.connect(dsn, autocommit=True) as one,
    ):
        with pytest.raises(errors.CheckViolation):
            _execute(one, "insert into t values (default)")
        _execute(one, "alter domain d set default 3")
        assert _execute(one, "insert into t values (default) returning v") == [(3,)]
        with pytest.raises(errors.DependentObjectsStillExist):
            _execute(one, "drop domain d")


def test_an_insert_that_was_bound_before_is_held_to_a_domain() -> None:
    with serving() as dsn, psycopg.connect(dsn, autocommit=True) as one:
        _execute(one, "create domain d as int check (value > 0)", "create table t (v d)")
        for _ in range(3):
            with pytest.raises(errors.CheckViolation):
                _execute(one, "insert into t values (-1)")
        for value in (1, -1, 2, -2):
            try:
                one.execute("insert into t values (%s)", (value,), prepare=True)
            except errors.CheckViolation:
                assert value < 0
            else:
                assert value > 0


def test_copy_is_held_to_a_domain() -> None:
    with serving() as dsn, psycopg.connect(dsn, autocommit=True) as one:
        _execute(one, "create domain d as int check (value > 0)", "create table t (v d)")
        for rows, taken in (("1\n2\n", True), ("1\n-2\n", False)):
            with one.cursor() as cursor:
                try:
                    with cursor.copy("copy t from stdin") as copy:
                        copy.write(rows)
                except errors.CheckViolation:
                    assert not taken
                else:
                    assert taken
        assert _execute(one, "select v from t order by v") == [(1,), (2,)]


def test_a_type_and_a_table_of_one_name_do_not_come_together() -> None:
    with (
        serving() as dsn,
        psycopg.connect(dsn) as one,
        psycopg.connect(dsn, autocommit=True) as other,
    ):
        for mine, theirs in (
            ("create type a as enum ('x')", "create table a (x int)"),
            ("create table b (x int)", "create type b as enum ('x')"),
            ("create view c as select 1 as x", "create type c as enum ('x')"),
        ):
            _execute(one, mine)
            _execute(other, theirs)
            with pytest.raises(errors.SerializationFailure):
                one.commit()


def test_a_name_that_something_else_has_is_an_error_and_no_crash() -> None:
    with serving() as dsn, psycopg.connect(dsn, autocommit=True) as one:
        _execute(one, "create table t (a int)", "create sequence q", "create view v as select 1 x")
        for taken in ("q", "v"):
            with pytest.raises(errors.DuplicateTable):
                _execute(one, f"alter table t rename to {taken}")
        _execute(one, "create schema s", "create sequence s.t", "create view s.v as select 2 x")
        with pytest.raises(errors.DuplicateTable):
            _execute(one, "alter table t set schema s")
        _execute(one, "alter schema s rename to r")
        assert _execute(one, "select nextval('r.t')") == [(1,)]
        assert _execute(one, "select x from r.v") == [(2,)]
