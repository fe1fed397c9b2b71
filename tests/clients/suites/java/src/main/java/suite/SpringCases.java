package suite;

import static suite.Place.equal;
import static suite.Place.holds;
import static suite.Place.run;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.math.BigDecimal;
import java.sql.Connection;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.springframework.dao.DataAccessException;
import org.springframework.dao.DataIntegrityViolationException;
import org.springframework.dao.DuplicateKeyException;
import org.springframework.dao.EmptyResultDataAccessException;
import org.springframework.dao.QueryTimeoutException;
import org.springframework.jdbc.BadSqlGrammarException;
import org.springframework.jdbc.core.BatchPreparedStatementSetter;
import org.springframework.jdbc.core.DataClassRowMapper;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.core.namedparam.MapSqlParameterSource;
import org.springframework.jdbc.core.namedparam.NamedParameterJdbcTemplate;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.core.simple.SimpleJdbcCall;
import org.springframework.jdbc.core.simple.SimpleJdbcInsert;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.jdbc.datasource.init.ResourceDatabasePopulator;
import org.springframework.jdbc.support.GeneratedKeyHolder;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.jdbc.support.incrementer.PostgresSequenceMaxValueIncrementer;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.support.TransactionTemplate;

/** Spring JDBC: templates, inserts by meta data, transactions, translated errors. */
final class SpringCases {
    private SpringCases() {}

    /** A row of the table. */
    record Person(int id, String name, BigDecimal balance) {}

    private interface Used {
        void run(JdbcTemplate template, HikariDataSource source) throws Exception;
    }

    private static void use(Cases cases, String name, Used used) {
        cases.add(name, place -> {
            HikariConfig config = new HikariConfig();
            config.setJdbcUrl(place.url());
            config.setUsername(Place.USER);
            config.setPassword(Place.PASSWORD);
            config.setMaximumPoolSize(4);
            config.setMinimumIdle(1);
            run(place.connect(), "create table person (id serial primary key,"
                    + " name text not null constraint one_name unique,"
                    + " balance numeric(10,2) not null default 0 check (balance >= 0))",
                    "insert into person (name, balance) values ('ada', 10), ('bob', 20)");
            try (HikariDataSource source = new HikariDataSource(config)) {
                used.run(new JdbcTemplate(source), source);
            }
        });
    }

    private static TransactionTemplate transactions(HikariDataSource source, int propagation) {
        TransactionTemplate template =
                new TransactionTemplate(new JdbcTransactionManager(source));
        template.setPropagationBehavior(propagation);
        return template;
    }

