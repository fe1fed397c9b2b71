"""What the project does, scene by scene; each prints what an application would see."""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false
# Django has no types of its own.

import contextlib
import datetime as dt
import io
import uuid
from decimal import Decimal
from typing import Any

from django.contrib.auth import authenticate
from django.contrib.auth.models import Group, Permission, User
from django.contrib.contenttypes.models import ContentType
from django.core import serializers
from django.core.management import call_command
from django.db import IntegrityError, connection, models, transaction
from django.db.models import (
    Avg,
    Case,
    Count,
    Exists,
    ExpressionWrapper,
    F,
    Max,
    Min,
    OuterRef,
    Q,
    Subquery,
    Sum,
    Value,
    When,
    Window,
)
from django.db.models.functions import (
    Concat,
    ExtractYear,
    Left,
    Length,
    Lower,
    Rank,
    RowNumber,
    TruncMonth,
    Upper,
)
from django.test import Client

from tests.clients.drivers.django_project.shop.models import Author, Book, Order, Tag

_TEXT = models.CharField()
_DAY = dt.datetime(2024, 2, 28, 12, 30, 15, 250_000, tzinfo=dt.UTC)


def play() -> None:
    """All scenes, in order."""
    for scene in (
        _migrate,
        _introspect,
        _write,
        _query,
        _change,
        _transactions,
        _integrity,
        _users,
        _admin,
        _load,
        _back_and_forth,
        _flush,
    ):
        print(f"# {scene.__name__.removeprefix('_')}")
        scene()


def _called(*arguments: str, **options: Any) -> str:
    out = io.StringIO()
    call_command(*arguments, stdout=out, no_color=True, **options)
    return out.getvalue()


# --- definitions -------------------------------------------------------------------------------


def _migrate() -> None:
    print(_called("migrate", verbosity=1))
    print(_called("makemigrations", "--check", "--dry-run"))
    print(_called("showmigrations", "shop"))
    print(_called("migrate", "--check"))


def _introspect() -> None:
    print(_called("inspectdb"))
    print(_called("check", database=["default"]))
    with connection.cursor() as cursor:
        see = connection.introspection
        for table in ("shop_book", "shop_author", "shop_order", "shop_book_tags"):
            found = see.get_constraints(cursor, table)
            for name in sorted(found, key=_settled):
                shown = {key: value for key, value in found[name].items() if key != "definition"}
                print(table, _settled(name), shown, found[name].get("definition"))
            print(see.get_sequences(cursor, table))
            print(sorted(see.get_relations(cursor, table).items()))
            print(see.get_primary_key_columns(cursor, table))


def _settled(name: str) -> str:
    return name


# --- rows --------------------------------------------------------------------------------------


def _write() -> None:
    ada = Author.objects.get(full_name="Ada")
    bob = Author.objects.create(full_name="Bob", email="bob@example.org", born=dt.date(1950, 1, 31))
    made = Book.objects.bulk_create(
        Book(
            id=uuid.UUID(int=number),
            title=f"Book {number}",
            author=ada if number % 3 else bob,
            price=Decimal(number) * Decimal("1.25"),
            stock=number,
            facts={"pages": number * 10, "kinds": ["a", "b"], "deep": {"x": number % 2 == 0}},
            published=_DAY + dt.timedelta(days=40 * number),
            rating=None if number % 4 == 0 else number / 4,
        )
        for number in range(1, 21)
    )
    print(len(made), made[0].pk)
    tags = Tag.objects.bulk_create([Tag(name=name) for name in ("new", "old", "odd")])
    print([tag.pk is not None for tag in tags])
    for book in Book.objects.filter(title__startswith="Book 1"):
        book.tags.add(tags[0], tags[2])
    again = Tag.objects.bulk_create(
        [Tag(id=tags[0].pk, name="newest")],
        update_conflicts=True,
        unique_fields=["id"],
        update_fields=["name"],
    )
    print(again[0].name, Tag.objects.get(pk=tags[0].pk).name)
    Author.objects.bulk_create(
        [Author(full_name="Bob again", email="bob@example.org")], ignore_conflicts=True
    )
    user = User.objects.create_user("buyer", "buyer@example.org", "secret")
    Order.objects.create(
        buyer=user,
        book=made[4],
        count=3,
        took=dt.timedelta(days=2, hours=3, microseconds=5),
        receipt=b"\x00\xff",
    )
    print(Author.objects.get_or_create(email="eve@example.org", defaults={"full_name": "Eve"})[1])
    print(Author.objects.get_or_create(email="eve@example.org", defaults={"full_name": "Eva"})[1])
    eve, created = Author.objects.update_or_create(
        email="eve@example.org", defaults={"full_name": "Eve the second"}
    )
    print(eve, created)


