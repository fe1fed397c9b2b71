package suite;

import static org.jooq.impl.DSL.count;
import static org.jooq.impl.DSL.field;
import static org.jooq.impl.DSL.name;
import static org.jooq.impl.DSL.partitionBy;
import static org.jooq.impl.DSL.rowNumber;
import static org.jooq.impl.DSL.select;
import static org.jooq.impl.DSL.sum;
import static org.jooq.impl.DSL.table;
import static org.jooq.impl.DSL.val;
import static suite.Place.equal;
import static suite.Place.holds;
import static suite.Place.query;

import java.math.BigDecimal;
import java.sql.Connection;
import java.util.List;
import org.jooq.DSLContext;
import org.jooq.Field;
import org.jooq.JSONB;
import org.jooq.Record;
import org.jooq.SQLDialect;
import org.jooq.Table;
import org.jooq.exception.DataAccessException;
import org.jooq.impl.DSL;
import org.jooq.impl.SQLDataType;

/** jOOQ without generated code: definitions, queries, writes, meta data. */
final class JooqCases {
    private static final Table<Record> BOOK = table(name("book"));
    private static final Field<Integer> ID = field(name("book", "id"), SQLDataType.INTEGER);
    private static final Field<String> TITLE = field(name("book", "title"), SQLDataType.VARCHAR);
    private static final Field<String> KIND = field(name("book", "kind"), SQLDataType.VARCHAR);
    private static final Field<BigDecimal> PRICE =
            field(name("book", "price"), SQLDataType.NUMERIC);

    private JooqCases() {}

    private interface Used {
        void run(DSLContext dsl, Connection connection, String schema) throws Exception;
    }

    private static void use(Cases cases, String name, Used used) {
        cases.add(name, place -> {
            Connection connection = place.connect();
            DSLContext dsl = DSL.using(connection, SQLDialect.POSTGRES);
            dsl.createTable("book")
                    .column("id", SQLDataType.INTEGER.identity(true))
                    .column("title", SQLDataType.VARCHAR(100).notNull())
                    .column("kind", SQLDataType.VARCHAR(10))
                    .column("price", SQLDataType.NUMERIC(10, 2).defaultValue(new BigDecimal("1")))
                    .constraints(DSL.primaryKey("id"), DSL.unique("title"))
                    .execute();
            equal(3, dsl.insertInto(BOOK, TITLE, KIND, PRICE)
                    .values("Notes", "essay", new BigDecimal("12.50"))
                    .values("Letters", "novel", new BigDecimal("7.00"))
                    .values("Verse", "essay", new BigDecimal("3.25")).execute());
            used.run(dsl, connection, place.schema);
        });
    }

