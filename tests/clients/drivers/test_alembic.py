"""Alembic: revisions up and down, and a comparison that finds no difference after them.

    models ──autogenerate──▶ operations ──▶ tables ──reflection──▶ no difference

Then what dbt does when it builds a table anew: rename swaps in one transaction.
"""

from collections.abc import Iterator
from typing import Any

import alembic.autogenerate
import psycopg
import pytest
import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, UUID

from tests.support.stack import serving


def _models() -> sa.MetaData:
    """Tables with what models have: kinds of columns, keys, indexes, checks."""
    metadata = sa.MetaData()
    sa.Table(
        "customer",
        metadata,
        sa.Column("id", sa.BigInteger, primary_key=True),
        sa.Column("name", sa.String(80), nullable=False, index=True),
        sa.Column("email", sa.Text, unique=True),
        sa.Column("joined", sa.DateTime(timezone=True), server_default=sa.func.now()),
        sa.Column("kind", sa.String(10), server_default="plain", nullable=False),
        sa.Column("score", sa.Numeric(10, 2), server_default=sa.text("0")),
        sa.Column("tags", ARRAY(sa.Text)),
        sa.Column("facts", JSONB),
        sa.Column("token", UUID),
        comment="who buys",
    )
    sa.Table(
        "purchase",
        metadata,
        sa.Column("id", sa.Integer, sa.Identity(always=True), primary_key=True),
        sa.Column(
            "customer_id",
            sa.ForeignKey("customer.id", ondelete="CASCADE", deferrable=True, initially="DEFERRED"),
            nullable=False,
        ),
        sa.Column("line", sa.SmallInteger, nullable=False),
        sa.Column("amount", sa.Float, comment="in euros"),
        sa.Column("took", sa.Interval),
        sa.Column("receipt", sa.LargeBinary),
        sa.Column("total", sa.Integer, sa.Computed("line * 2", persisted=True)),
        sa.Column("day", sa.Date),
        sa.Column("at", sa.Time),
        sa.UniqueConstraint("customer_id", "line", name="purchase_line_key"),
        sa.CheckConstraint("amount >= 0", name="purchase_amount_check"),
        sa.Index("purchase_day_idx", "day", sa.text("amount DESC")),
        sa.Index("purchase_lower_idx", sa.text("abs(line)")),
    )
    return metadata


@pytest.fixture
def engine() -> Iterator[sa.Engine]:
    """A server of its own: what is compared is the whole schema."""
    with serving() as dsn:
        made = sa.create_engine(sa.make_url(dsn).set(drivername="postgresql+psycopg"))
        yield made
        made.dispose()


def _differences(connection: sa.Connection, metadata: sa.MetaData) -> list[Any]:
    context = MigrationContext.configure(
        connection, opts={"compare_type": True, "compare_server_default": True}
    )
    return list(alembic.autogenerate.compare_metadata(context, metadata))


def _migrate(connection: sa.Connection, metadata: sa.MetaData) -> None:
    """Do what autogenerate proposes."""
    options = {"compare_type": True, "compare_server_default": True}
    context = MigrationContext.configure(connection, opts=options)
    script = alembic.autogenerate.produce_migrations(context, metadata)
    assert script.upgrade_ops is not None
    operations = Operations(context)
    for op in script.upgrade_ops.ops:
        for one in getattr(op, "ops", [op]):
            operations.invoke(one)


def test_after_an_upgrade_there_is_no_difference(engine: sa.Engine) -> None:
    metadata = _models()
    with engine.begin() as connection:
        assert _differences(connection, metadata) != []
        _migrate(connection, metadata)
    with engine.begin() as connection:
        assert _differences(connection, metadata) == []


def test_what_changes_is_found_and_done(engine: sa.Engine) -> None:
    first, second = _models(), _models()
    with engine.begin() as connection:
        _migrate(connection, first)
        customer = first.tables["customer"]
        connection.execute(customer.insert().values(id=1, name="ada"))
    customer, purchase = second.tables["customer"], second.tables["purchase"]
    customer.append_column(sa.Column("city", sa.String(20), server_default="here", nullable=False))
    customer.c.score.server_default = None
    customer.c.kind.type = sa.String(30)
    customer.c.email.nullable = False
    purchase.indexes.remove(next(i for i in purchase.indexes if i.name == "purchase_day_idx"))
    purchase.append_constraint(sa.UniqueConstraint("day", "at", name="purchase_once"))
    sa.Table("extra", second, sa.Column("id", sa.Integer, primary_key=True))
    with engine.begin() as connection:
        connection.execute(sa.text("update customer set email = name"))
        _migrate(connection, second)
    with engine.begin() as connection:
        assert _differences(connection, second) == []
        row = connection.execute(sa.text("select name, city, email from customer")).one()
        assert tuple(row) == ("ada", "here", "ada")
        _migrate(connection, first)
    with engine.begin() as connection:
        assert _differences(connection, first) == []


def test_reflection_tells_what_was_made(engine: sa.Engine) -> None:
    metadata = _models()
    with engine.begin() as connection:
        metadata.create_all(connection)
    look = sa.inspect(engine)
    (foreign,) = look.get_foreign_keys("purchase")
    assert foreign["referred_table"] == "customer"
    assert foreign["options"] == {
        "ondelete": "CASCADE",
        "deferrable": True,
        "initially": "DEFERRED",
    }
    assert [u["name"] for u in look.get_unique_constraints("purchase")] == ["purchase_line_key"]
    assert [c["name"] for c in look.get_check_constraints("purchase")] == ["purchase_amount_check"]
    assert look.get_pk_constraint("purchase")["constrained_columns"] == ["id"]
    assert look.get_table_comment("customer") == {"text": "who buys"}
    assert look.get_sequence_names() == ["customer_id_seq", "purchase_id_seq"]
    found = sa.MetaData()
    found.reflect(engine)
    assert sorted(found.tables) == ["customer", "purchase"]
    kinds = {c.name: str(c.type) for c in found.tables["purchase"].columns}
    assert (kinds["took"], kinds["amount"]) == ("INTERVAL", "DOUBLE PRECISION")


_SWAP = (
    "create table {tmp} as select id, n * {factor} as n from source",
    "alter table model rename to model__dbt_backup",
    "alter table {tmp} rename to model",
    "drop table if exists model__dbt_backup cascade",
)


def test_tables_are_swapped_as_dbt_does(engine: sa.Engine) -> None:
    dsn = engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(dsn, autocommit=True) as one, psycopg.connect(dsn) as reader:
        one.execute("create table source (id int primary key, n int)")
        one.execute("insert into source values (1, 10), (2, 20)")
        one.execute("create table model as select id, n from source")
        one.execute("create view shown as select sum(n) as total from model")
        for factor in (2, 3):
            with one.transaction():
                for statement in _SWAP:
                    filled = statement.format(tmp="model__dbt_tmp", factor=factor)
                    one.execute(filled.encode())
                one.execute("create view shown as select sum(n) as total from model")
            # Others see all of it or nothing.
            rows = reader.execute("select sum(n) from model").fetchall()
            assert rows == [(30 * factor,)]
            assert reader.execute("select total from shown").fetchall() == rows
            reader.rollback()
        names = one.execute("select tablename from pg_tables where schemaname = 'public'")
        assert sorted(names.fetchall()) == [("model",), ("source",)]