def _query() -> None:
    books = Book.objects.order_by("id")
    print(books.filter(author__full_name__icontains="bo").values_list("title", flat=True))
    print([(b.title, b.author.full_name) for b in books.select_related("author")[:4]])
    with_tags = books.prefetch_related("tags").filter(tags__name="odd").distinct()
    print([(b.title, sorted(t.name for t in b.tags.all())) for b in with_tags[:3]])
    totals = Author.objects.annotate(
        n=Count("books"), total=Sum("books__price"), best=Max("books__rating")
    )
    print([(a.full_name, a.n, a.total, a.best) for a in totals.order_by("id")])
    print(Book.objects.aggregate(Avg("rating"), Min("published"), Sum("stock"), Count("rating")))
    print(Book.objects.filter(facts__pages__gt=150).count())
    print(
        Book.objects.filter(facts__deep__x=True).count(),
        books.filter(facts__kinds=["a", "b"]).count(),
    )
    print(
        Book.objects.filter(facts__has_key="pages").count(),
        books.filter(facts__kinds__0="a").count(),
    )
    print(Book.objects.filter(facts__contains={"kinds": ["b"]}).count())
    print(list(books.values_list("facts__pages", flat=True)[:3]))
    _reckon(books)


def _reckon(books: Any) -> None:
    months = books.annotate(month=TruncMonth("published")).values("month").annotate(n=Count("id"))
    print([(row["month"], row["n"]) for row in months.order_by("month")[:4]])
    print(
        books.filter(published__year=2025).count(),
        books.filter(published__date=_DAY.date()).count(),
    )
    print(
        books.annotate(y=ExtractYear("published"))
        .values_list("y", flat=True)
        .distinct()
        .order_by("y")
    )
    print(books.filter(Q(price__range=(5, 10)) | ~Q(stock__lt=18)).count())
    print(
        books.filter(title__regex=r"^Book \d$").count(),
        books.filter(title__iexact="BOOK 7").count(),
    )
    print(books.filter(title__in=["Book 1", "Book 2"], rating__isnull=False).count())
    last = Book.objects.filter(author=OuterRef("pk")).order_by("-published").values("title")[:1]
    print(sorted(Author.objects.annotate(last=Subquery(last)).values_list("email", "last")))
    has = Exists(Book.objects.filter(author=OuterRef("pk"), stock__gt=19))
    print(Author.objects.filter(has).count(), Author.objects.exclude(has).count())
    ranked = books.annotate(
        r=Window(Rank(), partition_by="author", order_by=F("price").desc()),
        n=Window(RowNumber(), order_by="id"),
    )
    print(list(ranked.values_list("title", "r", "n")[:5]))
    shown = books.annotate(
        label=Concat(Upper("title"), Value(": "), Left("author__email", 3), output_field=_TEXT),
        size=Case(When(stock__gte=10, then=Value("many")), default=Value("few")),
        worth=ExpressionWrapper(F("price") * F("stock"), output_field=models.DecimalField()),
        short=Length(Lower("title")),
    )
    print(list(shown.values_list("label", "size", "worth", "short")[:3]))
    first, second = books.filter(stock__lt=3), books.filter(stock__gt=19)
    print(sorted(b.title for b in first.union(second)), first.difference(second).count())
    print(books.dates("published", "year"), books.datetimes("published", "month")[:2])
    print(books.reverse()[2:4].values_list("title", flat=True), books.in_bulk([uuid.UUID(int=3)]))
    print(Book.objects.raw("select * from shop_book where title = %s", ["Book 5"])[0].price)
    print(books.filter(pk=uuid.UUID(int=1)).explain() != "")
    print(
        list(
            books.values("author")
            .annotate(n=Count("*"), s=Sum("stock"))
            .filter(n__gt=1)
            .order_by("-n")
            .values_list("n", "s")
        )
    )
    print(list(Order.objects.values_list("count", "took", "book__title", "buyer__username")))
    print([bytes(order.receipt or b"") for order in Order.objects.all()])
    print(
        list(books.iterator(chunk_size=7))[6].title, books.first(), books.latest("published").title
    )


