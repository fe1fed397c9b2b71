"""Random batches of drivers, done at once and one run after the other: all answers are equal.

Pipelines of one writing statement, in blocks and outside of them, with values that fail, keys that
come again and definitions that change; and INSERTs of many rows as text.
"""

import asyncio
import os
import random
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

import psycopg
import pytest

from coordinator.execution.context import ExecutionLimits
from coordinator.pgwire.client_codec import encode_frontend
from coordinator.pgwire.messages import (
    BackendMessage,
    Bind,
    Describe,
    Execute,
    FrontendMessage,
    Parse,
    Query,
    Sync,
    Target,
)
from coordinator.session import statement_runner
from tests.session.short.test_short_reads import Alone
from tests.support.connections import all_rows, connected, on_a_loop
from tests.support.stack import running
from tests.support.wire import WireClient

SCRIPTS = int(os.environ.get("SEEDS", "8"))
STEPS = 60

TABLES = (
    "create type mood as enum ('sad', 'ok')",
    "create domain small as int check (value < 100)",
    "create table p (a int primary key, b text unique)",
    "create table t (a int primary key, b bigint, c varchar(3), e numeric(6,2), f mood, g small,"
    " h text unique, check (b < 1000))",
    "create table c (a int primary key, p int references p on delete cascade, n int)",
    "create table own (a int primary key, up int references own)",
    "create table k (a bigint, b text, v int, twice int generated always as (v * 2) stored,"
    " primary key (a, b))",
    "create table s (a serial, b int not null default 3, c timestamptz default now())",
    "create table late (a int unique deferrable initially deferred, b int)",
    "create table part (a int primary key, b int); create unique index on part (b) where b > 2",
    "insert into p values (1, 'x'), (2, 'y')",
)
SHOWN = (
    "select * from p order by a",
    "select * from t order by a",
    "select * from c order by a",
    "select * from own order by a",
    "select * from k order by a, b",
    "select count(*), count(distinct a), sum(b) from s",
    "select * from late order by a, b",
    "select * from part order by a",
)
PREPARED = (
    ("insert into p values ($1, $2)", "nw"),
    ("insert into t (a, b, c, e) values ($1, $2, $3, $4)", "nnwm"),
    ("insert into t (a, f, g, h) values ($1, $2, $3, $4)", ("n", "mood", "n", "w")),
    ("insert into t (a, h) values ($1, $2), ($3, $4)", "nwnw"),
    ("insert into t (a, b) values ($1, $2) on conflict do nothing", "nn"),
    ("insert into t (a, h) values ($1, $2) on conflict (a) do nothing", "nw"),
    (
        "insert into t (a, b) values ($1, $2) on conflict (a) do update set b = t.b + excluded.b"
        " where t.b < 90",
        "nn",
    ),
    ("insert into t (a, h) values ($1, $2) on conflict (h) do update set b = 7", "nw"),
    ("update t set b = b + $1, c = $2 where a = $3", "nwn"),
    ("update t set a = $1 where a = $2", "nn"),
    ("update t set e = e / $1 where a = $2 and b > 1", "nn"),
    ("update t set b = 1 where h = $1", "w"),
    ("delete from t where a = $1", "n"),
    ("insert into c values ($1, $2, 0)", "nn"),
    ("update c set p = $1 where a = $2", "nn"),
    ("delete from p where a = $1", "n"),
    ("insert into own values ($1, $2)", "nn"),
    ("delete from own where a = $1", "n"),
    ("insert into k values ($1, $2, $3)", "nwn"),
    ("update k set v = v + $1 where b = $2 and a = $3", "nwn"),
    ("delete from k where a = $1 and b = $2 returning v", "nw"),
    ("insert into s (b) values ($1)", "n"),
    (
        "insert into t (a, b) values ($1, $2) on conflict (a) do update set b = $3, e = t.e + $2",
        "nnn",
    ),
    ("insert into k values ($1, $2, $3) on conflict (a, b) do update set v = $3 + k.v", "nwn"),
    ("update k set v = $3 + extract(year from now())::int * 0 where a = $1 and b = $2", "nwn"),
    ("insert into late values ($1, $2)", "nn"),
    ("insert into part values ($1, $2)", "nn"),
    ("update part set b = $1 where a = $2", "nn"),
    ("insert into s (b) select a from t where a = $1", "n"),
    ("select a from t where a = $1", "n"),
)
TEXTS = (
    ("insert into t (a, b, c, e) values ", "({n}, {n}, {s}, {m})", ""),
    ('INSERT INTO "t" (a, "f", h) VALUES ', "({n}, '{mood}', '{w}')", ""),
    ("insert into t values ", "({n}, {n}, {s})", " on conflict (a) do update set b = 5;"),
    ("insert into t (a) values ", "({n})", " on conflict do nothing"),
    ("insert into k values", "( {n} ,'{w}', -{n})", ""),
    ("insert into s (b) values ", "({n})", ""),
    ("insert into c values ", "({n}, 1, {n})", ""),
    ("insert into part values ", "({n}, {n}::int)", ""),
)
OTHERS = (
    "alter table t add column x int default 7",
    "alter table t drop column if exists x",
    "alter type mood add value if not exists 'glad'",
    "set default_transaction_isolation = 'read committed'",
    "set default_transaction_isolation = 'serializable'",
    "set constraints all immediate",
    "truncate t",
    "optimize t",
)


