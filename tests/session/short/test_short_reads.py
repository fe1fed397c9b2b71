"""Which statements are answered at once, and that nothing tells them from others."""

import asyncio
from dataclasses import fields
from datetime import date

import pytest
from psycopg.errors import StringDataRightTruncation

from coordinator.pgwire.flights import Flight
from coordinator.pgwire.messages import (
    CommandComplete,
    Query,
)
from coordinator.session.short_answers import ShortAnswers
from sql.parser.parse import Statement
from sql.statements.bound import BoundQuery, ParameterizedStatement
from storage.memory import MemoryStash
from tests.session.keys.test_keyed_access import NoEngine
from tests.support.connections import (
    Connection,
    GatedStash,
    all_rows,
    connected,
    on_a_loop,
    waiting,
)
from tests.support.stack import running
from tests.support.wire import WireClient


def test_it_knows_whatever_a_query_or_a_statement_has() -> None:
    """Who adds a field decides in `execution/short_read.py` what it means there (U2)."""
    assert {field.name for field in fields(BoundQuery)} == {
        "plan", "columns", "tables", "as_of", "as_of_at_least", "calls", "locking",
    }  # fmt: skip
    assert {field.name for field in fields(ParameterizedStatement)} == {
        "bound", "parameters", "tag", "uses_now", "rebind", "tells_timestamp", "look_ups", "uses",
        "supplied", "filled", "fails", "read",
    }  # fmt: skip
    assert {field.name for field in fields(Statement)} == {
        "text", "node", "offset", "as_of", "as_of_at_least", "sources", "is_dated", "length",
    }  # fmt: skip


class Alone(MemoryStash):
    """A stash that nobody else can lead: a strict read asks nobody (D4 of `driver.py`)."""

    @property
    def exclusive(self) -> bool:
        """See Stash."""
        return True


