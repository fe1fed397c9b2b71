"""Tables store no date or time after the year 9999; queries compute them."""

import datetime
from collections.abc import Sequence

import pytest
from psycopg import errors

from coordinator.execution.dml import last_year
from tests.support.connections import Connection, all_rows, connected, on_a_loop
from tests.support.stack import running

LAST = "'9999-12-31 23:59:59.999999'"
LATER = "'10000-01-01'"

WRITES: Sequence[tuple[str, str]] = (
    ("insert into d values (1, {})", "date"),
    ("insert into d select 1, d from later", "date"),
    ("insert into d values (1, date '9999-12-31' + 1)", "date"),
    ("insert into keyed values (2, {})", "timestamp without time zone"),
    ("insert into keyed values (1, {}) on conflict (id) do update set t = excluded.t", ""),
    ("update keyed set t = {} where id = 1", "timestamp without time zone"),
    ("update d set d = {}", "date"),
    ("insert into z values ({}::timestamptz)", "timestamp with time zone"),
    ("insert into a values (array[date '2020-01-01', {}])", "date"),
    ("create table n as select d from later", "date"),
    ("alter table d alter v type date using {}", "date"),
    ("merge into d using (values (1)) s(v) on false when not matched then insert values (1, {})",
     "date"),
)  # fmt: skip


async def tables(connection: Connection) -> None:
    await connection.execute("set timezone = 'UTC'")
    for statement in (
        "create table d (v int, d date)",
        "create table keyed (id int primary key, t timestamp)",
        "create table z (t timestamptz)",
        "create table a (a date[])",
        f"create view later as select date {LATER} as d",
        "insert into d values (1, '9999-12-31')",
        f"insert into keyed values (1, {LAST})",
        f"insert into z values ({LAST})",
        "insert into a values (array[date '9999-12-31', null]), (null), ('{}')",
    ):
        await connection.execute(statement.encode())


@on_a_loop
async def test_no_write_stores_a_later_one() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await tables(one)
        for _ in range(2):  # the second time a statement is known, and may be short
            for text, type_ in WRITES:
                with pytest.raises(errors.DatetimeFieldOverflow, match=f"^{type_}.* out of range"):
                    await one.execute(text.format(LATER).encode())
        with pytest.raises(errors.DatetimeFieldOverflow):
            async with one.cursor().copy("copy d from stdin") as copy:
                await copy.write("1\t10000-01-01\n")
        assert await all_rows(one, "select d::text from d") == [("9999-12-31",)]
        assert await all_rows(one, "select t::text from keyed") == [(LAST.strip("'"),)]
        assert await all_rows(one, "select d::text from later") == [("10000-01-01",)]


@on_a_loop
async def test_what_is_stored_already_stays_readable(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        with monkeypatch.context() as before:
            before.setattr(last_year, "_LAST", {})
            await one.execute("create table d (v int, d date)")
            await one.execute(f"insert into d values (1, {LATER}), (2, '2020-01-01')".encode())
        assert await all_rows(one, "select d::text from d order by v") == [
            ("10000-01-01",), ("2020-01-01",)
        ]  # fmt: skip
        assert await all_rows(one, f"select v from d where d = {LATER}") == [(1,)]
        await one.execute("delete from d where v = 1")
        assert await all_rows(one, "select d from d") == [(datetime.date(2020, 1, 1),)]
