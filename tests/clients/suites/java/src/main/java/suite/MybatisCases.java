package suite;

import static suite.Place.equal;
import static suite.Place.fails;
import static suite.Place.query;
import static suite.Place.run;

import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Map;
import org.apache.ibatis.annotations.Delete;
import org.apache.ibatis.annotations.Insert;
import org.apache.ibatis.annotations.Options;
import org.apache.ibatis.annotations.Param;
import org.apache.ibatis.annotations.Result;
import org.apache.ibatis.annotations.Results;
import org.apache.ibatis.annotations.Many;
import org.apache.ibatis.annotations.Select;
import org.apache.ibatis.annotations.Update;
import org.apache.ibatis.cursor.Cursor;
import org.apache.ibatis.datasource.pooled.PooledDataSource;
import org.apache.ibatis.exceptions.PersistenceException;
import org.apache.ibatis.mapping.Environment;
import org.apache.ibatis.session.Configuration;
import org.apache.ibatis.session.ExecutorType;
import org.apache.ibatis.session.RowBounds;
import org.apache.ibatis.session.SqlSession;
import org.apache.ibatis.session.SqlSessionFactory;
import org.apache.ibatis.session.SqlSessionFactoryBuilder;
import org.apache.ibatis.session.TransactionIsolationLevel;
import org.apache.ibatis.transaction.jdbc.JdbcTransactionFactory;

/** MyBatis: mappers by annotation, dynamic SQL, keys, batches, cursors. */
final class MybatisCases {
    private MybatisCases() {}

    /** A row of the table. */
    public static class Person {
        public Integer id;
        public String name;
        public BigDecimal balance;
        public OffsetDateTime since;
        public List<String> pets;

        public Person() {}

        Person(String name, String balance) {
            this.name = name;
            this.balance = new BigDecimal(balance);
        }
    }

    /** The statements. */
    public interface People {
        @Insert("insert into person (name, balance) values (#{name}, #{balance})")
        @Options(useGeneratedKeys = true, keyProperty = "id", keyColumn = "id")
        int insert(Person person);

        @Select("insert into person (name, balance) values (#{name}, #{balance}) returning id")
        @Options(flushCache = Options.FlushCachePolicy.TRUE)
        int insertReturning(Person person);

        @Select("select id, name, balance, since from person where id = #{id}")
        Person find(int id);

        @Select("<script>select name from person <where>"
                + "<if test='name != null'>and name like #{name}</if>"
                + "<if test='ids != null'>and id in <foreach item='i' collection='ids' open='('"
                + " separator=',' close=')'>#{i}</foreach></if></where> order by name</script>")
        List<String> search(@Param("name") String name, @Param("ids") List<Integer> ids);

        @Update("<script>update person <set><if test='name != null'>name = #{name},</if>"
                + "<if test='balance != null'>balance = #{balance},</if></set>"
                + " where id = #{id}</script>")
        int change(Person person);


        @Delete("delete from person where balance < #{least}")
        int deletePoor(BigDecimal least);

        @Select("select id, name from person order by id")
        Cursor<Person> all();

        @Select("select name, count(*) as n from person group by name order by name")
        List<Map<String, Object>> counted();

        @Select("select id, name from person order by id")
        @Results({@Result(property = "id", column = "id", id = true),
            @Result(property = "pets", column = "id", many = @Many(select = "petsOf"))})
        List<Person> withPets();

        @Select("select word from pet where owner = #{id} order by word")
        List<String> petsOf(int id);

        @Insert("<script>insert into person (name) values <foreach item='n' collection='names'"
                + " separator=','>(#{n})</foreach> on conflict (name) do nothing</script>")
        int insertAll(@Param("names") List<String> names);
    }

    private interface Used {
        void run(SqlSessionFactory factory, Place place) throws Exception;
    }

    private static void use(Cases cases, String name, Used used) {
        cases.add(name, place -> {
            Connection connection = place.connect();
            run(connection, "create table person (id serial primary key, name text unique not null,"
                    + " balance numeric(10,2) default 0, since timestamptz default now())",
                    "create table pet (owner int references person, word text)");
            PooledDataSource source = new PooledDataSource("org.postgresql.Driver", place.url(),
                    Place.USER, Place.PASSWORD);
            Configuration configuration = new Configuration(new Environment("suite",
                    new JdbcTransactionFactory(), source));
            configuration.addMapper(People.class);
            try {
                used.run(new SqlSessionFactoryBuilder().build(configuration), place);
            } finally {
                source.forceCloseAll();
            }
        });
    }