class Counted:
    """How many answers were short."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._count = 0
        answer = ShortAnswers.answer

        def counted(short: ShortAnswers, flight: Flight) -> bool:
            done = answer(short, flight)
            self._count += done
            return done

        monkeypatch.setattr(ShortAnswers, "answer", counted)

    def since(self) -> int:
        """Since it was asked last."""
        count, self._count = self._count, 0
        return count


async def _point(connection: Connection, key: int) -> list[tuple[object, ...]]:
    cursor = await connection.execute("select b from t where a = %s", (key,), prepare=True)
    return await cursor.fetchall()


@on_a_loop
async def test_a_read_by_key_sees_what_is_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        running(stash=Alone(), local=NoEngine()) as stack,
        connected(stack, 2) as (one, other),
    ):
        taken = Counted(monkeypatch)
        await one.execute("create table t (a int primary key, b text)")
        await one.execute("set engine = auto")
        for _ in range(3):
            assert await _point(one, 1) == []
        assert taken.since() > 0
        await other.execute("insert into t values (1, 'x')")
        assert await _point(one, 1) == [("x",)]
        await other.execute("update t set b = 'y'")
        assert await _point(one, 1) == [("y",)]
        await other.execute("begin")
        await other.execute("update t set b = 'z'")
        assert await _point(one, 1) == [("y",)]
        await other.execute("commit")
        assert await _point(one, 1) == [("z",)]
        await other.execute("delete from t")
        assert await _point(one, 1) == []
        assert taken.since() == 6


@on_a_loop
async def test_a_block_reads_at_its_own_timestamp(monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        running(stash=Alone(), local=NoEngine()) as stack,
        connected(stack, 2) as (one, other),
    ):
        taken = Counted(monkeypatch)
        await one.execute("create table t (a int primary key, b text)")
        await one.execute("insert into t values (1, 'x')")
        await one.execute("set engine = auto")
        for _ in range(3):
            await _point(one, 1)
        await one.execute("begin")
        assert await _point(one, 1) == [("x",)]
        taken.since()
        await other.execute("update t set b = 'y'")
        assert await _point(one, 1) == [("x",)]
        assert taken.since() == 1
        await one.execute("rollback")
        assert await _point(one, 1) == [("y",)]
        assert taken.since() == 1


@on_a_loop
async def test_a_block_that_got_a_lock_reads_what_is_there_then() -> None:
    async with (
        running(stash=Alone(), local=NoEngine()) as stack,
        connected(stack, 2) as (one, other),
    ):
        await one.execute("create table t (a int primary key, b text)")
        await one.execute("insert into t values (1, 'x'), (2, 'x')")
        await one.execute("set engine = auto")
        for _ in range(3):
            await _point(one, 1)
        await one.execute("begin")
        assert await _point(one, 1) == [("x",)]
        await other.execute("update t set b = 'y' where a = 2")
        await one.execute("select pg_advisory_xact_lock(5)")
        assert await _point(one, 2) == [("y",)]
        await one.execute("commit")


@on_a_loop
async def test_another_definition_is_another_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        running(stash=Alone(), local=NoEngine()) as stack,
        connected(stack, 2) as (one, other),
    ):
        taken = Counted(monkeypatch)
        await one.execute("create table t (a int primary key, b text)")
        await one.execute("insert into t values (1, '7')")
        await one.execute("set engine = auto")
        for _ in range(3):
            assert await _point(one, 1) == [("7",)]
        await other.execute("create schema own")
        await other.execute("create table own.t (a int primary key, b int)")
        await other.execute("insert into own.t values (1, 8)")
        taken.since()
        assert await _point(one, 1) == [("7",)]
        assert await _point(one, 1) == [("7",)]
        assert taken.since() >= 1
        await other.execute("drop table t")
        with pytest.raises(Exception, match="does not exist"):
            await _point(one, 1)


@on_a_loop
async def test_literals_are_read_under_the_table_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        running(stash=Alone(), local=NoEngine()) as stack,
        connected(stack, 2) as (one, other),
    ):
        taken = Counted(monkeypatch)
        await one.execute("create table t (a int primary key, b date)")
        await one.execute("set engine = auto")
        for number in range(4):
            await one.execute(f"insert into t values ({number}, '2020-01-0{number + 1}')")
        for number in range(4):
            found = await all_rows(one, f"select b from t where a = '{number}'")
            assert found == [(date(2020, 1, number + 1),)]
        assert taken.since() > 0
        await other.execute("drop table t")
        await other.execute("create table t (a text primary key, b text)")
        await other.execute("insert into t values ('1', 'one'), ('01', 'other')")
        for _ in range(3):
            assert await all_rows(one, "select b from t where a = '01'") == [("other",)]
            assert await all_rows(one, "select b from t where a = '1'") == [("one",)]


@on_a_loop
async def test_many_at_once_are_answered_in_order() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await one.execute("select 0")
        await one.execute("select 1")
        async with one.pipeline():
            cursors = [await one.execute(f"select {number}") for number in range(300)]
        assert [(await cursor.fetchone()) for cursor in cursors] == [(n,) for n in range(300)]


@on_a_loop
async def test_a_constant_fails_also_if_no_row_asks_for_it() -> None:
    async with running(stash=Alone(), local=NoEngine()) as stack, connected(stack, 1) as (one,):
        await one.execute("create table t (a int primary key, b varchar(3))")
        for number in range(4):
            done = await one.execute(f"update t set b = 'ab{number}' where a = {number}")
            assert done.statusmessage == "UPDATE 0"
        with pytest.raises(StringDataRightTruncation):
            await one.execute("update t set b = 'abcd' where a = 7")


class GatedAlone(Alone, GatedStash):
    """One that writes nothing while its gate is closed."""


@on_a_loop
async def test_nothing_overtakes_its_own_session() -> None:
    """The next statement comes while the one before commits."""
    stash = GatedAlone()
    async with (
        running(stash=stash, local=NoEngine()) as stack,
        connected(stack, 1) as (other,),
    ):
        client = await asyncio.to_thread(WireClient, stack.dsn)
        await other.execute("create table t (a int primary key)")
        for number in range(3):
            client.send(Query("set engine = auto"), Query(f"select a from t where a = {number}"))
            await asyncio.to_thread(client.answers, 2)
        stash.gate.clear()
        client.send(Query("insert into t values (7)"))
        await waiting(stack, other, 1)
        client.send(Query("select a from t where a = 7"))
        for _ in range(5):
            await other.execute("select 1")
        stash.gate.set()
        answers = await asyncio.to_thread(client.answers, 2)
        client.close()
    tags = [answer.tag for answer in answers if isinstance(answer, CommandComplete)]
    assert tags == ["INSERT 0 1", "SELECT 1"]
