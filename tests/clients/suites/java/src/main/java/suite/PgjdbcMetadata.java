package suite;

import static suite.Place.equal;
import static suite.Place.holds;
import static suite.Place.query;
import static suite.Place.rows;
import static suite.Place.run;

import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.util.List;

/** pgjdbc: all of DatabaseMetaData that reads catalogs. */
final class PgjdbcMetadata {
    private static final String[] TABLES = {
        "create type mood as enum ('sad', 'glad')",
        "create domain positive as int check (value > 0)",
        "create table parent (id serial primary key, code varchar(10) not null unique,"
            + " price numeric(8,2) default 1.5, made timestamptz default now(), feel mood,"
            + " tags text[], many positive)",
        "create table child (a int, b int, parent_id int not null"
            + " constraint to_parent references parent on delete cascade on update restrict,"
            + " note char(3), doc jsonb, primary key (b, a))",
        "create index by_note on child (note, a desc)",
        "create view seen as select id, code from parent",
        "comment on table parent is 'those above'",
        "comment on column parent.code is 'short'",
    };

    private PgjdbcMetadata() {}

    private interface Asked {
        void run(DatabaseMetaData data, String schema) throws Exception;
    }

    private static void ask(Cases cases, String name, Asked asked) {
        cases.add("meta_" + name, place -> {
            Connection connection = place.connect();
            run(connection, TABLES);
            asked.run(connection.getMetaData(), place.schema);
        });
    }

