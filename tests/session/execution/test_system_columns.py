"""ctid, xmin, tableoid and kin of tables, as programs use them; on a server with files and cuts."""

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import asyncpg
import psycopg
import pytest

from tests.support.servers import Meridian

Connection = psycopg.Connection[tuple[Any, ...]]
OPTIONS = ("--spark-master", "none")


@pytest.fixture(scope="module")
def dsn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    server = Meridian(tmp_path_factory.mktemp("system_columns"), OPTIONS)
    try:
        yield server.start()
        assert server.stop() == 0
    finally:
        server.kill()


@pytest.fixture
def connection(dsn: str) -> Iterator[Connection]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("drop table if exists t cascade")
        connection.execute("create table t (id int primary key, a text)")
        connection.execute("insert into t values (1, 'x'), (2, 'y'), (3, 'z')")
        yield connection


def rows(connection: Connection, text: str, *parameters: Any) -> list[tuple[Any, ...]]:
    return connection.execute(cast("Any", text), parameters or None).fetchall()


def done(connection: Connection, text: str, *parameters: Any) -> int:
    return connection.execute(cast("Any", text), parameters or None).rowcount


def refused(connection: Connection, text: str) -> str:
    with pytest.raises(psycopg.Error) as error:
        connection.execute(cast("Any", text))
    assert error.value.sqlstate == "0A000"
    return str(error.value).splitlines()[0]


def pipe(connection: Connection, *texts: str) -> None:
    """Statements of one pipeline, which have one commit."""
    with connection.pipeline():
        for text in texts:
            connection.execute(cast("Any", text))


def ctid(connection: Connection, id_: int) -> str:
    ((found,),) = rows(connection, "select ctid from t where id = %s", id_)
    return str(found)


def test_types_and_constants(connection: Connection) -> None:
    found = connection.execute("select ctid, xmin, xmax, cmin, cmax, tableoid::regclass, id from t")
    assert found.description is not None
    assert [column.type_code for column in found.description] == [27, 28, 28, 29, 29, 2205, 23]
    values = sorted(found.fetchall(), key=lambda row: row[-1])
    assert [row[2:] for row in values] == [("0", "0", "0", "t", n) for n in (1, 2, 3)]
    assert len({row[0] for row in values}) == 3
    assert len({row[1] for row in values}) == 1
    catalog = rows(connection, "select ctid, xmin, xmax, cmin, cmax from pg_class limit 1")
    assert catalog == [("(0,1)", "1", "0", "0", "0")]
    assert rows(connection, "select '(0,1)'::tid, '(0,1)'::tid::text") == [("(0,1)", "(0,1)")]


def test_rows_are_found_by_ctid(connection: Connection) -> None:
    first, second = ctid(connection, 1), ctid(connection, 2)
    assert rows(connection, f"select id from t where ctid = '{first}'") == [(1,)]
    assert rows(connection, f"select id from t where ctid = '{first}'::tid") == [(1,)]
    assert rows(connection, "select id from t where ctid = %s", second) == [(2,)]
    asked = "select id from t where ctid = any(%s) order by id"
    assert rows(connection, asked, [first, second]) == [(1,), (2,)]
    assert rows(connection, f"select id from t where ctid in ('{first}', '(0,1)')") == [(1,)]
    assert rows(connection, "select id from t where ctid = '(0,1)'") == []
    assert rows(connection, "select min(ctid) < max(ctid), count(distinct ctid) from t") == [
        (True, 3)
    ]
    with pytest.raises(psycopg.errors.InvalidTextRepresentation):
        connection.execute("select id from t where ctid = 'abc'")