    static void add(Cases cases) {
        use(cases, "select", (dsl, connection, schema) -> equal(List.of("Letters", "Notes"),
                dsl.select(TITLE).from(BOOK).where(PRICE.gt(new BigDecimal("5")))
                        .orderBy(TITLE).fetch(TITLE)));
        use(cases, "insert_returning", (dsl, connection, schema) -> {
            Record record = dsl.insertInto(BOOK, TITLE).values("New").returning(ID, PRICE)
                    .fetchOne();
            equal(4, record.get(ID));
            equal(new BigDecimal("1.00"), record.get(PRICE));
        });
        use(cases, "upsert", (dsl, connection, schema) -> {
            Field<BigDecimal> price = field(name("price"), SQLDataType.NUMERIC);
            Field<String> title = field(name("title"), SQLDataType.VARCHAR);
            dsl.insertInto(BOOK, title, price).values("Notes", BigDecimal.TEN)
                    .onConflict(title).doUpdate().set(price, DSL.excluded(price)).execute();
            dsl.insertInto(BOOK, title).values("Notes").onConflictDoNothing().execute();
            equal(List.of("10.00"), query(connection,
                    "select price from book where title = 'Notes'"));
        });
        use(cases, "update_returning", (dsl, connection, schema) -> equal(
                List.of("Notes", "Verse"),
                dsl.update(BOOK).set(field(name("price"), BigDecimal.class),
                        PRICE.mul(BigDecimal.valueOf(2))).where(KIND.eq("essay"))
                        .returningResult(TITLE).fetch(TITLE).stream().sorted().toList()));
        use(cases, "delete_returning", (dsl, connection, schema) -> equal(List.of(3),
                dsl.deleteFrom(BOOK).where(TITLE.like("V%")).returningResult(ID).fetch(ID)));
        use(cases, "merge", (dsl, connection, schema) -> {
            dsl.mergeInto(BOOK).using(select(val("Notes").as("t"))
                            .unionAll(select(val("Other"))).asTable("s"))
                    .on(TITLE.eq(field(name("s", "t"), String.class)))
                    .whenMatchedThenUpdate().set(field(name("kind"), String.class), "seen")
                    .whenNotMatchedThenInsert(field(name("title"), String.class))
                    .values(field(name("s", "t"), String.class)).execute();
            equal(List.of("Notes|seen", "Other|null"), query(connection,
                    "select title, kind from book where kind is null or kind = 'seen'"
                            + " order by 1"));
        });
        use(cases, "aggregates_and_windows", (dsl, connection, schema) -> {
            var found = dsl.select(KIND, count(), sum(PRICE)).from(BOOK).groupBy(KIND)
                    .having(count().gt(1)).fetchOne();
            equal("essay", found.value1());
            equal(2, found.value2());
            equal(new BigDecimal("15.75"), found.value3());
            equal(List.of(1, 2, 1), dsl.select(rowNumber().over(
                    partitionBy(KIND).orderBy(PRICE))).from(BOOK).orderBy(KIND, PRICE)
                    .fetch(0, Integer.class));
        });
        use(cases, "cte_and_paging", (dsl, connection, schema) -> {
            var dear = name("dear").fields("t").as(select(TITLE).from(BOOK)
                    .where(PRICE.ge(new BigDecimal("7"))));
            equal(List.of("Notes"), dsl.with(dear).select(dear.field("t", String.class))
                    .from(dear).orderBy(1).limit(1).offset(1).fetch(0, String.class));
        });
        use(cases, "recursive_cte", (dsl, connection, schema) -> {
            var numbers = name("n").fields("v").as(select(val(1)).unionAll(
                    select(field(name("n", "v"), Integer.class).plus(1)).from(name("n"))
                            .where(field(name("n", "v"), Integer.class).lt(5))));
            equal(15, dsl.withRecursive(numbers).select(sum(numbers.field("v", Integer.class)))
                    .from(numbers).fetchOne(0, Integer.class));
        });
        use(cases, "multiset", (dsl, connection, schema) -> {
            var found = dsl.select(KIND, DSL.multisetAgg(TITLE).orderBy(TITLE)).from(BOOK)
                    .groupBy(KIND).orderBy(KIND).fetch();
            equal("essay", found.get(0).value1());
            equal(List.of("Notes", "Verse"), found.get(0).value2().getValues(0));
        });
        use(cases, "json_functions", (dsl, connection, schema) -> {
            equal("{\"a\": 1, \"b\": [1, 2]}", dsl.select(DSL.jsonbObject(
                    DSL.key("a").value(1), DSL.key("b").value(DSL.jsonbArray(val(1), val(2)))))
                    .fetchOne(0, JSONB.class).data());
            equal("[\"Letters\", \"Notes\", \"Verse\"]", dsl.select(DSL.jsonbArrayAgg(TITLE)
                    .orderBy(TITLE)).from(BOOK).fetchOne(0, JSONB.class).data());
        });
        use(cases, "arrays", (dsl, connection, schema) -> {
            equal(List.of("essay"), dsl.selectDistinct(KIND).from(BOOK)
                    .where(KIND.eq(DSL.any("essay", "none"))).fetch(KIND));
            equal(new String[] {"Notes", "Verse"}, dsl.select(DSL.arrayAgg(TITLE).orderBy(TITLE))
                    .from(BOOK).where(KIND.eq("essay")).fetchOne().value1());
        });
        use(cases, "transactions", (dsl, connection, schema) -> {
            try {
                dsl.transaction(outer -> {
                    outer.dsl().deleteFrom(BOOK).where(ID.eq(1)).execute();
                    try {
                        outer.dsl().transaction(inner -> {
                            inner.dsl().deleteFrom(BOOK).execute();
                            throw new IllegalArgumentException("inner");
                        });
                    } catch (IllegalArgumentException expected) {
                        equal(2, outer.dsl().fetchCount(BOOK));
                    }
                    throw new IllegalStateException("outer");
                });
            } catch (IllegalStateException expected) {
                equal(3, dsl.fetchCount(BOOK));
            }
        });
        use(cases, "errors", (dsl, connection, schema) -> {
            try {
                dsl.insertInto(BOOK, TITLE).values("Notes").execute();
                throw new AssertionError("no error");
            } catch (DataAccessException error) {
                equal("23505", error.sqlState());
                equal("C23_INTEGRITY_CONSTRAINT_VIOLATION", error.sqlStateClass().name());
            }
        });
        use(cases, "batch", (dsl, connection, schema) -> {
            dsl.batch(dsl.insertInto(BOOK, TITLE).values((String) null))
                    .bind("a").bind("b").bind("c").execute();
            equal(6, dsl.fetchCount(BOOK));
        });
        use(cases, "loader_csv", (dsl, connection, schema) -> {
            equal(2, dsl.loadInto(BOOK).loadCSV("title;kind\nx;k\ny;k\n")
                    .fields(field(name("title"), String.class), field(name("kind"), String.class))
                    .separator(';').execute().stored());
            equal(5, dsl.fetchCount(BOOK));
        });
        use(cases, "meta", (dsl, connection, schema) -> {
            dsl.execute("create table page (book_id int references book, n int, primary key"
                    + " (book_id, n))");
            dsl.execute("create index page_n on page (n)");
            var found = dsl.meta().filterSchemas(s -> s.getName().equals(schema)).getTables(
                    "page");
            equal(1, found.size());
            equal(List.of("book_id", "n"), List.of(found.get(0).fields()).stream()
                    .map(Field::getName).toList());
            equal(List.of("book_id", "n"), found.get(0).getPrimaryKey().getFields().stream()
                    .map(Field::getName).toList());
            equal("book", found.get(0).getReferences().get(0).getKey().getTable().getName());
            equal(List.of("page_n"), found.get(0).getIndexes().stream()
                    .map(index -> index.getName()).toList());
        });
        use(cases, "meta_ddl", (dsl, connection, schema) -> {
            String text = dsl.meta().filterSchemas(s -> s.getName().equals(schema)).ddl()
                    .toString();
            holds(text.contains("create table"), text);
            holds(text.contains("varchar(100)") || text.contains("varchar"), text);
        });
        use(cases, "alter_table_and_index", (dsl, connection, schema) -> {
            dsl.alterTable("book").addColumn("pages", SQLDataType.INTEGER).execute();
            dsl.alterTable("book").alterColumn("pages").setDefault(5).execute();
            dsl.alterTable("book").renameColumn("pages").to("leaves").execute();
            dsl.createIndex("by_leaves").on("book", "leaves").execute();
            dsl.dropIndex("by_leaves").execute();
            dsl.createView("cheap").as(select(TITLE).from(BOOK).where(PRICE.lt(BigDecimal.TEN)))
                    .execute();
            equal(2, dsl.fetchCount(table(name("cheap"))));
            dsl.dropView("cheap").execute();
            dsl.createSequence("s").startWith(5).execute();
            equal(5L, dsl.nextval("s").longValue());
            dsl.truncate("book").restartIdentity().execute();
            equal(0, dsl.fetchCount(BOOK));
        });
        use(cases, "for_update_skip_locked", (dsl, connection, schema) -> dsl.transaction(one ->
                equal(List.of(1), one.dsl().select(ID).from(BOOK).orderBy(ID).limit(1).forUpdate()
                        .skipLocked().fetch(ID))));
        use(cases, "plain_sql_and_records", (dsl, connection, schema) -> {
            equal("7", dsl.fetchValue("select {0} + {1}", val(3), val(4)).toString());
            equal(List.of("Verse"), dsl.resultQuery("select title from book where price < ?", 5)
                    .fetch("title", String.class));
            equal(3, dsl.fetchStream("select * from book").mapToInt(r -> 1).sum());
        });
    }
}
