package suite;

import static suite.Place.equal;
import static suite.Place.holds;
import static suite.Place.query;
import static suite.Place.rows;
import static suite.Place.run;

import java.io.ByteArrayInputStream;
import java.io.StringReader;
import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Timestamp;
import java.sql.Types;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.Calendar;
import java.util.List;
import java.util.Map;
import java.util.TimeZone;
import java.util.UUID;
import org.postgresql.util.PGInterval;
import org.postgresql.util.PGobject;

/** pgjdbc: each type goes there and comes back, in text and in binary. */
final class PgjdbcTypes {
    private PgjdbcTypes() {}

    /** Writes a value, reads it seven times (the last ones in binary), and compares. */
    private static void trip(Cases cases, String name, String type, Object value, Class<?> as) {
        cases.add("type_" + name, place -> {
            Connection connection = place.connect();
            run(connection, "create table t (id int primary key, v " + type + ")");
            PreparedStatement insert = connection.prepareStatement("insert into t values (?, ?)");
            for (int at = 1; at <= 7; at++) {
                insert.setInt(1, at);
                insert.setObject(2, at == 7 ? null : value);
                insert.executeUpdate();
            }
            PreparedStatement select =
                    connection.prepareStatement("select v from t where id = ?");
            for (int at = 1; at <= 7; at++) {
                select.setInt(1, at);
                ResultSet result = select.executeQuery();
                holds(result.next(), "no row");
                equal(at == 7 ? null : value, result.getObject(1, as));
                equal(at == 7, result.wasNull());
            }
            PreparedStatement where =
                    connection.prepareStatement("select count(*) from t where v = ?");
            for (int at = 0; at < 7; at++) {
                where.setObject(1, value);
                equal(List.of("6"), rows(where.executeQuery()));
            }
        });
    }

