"""Random batches of drivers, done at once and one run after the other: all answers are equal.

Pipelines of one writing statement, in blocks and outside of them, with values that fail, keys that
come again and definitions that change; and INSERTs of many rows as text.
"""

import asyncio
import os
import random
import re
from collections.abc import Sequence

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
from tests.support.connections import on_a_loop
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


async def _told(
    script: Batches, *, short: bool
) -> tuple[list[tuple[bytes, list[BackendMessage]]], int]:
    """What the client is told, and how many runs were done with others."""
    together = 0
    execute = statement_runner.execute_repeatedly

    async def counted(*given: object) -> object:
        nonlocal together
        done = await execute(*given)  # type: ignore[arg-type]
        together += 1 + len(done.others)
        return done

    limits = ExecutionLimits(short_reads=short, short_writes=short)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statement_runner, "execute_repeatedly", counted)
        async with running(limits=limits, stash=Alone()) as stack:
            told = await asyncio.to_thread(_answers, stack.dsn, script)
    return told, together


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
        assert some > 20

    story()
