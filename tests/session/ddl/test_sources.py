"""Sources over the wire: objects, transactions, what fed tables refuse, restarts."""

from collections.abc import Iterator

import psycopg
import pytest

from storage.memory import MemoryObjectStore, MemoryStash
from tests.session.change_streams.followers import until
from tests.support.stack import serving

FED = 'cannot change table "counter", which is fed by a source'
UPSTREAM = "create source s from generator counter (rows per second 100000, max rows 40)"


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with serving() as found:
        yield found


@pytest.fixture
def client(dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection
        for name in ("s", "a"):
            connection.execute(f"drop source if exists {name} cascade".encode())
        connection.execute("drop schema if exists x cascade")


def rows(client: psycopg.Connection, query: str) -> list[tuple[object, ...]]:
    return client.execute(query.encode()).fetchall()


def refusal(client: psycopg.Connection, statement: str) -> tuple[str | None, str | None]:
    with pytest.raises(psycopg.Error) as caught:
        client.execute(statement.encode())
    return caught.value.sqlstate, caught.value.diag.message_primary


def followed(dsn: str, table: str, count: int) -> None:
    """Until a fed table has so many rows."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        until(lambda: rows(connection, f"select count(*) >= {count} from {table}") == [(True,)])


def test_a_counter_comes_whole_and_ends(client: psycopg.Connection, dsn: str) -> None:
    client.execute(UPSTREAM.encode())
    assert rows(client, "select state from meridian.sources") == [("idle",)]
    client.execute("create table counter from source s")
    followed(dsn, "counter", 40)
    found = rows(client, "select count(*), count(distinct id), min(id), max(id) from counter")
    assert found == [(40, 40, 0, 39)]
    (state,) = rows(client, "select state, position, rows, errors, reason from meridian.sources")
    assert state == ("running", {"offset": 40}, 40, 0, None)
    assert rows(
        client, "select table_name, reference, rows_inserted from meridian.source_tables"
    ) == [("counter", "counter", 40)]


def test_an_auction_is_one_state_over_all_its_tables(client: psycopg.Connection, dsn: str) -> None:
    client.execute("create schema x")
    client.execute("create source a from generator auction (rows per second 20000, max rows 2000)")
    assert (
        client.execute("create tables from source a in schema x").statusmessage == "CREATE TABLES"
    )
    followed(dsn, "x.auctions", 30)
    lost = """
        select count(*) from x.bids b left join x.auctions a on a.id = b.auction
        left join x.persons p on p.id = b.bidder where a.id is null or p.id is null
    """
    assert rows(client, lost) == [(0,)]
    followed(dsn, "x.bids", 1840)
    assert rows(client, lost) == [(0,)]
    counts = "select (select count(*) from x.persons), (select count(*) from x.auctions)"
    assert rows(client, counts) == [(40, 120)]


def test_ddl_is_part_of_the_transaction(client: psycopg.Connection) -> None:
    client.execute("begin")
    client.execute(UPSTREAM.encode())
    client.execute("create tables from source s")
    client.execute("rollback")
    assert rows(client, "select count(*) from meridian.sources") == [(0,)]
    assert refusal(client, "select * from counter")[0] == "42P01"
    assert refusal(client, "select * from s_errors")[0] == "42P01"


@pytest.mark.parametrize(
    "statement",
    [
        "insert into counter values (1, now())",
        "insert into v values (1)",
        "update counter set id = 1",
        "delete from counter where id = 1",
        "truncate counter",
        "copy counter from stdin",
        "merge into counter using (values (1)) n (a) on id = a when matched then delete",
        "with w as (delete from counter returning id) select * from w",
    ],
)
def test_nobody_else_writes_to_a_fed_table(client: psycopg.Connection, statement: str) -> None:
    client.execute(UPSTREAM.encode())
    client.execute("create table counter from source s")
    client.execute("create view v as select id from counter")
    assert refusal(client, statement) == ("42809", FED)
    assert refusal(client, "prepare p as " + statement)[0] in ("42809", "42601")


@pytest.mark.parametrize(
    ("statement", "sqlstate"),
    [
        ("alter table counter add column z int", "0A000"),
        ("alter table counter drop column at", "0A000"),
        ("alter table counter rename column id to n", "0A000"),
        ("alter table counter add primary key (id)", "0A000"),
        ("alter table counter add check (id > 0)", "0A000"),
        ("create unique index on counter (id)", "0A000"),
        ("create table r (id bigint references counter (id))", "0A000"),
        ("lock table counter in share mode", "0A000"),
        ("drop table s_errors", "2BP01"),
        ("drop source s", "2BP01"),
        ("alter table s_errors detach source", "42809"),
        ("create table other from source s", "0A000"),
        ("create source s from generator counter", "42710"),
        ("create table counter from source s", "42P07"),
        ("create table other from source nothing", "42704"),
        ("create source e from generator counter (seed 1, seed 2)", "42601"),
        ("create source e from generator counter (rows per second 0)", "22023"),
        ("create source e from generator sums", "42601"),
        ("create source e from kafka connection k (topic 't')", "0A000"),
        ("create source e from files 'x/*'", "0A000"),
        ("create connection k to kafka (brokers 'x')", "0A000"),
        ("create source e in timeline system from generator counter", "0A000"),
        ("alter source s resnapshot", "0A000"),
        ("alter source s reset", "42601"),
        ("create table c (a int) from source s", "0A000"),
        ("alter source s set (schema_changes = 'stop')", "0A000"),
        ("alter source s skip record", "0A000"),
    ],
)
def test_refusals(client: psycopg.Connection, statement: str, sqlstate: str) -> None:
    client.execute(UPSTREAM.encode())
    client.execute("create table counter from source s")
    assert refusal(client, statement)[0] == sqlstate


def test_a_detached_table_is_an_ordinary_one(client: psycopg.Connection, dsn: str) -> None:
    client.execute(UPSTREAM.encode())
    client.execute("create table counter from source s")
    followed(dsn, "counter", 40)
    client.execute("alter table counter rename to c2")
    client.execute("alter table c2 detach source")
    assert client.execute("delete from c2 where id < 30").rowcount == 30
    client.execute("alter table c2 add primary key (id)")
    client.execute("drop source s")
    assert rows(client, "select count(*) from c2") == [(10,)]
    assert rows(client, "select count(*) from meridian.sources") == [(0,)]
    client.execute("drop table c2")


def test_cascade_takes_tables_and_views(client: psycopg.Connection) -> None:
    client.execute(UPSTREAM.encode())
    client.execute("create table counter from source s")
    client.execute("create view v as select id from counter")
    notices: list[str | None] = []
    client.add_notice_handler(lambda told: notices.append(told.message_detail))
    client.execute("drop source s cascade")
    assert notices == ["drop cascades to table counter\ndrop cascades to view v"]
    assert refusal(client, "select * from v")[0] == "42P01"
    assert refusal(client, "select * from s_errors")[0] == "42P01"


def test_a_schema_takes_its_sources(client: psycopg.Connection) -> None:
    client.execute("create schema x")
    client.execute("create source x.s from generator counter (max rows 3)")
    assert refusal(client, "drop schema x")[0] == "2BP01"
    client.execute("create tables from source x.s in schema x")
    client.execute("drop schema x cascade")
    assert rows(client, "select count(*) from meridian.sources") == [(0,)]


def test_pause_and_resume(client: psycopg.Connection, dsn: str) -> None:
    client.execute("create source s from generator counter (rows per second 200)")
    client.execute("create table counter from source s")
    followed(dsn, "counter", 5)
    client.execute("alter source s pause")
    assert rows(client, "select state from meridian.sources") == [("paused",)]
    (before,) = rows(client, "select max(id) from counter")
    assert isinstance(before[0], int)
    client.execute("alter source s resume")
    followed(dsn, "counter", before[0] + 10)
    found = rows(client, "select count(*) = max(id) + 1 from counter")
    assert found == [(True,)]


def test_it_goes_on_after_a_restart() -> None:
    counts: list[object] = []
    stash, store = MemoryStash(), MemoryObjectStore()
    for _ in range(3):
        with (
            serving(stash=stash, store=store) as dsn,
            psycopg.connect(dsn, autocommit=True) as client,
        ):
            if not counts:
                client.execute("create source s from generator counter (rows per second 1000)")
                client.execute("create table counter from source s")
                followed(dsn, "counter", 20)
            else:
                found = rows(client, "select count(*) from counter")
                followed(dsn, "counter", int(str(found[0][0])) + 20)
            (row,) = rows(client, "select count(*), count(distinct id), max(id) + 1 from counter")
            assert row[0] == row[1] == row[2]
            counts.append(row[0])
    assert counts == sorted(counts)


def test_a_view_over_a_fed_table_is_never_behind_it(client: psycopg.Connection, dsn: str) -> None:
    """A batch changes the view's input as any other write does."""
    client.execute("create source s from generator counter (rows per second 400, max rows 200)")
    client.execute("create table counter from source s")
    client.execute(
        "create materialized view v with (refresh = 'on commit') as"
        " select count(*) as n, sum(id) as total from counter"
    )
    fed = "select (count(*), sum(id))::text from counter"
    same = f"select (select (n, total)::text from v) = ({fed})"
    seen = 0
    while seen < 200:
        assert rows(client, same) == [(True,)]
        ((seen,),) = client.execute("select count(*) from counter").fetchall()
    until(lambda: rows(client, "select state from meridian.materialized_views") == [("exact",)])
    assert rows(client, "select n, total from v") == [(200, 19_900)]


def test_a_subscription_to_a_fed_table_is_told_each_row_once(client: psycopg.Connection) -> None:
    client.execute(UPSTREAM.encode())
    client.execute("create table counter from source s")
    with client.cursor() as cursor:
        told = cursor.stream("subscribe counter with (progress = false)")
        found = [next(told) for _ in range(40)]
        told.close()
    assert sorted(row[-2] for row in found) == list(range(40))
