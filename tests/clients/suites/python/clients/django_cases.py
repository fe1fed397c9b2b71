"""Django: migrations from models, inspectdb, the ORM; a project is made in a folder and loaded."""

import datetime
import decimal
import io
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import django
from cases import Cases, address, fails, same
from django.conf import settings

cases = Cases("django", django.get_version(), seconds_max=90)
MODELS = """
    import uuid
    from django.contrib.postgres.fields import ArrayField
    from django.db import models
    from django.db.models.functions import Lower

    class Author(models.Model):
        name = models.CharField(max_length=40, unique=True)
        class Meta:
            constraints = [models.UniqueConstraint(Lower("name"), name="author_lower")]

    class Tag(models.Model):
        label = models.SlugField()

    class Book(models.Model):
        class State(models.TextChoices):
            DRAFT = "d"
            OUT = "o"
        id = models.UUIDField(primary_key=True, default=uuid.uuid4)
        author = models.ForeignKey(Author, models.CASCADE, related_name="books")
        title = models.TextField(db_index=True)
        price = models.DecimalField(max_digits=8, decimal_places=2, default=0)
        state = models.CharField(max_length=1, choices=State.choices, default=State.DRAFT)
        facts = models.JSONField(default=dict)
        words = ArrayField(models.CharField(max_length=10), default=list)
        day = models.DateField(null=True)
        made = models.DateTimeField(auto_now_add=True, db_comment="when")
        took = models.DurationField(null=True)
        raw = models.BinaryField(null=True)
        twice = models.GeneratedField(expression=models.F("price") * 2, db_persist=True,
            output_field=models.DecimalField(max_digits=9, decimal_places=2))
        tags = models.ManyToManyField(Tag)
        class Meta:
            ordering = ["title"]
            constraints = [
                models.CheckConstraint(condition=models.Q(price__gte=0), name="book_price"),
                models.UniqueConstraint("author", "title", name="book_once"),
                models.UniqueConstraint(fields=["title"], condition=models.Q(state="o"),
                    name="book_out")]
            indexes = [models.Index(fields=["-day", "state"], name="book_day")]
"""


def _configure() -> Path:
    place = Path(tempfile.mkdtemp(prefix="suite-"))
    (place / "library" / "migrations").mkdir(parents=True)
    (place / "library" / "__init__.py").touch()
    (place / "library" / "migrations" / "__init__.py").touch()
    (place / "library" / "models.py").write_text(textwrap.dedent(MODELS))
    sys.path.insert(0, str(place))
    at = address()
    names = {"NAME": "database", "USER": "user", "PASSWORD": "password", "HOST": "host"}
    database = {key: at[name] for key, name in names.items()} | {"PORT": at["port"]}
    settings.configure(
        DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", **database}},
        INSTALLED_APPS=[
            "django.contrib.contenttypes", "django.contrib.auth", "django.contrib.sessions",
            "django.contrib.postgres", "library",
        ],
        USE_TZ=True,
        SECRET_KEY="only for tests",
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        SESSION_ENGINE="django.contrib.sessions.backends.db",
        CACHES={"default": {"BACKEND": "django.core.cache.backends.db.DatabaseCache",
                            "LOCATION": "dj_cache"}},
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
    )  # fmt: skip
    django.setup()
    return place


PLACE = _configure()

from django.contrib.auth.models import User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import IntegrityError, connection, models, transaction  # noqa: E402
from library.models import Author, Book, Tag  # type: ignore[import-not-found] # noqa: E402


def _call(*words: str, **options: Any) -> str:
    out = io.StringIO()
    call_command(*words, stdout=out, **options)
    return out.getvalue()


def _migrated() -> None:
    if not list((PLACE / "library" / "migrations").glob("0001*")):
        _call("makemigrations", "library")
    _call("migrate", verbosity=0)


def _filled() -> tuple[Any, Any]:
    """Two authors; the first has two books, the second one."""
    _migrated()
    Author.objects.all().delete()
    ada, bob = Author.objects.create(name="Ada"), Author.objects.create(name="Bob")
    one = Book.objects.create(
        author=ada, title="one", price="1.50", facts={"k": [1, {"z": "ü"}]}, words=["x", "y"],
        day=datetime.date(2024, 2, 29), took=datetime.timedelta(hours=5), raw=b"\0\xff",
    )  # fmt: skip
    one.tags.add(Tag.objects.create(label="sql"))
    Book.objects.create(author=ada, title="two", price=3, state="o")
    Book.objects.create(author=bob, title="three", price=4)
    return ada, bob


