package suite;

import static suite.Place.equal;
import static suite.Place.fails;
import static suite.Place.holds;
import static suite.Place.query;
import static suite.Place.rows;
import static suite.Place.run;

import java.io.ByteArrayOutputStream;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Types;
import java.util.List;
import org.postgresql.PGConnection;
import org.postgresql.PGNotification;
import org.postgresql.copy.CopyIn;
import org.postgresql.copy.CopyManager;

/** pgjdbc: COPY, LISTEN, cancel, time-outs, callables, escapes. */
final class PgjdbcSpecials {
    private PgjdbcSpecials() {}

    private static CopyManager copies(Connection connection) throws SQLException {
        return connection.unwrap(PGConnection.class).getCopyAPI();
    }

    static void add(Cases cases) {
        cases.add("copy_in", place -> {
            Connection connection = place.connect();
            run(connection, "create table t (a int, b text)");
            equal(2L, copies(connection).copyIn("copy t from stdin (format csv, header)",
                    new StringReader("a,b\n1,\"x,y\"\n2,\n")));
            equal(List.of("1|x,y", "2|null"), query(connection, "select * from t order by a"));
        });
        cases.add("copy_in_pieces", place -> {
            Connection connection = place.connect();
            run(connection, "create table t (a int, b text)");
            CopyIn copy = copies(connection).copyIn("copy t from stdin");
            for (int at = 0; at < 100; at++) {
                byte[] line = (at + "\trow " + at + "\n").getBytes(StandardCharsets.UTF_8);
                copy.writeToCopy(line, 0, line.length);
            }
            equal(100L, copy.endCopy());
            equal(List.of("100"), query(connection, "select count(*) from t"));
        });
        cases.add("copy_cancelled", place -> {
            Connection connection = place.connect();
            run(connection, "create table t (a int)");
            CopyIn copy = copies(connection).copyIn("copy t from stdin");
            copy.writeToCopy("1\n".getBytes(StandardCharsets.UTF_8), 0, 2);
            copy.cancelCopy();
            equal(List.of("0"), query(connection, "select count(*) from t"));
        });
        cases.add("copy_error", place -> {
            Connection connection = place.connect();
            run(connection, "create table t (a int)");
            SQLException error = fails("22P02", p -> copies(connection).copyIn(
                    "copy t from stdin", new StringReader("1\nx\n")), place);
            holds(error.getMessage().contains("COPY t, line 2, column a: \"x\""),
                    error.getMessage());
            equal(List.of("0"), query(connection, "select count(*) from t"));
        });
        cases.add("copy_out", place -> {
            Connection connection = place.connect();
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            equal(3L, copies(connection).copyOut(
                    "copy (select g, 'n' || g from generate_series(1, 3) g) to stdout", out));
            equal("1\tn1\n2\tn2\n3\tn3\n", out.toString(StandardCharsets.UTF_8));
        });
        cases.add("copy_binary_round_trip", place -> {
            Connection connection = place.connect();
            run(connection, "create table t (a int, b text, c timestamptz)",
                    "create table u (a int, b text, c timestamptz)",
                    "insert into t values (1, 'x', '2024-01-01 00:00Z'), (null, null, null)");
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            equal(2L, copies(connection).copyOut("copy t to stdout (format binary)", out));
            equal(2L, copies(connection).copyIn("copy u from stdin (format binary)",
                    new java.io.ByteArrayInputStream(out.toByteArray())));
            equal(List.of("0"), query(connection,
                    "select count(*) from (table t except table u) d"));
        });
        cases.add("listen_and_notify", place -> {
            Connection one = place.connect();
            Connection two = place.connect();
            run(one, "listen \"" + place.schema + "\"");
            run(two, "notify \"" + place.schema + "\", 'hello'");
            PGNotification[] told = one.unwrap(PGConnection.class).getNotifications(5000);
            equal(1, told.length);
            equal(place.schema, told[0].getName());
            equal("hello", told[0].getParameter());
            equal(two.unwrap(PGConnection.class).getBackendPID(), told[0].getPID());
        });
        cases.add("cancel", place -> {
            Connection connection = place.connect();
            Statement statement = connection.createStatement();
            Thread canceller = new Thread(() -> {
                try {
                    Thread.sleep(500);
                    statement.cancel();
                } catch (SQLException | InterruptedException error) {
                    throw new IllegalStateException(error);
                }
            });
            canceller.start();
            fails("57014", p -> statement.execute("select pg_sleep(20)"), place);
            canceller.join();
            equal(List.of("1"), query(connection, "select 1"));
        });
        cases.add("query_timeout", place -> {
            Connection connection = place.connect();
            Statement statement = connection.createStatement();
            statement.setQueryTimeout(1);
            fails("57014", p -> statement.execute("select pg_sleep(20)"), place);
            equal(List.of("1"), query(connection, "select 1"));
        });
        cases.add("statement_timeout", place -> {
            Connection connection = place.connect();
            run(connection, "set statement_timeout = 300");
            fails("57014", p -> run(connection, "select pg_sleep(20)"), place);
        });
        cases.add("lock_timeout", place -> {
            Connection one = place.connect();
            Connection two = place.connect();
            run(one, "create table t (a int primary key)", "insert into t values (1)");
            one.setAutoCommit(false);
            run(one, "update t set a = 1");
            run(two, "set lock_timeout = 300");
            fails("55P03", p -> query(two, "select * from t for update"), place);
            one.rollback();
        });
        cases.add("pg_sleep_in_from", place -> equal(List.of(""),
                query(place.connect(), "select * from pg_sleep(0.01)")));
        callables(cases);
        cases.add("escapes", place -> {
            Connection connection = place.connect();
            equal(List.of("2024-01-02|10:20:30|2024-01-02 03:04:05|3|ab"), query(connection,
                    "select {d '2024-01-02'}, {t '10:20:30'}, {ts '2024-01-02 03:04:05'},"
                            + " {fn length('abc')}, {fn concat('a', 'b')}"));
            run(connection, "create table t (a int)", "create table u (a int)",
                    "insert into t values (1)");
            equal(List.of("1|null"), query(connection,
                    "select t.a, u.a from {oj t left outer join u on t.a = u.a}"));
            equal(List.of("2|8|2024"), query(connection,
                    "select {fn sign(2.5)} + 1, {fn power(2, 3)}, {fn year({d '2024-01-02'})}"));
        });
        cases.add("enquoted", place -> {
            Connection connection = place.connect();
            Statement statement = connection.createStatement();
            String odd = statement.enquoteIdentifier("Odd Name", true);
            run(connection, "create table " + odd + " (\"Größe\" int)",
                    "insert into " + odd + " values (1)");
            equal(List.of("1"), query(connection, "select \"Größe\" from " + odd));
        });
        cases.add("advisory_locks", place -> {
            Connection one = place.connect();
            Connection two = place.connect();
            equal(List.of("t"), query(one, "select pg_try_advisory_lock(77001)"));
            equal(List.of("f"), query(two, "select pg_try_advisory_lock(77001)"));
            equal(List.of("t"), query(one, "select pg_advisory_unlock(77001)"));
        });
        cases.add("large_object_needs_large_objects", place -> {
            Connection connection = place.connect();
            connection.setAutoCommit(false);
            var api = connection.unwrap(PGConnection.class).getLargeObjectAPI();
            long oid = api.createLO();
            api.delete(oid);
            connection.commit();
        });
    }

