"""peewee, with playhouse's migrations and reflection."""

import datetime
import decimal
import uuid
from typing import Any

import peewee
from cases import Cases, address, fails, same
from playhouse import migrate, reflection
from playhouse.postgres_ext import ArrayField, BinaryJSONField, PostgresqlExtDatabase

cases = Cases("peewee", peewee.__version__)
AT = address()
PLACE: dict[str, Any] = {
    "host": AT["host"], "port": int(AT["port"]), "user": AT["user"], "password": AT["password"],
}  # fmt: skip
DB = PostgresqlExtDatabase(AT["database"], **PLACE)


class _Model(peewee.Model):
    class Meta:
        """All of one database."""

        database = DB


class User(_Model):
    """Writes posts."""

    name = peewee.CharField(max_length=30, unique=True)
    joined = peewee.DateTimeField(default=datetime.datetime.now)

    class Meta:
        """Its name is no reserved word."""

        table_name = "pw_user"


class Post(_Model):
    """With a column of every kind."""

    user = peewee.ForeignKeyField(User, backref="posts", on_delete="CASCADE")
    title = peewee.TextField(index=True)
    price = peewee.DecimalField(10, 2, default=0)
    token = peewee.UUIDField(default=uuid.uuid4)
    day = peewee.DateField(null=True)
    data = BinaryJSONField(default=dict)
    tags = ArrayField(peewee.CharField, default=list)
    raw = peewee.BlobField(null=True)

    class Meta:
        """Two columns are unique."""

        table_name = "pw_post"
        indexes = ((("user", "title"), True),)


def _filled() -> None:
    DB.drop_tables([Post, User], safe=True, cascade=True)
    DB.create_tables([User, Post])
    ada, bob = User.create(name="ada"), User.create(name="bob")
    Post.create(user=ada, title="one", price="1.50", data={"k": [1]}, tags=["x", "y"], raw=b"\0")
    Post.create(user=ada, title="two", day=datetime.date(2024, 2, 29))
    Post.create(user=bob, title="three", price=4)


@cases.case
def tables_are_made_twice() -> None:
    _filled()
    DB.create_tables([User, Post], safe=True)
    same({"pw_user", "pw_post"} <= set(DB.get_tables()), True)
    same([c.name for c in DB.get_columns("pw_user")], ["id", "name", "joined"])
    same(DB.get_primary_keys("pw_post"), ["id"])
    same([f.dest_table for f in DB.get_foreign_keys("pw_post")], ["pw_user"])
    assert any(i.unique and i.columns == ["user_id", "title"] for i in DB.get_indexes("pw_post"))


@cases.case
def rows_round_trip() -> None:
    _filled()
    post = Post.get(Post.title == "one")
    same((post.price, post.data, post.tags), (decimal.Decimal("1.50"), {"k": [1]}, ["x", "y"]))
    same((bytes(post.raw), type(post.token)), (b"\0", uuid.UUID))
    same(Post.get(Post.title == "two").day, datetime.date(2024, 2, 29))


@cases.case
def joins_aggregates_and_prefetch() -> None:
    _filled()
    query = User.select(User.name, peewee.fn.COUNT(Post.id).alias("n")).join(Post)
    query = query.group_by(User.name).order_by(peewee.SQL("n").desc())
    same([(row.name, row.n) for row in query], [("ada", 2), ("bob", 1)])
    users = peewee.prefetch(User.select().order_by(User.name), Post.select().order_by(Post.id))
    same([[post.title for post in user.posts] for user in users], [["one", "two"], ["three"]])
    same([p.title for p in Post.select().order_by(Post.title).paginate(2, 2)], ["two"])


@cases.case
def json_and_arrays_are_searched() -> None:
    _filled()
    same([p.title for p in Post.select().where(Post.data.contains({"k": [1]}))], ["one"])
    same([p.title for p in Post.select().where(Post.tags.contains("x"))], ["one"])
    same(
        [
            p.title
            for p in Post.select().where(Post.data["k"][0].as_json() == peewee.Cast("1", "jsonb"))
        ],
        ["one"],
    )


