"""pg_stat_*: what clients count in a run is what the views say, and a reset forgets it."""

import psycopg
import pytest

from tests.support.stack import serving

Connection = psycopg.Connection[tuple[object, ...]]

TABLES = """
create table parent (id int primary key);
create table t (id int primary key, v text, p int references parent (id));
create extension pg_stat_statements;
"""


def ask(connection: Connection, query: str) -> list[tuple[object, ...]]:
    """The rows of a query."""
    return connection.execute(query.encode()).fetchall()


def entries(connection: Connection) -> dict[str, tuple[object, ...]]:
    """Calls and rows, by text."""
    rows = ask(connection, "select query, sum(calls)::int, sum(rows)::int"
               " from pg_stat_statements group by query")  # fmt: skip
    return {str(text): tuple(counts) for text, *counts in rows}


def test_statements_of_one_string_count_one_by_one() -> None:
    with serving() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(TABLES.encode())
        connection.execute("select pg_stat_statements_reset()")
        connection.execute("select 1; select id from t ;;  select 2;select v from t")
        found = entries(connection)
        assert found["select $1"] == (2, 2)
        assert found["select id from t"] == found["select v from t"] == (1, 0)


def test_what_prepare_prepares_is_shown_without_literals() -> None:
    with serving() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(TABLES.encode())
        connection.execute("prepare p (text) as select 'own' || $1 || 'é€'")
        connection.execute("execute p ('x')")
        connection.execute("execute p ('y')")
        found = entries(connection)
        assert found["prepare p (text) as select $2 || $1 || $3"] == (2, 2)


def test_counts_are_those_of_the_client() -> None:
    with serving() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(TABLES.encode())
        connection.execute("select pg_stat_statements_reset(), pg_stat_reset()")
        connection.execute("insert into parent values (1)")
        for number in range(20):
            connection.execute(f"insert into t values ({number}, 'a', 1)".encode())
            connection.execute(f"select v from t where id = {number}".encode())
        for number in range(7):
            connection.execute("select v from t where id = %s", (number,), prepare=True)
        with connection.transaction():
            for number in range(5):
                connection.execute(f"select v from t where id = {number + 18}".encode())
                connection.execute(f"update t set v = 'b' where id = {number}".encode())
        connection.execute("delete from t where id >= 15")
        connection.execute("select count(*) from t")
        found = entries(connection)
        assert found["select v from t where id = $1"] == (20 + 7 + 5, 20 + 7 + 2)
        assert found["insert into t values ($1, $2, $3)"] == (20, 20)
        assert found["update t set v = $1 where id = $2"] == (5, 5)
        assert found["delete from t where id >= $1"] == (1, 5)
        assert found["BEGIN"] == found["COMMIT"] == (1, 0)
        counts = "n_tup_ins, n_tup_upd, n_tup_del, n_live_tup, seq_scan, idx_scan"
        (t,) = ask(connection, f"select {counts} from pg_stat_user_tables where relname = 't'")
        # By key: reads, updates, and the check of each new row.
        assert t == (20, 5, 5, 15, 2, 32 + 5 + 20)
        indexes = ask(connection, "select indexrelname, idx_scan from pg_stat_user_indexes")
        assert sorted(indexes, key=str) == [("parent_pkey", 1 + 20), ("t_pkey", 57)]
        # The session began before the reset.
        (base,) = ask(
            connection,
            "select tup_inserted, tup_updated, tup_deleted, numbackends, sessions"
            " from pg_stat_database where datname = current_database()",
        )
        assert base == (21, 5, 5, 1, 0)


def test_what_a_tag_does_not_tell_is_counted_too() -> None:
    with serving() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create table t (id int primary key, v int)")
        connection.execute("insert into t values (1, 1), (2, 2)")
        connection.execute(
            "insert into t values (2, 5), (3, 5), (4, 5) on conflict (id) do update set v = 9"
        )
        connection.execute(
            "merge into t using (values (1), (2), (8)) s(id) on t.id = s.id"
            " when matched and s.id = 1 then delete when matched then update set v = 0"
            " when not matched then insert values (s.id, 1)"
        )
        connection.execute(
            "with gone as (delete from t where id = 8 returning id)"
            " update t set v = 7 where id = 3"
        )  # fmt: skip
        (counts,) = ask(
            connection,
            "select n_tup_ins, n_tup_upd, n_tup_del, n_live_tup from pg_stat_user_tables",
        )
        assert counts == (2 + 2 + 1, 1 + 1 + 1, 1 + 1, 3)


