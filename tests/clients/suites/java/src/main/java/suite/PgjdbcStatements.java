package suite;

import static suite.Place.equal;
import static suite.Place.fails;
import static suite.Place.holds;
import static suite.Place.query;
import static suite.Place.rows;
import static suite.Place.run;

import java.sql.BatchUpdateException;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Arrays;
import java.util.List;
import org.postgresql.PGStatement;
import org.postgresql.util.PSQLException;

/** pgjdbc: statements, batches, result sets, keys, errors; in both query modes. */
final class PgjdbcStatements {
    private static final String[] MODES = {
        "extended", "simple", "extendedForPrepared", "extendedCacheEverything"
    };

    private PgjdbcStatements() {}

    static void add(Cases cases) {
        for (String mode : MODES) {
            cases.add("mode_" + mode, place -> {
                Connection connection = place.connect("preferQueryMode=" + mode);
                run(connection, "create table t (a int primary key, b text, c numeric(8,2))");
                PreparedStatement insert =
                        connection.prepareStatement("insert into t values (?, ?, ?)");
                for (int at = 1; at <= 8; at++) {
                    insert.setInt(1, at);
                    insert.setString(2, "it's " + at);
                    insert.setBigDecimal(3, new java.math.BigDecimal(at + ".50"));
                    equal(1, insert.executeUpdate());
                }
                PreparedStatement select =
                        connection.prepareStatement("select b, c from t where a = ?");
                for (int at = 1; at <= 8; at++) {
                    select.setInt(1, at);
                    equal(List.of("it's " + at + "|" + at + ".50"), rows(select.executeQuery()));
                }
                PreparedStatement change =
                        connection.prepareStatement("update t set b = ? where a > ?");
                change.setNull(1, java.sql.Types.VARCHAR);
                change.setInt(2, 5);
                equal(3, change.executeUpdate());
            });
        }
        cases.add("binary_transfer", place -> {
            Connection connection = place.connect("prepareThreshold=-1", "binaryTransfer=true");
            PreparedStatement statement = connection.prepareStatement(
                    "select ?::int4 + 1, ?::int8 + 1, ?::float8, ?::numeric, ?::uuid, ?::date");
            statement.setInt(1, 1);
            statement.setLong(2, 1L << 40);
            statement.setDouble(3, 1.5);
            statement.setBigDecimal(4, new java.math.BigDecimal("12.3400"));
            var uuid = java.util.UUID.fromString("8ba95e2c-1df4-4a52-8d29-3a95a1e5a7a1");
            statement.setObject(5, uuid);
            statement.setObject(6, java.time.LocalDate.of(2024, 2, 29));
            ResultSet result = statement.executeQuery();
            holds(result.next(), "no row");
            equal(2, result.getInt(1));
            equal((1L << 40) + 1, result.getLong(2));
            equal(1.5, result.getDouble(3));
            equal(new java.math.BigDecimal("12.3400"), result.getBigDecimal(4));
            equal(uuid, result.getObject(5));
            equal(java.time.LocalDate.of(2024, 2, 29),
                    result.getObject(6, java.time.LocalDate.class));
        });
        cases.add("several_statements", place -> {
            Connection connection = place.connect();
            Statement statement = connection.createStatement();
            holds(!statement.execute("create table t (a int); insert into t values (1), (2);"
                    + " select a from t order by a"), "a result set came first");
            equal(0, statement.getUpdateCount());
            holds(!statement.getMoreResults(), "a result set came second");
            equal(2, statement.getUpdateCount());
            holds(statement.getMoreResults(), "no result set");
            equal(List.of("1", "2"), rows(statement.getResultSet()));
        });
        cases.add("server_prepared", place -> {
            Connection connection = place.connect();
            PreparedStatement statement = connection.prepareStatement("select ?::int");
            statement.unwrap(PGStatement.class).setPrepareThreshold(1);
            statement.setInt(1, 5);
            equal(List.of("5"), rows(statement.executeQuery()));
            holds(statement.unwrap(PGStatement.class).isUseServerPrepare(), "not prepared");
            equal(List.of("1"), query(connection, "select count(*) from pg_prepared_statements"
                    + " where statement like 'select $1::int%'"));
        });
        cases.add("changed_result_type", place -> {
            Connection connection = place.connect("prepareThreshold=1");
            run(connection, "create table t (a int)", "insert into t values (1)");
            PreparedStatement statement = connection.prepareStatement("select * from t");
            equal(List.of("1"), rows(statement.executeQuery()));
            equal(List.of("1"), rows(statement.executeQuery()));
            run(connection, "alter table t add column b text default 'x'");
            equal(List.of("1|x"), rows(statement.executeQuery()));
        });
        cases.add("parameter_metadata", place -> {
            Connection connection = place.connect();
            run(connection, "create table t (a int, b varchar(10))");
            var described = connection.prepareStatement("insert into t values (?, ?)")
                    .getParameterMetaData();
            equal(2, described.getParameterCount());
            equal("int4", described.getParameterTypeName(1));
            equal("varchar", described.getParameterTypeName(2));
        });
        cases.add("result_metadata", place -> {
            Connection connection = place.connect();
            run(connection, "create table t (id serial primary key, b varchar(10) not null,"
                    + " c numeric(8,2))");
            var described = connection.createStatement()
                    .executeQuery("select id, b as named, c, 1 as one from t").getMetaData();
            equal(4, described.getColumnCount());
            equal("t", described.getTableName(1));
            equal("named", described.getColumnLabel(2));
            equal("b", described.unwrap(org.postgresql.PGResultSetMetaData.class)
                    .getBaseColumnName(2));
            equal(10, described.getPrecision(2));
            equal(8, described.getPrecision(3));
            equal(2, described.getScale(3));
            equal(true, described.isAutoIncrement(1));
            equal(java.sql.ResultSetMetaData.columnNoNulls, described.isNullable(2));
            equal(java.sql.ResultSetMetaData.columnNullableUnknown, described.isNullable(4));
        });
        batches(cases);
        results(cases);
        keys(cases);
        errors(cases);
    }

