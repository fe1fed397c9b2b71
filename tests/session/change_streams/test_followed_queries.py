"""How a subscription to a view or query begins and ends, why it is refused, and its forms."""

from collections.abc import Iterator

import psycopg
import pytest

from coordinator.execution.change_streams import envelopes, netting
from tests.session.change_streams.followers import cancel, now, subscriptions, told, until


@pytest.fixture
def table(dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("drop table if exists t, u cascade")
        connection.execute("create table t (a int, b text)")
        connection.execute("create table u (a int, b text)")
        connection.execute("create view v as select a, b from t where a > 0")
        connection.execute("create view over_v as select a from v union all select a from u")
        connection.execute("create materialized view m as select a from t")
        connection.execute("insert into t values (1, 'x')")
        yield connection


@pytest.mark.parametrize(
    ("relation", "ddl", "sqlstate", "message"),
    [
        ("v", "drop view v cascade", "42P01", 'view "v" was dropped at '),
        ("over_v", "drop view over_v", "42P01", 'view "over_v" was dropped at '),
        (
            "over_v",
            "create or replace view v as select a, b from t",
            "0A000",
            'the definition of view "v" has changed at ',
        ),
        ("v", "alter view v rename b to c", "0A000", 'the definition of view "v" has changed at '),
        ("v", "alter table t add c int", "0A000", 'the definition of table "t" has changed at '),
        ("over_v", "drop table u cascade", "42P01", 'view "over_v" was dropped at '),
        ("m", "drop materialized view m", "42P01", 'materialized view "m" was dropped at '),
        ("(SELECT count(*) FROM t, u)", "drop table u cascade", "42P01", 'table "u" was dropped'),
    ],
)
def test_another_definition_ends_it(
    dsn: str, table: psycopg.Connection, relation: str, ddl: str, sqlstate: str, message: str
) -> None:
    with told(dsn, f"SUBSCRIBE {relation}") as (_, rows):
        until(lambda: subscriptions(table) == 1)
        table.execute("insert into t values (2, 'y')")
        table.execute("refresh materialized view m")
        table.execute(ddl.encode())
    *changes, end = rows
    assert end[0] == sqlstate
    assert str(end[1]).startswith(message)
    assert sum(int(str(row[1])) for row in changes) >= 1


def test_what_changes_no_row_of_a_view_ends_nothing(dsn: str, table: psycopg.Connection) -> None:
    with told(dsn, "SUBSCRIBE v") as (_, rows):
        until(lambda: subscriptions(table) == 1)
        table.execute("alter view v rename to w")
        table.execute("create or replace view w as select a, b from t where a > 0")
        table.execute("alter table t rename to renamed")
        table.execute("insert into renamed values (2, 'y'), (-1, 'z')")
        until(lambda: len(rows) == 2)
        cancel(table)
    table.execute("drop table renamed cascade")
    assert [row[1:] for row in rows[:2]] == [(1, 1, "x"), (1, 2, "y")]


def test_a_materialized_view_is_told_at_its_refresh(dsn: str, table: psycopg.Connection) -> None:
    begin = now(table)
    table.execute("refresh materialized view m")
    refreshed = now(table)
    table.execute("insert into t values (2, 'y')")
    rows = table.execute(f"SUBSCRIBE m AS OF {begin} UP TO {now(table) + 1}".encode()).fetchall()
    assert rows == [(refreshed, 1, 1)]
    table.execute("create materialized view empty as select a from t with no data")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        table.execute("SUBSCRIBE empty")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        table.cursor().copy("COPY (SUBSCRIBE (TABLE empty)) TO STDOUT").__enter__()
    table.execute("drop materialized view empty")


def test_any_table_of_a_query_wakes_it(dsn: str, table: psycopg.Connection) -> None:
    query = "SELECT t.a, u.b FROM t JOIN u USING (a)"
    with told(dsn, f"SUBSCRIBE ({query})") as (_, rows):
        until(lambda: subscriptions(table) == 1)
        table.execute("insert into u values (1, 'one')")
        until(lambda: len(rows) == 1)
        table.execute("insert into t values (1, 'again')")
        until(lambda: len(rows) == 2)
        with table.transaction():
            table.execute("insert into u values (2, 'two')")
            table.execute("insert into t values (2, 'y')")
        until(lambda: len(rows) == 3)
        table.execute("update u set b = b")
        table.execute("delete from u")
        until(lambda: len(rows) == 6)
        found = table.execute("select table_name from meridian.subscriptions").fetchall()
        assert found == [("t, u",)]
        cancel(table)
    assert [row[1:] for row in rows[:3]] == [(1, 1, "one"), (1, 1, "one"), (1, 2, "two")]
    assert sum(int(str(row[1])) for row in rows[:-1]) == 0


def test_up_to_ends_a_compared_query(dsn: str, table: psycopg.Connection) -> None:
    begin = now(table)
    table.execute("insert into t values (2, 'y')")
    end = now(table)
    subscribe = f"SUBSCRIBE (SELECT count(*) FROM t) WITH (PROGRESS) AS OF {begin} UP TO {end + 1}"
    cursor = table.execute(subscribe.encode())
    assert cursor.statusmessage == "SUBSCRIBE 5"
    assert cursor.fetchall() == [
        (begin, False, 1, 1),
        (begin + 1, True, None, None),
        (end, False, -1, 1),
        (end, False, 1, 2),
        (end + 1, True, None, None),
    ]


@pytest.mark.parametrize(
    ("statement", "what", "rows"),
    [
        ("SUBSCRIBE (SELECT x.a FROM t x, t y)", "a query with joins, aggregates", None),
        ("SUBSCRIBE t ENVELOPE UPSERT (KEY (a))", "changes", 5),
        ("SUBSCRIBE t WITHIN TIMESTAMP ORDER BY a", "changes", 6),
    ],
)
def test_what_is_looked_at_as_a_whole_is_limited(
    table: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    statement: str,
    what: str,
    rows: int | None,
) -> None:
    monkeypatch.setattr(netting, "WHOLE_ROWS_MAX", 4)
    begin = now(table)
    table.execute("insert into t select g, 'many' from generate_series(1, 5) g")
    with pytest.raises(psycopg.errors.FeatureNotSupported) as refused:
        table.execute(f"{statement} AS OF {begin} UP TO {now(table) + 1}".encode())
    assert str(refused.value).startswith(f"SUBSCRIBE to {what}")
    assert refused.value.diag.message_detail == f"All changes up to {begin} were told."
    begin = now(table)
    snapshot = f"{statement} AS OF {begin} UP TO {begin + 1}".encode()
    if rows is None:
        with pytest.raises(psycopg.errors.FeatureNotSupported) as refused:
            table.execute(snapshot)
        assert refused.value.diag.message_detail is None
    else:
        # A snapshot that an engine sorts has no limit.
        assert len(table.execute(snapshot).fetchall()) == rows


def test_up_to_before_as_of_has_a_position(table: psycopg.Connection) -> None:
    statement = f"SUBSCRIBE t AS OF {now(table)} UP TO 9"
    with pytest.raises(psycopg.errors.InvalidParameterValue) as refused:
        table.execute(statement.encode())
    assert refused.value.diag.statement_position == str(len(statement))


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SUBSCRIBE other", "SUBSCRIBE to a temporary table is not supported"),
        ("SUBSCRIBE (SELECT a FROM t UNION ALL TABLE other)", "temporary table"),
        ("SUBSCRIBE passing", "SUBSCRIBE to a temporary view is not supported"),
        ("SUBSCRIBE (SELECT pid FROM meridian.subscriptions, t)", "a system relation"),
    ],
)
def test_what_only_a_session_or_the_server_has(
    dsn: str, table: psycopg.Connection, statement: str, message: str
) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create temporary table other (a int)")
        connection.execute("create temporary view passing as select a from t")
        with pytest.raises(psycopg.errors.FeatureNotSupported, match=message):
            connection.execute(statement.encode())