def _titles(query: Any) -> list[str]:
    return [book.title for book in query]


@cases.case
def migrations_run_and_nothing_is_left() -> None:
    _migrated()
    same("No migrations to apply" in _call("migrate"), True)
    same("No changes detected" in _call("makemigrations", check=True, dry_run=True), True)
    same("[ ]" in _call("showmigrations"), False)


@cases.case
def migrations_go_down_and_up() -> None:
    _migrated()
    _call("migrate", "library", "zero", verbosity=0)
    same("library_book" in connection.introspection.table_names(), False)
    _call("migrate", verbosity=0)
    same("library_book" in connection.introspection.table_names(), True)


@cases.case
def the_script_of_a_migration_is_printed() -> None:
    _migrated()
    script = _call("sqlmigrate", "library", "0001")
    same(('CREATE TABLE "library_book"' in script, "COMMENT ON COLUMN" in script), (True, True))


@cases.case
def inspectdb_writes_models() -> None:
    _migrated()
    text = _call("inspectdb", "library_book", "library_author")
    for line in (
        "id = models.UUIDField(primary_key=True)",
        "author = models.ForeignKey('LibraryAuthor', models.DO_NOTHING)",
        "price = models.DecimalField(max_digits=8, decimal_places=2)",
        "facts = models.JSONField()",
        "took = models.DurationField(blank=True, null=True)",
        "name = models.CharField(unique=True, max_length=40)",
        "unique_together = (('author', 'title'),)",
    ):
        assert line in text, line
    compile(text, "models", "exec")


@cases.case
def constraints_are_introspected() -> None:
    _migrated()
    with connection.cursor() as cursor:
        found = connection.introspection.get_constraints(cursor, "library_book")
    kinds = {
        name: (row["columns"], row["unique"], row["check"], row["index"])
        for name, row in found.items()
        if name.startswith("book_")
    }
    same(kinds["book_once"], (["author_id", "title"], True, False, True))
    same(kinds["book_out"], (["title"], True, False, True))
    same(kinds["book_price"], (["price"], False, True, False))
    same((found["book_day"]["orders"], found["book_day"]["index"]), (["DESC", "ASC"], True))


@cases.case
def rows_round_trip() -> None:
    _filled()
    book = Book.objects.get(title="one")
    same((book.price, book.twice), (decimal.Decimal("1.50"), decimal.Decimal("3.00")))
    same((book.facts, book.words), ({"k": [1, {"z": "ü"}]}, ["x", "y"]))
    same((book.took, bytes(book.raw)), (datetime.timedelta(hours=5), b"\0\xff"))


@cases.case
def relations_and_prefetching() -> None:
    _filled()
    authors = Author.objects.prefetch_related("books").order_by("name")
    same([_titles(author.books.all()) for author in authors], [["one", "two"], ["three"]])
    same(Book.objects.select_related("author").get(title="two").author.name, "Ada")
    same(_titles(Book.objects.filter(tags__label="sql")), ["one"])
    same(_titles(Book.objects.filter(author__name__istartswith="b")), ["three"])


@cases.case
def aggregates_windows_and_subqueries() -> None:
    _filled()
    counted = Author.objects.annotate(n=models.Count("books"), s=models.Sum("books__price"))
    rows = list(counted.order_by("name").values_list("n", "s"))
    same(rows, [(2, decimal.Decimal("4.50")), (1, decimal.Decimal("4.00"))])
    rank = models.Window(
        models.functions.Rank(), partition_by="author", order_by=models.F("price").desc()
    )
    same([book.r for book in Book.objects.annotate(r=rank).order_by("title")], [2, 1, 1])
    last = Book.objects.filter(author=models.OuterRef("pk")).order_by("-price").values("title")[:1]
    found = Author.objects.annotate(best=models.Subquery(last)).order_by("name")
    same([author.best for author in found], ["two", "three"])
    same(Author.objects.filter(models.Exists(Book.objects.filter(
        author=models.OuterRef("pk"), state="o"))).count(), 1)  # fmt: skip


@cases.case
def json_and_arrays_are_searched() -> None:
    _filled()
    for condition in (
        {"facts__k__0": 1},
        {"facts__contains": {"k": [1]}},
        {"facts__has_key": "k"},
        {"facts__k__1__z": "ü"},
        {"words__contains": ["x"]},
        {"words__overlap": ["y", "q"]},
        {"words__len": 2},
        {"words__0": "x"},
    ):
        same((condition, _titles(Book.objects.filter(**condition))), (condition, ["one"]))