    private static void callables(Cases cases) {
        cases.add("call_text", place -> {
            CallableStatement call = place.connect().prepareCall("{? = call upper(?)}");
            call.registerOutParameter(1, Types.VARCHAR);
            call.setString(2, "lower");
            call.execute();
            equal("LOWER", call.getString(1));
        });
        cases.add("call_numbers", place -> {
            Connection connection = place.connect();
            CallableStatement call = connection.prepareCall("{? = call abs(?)}");
            call.registerOutParameter(1, Types.INTEGER);
            for (int at = 1; at <= 7; at++) {
                call.setInt(2, -at);
                call.execute();
                equal(at, call.getInt(1));
            }
        });
        cases.add("call_without_result", place -> {
            Connection connection = place.connect();
            CallableStatement call = connection.prepareCall("{call pg_sleep(?)}");
            call.setDouble(1, 0.01);
            call.execute();
        });
        cases.add("call_returning_rows", place -> {
            Connection connection = place.connect();
            CallableStatement call = connection.prepareCall("{call generate_series(?, ?)}");
            call.setInt(1, 1);
            call.setInt(2, 3);
            equal(List.of("1", "2", "3"), rows(call.executeQuery()));
        });
        cases.add("call_mode_select", place -> {
            Connection connection = place.connect("escapeSyntaxCallMode=select");
            CallableStatement call = connection.prepareCall("{? = call lower(?)}");
            call.registerOutParameter(1, Types.VARCHAR);
            call.setString(2, "UPPER");
            call.execute();
            equal("upper", call.getString(1));
        });
        cases.add("call_procedure_needs_functions", place -> {
            Connection connection = place.connect("escapeSyntaxCallMode=callIfNoReturn");
            run(connection, "create table t (a int)",
                    "create procedure p(x int) language sql as 'insert into t values (x)'");
            CallableStatement call = connection.prepareCall("{call p(?)}");
            call.setInt(1, 5);
            call.execute();
            equal(List.of("5"), query(connection, "select a from t"));
        });
    }
}