    private static void batches(Cases cases) {
        for (String rewrite : new String[] {"false", "true"}) {
            cases.add("batch_rewritten_" + rewrite, place -> {
                Connection connection = place.connect("reWriteBatchedInserts=" + rewrite);
                run(connection, "create table t (a int primary key, b text)");
                connection.setAutoCommit(false);
                PreparedStatement batch =
                        connection.prepareStatement("insert into t (a, b) values (?, ?)");
                for (int at = 0; at < 300; at++) {
                    batch.setInt(1, at);
                    batch.setString(2, "row " + at);
                    batch.addBatch();
                }
                equal(300, batch.executeBatch().length);
                connection.commit();
                equal(List.of("300|44850"), query(connection, "select count(*), sum(a) from t"));
            });
        }
        cases.add("batch_upserts_rewritten", place -> {
            Connection connection = place.connect("reWriteBatchedInserts=true");
            run(connection, "create table t (a int primary key, b int)",
                    "insert into t values (1, 0)");
            PreparedStatement batch = connection.prepareStatement("insert into t (a, b)"
                    + " values (?, ?) on conflict (a) do update set b = excluded.b");
            for (int at = 1; at <= 20; at++) {
                batch.setInt(1, at);
                batch.setInt(2, at * 10);
                batch.addBatch();
            }
            batch.executeBatch();
            equal(List.of("20|2100"), query(connection, "select count(*), sum(b) from t"));
        });
        cases.add("batch_of_texts", place -> {
            Connection connection = place.connect();
            Statement statement = connection.createStatement();
            statement.addBatch("create table t (a int)");
            statement.addBatch("insert into t values (1), (2)");
            statement.addBatch("update t set a = a + 1");
            statement.addBatch("delete from t where a = 3");
            equal(new int[] {0, 2, 2, 1}, statement.executeBatch());
        });
        cases.add("batch_error", place -> {
            Connection connection = place.connect();
            run(connection, "create table t (a int primary key)");
            connection.setAutoCommit(false);
            PreparedStatement batch = connection.prepareStatement("insert into t values (?)");
            for (int value : new int[] {1, 2, 1, 3}) {
                batch.setInt(1, value);
                batch.addBatch();
            }
            try {
                batch.executeBatch();
                throw new AssertionError("no error");
            } catch (BatchUpdateException error) {
                equal("23505", error.getSQLState());
                equal(Statement.EXECUTE_FAILED, error.getUpdateCounts()[2]);
            }
            connection.rollback();
            equal(List.of("0"), query(connection, "select count(*) from t"));
        });
        cases.add("batch_with_keys", place -> {
            Connection connection = place.connect();
            run(connection, "create table t (id serial primary key, b text)");
            PreparedStatement batch = connection.prepareStatement(
                    "insert into t (b) values (?)", Statement.RETURN_GENERATED_KEYS);
            for (String value : List.of("x", "y", "z")) {
                batch.setString(1, value);
                batch.addBatch();
            }
            batch.executeBatch();
            equal(List.of("1", "2", "3"), rows(batch.getGeneratedKeys(), "id"));
        });
    }

