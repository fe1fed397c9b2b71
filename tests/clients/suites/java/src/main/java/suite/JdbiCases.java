package suite;

import static suite.Place.equal;

import java.sql.SQLException;
import java.time.LocalDate;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import org.jdbi.v3.core.Handle;
import org.jdbi.v3.core.Jdbi;
import org.jdbi.v3.core.mapper.reflect.ConstructorMapper;
import org.jdbi.v3.core.statement.PreparedBatch;
import org.jdbi.v3.core.statement.UnableToExecuteStatementException;
import org.jdbi.v3.core.transaction.SerializableTransactionRunner;
import org.jdbi.v3.core.transaction.TransactionIsolationLevel;
import org.jdbi.v3.postgres.PostgresPlugin;
import org.jdbi.v3.sqlobject.SqlObjectPlugin;
import org.jdbi.v3.sqlobject.config.RegisterConstructorMapper;
import org.jdbi.v3.sqlobject.customizer.BindList;
import org.jdbi.v3.sqlobject.statement.GetGeneratedKeys;
import org.jdbi.v3.sqlobject.statement.SqlBatch;
import org.jdbi.v3.sqlobject.statement.SqlQuery;
import org.jdbi.v3.sqlobject.statement.SqlUpdate;

/** Jdbi with its PostgreSQL and SQL object plugins. */
final class JdbiCases {
    private JdbiCases() {}

    /** A row of the table. */
    public record Thing(int id, String name, LocalDate made) {}

    /** The statements. */
    @RegisterConstructorMapper(Thing.class)
    public interface Things {
        @SqlUpdate("insert into thing (name, made) values (:name, :made)")
        @GetGeneratedKeys("id")
        int insert(String name, LocalDate made);

        @SqlBatch("insert into thing (name) values (:name)")
        @GetGeneratedKeys("id")
        int[] insertAll(List<String> name);

        @SqlQuery("select * from thing where id = :id")
        Optional<Thing> find(int id);

        @SqlQuery("select name from thing where id in (<ids>) order by id")
        List<String> named(@BindList List<Integer> ids);
    }

    private interface Used {
        void run(Jdbi jdbi, Handle handle, Place place) throws Exception;
    }

    private static void use(Cases cases, String name, Used used) {
        cases.add(name, place -> {
            Jdbi jdbi = Jdbi.create(place.url(), Place.USER, Place.PASSWORD)
                    .installPlugin(new PostgresPlugin()).installPlugin(new SqlObjectPlugin());
            try (Handle handle = jdbi.open()) {
                handle.execute("create table thing (id serial primary key, name text unique,"
                        + " made date)");
                used.run(jdbi, handle, place);
            }
        });
    }