def test_joins_subqueries_and_views(connection: Connection) -> None:
    joined = "select a.ctid = b.ctid, b.xmin is null from t a left join t b on a.id = b.id + 1"
    assert sorted(rows(connection, joined), key=str) == [
        (False, False),
        (False, False),
        (None, True),
    ]
    text = "with q as (select ctid c, id from t) select q.id from q join t on t.ctid = q.c"
    assert sorted(rows(connection, text)) == [(1,), (2,), (3,)]
    text = "select id from t where exists (select from t b where b.ctid > t.ctid) order by id"
    assert rows(connection, text) == [(1,), (2,)]
    connection.execute("create view v as select ctid, xmin, tableoid, id from t")
    assert rows(connection, "select id from v where ctid = %s", ctid(connection, 2)) == [(2,)]
    ((definition,),) = rows(connection, "select pg_get_viewdef('v'::regclass)")
    assert definition.split() == ["SELECT", "ctid,", "xmin,", "tableoid,", "id", "FROM", "t;"]
    with pytest.raises(psycopg.errors.UndefinedColumn):
        connection.execute("select ctid from (select id from t) q")
    connection.execute("insert into t values (4, 'x'), (5, 'y')")
    assert done(connection, "delete from t using t b where t.ctid > b.ctid and t.a = b.a") == 2


def test_optimistic_locking(connection: Connection) -> None:
    ((xmin, before),) = rows(connection, "select xmin, ctid from t where id = 1")
    change = "update t set a = a || '!' where id = 1 and xmin = %s"
    assert done(connection, change, xmin) == 1
    assert done(connection, change, xmin) == 0
    assert done(connection, f"update t set a = 'q' where id = 1 and xmin = '{xmin}'::xid") == 0
    assert done(connection, "update t set a = 'q' where ctid = %s", before) == 0
    ((now,),) = rows(connection, "select xmin from t where id = 1")
    assert rows(connection, "select xmin from t where id = 2") == [(xmin,)]
    assert now != xmin
    assert rows(connection, "delete from t where id = 1 and xmin = %s returning xmin, a", now) == [
        (now, "x!")
    ]
    connection.execute("insert into t values (1, 'x')")
    assert ctid(connection, 1) != before
    assert rows(connection, "select xmin from t where id = 1") not in ([(now,)], [(xmin,)])


def test_rows_that_were_read_are_changed_one_by_one(connection: Connection) -> None:
    """As postgres_fdw does it."""
    connection.execute("begin isolation level repeatable read")
    found = rows(connection, "select ctid, id from t for update")
    assert len(found) == 3
    for place, id_ in found:
        assert done(connection, "update t set a = %s where ctid = %s", f"new {id_}", place) == 1
    assert rows(connection, "delete from t where ctid = %s returning id", found[0][0]) == []
    connection.execute("commit")
    assert sorted(rows(connection, "select id, a from t")) == [(n, f"new {n}") for n in (1, 2, 3)]


def test_rows_of_the_own_transaction(connection: Connection) -> None:
    second = ctid(connection, 2)
    connection.execute("begin")
    connection.execute("update t set a = 'n' where id = 1")
    assert rows(connection, "select ctid, a from t where id = 2") == [(second, "y")]
    text = "select id from t where ctid = %s or id = 1 order by id"
    assert rows(connection, text, second) == [(1,), (2,)]
    what = "reading ctid or xmin of rows that the transaction itself has written is not supported"
    assert refused(connection, "select ctid from t where id = 1") == what
    connection.execute("rollback")
    for text in (
        "select id from t order by ctid",
        "select count(distinct xmin) from t",
        "select id from t where not ctid = '(0,1)'",
        "select id from t where ctid is null",
        "select ctid is null from t",
        "select id from t where ctid <> '(0,1)'",
        "select a.id from t a join t b on a.ctid = b.ctid",
        "select ctid from t union select ctid from t",
        "select id from t where exists (select from t b where b.ctid = t.ctid)",
        "select row_number() over (order by ctid) from t",
        "delete from t returning ctid",
    ):
        connection.execute("begin")
        connection.execute("insert into t values (9, 'n')")
        assert refused(connection, text) == what, text
        connection.execute("rollback")


