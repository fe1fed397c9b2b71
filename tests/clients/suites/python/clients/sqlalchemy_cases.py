"""SQLAlchemy: Core, the ORM and reflection, through psycopg, psycopg2, asyncpg and pg8000."""

import asyncio
import datetime
import decimal
import enum
import importlib.util
import uuid
from typing import Any

import sqlalchemy as sa
from cases import Cases, fails, same, url
from sqlalchemy import orm
from sqlalchemy.dialects import postgresql as pg

cases = Cases("sqlalchemy", sa.__version__)
DRIVERS = [name for name in ("psycopg", "psycopg2", "pg8000") if importlib.util.find_spec(name)]


def _engine(driver: str = "psycopg", **options: Any) -> sa.Engine:
    return sa.create_engine(url(f"postgresql+{driver}"), **options)


ENGINE = _engine()


class Colour(enum.Enum):
    """A column's type."""

    RED = "r"
    BLUE = "b"


class Base(orm.DeclarativeBase):
    """Of the ORM's tables."""

    type_annotation_map = {dict[str, Any]: pg.JSONB}  # noqa: RUF012


tagged = sa.Table(
    "sa_tagged",
    Base.metadata,
    sa.Column("post_id", sa.ForeignKey("sa_post.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("tag_id", sa.ForeignKey("sa_tag.id"), primary_key=True),
)


class User(Base):
    """Writes posts."""

    __tablename__ = "sa_user"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sa.String(30), unique=True)
    colour: orm.Mapped[Colour | None]
    facts: orm.Mapped[dict[str, Any] | None]
    version: orm.Mapped[int] = orm.mapped_column()
    joined: orm.Mapped[datetime.datetime] = orm.mapped_column(
        sa.DateTime(timezone=True), server_default=sa.func.now()
    )
    posts: orm.Mapped[list["Post"]] = orm.relationship(
        back_populates="user", cascade="all, delete-orphan", order_by="Post.id"
    )
    __mapper_args__ = {"version_id_col": version}  # noqa: RUF012


class Post(Base):
    """Has tags."""

    __tablename__ = "sa_post"
    id: orm.Mapped[int] = orm.mapped_column(sa.Identity(), primary_key=True)
    user_id: orm.Mapped[int] = orm.mapped_column(sa.ForeignKey("sa_user.id"), index=True)
    title: orm.Mapped[str]
    price: orm.Mapped[decimal.Decimal] = orm.mapped_column(sa.Numeric(10, 2), default=0)
    user: orm.Mapped[User] = orm.relationship(back_populates="posts")
    tags: orm.Mapped[list["Tag"]] = orm.relationship(secondary=tagged)


class Tag(Base):
    """Of posts."""

    __tablename__ = "sa_tag"
    id: orm.Mapped[uuid.UUID] = orm.mapped_column(primary_key=True, default=uuid.uuid4)
    name: orm.Mapped[str]


def _filled() -> orm.Session:
    """New tables with two users, three posts and a tag."""
    Base.metadata.drop_all(ENGINE)
    Base.metadata.create_all(ENGINE)
    session = orm.Session(ENGINE)
    tag = Tag(name="sql")
    ada = User(name="ada", colour=Colour.RED, facts={"langs": ["en", "fr"], "age": 36})
    ada.posts = [Post(title="one", price=decimal.Decimal("1.50"), tags=[tag]), Post(title="two")]
    bob = User(name="bob", posts=[Post(title="three", price=decimal.Decimal(4))])
    session.add_all([ada, bob])
    session.commit()
    return session


def _table(name: str, *columns: sa.schema.SchemaItem) -> sa.Table:
    table = sa.Table(name, sa.MetaData(), *columns)
    table.drop(ENGINE, checkfirst=True)
    table.create(ENGINE)
    return table


@cases.case
def every_driver_connects_and_reads() -> None:
    for driver in DRIVERS:
        engine = _engine(driver)
        with engine.connect() as connection:
            same(connection.scalar(sa.text("select :x || 'y'"), {"x": "x"}), "xy")
            same(connection.dialect.server_version_info[0], 18)  # type: ignore[index]
            same(connection.dialect.default_schema_name, "public")
        engine.dispose()


@cases.case
def core_round_trips_types() -> None:
    kinds: list[tuple[Any, Any]] = [
        (sa.BigInteger, 1 << 40), (sa.SmallInteger, -3), (sa.Float, 1.5), (sa.Boolean, True),
        (sa.Numeric(20, 5), decimal.Decimal("1.50000")), (sa.Unicode(10), "ü"),
        (sa.LargeBinary, b"\0\xff"), (sa.Date, datetime.date(2024, 2, 29)),
        (sa.Time, datetime.time(1, 2, 3)), (sa.Uuid, uuid.UUID(int=3)),
        (sa.DateTime, datetime.datetime(2024, 1, 1, 2, 3, 4, 5)),
        (sa.DateTime(timezone=True), datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)),
        (sa.Interval, datetime.timedelta(days=1, seconds=5)), (sa.JSON, {"a": [1, None]}),
        (pg.JSONB, {"b": 1}), (sa.ARRAY(sa.Integer), [1, 2]), (pg.ARRAY(sa.Text), ["a", None]),
        (sa.Enum(Colour, name="sa_colour_core"), Colour.BLUE), (sa.Double, 2.5),
    ]  # fmt: skip
    columns = [sa.Column(f"c{i}", kind) for i, (kind, _) in enumerate(kinds)]
    table = _table("sa_kinds", *columns)
    row = {f"c{i}": value for i, (_, value) in enumerate(kinds)}
    for driver in DRIVERS:
        with _engine(driver).begin() as connection:
            connection.execute(table.delete())
            connection.execute(table.insert(), row)
            same(dict(connection.execute(table.select()).mappings().one()), row)


