package suite;

import static suite.Place.equal;
import static suite.Place.holds;
import static suite.Place.query;
import static suite.Place.run;

import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import liquibase.Contexts;
import liquibase.Liquibase;
import liquibase.database.Database;
import liquibase.database.DatabaseFactory;
import liquibase.database.jvm.JdbcConnection;
import liquibase.diff.DiffGeneratorFactory;
import liquibase.diff.DiffResult;
import liquibase.diff.compare.CompareControl;
import liquibase.diff.output.DiffOutputControl;
import liquibase.diff.output.changelog.DiffToChangeLog;
import liquibase.resource.DirectoryResourceAccessor;
import liquibase.snapshot.DatabaseSnapshot;
import liquibase.snapshot.SnapshotControl;
import liquibase.snapshot.SnapshotGeneratorFactory;

/** Liquibase: change logs applied, again, rolled back; schemas compared and written out. */
final class LiquibaseCases {
    private static final String LOG = """
            databaseChangeLog:
            - changeSet:
                id: 1
                author: suite
                changes:
                - createTable:
                    tableName: person
                    remarks: those we know
                    columns:
                    - column: {name: id, type: bigint, autoIncrement: true,
                        constraints: {primaryKey: true, primaryKeyName: person_pkey}}
                    - column: {name: name, type: varchar(50), constraints: {nullable: false}}
                    - column: {name: born, type: date}
                    - column: {name: paid, type: boolean, defaultValueBoolean: false}
            - changeSet:
                id: 2
                author: suite
                changes:
                - createTable:
                    tableName: pet
                    columns:
                    - column: {name: id, type: int, constraints: {primaryKey: true}}
                    - column: {name: owner_id, type: bigint, constraints: {nullable: false,
                        foreignKeyName: pet_owner, references: person(id)}}
                    - column: {name: weight, type: 'decimal(8,2)', defaultValueNumeric: 1.5}
                - createIndex:
                    indexName: pet_by_owner
                    tableName: pet
                    columns:
                    - column: {name: owner_id}
                - addUniqueConstraint:
                    tableName: person
                    columnNames: name
                    constraintName: one_name
                - createSequence: {sequenceName: numbers, startValue: 10, incrementBy: 5}
            - changeSet:
                id: 3
                author: suite
                changes:
                - insert:
                    tableName: person
                    columns:
                    - column: {name: name, value: ada}
                    - column: {name: born, valueDate: '1815-12-10'}
                - createView:
                    viewName: names
                    selectQuery: select id, name from person
                - addColumn:
                    tableName: person
                    columns:
                    - column: {name: note, type: text}
                rollback:
                - dropColumn: {tableName: person, columnName: note}
                - dropView: {viewName: names}
                - delete: {tableName: person}
            """;

    private LiquibaseCases() {}

    private interface Used {
        void run(Path folder, Place place) throws Exception;
    }

    private static void use(Cases cases, String name, Used used) {
        cases.add(name, place -> {
            Path folder = Files.createTempDirectory("liquibase");
            try {
                Files.writeString(folder.resolve("log.yaml"), LOG);
                used.run(folder, place);
            } finally {
                try (Stream<Path> all = Files.walk(folder)) {
                    all.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
                }
            }
        });
    }

    private static Database database(Place place, String schema) throws Exception {
        Database database = DatabaseFactory.getInstance()
                .findCorrectDatabaseImplementation(new JdbcConnection(place.connect()));
        database.setDefaultSchemaName(schema);
        database.setLiquibaseSchemaName(schema);
        return database;
    }

    private static Liquibase liquibase(Path folder, Place place, String schema) throws Exception {
        return new Liquibase("log.yaml", new DirectoryResourceAccessor(folder),
                database(place, schema));
    }

