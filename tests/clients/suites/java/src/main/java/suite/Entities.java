package suite;

import jakarta.persistence.CascadeType;
import jakarta.persistence.Column;
import jakarta.persistence.ElementCollection;
import jakarta.persistence.Embeddable;
import jakarta.persistence.Embedded;
import jakarta.persistence.Entity;
import jakarta.persistence.EnumType;
import jakarta.persistence.Enumerated;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.Index;
import jakarta.persistence.JoinTable;
import jakarta.persistence.ManyToMany;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.OneToMany;
import jakarta.persistence.SequenceGenerator;
import jakarta.persistence.Table;
import jakarta.persistence.UniqueConstraint;
import jakarta.persistence.Version;
import java.math.BigDecimal;
import java.time.Instant;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import org.hibernate.annotations.JdbcTypeCode;
import org.hibernate.type.SqlTypes;

/** The entities that Hibernate's cases work with. */
final class Entities {
    static final Class<?>[] ALL = {Author.class, Book.class, Tag.class, Invoice.class};

    private Entities() {}

    /** Kept as a number, as text and as an enum of the database. */
    enum Genre { NOVEL, POEM, ESSAY }

    @Embeddable
    static class Address {
        String street;
        String city;

        Address() {}

        Address(String street, String city) {
            this.street = street;
            this.city = city;
        }
    }

    @Entity(name = "Author")
    @Table(name = "author", indexes = @Index(name = "author_by_name", columnList = "name"))
    static class Author {
        @Id
        @GeneratedValue(strategy = GenerationType.SEQUENCE, generator = "authors")
        @SequenceGenerator(name = "authors", sequenceName = "author_numbers", allocationSize = 10)
        Long id;

        @Column(nullable = false, length = 100)
        String name;

        LocalDate born;

        @Embedded
        Address address;

        @Version
        int version;

        @ElementCollection
        List<String> nicknames = new ArrayList<>();

        @OneToMany(mappedBy = "author", cascade = CascadeType.ALL, orphanRemoval = true)
        List<Book> books = new ArrayList<>();

        Author() {}

        Author(String name) {
            this.name = name;
        }

        Book write(String title, Genre genre, String price) {
            Book book = new Book();
            book.title = title;
            book.genre = genre;
            book.spoken = genre;
            book.native_ = genre;
            book.price = new BigDecimal(price);
            book.author = this;
            books.add(book);
            return book;
        }
    }

    @Entity(name = "Book")
    @Table(name = "book", uniqueConstraints = @UniqueConstraint(
            name = "one_title", columnNames = {"title", "author_id"}))
    static class Book {
        @Id
        @GeneratedValue(strategy = GenerationType.IDENTITY)
        Integer id;

        @Column(nullable = false)
        String title;

        @Enumerated(EnumType.STRING)
        Genre genre;

        @Enumerated(EnumType.ORDINAL)
        Genre spoken;

        @Enumerated
        @JdbcTypeCode(SqlTypes.NAMED_ENUM)
        @Column(name = "kind")
        Genre native_;

        @Column(precision = 10, scale = 2)
        BigDecimal price;

        @ManyToOne(optional = false)
        Author author;

        @ManyToMany
        @JoinTable(name = "book_tag")
        Set<Tag> tags = new HashSet<>();

        @JdbcTypeCode(SqlTypes.JSON)
        Map<String, Object> facts;

        String[] chapters;

        Instant printed;
    }

    @Entity(name = "Tag")
    @Table(name = "tag")
    static class Tag {
        @Id
        UUID id = UUID.randomUUID();

        @Column(unique = true)
        String word;

        Tag() {}

        Tag(String word) {
            this.word = word;
        }
    }

    @Entity(name = "Invoice")
    @Table(name = "invoice")
    static class Invoice {
        @Id
        @GeneratedValue
        UUID id;

        boolean paid;
        double weight;
        byte[] scan;

        @Column(columnDefinition = "text")
        String note;

        Instant at;
        java.time.LocalDateTime local;
        java.time.Duration took;
    }
}
