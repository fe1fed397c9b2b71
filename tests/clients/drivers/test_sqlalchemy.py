"""SQLAlchemy's ORM, as an application uses it: tables made, objects written, changed, looked at."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.dialects.postgresql import JSONB, insert

from tests.clients.drivers.levels import EXPLAIN, STRICT, named_level


class Base(orm.DeclarativeBase):
    pass


class User(Base):
    __tablename__ = "users"

    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sa.String(50), unique=True)
    joined: orm.Mapped[Any] = orm.mapped_column(
        sa.DateTime(timezone=True), server_default=sa.func.now()
    )
    orders: orm.Mapped[list["Order"]] = orm.relationship(
        back_populates="user",
        cascade="all, delete-orphan",
        primaryjoin="User.id == foreign(Order.user_id)",
    )


class Order(Base):
    __tablename__ = "orders"

    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    user_id: orm.Mapped[int]
    total: orm.Mapped[Decimal] = orm.mapped_column(sa.Numeric(10, 2))
    tags: orm.Mapped[Any] = orm.mapped_column(sa.ARRAY(sa.String), nullable=True)
    meta: orm.Mapped[Any] = orm.mapped_column(JSONB, nullable=True)
    user: orm.Mapped[User] = orm.relationship(
        back_populates="orders", primaryjoin="User.id == foreign(Order.user_id)"
    )


@pytest.fixture
def engine(dsn: str) -> Iterator[sa.Engine]:
    made = sa.create_engine(sa.make_url(dsn).set(drivername="postgresql+psycopg"))
    Base.metadata.create_all(made)
    yield made
    Base.metadata.drop_all(made)
    made.dispose()


def test_a_second_create_all_finds_what_is_there(engine: sa.Engine) -> None:
    Base.metadata.create_all(engine)
    assert {"orders", "users"} <= set(sa.inspect(engine).get_table_names())


def test_objects_are_written_changed_and_deleted(engine: sa.Engine) -> None:
    with orm.Session(engine) as session:
        orders = [Order(total=Decimal(10), tags=["a", "b"], meta={"k": [1, 2]}), Order(total=20)]
        session.add_all([User(name="ada", orders=orders), User(name="bob")])
        session.commit()
    with orm.Session(engine) as session:
        ada = session.scalars(sa.select(User).where(User.name == "ada")).one()
        assert [(order.total, order.tags, order.meta) for order in ada.orders] == [
            (Decimal("10.00"), ["a", "b"], {"k": [1, 2]}),
            (Decimal("20.00"), None, None),
        ]
        ada.name, ada.orders[0].total = "ada the first", Decimal("11.50")
        session.delete(ada.orders[1])
        session.commit()
    totals = (
        sa.select(User.name, sa.func.count(Order.id), sa.func.sum(Order.total))
        .join(User.orders, isouter=True)
        .group_by(User.name)
        .order_by(User.name)
    )
    with orm.Session(engine) as session:
        assert session.execute(totals).all() == [
            ("ada the first", 1, Decimal("11.50")),
            ("bob", 0, None),
        ]


def test_a_rollback_takes_everything_back(engine: sa.Engine) -> None:
    with orm.Session(engine) as session:
        session.add(User(name="ada"))
        session.flush()
        with session.begin_nested() as savepoint:
            session.add(User(name="bob"))
            session.flush()
            savepoint.rollback()
        assert session.scalars(sa.select(User.name)).all() == ["ada"]
        session.rollback()
        assert session.scalars(sa.select(User.name)).all() == []


def test_duplicates_are_integrity_errors_and_upserts_are_not(engine: sa.Engine) -> None:
    table = User.__table__
    assert isinstance(table, sa.Table)
    add = insert(table).values(name="ada")
    with engine.begin() as connection:
        connection.execute(add)
        connection.execute(add.on_conflict_do_nothing())
    with pytest.raises(sa.exc.IntegrityError), engine.begin() as connection:
        connection.execute(add)
    with engine.begin() as connection:
        changed = add.on_conflict_do_update(index_elements=["name"], set_={"name": "ada again"})
        connection.execute(changed)
        assert connection.scalars(sa.select(table.c.name)).all() == ["ada again"]


def test_the_inspector_tells_columns_and_constraints(engine: sa.Engine) -> None:
    inspector = sa.inspect(engine)
    columns = [
        (c["name"], c["type"].compile(engine.dialect), c["nullable"])
        for c in inspector.get_columns("orders")
    ]
    assert columns == [
        ("id", "INTEGER", False),
        ("user_id", "INTEGER", False),
        ("total", "NUMERIC(10, 2)", False),
        ("tags", "VARCHAR[]", True),
        ("meta", "JSONB", True),
    ]
    assert inspector.get_pk_constraint("users")["constrained_columns"] == ["id"]
    assert [c["column_names"] for c in inspector.get_unique_constraints("users")] == [["name"]]


def test_tables_may_be_called_like_our_relations(engine: sa.Engine) -> None:
    # The user of the DSN is called like the schema: none of its relations is in anybody's way.
    assert "transactions" not in sa.inspect(engine).get_view_names()
    metadata = sa.MetaData()
    table = sa.Table("transactions", metadata, sa.Column("id", sa.Integer, primary_key=True))
    metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(table.insert().values(id=1))
        assert connection.scalars(sa.select(table.c.id)).all() == [1]
    metadata.drop_all(engine)


def test_the_level_is_read_and_set_back(engine: sa.Engine) -> None:
    def in_force() -> str:
        return named_level(line for (line,) in connection.execute(sa.text(EXPLAIN)))

    with engine.connect() as connection:
        assert connection.default_isolation_level == "SERIALIZABLE"
        shown = connection.get_isolation_level()
        assert shown == "SERIALIZABLE"
        assert in_force() == STRICT
        connection.rollback()
        connection.execution_options(isolation_level="READ UNCOMMITTED")
        assert connection.get_isolation_level() == "READ UNCOMMITTED"
        assert in_force() == "read committed"
        connection.rollback()
        connection.execution_options(isolation_level=shown)
        assert in_force() == STRICT
        connection.rollback()
        connection.execution_options(isolation_level="REPEATABLE READ")
    # Back in the pool, the connection has the engine's level again.
    with engine.connect() as connection:
        assert in_force() == STRICT