    static void add(Cases cases) {
        use(cases, "query_for_object", (template, source) -> {
            equal(2, template.queryForObject("select count(*) from person", Integer.class));
            equal("ada", template.queryForObject("select name from person where id = ?",
                    String.class, 1));
            try {
                template.queryForObject("select name from person where id = 99", String.class);
                throw new AssertionError("no error");
            } catch (EmptyResultDataAccessException expected) {
                equal(0, expected.getActualSize());
            }
        });
        use(cases, "row_mapper", (template, source) -> equal(
                List.of(new Person(1, "ada", new BigDecimal("10.00")),
                        new Person(2, "bob", new BigDecimal("20.00"))),
                template.query("select * from person order by id",
                        new DataClassRowMapper<>(Person.class))));
        use(cases, "named_parameters", (template, source) -> {
            var named = new NamedParameterJdbcTemplate(template);
            equal(List.of("ada", "bob"), named.queryForList(
                    "select name from person where name in (:names) and balance > :b order by 1",
                    new MapSqlParameterSource("names", List.of("ada", "bob", "eve"))
                            .addValue("b", 5), String.class));
        });
        use(cases, "jdbc_client", (template, source) -> {
            JdbcClient client = JdbcClient.create(source);
            equal(1, client.sql("update person set balance = :b where name = :n")
                    .param("b", new BigDecimal("1")).param("n", "ada").update());
            equal(new Person(1, "ada", new BigDecimal("1.00")), client.sql(
                    "select * from person where id = ?").param(1).query(Person.class).single());
        });
        use(cases, "key_holder", (template, source) -> {
            GeneratedKeyHolder holder = new GeneratedKeyHolder();
            template.update(connection -> {
                var statement = connection.prepareStatement(
                        "insert into person (name) values (?)", new String[] {"id"});
                statement.setString(1, "eve");
                return statement;
            }, holder);
            equal(3, holder.getKey().intValue());
        });
        use(cases, "simple_insert", (template, source) -> {
            SimpleJdbcInsert insert = new SimpleJdbcInsert(source).withTableName("person")
                    .withSchemaName(template.queryForObject("select current_schema()",
                            String.class)).usingGeneratedKeyColumns("id");
            equal(3, insert.executeAndReturnKey(Map.of("name", "eve", "balance", 5)).intValue());
            equal(new BigDecimal("5.00"), template.queryForObject(
                    "select balance from person where id = 3", BigDecimal.class));
        });
        use(cases, "simple_insert_columns", (template, source) -> {
            SimpleJdbcInsert insert = new SimpleJdbcInsert(source).withTableName("person")
                    .withoutTableColumnMetaDataAccess().usingColumns("name")
                    .usingGeneratedKeyColumns("id");
            equal(3, insert.executeAndReturnKey(Map.of("name", "eve")).intValue());
        });
        use(cases, "simple_call", (template, source) -> {
            SimpleJdbcCall call = new SimpleJdbcCall(source).withSchemaName("pg_catalog")
                    .withFunctionName("initcap").withoutProcedureColumnMetaDataAccess()
                    .declareParameters(
                            new org.springframework.jdbc.core.SqlOutParameter("result",
                                    java.sql.Types.VARCHAR),
                            new org.springframework.jdbc.core.SqlParameter("v",
                                    java.sql.Types.VARCHAR));
            equal("Ada", call.executeFunction(String.class, Map.of("v", "ada")));
        });
        use(cases, "batch_update", (template, source) -> {
            List<String> names = List.of("c", "d", "e");
            equal(new int[] {1, 1, 1}, template.batchUpdate(
                    "insert into person (name) values (?)", new BatchPreparedStatementSetter() {
                        @Override
                        public void setValues(java.sql.PreparedStatement statement, int at)
                                throws java.sql.SQLException {
                            statement.setString(1, names.get(at));
                        }

                        @Override
                        public int getBatchSize() {
                            return names.size();
                        }
                    }));
            equal(2, template.batchUpdate("update person set balance = ? where name = ?",
                    List.of(new Object[] {1, "c"}, new Object[] {2, "d"})).length);
        });
        use(cases, "null_parameters", (template, source) -> {
            template.execute("create table n (a int, b text, c timestamp, d uuid)");
            equal(1, template.update("insert into n values (?, ?, ?, ?)", null, null, null, null));
            equal(Arrays.asList((Object) null), template.queryForList("select b from n",
                    String.class));
        });
        use(cases, "script", (template, source) -> {
            ResourceDatabasePopulator populator = new ResourceDatabasePopulator(
                    new org.springframework.core.io.ByteArrayResource(("-- a comment\n"
                            + "create table s (a int);\ninsert into s values (1);\n"
                            + "insert into s values (2);").getBytes()));
            populator.execute(source);
            equal(2, template.queryForObject("select count(*) from s", Integer.class));
        });
        use(cases, "sequence_incrementer", (template, source) -> {
            template.execute("create sequence numbers start 7");
            var incrementer = new PostgresSequenceMaxValueIncrementer(source, "numbers");
            equal(7, incrementer.nextIntValue());
            equal(8L, incrementer.nextLongValue());
        });
        transactions(cases);
        errors(cases);
    }

