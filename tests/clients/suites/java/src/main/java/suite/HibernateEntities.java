package suite;

import static suite.Place.equal;
import static suite.Place.holds;
import static suite.Place.query;
import static suite.Place.run;

import jakarta.persistence.LockModeType;
import jakarta.persistence.OptimisticLockException;
import java.time.Instant;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import suite.Entities.Address;
import suite.Entities.Author;
import suite.Entities.Book;
import suite.Entities.Genre;
import suite.Entities.Invoice;
import suite.Entities.Tag;

/** Hibernate: entities stored, found, changed, locked. */
final class HibernateEntities {
    private HibernateEntities() {}

    private interface Used {
        void run(SessionFactory factory, Place place) throws Exception;
    }

    private static void use(Cases cases, String name, Used used) {
        cases.add(name, place -> {
            try (SessionFactory factory = HibernateSchemas.factory(place, "create",
                    Entities.ALL)) {
                used.run(factory, place);
            }
        });
    }

    /** Two authors with three books. */
    private static void fill(SessionFactory factory) {
        factory.inTransaction(session -> {
            Author ada = new Author("Ada");
            ada.born = LocalDate.of(1815, 12, 10);
            ada.address = new Address("Square 1", "London");
            ada.nicknames.add("countess");
            ada.write("Notes", Genre.ESSAY, "12.50");
            ada.write("Letters", Genre.NOVEL, "7.00");
            Author bob = new Author("Bob");
            bob.write("Verse", Genre.POEM, "3.25");
            session.persist(ada);
            session.persist(bob);
        });
    }

    private static Author named(Session session, String name) {
        return session.createSelectionQuery("from Author where name = :name", Author.class)
                .setParameter("name", name).getSingleResult();
    }

    static void add(Cases cases) {
        use(cases, "persist_and_find", (factory, place) -> {
            fill(factory);
            factory.inTransaction(session -> {
                Author ada = named(session, "Ada");
                equal("London", ada.address.city);
                equal(LocalDate.of(1815, 12, 10), ada.born);
                equal(List.of("countess"), new ArrayList<>(ada.nicknames));
                equal(2, ada.books.size());
                equal(0, ada.version);
            });
        });
        use(cases, "update_and_delete", (factory, place) -> {
            fill(factory);
            factory.inTransaction(session -> named(session, "Ada").name = "Ada L.");
            factory.inTransaction(session -> session.remove(named(session, "Bob")));
            equal(List.of("Ada L.|1"), query(place.connect(), "select name, version from author"));
            equal(List.of("2"), query(place.connect(), "select count(*) from book"));
        });
        use(cases, "orphans", (factory, place) -> {
            fill(factory);
            factory.inTransaction(session ->
                    named(session, "Ada").books.removeIf(book -> book.title.equals("Notes")));
            equal(List.of("Letters", "Verse"),
                    query(place.connect(), "select title from book order by 1"));
        });
        use(cases, "enums", (factory, place) -> {
            fill(factory);
            equal(List.of("POEM|1|POEM"), query(place.connect(),
                    "select genre, spoken, kind::text from book where title = 'Verse'"));
            factory.inTransaction(session -> equal(1L, session.createSelectionQuery(
                    "select count(*) from Book where native_ = :kind", Long.class)
                    .setParameter("kind", Genre.ESSAY).getSingleResult()));
        });
        use(cases, "json_arrays_and_instants", (factory, place) -> {
            fill(factory);
            Instant moment = Instant.parse("2024-05-06T07:08:09.123456Z");
            factory.inTransaction(session -> {
                Book book = named(session, "Bob").books.get(0);
                book.facts = Map.of("pages", 12, "tags", List.of("a", "b"));
                book.chapters = new String[] {"one", "two"};
                book.printed = moment;
            });
            factory.inTransaction(session -> {
                Book book = named(session, "Bob").books.get(0);
                equal(12, book.facts.get("pages"));
                equal(List.of("a", "b"), book.facts.get("tags"));
                equal(new String[] {"one", "two"}, book.chapters);
                equal(moment, book.printed);
            });
            equal(List.of("jsonb"), query(place.connect(),
                    "select pg_typeof(facts) from book limit 1"));
        });
        use(cases, "many_to_many", (factory, place) -> {
            fill(factory);
            factory.inTransaction(session -> {
                Tag one = new Tag("maths");
                Tag two = new Tag("history");
                session.persist(one);
                session.persist(two);
                for (Book book : named(session, "Ada").books) {
                    book.tags.addAll(Set.of(one, two));
                }
            });
            factory.inTransaction(session -> equal(List.of("Letters", "Notes"),
                    session.createSelectionQuery("select b.title from Book b join b.tags t"
                            + " where t.word = 'maths' order by b.title", String.class)
                            .getResultList()));
        });
        use(cases, "basic_types", (factory, place) -> {
            Invoice invoice = new Invoice();
            invoice.paid = true;
            invoice.weight = 1.25;
            invoice.scan = new byte[] {0, -1, 5};
            invoice.note = "long ".repeat(1000);
            invoice.at = Instant.parse("2024-05-06T07:08:09Z");
            invoice.local = java.time.LocalDateTime.of(2024, 1, 2, 3, 4, 5);
            invoice.took = java.time.Duration.ofSeconds(90);
            factory.inTransaction(session -> session.persist(invoice));
            factory.inTransaction(session -> {
                Invoice found = session.find(Invoice.class, invoice.id);
                equal(true, found.paid);
                equal(invoice.scan, found.scan);
                equal(invoice.note, found.note);
                equal(invoice.at, found.at);
                equal(invoice.local, found.local);
                equal(invoice.took, found.took);
            });
        });
        queries(cases);
        locking(cases);
    }