def _upserts(table: psycopg.Connection) -> str:
    begin = now(table)
    table.execute("insert into t values (2, null)")
    table.execute("update t set a = 3 where a = 1")
    end = now(table)
    return f"SUBSCRIBE t ENVELOPE UPSERT (KEY (a)) WITH (PROGRESS) AS OF {begin} UP TO {end + 1}"


UPSERTS = [("upsert", 1, "x"), ("upsert", 2, None), ("delete", 1, None), ("upsert", 3, "x")]


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("prepare", [False, True])
def test_an_envelope_on_both_protocols(
    table: psycopg.Connection, *, binary: bool, prepare: bool
) -> None:
    cursor = table.cursor(binary=binary)
    cursor.execute(_upserts(table).encode(), prepare=prepare)
    assert cursor.description is not None
    assert [(column.name, column.type_display) for column in cursor.description] == [
        ("meridian_ts", "int8"),
        ("meridian_progressed", "bool"),
        ("meridian_state", "text"),
        ("a", "int4"),
        ("b", "text"),
    ]
    rows = cursor.fetchall()
    assert [row[2:] for row in rows if not row[1]] == UPSERTS
    assert {row[2:] for row in rows if row[1]} == {(None, None, None)}
    assert rows[-1][1]


def test_an_envelope_as_copy(table: psycopg.Connection) -> None:
    copied = f"COPY ({_upserts(table)}) TO STDOUT (FORMAT csv, HEADER)"
    with table.cursor().copy(copied.encode()) as copy:
        header, *rows = b"".join(copy).decode().splitlines()
    assert header == "meridian_ts,meridian_progressed,meridian_state,a,b"
    assert [row.split(",", 2)[2] for row in rows if ",f," in row] == [
        "upsert,1,x",
        "upsert,2,",
        "delete,1,",
        "upsert,3,x",
    ]