    static void add(Cases cases) {
        use(cases, "fluent", (jdbi, handle, place) -> {
            equal(1, handle.createUpdate("insert into thing (name) values (:n)").bind("n", "x")
                    .execute());
            equal(List.of("x"), handle.createQuery("select name from thing").mapTo(String.class)
                    .list());
        });
        use(cases, "sql_object", (jdbi, handle, place) -> {
            Things things = handle.attach(Things.class);
            equal(1, things.insert("x", LocalDate.of(2024, 2, 29)));
            equal(new int[] {2, 3}, things.insertAll(List.of("y", "z")));
            equal(Optional.of(new Thing(1, "x", LocalDate.of(2024, 2, 29))), things.find(1));
            equal(Optional.empty(), things.find(9));
            equal(List.of("x", "z"), things.named(List.of(1, 3)));
        });
        use(cases, "batch", (jdbi, handle, place) -> {
            PreparedBatch batch = handle.prepareBatch("insert into thing (name) values (?)");
            for (int at = 0; at < 30; at++) {
                batch.bind(0, "t" + at).add();
            }
            equal(30, batch.execute().length);
        });
        use(cases, "arrays", (jdbi, handle, place) -> {
            jdbi.registerArrayType(String.class, "text");
            equal(List.of("b"), handle.createQuery("select (:a)[2]")
                    .bindArray("a", String.class, "a", "b").mapTo(String.class).list());
            equal(List.of(List.of(1, 2)), handle.createQuery("select array[1, 2]")
                    .mapTo(new org.jdbi.v3.core.generic.GenericType<List<Integer>>() {}).list());
        });
        use(cases, "postgres_types", (jdbi, handle, place) -> {
            UUID uuid = new UUID(7, 8);
            equal(uuid, handle.createQuery("select :u").bind("u", uuid).mapTo(UUID.class).one());
            equal(LocalDate.of(2024, 1, 2), handle.createQuery("select :d")
                    .bind("d", LocalDate.of(2024, 1, 2)).mapTo(LocalDate.class).one());
            equal(java.time.Duration.ofHours(5), handle.createQuery("select :p * 5")
                    .bind("p", java.time.Duration.ofHours(1)).mapTo(java.time.Duration.class)
                    .one());
        });
        use(cases, "enums", (jdbi, handle, place) -> {
            handle.execute("create type kind as enum ('SMALL', 'BIG')");
            handle.execute("create table sized (k kind)");
            handle.createUpdate("insert into sized values (:k::kind)").bind("k", "BIG").execute();
            equal(List.of("BIG"), handle.select("select k from sized").mapTo(String.class).list());
        });
        use(cases, "transactions", (jdbi, handle, place) -> {
            try {
                jdbi.useTransaction(TransactionIsolationLevel.SERIALIZABLE, inside -> {
                    inside.execute("insert into thing (name) values ('x')");
                    throw new IllegalStateException("stop");
                });
            } catch (IllegalStateException expected) {
                equal(0, handle.select("select count(*) from thing").mapTo(Integer.class).one());
            }
        });
        use(cases, "savepoints", (jdbi, handle, place) -> {
            handle.useTransaction(inside -> {
                inside.execute("insert into thing (name) values ('x')");
                inside.savepoint("one");
                inside.execute("insert into thing (name) values ('y')");
                inside.rollbackToSavepoint("one");
            });
            equal(List.of("x"), handle.select("select name from thing").mapTo(String.class)
                    .list());
        });
        use(cases, "serializable_retry", (jdbi, handle, place) -> {
            handle.execute("insert into thing (name) values ('x')");
            jdbi.setTransactionHandler(new SerializableTransactionRunner());
            int[] tries = {0};
            jdbi.useTransaction(TransactionIsolationLevel.SERIALIZABLE, inside -> {
                inside.select("select count(*) from thing").mapTo(Integer.class).one();
                if (tries[0]++ == 0) {
                    handle.execute("update thing set name = 'y' where id = 1");
                }
                inside.execute("update thing set name = name || 'z' where id = 1");
            });
            equal(2, tries[0]);
            equal("yz", handle.select("select name from thing").mapTo(String.class).one());
        });
        use(cases, "joins", (jdbi, handle, place) -> {
            handle.registerRowMapper(ConstructorMapper.factory(Thing.class));
            handle.execute("insert into thing (name, made) values ('x', '2024-01-01')");
            equal(List.of(new Thing(1, "x", LocalDate.of(2024, 1, 1))),
                    handle.select("select t.* from thing t join thing u using (id)")
                            .mapTo(Thing.class).list());
            equal(List.of(Map.of("id", 1, "n", "X")),
                    handle.select("select id, upper(name) as n from thing").mapToMap().list());
        });
        use(cases, "errors", (jdbi, handle, place) -> {
            handle.execute("insert into thing (name) values ('x')");
            try {
                handle.execute("insert into thing (name) values ('x')");
                throw new AssertionError("no error");
            } catch (UnableToExecuteStatementException error) {
                equal("23505", ((SQLException) error.getCause()).getSQLState());
            }
        });
        use(cases, "script", (jdbi, handle, place) -> {
            handle.createScript("create table a (x int); insert into a values (1);"
                    + " insert into a values (2);").execute();
            equal(2, handle.select("select count(*) from a").mapTo(Integer.class).one());
        });
    }
}