@cases.case
def upserts_and_returning() -> None:
    table = _table(
        "sa_up", sa.Column("id", sa.Integer, primary_key=True), sa.Column("n", sa.Integer)
    )
    statement = pg.insert(table).values(id=1, n=5)
    statement = statement.on_conflict_do_update(
        index_elements=["id"], set_={"n": table.c.n + statement.excluded.n}
    ).returning(table.c.n)
    with ENGINE.begin() as connection:
        same([connection.scalar(statement), connection.scalar(statement)], [5, 10])
        nothing = pg.insert(table).values(id=1, n=1).on_conflict_do_nothing()
        same(connection.execute(nothing.returning(table.c.id)).all(), [])
        update = table.update().where(table.c.id == 1).values(n=0).returning(table.c.id, table.c.n)
        same(tuple(connection.execute(update).one()), (1, 0))


@cases.case
def many_rows_come_back_in_order() -> None:
    table = _table(
        "sa_many", sa.Column("id", sa.Integer, primary_key=True), sa.Column("n", sa.Integer)
    )
    for driver in DRIVERS:
        with _engine(driver).begin() as connection:
            insert = table.insert().returning(table.c.n, sort_by_parameter_order=True)
            found = connection.execute(insert, [{"n": i} for i in range(2000)]).scalars().all()
            same(list(found), list(range(2000)))


@cases.case
def queries_of_core() -> None:
    _filled().close()
    user, post = User.__table__, Post.__table__
    with ENGINE.connect() as connection:
        ranked = sa.select(
            user.c.name,
            post.c.title,
            sa.func.rank().over(partition_by=user.c.id, order_by=post.c.price.desc()).label("r"),
        ).join_from(user, post)
        top = ranked.cte("top")
        query = sa.select(top.c.name, top.c.title).where(top.c.r == 1).order_by(top.c.name)
        same([tuple(row) for row in connection.execute(query)], [("ada", "one"), ("bob", "three")])
        counted = (
            sa.select(user.c.name, sa.func.count(post.c.id), sa.func.sum(post.c.price))
            .outerjoin_from(user, post)
            .group_by(user.c.name)
            .having(sa.func.count() > 1)
        )
        same([tuple(r) for r in connection.execute(counted)], [("ada", 2, decimal.Decimal("1.50"))])
        lateral = sa.select(post.c.title).where(post.c.user_id == user.c.id).limit(1).lateral()
        same(len(connection.execute(sa.select(user.c.name, lateral.c.title)).all()), 2)
        numbers = sa.func.generate_series(1, 4).table_valued("n").render_derived()
        same(connection.scalar(sa.select(sa.func.sum(numbers.c.n))), 10)
        both = sa.union_all(sa.select(user.c.name), sa.select(post.c.title)).order_by("name")
        same(len(connection.execute(both).all()), 5)
        agg = sa.select(sa.func.array_agg(pg.aggregate_order_by(post.c.title, post.c.id.desc())))
        same(connection.scalar(agg), ["three", "two", "one"])