    static void add(Cases cases) {
        use(cases, "update", (folder, place) -> {
            liquibase(folder, place, place.schema).update(new Contexts());
            equal(List.of("1|ada|1815-12-10|f"), query(place.connect(),
                    "select id, name, born, paid from person"));
            equal(List.of("3"), query(place.connect(), "select count(*) from databasechangelog"));
        });
        use(cases, "update_again", (folder, place) -> {
            liquibase(folder, place, place.schema).update(new Contexts());
            Liquibase again = liquibase(folder, place, place.schema);
            equal(0, again.listUnrunChangeSets(new Contexts(), null).size());
            again.update(new Contexts());
            equal(List.of("1"), query(place.connect(), "select count(*) from person"));
        });
        use(cases, "validate_and_checksums", (folder, place) -> {
            Liquibase one = liquibase(folder, place, place.schema);
            one.validate();
            one.update(new Contexts());
            one.clearCheckSums();
            Liquibase two = liquibase(folder, place, place.schema);
            two.update(new Contexts());
            two.validate();
            Files.writeString(folder.resolve("log.yaml"), LOG.replace("varchar(50)", "varchar(60)"));
            try {
                liquibase(folder, place, place.schema).validate();
            } catch (liquibase.exception.LiquibaseException expected) {
                holds(expected.getMessage().contains("Validation Failed"), expected.getMessage());
                return;
            }
            throw new AssertionError("a changed change set is valid");
        });
        use(cases, "rollback_count", (folder, place) -> {
            liquibase(folder, place, place.schema).update(new Contexts());
            liquibase(folder, place, place.schema).rollback(2, "");
            equal(List.of("databasechangelog", "databasechangeloglock", "person"),
                    query(place.connect(), "select table_name from information_schema.tables"
                            + " where table_schema = current_schema() order by 1"));
            liquibase(folder, place, place.schema).update(new Contexts());
            equal(List.of("3"), query(place.connect(), "select count(*) from databasechangelog"));
        });
        use(cases, "tag_and_rollback", (folder, place) -> {
            Liquibase one = liquibase(folder, place, place.schema);
            one.update(1, "");
            one.tag("v1");
            liquibase(folder, place, place.schema).update(new Contexts());
            liquibase(folder, place, place.schema).rollback("v1", "");
            equal(List.of("1"), query(place.connect(), "select count(*) from databasechangelog"));
        });
        use(cases, "update_sql", (folder, place) -> {
            StringWriter text = new StringWriter();
            liquibase(folder, place, place.schema).update(new Contexts(), text);
            holds(text.toString().contains("CREATE TABLE"), text.toString());
            equal(List.of("0"), query(place.connect(), "select count(*) from pg_tables"
                    + " where schemaname = current_schema() and tablename = 'person'"));
        });
        use(cases, "snapshot", (folder, place) -> {
            liquibase(folder, place, place.schema).update(new Contexts());
            Database database = database(place, place.schema);
            DatabaseSnapshot snapshot = SnapshotGeneratorFactory.getInstance().createSnapshot(
                    database.getDefaultSchema(), database, new SnapshotControl(database));
            var table = snapshot.get(new liquibase.structure.core.Table(null, place.schema,
                    "person"));
            equal("those we know", table.getRemarks());
            equal("person_pkey", table.getPrimaryKey().getName());
            equal(5, table.getColumns().size());
            equal("varchar", table.getColumn("name").getType().getTypeName());
            equal(50, table.getColumn("name").getType().getColumnSize());
            equal(List.of("one_name"), table.getUniqueConstraints().stream()
                    .map(one -> one.getName()).toList());
            var pet = snapshot.get(new liquibase.structure.core.Table(null, place.schema, "pet"));
            equal("pet_owner", pet.getOutgoingForeignKeys().get(0).getName());
        });
        use(cases, "diff_is_empty", (folder, place) -> {
            liquibase(folder, place, place.schema).update(new Contexts());
            Database database = database(place, place.schema);
            DiffResult result = DiffGeneratorFactory.getInstance().compare(
                    database, database(place, place.schema), CompareControl.STANDARD);
            holds(result.areEqual(), "differences: " + result.getMissingObjects() + " "
                    + result.getUnexpectedObjects() + " " + result.getChangedObjects().keySet());
        });
        use(cases, "diff_between_schemas", (folder, place) -> {
            String other = place.schema + "_b";
            run(place.connect(), "drop schema if exists " + other + " cascade",
                    "create schema " + other);
            liquibase(folder, place, place.schema).update(new Contexts());
            run(place.connect(), "create table " + other + ".person (id bigint primary key)");
            DiffResult result = DiffGeneratorFactory.getInstance().compare(
                    database(place, place.schema), database(place, other),
                    new CompareControl(new CompareControl.SchemaComparison[] {
                        new CompareControl.SchemaComparison(
                                new liquibase.CatalogAndSchema(null, place.schema),
                                new liquibase.CatalogAndSchema(null, other))},
                            java.util.Collections.<Class<? extends
                                    liquibase.structure.DatabaseObject>>emptySet()));
            holds(!result.getMissingObjects(liquibase.structure.core.Column.class).isEmpty(),
                    "no difference");
            run(place.connect(), "drop schema " + other + " cascade");
        });
        use(cases, "generate_change_log", (folder, place) -> {
            liquibase(folder, place, place.schema).update(new Contexts());
            Database database = database(place, place.schema);
            DatabaseSnapshot snapshot = SnapshotGeneratorFactory.getInstance().createSnapshot(
                    database.getDefaultSchema(), database, new SnapshotControl(database));
            DiffResult result = DiffGeneratorFactory.getInstance()
                    .compare(snapshot, null, CompareControl.STANDARD);
            Path written = folder.resolve("written.xml");
            new DiffToChangeLog(result, new DiffOutputControl(false, false, true, null))
                    .print(written.toString());
            String text = Files.readString(written);
            for (String part : List.of("createTable", "tableName=\"person\"", "name=\"name\"",
                    "VARCHAR(50)", "pet_owner", "createView", "createSequence", "one_name",
                    "pet_by_owner")) {
                holds(text.contains(part), "not written: " + part);
            }
        });
        use(cases, "change_log_sync", (folder, place) -> {
            liquibase(folder, place, place.schema).changeLogSync("");
            equal(List.of("3"), query(place.connect(), "select count(*) from databasechangelog"));
            equal(0, liquibase(folder, place, place.schema)
                    .listUnrunChangeSets(new Contexts(), null).size());
        });
        use(cases, "drop_all", (folder, place) -> {
            liquibase(folder, place, place.schema).update(new Contexts());
            liquibase(folder, place, place.schema).dropAll();
            equal(List.of(), query(place.connect(), "select table_name from"
                    + " information_schema.tables where table_schema = current_schema()"
                    + " and table_name not like 'databasechange%'"));
        });
        use(cases, "lock_and_release", (folder, place) -> {
            Liquibase one = liquibase(folder, place, place.schema);
            one.update(new Contexts());
            equal(0, one.listLocks().length);
            run(place.connect(), "update databasechangeloglock set locked = true,"
                    + " lockgranted = now(), lockedby = 'me'");
            Liquibase two = liquibase(folder, place, place.schema);
            equal(1, two.listLocks().length);
            two.forceReleaseLocks();
            equal(List.of("f"), query(place.connect(), "select locked from databasechangeloglock"));
        });
        use(cases, "preconditions_and_load_data", (folder, place) -> {
            Files.writeString(folder.resolve("people.csv"), "name,born\nzoe,2001-02-03\neve,NULL\n");
            Files.writeString(folder.resolve("log.yaml"), LOG + """
                    - changeSet:
                        id: 4
                        author: suite
                        preConditions:
                        - onFail: HALT
                        - tableExists: {tableName: person}
                        - columnExists: {tableName: person, columnName: name}
                        - indexExists: {indexName: pet_by_owner}
                        - foreignKeyConstraintExists: {foreignKeyTableName: pet,
                            foreignKeyName: pet_owner}
                        - sequenceExists: {sequenceName: numbers}
                        - viewExists: {viewName: names}
                        - primaryKeyExists: {tableName: person}
                        changes:
                        - loadData:
                            tableName: person
                            file: people.csv
                            columns:
                            - column: {name: name, type: STRING}
                            - column: {name: born, type: DATE}
                    """);
            liquibase(folder, place, place.schema).update(new Contexts());
            equal(List.of("ada|1815-12-10", "eve|null", "zoe|2001-02-03"),
                    query(place.connect(), "select name, born from person order by 1"));
        });
        use(cases, "formatted_sql", (folder, place) -> {
            Files.writeString(folder.resolve("log.sql"), """
                    --liquibase formatted sql
                    --changeset suite:1
                    create table plain (a int);
                    insert into plain values (1);
                    --rollback drop table plain;
                    --changeset suite:2
                    alter table plain add column b text default 'x';
                    --rollback alter table plain drop column b;
                    """);
            Liquibase one = new Liquibase("log.sql", new DirectoryResourceAccessor(folder),
                    database(place, place.schema));
            one.update(new Contexts());
            equal(List.of("1|x"), query(place.connect(), "select * from plain"));
            one.rollback(1, "");
            equal(List.of("1"), query(place.connect(), "select * from plain"));
        });
    }
}
