"""Random scripts, with short reads and templates and without: every byte of the answers is equal.

Texts differ in literals, so that templates are made and used; statements are prepared, and sent as
drivers send them, or many in one string; definitions and settings change in between.
"""

import asyncio
import io
import os
import random
import re
from collections.abc import Sequence

import pyarrow.parquet as pq
import pytest

from compute.reference.executor import ReferenceExecutor
from coordinator.execution.context import ExecutionLimits
from coordinator.pgwire.client_codec import encode_frontend
from coordinator.pgwire.flights import Flight
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
from coordinator.session.short_answers import ShortAnswers
from coordinator.session.short_commits import CommitFlight, ShortCommits
from storage.memory import MemoryObjectStore
from tests.session.short.test_short_reads import Alone
from tests.support.connections import on_a_loop
from tests.support.stack import running
from tests.support.wire import WireClient

SCRIPTS = int(os.environ.get("SEEDS", "10"))
STEPS = 120

TABLES = (
    "create type mood as enum ('sad', 'ok')",
    "create domain small as int check (value < 100)",
    "create table t (a int primary key, b bigint, c varchar(3), d date, e numeric(6,2), f mood,"
    " g small, h text unique, i smallint, j timestamptz)",
    "create table k (a bigint, b text, c bpchar(4), primary key (a, b))",
    "create table s (a serial, b int default 3, c timestamptz default now())",
    "create table l (a int not null, b varchar(3), c date default '2020-01-01')",
    "create schema other",
    "create table other.t (a text primary key, b int)",
)

TEXTS = (
    "select {n}",
    "select {n}, '{w}', {m};",
    "select '{w}'::text, {n} + {n}",
    "select {n} / {z}",
    "select {n}::smallint, '{n}'::int4",
    "select '{w}' like '{w}%', upper('{w}')",
    "select '{day}'::date, date '{day}'",
    "select a, b, c, d, e, f, g, h, i, j from t where a = {n}",
    "select * from t where a = '{n}'",
    "select b, '{w}' from t where h = '{w}'",
    "select * from k where a = {n} and b = '{w}'",
    "select a from t where a = {n} and b > {z}",
    "select count(*) from t where a < {n}",
    "select a from t order by {z}",
    "select a from t where a = {n} limit {z}",
    "select sum(b), {n} from t group by 2",
    "select case when a = {n} then '{w}' end from t where a = {n}",
    "insert into t (a, b, c, d, e) values ({n}, {n}, '{w}', '{day}', {m})",
    "insert into t (a, f, g, h) values ({n}, '{mood}', {n}, '{w}')",
    "insert into t (a, i, j) values ({n}, {big}, '{day} 10:00')",
    "insert into t (a, b) values ({n}, {n}), ({z}, {big}) on conflict do nothing",
    "insert into t (a, h) values ({n}, '{w}') on conflict (a) do update set h = '{w}', b = {big}",
    "insert into k values ({n}, '{w}', '{w}') returning a, b || '{w}'",
    "insert into s (b) values ({n}), ({z}) returning a, b",
    "insert into s values ({n}, {z}, '{day}')",
    "insert into s (b) values ({n}) returning a, b + {z}, b / {z}",
    "insert into s (b, c) values ({n}, now() - '{n} days'::interval)",
    "insert into s (b) values (nextval('s_a_seq') + {n}), ({z}) returning a, b",
    "update s set c = now(), b = {n} where a = {z} returning a, b",
    "update k set c = '{w}' || {n} where a = {n} and b = '{w}' returning *",
    "insert into k values ({n}, '{w}') on conflict (a, b) do update set c = '{w}' returning c, a",
    "insert into l values ({n}, '{w}', '{day}')",
    "insert into l (a, b) values ({n}, '{w}'), ({z}, '{w}')",
    "select a, b, count(*) from l where a = {n} group by a, b order by a, b",
    "select currval('s_a_seq'), lastval(), {n}",
    "update t set b = b + {n}, c = '{w}' where a = {n}",
    "update t set e = {m} where h = '{w}'",
    "delete from t where a = {n}",
    "delete from k where a = {n} and b = '{w}' returning *",
    "select nothing from t where a = {n}",
    "select a from t where c = {n}",
    "select 'it''s {w}' where {n} = {n}",
    "select -{n}, - {m}, {n}.{z}",
    "select interval '{n} days', e'{w}', u&'{w}', b'1', x'{n}'",
    'select "a" from t where a = {n} -- {w}',
    "select a from t where a in ({n}, {z}) order by a",
    "select 1 union select {n} order by 1",
    "select current_setting('work_mem'), {n}",
    "select substring('{w}' from {z} for {z})",
    "select '{n}' = '0{n}', {n} = '{n}', {big}, {big}{n}",
    "select {n}, {n} from t where a = {n} and a = {z}",
)