@cases.case
def recursive_queries() -> None:
    start = sa.select(sa.literal(1).label("n")).cte("counting", recursive=True)
    whole = start.union_all(sa.select(start.c.n + 1).where(start.c.n < 10))
    with ENGINE.connect() as connection:
        same(connection.scalar(sa.select(sa.func.sum(whole.c.n))), 55)


@cases.case
def json_is_searched() -> None:
    session = _filled()
    user = User.__table__
    facts = user.c.facts
    for condition in (
        facts["age"].as_integer() > 30,
        facts["langs"].contains(["fr"]),
        facts.has_key("age"),
        facts[("langs", "0")].as_string() == "en",
        facts.contains({"age": 36}),
    ):
        same(session.scalars(sa.select(user.c.name).where(condition)).all(), ["ada"])
    session.close()


@cases.case
def orm_creates_reads_updates_deletes() -> None:
    session = _filled()
    ada = session.scalars(sa.select(User).filter_by(name="ada")).one()
    same((ada.colour, [post.title for post in ada.posts]), (Colour.RED, ["one", "two"]))
    ada.posts[0].price += 1
    ada.posts.pop()
    ada.posts.append(Post(title="new"))
    session.commit()
    same([(p.title, p.price) for p in ada.posts], [("one", decimal.Decimal("2.50")), ("new", 0)])
    session.delete(ada)
    session.commit()
    same(session.scalar(sa.select(sa.func.count()).select_from(Post)), 1)
    session.close()


@cases.case
def orm_loads_relations_eagerly() -> None:
    session = _filled()
    for option in (orm.selectinload, orm.joinedload, orm.subqueryload):
        query = sa.select(User).options(option(User.posts)).order_by(User.name)
        users = session.scalars(query).unique().all()
        same([[p.title for p in u.posts] for u in users], [["one", "two"], ["three"]])
        session.expire_all()
    found = session.scalars(sa.select(Post).join(Post.tags).where(Tag.name == "sql")).all()
    same([post.title for post in found], ["one"])
    query = sa.select(User).where(User.posts.any(Post.price > 3))
    same([user.name for user in session.scalars(query)], ["bob"])
    session.close()


@cases.case
def orm_locks_optimistically() -> None:
    _lock_optimistically(_filled())


@cases.case
def orm_locks_optimistically_at_read_committed() -> None:
    _filled().close()
    _lock_optimistically(orm.Session(_engine(isolation_level="READ COMMITTED")))


def _lock_optimistically(session: orm.Session) -> None:
    bob = session.scalars(sa.select(User).filter_by(name="bob")).one()
    with ENGINE.begin() as connection:
        connection.execute(sa.text("update sa_user set version = version + 1 where name = 'bob'"))
    bob.name = "robert"
    try:
        session.commit()
        raise AssertionError("the row had changed")
    except orm.exc.StaleDataError:
        session.rollback()
    session.close()


@cases.case
def orm_locks_rows() -> None:
    session = _filled()
    session.scalars(sa.select(User).filter_by(name="ada").with_for_update()).one()
    with orm.Session(ENGINE) as other:
        free = sa.select(User.name).with_for_update(skip_locked=True)
        same(other.scalars(free).all(), ["bob"])
        other.rollback()
        with fails("55P03", sa.exc.OperationalError):
            other.scalars(sa.select(User).filter_by(name="ada").with_for_update(nowait=True)).one()
    session.close()