class Batches:
    """The messages of a client, in the pieces that it sends."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.pieces: list[tuple[bytes, int]] = []
        for text in TABLES:
            self._add(Query(text))
        for number, (text, _) in enumerate(PREPARED):
            self._add(Parse(f"p{number}", text, ()), Sync())
        chosen = self._random.sample(range(len(PREPARED)), 9)
        texts = self._random.sample(TEXTS, 3)
        for _ in range(STEPS):
            self._step(chosen, texts)

    def _add(self, *messages: FrontendMessage) -> None:
        ready = sum(isinstance(message, Query | Sync) for message in messages)
        self.pieces.append((b"".join(map(encode_frontend, messages)), ready))

    def _step(self, chosen: Sequence[int], texts: Sequence[tuple[str, str, str]]) -> None:
        chance = self._random.random()
        if chance < 0.1:
            self._add(Query(self._random.choice(OTHERS)))
        elif chance < 0.3:
            self._add(Query(self._text(self._random.choice(texts))))
        elif chance < 0.6:
            self._add(*self._pipeline(chosen), Sync())
        else:
            self._add(Query("begin"))
            for _ in range(self._random.randrange(1, 4)):
                if self._random.random() < 0.3:
                    self._add(Query("savepoint s"))
                if self._random.random() < 0.3:
                    self._add(Query(self._text(self._random.choice(texts))))
                self._add(*self._pipeline(chosen), Sync())
                if self._random.random() < 0.3:
                    self._add(Query("rollback to s"))
            self._add(Query(self._random.choice(("commit", "commit", "rollback"))))
        self._add(*map(Query, SHOWN))

    def _pipeline(self, chosen: Sequence[int]) -> Sequence[FrontendMessage]:
        messages: list[FrontendMessage] = []
        for _ in range(self._random.randrange(1, 3)):
            number = self._random.choice(chosen)
            described = self._random.random() < 0.5
            for _ in range(self._random.choice((1, 2, 5, 12))):
                values = tuple([self._value(kind) for kind in PREPARED[number][1]])
                messages.append(Bind("", f"p{number}", (), values, ()))
                if described:
                    messages.append(Describe(Target.PORTAL, ""))
                messages.append(Execute("", self._random.choice((0, 0, 1))))
        return messages

    def _value(self, kind: str) -> bytes | None:
        if self._random.random() < 0.01:
            return self._random.choice((None, b"x", b"99999999999"))
        return self._word(kind).encode()

    def _text(self, text: tuple[str, str, str]) -> str:
        head, row, tail = text
        rows = self._random.choice((1, 3, 12, 20))
        return head + ", ".join([self._filled(row) for _ in range(rows)]) + tail

    def _filled(self, text: str) -> str:
        while "{" in text:
            before, _, rest = text.partition("{")
            word, _, after = rest.partition("}")
            text = f"{before}{self._word(word)}{after}"
        return text

    def _word(self, kind: str) -> str:
        if kind == "n" and self._random.random() < 0.97:
            return str(self._random.randrange(60))
        chosen: Sequence[object] = {
            "n": (0, 99, 100, 999, 2147483647, 2147483648),
            "m": ("1.5", "0.25", "1234.567", "9999.99", "1.50", 3),
            "s": ("'a'", "'b'", "null", "NULL", "'it''s'", "''"),
            "w": ("a", "b", "x", "Ü", "abc", *map(str, range(40))),
            "mood": ("sad", "ok", "glad"),
        }[kind]
        return str(self._random.choice(chosen))


def _answers(dsn: str, script: Batches) -> list[tuple[bytes, list[BackendMessage]]]:
    with WireClient(dsn) as client:
        found: list[tuple[bytes, list[BackendMessage]]] = []
        for piece, ready in script.pieces:
            client.send_bytes(piece)
            found.append((piece, client.answers(ready)))
        return found


def _plain(answers: Sequence[BackendMessage]) -> str:
    """The answers, without the values of sequences and of the clock."""
    return re.sub(
        r"Failing row contains \(\d+, null, \d{4}-[^)]*\)", "(failing row)", repr(answers)
    )


def _counted(patch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many runs were done with others."""
    together = 0
    execute = statement_runner.execute_repeatedly

    async def counted(*given: object) -> object:
        nonlocal together
        done = await execute(*given)  # type: ignore[arg-type]
        together += 1 + len(done.others)
        return done

    patch.setattr(statement_runner, "execute_repeatedly", counted)
    return lambda: together