    static void add(Cases cases) {
        trip(cases, "bool", "boolean", true, Boolean.class);
        trip(cases, "int2", "smallint", (short) -7, Short.class);
        trip(cases, "int4", "integer", Integer.MIN_VALUE, Integer.class);
        trip(cases, "int8", "bigint", Long.MAX_VALUE, Long.class);
        trip(cases, "float4", "real", 1.25f, Float.class);
        trip(cases, "float8", "double precision", 0.1, Double.class);
        trip(cases, "numeric", "numeric(12,3)", new BigDecimal("-12345.678"), BigDecimal.class);
        trip(cases, "text", "text", "naïve ☃ 'quoted' \\ \n", String.class);
        trip(cases, "varchar", "varchar(20)", "", String.class);
        trip(cases, "uuid", "uuid", UUID.fromString("0a0b0c0d-0102-0304-0506-070809101112"),
                UUID.class);
        trip(cases, "date", "date", LocalDate.of(1582, 10, 15), LocalDate.class);
        trip(cases, "time", "time", LocalTime.of(23, 59, 58, 123456000), LocalTime.class);
        trip(cases, "timestamp", "timestamp", LocalDateTime.of(2024, 2, 29, 1, 2, 3, 456789000),
                LocalDateTime.class);
        trip(cases, "timestamptz", "timestamptz",
                OffsetDateTime.of(2024, 7, 1, 12, 0, 0, 1000, ZoneOffset.UTC),
                OffsetDateTime.class);
        cases.add("type_bytea", place -> {
            Connection connection = place.connect();
            run(connection, "create table t (v bytea)");
            byte[] value = {0, 1, 127, -128, -1, 39, 92};
            PreparedStatement insert = connection.prepareStatement("insert into t values (?)");
            insert.setBytes(1, value);
            insert.executeUpdate();
            insert.setBinaryStream(1, new ByteArrayInputStream(value), value.length);
            insert.executeUpdate();
            PreparedStatement select = connection.prepareStatement("select v from t");
            for (int at = 0; at < 7; at++) {
                ResultSet result = select.executeQuery();
                while (result.next()) {
                    equal(value, result.getBytes(1));
                }
            }
        });
        cases.add("type_old_timestamp_with_calendar", place -> {
            Connection connection = place.connect();
            run(connection, "create table t (a timestamp, b timestamptz, c date)");
            Calendar tokyo = Calendar.getInstance(TimeZone.getTimeZone("Asia/Tokyo"));
            Timestamp moment = Timestamp.from(OffsetDateTime.of(
                    2024, 1, 1, 0, 0, 0, 5000, ZoneOffset.UTC).toInstant());
            PreparedStatement insert = connection.prepareStatement(
                    "insert into t values (?, ?, ?)");
            insert.setTimestamp(1, moment, tokyo);
            insert.setTimestamp(2, moment);
            insert.setDate(3, java.sql.Date.valueOf("2024-01-01"));
            insert.executeUpdate();
            equal(List.of("2024-01-01 09:00:00.000005|2024-01-01"),
                    query(connection, "select a::text, c::text from t"));
            PreparedStatement select = connection.prepareStatement("select a, b from t");
            for (int at = 0; at < 7; at++) {
                ResultSet result = select.executeQuery();
                holds(result.next(), "no row");
                equal(moment, result.getTimestamp(1, tokyo));
                equal(moment, result.getTimestamp(2));
            }
        });
        cases.add("type_interval", place -> {
            Connection connection = place.connect();
            PreparedStatement select = connection.prepareStatement("select ?::interval * 2");
            for (int at = 0; at < 7; at++) {
                select.setObject(1, new PGInterval(1, 2, 3, 4, 5, 6.5));
                ResultSet result = select.executeQuery();
                holds(result.next(), "no row");
                equal(new PGInterval(2, 4, 6, 8, 10, 13), result.getObject(1));
            }
        });
        cases.add("type_json", place -> {
            Connection connection = place.connect();
            run(connection, "create table t (a json, b jsonb)");
            PreparedStatement insert = connection.prepareStatement("insert into t values (?, ?)");
            for (int at = 1; at <= 2; at++) {
                PGobject value = new PGobject();
                value.setType(at == 1 ? "json" : "jsonb");
                value.setValue("{\"b\":  1, \"a\": [true, null]}");
                insert.setObject(at, value);
            }
            insert.executeUpdate();
            insert.setObject(1, "[1]", Types.OTHER);
            insert.setObject(2, "[2]", Types.OTHER);
            insert.executeUpdate();
            PreparedStatement select = connection.prepareStatement("select a, b from t");
            for (int at = 0; at < 7; at++) {
                equal(List.of("{\"b\":  1, \"a\": [true, null]}|{\"a\": [true, null], \"b\": 1}",
                        "[1]|[2]"), rows(select.executeQuery()));
            }
        });
        cases.add("json_question_mark_operators", place -> {
            Connection connection = place.connect();
            PreparedStatement select = connection.prepareStatement(
                    "select '{\"a\": 1}'::jsonb ?? ?, '{\"a\": 1}'::jsonb ??| ?");
            select.setString(1, "a");
            select.setArray(2, connection.createArrayOf("text", new String[] {"x", "a"}));
            equal(List.of("t|t"), rows(select.executeQuery()));
        });
        cases.add("type_enum", place -> {
            Connection connection = place.connect();
            run(connection, "create type mood as enum ('sad', 'glad')",
                    "create table t (v mood)");
            PreparedStatement insert = connection.prepareStatement("insert into t values (?)");
            insert.setObject(1, "glad", Types.OTHER);
            insert.executeUpdate();
            PreparedStatement select = connection.prepareStatement(
                    "select v from t where v = ?::mood");
            select.setString(1, "glad");
            equal(List.of("glad"), rows(select.executeQuery()));
        });
        cases.add("string_type_unspecified", place -> {
            Connection connection = place.connect("stringtype=unspecified");
            run(connection, "create table t (a int, b date, c jsonb, d uuid)");
            PreparedStatement insert =
                    connection.prepareStatement("insert into t values (?, ?, ?, ?)");
            insert.setString(1, "5");
            insert.setString(2, "2024-01-02");
            insert.setString(3, "{}");
            insert.setString(4, "0a0b0c0d-0102-0304-0506-070809101112");
            insert.executeUpdate();
            equal(List.of("5|2024-01-02|{}|0a0b0c0d-0102-0304-0506-070809101112"),
                    query(connection, "select * from t"));
        });
        arrays(cases);
        cases.add("large_text_and_streams", place -> {
            Connection connection = place.connect();
            run(connection, "create table t (v text)");
            String big = "päx".repeat(200_000);
            PreparedStatement insert = connection.prepareStatement("insert into t values (?)");
            insert.setCharacterStream(1, new StringReader(big));
            insert.executeUpdate();
            ResultSet result = connection.createStatement().executeQuery("select v from t");
            holds(result.next(), "no row");
            equal(big, result.getString(1));
        });
        cases.add("hstore_map_is_absent", place -> {
            Connection connection = place.connect();
            equal(List.of("0"), query(connection,
                    "select count(*) from pg_type where typname = 'hstore'"));
            equal(Map.of(), connection.getTypeMap());
        });
        cases.add("type_composite", place -> {
            Connection connection = place.connect();
            run(connection, "create type pair as (a int, b text)");
            ResultSet result = connection.createStatement()
                    .executeQuery("select row(1, 'x y')::pair");
            holds(result.next(), "no row");
            PGobject value = (PGobject) result.getObject(1);
            equal("(1,\"x y\")", value.getValue());
        });
    }

