package suite;

import static suite.Place.equal;
import static suite.Place.holds;
import static suite.Place.query;
import static suite.Place.run;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.FlywayException;
import org.flywaydb.core.api.MigrationState;
import org.flywaydb.core.api.configuration.FluentConfiguration;

/** Flyway: migrations up, again, checked, mended; history kept. */
final class FlywayCases {
    private static final String FIRST = "create table person (id serial primary key, name text);\n"
            + "create index person_name on person (name);\n"
            + "insert into person (name) values ('ada'), ('bob');\n";
    private static final String SECOND = "alter table person add column age int default 30;\n"
            + "create view adults as select * from person where age >= 18;\n";

    private FlywayCases() {}

    private interface Used {
        void run(Path folder, Place place) throws Exception;
    }

    private static void use(Cases cases, String name, Used used) {
        cases.add(name, place -> {
            Path folder = Files.createTempDirectory("flyway");
            try {
                write(folder, "V1__first.sql", FIRST);
                write(folder, "V2__second.sql", SECOND);
                used.run(folder, place);
            } finally {
                try (Stream<Path> all = Files.walk(folder)) {
                    all.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
                }
            }
        });
    }

    private static void write(Path folder, String name, String text) throws Exception {
        Files.writeString(folder.resolve(name), text);
    }

    private static FluentConfiguration configured(Path folder, Place place) {
        return Flyway.configure().dataSource(Place.plainUrl(), Place.USER, Place.PASSWORD)
                .schemas(place.schema).locations("filesystem:" + folder).cleanDisabled(false);
    }

    static void add(Cases cases) {
        use(cases, "migrate", (folder, place) -> {
            var result = configured(folder, place).load().migrate();
            equal(2, result.migrationsExecuted);
            equal("2", result.targetSchemaVersion);
            equal(List.of("ada|30", "bob|30"), query(place.connect(),
                    "select name, age from adults order by 1"));
        });
        use(cases, "migrate_again", (folder, place) -> {
            configured(folder, place).load().migrate();
            equal(0, configured(folder, place).load().migrate().migrationsExecuted);
            write(folder, "V3__third.sql", "insert into person (name) values ('eve');");
            equal(1, configured(folder, place).load().migrate().migrationsExecuted);
            equal(List.of("3"), query(place.connect(), "select count(*) from person"));
        });
        use(cases, "info", (folder, place) -> {
            Flyway flyway = configured(folder, place).load();
            equal(2, flyway.info().pending().length);
            flyway.migrate();
            equal(2, flyway.info().applied().length);
            equal("2", flyway.info().current().getVersion().toString());
            equal(MigrationState.SUCCESS, flyway.info().current().getState());
        });
        use(cases, "validate", (folder, place) -> {
            Flyway flyway = configured(folder, place).load();
            flyway.migrate();
            flyway.validate();
            write(folder, "V1__first.sql", FIRST + "-- changed\nselect 1;\n");
            holds(!configured(folder, place).load().validateWithResult().validationSuccessful,
                    "a changed migration is valid");
        });
        use(cases, "repair", (folder, place) -> {
            configured(folder, place).load().migrate();
            write(folder, "V1__first.sql", FIRST + "-- changed\nselect 1;\n");
            configured(folder, place).load().repair();
            configured(folder, place).load().validate();
        });
        use(cases, "baseline", (folder, place) -> {
            run(place.connect(), FIRST.split(";\n"));
            Flyway flyway = configured(folder, place).baselineVersion("1").load();
            flyway.baseline();
            equal(1, flyway.migrate().migrationsExecuted);
            equal(List.of("2"), query(place.connect(), "select count(*) from adults"));
        });
        use(cases, "baseline_on_migrate", (folder, place) -> {
            run(place.connect(), FIRST.split(";\n"));
            equal(1, configured(folder, place).baselineOnMigrate(true).baselineVersion("1")
                    .load().migrate().migrationsExecuted);
        });
        use(cases, "failed_migration_leaves_nothing", (folder, place) -> {
            write(folder, "V3__third.sql", "create table half (a int);\nselect 1/0;\n");
            try {
                configured(folder, place).load().migrate();
                throw new AssertionError("no error");
            } catch (FlywayException error) {
                holds(error.getMessage().contains("22012"), error.getMessage());
            }
            equal(List.of("2"), query(place.connect(),
                    "select max(version) from flyway_schema_history where success"));
            equal(List.of("0"), query(place.connect(), "select count(*) from pg_tables"
                    + " where schemaname = current_schema() and tablename = 'half'"));
        });
        use(cases, "repeatable", (folder, place) -> {
            write(folder, "R__names.sql", "create or replace view names as select name from person;");
            configured(folder, place).load().migrate();
            write(folder, "R__names.sql",
                    "create or replace view names as select name, id from person;");
            equal(1, configured(folder, place).load().migrate().migrationsExecuted);
            equal(List.of("ada|1", "bob|2"),
                    query(place.connect(), "select * from names order by 2"));
        });
        use(cases, "clean", (folder, place) -> {
            write(folder, "V3__third.sql", "create type mood as enum ('a');\n"
                    + "create sequence s;\ncreate domain d as int;\n");
            Flyway flyway = configured(folder, place).load();
            flyway.migrate();
            flyway.clean();
            equal(List.of("0"), query(place.connect(), "select count(*) from pg_class c"
                    + " join pg_namespace n on n.oid = relnamespace"
                    + " where nspname = '" + place.schema + "'"));
        });
        use(cases, "creates_schema", (folder, place) -> {
            run(place.connect(), "drop schema " + place.schema);
            equal(2, configured(folder, place).load().migrate().migrationsExecuted);
        });
        use(cases, "placeholders_and_group", (folder, place) -> {
            write(folder, "V3__third.sql", "insert into person (name) values ('${who}');");
            equal(3, configured(folder, place).placeholders(java.util.Map.of("who", "zoe"))
                    .group(true).load().migrate().migrationsExecuted);
            equal(List.of("1"), query(place.connect(),
                    "select count(*) from person where name = 'zoe'"));
        });
        use(cases, "copy_in_script", (folder, place) -> {
            write(folder, "V3__third.sql",
                    "COPY person (id, name) FROM STDIN;\n7\tzoe\n8\t\\N\n\\.\n");
            equal(3, configured(folder, place).load().migrate().migrationsExecuted);
            equal(List.of("4"), query(place.connect(), "select count(*) from person"));
        });
        use(cases, "out_of_transaction", (folder, place) -> {
            write(folder, "V3__third.sql", "create index concurrently by_age on person (age);");
            write(folder, "V3__third.sql.conf", "executeInTransaction=false\n");
            equal(3, configured(folder, place).configuration(java.util.Map.of(
                    "flyway.postgresql.transactional.lock", "false")).load()
                    .migrate().migrationsExecuted);
        });
        use(cases, "two_at_once", (folder, place) -> {
            Thread[] threads = new Thread[2];
            int[] executed = new int[2];
            for (int at = 0; at < 2; at++) {
                int number = at;
                threads[at] = new Thread(() -> executed[number] =
                        configured(folder, place).load().migrate().migrationsExecuted);
                threads[at].start();
            }
            for (Thread thread : threads) {
                thread.join();
            }
            equal(2, executed[0] + executed[1]);
        });
    }
}