    private static void results(Cases cases) {
        cases.add("fetch_size", place -> {
            Connection connection = place.connect();
            run(connection, "create table t (a int)",
                    "insert into t select * from generate_series(1, 250)");
            connection.setAutoCommit(false);
            Statement statement = connection.createStatement();
            statement.setFetchSize(100);
            long sum = 0;
            ResultSet result = statement.executeQuery("select a from t order by a");
            while (result.next()) {
                sum += result.getInt(1);
            }
            equal(31375L, sum);
        });
        cases.add("max_rows", place -> {
            Connection connection = place.connect();
            Statement statement = connection.createStatement();
            statement.setMaxRows(3);
            equal(List.of("1", "2", "3"), rows(statement.executeQuery(
                    "select * from generate_series(1, 10)")));
        });
        cases.add("scrollable", place -> {
            Connection connection = place.connect();
            Statement statement = connection.createStatement(
                    ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_READ_ONLY);
            ResultSet result = statement.executeQuery("select * from generate_series(1, 10)");
            holds(result.last(), "no last row");
            equal(10, result.getRow());
            holds(result.absolute(3), "no third row");
            equal(3, result.getInt(1));
            holds(result.previous(), "no row before");
            equal(2, result.getInt(1));
        });
        cases.add("updatable", place -> {
            Connection connection = place.connect();
            run(connection, "create table only_here (id int primary key, b text)",
                    "insert into only_here values (1, 'one'), (2, 'two'), (3, 'three')");
            Statement statement = connection.createStatement(
                    ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE);
            ResultSet result = statement.executeQuery("select id, b from only_here order by id");
            holds(result.next(), "no row");
            result.updateString("b", "ONE");
            result.updateRow();
            holds(result.next(), "no row");
            result.deleteRow();
            result.moveToInsertRow();
            result.updateInt("id", 4);
            result.updateString("b", "four");
            result.insertRow();
            equal(List.of("1|ONE", "3|three", "4|four"),
                    query(connection, "select id, b from only_here order by id"));
        });
        cases.add("updatable_by_unique_index", place -> {
            Connection connection = place.connect();
            run(connection, "create table t (a int not null, b int not null, c text)",
                    "create unique index on t (a, b)", "insert into t values (1, 2, 'x')");
            Statement statement = connection.createStatement(
                    ResultSet.TYPE_FORWARD_ONLY, ResultSet.CONCUR_UPDATABLE);
            ResultSet result = statement.executeQuery("select * from t");
            holds(result.next(), "no row");
            result.updateString("c", "y");
            result.updateRow();
            result.refreshRow();
            equal("y", result.getString("c"));
        });
        cases.add("named_cursor", place -> {
            Connection connection = place.connect();
            connection.setAutoCommit(false);
            run(connection, "declare c cursor for select * from generate_series(1, 5)");
            equal(List.of("1", "2"), query(connection, "fetch 2 from c"));
            equal(List.of("3", "4", "5"), query(connection, "fetch all from c"));
            connection.commit();
        });
        cases.add("refcursor_needs_functions", place -> {
            Connection connection = place.connect();
            run(connection, "create function f() returns refcursor language plpgsql as"
                    + " 'declare r refcursor; begin open r for select 1; return r; end'");
            connection.setAutoCommit(false);
            var call = connection.prepareCall("{? = call f()}");
            call.registerOutParameter(1, java.sql.Types.REF_CURSOR);
            call.execute();
            equal(List.of("1"), rows(call.getObject(1, ResultSet.class)));
        });
        cases.add("large_update_count", place -> {
            Connection connection = place.connect();
            run(connection, "create table t (a int)");
            equal(5L, connection.createStatement().executeLargeUpdate(
                    "insert into t select * from generate_series(1, 5)"));
        });
    }