    static void add(Cases cases) {
        ask(cases, "product", (data, schema) -> {
            equal("PostgreSQL", data.getDatabaseProductName());
            equal(18, data.getDatabaseMajorVersion());
            equal("18", data.getDatabaseProductVersion().substring(0, 2));
            equal(Place.USER, data.getUserName());
            equal(63, data.getMaxColumnNameLength());
            equal(32, data.getMaxColumnsInIndex());
        });
        ask(cases, "default_isolation", (data, schema) -> equal(
                Connection.TRANSACTION_READ_COMMITTED, data.getDefaultTransactionIsolation()));
        ask(cases, "keywords", (data, schema) -> {
            List<String> words = List.of(data.getSQLKeywords().split(","));
            holds(words.contains("ilike"), "ilike is no keyword");
            holds(!words.contains("select"), "select is told");
        });
        ask(cases, "functions_of_kind", (data, schema) -> {
            holds(data.getNumericFunctions().contains("abs"), "abs");
            holds(data.getStringFunctions().contains("concat"), "concat");
            holds(data.getTimeDateFunctions().contains("curdate"), "curdate");
        });
        ask(cases, "schemas", (data, schema) -> {
            List<String> all = rows(data.getSchemas(), "TABLE_SCHEM");
            holds(all.containsAll(List.of("information_schema", "pg_catalog", "public", schema)),
                    "schemas: " + all);
            equal(List.of(schema), rows(data.getSchemas(null, schema), "TABLE_SCHEM"));
        });
        ask(cases, "catalogs", (data, schema) -> {
            List<String> all = rows(data.getCatalogs());
            holds(all.contains(Place.DATABASE), "catalogs: " + all);
        });
        ask(cases, "table_types", (data, schema) -> {
            List<String> all = rows(data.getTableTypes());
            holds(all.containsAll(List.of("TABLE", "VIEW", "INDEX", "SEQUENCE", "SYSTEM TABLE")),
                    "types: " + all);
        });
        ask(cases, "tables", (data, schema) -> equal(
                List.of("child|TABLE|null", "parent|TABLE|those above", "seen|VIEW|null"),
                rows(data.getTables(null, schema, "%", new String[] {"TABLE", "VIEW"}),
                        "TABLE_NAME", "TABLE_TYPE", "REMARKS").stream().sorted().toList()));
        ask(cases, "tables_of_all_types", (data, schema) -> equal(
                List.of("by_note|INDEX", "child_pkey|INDEX", "parent_code_key|INDEX",
                        "parent_pkey|INDEX", "parent_id_seq|SEQUENCE", "child|TABLE",
                        "parent|TABLE", "seen|VIEW"),
                rows(data.getTables(null, schema, null, null), "TABLE_NAME", "TABLE_TYPE")));
        ask(cases, "system_tables", (data, schema) -> {
            List<String> all = rows(data.getTables(null, "pg_catalog", "pg_c%",
                    new String[] {"SYSTEM TABLE"}), "TABLE_NAME");
            holds(all.containsAll(List.of("pg_cast", "pg_class", "pg_collation", "pg_constraint")),
                    "tables: " + all);
        });
        ask(cases, "columns", (data, schema) -> equal(List.of(
                "id|4|serial|10|0|0|nextval('" + schema + ".parent_id_seq'::regclass)|1|NO|YES",
                "code|12|varchar|10|0|0|null|2|NO|NO",
                "price|2|numeric|8|2|1|1.5|3|YES|NO",
                "made|93|timestamptz|35|6|1|now()|4|YES|NO",
                "feel|12|mood|2147483647|0|1|null|5|YES|NO",
                "tags|2003|_text|2147483647|0|1|null|6|YES|NO",
                "many|2001|positive|10|0|1|null|7|YES|NO"),
                plain(schema, rows(data.getColumns(null, schema, "parent", "%"), "COLUMN_NAME",
                        "DATA_TYPE", "TYPE_NAME", "COLUMN_SIZE", "DECIMAL_DIGITS", "NULLABLE",
                        "COLUMN_DEF", "ORDINAL_POSITION", "IS_NULLABLE", "IS_AUTOINCREMENT"))));
        ask(cases, "column_remarks", (data, schema) -> equal(List.of("code|short"),
                rows(data.getColumns(null, schema, "parent", "code"), "COLUMN_NAME", "REMARKS")));
        ask(cases, "columns_of_view", (data, schema) -> equal(List.of("id|4", "code|12"),
                rows(data.getColumns(null, schema, "seen", null), "COLUMN_NAME", "DATA_TYPE")));
        ask(cases, "generated_columns", (data, schema) -> {
            run(data.getConnection(), "create table g (a int, b int generated always as (a * 2)"
                    + " stored, c int generated always as identity)");
            equal(List.of("a|NO|NO", "b|NO|YES", "c|YES|NO"),
                    rows(data.getColumns(null, schema, "g", null), "COLUMN_NAME",
                            "IS_AUTOINCREMENT", "IS_GENERATEDCOLUMN"));
        });
        ask(cases, "primary_keys", (data, schema) -> equal(
                List.of("b|1|child_pkey", "a|2|child_pkey"),
                rows(data.getPrimaryKeys(null, schema, "child"), "COLUMN_NAME", "KEY_SEQ",
                        "PK_NAME")));
        ask(cases, "primary_unique_keys", (data, schema) -> equal(
                List.of("id|1|parent_pkey"),
                rows(data.unwrap(org.postgresql.jdbc.PgDatabaseMetaData.class)
                        .getPrimaryKeys(null, schema, "parent"), "COLUMN_NAME", "KEY_SEQ",
                        "PK_NAME")));
        ask(cases, "index_info", (data, schema) -> equal(
                List.of("false|child_pkey|1|b|A", "false|child_pkey|2|a|A",
                        "true|by_note|1|note|A", "true|by_note|2|a|D"),
                rows(data.getIndexInfo(null, schema, "child", false, true), "NON_UNIQUE",
                        "INDEX_NAME", "ORDINAL_POSITION", "COLUMN_NAME", "ASC_OR_DESC")
                        .stream().map(PgjdbcMetadata::flag).toList()));
        ask(cases, "index_info_unique", (data, schema) -> equal(
                List.of("parent_code_key|code", "parent_pkey|id"),
                rows(data.getIndexInfo(null, schema, "parent", true, false), "INDEX_NAME",
                        "COLUMN_NAME").stream().sorted().toList()));
        ask(cases, "index_info_partial", (data, schema) -> {
            run(data.getConnection(), "create index p on child (a) where b > 5",
                    "create unique index e on child (lower(note))");
            equal(List.of("e|lower((note)::text)|null", "p|a|(b > 5)"),
                    rows(data.getIndexInfo(null, schema, "child", false, true), "INDEX_NAME",
                            "COLUMN_NAME", "FILTER_CONDITION").stream()
                            .filter(row -> row.matches("[ep]\\|.*")).toList());
        });
        ask(cases, "imported_keys", (data, schema) -> equal(
                List.of("parent|id|child|parent_id|1|1|0|to_parent|parent_pkey|7"),
                rows(data.getImportedKeys(null, schema, "child"), "PKTABLE_NAME", "PKCOLUMN_NAME",
                        "FKTABLE_NAME", "FKCOLUMN_NAME", "KEY_SEQ", "UPDATE_RULE", "DELETE_RULE",
                        "FK_NAME", "PK_NAME", "DEFERRABILITY")));
        ask(cases, "exported_keys", (data, schema) -> equal(
                List.of("parent|id|child|parent_id|to_parent"),
                rows(data.getExportedKeys(null, schema, "parent"), "PKTABLE_NAME",
                        "PKCOLUMN_NAME", "FKTABLE_NAME", "FKCOLUMN_NAME", "FK_NAME")));
        ask(cases, "cross_reference", (data, schema) -> equal(
                List.of("id|parent_id|to_parent"),
                rows(data.getCrossReference(null, schema, "parent", null, schema, "child"),
                        "PKCOLUMN_NAME", "FKCOLUMN_NAME", "FK_NAME")));
        more(cases);
    }