def test_transactions_are_counted_by_their_end() -> None:
    query = "select xact_commit, xact_rollback from pg_stat_database where datname = 'meridian'"
    with serving() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create table t (id int primary key)")
        ((commits, rollbacks),) = ask(connection, query)
        connection.execute("insert into t values (1)")
        connection.execute("select * from t where id = 1")
        with pytest.raises(psycopg.errors.UniqueViolation):
            connection.execute("insert into t values (1)")
        with connection.transaction(force_rollback=True):
            connection.execute("insert into t values (2)")
        ((later, back),) = ask(connection, query)
        assert isinstance(commits, int)
        assert isinstance(rollbacks, int)
        # Two, and the first look at the view.
        assert later == commits + 3
        assert back == rollbacks + 2


def test_a_commit_that_fails_is_one_rollback() -> None:
    query = "select xact_rollback from pg_stat_database where datname = 'meridian'"
    with (
        serving() as dsn,
        psycopg.connect(dsn, autocommit=True) as connection,
        psycopg.connect(dsn, autocommit=True) as other,
    ):
        connection.execute(TABLES.encode())
        deferred = "id int references parent deferrable initially deferred"
        connection.execute(f"create table child ({deferred})".encode())

        def rollbacks() -> int:
            ((count,),) = ask(connection, query)
            assert isinstance(count, int)
            return count

        before = rollbacks()
        for prepare in (False, True):
            connection.execute("begin isolation level serializable")
            connection.execute("select count(*) from parent")
            connection.execute("insert into t values (1)")
            other.execute("insert into parent values (%s)", (int(prepare),))
            with pytest.raises(psycopg.errors.SerializationFailure):
                connection.execute("commit", prepare=prepare)
        assert rollbacks() == before + 2
        with pytest.raises(psycopg.errors.ForeignKeyViolation), connection.transaction():
            connection.execute("insert into child values (7)")
        assert rollbacks() == before + 3
        with pytest.raises(psycopg.errors.ForeignKeyViolation):
            connection.execute("insert into child values (7)")
        assert rollbacks() == before + 4
        with pytest.raises(psycopg.errors.SyntaxError):
            connection.execute("begin; commit; selec")
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute("begin; insert into parent values (9); commit; select 1/0")
        assert rollbacks() == before + 6


def test_a_reset_forgets() -> None:
    with serving() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(TABLES.encode())
        connection.execute("insert into parent values (1), (2)")
        ((before,),) = ask(connection, "select stats_reset from pg_stat_wal")
        connection.execute("select pg_stat_reset(), pg_stat_reset_shared('wal')")
        counts = "select n_tup_ins, idx_scan, n_live_tup from pg_stat_user_tables"
        assert ask(connection, f"{counts} where relname = 'parent'") == [(0, 0, 2)]
        ((after,),) = ask(connection, "select stats_reset from pg_stat_wal")
        assert str(after) > str(before)
        assert len(entries(connection)) > 3
        ((queryid,),) = ask(
            connection, "select queryid from pg_stat_statements where query like 'insert into p%'"
        )
        connection.execute(f"select pg_stat_statements_reset(0, 0, {queryid})".encode())
        assert "insert into parent values ($1), ($2)" not in entries(connection)
        assert len(entries(connection)) > 3
        connection.execute("select pg_stat_statements_reset()")
        assert len(entries(connection)) == 1


def test_no_password_is_shown() -> None:
    with serving() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create extension pg_stat_statements")
        connection.execute("create role x login password 'secret-1'")
        connection.execute("alter role x password 'secret-2'")
        connection.execute("prepare p as select 'password', 1; ")
        texts = " ".join(entries(connection))
        assert "role x" in texts
        assert "secret" not in texts


def test_others_statements_are_hidden() -> None:
    with serving() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create extension pg_stat_statements")
        connection.execute("create role plain")
        connection.execute("select 'of the superuser'")
        connection.execute("set role plain")
        connection.execute("select 1 + 1")
        seen = entries(connection)
        assert "select $1 + $2" in seen
        assert "<insufficient privilege>" in seen
        assert "select $1" not in seen
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("select pg_stat_reset()")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("select pg_stat_statements_reset()")


def test_statements_are_there_with_their_extension_only() -> None:
    with serving() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("select * from pg_stat_statements")
        connection.execute("create schema stats; create extension pg_stat_statements schema stats")
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("select * from pg_stat_statements")
        ((calls,),) = ask(connection, "select count(*) from stats.pg_stat_statements(false)")
        assert isinstance(calls, int)
        assert calls >= 2
        cursor = connection.execute("select * from stats.pg_stat_statements limit 0")
        assert cursor.description is not None
        assert len(cursor.description) == 52
        assert ask(connection, "select relkind from pg_class where relname = 'pg_stat_statements'")
        connection.execute("drop extension pg_stat_statements")
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("select * from stats.pg_stat_statements")