    private static void transactions(Cases cases) {
        use(cases, "transaction_rollback", (template, source) -> {
            var transaction = transactions(source, TransactionDefinition.PROPAGATION_REQUIRED);
            transaction.executeWithoutResult(status -> {
                template.update("delete from person");
                status.setRollbackOnly();
            });
            equal(2, template.queryForObject("select count(*) from person", Integer.class));
        });
        use(cases, "transaction_nested", (template, source) -> {
            var outer = transactions(source, TransactionDefinition.PROPAGATION_REQUIRED);
            outer.executeWithoutResult(status -> {
                template.update("delete from person where id = 1");
                Object savepoint = status.createSavepoint();
                template.update("delete from person");
                status.rollbackToSavepoint(savepoint);
            });
            equal("bob", template.queryForObject("select name from person", String.class));
        });
        use(cases, "transaction_requires_new", (template, source) -> {
            var outer = transactions(source, TransactionDefinition.PROPAGATION_REQUIRED);
            outer.executeWithoutResult(status -> {
                transactions(source, TransactionDefinition.PROPAGATION_REQUIRES_NEW)
                        .executeWithoutResult(inner ->
                                template.update("insert into person (name) values ('new')"));
                status.setRollbackOnly();
            });
            equal(3, template.queryForObject("select count(*) from person", Integer.class));
        });
        use(cases, "transaction_read_only_isolated", (template, source) -> {
            DataSourceTransactionManager manager = new DataSourceTransactionManager(source);
            manager.setEnforceReadOnly(true);
            TransactionTemplate template2 = new TransactionTemplate(manager);
            template2.setReadOnly(true);
            template2.setIsolationLevel(TransactionDefinition.ISOLATION_REPEATABLE_READ);
            template2.executeWithoutResult(status -> {
                equal("on", template.queryForObject("show transaction_read_only", String.class));
                equal("repeatable read", template.queryForObject("show transaction_isolation",
                        String.class));
            });
            equal("read committed", isolation(source));
        });
    }

    private static String isolation(HikariDataSource source) {
        try (Connection connection = source.getConnection()) {
            return connection.getTransactionIsolation() == Connection.TRANSACTION_READ_COMMITTED
                    || connection.getTransactionIsolation() == Connection.TRANSACTION_SERIALIZABLE
                    ? "read committed" : "other";
        } catch (java.sql.SQLException error) {
            throw new IllegalStateException(error);
        }
    }

    private static <E extends DataAccessException> E raises(Class<E> wanted, Runnable body) {
        try {
            body.run();
        } catch (DataAccessException error) {
            holds(wanted.isInstance(error), error.toString());
            return wanted.cast(error);
        }
        throw new AssertionError("no error; wanted " + wanted);
    }

    private static void errors(Cases cases) {
        use(cases, "error_duplicate_key", (template, source) -> raises(
                DuplicateKeyException.class,
                () -> template.update("insert into person (name) values ('ada')")));
        use(cases, "error_integrity", (template, source) -> {
            raises(DataIntegrityViolationException.class,
                    () -> template.update("insert into person (name) values (null)"));
            raises(DataIntegrityViolationException.class, () -> template.update(
                    "insert into person (name, balance) values ('x', -1)"));
        });
        use(cases, "error_grammar", (template, source) -> {
            raises(BadSqlGrammarException.class, () -> template.execute("selec 1"));
            raises(BadSqlGrammarException.class, () -> template.execute("select * from nope"));
        });
        use(cases, "error_lock", (template, source) ->
                transactions(source, TransactionDefinition.PROPAGATION_REQUIRED)
                        .executeWithoutResult(status -> {
                            template.queryForList("select * from person for update");
                            JdbcTemplate other = new JdbcTemplate(source);
                            transactions(source, TransactionDefinition.PROPAGATION_REQUIRES_NEW)
                                    .executeWithoutResult(inner -> {
                                        var error = raises(DataAccessException.class,
                                                () -> other.queryForList("select * from person"
                                                        + " for update nowait"));
                                        equal("55P03", ((java.sql.SQLException)
                                                error.getCause()).getSQLState());
                                        inner.setRollbackOnly();
                                    });
                        }));
        use(cases, "error_timeout", (template, source) -> {
            template.setQueryTimeout(1);
            raises(DataAccessException.class, () -> template.execute("select pg_sleep(20)"));
            JdbcTemplate plain = new JdbcTemplate(source);
            var error = raises(DataAccessException.class, () -> plain.execute(
                    "set statement_timeout = 200; select pg_sleep(20)"));
            holds(error instanceof QueryTimeoutException
                    || error.getCause() instanceof java.sql.SQLException, error.toString());
        });
    }
}