    private static void queries(Cases cases) {
        use(cases, "hql_aggregates", (factory, place) -> {
            fill(factory);
            factory.inTransaction(session -> {
                List<Object[]> found = session.createSelectionQuery(
                        "select a.name, count(b), sum(b.price) from Author a join a.books b"
                                + " group by a.name having count(b) > 0 order by a.name",
                        Object[].class).getResultList();
                equal(new Object[] {"Ada", 2L, new java.math.BigDecimal("19.50")}, found.get(0));
                equal(2, found.size());
            });
        });
        use(cases, "hql_join_fetch", (factory, place) -> {
            fill(factory);
            factory.inTransaction(session -> equal(2, session.createSelectionQuery(
                    "select distinct a from Author a left join fetch a.books", Author.class)
                    .getResultList().size()));
        });
        use(cases, "paging", (factory, place) -> {
            fill(factory);
            factory.inTransaction(session -> equal(List.of("Notes", "Verse"),
                    session.createSelectionQuery("select title from Book order by title",
                            String.class).setFirstResult(1).setMaxResults(2).getResultList()));
        });
        use(cases, "criteria", (factory, place) -> {
            fill(factory);
            factory.inTransaction(session -> {
                var builder = session.getCriteriaBuilder();
                var query = builder.createQuery(Book.class);
                var root = query.from(Book.class);
                query.where(builder.and(
                        builder.greaterThan(root.get("price"), new java.math.BigDecimal("5")),
                        builder.like(builder.lower(root.get("title")), "%t%")));
                query.orderBy(builder.desc(root.get("price")));
                equal(List.of("Notes", "Letters"), session.createSelectionQuery(query)
                        .getResultList().stream().map(book -> book.title).toList());
            });
        });
        use(cases, "hql_functions_and_windows", (factory, place) -> {
            fill(factory);
            factory.inTransaction(session -> {
                equal(List.of("letters-1", "notes-2", "verse-3"), session.createSelectionQuery(
                        "select lower(title) || '-' || cast(row_number() over (order by title)"
                                + " as string) from Book order by title", String.class)
                        .getResultList());
                equal(List.of("Ada:Letters,Notes", "Bob:Verse"), session.createSelectionQuery(
                        "select a.name || ':' || listagg(b.title, ',') within group"
                                + " (order by b.title) from Author a join a.books b"
                                + " group by a.name order by 1", String.class).getResultList());
                equal(1815, session.createSelectionQuery(
                        "select extract(year from born) from Author where born is not null",
                        Integer.class).getSingleResult());
            });
        });
        use(cases, "hql_subquery_and_cte", (factory, place) -> {
            fill(factory);
            factory.inTransaction(session -> {
                equal(List.of("Ada"), session.createSelectionQuery(
                        "select a.name from Author a where (select count(*) from Book b"
                                + " where b.author = a) > 1", String.class).getResultList());
                equal(List.of("Notes"), session.createSelectionQuery(
                        "with dear as (select b.title as title from Book b where b.price > 10)"
                                + " select d.title from dear d", String.class).getResultList());
            });
        });
        use(cases, "hql_update_and_delete", (factory, place) -> {
            fill(factory);
            factory.inTransaction(session -> {
                equal(2, session.createMutationQuery(
                        "update Book set price = price * 2 where price > 5").executeUpdate());
                equal(1, session.createMutationQuery("delete Book where title = 'Verse'")
                        .executeUpdate());
            });
            equal(List.of("14.00", "25.00"),
                    query(place.connect(), "select price from book order by price"));
        });
        use(cases, "hql_insert_on_conflict", (factory, place) -> factory.inTransaction(session -> {
            Consumer<String> insert = word -> session.createMutationQuery(
                    "insert into Tag (id, word) values (:id, :word)"
                            + " on conflict (word) do nothing")
                    .setParameter("id", java.util.UUID.randomUUID())
                    .setParameter("word", word).executeUpdate();
            insert.accept("x");
            insert.accept("x");
            equal(1L, session.createSelectionQuery("select count(*) from Tag", Long.class)
                    .getSingleResult());
        }));
        use(cases, "native_query", (factory, place) -> {
            fill(factory);
            factory.inTransaction(session -> {
                equal(2, session.createNativeQuery("select {a.*} from author a", Author.class)
                        .addEntity("a", Author.class).getResultList().size());
                equal("x", session.createNativeQuery(
                        "select cast(:v as text)", String.class).setParameter("v", "x")
                        .getSingleResult());
            });
        });
        use(cases, "scroll_and_stream", (factory, place) -> {
            fill(factory);
            factory.inTransaction(session -> {
                try (var stream = session.createSelectionQuery(
                        "from Book order by title", Book.class).setFetchSize(2).getResultStream()) {
                    equal(List.of("Letters", "Notes", "Verse"),
                            stream.map(book -> book.title).toList());
                }
            });
        });
        use(cases, "batch_inserts", (factory, place) -> factory.inTransaction(session -> {
            session.setJdbcBatchSize(20);
            for (int at = 0; at < 100; at++) {
                session.persist(new Author("author " + at));
            }
            session.flush();
            session.clear();
            equal(100L, session.createSelectionQuery("select count(*) from Author", Long.class)
                    .getSingleResult());
        }));
        use(cases, "stateless_session", (factory, place) -> {
            factory.inStatelessTransaction(session -> session.insert(new Author("alone")));
            factory.inStatelessTransaction(session -> session.upsert(tag("up")));
            equal(List.of("up"), query(place.connect(), "select word from tag"));
        });
        use(cases, "merge_detached", (factory, place) -> {
            fill(factory);
            Author detached = factory.fromTransaction(session -> named(session, "Bob"));
            detached.name = "Rob";
            factory.inTransaction(session -> session.merge(detached));
            equal(List.of("1"), query(place.connect(),
                    "select count(*) from author where name = 'Rob'"));
        });
    }

