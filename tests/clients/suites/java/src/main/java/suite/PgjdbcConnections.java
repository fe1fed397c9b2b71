package suite;

import static suite.Place.equal;
import static suite.Place.fails;
import static suite.Place.holds;
import static suite.Place.query;
import static suite.Place.rows;
import static suite.Place.run;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.util.List;
import java.util.Properties;
import org.postgresql.PGConnection;
import org.postgresql.ds.PGConnectionPoolDataSource;
import org.postgresql.ds.PGSimpleDataSource;
import org.postgresql.xa.PGXADataSource;

/** pgjdbc: how programs connect, and transactions. */
final class PgjdbcConnections {
    private PgjdbcConnections() {}

    static void add(Cases cases) {
        cases.add("connect_url", place -> {
            String url = Place.plainUrl() + "?user=" + Place.USER + "&password=" + Place.PASSWORD;
            try (Connection connection = DriverManager.getConnection(url)) {
                equal(List.of("1"), query(connection, "select 1"));
                holds(connection.isValid(5), "not valid");
            }
        });
        cases.add("connect_properties", place -> {
            Properties properties = Place.properties();
            properties.setProperty("ApplicationName", "suite");
            properties.setProperty("options", "-c statement_timeout=12345");
            try (Connection c = DriverManager.getConnection(Place.plainUrl(), properties)) {
                equal(List.of("suite"), query(c, "show application_name"));
                equal(List.of("12345ms"), query(c, "show statement_timeout"));
            }
        });
        cases.add("connect_data_source", place -> {
            PGSimpleDataSource source = new PGSimpleDataSource();
            source.setServerNames(new String[] {Place.HOST});
            source.setPortNumbers(new int[] {Place.PORT});
            source.setDatabaseName(Place.DATABASE);
            source.setUser(Place.USER);
            source.setPassword(Place.PASSWORD);
            source.setCurrentSchema(place.schema);
            try (Connection connection = source.getConnection()) {
                equal(place.schema, connection.getSchema());
            }
        });
        cases.add("connect_pooled_data_source", place -> {
            PGConnectionPoolDataSource source = new PGConnectionPoolDataSource();
            source.setUrl(place.url());
            source.setUser(Place.USER);
            source.setPassword(Place.PASSWORD);
            var pooled = source.getPooledConnection();
            for (int at = 0; at < 2; at++) {
                try (Connection connection = pooled.getConnection()) {
                    equal(List.of("2"), query(connection, "select 1 + 1"));
                }
            }
            pooled.close();
        });
        cases.add("connect_target_primary", place -> {
            try (Connection c = place.connect("targetServerType=primary")) {
                equal(List.of("off"), query(c, "show transaction_read_only"));
            }
        });
        cases.add("connect_wrong_database", place -> fails("3D000", p -> DriverManager.getConnection(
                "jdbc:postgresql://" + Place.HOST + ":" + Place.PORT + "/no_such_database",
                Place.properties()), place));
        cases.add("connect_options_schema", place -> {
            try (Connection c = place.connect("options=-c%20TimeZone=Asia/Tokyo")) {
                equal(List.of(place.schema), query(c, "select current_schema()"));
            }
        });
        cases.add("set_schema", place -> {
            Connection connection = place.connect();
            run(connection, "create schema if not exists \"" + place.schema + "\"");
            connection.setSchema("pg_catalog");
            equal("pg_catalog", connection.getSchema());
            connection.setSchema(place.schema);
            equal(place.schema, connection.getSchema());
        });
        cases.add("client_info", place -> {
            Connection connection = place.connect();
            connection.setClientInfo("ApplicationName", "told later");
            equal(List.of("told later"), query(connection, "show application_name"));
            equal("told later", connection.getClientInfo("ApplicationName"));
        });
        cases.add("parameter_statuses", place -> {
            var connection = place.connect().unwrap(PGConnection.class);
            equal("UTF8", connection.getParameterStatus("client_encoding"));
            equal("on", connection.getParameterStatus("integer_datetimes"));
            equal("on", connection.getParameterStatus("standard_conforming_strings"));
            holds(connection.getBackendPID() > 0, "no process");
        });
        cases.add("warnings", place -> {
            Connection connection = place.connect();
            Statement statement = connection.createStatement();
            statement.execute("drop table if exists not_there");
            equal("table \"not_there\" does not exist, skipping",
                    statement.getWarnings().getMessage());
            equal("00000", statement.getWarnings().getSQLState());
        });
        cases.add("network_timeout", place -> {
            Connection connection = place.connect();
            connection.setNetworkTimeout(Runnable::run, 20000);
            equal(20000, connection.getNetworkTimeout());
            equal(List.of("1"), query(connection, "select 1"));
        });
        cases.add("session_activity", place -> {
            Connection connection = place.connect("ApplicationName=looked_for");
            equal(List.of("looked_for|active"), query(connection,
                    "select application_name, state from pg_stat_activity"
                            + " where pid = pg_backend_pid()"));
        });
        transactions(cases);
    }