@cases.case
def orm_writes_in_bulk() -> None:
    session = _filled()
    session.execute(sa.insert(Tag), [{"name": f"t{i}"} for i in range(300)])
    session.execute(sa.update(Tag).where(Tag.name.like("t1%")).values(name="same"))
    result = session.execute(sa.delete(Tag).where(Tag.name == "same"))
    same(result.rowcount, 111)  # type: ignore[attr-defined]
    ids = session.scalars(sa.select(Post.id).order_by(Post.id)).all()
    session.execute(sa.update(Post), [{"id": key, "title": f"p{key}"} for key in ids])
    session.commit()
    same(session.scalars(sa.select(Post.title).order_by(Post.id)).all(), [f"p{key}" for key in ids])
    session.close()


@cases.case
def savepoints_and_errors() -> None:
    session = _filled()
    with fails("23505", sa.exc.IntegrityError), session.begin_nested():
        session.add(User(name="ada"))
        session.flush()
    session.add(User(name="eve"))
    session.commit()
    same(session.scalar(sa.select(sa.func.count()).select_from(User)), 3)
    with fails("23503", sa.exc.IntegrityError):
        session.execute(sa.delete(User))
    session.close()


@cases.case
def levels_of_isolation() -> None:
    for driver in DRIVERS:
        for level in ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE", "AUTOCOMMIT"):
            engine = _engine(driver, isolation_level=level)
            with engine.connect() as connection:
                same(connection.scalar(sa.text("select 1")), 1)
                if level != "AUTOCOMMIT":
                    same(connection.get_isolation_level(), level)
            engine.dispose()


@cases.case
def server_side_cursors() -> None:
    with ENGINE.connect().execution_options(yield_per=100) as connection:
        rows = connection.execute(sa.text("select generate_series(1, 1000)"))
        same(sum(len(part) for part in rows.partitions()), 1000)


REFLECTED = sa.MetaData()
sa.Table(
    "sa_r_parent",
    REFLECTED,
    sa.Column("a", sa.Integer, primary_key=True),
    sa.Column("b", sa.String(20), primary_key=True),
    sa.Column("c", sa.Numeric(8, 3), server_default="1.5", nullable=False),
    sa.Column("d", sa.DateTime(timezone=True), server_default=sa.func.now(), comment="when"),
    sa.Column("e", sa.Enum("x", "y", name="sa_r_enum"), server_default="x"),
    sa.Column("f", pg.ARRAY(sa.Text)),
    sa.Column("g", sa.Integer, sa.Computed("a * 2", persisted=True)),
    sa.Column("h", sa.BigInteger, sa.Identity(always=True, start=10)),
    sa.UniqueConstraint("c", "d", name="sa_r_unique"),
    sa.CheckConstraint("a > 0", name="sa_r_check"),
    sa.Index("sa_r_index", "c", sa.text("d DESC")),
    sa.Index("sa_r_partial", "c", unique=True, postgresql_where=sa.text("a > 5")),
    sa.Index("sa_r_lower", sa.text("lower(b)")),
    comment="a parent",
)
sa.Table(
    "sa_r_child",
    REFLECTED,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("x", sa.Integer),
    sa.Column("y", sa.String(20)),
    sa.ForeignKeyConstraint(
        ["x", "y"], ["sa_r_parent.a", "sa_r_parent.b"], name="sa_r_fk", ondelete="CASCADE"
    ),
)


def _reflected() -> sa.Inspector:
    REFLECTED.drop_all(ENGINE)
    REFLECTED.create_all(ENGINE)
    return sa.inspect(ENGINE)


@cases.case
def reflection_of_columns() -> None:
    columns = {column["name"]: column for column in _reflected().get_columns("sa_r_parent")}
    shown = {name: str(column["type"]) for name, column in columns.items()}
    same(shown, {"a": "INTEGER", "b": "VARCHAR(20)", "c": "NUMERIC(8, 3)", "d": "TIMESTAMP",
                 "e": "VARCHAR(1)", "f": "ARRAY", "g": "INTEGER", "h": "BIGINT"})  # fmt: skip
    same(columns["c"]["default"], "1.5")
    same(columns["d"]["default"], "now()")
    same(columns["e"]["default"], "'x'::sa_r_enum")
    same(columns["d"]["comment"], "when")
    same(columns["g"]["computed"], {"sqltext": "(a * 2)", "persisted": True})
    same((columns["h"]["identity"]["always"], columns["h"]["identity"]["start"]), (True, 10))
    same((columns["c"]["nullable"], columns["f"]["nullable"]), (False, True))