def test_returning(connection: Connection) -> None:
    upsert = "insert into t values (1, 'n'), (7, 'n') on conflict (id) do update set a = excluded.a"
    assert rows(connection, f"{upsert} returning id, (xmax = 0)") == [(1, False), (7, True)]
    new = "insert into t values (8, 'n') returning xmax, cmin, tableoid::regclass"
    assert rows(connection, new) == [("0", "0", "t")]
    changed = "update t set a = 'm' where id = 8 returning xmax, tableoid::regclass"
    assert rows(connection, changed) == [("0", "t")]
    gone = ctid(connection, 8)
    assert rows(connection, "delete from t where id = 8 returning ctid, id") == [(gone, 8)]
    for text in (
        "insert into t values (9, 'n') returning ctid",
        "merge into t using t u on t.id = u.id when matched then delete returning t.xmin",
        "delete from t returning xmax",
        "update t set a = 'm' returning old.xmin",
        "insert into t values (9, 'n') returning new.ctid",
    ):
        assert refused(connection, text).startswith("the system column "), text


def test_xmin_of_new_rows(connection: Connection) -> None:
    """As EF Core asks for it: what RETURNING shows is what the row has from then on."""
    connection.execute("create temporary table u (id int)")
    asked = "select distinct xmin from t where a = %s"
    seen: set[str] = set()
    for number, text in enumerate(
        (
            "insert into t values (4, 'n0'), (5, 'n0') returning id, xmin",
            "update t set a = 'n1' where id > 1 returning 1, xmin",
            "update t set a = a where a = 'n1' returning a, new.a, xmin, t.xmin",
            "insert into t values (1, 'x'), (6, 'n3') on conflict (id) do update set a = 'n3'"
            " returning xmax = 0, xmin",
            "insert into t select g, 'n4' from generate_series(10, 3000) g returning xmin",
            "with q as (update t set a = 'n5' where id < 3 returning id)"
            " insert into t select id + 5000, 'n5' from q returning xmin",
            "with q as (insert into u values (7) returning id)"
            " update t set a = 'n6' from q where t.id = q.id - 3 returning xmin",
        )
    ):
        found = {row[-1] for row in rows(connection, text)}
        shown = "n1" if number == 2 else f"n{number}"
        assert [(xmin,) for xmin in found] == rows(connection, asked, shown), text
        assert seen.isdisjoint(found), text
        seen |= found
    connection.execute("prepare p as update t set a = 'p' where id = 1 returning xmin")
    assert rows(connection, "execute p") == rows(connection, asked, "p")
    assert rows(connection, "update t set a = 'q' where id = -1 returning xmin") == []
    assert rows(connection, "insert into u values (1) returning xmin") == rows(
        connection, "select xmin from u where id = 1"
    )
    ((xmin,),) = rows(connection, "select xmin from t where id = 1")
    change = "update t set a = a || '!' where id = 1 and xmin = %s returning xmin"
    ((now,),) = rows(connection, change, xmin)
    assert rows(connection, change, xmin) == []
    assert len(rows(connection, change, now)) == 1
    explained = "explain (analyze, timing off, summary off) update t set a = 'e' returning xmin"
    assert rows(connection, explained)[0][0].startswith("Update on t")


def test_xmin_that_nobody_knows_yet(connection: Connection) -> None:
    for text in (
        "update t set a = 'm' returning xmin::text",
        "update t set a = 'm' returning xmin = '3'",
        "update t set a = 'm' returning (select xmin)",
        "insert into t values (9, 'n') returning id, (select max(id) from t where xmin = t.xmin)"
        ", t.xmin::text || ''",
    ):
        wanted = "an expression with xmin in RETURNING is not supported"
        assert refused(connection, text) == wanted, text
    text = "with q as (insert into t values (9, 'n') returning xmin) select * from q"
    assert refused(connection, text) == "xmin in RETURNING of a WITH query is not supported"
    new = "insert into t values (9, 'n') returning xmin"
    what = "xmin in RETURNING in a transaction of several statements is not supported"
    connection.execute("begin")
    assert refused(connection, new) == what
    connection.execute("rollback")
    assert refused(connection, f"select 1; {new}") == what
    with pytest.raises(psycopg.errors.FeatureNotSupported, match=what):
        pipe(connection, "select 1", new)
    assert rows(connection, "select id from t where id = 9 or a = 'm'") == []