async def _told(
    script: Batches, *, short: bool
) -> tuple[list[tuple[bytes, list[BackendMessage]]], int]:
    """What the client is told, and how many runs were done with others."""
    limits = ExecutionLimits(short_reads=short, short_writes=short)
    with pytest.MonkeyPatch.context() as patch:
        together = _counted(patch)
        async with running(limits=limits, stash=Alone()) as stack:
            told = await asyncio.to_thread(_answers, stack.dsn, script)
    return told, together()


@pytest.mark.parametrize("seed", range(SCRIPTS))
def test_a_batch_is_answered_the_same(seed: int) -> None:
    @on_a_loop
    async def story() -> None:
        script = Batches(seed)
        general, none = await _told(script, short=False)
        told, some = await _told(script, short=True)
        for one, other in zip(general, told, strict=True):
            assert one[0] == other[0]
            assert _plain(one[1]) == _plain(other[1]), one[0]
        assert none == 0
        assert some > 0

    story()


UPSERTS = [(1, 1), (2, 2), (3, 3), (4, 4)]


@on_a_loop
async def test_what_each_run_gives_to_do_update_is_its_own() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await one.execute("create table u (a int primary key, b int, c timestamptz)")
        await one.execute("insert into u values (1, 0), (2, 0), (3, 0)")
        cursor = one.cursor()
        text = "insert into u values (%s, 0) on conflict (a) do update set b = %s, c = now()"
        await cursor.executemany(text, UPSERTS)
        found = await all_rows(one, "select a, b, c is null from u order by a")
        assert found == [(1, 1, False), (2, 2, False), (3, 3, False), (4, 0, True)]


@on_a_loop
async def test_a_batch_that_waits_for_a_lock_begins_again_with_its_first_run() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await one.execute("create table u (a int primary key, b int, made timestamptz)")
        await one.execute("insert into u values (1, 0), (2, 0), (3, 0)")
        await other.execute("begin")
        await other.execute("update u set b = 100 where a = 2")
        text = (
            "insert into u values (%s, %s, now())"
            " on conflict (a) do update set b = u.b + excluded.b, made = now()"
        )
        async with asyncio.TaskGroup() as tasks:
            cursor = one.cursor()
            waiting = tasks.create_task(cursor.executemany(text, UPSERTS))
            await asyncio.wait([waiting], timeout=0.2)
            assert not waiting.done()
            await other.execute("commit")
        found = await all_rows(one, "select a, b from u order by a")
        assert found == [(1, 1), (2, 102), (3, 3), (4, 4)]


