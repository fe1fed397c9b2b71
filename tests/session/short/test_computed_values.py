"""Functions of long values, or with long results, are never computed on the event loop."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from coordinator.execution.context import ExecutionLimits
from tests.support.called_functions import CalledFunctions
from tests.support.connections import Connection, all_rows, connected, on_a_loop
from tests.support.stack import running

TABLES = (
    "create table t (a int primary key, s text, b bytea, j jsonb)",
    "create table l (a int, s text)",
    "create table c (a int primary key, s text check (s ~ 'a'), g text generated always as"
    " (upper(s)) stored)",
)

LONG = "ab" * 50_000
GIVEN = "100000"

OF_STORED = (
    "update t set s = regexp_replace(s, 'a', 'x') where a = 1",
    "update t set s = upper(s) where a = 1",
    "update t set s = s || 'x' where a = 1 returning length(s)",
    "update t set b = decode(encode(b, 'hex'), 'hex') where a = 1",
    "update t set j = jsonb_set(j, '{a}', '1') where a = 1",
    "update t set s = md5(s) where a = 1",
    "update t set s = array_to_string(string_to_array(s, 'b'), 'c') where a = 1",
    "update t set a = a where a = 1 and s like '%a%b%'",
    "update t set s = 'y' where a = 1 returning md5(b)",
    "delete from t where a = 1 and upper(s) = upper(s)",
    "insert into t values (1, 'x') on conflict (a) do update set s = t.s || excluded.s",
    "insert into t values (1, 'x') on conflict (a) do update set s = 'x' where upper(t.s) > 'x'",
    "select upper(s), md5(b) from t where a = 1",
    "select regexp_count(s, 'a') from t where a = 1",
    "select a from t where a = 1 and lower(s) = 'x' for update",
    "select a from t where upper(s) > 'a' order by a for update skip locked limit 1",
    "update t set s = 'z' where a = (select a from t where upper(s) > 'a' order by a"
    " for update skip locked limit 1)",
)

GROWING = (
    "insert into t values (7, repeat('x', {n}))",
    "insert into t values (7, format('%{n}s', 'x'))",
    "insert into t values (7, lpad('x', {n}, 'y'), null, null)",
    "insert into l values (7, repeat('x', {n}))",
    "insert into l values (7, repeat('x', {n})), (8, 'y')",
    "insert into t values (1, 'x') on conflict (a) do update set s = repeat(t.s, 1 + {n} / 100000)",
    "update t set s = repeat('x', {n}) where a = 1",
    "select length(repeat('x', {n}))",
    "select set_config('my.x', repeat('x', {n}), false) is null",
    "execute p(repeat('x', {n}))",
    "insert into c values (1, repeat('a', {n}))",
    "select a from l where s > repeat('x', {n})",
)

OF_GIVEN = (
    ("insert into t values (%s, regexp_replace(%s, 'a', 'x'))", (7, LONG)),
    ("insert into l values (%s, upper(%s))", (7, LONG)),
    ("insert into l values (%s, %s || 'x'), (3, 'y')", (7, LONG)),
    ("update t set s = regexp_replace(%s, 'a', 'x') where a = %s", (LONG, 1)),
    ("insert into t values (%s, 'x') on conflict (a) do update set s = upper(%s)", (1, LONG)),
    ("insert into t values (%s, repeat(%s, %s))", (7, "x", 100_000)),
    ("insert into l values (%s, repeat(%s, %s))", (7, "x", 100_000)),
    ("select md5(%s)", (LONG,)),
    ("insert into c values (%s, %s)", (1, LONG)),
)

BATCHES = (
    ("insert into l values (%s, upper(%s))", ((1, "x"), (2, LONG), (3, "y"))),
    ("insert into t values (%s, regexp_replace(%s, 'a', 'x'))", ((4, "a"), (5, LONG), (6, "b"))),
    ("insert into l values (%s, repeat(%s, %s))", ((1, "x", 2), (2, "x", 100_000), (3, "y", 1))),
    ("update t set s = regexp_replace(%s, 'a', 'x') where a = %s", (("a", 2), (LONG, 1), ("", 3))),
    ("update t set s = upper(s) where a = %s", ((2,), (1,), (3,))),
    (
        "insert into t values (%s, 'x') on conflict (a) do update set s = upper(t.s)",
        ((2,), (1,), (4,)),
    ),
    ("delete from t where a = %s and upper(s) = upper(s)", ((2,), (1,), (3,))),
)
"""Runs of one statement, one of which has a long value."""


async def _filled(connection: Connection) -> None:
    for text in TABLES:
        await connection.execute(text.encode())
    await connection.execute("prepare p(text) as select length($1)")
    await _refilled(connection)


async def _refilled(connection: Connection) -> None:
    await connection.execute("truncate t, l, c")
    # It passes through unchanged, so it may go any way.
    given = (LONG, LONG.encode(), f'{{"k": "{LONG}"}}')
    await connection.execute("insert into t values (1, %s, %s, %s)", given)
    await connection.execute("insert into l values (9, 'x')")


async def _state(connection: Connection) -> Sequence[Any]:
    found: list[Any] = []
    for table in ("t", "l", "c"):
        found += await all_rows(connection, f"select * from {table} order by a")
    return found


@pytest.mark.parametrize("in_block", [False, True], ids=["alone", "in_block"])
@on_a_loop
async def test_no_long_value_is_computed_on_the_loop(
    in_block: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = CalledFunctions(monkeypatch)
    computed: dict[str, tuple[list[str], bool]] = {}
    cases = [(text, None) for text in OF_STORED]
    cases += [(text.format(n=GIVEN), None) for text in GROWING]
    async with running() as stack, connected(stack, 1) as (one,):
        await _filled(one)
        for text, given in [*cases, *OF_GIVEN]:
            called.here.clear()
            called.elsewhere.clear()
            for _ in range(3):  # the short way is taken by statements that are known
                await _refilled(one)
                if in_block:
                    await one.execute("begin")
                await one.execute(text.encode(), given, prepare=given is not None)
                if in_block:
                    await one.execute("commit")
            computed[text] = list(called.here), bool(called.elsewhere)
        wrong = {text: found for text, found in computed.items() if found != ([], True)}
        assert not wrong, wrong


@on_a_loop
async def test_both_ways_do_the_same() -> None:
    async with (
        running() as shortly,
        running(limits=ExecutionLimits(short_writes=False, short_reads=False)) as generally,
        connected(shortly, 1) as (one,),
        connected(generally, 1) as (other,),
    ):
        for connection in (one, other):
            await _filled(connection)
        for text, given in [*[(text, None) for text in OF_STORED], *OF_GIVEN]:
            for _ in range(2):
                answers: list[Any] = []
                for connection in (one, other):
                    await _refilled(connection)
                    told = await connection.execute(text.encode(), given, prepare=given is not None)
                    rows = await told.fetchall() if told.description else None
                    answers.append((told.statusmessage, rows, await _state(connection)))
                assert answers[0] == answers[1], text


@on_a_loop
async def test_no_long_value_of_a_batch_is_computed_on_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And the batch comes to what its runs come to one by one."""
    called = CalledFunctions(monkeypatch)
    async with running() as stack, connected(stack, 1) as (one,):
        await _filled(one)
        for text, sets in BATCHES:
            states: list[Sequence[Any]] = []
            for times in range(3):
                await _refilled(one)
                await one.execute("insert into t values (2, 'u'), (3, 'v')")
                called.here.clear()
                called.elsewhere.clear()
                async with one.transaction(), one.cursor() as cursor:
                    for given in [sets] if times else [(alone,) for alone in sets]:
                        await cursor.executemany(text.encode(), given)
                assert (called.here, bool(called.elsewhere)) == ([], True), text
                states.append(await _state(one))
            assert states[1:] == states[:1] * 2, text


