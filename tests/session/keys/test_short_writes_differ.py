"""Random scripts of writes by key, with short writes and without: nothing tells the two apart."""

import random
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from coordinator.execution.context import ExecutionLimits
from tests.support.connections import connected, on_a_loop
from tests.support.stack import running

SCRIPTS = 12
STATEMENTS = 60

TABLES = (
    "create table t (a int primary key, n smallint not null, b varchar(4), m numeric(6,2),"
    " u timestamptz)",
    "create table t (a text, n smallint not null, b varchar(4) unique, m numeric(6,2),"
    " u timestamptz, primary key (a, n))",
    "create table t (b varchar(4), a bigint unique, m numeric(6,2), n smallint not null default 3,"
    " u timestamptz)",
)

ALTERATIONS = (
    "alter table t add column if not exists c date",
    "alter table t drop column if exists c",
    "alter table t add check (n < 30000)",
    "alter table t alter b drop default",
    "alter table t alter m type numeric(8,3)",
    "create unique index if not exists by_m on t (m)",
    "drop index if exists by_m",
    "set timezone = 'Europe/Berlin'",
    "set default_transaction_isolation = 'read committed'",
    "set default_transaction_isolation = 'repeatable read'",
    "reset all",
    "optimize t",
)

STATEMENT_TEXTS = (
    "insert into t (a, n, b, m, u) values (%(a)s, %(n)s, %(b)s, %(m)s, '2020-01-01 00:00')",
    "insert into t (a, n, b) values (%(a)s, %(n)s, %(b)s), (%(c)s, %(n)s, null)",
    "insert into t (a, n, b) values (%(a)s, %(n)s, %(b)s) on conflict do nothing",
    "insert into t (a, n, m) values (%(a)s, %(n)s, %(m)s)"
    " on conflict ({key}) do update set m = t.m + excluded.m, u = null where t.m < 5000",
    "insert into t (a, n, b) values (%(a)s, %(n)s, %(b)s), (%(c)s, %(n)s, %(b)s)"
    " on conflict ({key}) do update set b = excluded.b",
    "update t set m = m * %(m)s where {where}",
    "update t set b = b || %(b)s, u = '2021-01-01' where {where}",
    "update t set m = 1 / (m - %(m)s), b = upper(b) where {where}",
    "update t set n = n + %(n)s where {where}",
    "update t set b = %(b)s, m = coalesce(m, %(m)s) where {where} and n < 100",
    "delete from t where {where}",
    "delete from t where {where} and b = %(b)s",
    "select * from t order by a, n, b",
)

KEYS = (
    ("a", "a = %(a)s"),
    ("a, n", "a = %(a)s and n = %(n)s"),
    ("a", "a = %(a)s"),
)


FIRST = (1, 2, 3, 4)
"""Rows that are inserted before all others: from the second on by the short way."""


def _script(rng: random.Random) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
    """A table, and statements with their values; some of them in blocks."""
    at = rng.randrange(len(TABLES))
    key, where = KEYS[at]
    script: list[tuple[str, dict[str, Any]]] = []
    texts = [text.format(key=key, where=where) for text in rng.sample(STATEMENT_TEXTS, 4)]

    def one() -> Any:
        number = rng.choice((*range(1, 7), *range(1, 7), None, 3_000_000_000))
        return str(number) if at == 1 and number is not None else number

    for number in FIRST:
        key_of_row = str(100 + number) if at == 1 else 100 + number
        script.append(("insert into t (a, n) values (%(a)s, 0)", {"a": key_of_row}))
    for _ in range(STATEMENTS):
        if rng.random() < 0.03:
            script.append((rng.choice(ALTERATIONS), {}))
        values = {
            "a": one(),
            "c": one(),
            "n": rng.choice((0, 1, 2, 3, 0, 1, 2, 3, 20_000, 32_767, 40_000, None)),
            "b": rng.choice(("x", "y", "ab", "c", "d", "toolong", "Ü", None)),
            "m": rng.choice((0, 1, 2, 3, 1, 2, 500, 99_999, None)),
        }
        begin = rng.random() < 0.1
        if begin:
            script.append(("begin", {}))
        script.append((rng.choice(texts), values))
        if begin:
            script.append((rng.choice(texts), values))
            script.append((rng.choice(("commit", "rollback")), {}))
    script.append(("select * from t order by a, n, b", {}))
    return TABLES[at], script


async def _told(
    made: str, script: Sequence[tuple[str, dict[str, Any]]], *, short: bool
) -> tuple[list[Any], int]:
    """What a client is told, and how many statements took the short way."""
    told: list[Any] = []
    limits = ExecutionLimits(short_writes=short)
    async with running(limits=limits) as stack, connected(stack, 1) as (one,):
        timelines: Any = stack.services.coordination
        taken, change = 0, timelines.change_by_key

        async def counted(*args: Any) -> Any:
            nonlocal taken
            done = await change(*args)
            taken += 1
            return done

        timelines.change_by_key = counted
        await one.execute(made.encode())
        for text, values in script:
            try:
                cursor = await one.execute(text.encode(), values)
                rows = await cursor.fetchall() if cursor.description else None
                told.append((text, values, cursor.statusmessage, rows))
            except psycopg.Error as error:
                d = error.diag
                told.append(
                    (text, values, d.sqlstate, d.message_primary, d.message_detail,
                     d.message_hint, d.statement_position, d.constraint_name, d.column_name)
                )  # fmt: skip
    return told, taken


@pytest.mark.parametrize("seed", range(SCRIPTS))
def test_a_script_is_answered_the_same(seed: int) -> None:
    @on_a_loop
    async def story() -> None:
        made, script = _script(random.Random(seed))
        general, none = await _told(made, script, short=False)
        short, taken = await _told(made, script, short=True)
        for one, other in zip(general, short, strict=True):
            assert one == other
        assert none == 0
        assert taken >= len(FIRST) - 1

    story()