PREPARED = (
    ("insert into s (b) values ($1) returning a, b", "n"),
    ("insert into k values ($1, $2, 'x') returning c, a, b || '!'", "nw"),
    ("update k set c = $2 where a = $1 and b = $2 returning *", "nw"),
    ("delete from k where a = $1 and b = $2 returning a, c", "nw"),
    ("insert into l (a, b) values ($1, $2)", "nw"),
    ("insert into t (a, b, h) values ($1, $1, $2)", "nw"),
    ("insert into t (a, b) values ($1, 1) on conflict (a) do update set b = t.b + 1", "n"),
    ("update t set b = b + 1, c = $2 where a = $1", "nw"),
    ("delete from t where a = $1", "n"),
    ("begin", ""),
    ("commit", ""),
    ("rollback work", ""),
    ("select $1::int, $2::text", "nw"),
    ("select a, b, c, d, e, f, g, h, i, j from t where a = $1", "n"),
    ("select b from t where h = $1 and a > $2", "wn"),
    ("select * from k where a = $1 and b = $2", "nw"),
    ("select $1::numeric / $2", "nn"),
    ("select a from t where a = $1 for update", "n"),
    ("select a, now() is null from t where a = $1", "n"),
    ("values ($1::int, 2), (3, 4)", "n"),
    ("select a from t where a = $1 and f = $2", ("n", "mood")),
)

OTHERS = (
    "alter table t add column x int default 7",
    "alter table t drop column x",
    "alter table t alter c type varchar(5)",
    "alter table t alter b type numeric",
    "alter table t alter b type bigint using b::bigint",
    "alter type mood add value if not exists 'glad'",
    "alter type mood rename value 'sad' to 'blue'",
    "set search_path = other, public",
    "set search_path = public",
    "set timezone = 'America/New_York'",
    "set datestyle = 'german'",
    "set extra_float_digits = 0",
    "reset all",
    "set default_transaction_isolation = 'read committed'",
    "set default_transaction_read_only = on",
    "set statement_timeout = '1h'",
    "set client_encoding = 'latin1'",
    "create temporary table t (a int primary key, b text)",
    "drop table if exists pg_temp.t",
    "begin",
    "commit",
    "rollback",
    "savepoint s",
    "rollback to s",
    "discard plans",
    "optimize t",
)