@on_a_loop
async def test_rows_of_text_get_values_of_sequences_and_of_the_clock() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await one.execute(
            "create table u (a serial primary key, b int default 7, c timestamptz default now())"
        )
        for _ in range(3):
            rows = ", ".join(f"({n})" if n % 3 else "(default)" for n in range(40))
            done = await one.execute(f"insert into u (b) values {rows}".encode())
            assert done.statusmessage == "INSERT 0 40"
        cursor = one.cursor()
        await cursor.executemany("insert into u (b) values (%s)", [(n,) for n in range(80)])
        found = await all_rows(
            one, "select min(a), max(a), count(*), count(distinct c), lastval() from u"
        )
        assert found == [(1, 200, 200, 4, 200)]
        assert await all_rows(one, "select b from u where a in (1, 2, 3, 4, 121) order by a") == [
            (7,), (1,), (2,), (7,), (0,),
        ]  # fmt: skip


KEYS = {
    "int2": range(60),
    "int8": range(60),
    "varchar(9)": [f"é{n}" for n in range(60)],
    "uuid": [UUID(int=7_919 * n + 3) for n in range(60)],
    "date": [date(1969, 12, 1) + timedelta(days=n) for n in range(60)],
    "timestamptz": [datetime.fromtimestamp(n - 30 + n / 1e6, UTC) for n in range(60)],
    "bool": (True, False),
}
"""Values by the type of a column of a key."""


@pytest.mark.parametrize("type_", KEYS)
def test_each_run_finds_its_own_row(type_: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In memory, among rows that its block has written, and in files."""

    @on_a_loop
    async def story() -> None:
        together = _counted(monkeypatch)
        values = [(value,) for value in KEYS[type_]]
        async with running() as stack, connected(stack, 1) as (one,):
            await one.execute(
                f"create table v (a int, b {type_}, n int, primary key (b, a))".encode()
            )
            cursor = one.cursor()
            await cursor.executemany(
                "insert into v values (1, %s, 0), (2, %s, 0)", [v * 2 for v in values]
            )
            for rounds in (1, 2):
                async with one.transaction():
                    for _ in range(2):
                        await cursor.executemany(
                            "update v set n = n + 1 where a = 1 and b = %s", values
                        )
                        assert cursor.rowcount == len(values)
                told = await all_rows(one, "select a, n, count(*) from v group by a, n order by a")
                assert told == [(1, 2 * rounds, len(values)), (2, 0, len(values))]
                await one.execute("optimize v")
            await cursor.executemany("delete from v where a = 1 and b = %s", [*values, (None,)])
            assert cursor.rowcount == len(values)
            assert await all_rows(one, "select sum(a), sum(n) from v") == [(2 * len(values), 0)]
            assert together() >= 6 * len(values)

    story()


@on_a_loop
async def test_a_batch_ends_before_it_takes_values_of_sequences(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Runs that the batch has no room for, or whose key comes again, have taken none."""
    async with running() as stack, connected(stack, 1) as (one,):
        await one.execute("create table s (a serial, b int)")
        await one.execute("create table u (a serial, b int unique, c text)")
        together = _counted(monkeypatch)
        many = f"insert into s (b) values {', '.join(['(%s)'] * 128)}".encode()
        upsert = b"insert into u (b, c) values (%s, %s) on conflict (b) do update set c = 'again'"
        async with one.transaction(), one.cursor() as cursor:
            await cursor.executemany(many, [[n] * 128 for n in range(40)])
            assert together() >= 20
            await cursor.executemany(upsert, [(n % 140, "x") for n in range(150)])
        assert await all_rows(one, "select max(a), count(*) from s") == [(5_120, 5_120)]
        assert await all_rows(one, "select max(a), count(*) from u") == [(140, 140)]
        assert await all_rows(one, "select count(*) from u where c = 'again'") == [(10,)]
        assert await all_rows(one, "select nextval('u_a_seq')") == [(151,)]
        assert together() >= 150


@on_a_loop
async def test_what_a_failed_batch_leaves_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs behind an error are skipped up to Sync; those of the next batch are done at once."""
    async with running() as stack, connected(stack, 1) as (one,):
        await one.execute("create table t (a int primary key check (a <> 3))")
        insert = "insert into t values (%s)"
        together = _counted(monkeypatch)
        with pytest.raises(psycopg.errors.CheckViolation):
            async with one.transaction(), one.cursor() as cursor:
                await cursor.executemany(insert, [(n,) for n in range(150)])
        before = together()
        async with one.transaction(), one.cursor() as cursor:
            await cursor.executemany(insert, [(n,) for n in range(10, 150)])
        assert together() - before > 100