    private static void arrays(Cases cases) {
        Map<String, Object[]> values = new java.util.LinkedHashMap<>();
        values.put("int4", new Integer[] {1, null, 3});
        values.put("int8", new Long[] {1L, 1L << 40});
        values.put("text", new String[] {"a", "", "with,comma", "q\"uote", null, "NULL"});
        values.put("float8", new Double[] {1.5, 2.5});
        values.put("bool", new Boolean[] {true, false});
        values.put("numeric", new BigDecimal[] {new BigDecimal("1.5")});
        values.put("uuid", new UUID[] {new UUID(1, 2)});
        values.forEach((type, value) -> cases.add("array_" + type, place -> {
            Connection connection = place.connect();
            run(connection, "create table t (v " + type + "[])");
            PreparedStatement insert = connection.prepareStatement("insert into t values (?)");
            insert.setArray(1, connection.createArrayOf(type, value));
            insert.executeUpdate();
            PreparedStatement select = connection.prepareStatement("select v from t");
            for (int at = 0; at < 7; at++) {
                ResultSet result = select.executeQuery();
                holds(result.next(), "no row");
                equal(value, result.getArray(1).getArray());
                equal(type, result.getArray(1).getBaseTypeName());
            }
        }));
        cases.add("array_primitive", place -> {
            Connection connection = place.connect();
            PreparedStatement select = connection.prepareStatement("select cardinality(?::int[])");
            for (int at = 0; at < 7; at++) {
                select.setObject(1, new int[] {4, 5, 6});
                equal(List.of("3"), rows(select.executeQuery()));
            }
        });
        cases.add("array_result_set", place -> {
            Connection connection = place.connect();
            ResultSet result = connection.createStatement()
                    .executeQuery("select array['x', 'y']");
            holds(result.next(), "no row");
            equal(List.of("1|x", "2|y"), rows(result.getArray(1).getResultSet()));
        });
        cases.add("array_two_dimensions", place -> {
            Connection connection = place.connect();
            ResultSet result = connection.createStatement()
                    .executeQuery("select array[[1, 2], [3, 4]]");
            holds(result.next(), "no row");
            equal(new Integer[][] {{1, 2}, {3, 4}}, result.getArray(1).getArray());
        });
    }
}