    private static void transactions(Cases cases) {
        cases.add("commit_and_rollback", place -> {
            Connection connection = place.connect();
            run(connection, "create table t (a int)");
            connection.setAutoCommit(false);
            run(connection, "insert into t values (1)");
            connection.commit();
            run(connection, "insert into t values (2)");
            connection.rollback();
            equal(List.of("1"), query(place.connect(), "select a from t"));
        });
        cases.add("isolation_levels", place -> {
            Connection connection = place.connect();
            for (int level : new int[] {Connection.TRANSACTION_READ_COMMITTED,
                Connection.TRANSACTION_REPEATABLE_READ, Connection.TRANSACTION_SERIALIZABLE}) {
                connection.setTransactionIsolation(level);
                equal(level, connection.getTransactionIsolation());
            }
        });
        cases.add("read_only", place -> {
            Connection connection = place.connect();
            run(connection, "create table t (a int)");
            connection.setReadOnly(true);
            connection.setAutoCommit(false);
            fails("25006", p -> run(connection, "insert into t values (1)"), place);
            connection.rollback();
            connection.setReadOnly(false);
            run(connection, "insert into t values (1)");
            connection.commit();
        });
        cases.add("savepoints", place -> {
            Connection connection = place.connect();
            run(connection, "create table t (a int)");
            connection.setAutoCommit(false);
            run(connection, "insert into t values (1)");
            Savepoint named = connection.setSavepoint("one");
            run(connection, "insert into t values (2)");
            Savepoint unnamed = connection.setSavepoint();
            run(connection, "insert into t values (3)");
            connection.rollback(unnamed);
            connection.releaseSavepoint(named);
            connection.commit();
            equal(List.of("1", "2"), query(connection, "select a from t order by a"));
        });
        cases.add("autosave_always", place -> {
            Connection connection = place.connect("autosave=always");
            run(connection, "create table t (a int primary key)");
            connection.setAutoCommit(false);
            run(connection, "insert into t values (1)");
            fails("23505", p -> run(connection, "insert into t values (1)"), place);
            run(connection, "insert into t values (2)");
            connection.commit();
            equal(List.of("2"), query(connection, "select count(*) from t"));
        });
        cases.add("failed_transaction", place -> {
            Connection connection = place.connect();
            connection.setAutoCommit(false);
            fails("22012", p -> query(connection, "select 1 / 0"), place);
            fails("25P02", p -> query(connection, "select 1"), place);
            connection.rollback();
            equal(List.of("1"), query(connection, "select 1"));
        });
        cases.add("serialization_retry", place -> {
            Connection one = place.connect();
            Connection two = place.connect();
            run(one, "create table t (a int primary key, b int)", "insert into t values (1, 0)");
            for (Connection each : List.of(one, two)) {
                each.setAutoCommit(false);
                each.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
                equal(List.of("0"), query(each, "select b from t"));
            }
            run(one, "update t set b = b + 1");
            one.commit();
            fails("40001", p -> {
                run(two, "update t set b = b + 1");
                two.commit();
            }, place);
            two.rollback();
            run(two, "update t set b = b + 1");
            two.commit();
            equal(List.of("2"), query(one, "select b from t"));
        });
        cases.add("holdable_cursor", place -> {
            Connection connection = place.connect();
            run(connection, "create table t (a int)",
                    "insert into t select * from generate_series(1, 20)");
            connection.setAutoCommit(false);
            PreparedStatement statement = connection.prepareStatement(
                    "select a from t order by a", java.sql.ResultSet.TYPE_FORWARD_ONLY,
                    java.sql.ResultSet.CONCUR_READ_ONLY,
                    java.sql.ResultSet.HOLD_CURSORS_OVER_COMMIT);
            statement.setFetchSize(5);
            var result = statement.executeQuery();
            holds(result.next(), "no row");
            connection.commit();
            equal(19, rows(result).size());
        });
        cases.add("two_phase_names_xa", place -> {
            // Programs ask for an XA source and use it without two phases.
            PGXADataSource source = new PGXADataSource();
            source.setUrl(place.url());
            source.setUser(Place.USER);
            source.setPassword(Place.PASSWORD);
            var xa = source.getXAConnection();
            try (Connection connection = xa.getConnection()) {
                equal(List.of("3"), query(connection, "select 3"));
            } finally {
                xa.close();
            }
        });
        cases.add("row_locks", place -> {
            Connection one = place.connect();
            Connection two = place.connect();
            run(one, "create table t (a int primary key)", "insert into t values (1), (2)");
            one.setAutoCommit(false);
            equal(List.of("1"), query(one, "select a from t where a = 1 for update"));
            equal(List.of("2"), query(two, "select a from t for update skip locked"));
            SQLException error = fails("55P03",
                    p -> query(two, "select a from t where a = 1 for update nowait"), place);
            holds(error.getMessage().contains("could not obtain lock on row in relation \"t\""),
                    error.getMessage());
            one.rollback();
        });
    }
}