    private static void keys(Cases cases) {
        cases.add("generated_keys_all", place -> {
            Connection connection = place.connect();
            run(connection, "create table t (id bigserial primary key, b text, c int default 7)");
            PreparedStatement insert = connection.prepareStatement(
                    "insert into t (b) values (?)", Statement.RETURN_GENERATED_KEYS);
            insert.setString(1, "x");
            equal(1, insert.executeUpdate());
            equal(List.of("1|x|7"), rows(insert.getGeneratedKeys()));
        });
        cases.add("generated_keys_named", place -> {
            Connection connection = place.connect();
            run(connection, "create table t (id int generated by default as identity primary key,"
                    + " b text, at timestamptz default now())");
            PreparedStatement insert = connection.prepareStatement(
                    "insert into t (b) values (?)", new String[] {"id", "b"});
            insert.setString(1, "x");
            equal(1, insert.executeUpdate());
            equal(List.of("1|x"), rows(insert.getGeneratedKeys()));
        });
        cases.add("returning", place -> {
            Connection connection = place.connect();
            run(connection, "create table t (id serial primary key, b text)");
            PreparedStatement insert = connection.prepareStatement(
                    "insert into t (b) values (?), (?) returning id, upper(b)");
            insert.setString(1, "x");
            insert.setString(2, "y");
            equal(List.of("1|X", "2|Y"), rows(insert.executeQuery()));
        });
    }

    private static void errors(Cases cases) {
        cases.add("error_unique", place -> {
            Connection connection = place.connect();
            run(connection, "create table t (a int constraint only_one primary key)",
                    "insert into t values (1)");
            var told = ((PSQLException) fails("23505",
                    p -> run(connection, "insert into t values (1)"), place))
                    .getServerErrorMessage();
            equal("only_one", told.getConstraint());
            equal("t", told.getTable());
            equal(place.schema, told.getSchema());
            equal("Key (a)=(1) already exists.", told.getDetail());
        });
        cases.add("error_constraints", place -> {
            Connection connection = place.connect();
            run(connection, "create table p (a int primary key)",
                    "create table t (a int not null, b int constraint small check (b < 10),"
                    + " c int constraint to_p references p)");
            var told = ((PSQLException) fails("23502",
                    p -> run(connection, "insert into t values (null, 1, null)"), place))
                    .getServerErrorMessage();
            equal("a", told.getColumn());
            told = ((PSQLException) fails("23514",
                    p -> run(connection, "insert into t values (1, 11, null)"), place))
                    .getServerErrorMessage();
            equal("small", told.getConstraint());
            told = ((PSQLException) fails("23503",
                    p -> run(connection, "insert into t values (1, 1, 5)"), place))
                    .getServerErrorMessage();
            equal("to_p", told.getConstraint());
            equal("Key (c)=(5) is not present in table \"p\".", told.getDetail());
        });
        cases.add("error_position", place -> {
            Connection connection = place.connect();
            var told = ((PSQLException) fails("42703",
                    p -> query(connection, "select nope from pg_class"), place))
                    .getServerErrorMessage();
            equal(8, told.getPosition());
            fails("42601", p -> query(connection, "selec 1"), place);
            fails("42P01", p -> query(connection, "select * from nope"), place);
            fails("42883", p -> query(connection, "select nope(1)"), place);
        });
        cases.add("error_in_select", place -> {
            Connection connection = place.connect();
            SQLException error = fails("22P02", p -> {
                PreparedStatement statement = connection.prepareStatement("select ?::text::int");
                statement.setString(1, "abc");
                statement.executeQuery();
            }, place);
            holds(error.getMessage().contains("invalid input syntax for type integer: \"abc\""),
                    error.getMessage());
        });
        cases.add("many_parameters", place -> {
            Connection connection = place.connect();
            String marks = String.join(",", java.util.Collections.nCopies(2000, "?"));
            PreparedStatement statement = connection.prepareStatement(
                    "select count(*) from generate_series(1, 5000) g where g in (" + marks + ")");
            for (int at = 1; at <= 2000; at++) {
                statement.setInt(at, at * 2);
            }
            equal(List.of("2000"), rows(statement.executeQuery()));
        });
        cases.add("any_of_array", place -> {
            Connection connection = place.connect();
            PreparedStatement statement = connection.prepareStatement(
                    "select g from generate_series(1, 9) g where g = any(?) order by g");
            statement.setArray(1, connection.createArrayOf("int4", new Integer[] {7, 3, 99}));
            equal(Arrays.asList("3", "7"), rows(statement.executeQuery()));
        });
    }
}