def test_a_snapshot_tells_keys_that_several_rows_have(table: psycopg.Connection) -> None:
    values = "(1, 'x'), (1, 'y'), (2, 'a'), (null, 'b'), (3, 'c'), (3, 'c'), (3, 'd'), (4, 'e')"
    table.execute(f"truncate t; insert into t values {values}".encode())
    ts = now(table)
    subscribe = f"SUBSCRIBE t ENVELOPE UPSERT (KEY (a)) AS OF {ts} UP TO {ts + 1}"
    assert table.execute(subscribe.encode()).fetchall() == [
        (ts, "key_violation", 1, None),
        (ts, "upsert", 2, "a"),
        (ts, "key_violation", 3, None),
        (ts, "upsert", 4, "e"),
        (ts, "upsert", None, "b"),
    ]


def test_keys_of_a_snapshot_go_on_in_the_next_batch(
    table: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = envelopes.EnvelopeRows._runs
    sizes: list[int] = []

    def counted(self: envelopes.EnvelopeRows, kept: object, rows: object, ts: object) -> object:
        told, kept = runs(self, kept, rows, ts)  # type: ignore[arg-type]
        sizes.append(told.num_rows)
        return told, kept

    monkeypatch.setattr(envelopes.EnvelopeRows, "_runs", counted)
    table.execute("truncate t; insert into t select g / 3, 'x' from generate_series(0, 29999) g")
    table.execute("insert into t select -g, 'single' from generate_series(1, 10) g")
    ts = now(table)
    subscribe = f"SUBSCRIBE t ENVELOPE UPSERT (KEY (a)) AS OF {ts} UP TO {ts + 1}"
    rows = table.execute(subscribe.encode()).fetchall()
    assert len(rows) == 10_010
    assert {row[1] for row in rows[:10]} == {"upsert"}
    assert {row[1:] for row in rows[10:]} == {("key_violation", at, None) for at in range(10_000)}
    assert sum(sizes) == len(rows) - 1