    private static void more(Cases cases) {
        ask(cases, "best_row_identifier", (data, schema) -> equal(
                List.of("b|4|int4", "a|4|int4"),
                rows(data.getBestRowIdentifier(null, schema, "child",
                        DatabaseMetaData.bestRowSession, false), "COLUMN_NAME", "DATA_TYPE",
                        "TYPE_NAME").stream().sorted((x, y) -> y.compareTo(x)).toList()));
        ask(cases, "version_columns", (data, schema) -> equal(List.of("ctid|tid"),
                rows(data.getVersionColumns(null, schema, "parent"), "COLUMN_NAME",
                        "TYPE_NAME")));
        ask(cases, "type_info", (data, schema) -> {
            List<String> all = rows(data.getTypeInfo(), "TYPE_NAME", "DATA_TYPE");
            holds(all.containsAll(List.of("int4|4", "text|12", "timestamptz|93", "uuid|1111",
                    "numeric|2", "bool|-7", "_int4|2003", "jsonb|1111")), "types: " + all);
        });
        ask(cases, "udts", (data, schema) -> equal(
                List.of("positive|2001", "child|2002", "parent|2002", "seen|2002"),
                rows(data.getUDTs(null, schema, "%", null), "TYPE_NAME", "DATA_TYPE")));
        ask(cases, "procedures", (data, schema) -> equal(List.of(),
                rows(data.getProcedures(null, schema, "%"))));
        ask(cases, "procedure_columns", (data, schema) -> equal(List.of(),
                rows(data.getProcedureColumns(null, schema, "%", "%"))));
        ask(cases, "functions", (data, schema) -> {
            List<String> all = rows(data.getFunctions(null, "pg_catalog", "upper"),
                    "FUNCTION_NAME", "FUNCTION_TYPE");
            holds(all.contains("upper|1"), "functions: " + all);
        });
        ask(cases, "function_columns", (data, schema) -> equal(
                List.of("returnValue|4|text|0", "$1|1|text|1"),
                rows(data.getFunctionColumns(null, "pg_catalog", "initcap", "%"), "COLUMN_NAME",
                        "COLUMN_TYPE", "TYPE_NAME", "ORDINAL_POSITION")));
        ask(cases, "table_privileges", (data, schema) -> {
            List<String> all = rows(data.getTablePrivileges(null, schema, "parent"), "GRANTEE",
                    "PRIVILEGE");
            holds(all.contains(Place.USER + "|SELECT"), "privileges: " + all);
            holds(all.contains(Place.USER + "|INSERT"), "privileges: " + all);
        });
        ask(cases, "column_privileges", (data, schema) -> {
            List<String> all = rows(data.getColumnPrivileges(null, schema, "parent", "code"),
                    "GRANTEE", "COLUMN_NAME", "PRIVILEGE");
            holds(all.contains(Place.USER + "|code|SELECT"), "privileges: " + all);
        });
        ask(cases, "client_info_properties", (data, schema) -> equal(List.of("ApplicationName"),
                rows(data.getClientInfoProperties(), "NAME")));
        ask(cases, "escaped_patterns", (data, schema) -> {
            run(data.getConnection(), "create table a_b (x int)", "create table acb (x int)");
            equal(List.of("a_b"), rows(data.getTables(null, schema,
                    "a" + data.getSearchStringEscape() + "_b", null), "TABLE_NAME"));
        });
        ask(cases, "sequences_and_identity", (data, schema) -> equal(
                List.of("parent_id_seq|1|1"),
                query(data.getConnection(), "select sequencename, start_value, increment_by"
                        + " from pg_sequences where schemaname = current_schema()")));
        ask(cases, "information_schema", (data, schema) -> {
            equal(List.of("child|BASE TABLE", "parent|BASE TABLE", "seen|VIEW"),
                    query(data.getConnection(), "select table_name, table_type"
                            + " from information_schema.tables"
                            + " where table_schema = current_schema() order by 1"));
            equal(List.of("to_parent|CASCADE|RESTRICT"), query(data.getConnection(),
                    "select constraint_name, delete_rule, update_rule"
                            + " from information_schema.referential_constraints"
                            + " where constraint_schema = current_schema()"));
            equal(List.of("child_pkey|b|1", "child_pkey|a|2", "to_parent|parent_id|1"),
                    query(data.getConnection(), "select constraint_name, column_name,"
                            + " ordinal_position from information_schema.key_column_usage"
                            + " where table_schema = current_schema() and table_name = 'child'"
                            + " order by 1, 3"));
        });
        ask(cases, "supports", (data, schema) -> {
            holds(data.supportsBatchUpdates() && data.supportsSavepoints()
                    && data.supportsGetGeneratedKeys() && data.storesLowerCaseIdentifiers(),
                    "supports");
            equal(true, data.supportsTransactionIsolationLevel(
                    Connection.TRANSACTION_SERIALIZABLE));
        });
    }

    /** PostgreSQL leaves the schema away where the search path has it. */
    private static List<String> plain(String schema, List<String> rows) {
        return rows.stream()
                .map(row -> row.replace("nextval('parent_", "nextval('" + schema + ".parent_"))
                .toList();
    }

    private static String flag(String row) {
        return row.startsWith("t|") ? "true" + row.substring(1)
                : row.startsWith("f|") ? "false" + row.substring(1) : row;
    }
}
