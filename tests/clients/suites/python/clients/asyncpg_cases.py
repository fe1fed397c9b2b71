"""asyncpg."""

import asyncio
import datetime
import decimal
import io
import json
import uuid
from typing import Any

import asyncpg
from cases import Cases, address, fails, same, url

cases = Cases("asyncpg", asyncpg.__version__)


async def _connect(**options: Any) -> Any:
    return await asyncpg.connect(url(), **options)


async def _table(name: str, columns: str) -> Any:
    """A connection, and a new table."""
    connection = await _connect()
    await connection.execute(f"drop table if exists {name} cascade")
    await connection.execute(f"create table {name} ({columns})")
    return connection


@cases.case
async def connect_in_every_form() -> None:
    at = address()
    parts: dict[str, Any] = {name: at[name] for name in ("host", "user", "database")}
    for connection in (
        await asyncpg.connect(url()),
        await asyncpg.connect(),
        await asyncpg.connect(**parts, port=int(at["port"]), timeout=20),
        await asyncpg.connect(url(), server_settings={"application_name": "suite"}),
    ):
        same(await connection.fetchval("select 1"), 1)
        same(connection.get_server_version().major, 18)
        await connection.close()


VALUES: tuple[tuple[str, Any], ...] = (
    ("int2", -3), ("int4", 70000), ("int8", 1 << 40), ("float4", 0.5), ("float8", 1.25),
    ("numeric", decimal.Decimal("12345678901234567890.125")), ("bool", False),
    ("text", "ü'\\\n"), ("varchar(5)", "abc"), ("char(3)", "a  "), ("bytea", b"\0\xff"),
    ("date", datetime.date(2024, 2, 29)), ("time", datetime.time(1, 2, 3, 4)),
    ("timetz", datetime.time(1, 2, 3, 4, datetime.timezone(datetime.timedelta(hours=2)))),
    ("timestamp", datetime.datetime(2024, 1, 1, 2, 3, 4, 5)),
    ("timestamptz", datetime.datetime(2024, 1, 1, 2, 3, 4, 5, datetime.UTC)),
    ("interval", datetime.timedelta(days=5, seconds=3)), ("uuid", uuid.UUID(int=77)),
    ("json", '{"a": 1}'), ("jsonb", '{"a": [1, null]}'), ("int4[]", [1, None, 3]),
    ("text[]", ["a", 'b"', None]), ("uuid[]", [uuid.UUID(int=1)]), ("bool[]", [True, None]),
    ("oid", 42), ("name", "public"), ("\"char\"", b"x"),
)  # fmt: skip


@cases.case
async def values_round_trip() -> None:
    connection = await _connect()
    for kind, value in VALUES:
        same((kind, await connection.fetchval(f"select $1::{kind}", value)), (kind, value))
        same(await connection.fetchval(f"select $1::{kind}", None), None)
    await connection.close()


@cases.case
async def values_round_trip_through_a_table() -> None:
    kinds = [(kind, value) for kind, value in VALUES if kind not in ("oid", "name", '"char"')]
    columns = ", ".join(f"c{i} {kind}" for i, (kind, _) in enumerate(kinds))
    connection = await _table("ap_values", columns)
    marks = ", ".join(f"${i + 1}" for i in range(len(kinds)))
    row = tuple(value for _, value in kinds)
    await connection.execute(f"insert into ap_values values ({marks})", *row)
    same(tuple(await connection.fetchrow("select * from ap_values")), row)
    await connection.close()


@cases.case
async def arrays_needs_several_dimensions() -> None:
    connection = await _connect()
    same(await connection.fetchval("select $1::int[]", [[1, 2], [3, 4]]), [[1, 2], [3, 4]])
    await connection.close()


@cases.case
async def numbers_are_decimals() -> None:
    connection = await _connect()
    for text in ("1" * 20 + ".125", "-0.000001", "0", "7E+10"):
        value = decimal.Decimal(text)
        same(await connection.fetchval("select $1::numeric", value), value)
    await connection.close()


@cases.case
async def numbers_of_any_length_needs_long_numerics() -> None:
    connection = await _connect()
    value = decimal.Decimal("1" * 60 + ".125")
    same(await connection.fetchval("select $1::numeric", value), value)
    await connection.close()


@cases.case
async def values_of_record_type() -> None:
    connection = await _connect()
    same(tuple(await connection.fetchval("select row(1, 'x', null)")), (1, "x", None))
    await connection.close()


@cases.case
async def records_have_names() -> None:
    connection = await _connect()
    row = await connection.fetchrow("select 1 as a, 'x' as b")
    same((row["a"], row[1], dict(row), list(row.keys())), (1, "x", {"a": 1, "b": "x"}, ["a", "b"]))
    await connection.close()