def _change() -> None:
    print(Book.objects.filter(stock__lt=5).update(price=F("price") + 1, stock=F("stock") * 2))
    books = list(Book.objects.order_by("id")[:5])
    for book in books:
        book.slug, book.rating = f"s-{book.stock}", 1.5
    print(Book.objects.bulk_update(books, ["slug", "rating"]))
    print(list(Book.objects.order_by("id").values_list("slug", "price", "stock")[:4]))
    book = Book.objects.get(pk=uuid.UUID(int=7))
    book.stock = F("stock") + 100
    book.save(update_fields=["stock"])
    book.refresh_from_db()
    print(book.stock)
    one = Order.objects.get()
    one.took = F("took") * 2
    one.save()
    one.refresh_from_db()
    print(one.took)
    print(Author.objects.filter(full_name="Bob").delete())
    print(Tag.objects.get(name="old").delete(), Book.objects.count())
    with contextlib.suppress(models.ProtectedError):
        one.book.delete()
        print("a protected book is gone")
    User.objects.get(username="buyer").delete()
    print(Order.objects.get().buyer)


def _transactions() -> None:
    done: list[str] = []
    with transaction.atomic():
        transaction.on_commit(lambda: done.append("committed"))
        Tag.objects.create(name="outer")
        with contextlib.suppress(ValueError), transaction.atomic():
            Tag.objects.create(name="inner")
            raise ValueError
        with transaction.atomic():
            Tag.objects.create(name="inner too")
    print(done, sorted(Tag.objects.values_list("name", flat=True)))
    with transaction.atomic():
        locked = Book.objects.select_for_update().get(pk=uuid.UUID(int=7))
        locked.stock -= 1
        locked.save()
        of = Book.objects.select_for_update(of=("self",), skip_locked=True).select_related("author")
        print(of.filter(stock__gt=100).count(), locked.stock)
    with contextlib.suppress(RuntimeError), transaction.atomic():
        Tag.objects.all().delete()
        raise RuntimeError
    print(Tag.objects.count())
    mark = transaction.savepoint
    with transaction.atomic():
        sid = mark()
        Tag.objects.create(name="gone")
        transaction.savepoint_rollback(sid)
    print(Tag.objects.filter(name="gone").exists())