class Script:
    """The messages of a client, in the pieces that it sends."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.pieces: list[tuple[bytes, int]] = []
        for text in TABLES:
            self._add(Query(text))
        for number, (text, _) in enumerate(PREPARED):
            self._add(Parse(f"p{number}", text, ()), Sync())
        for number in range(4):
            self._add(Query(f"select {number}"))
        texts = self._random.sample(TEXTS, 9)
        for _ in range(STEPS):
            self._step(texts)

    def _add(self, *messages: FrontendMessage) -> None:
        ready = sum(isinstance(message, Query | Sync) for message in messages)
        self.pieces.append((b"".join(map(encode_frontend, messages)), ready))

    def _step(self, texts: Sequence[str]) -> None:
        chance = self._random.random()
        if chance < 0.06:
            # Otherwise most of a script is sent to a transaction that has failed.
            self._add(Query("rollback"))
        elif chance < 0.14:
            self._add(Query("set engine = auto"), Query(self._random.choice(OTHERS)))
        elif chance < 0.5:
            self._add(Query(self._filled(self._random.choice(texts))))
        elif chance < 0.55:
            self._add(*[Query(self._filled(self._random.choice(texts))) for _ in range(4)])
        elif chance < 0.62:
            self._add(Query(self._string(texts)))
        elif chance < 0.9:
            self._add(*self._flight())
        else:
            self._add(*self._flight()[:-1], *self._flight())

    def _string(self, texts: Sequence[str]) -> str:
        """Many statements, sometimes with the parts of a block among them."""
        some = self._random.sample(texts, 3)
        chosen = [self._random.choice(some) for _ in range(self._random.randrange(2, 7))]
        if self._random.random() < 0.3:
            place = self._random.randrange(len(chosen))
            chosen.insert(place, self._random.choice(("begin", "commit", "rollback", *OTHERS)))
        return "\n; ".join(map(self._filled, chosen))

    def _flight(self) -> Sequence[FrontendMessage]:
        number = self._random.randrange(len(PREPARED))
        values = tuple([self._value(kind) for kind in PREPARED[number][1]])
        formats = self._random.choice(((), (), (0,), (1,), (1, 0)))
        described = (Describe(Target.PORTAL, ""),) if self._random.random() < 0.5 else ()
        portal = self._random.choice(("", "", "", "named"))
        if portal:
            described = ()
        return (
            Bind(portal, f"p{number}", (), values, formats),
            *described,
            Execute(portal, self._random.choice((0, 0, 0, 1))),
            Sync(),
        )

    def _value(self, kind: str) -> bytes | None:
        if self._random.random() < 0.06:
            return self._random.choice((None, b"x", b"", b"99999999999"))
        return self._filled("{" + kind + "}").encode()

    def _filled(self, text: str) -> str:
        while "{" in text:
            before, _, rest = text.partition("{")
            word, _, after = rest.partition("}")
            text = f"{before}{self._word(word)}{after}"
        return text

    def _word(self, kind: str) -> str:
        chosen: Sequence[object] = {
            "n": (0, 1, 2, 3, 4, 5, 99, 100, 2147483647, 2147483648),
            "z": (0, 1, 2),
            "m": ("1.5", "0.25", "1234.567", "99999.99", "1.50"),
            "big": (70_000, 9_223_372_036_854_775_807, 9_999_999_999_999_999_999),
            "w": ("a", "b", "abcd", "", "Ü", "it''s", "x\\y", "null"),
            "day": ("2020-01-31", "2020-02-30", "today", "1.2.2020", "infinity", "x"),
            "mood": ("sad", "blue", "ok", "glad", "none"),
        }[kind]
        return str(self._random.choice(chosen))


def _answers(dsn: str, script: Script) -> list[tuple[bytes, list[BackendMessage]]]:
    with WireClient(dsn) as client:
        found: list[tuple[bytes, list[BackendMessage]]] = []
        for piece, ready in script.pieces:
            client.send_bytes(piece)
            found.append((piece, client.answers(ready)))
        return found


def _plain(answers: Sequence[BackendMessage]) -> str:
    """The answers, without what is another one in every server."""
    return re.sub(r"pg_temp_\w+|\b1[78]\d{14}\b", "(other)", repr(answers))


async def _told(
    script: Script, *, short: bool
) -> tuple[list[tuple[bytes, list[BackendMessage]]], int]:
    """What the client is told, and how many answers were short."""
    short_ones = 0
    answer, answer_commit = ShortAnswers.answer, ShortCommits.answer
    finish = ShortCommits.finish

    def counted(self: ShortAnswers, flight: Flight) -> bool:
        nonlocal short_ones
        done = answer(self, flight)
        short_ones += done
        return done

    def counted_finish(self: ShortCommits, flight: CommitFlight) -> bool:
        nonlocal short_ones
        done = finish(self, flight)
        short_ones += done
        return done

    async def counted_commit(self: ShortCommits, flight: CommitFlight) -> None:
        nonlocal short_ones
        await answer_commit(self, flight)
        short_ones += not flight.is_left

    limits = ExecutionLimits(short_reads=short)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ShortAnswers, "answer", counted)
        patch.setattr(ShortCommits, "answer", counted_commit)
        patch.setattr(ShortCommits, "finish", counted_finish)
        store = MemoryObjectStore()
        local = ReferenceExecutor(
            lambda shard, file: pq.read_table(io.BytesIO(store.peek(f"{shard}/{file.name}")))
        )
        async with running(limits=limits, stash=Alone(), store=store, local=local) as stack:
            told = await asyncio.to_thread(_answers, stack.dsn, script)
    return told, short_ones


@pytest.mark.parametrize("seed", range(SCRIPTS))
def test_a_script_is_answered_the_same(seed: int) -> None:
    @on_a_loop
    async def story() -> None:
        script = Script(seed)
        general, none = await _told(script, short=False)
        told, some = await _told(script, short=True)
        for one, other in zip(general, told, strict=True):
            assert one[0] == other[0]
            assert _plain(one[1]) == _plain(other[1]), one[0]
        assert none == 0
        assert some > 0

    story()
