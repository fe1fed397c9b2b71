package suite;

import static suite.Place.equal;
import static suite.Place.holds;
import static suite.Place.query;
import static suite.Place.run;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.SQLTransientConnectionException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** HikariCP: a pool's life. */
final class HikariCases {
    private HikariCases() {}

    private static HikariConfig config(Place place) {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(place.url());
        config.setUsername(Place.USER);
        config.setPassword(Place.PASSWORD);
        config.setMaximumPoolSize(3);
        config.setMinimumIdle(1);
        return config;
    }

    static void add(Cases cases) {
        cases.add("get_and_give_back", place -> {
            try (HikariDataSource pool = new HikariDataSource(config(place))) {
                for (int at = 0; at < 20; at++) {
                    try (Connection connection = pool.getConnection()) {
                        equal(List.of("1"), query(connection, "select 1"));
                    }
                }
                holds(pool.getHikariPoolMXBean().getTotalConnections() <= 3, "too many");
            }
        });
        cases.add("data_source_class", place -> {
            HikariConfig config = new HikariConfig();
            config.setDataSourceClassName("org.postgresql.ds.PGSimpleDataSource");
            config.addDataSourceProperty("serverName", Place.HOST);
            config.addDataSourceProperty("portNumber", Place.PORT);
            config.addDataSourceProperty("databaseName", Place.DATABASE);
            config.addDataSourceProperty("user", Place.USER);
            config.addDataSourceProperty("password", Place.PASSWORD);
            config.addDataSourceProperty("currentSchema", place.schema);
            try (HikariDataSource pool = new HikariDataSource(config);
                    Connection connection = pool.getConnection()) {
                equal(place.schema, connection.getSchema());
            }
        });
        cases.add("reset_of_state", place -> {
            HikariConfig config = config(place);
            config.setMaximumPoolSize(1);
            try (HikariDataSource pool = new HikariDataSource(config)) {
                String before;
                try (Connection connection = pool.getConnection()) {
                    before = query(connection, "show transaction_isolation").get(0);
                    connection.setAutoCommit(false);
                    connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
                    connection.setReadOnly(true);
                    query(connection, "select 1");
                }
                try (Connection connection = pool.getConnection()) {
                    equal(true, connection.getAutoCommit());
                    equal(false, connection.isReadOnly());
                    equal(before, query(connection, "show transaction_isolation").get(0));
                }
            }
        });
        cases.add("uncommitted_is_rolled_back", place -> {
            try (HikariDataSource pool = new HikariDataSource(config(place))) {
                try (Connection connection = pool.getConnection()) {
                    run(connection, "create table t (a int)");
                    connection.setAutoCommit(false);
                    run(connection, "insert into t values (1)");
                }
                try (Connection connection = pool.getConnection()) {
                    equal(List.of("0"), query(connection, "select count(*) from t"));
                }
            }
        });
        cases.add("exhausted", place -> {
            HikariConfig config = config(place);
            config.setMaximumPoolSize(1);
            config.setConnectionTimeout(300);
            try (HikariDataSource pool = new HikariDataSource(config);
                    Connection held = pool.getConnection()) {
                equal(List.of("1"), query(held, "select 1"));
                pool.getConnection().close();
                throw new AssertionError("a second connection");
            } catch (SQLTransientConnectionException expected) {
                holds(expected.getMessage().contains("not available"), expected.getMessage());
            }
        });
        cases.add("init_and_test_query", place -> {
            HikariConfig config = config(place);
            config.setConnectionInitSql("set statement_timeout = '7s'");
            config.setConnectionTestQuery("select 1");
            config.setTransactionIsolation("TRANSACTION_SERIALIZABLE");
            try (HikariDataSource pool = new HikariDataSource(config);
                    Connection connection = pool.getConnection()) {
                equal(List.of("7s"), query(connection, "show statement_timeout"));
                equal(Connection.TRANSACTION_SERIALIZABLE, connection.getTransactionIsolation());
            }
        });
        cases.add("terminated_connection_is_replaced", place -> {
            HikariConfig config = config(place);
            config.setMaximumPoolSize(1);
            try (HikariDataSource pool = new HikariDataSource(config)) {
                String victim;
                try (Connection connection = pool.getConnection()) {
                    victim = query(connection, "select pg_backend_pid()").get(0);
                }
                equal(List.of("t"), query(place.connect(),
                        "select pg_terminate_backend(" + victim + ")"));
                Thread.sleep(800);
                try (Connection connection = pool.getConnection()) {
                    holds(!victim.equals(query(connection, "select pg_backend_pid()").get(0)),
                            "the same process");
                }
            }
        });
        cases.add("many_threads", place -> {
            run(place.connect(), "create table t (a int)");
            try (HikariDataSource pool = new HikariDataSource(config(place))) {
                ExecutorService executor = Executors.newFixedThreadPool(8);
                List<Future<Void>> all = new ArrayList<>();
                for (int at = 0; at < 40; at++) {
                    int number = at;
                    Callable<Void> task = () -> {
                        try (Connection connection = pool.getConnection()) {
                            run(connection, "insert into t values (" + number + ")");
                        }
                        return null;
                    };
                    all.add(executor.submit(task));
                }
                for (Future<Void> one : all) {
                    one.get();
                }
                executor.shutdown();
                equal(List.of("40|780"), query(place.connect(),
                        "select count(*), sum(a) from t"));
            }
        });
        cases.add("schema_and_catalog", place -> {
            HikariConfig config = config(place);
            config.setSchema(place.schema);
            config.setCatalog(Place.DATABASE);
            try (HikariDataSource pool = new HikariDataSource(config);
                    Connection connection = pool.getConnection()) {
                equal(place.schema, connection.getSchema());
                equal(Place.DATABASE, connection.getCatalog());
            }
        });
        cases.add("evict_and_suspend", place -> {
            HikariConfig config = config(place);
            config.setAllowPoolSuspension(true);
            try (HikariDataSource pool = new HikariDataSource(config)) {
                Connection connection = pool.getConnection();
                pool.evictConnection(connection);
                connection.close();
                pool.getHikariPoolMXBean().suspendPool();
                pool.getHikariPoolMXBean().softEvictConnections();
                pool.getHikariPoolMXBean().resumePool();
                try (Connection next = pool.getConnection()) {
                    equal(List.of("1"), query(next, "select 1"));
                } catch (SQLException error) {
                    throw new AssertionError(error);
                }
            }
        });
    }
}
