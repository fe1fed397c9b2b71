package suite;

import static suite.Place.equal;
import static suite.Place.holds;
import static suite.Place.query;
import static suite.Place.run;

import jakarta.persistence.Entity;
import jakarta.persistence.Id;
import jakarta.persistence.Table;
import java.util.List;
import org.hibernate.SessionFactory;
import org.hibernate.cfg.Configuration;

/** Hibernate: schemas created, validated, updated and dropped. */
final class HibernateSchemas {
    private HibernateSchemas() {}

    /** An earlier and a later form of one table. */
    @Entity(name = "Early")
    @Table(name = "thing")
    static class Early {
        @Id
        long id;
        String name;
    }

    @Entity(name = "Late")
    @Table(name = "thing")
    static class Late {
        @Id
        long id;
        String name;
        Integer amount;
        java.time.Instant at;
    }

    @Entity(name = "Wrong")
    @Table(name = "thing")
    static class Wrong {
        @Id
        long id;
        Integer name;
    }

    static Configuration configuration(Place place, String action, Class<?>... entities) {
        Configuration configuration = new Configuration()
                .setProperty("hibernate.connection.url", place.url())
                .setProperty("hibernate.connection.username", Place.USER)
                .setProperty("hibernate.connection.password", Place.PASSWORD)
                .setProperty("hibernate.connection.pool_size", "4")
                .setProperty("hibernate.hbm2ddl.auto", action)
                .setProperty("hibernate.hbm2ddl.halt_on_error", "true")
                .setProperty("hibernate.jdbc.time_zone", "UTC");
        for (Class<?> entity : entities) {
            configuration.addAnnotatedClass(entity);
        }
        return configuration;
    }

    static SessionFactory factory(Place place, String action, Class<?>... entities) {
        return configuration(place, action, entities).buildSessionFactory();
    }

    private static List<String> columns(Place place, String table) throws Exception {
        return query(place.connect(), "select column_name, data_type"
                + " from information_schema.columns where table_schema = current_schema()"
                + " and table_name = '" + table + "' order by column_name");
    }

    static void add(Cases cases) {
        cases.add("schema_create", place -> {
            factory(place, "create", Entities.ALL).close();
            equal(List.of("author", "author_nicknames", "book", "book_tag", "invoice", "tag"),
                    query(place.connect(), "select table_name from information_schema.tables"
                            + " where table_schema = current_schema() order by 1"));
            equal(List.of("author_numbers|10"), query(place.connect(),
                    "select sequencename, increment_by from pg_sequences"
                            + " where schemaname = current_schema() and sequencename like 'a%'"));
        });
        cases.add("schema_create_again", place -> {
            factory(place, "create", Entities.ALL).close();
            factory(place, "create", Entities.ALL).close();
            factory(place, "validate", Entities.ALL).close();
        });
        cases.add("schema_create_drop", place -> {
            factory(place, "create-drop", Entities.ALL).close();
            equal(List.of(), query(place.connect(),
                    "select table_name from information_schema.tables"
                            + " where table_schema = current_schema()"));
        });
        cases.add("schema_validate", place -> {
            factory(place, "create", Entities.ALL).close();
            factory(place, "validate", Entities.ALL).close();
        });
        cases.add("schema_validate_missing", place -> {
            try {
                factory(place, "validate", Early.class).close();
            } catch (org.hibernate.tool.schema.spi.SchemaManagementException error) {
                holds(error.getMessage().contains("missing table [thing]"), error.getMessage());
                return;
            }
            throw new AssertionError("a missing table is valid");
        });
        cases.add("schema_validate_wrong_type", place -> {
            factory(place, "create", Early.class).close();
            try {
                factory(place, "validate", Wrong.class).close();
            } catch (org.hibernate.tool.schema.spi.SchemaManagementException error) {
                holds(error.getMessage().contains("wrong column type encountered in column [name]"),
                        error.getMessage());
                return;
            }
            throw new AssertionError("a wrong type is valid");
        });
        cases.add("schema_update_from_nothing", place -> {
            factory(place, "update", Entities.ALL).close();
            factory(place, "validate", Entities.ALL).close();
            factory(place, "update", Entities.ALL).close();
        });
        cases.add("schema_update_adds_columns", place -> {
            factory(place, "create", Early.class).close();
            run(place.connect(), "insert into thing values (1, 'kept')");
            factory(place, "update", Late.class).close();
            equal(List.of("amount|integer", "at|timestamp with time zone", "id|bigint",
                    "name|character varying"), columns(place, "thing"));
            equal(List.of("1|kept|null"), query(place.connect(),
                    "select id, name, amount from thing"));
        });
        cases.add("schema_update_is_empty", place -> {
            factory(place, "create", Entities.ALL).close();
            java.nio.file.Path script = java.nio.file.Files.createTempFile("update", ".sql");
            configuration(place, "none", Entities.ALL)
                    .setProperty("jakarta.persistence.schema-generation.scripts.action", "update")
                    .setProperty("jakarta.persistence.schema-generation.scripts.create-target",
                            script.toString())
                    .buildSessionFactory().close();
            String text = java.nio.file.Files.readString(script);
            java.nio.file.Files.delete(script);
            // Named enums are made anew each time; tables and columns are not.
            equal(List.of(), text.lines().filter(line -> line.matches(
                    "(create table|create sequence|create index|alter table).*")).toList());
        });
        cases.add("schema_manager_drop", place -> {
            try (SessionFactory factory = factory(place, "create", Entities.ALL)) {
                factory.getSchemaManager().dropMappedObjects(false);
            }
            equal(List.of("0"), query(place.connect(), "select count(*) from pg_class c"
                    + " join pg_namespace n on n.oid = c.relnamespace"
                    + " where nspname = current_schema()"));
        });
        cases.add("schema_manager_truncate", place -> {
            try (SessionFactory factory = factory(place, "create", Entities.ALL)) {
                factory.inTransaction(session -> session.persist(new Entities.Author("x")));
                factory.getSchemaManager().truncateMappedObjects();
                factory.getSchemaManager().validateMappedObjects();
            }
            equal(List.of("0"), query(place.connect(), "select count(*) from author"));
        });
    }
}