@cases.case
def reflection_of_constraints() -> None:
    look = _reflected()
    same(look.get_pk_constraint("sa_r_parent")["constrained_columns"], ["a", "b"])
    (foreign,) = look.get_foreign_keys("sa_r_child")
    same((foreign["name"], foreign["referred_columns"]), ("sa_r_fk", ["a", "b"]))
    same(foreign["options"], {"ondelete": "CASCADE"})
    same([u["column_names"] for u in look.get_unique_constraints("sa_r_parent")], [["c", "d"]])
    same([c["sqltext"] for c in look.get_check_constraints("sa_r_parent")], ["a > 0"])
    same(look.get_table_comment("sa_r_parent"), {"text": "a parent"})


@cases.case
def reflection_of_indexes() -> None:
    indexes = {index["name"]: index for index in _reflected().get_indexes("sa_r_parent")}
    same(sorted(indexes), ["sa_r_index", "sa_r_lower", "sa_r_partial", "sa_r_unique"])
    same(indexes["sa_r_index"]["column_sorting"], {"d": ("desc",)})
    same(indexes["sa_r_partial"]["dialect_options"]["postgresql_where"], "(a > 5)")
    same(indexes["sa_r_lower"]["expressions"], ["lower(b::text)"])
    same(indexes["sa_r_unique"]["duplicates_constraint"], "sa_r_unique")


@cases.case
def reflection_of_whole_schemas() -> None:
    with ENGINE.begin() as connection:
        connection.execute(sa.text("drop schema if exists sa_other cascade"))
        connection.execute(sa.text("create schema sa_other"))
        connection.execute(sa.text("create table sa_other.t (id serial primary key)"))
        connection.execute(sa.text("create view sa_other.v as select id from sa_other.t"))
        connection.execute(sa.text("create sequence sa_other.s"))
    _reflected()
    look = sa.inspect(ENGINE)
    assert "sa_other" in look.get_schema_names()
    same(look.get_table_names(schema="sa_other"), ["t"])
    same(look.get_view_names(schema="sa_other"), ["v"])
    same(sorted(look.get_sequence_names(schema="sa_other")), ["s", "t_id_seq"])
    same(look.get_columns("v", schema="sa_other")[0]["name"], "id")
    same([e["labels"] for e in look.get_enums() if e["name"] == "sa_r_enum"], [["x", "y"]])
    found = sa.MetaData()
    found.reflect(ENGINE, only=["sa_r_child"])
    same(sorted(found.tables), ["sa_r_child", "sa_r_parent"])
    same(look.has_table("sa_nothing"), False)


@cases.case
def a_reflected_schema_can_be_made_again() -> None:
    _reflected()
    found = sa.MetaData()
    found.reflect(ENGINE, only=["sa_r_parent", "sa_r_child"])
    found.drop_all(ENGINE)
    found.create_all(ENGINE)
    same(sorted(i["name"] or "" for i in sa.inspect(ENGINE).get_indexes("sa_r_parent")),
         ["sa_r_index", "sa_r_lower", "sa_r_partial", "sa_r_unique"])  # fmt: skip


@cases.case
async def the_asynchronous_orm() -> None:
    from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

    for driver in ("asyncpg", "psycopg"):
        await asyncio.to_thread(lambda: _filled().close())
        engine = create_async_engine(url(f"postgresql+{driver}"))
        async with AsyncSession(engine, expire_on_commit=False) as session:
            query = sa.select(User).options(orm.selectinload(User.posts)).order_by(User.name)
            users = (await session.scalars(query)).all()
            same([len(user.posts) for user in users], [2, 1])
            users[0].facts = {"new": True}
            session.add(User(name="eve", posts=[Post(title="x")]))
            await session.commit()
        async with engine.connect() as connection:
            names = await connection.run_sync(lambda c: sa.inspect(c).get_table_names())
            assert {"sa_user", "sa_post"} <= set(names)
            same(await connection.scalar(sa.text("select count(*) from sa_user")), 3)
        await engine.dispose()


if __name__ == "__main__":
    cases.run()
