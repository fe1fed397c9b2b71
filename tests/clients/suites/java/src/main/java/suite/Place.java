package suite;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Properties;

/** Where one case works: a schema of its own, made empty before the case begins. */
final class Place {
    static final String HOST = variable("PGHOST", "127.0.0.1");
    static final int PORT = Integer.parseInt(variable("PGPORT", "5432"));
    static final String USER = variable("PGUSER", "postgres");
    static final String DATABASE = variable("PGDATABASE", USER);
    static final String PASSWORD = variable("PGPASSWORD", "");

    final String schema;
    private final List<Connection> opened = new ArrayList<>();

    Place(String schema) {
        this.schema = schema;
    }

    private static String variable(String name, String otherwise) {
        String value = System.getenv(name);
        return value == null || value.isEmpty() ? otherwise : value;
    }

    /** Drops what an earlier run left, and makes the schema. */
    void prepare() throws SQLException {
        try (Connection connection = DriverManager.getConnection(plainUrl(), properties());
                Statement statement = connection.createStatement()) {
            statement.execute("drop schema if exists " + schema + " cascade");
            statement.execute("create schema " + schema);
        }
    }

    static String plainUrl() {
        return "jdbc:postgresql://" + HOST + ":" + PORT + "/" + DATABASE;
    }

    /** The address, with the schema as the search path. */
    String url(String... more) {
        String options = more.length == 0 ? "" : "&" + String.join("&", more);
        return plainUrl() + "?currentSchema=" + schema + options;
    }

    static Properties properties() {
        Properties properties = new Properties();
        properties.setProperty("user", USER);
        properties.setProperty("password", PASSWORD);
        return properties;
    }

    /** A connection that is closed when the case ends. */
    Connection connect(String... more) throws SQLException {
        Connection connection = DriverManager.getConnection(url(more), properties());
        synchronized (opened) {
            opened.add(connection);
        }
        return connection;
    }

    void close() {
        synchronized (opened) {
            for (Connection connection : opened) {
                try {
                    connection.abort(Runnable::run);
                } catch (SQLException ignored) {
                    // The case is over; what the connection says no longer matters.
                }
            }
        }
    }

    static void run(Connection connection, String... statements) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            for (String text : statements) {
                statement.execute(text);
            }
        }
    }

    /** All rows, each as its columns' texts with a bar between them. */
    static List<String> rows(ResultSet result, String... columns) throws SQLException {
        List<String> found = new ArrayList<>();
        ResultSetMetaData described = result.getMetaData();
        while (result.next()) {
            List<String> row = new ArrayList<>();
            if (columns.length == 0) {
                for (int at = 1; at <= described.getColumnCount(); at++) {
                    row.add(result.getString(at));
                }
            }
            for (String column : columns) {
                row.add(result.getString(column));
            }
            found.add(row.stream().map(String::valueOf).reduce((a, b) -> a + "|" + b).orElse(""));
        }
        result.close();
        return found;
    }

    static List<String> query(Connection connection, String text) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            return rows(statement.executeQuery(text));
        }
    }

    static void equal(Object wanted, Object found) {
        if (!Objects.deepEquals(wanted, found)) {
            throw new AssertionError("wanted " + shown(wanted) + ", found " + shown(found));
        }
    }

    private static String shown(Object value) {
        return value instanceof Object[] array ? java.util.Arrays.deepToString(array)
                : value instanceof byte[] bytes ? java.util.Arrays.toString(bytes)
                : value instanceof int[] ints ? java.util.Arrays.toString(ints)
                : String.valueOf(value);
    }

    static void holds(boolean truth, String what) {
        if (!truth) {
            throw new AssertionError(what);
        }
    }

    /** The error that the body ends in; its SQLSTATE must be the one wanted. */
    static SQLException fails(String state, Body body, Place place) throws Exception {
        try {
            body.run(place);
        } catch (SQLException error) {
            equal(state, error.getSQLState());
            return error;
        }
        throw new AssertionError("no error; wanted " + state);
    }
}