@cases.case
async def statements_are_prepared() -> None:
    connection = await _connect()
    statement = await connection.prepare("select $1::int + 1 as n, $2::text as t")
    same([p.name for p in statement.get_parameters()], ["int4", "text"])
    same(
        [(a.name, a.type.name) for a in statement.get_attributes()], [("n", "int4"), ("t", "text")]
    )
    same([tuple(row) for row in await statement.fetch(1, "x")], [(2, "x")])
    same(statement.get_statusmsg(), "SELECT 1")
    plan = await statement.explain(1, "x")
    assert plan, "a plan has a node"
    await connection.close()


@cases.case
async def many_rows_at_once() -> None:
    connection = await _table("ap_many", "id int primary key, v text")
    await connection.executemany(
        "insert into ap_many values ($1, $2)", [(i, str(i)) for i in range(1000)]
    )
    same(await connection.fetchval("select count(*) from ap_many"), 1000)
    with fails("23505", asyncpg.UniqueViolationError):
        await connection.executemany("insert into ap_many values ($1, $2)", [(2000, ""), (1, "")])
    same(await connection.fetchval("select count(*) from ap_many"), 1000)
    found = await connection.fetchmany(
        "insert into ap_many values ($1, $2) returning id", [(3000, "a"), (3001, "b")]
    )
    same([row["id"] for row in found], [3000, 3001])
    await connection.close()


@cases.case
async def copy_records_and_files() -> None:
    connection = await _table("ap_copy", "id int, v text, n numeric, at timestamptz")
    at = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    rows = [(i, f"v{i}", decimal.Decimal(i), at) for i in range(500)]
    same(await connection.copy_records_to_table("ap_copy", records=rows), "COPY 500")
    out = io.BytesIO()
    query = "select id, v from ap_copy where id < $1 order by id"
    await connection.copy_from_query(query, 2, output=out, format="csv", header=True)
    same(out.getvalue(), b"id,v\n0,v0\n1,v1\n")
    out = io.BytesIO()
    await connection.copy_from_table("ap_copy", output=out, format="binary")
    await connection.execute("truncate ap_copy")
    source = io.BytesIO(out.getvalue())
    same(await connection.copy_to_table("ap_copy", source=source, format="binary"), "COPY 500")
    source = io.BytesIO(b"7;x\n")
    await connection.copy_to_table(
        "ap_copy", source=source, columns=["id", "v"], format="csv", delimiter=";"
    )
    same(await connection.fetchval("select count(*) from ap_copy"), 501)
    await connection.close()


@cases.case
async def transactions_nest() -> None:
    connection = await _table("ap_tx", "id int primary key")
    async with connection.transaction():
        await connection.execute("insert into ap_tx values (1)")
        with fails("23505", asyncpg.UniqueViolationError):
            async with connection.transaction():
                await connection.execute("insert into ap_tx values (2), (1)")
        await connection.execute("insert into ap_tx values (3)")
    found = await connection.fetch("select id from ap_tx order by id")
    same([row[0] for row in found], [1, 3])
    await connection.close()


@cases.case
async def levels_of_isolation() -> None:
    connection = await _connect()
    for level in ("serializable", "repeatable_read", "read_committed"):
        async with connection.transaction(isolation=level, readonly=True):
            shown = await connection.fetchval("show transaction_isolation")
            same(shown, level.replace("_", " "))
            same(await connection.fetchval("show transaction_read_only"), "on")
    await connection.close()


@cases.case
async def cursors_iterate() -> None:
    connection = await _connect()
    async with connection.transaction():
        total = 0
        async for row in connection.cursor("select generate_series(1, $1::int)", 500, prefetch=50):
            total += row[0]
        same(total, 125250)
        cursor = await connection.cursor("select generate_series(1, 10)")
        same(await cursor.forward(3), 3)
        same([row[0] for row in await cursor.fetch(2)], [4, 5])
        same((await cursor.fetchrow())[0], 6)
    await connection.close()


@cases.case
async def own_codecs() -> None:
    connection = await _connect()
    await connection.set_type_codec(
        "jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog"
    )
    same(await connection.fetchval("select $1::jsonb", {"a": [1]}), {"a": [1]})
    await connection.set_type_codec(
        "numeric", encoder=str, decoder=float, schema="pg_catalog", format="text"
    )
    same(await connection.fetchval("select 1.5::numeric"), 1.5)
    await connection.close()


@cases.case
async def enums_and_their_arrays() -> None:
    connection = await _connect()
    await connection.execute("drop table if exists ap_mood")
    await connection.execute("drop type if exists ap_moods")
    await connection.execute("create type ap_moods as enum ('sad', 'glad')")
    await connection.execute("create table ap_mood (m ap_moods, a ap_moods[])")
    await connection.execute("insert into ap_mood values ($1, $2)", "glad", ["sad", None])
    same(tuple(await connection.fetchrow("select m, a from ap_mood")), ("glad", ["sad", None]))
    with fails("22P02", asyncpg.InvalidTextRepresentationError):
        await connection.execute("insert into ap_mood values ($1)", "angry")
    await connection.close()