def _integrity() -> None:
    def said(what: Any) -> None:
        try:
            with transaction.atomic():
                what()
            print("accepted")
        except IntegrityError as error:
            diagnostics = getattr(error.__cause__, "diag", None)
            print(type(error.__cause__).__name__, getattr(diagnostics, "constraint_name", None))

    author = Author.objects.order_by("id")[0]
    one = Book.objects.filter(author=author).order_by("id")[0]
    said(lambda: Author.objects.create(full_name="x", email=author.email))
    said(lambda: Book.objects.create(title=one.title, author=author, price=1))
    said(lambda: Book.objects.create(title="bad price", author=author, price=-1))
    said(lambda: Book.objects.create(title="nobody's", author_id=999_999, price=1))
    said(lambda: Book.objects.filter(pk=one.pk).update(title=None))
    with transaction.atomic():
        # Django makes foreign keys that wait for the commit.
        later = Book.objects.create(id=uuid.UUID(int=99), title="early", author_id=5_000, price=1)
        Author.objects.create(id=5_000, full_name="Late", email="late@example.org")
    print(Book.objects.get(pk=later.pk).author)

    def check() -> None:
        Book.objects.create(title="checked", author_id=999_999, price=1)
        connection.check_constraints()

    said(check)


# --- the applications that come with Django ----------------------------------------------------


def _users() -> None:
    print(Permission.objects.count(), ContentType.objects.filter(app_label="shop").count())
    root = User.objects.create_superuser("root", "root@example.org", "secret")
    group = Group.objects.create(name="sellers")
    group.permissions.set(Permission.objects.filter(content_type__app_label="shop"))
    seller = User.objects.create_user("seller", password="secret")
    seller.groups.add(group)
    print(seller.has_perm("shop.add_book"), root.has_perm("shop.add_book"))
    print(
        authenticate(username="seller", password="secret"), authenticate(username="x", password="y")
    )


def _admin() -> None:
    client = Client()
    print(client.login(username="root", password="secret"))
    for page in (
        "/admin/",
        "/admin/shop/book/",
        "/admin/shop/book/?q=Book&is_open__exact=1&o=-3",
        "/admin/shop/book/?published__year=2025",
        "/admin/shop/author/add/",
        "/admin/auth/user/",
    ):
        print(page, client.get(page).status_code)
    data = {"full_name": "Grace", "email": "grace@example.org", "born": "1906-12-09"}
    print(client.post("/admin/shop/author/add/", data).status_code)
    grace = Author.objects.get(email="grace@example.org")
    print(client.post(f"/admin/shop/author/{grace.pk}/delete/", {"post": "yes"}).status_code)
    print(client.get("/admin/").content.decode().count("Grace"))
    print(_called("clearsessions"))


def _load() -> None:
    kinds: list[Any] = [*Order.objects.all(), *Book.objects.order_by("id"), *Author.objects.all()]
    data = serializers.serialize("json", [*kinds, *Tag.objects.all()])
    Order.objects.all().delete()
    Author.objects.all().delete()
    Tag.objects.all().delete()
    print(Book.objects.count())
    # Children come before their parents.
    with transaction.atomic():
        for each in serializers.deserialize("json", data):
            each.save()
    print(Order.objects.count(), Book.objects.count(), Author.objects.count(), Tag.objects.count())
    print(_called("sqlsequencereset", "shop"))
    for statement in _called("sqlsequencereset", "shop").splitlines():
        if statement.startswith("SELECT"):
            with connection.cursor() as cursor:
                cursor.execute(statement)
    print(Author.objects.create(full_name="Next", email="next@example.org").pk)


def _back_and_forth() -> None:
    Book.objects.all()[0].tags.clear()
    print(_called("migrate", "shop", "0002", verbosity=1))
    with connection.cursor() as cursor:
        columns = connection.introspection.get_table_description(cursor, "shop_book")
        print([(c.name, c.type_code, c.internal_size, c.null_ok) for c in columns])
    print(_called("migrate", "shop", verbosity=1))
    print(Book.objects.count())
    print(_called("migrate", "shop", "zero", verbosity=1))
    print([t for t in connection.introspection.table_names() if t.startswith("shop")])
    print(_called("migrate", verbosity=1))


def _flush() -> None:
    call_command("flush", interactive=False, verbosity=0)
    print(User.objects.count(), Author.objects.count(), Permission.objects.count())
    print(Author.objects.create(full_name="First", email="first@example.org").pk)