@cases.case
def updates_deletes_and_returning() -> None:
    _filled()
    query = (
        Post.update(price=Post.price + 1).where(Post.price > 0).returning(Post.title, Post.price)
    )
    found = sorted((row.title, row.price) for row in query.execute())
    same(found, [("one", decimal.Decimal("2.50")), ("three", decimal.Decimal(5))])
    same(User.delete().where(User.name == "ada").execute(), 1)
    same(Post.select().count(), 1)


@cases.case
def bulk_inserts_and_upserts() -> None:
    _filled()
    bob = User.get(name="bob")
    Post.insert_many([{"user": bob, "title": f"t{i}"} for i in range(100)]).execute()
    Post.bulk_create([Post(user=bob, title=f"b{i}") for i in range(10)], batch_size=4)
    same(Post.select().count(), 113)
    insert = Post.insert(user=bob, title="t1", price=9)
    insert.on_conflict(
        conflict_target=[Post.user, Post.title], update={Post.price: peewee.EXCLUDED.price}
    ).execute()
    same(Post.get(Post.title == "t1").price, decimal.Decimal(9))
    insert.on_conflict_ignore().execute()


@cases.case
def transactions_nest() -> None:
    _filled()
    with DB.atomic():
        User.create(name="eve")
        with fails("23505", peewee.IntegrityError), DB.atomic():
            User.create(name="ada")
        with DB.atomic() as inner:
            User.create(name="gone")
            inner.rollback()
    same([u.name for u in User.select().order_by(User.name)], ["ada", "bob", "eve"])


@cases.case
def windows_and_recursion() -> None:
    _filled()
    rank = peewee.fn.RANK().over(partition_by=[Post.user], order_by=[Post.price.desc()])
    query = Post.select(Post.title, rank.alias("r")).order_by(Post.id)
    same([row.r for row in query], [1, 2, 1])
    base = peewee.Select(columns=(peewee.Value(1).alias("n"),)).cte("base", recursive=True)
    whole = base.union_all(peewee.Select([base], (base.c.n + 1,)).where(base.c.n < 5))
    same([row["n"] for row in whole.select_from(whole.c.n).bind(DB).dicts()], [1, 2, 3, 4, 5])


@cases.case
def rows_are_locked_and_streamed() -> None:
    _filled()
    with DB.atomic():
        same(User.select().where(User.name == "ada").for_update().get().name, "ada")
    from playhouse.postgres_ext import ServerSide

    with DB.atomic():
        same(len(list(ServerSide(Post.select()))), 3)


@cases.case
def a_migration_goes_through() -> None:
    _filled()
    migrator = migrate.PostgresqlMigrator(DB)
    migrate.migrate(
        migrator.add_column("pw_post", "views", peewee.IntegerField(default=3)),
        migrator.add_column("pw_post", "note", peewee.TextField(null=True)),
        migrator.rename_column("pw_post", "title", "heading"),
        migrator.drop_not_null("pw_post", "price"),
        migrator.add_index("pw_post", ("views",), False),
        migrator.alter_column_type("pw_post", "views", peewee.BigIntegerField()),
        migrator.drop_column("pw_post", "raw"),
        migrator.add_constraint("pw_post", "pw_views", peewee.Check("views >= 0")),
    )
    names = [c.name for c in DB.get_columns("pw_post")]
    same(
        names,
        ["id", "user_id", "heading", "price", "token", "day", "data", "tags", "views", "note"],
    )
    migrate.migrate(
        migrator.drop_constraint("pw_post", "pw_views"),
        migrator.rename_table("pw_post", "pw_entry"),
        migrator.rename_table("pw_entry", "pw_post"),
        migrator.drop_index("pw_post", "pw_post_views"),
    )
    same(DB.execute_sql("select sum(views) from pw_post").fetchone(), (9,))


@cases.case
def models_are_made_from_tables() -> None:
    _filled()
    models = reflection.Introspector.from_database(DB).generate_models(
        table_names=["pw_post", "pw_user"]
    )
    post = models["pw_post"]
    same(
        sorted(post._meta.fields),
        ["data", "day", "id", "price", "raw", "tags", "title", "token", "user"],
    )
    same(type(post._meta.fields["user"]).__name__, "ForeignKeyField")
    same(post.select().count(), 3)


if __name__ == "__main__":
    cases.run()