def test_in_binary(dsn: str, connection: Connection) -> None:
    async def ask() -> None:
        client = await asyncpg.connect(dsn)
        found = await client.fetch("select ctid, xmin, id from t order by id")
        one, two, _ = found
        assert isinstance(one["ctid"], tuple)
        assert isinstance(one["xmin"], int)
        asked = "select id from t where ctid = $1 and xmin = $2"
        assert await client.fetchval(asked, one["ctid"], one["xmin"]) == 1
        for array in ("$1", "$1::tid[]"):
            asked = f"select id from t where ctid = any({array}) order by id"
            assert [row[0] for row in await client.fetch(asked, [one[0], two[0]])] == [1, 2]
        change = "update t set a = 'k' where xmin = $1 and id = $2"
        assert await client.execute(change, one["xmin"], 1) == "UPDATE 1"
        assert await client.execute(change, one["xmin"], 1) == "UPDATE 0"
        made = await client.fetchval("insert into t values (9, 'n') returning xmin")
        assert made == await client.fetchval("select xmin from t where id = 9")
        echoed = await client.fetchrow("select $1::tid, $2::xid", (0, 1), 7)
        assert tuple(echoed) == ((0, 1), 7)
        await client.close()

    asyncio.run(ask())


def test_versions_stay_with_their_rows(tmp_path: Path) -> None:
    """Unchanged rows keep ctid and xmin; no ctid ever names another row."""
    server = Meridian(tmp_path, (*OPTIONS, "--set", "inline_bytes_max=20000"))
    random_ = random.Random(7)
    known: dict[int, tuple[str, str]] = {}
    ever: dict[str, int] = {}

    def look(connection: Connection, changed: set[int]) -> None:
        found = rows(connection, "select id, ctid, xmin, a from t")
        now = {id_: (place, xmin) for id_, place, xmin, _ in found}
        assert len({place for place, _ in now.values()}) == len(found)
        for id_, version in now.items():
            if id_ in known and id_ not in changed:
                assert version == known[id_], id_
            else:
                assert version[0] not in ever, id_
                assert id_ not in known or version[1] != known[id_][1]
            ever[version[0]] = id_
        known.clear()
        known.update(now)

    try:
        connection = psycopg.connect(server.start(), autocommit=True)
        connection.execute("create table t (id int primary key, a text)")
        last = 0
        for step in range(40):
            many = random_.choice([1, 5, 400])
            changed: set[int] = set()
            match random_.choice(["insert", "insert", "update", "delete", "again", "optimize"]):
                case "insert":
                    made = f"generate_series({last + 1}, {last + many}) g"
                    connection.execute(f"insert into t select g, repeat('x', 90) from {made}")
                    last += many
                case "update":
                    changed = {id_ for id_ in known if id_ % 9 == step % 9}
                    done(connection, "update t set a = 'u' where id %% 9 = %s", step % 9)
                case "delete":
                    done(connection, "delete from t where id %% 11 = %s", step % 11)
                case "again":
                    changed = {id_ for id_ in known if id_ % 7 == step % 7}
                    connection.execute("begin")
                    done(connection, "create temporary table k as select * from t")
                    done(connection, "delete from t where id %% 7 = %s", step % 7)
                    done(connection, "insert into t select * from k where id %% 7 = %s", step % 7)
                    connection.execute("drop table k")
                    connection.execute("commit")
                case _:
                    connection.execute("optimize t")
            look(connection, changed)
            if step % 10 == 9:
                connection.close()
                if step % 20 == 9:
                    server.kill()
                else:
                    assert server.stop() == 0
                connection = psycopg.connect(server.start(), autocommit=True)
                look(connection, set())
        connection.execute("vacuum t")
        look(connection, set())
        connection.close()
        assert server.stop() == 0
    finally:
        server.kill()
    assert server.check().returncode == 0