@cases.case
def dates_and_texts_are_searched() -> None:
    _filled()
    for condition in (
        {"day__year": 2024}, {"day__week_day": 5}, {"day__quarter": 1}, {"title__regex": "^on"},
        {"title__iexact": "ONE"}, {"took__gt": datetime.timedelta(hours=1)},
        {"day__range": (datetime.date(2024, 1, 1), datetime.date(2024, 3, 1))},
    ):  # fmt: skip
        same((condition, _titles(Book.objects.filter(**condition))), (condition, ["one"]))
    trunc = models.functions.TruncMonth("day")
    found = Book.objects.filter(day__isnull=False).annotate(m=trunc).values_list("m", flat=True)
    same(list(found), [datetime.date(2024, 2, 1)])
    same(list(Book.objects.dates("day", "year")), [datetime.date(2024, 1, 1)])


@cases.case
def updates_deletes_and_bulk() -> None:
    ada, bob = _filled()
    same(Book.objects.filter(author=ada).update(price=models.F("price") + 1), 2)
    books = [Book(author=bob, title=f"b{i}") for i in range(50)]
    Book.objects.bulk_create(books, batch_size=20)
    for book in books:
        book.price = 7
    same(Book.objects.bulk_update(books, ["price"], batch_size=20), 50)
    same(Book.objects.filter(price=7).count(), 50)
    same(bob.delete()[1]["library.Book"], 51)


@cases.case
def upserts() -> None:
    ada, _ = _filled()
    Author.objects.bulk_create(
        [Author(id=ada.id, name="Eve"), Author(name="New")], update_conflicts=True,
        unique_fields=["id"], update_fields=["name"],
    )  # fmt: skip
    Author.objects.bulk_create([Author(name="New")], ignore_conflicts=True)
    same(sorted(Author.objects.values_list("name", flat=True)), ["Bob", "Eve", "New"])
    same(Author.objects.update_or_create(name="New", defaults={})[1], False)
    same(Author.objects.get_or_create(name="Newer")[1], True)


@cases.case
def transactions_and_locks() -> None:
    ada, _ = _filled()
    with transaction.atomic():
        with fails("23505", IntegrityError), transaction.atomic():
            Author.objects.create(name="ADA")
        locked = Author.objects.select_for_update(of=("self",)).get(pk=ada.pk)
        locked.name = "Zed"
        locked.save()
    done: list[int] = []
    with transaction.atomic():
        transaction.on_commit(lambda: done.append(1))
    same((Author.objects.filter(name="Zed").exists(), done), (True, [1]))
    with fails("23514", IntegrityError):
        Book.objects.filter(title="one").update(price=-1)


@cases.case
def pages_sets_and_raw_queries() -> None:
    _filled()
    same(_titles(Book.objects.all()[1:2]), ["three"])
    both = Book.objects.filter(title="one").union(Book.objects.filter(title="two"))
    same(both.count(), 2)
    same(_titles(Book.objects.raw("select * from library_book where price > %s", [3])), ["three"])
    same(len(list(Book.objects.iterator(chunk_size=2))), 3)
    same(Book.objects.explain().count("\n") >= 0, True)


@cases.case
def users_sessions_and_caches() -> None:
    _migrated()
    from django.contrib.sessions.backends.db import SessionStore
    from django.core.cache import cache

    User.objects.filter(username="ada").delete()
    user = User.objects.create_user("ada", password="secret")
    same((user.check_password("secret"), user.has_perm("library.add_book")), (True, False))
    store = SessionStore()
    store["k"] = 1
    store.save()
    same(SessionStore(session_key=store.session_key)["k"], 1)
    _call("createcachetable", verbosity=0)
    cache.set("a", {"b": 1})
    same((cache.get("a"), cache.add("a", 2)), ({"b": 1}, False))


@cases.case
def data_are_dumped_and_loaded() -> None:
    _filled()
    path = PLACE / "dump.json"
    _call("dumpdata", "library", output=str(path), verbosity=0)
    Author.objects.all().delete()
    _call("loaddata", str(path), verbosity=0)
    same(_titles(Book.objects.all()), ["one", "three", "two"])
    script = _call("sqlsequencereset", "library")
    with connection.cursor() as cursor:
        cursor.execute(script)


if __name__ == "__main__":
    cases.run()