@cases.case
async def composites_needs_composite_types() -> None:
    connection = await _connect()
    await connection.execute("drop type if exists ap_card")
    await connection.execute("create type ap_card as (value int, suit text)")
    same(tuple(await connection.fetchval("select $1::ap_card", (8, "hearts"))), (8, "hearts"))
    await connection.close()


@cases.case
async def domains_are_their_base() -> None:
    connection = await _connect()
    await connection.execute("drop domain if exists ap_positive cascade")
    await connection.execute("create domain ap_positive as int check (value > 0)")
    same(await connection.fetchval("select $1::ap_positive", 3), 3)
    with fails("23514", asyncpg.CheckViolationError):
        await connection.fetchval("select $1::ap_positive", -3)
    await connection.close()


@cases.case
async def types_are_looked_up_in_the_catalog() -> None:
    connection = await _connect()
    for name in ("pg_index", "pg_constraint", "pg_namespace", "pg_database"):
        rows = await connection.fetch(f"select * from pg_catalog.{name} limit 5")
        assert rows is not None
    await connection.close()


@cases.case
async def notifications() -> None:
    one, other = await _connect(), await _connect()
    seen: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
    await one.add_listener("ap_channel", lambda _c, _p, name, load: seen.put_nowait((name, load)))
    await other.execute("notify ap_channel, 'hello'")
    same(await asyncio.wait_for(seen.get(), 10), ("ap_channel", "hello"))
    await one.close()
    await other.close()


@cases.case
async def notices_reach_a_listener() -> None:
    connection = await _connect()
    seen: list[str] = []
    connection.add_log_listener(lambda _, message: seen.append(message.message))
    await connection.execute("drop table if exists ap_not_there")
    await asyncio.sleep(0)
    same(seen, ['table "ap_not_there" does not exist, skipping'])
    await connection.close()


@cases.case
async def a_query_runs_out_of_time() -> None:
    connection = await _connect()
    try:
        await connection.fetch("select pg_sleep(20)", timeout=0.3)
        raise AssertionError("it ended")
    except TimeoutError:
        pass
    same(await connection.fetchval("select 1"), 1)
    await connection.close()


@cases.case
async def errors_name_what_they_are_about() -> None:
    connection = await _table("ap_err", "id int primary key, n int not null")
    await connection.execute("insert into ap_err values (1, 1)")
    with fails("23505", asyncpg.UniqueViolationError) as found:
        await connection.execute("insert into ap_err values (1, 1)")
    error: Any = found[0]
    same((error.constraint_name, error.table_name), ("ap_err_pkey", "ap_err"))
    same(error.detail, "Key (id)=(1) already exists.")
    with fails("23502", asyncpg.NotNullViolationError) as found:
        await connection.execute("insert into ap_err values (2, null)")
    same(found[0].column_name, "n")  # type: ignore[attr-defined]
    with fails("42601", asyncpg.PostgresSyntaxError) as found:
        await connection.fetch("select 1 from from")
    same(found[0].position, "15")  # type: ignore[attr-defined]
    await connection.close()


@cases.case
async def a_pool_resets_connections() -> None:
    async with asyncpg.create_pool(url(), min_size=1, max_size=3) as pool:
        async with pool.acquire() as connection:
            await connection.execute("set application_name = 'changed'")
        same(await pool.fetchval("show application_name") == "changed", False)

        async def work(number: int) -> int:
            async with pool.acquire() as connection, connection.transaction():
                return int(await connection.fetchval("select $1::int", number))

        same(await asyncio.gather(*map(work, range(9))), list(range(9)))


@cases.case
async def lists_instead_of_in() -> None:
    connection = await _table("ap_any", "id int, v text")
    await connection.execute("insert into ap_any select i, i from generate_series(1, 9) i")
    rows = await connection.fetch("select id from ap_any where v = any($1::text[])", ["2", "3"])
    same(sorted(row[0] for row in rows), [2, 3])
    insert = "insert into ap_any select * from unnest($1::int[], $2::text[]) returning id"
    same([row[0] for row in await connection.fetch(insert, [20, 21], ["a", "b"])], [20, 21])
    await connection.close()


@cases.case
async def upserts_return_rows() -> None:
    connection = await _table("ap_up", "id int primary key, n int")
    statement = """insert into ap_up values ($1, $2) on conflict (id)
        do update set n = ap_up.n + excluded.n returning n"""
    same(await connection.fetchval(statement, 1, 10), 10)
    same(await connection.fetchval(statement, 1, 5), 15)
    same(await connection.execute("delete from ap_up"), "DELETE 1")
    await connection.close()


@cases.case
async def a_plan_follows_a_changed_table() -> None:
    connection = await _table("ap_alter", "id int")
    await connection.execute("insert into ap_alter values (1)")
    same(tuple(await connection.fetchrow("select * from ap_alter")), (1,))
    await connection.execute("alter table ap_alter add column v text default 'x'")
    same(tuple(await connection.fetchrow("select * from ap_alter")), (1, "x"))
    await connection.close()


if __name__ == "__main__":
    cases.run()