@on_a_loop
async def test_short_values_stay_on_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing goes to a thread: neither long values that no function reads, nor short ones."""
    async with running() as stack, connected(stack, 1) as (one,):
        await _filled(one)

        async def refused(_self: object, _work: object) -> object:
            raise AssertionError("a thread was asked")

        monkeypatch.setattr(type(stack.services.in_process), "apart", refused)
        await one.execute("insert into t values (2, 'x')")
        for _ in range(3):
            await one.execute("update t set j = '{}', s = upper('x') where a = 1")
            await one.execute("update t set s = upper(s) || %s where a = %s", ("y", 2))
            await one.execute("update t set s = regexp_replace(s, 'a', 'b') where a = 2")
            await one.execute("select upper(s), a + 1 from t where a = 2")
            await one.execute("update t set a = a where a = 1 and upper('x') = 'X'")
        assert await all_rows(one, "select s from t where a = 2") == [("XYYy",)]


async def _updated(connection: Connection) -> None:
    await connection.execute("update t set s = regexp_replace(s, 'a', 'x') where a = 1")


@on_a_loop
async def test_another_client_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a long value is computed, held here for as long as the other client needs."""
    async with running() as stack, connected(stack, 2) as (one, other):
        await _filled(one)
        begun, let_go = asyncio.Event(), asyncio.Event()
        in_process = stack.services.in_process
        apart = type(in_process).apart

        async def held(self: Any, work: Any) -> Any:
            begun.set()
            await let_go.wait()
            return await apart(self, work)

        monkeypatch.setattr(type(in_process), "apart", held)
        async with asyncio.TaskGroup() as group:
            group.create_task(_updated(one))
            await asyncio.wait_for(begun.wait(), 60)
            assert await all_rows(other, "select 1") == [(1,)]
            let_go.set()
        found = await all_rows(other, "select left(s, 2) from t where a = 1")
        assert found == [("xb",)]