    static void add(Cases cases) {
        use(cases, "insert_with_key", (factory, place) -> {
            try (SqlSession session = factory.openSession()) {
                Person person = new Person("ada", "10.50");
                equal(1, session.getMapper(People.class).insert(person));
                equal(1, person.id);
                session.commit();
            }
            equal(List.of("1|ada|10.50"), query(place.connect(),
                    "select id, name, balance from person"));
        });
        use(cases, "insert_returning", (factory, place) -> {
            try (SqlSession session = factory.openSession(true)) {
                People people = session.getMapper(People.class);
                equal(1, people.insertReturning(new Person("x", "1")));
                equal(2, people.insertReturning(new Person("y", "1")));
            }
        });
        use(cases, "find", (factory, place) -> {
            try (SqlSession session = factory.openSession()) {
                People people = session.getMapper(People.class);
                people.insert(new Person("ada", "1.25"));
                Person found = people.find(1);
                equal("ada", found.name);
                equal(new BigDecimal("1.25"), found.balance);
                equal(true, found.since.isAfter(OffsetDateTime.now().minusHours(1)));
                equal(null, people.find(99));
            }
        });
        use(cases, "rollback", (factory, place) -> {
            try (SqlSession session = factory.openSession()) {
                session.getMapper(People.class).insert(new Person("ada", "1"));
                session.rollback();
            }
            equal(List.of("0"), query(place.connect(), "select count(*) from person"));
        });
        use(cases, "dynamic_search", (factory, place) -> {
            try (SqlSession session = factory.openSession(true)) {
                People people = session.getMapper(People.class);
                equal(3, people.insertAll(List.of("ada", "bob", "abe")));
                equal(List.of("abe", "ada"), people.search("a%", null));
                equal(List.of("abe", "bob"), people.search(null, List.of(2, 3)));
                equal(List.of("abe", "ada", "bob"), people.search(null, null));
            }
        });
        use(cases, "dynamic_update", (factory, place) -> {
            try (SqlSession session = factory.openSession(true)) {
                People people = session.getMapper(People.class);
                Person person = new Person("ada", "5");
                people.insert(person);
                person.name = null;
                person.balance = new BigDecimal("7");
                equal(1, people.change(person));
                equal(List.of("ada|7.00"), query(place.connect(),
                        "select name, balance from person"));
                equal(1, people.deletePoor(new BigDecimal("8")));
            }
        });
        use(cases, "batch", (factory, place) -> {
            try (SqlSession session = factory.openSession(ExecutorType.BATCH)) {
                People people = session.getMapper(People.class);
                for (int at = 0; at < 50; at++) {
                    people.insert(new Person("p" + at, "1"));
                }
                equal(50, session.flushStatements().get(0).getUpdateCounts().length);
                session.commit();
            }
            equal(List.of("50"), query(place.connect(), "select count(*) from person"));
        });
        use(cases, "cursor_and_bounds", (factory, place) -> {
            try (SqlSession session = factory.openSession()) {
                People people = session.getMapper(People.class);
                people.insertAll(List.of("a", "b", "c", "d"));
                int seen = 0;
                try (Cursor<Person> cursor = people.all()) {
                    for (Person person : cursor) {
                        seen += person.id;
                    }
                }
                equal(10, seen);
                equal(2, session.selectList(People.class.getName() + ".counted", null,
                        new RowBounds(1, 2)).size());
            }
        });
        use(cases, "maps_and_aggregates", (factory, place) -> {
            try (SqlSession session = factory.openSession()) {
                People people = session.getMapper(People.class);
                people.insertAll(List.of("a", "b"));
                equal(List.of(Map.of("name", "a", "n", 1L), Map.of("name", "b", "n", 1L)),
                        people.counted());
            }
        });
        use(cases, "nested_select", (factory, place) -> {
            try (SqlSession session = factory.openSession(true)) {
                People people = session.getMapper(People.class);
                people.insertAll(List.of("a", "b"));
                run(place.connect(), "insert into pet values (1, 'cat'), (1, 'ant'), (2, 'dog')");
                equal(List.of(List.of("ant", "cat"), List.of("dog")),
                        people.withPets().stream().map(person -> person.pets).toList());
            }
        });
        use(cases, "on_conflict", (factory, place) -> {
            try (SqlSession session = factory.openSession(true)) {
                People people = session.getMapper(People.class);
                equal(2, people.insertAll(List.of("a", "b")));
                equal(1, people.insertAll(List.of("b", "c")));
            }
        });
        use(cases, "errors", (factory, place) -> {
            try (SqlSession session = factory.openSession(true)) {
                People people = session.getMapper(People.class);
                people.insert(new Person("a", "1"));
                fails("23505", p -> {
                    try {
                        people.insert(new Person("a", "1"));
                    } catch (PersistenceException error) {
                        throw (SQLException) error.getCause();
                    }
                }, place);
            }
        });
        use(cases, "isolation", (factory, place) -> {
            try (SqlSession session = factory.openSession(
                    TransactionIsolationLevel.SERIALIZABLE)) {
                equal(List.of("serializable"), query(session.getConnection(),
                        "show transaction_isolation"));
                session.rollback();
            }
        });
    }
}