    private static Tag tag(String word) {
        return new Tag(word);
    }

    private static void locking(Cases cases) {
        use(cases, "optimistic_lock", (factory, place) -> {
            fill(factory);
            Author stale = factory.fromTransaction(session -> named(session, "Ada"));
            factory.inTransaction(session -> named(session, "Ada").name = "first");
            stale.name = "second";
            try {
                factory.inTransaction(session -> session.merge(stale));
                throw new AssertionError("no error");
            } catch (OptimisticLockException expected) {
                equal(List.of("first"), query(place.connect(),
                        "select name from author where name <> 'Bob'"));
            }
        });
        use(cases, "pessimistic_lock", (factory, place) -> {
            fill(factory);
            factory.inTransaction(session -> {
                Author ada = session.createSelectionQuery("from Author where name = 'Ada'",
                        Author.class).setLockMode(LockModeType.PESSIMISTIC_WRITE)
                        .getSingleResult();
                try (Session other = factory.openSession()) {
                    other.beginTransaction();
                    other.find(Author.class, ada.id, LockModeType.PESSIMISTIC_WRITE,
                            Map.of("jakarta.persistence.lock.timeout", 0));
                    throw new AssertionError("the lock was free");
                } catch (jakarta.persistence.PersistenceException expected) {
                    holds(expected.getClass().getSimpleName().contains("Lock"),
                            expected.toString());
                }
            });
        });
        use(cases, "skip_locked", (factory, place) -> {
            fill(factory);
            factory.inTransaction(session -> {
                session.createSelectionQuery("from Book where title = 'Notes'", Book.class)
                        .setLockMode(LockModeType.PESSIMISTIC_WRITE).getSingleResult();
                try (Session other = factory.openSession()) {
                    other.beginTransaction();
                    Set<String> free = new HashSet<>();
                    other.createSelectionQuery("from Book", Book.class)
                            .setHibernateLockMode(org.hibernate.LockMode.UPGRADE_SKIPLOCKED)
                            .getResultList().forEach(book -> free.add(book.title));
                    equal(Set.of("Letters", "Verse"), free);
                    other.getTransaction().rollback();
                }
            });
        });
        use(cases, "constraint_violation", (factory, place) -> {
            fill(factory);
            try {
                factory.inTransaction(session -> {
                    Author ada = named(session, "Ada");
                    ada.write("Notes", Genre.NOVEL, "1");
                });
                throw new AssertionError("no error");
            } catch (org.hibernate.exception.ConstraintViolationException error) {
                equal("one_title", error.getConstraintName());
                equal("23505", error.getSQLState());
            }
        });
        use(cases, "sequence_allocation", (factory, place) -> {
            fill(factory);
            List<String> first = query(place.connect(), "select min(id), max(id) from author");
            equal(List.of("1|2"), first);
            factory.inTransaction(session -> session.persist(new Author("third")));
            run(place.connect(), "select nextval('author_numbers')");
            factory.inTransaction(session -> {
                for (int at = 0; at < 12; at++) {
                    session.persist(new Author("more " + at));
                }
            });
            equal(List.of("15|15"), query(place.connect(),
                    "select count(*), count(distinct id) from author"));
        });
    }
}
