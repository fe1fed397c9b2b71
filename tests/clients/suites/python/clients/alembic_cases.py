"""Alembic: an environment with scripts, revisions up and down, and autogenerate."""

import contextlib
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import alembic
import alembic.autogenerate
import alembic.command
import alembic.config
import alembic.util
import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.operations import Operations
from cases import Cases, fails, folder, same, url
from sqlalchemy.dialects import postgresql as pg

cases = Cases("alembic", alembic.__version__, seconds_max=120)
ENGINE = sa.create_engine(url("postgresql+psycopg"))

MODELS = """
    import sqlalchemy as sa
    from sqlalchemy.dialects import postgresql as pg
    metadata = sa.MetaData(schema="al_schema", naming_convention={"pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s", "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_name)s", "ck": "ck_%(table_name)s_%(constraint_name)s"})
    sa.Table("person", metadata, sa.Column("id", sa.BigInteger, primary_key=True),
        sa.Column("name", sa.String(80), nullable=False, index=True),
        sa.Column("email", sa.Text, unique=True),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.func.now()),
        sa.Column("kind", sa.String(10), server_default="plain"),
        sa.Column("score", sa.Numeric(10, 2), server_default=sa.text("0")),
        sa.Column("mood", sa.Enum("sad", "glad", name="moods", schema="al_schema")),
        sa.Column("tags", pg.ARRAY(sa.Text)), sa.Column("facts", pg.JSONB),
        sa.CheckConstraint("score >= 0", name="score"), comment="people")
    sa.Table("pet", metadata, sa.Column("id", sa.Integer, sa.Identity(), primary_key=True),
        sa.Column("owner_id", sa.ForeignKey("al_schema.person.id", ondelete="CASCADE")),
        sa.Column("twice", sa.Integer, sa.Computed("id * 2", persisted=True)),
        sa.Column("born", sa.Date, comment="a day"),
        sa.Index("ix_pet_partial", "born", unique=True, postgresql_where=sa.text("id > 5")),
        sa.Index("ix_pet_expression", sa.text("(id + 1)")))
"""
ENV = """
    from alembic import context
    import sqlalchemy as sa
    from al_models import metadata
    engine = sa.create_engine(context.config.get_main_option("sqlalchemy.url"))
    options = dict(target_metadata=metadata, include_schemas=True, compare_server_default=True,
        version_table_schema="al_schema", include_name=lambda name, kind, parents:
            kind != "schema" or name == "al_schema")
    if context.is_offline_mode():
        context.configure(url=context.config.get_main_option("sqlalchemy.url"),
            literal_binds=True, **options)
        with context.begin_transaction():
            context.run_migrations()
    else:
        with engine.connect() as connection:
            context.configure(connection=connection, **options)
            with context.begin_transaction():
                context.run_migrations()
"""


@contextlib.contextmanager
def _project() -> Iterator[tuple[alembic.config.Config, Path]]:
    """A project whose schema is empty."""
    import sys

    with ENGINE.begin() as connection:
        connection.execute(sa.text("drop schema if exists al_schema cascade"))
        connection.execute(sa.text("create schema al_schema"))
    with folder() as place:
        config = alembic.config.Config()
        config.config_file_name = str(place / "alembic.ini")
        config.set_main_option("script_location", str(place / "scripts"))
        config.set_main_option("sqlalchemy.url", url("postgresql+psycopg"))
        alembic.command.init(config, str(place / "scripts"))
        (place / "scripts" / "env.py").write_text(textwrap.dedent(ENV))
        (place / "al_models.py").write_text(textwrap.dedent(MODELS))
        sys.path.insert(0, str(place))
        sys.modules.pop("al_models", None)
        try:
            yield config, place
        finally:
            sys.path.remove(str(place))


def _tables() -> list[str]:
    return sorted(sa.inspect(ENGINE).get_table_names(schema="al_schema"))


@cases.case
def autogenerate_upgrade_and_no_difference() -> None:
    with _project() as (config, _):
        alembic.command.revision(config, "first", autogenerate=True)
        alembic.command.upgrade(config, "head")
        same(_tables(), ["alembic_version", "person", "pet"])
        alembic.command.check(config)
        alembic.command.upgrade(config, "head")


@cases.case
def downgrade_to_the_base_and_up_again() -> None:
    with _project() as (config, _):
        alembic.command.revision(config, "first", autogenerate=True)
        alembic.command.upgrade(config, "head")
        alembic.command.downgrade(config, "base")
        same(_tables(), ["alembic_version"])
        with ENGINE.begin() as connection:
            connection.execute(sa.text("drop type if exists al_schema.moods"))
        alembic.command.upgrade(config, "head")
        alembic.command.check(config)


@cases.case
def a_changed_model_is_found_and_done() -> None:
    with _project() as (config, place):
        alembic.command.revision(config, "first", autogenerate=True)
        alembic.command.upgrade(config, "head")
        import sys

        changed = MODELS.replace("sa.String(80), nullable=False, index=True", "sa.String(120)")
        changed = changed.replace('server_default="plain"', 'server_default="other"')
        born = 'sa.Column("born", sa.DateTime), sa.Column("more", sa.Float)'
        changed = changed.replace('sa.Column("born", sa.Date, comment="a day")', born)
        (place / "al_models.py").write_text(textwrap.dedent(changed))
        sys.modules.pop("al_models", None)
        try:
            alembic.command.check(config)
            raise AssertionError("the models differ")
        except alembic.util.AutogenerateDiffsDetected:
            pass
        alembic.command.revision(config, "second", autogenerate=True)
        alembic.command.upgrade(config, "head")
        alembic.command.check(config)
        alembic.command.downgrade(config, "-1")
        kinds = {c["name"]: str(c["type"]) for c in
                 sa.inspect(ENGINE).get_columns("person", schema="al_schema")}  # fmt: skip
        same(kinds["name"], "VARCHAR(80)")


@cases.case
def a_branch_is_merged() -> None:
    with _project() as (config, _):
        root: Any = alembic.command.revision(config, "root")
        one: Any = alembic.command.revision(config, "one", head=root.revision)
        other: Any = alembic.command.revision(config, "other", head=root.revision, splice=True)
        alembic.command.upgrade(config, "heads")
        alembic.command.merge(config, [one.revision, other.revision], "both")
        alembic.command.upgrade(config, "head")
        with ENGINE.connect() as connection:
            same(connection.scalar(sa.text("select count(*) from al_schema.alembic_version")), 1)
        alembic.command.downgrade(config, root.revision)
        alembic.command.stamp(config, "base")


@cases.case
def the_script_of_an_upgrade_runs() -> None:
    import io

    with _project() as (config, _):
        alembic.command.revision(config, "first", autogenerate=True)
        config.output_buffer = io.StringIO()
        alembic.command.upgrade(config, "head", sql=True)
        import psycopg

        with psycopg.connect(url(), autocommit=True) as connection:
            connection.execute("drop table if exists al_schema.alembic_version")
            connection.execute(config.output_buffer.getvalue().encode())
        same(_tables(), ["alembic_version", "person", "pet"])
        config.output_buffer = io.StringIO()
        alembic.command.check(config)


@contextlib.contextmanager
def _operations(table: str) -> Iterator[tuple[Operations, sa.Connection]]:
    with ENGINE.begin() as connection:
        connection.execute(sa.text(f"drop table if exists {table} cascade"))
    with ENGINE.connect() as connection:
        operations = Operations(MigrationContext.configure(connection))
        operations.create_table(
            table, sa.Column("id", sa.Integer, primary_key=True), sa.Column("v", sa.String(10))
        )
        connection.execute(sa.text(f"insert into {table} values (1, '17'), (2, '18')"))
        yield operations, connection


@cases.case
def columns_change() -> None:
    with _operations("al_columns") as (op, connection):
        op.add_column("al_columns", sa.Column("n", sa.Integer, server_default="3", nullable=False))
        op.alter_column("al_columns", "v", new_column_name="w", type_=sa.Text())
        op.alter_column("al_columns", "w", type_=sa.Integer(), postgresql_using="w::integer")
        op.alter_column("al_columns", "n", server_default=None, nullable=True, comment="a number")
        rows = connection.execute(sa.text("select id, w, n from al_columns order by id")).all()
        same([tuple(row) for row in rows], [(1, 17, 3), (2, 18, 3)])
        op.drop_column("al_columns", "n")
        same([c["name"] for c in sa.inspect(connection).get_columns("al_columns")], ["id", "w"])


@cases.case
def constraints_come_and_go() -> None:
    with _operations("al_constraints") as (op, connection):
        op.create_unique_constraint("al_u", "al_constraints", ["v"])
        op.create_check_constraint("al_c", "al_constraints", "id > 0")
        op.create_foreign_key("al_f", "al_constraints", "al_constraints", ["id"], ["id"])
        op.create_index("al_i", "al_constraints", [sa.text("lower(v)")], if_not_exists=True)
        look = sa.inspect(connection)
        same([u["name"] for u in look.get_unique_constraints("al_constraints")], ["al_u"])
        same([c["name"] for c in look.get_check_constraints("al_constraints")], ["al_c"])
        for name, kind in (("al_u", "unique"), ("al_c", "check"), ("al_f", "foreignkey")):
            op.drop_constraint(name, "al_constraints", type_=kind)
        op.drop_index("al_i", "al_constraints")
        look = sa.inspect(connection)
        same(
            (look.get_indexes("al_constraints"), look.get_foreign_keys("al_constraints")), ([], [])
        )


@cases.case
def a_table_is_renamed_and_filled() -> None:
    with _operations("al_before") as (op, connection):
        connection.execute(sa.text("drop table if exists al_after"))
        op.rename_table("al_before", "al_after")
        table = sa.table("al_after", sa.column("id", sa.Integer), sa.column("v", sa.String))
        op.bulk_insert(table, [{"id": 3, "v": "x"}, {"id": 4, "v": "y"}])
        op.execute(table.update().where(table.c.id == 3).values(v="z"))
        same(connection.scalar(sa.text("select string_agg(v, '' order by id) from al_after")),
             "1718zy")  # fmt: skip


@cases.case
def an_enum_gets_a_value() -> None:
    with _operations("al_enum") as (op, connection):
        connection.execute(sa.text("drop type if exists al_states"))
        kind = pg.ENUM("new", "done", name="al_states")
        kind.create(connection)
        op.add_column("al_enum", sa.Column("s", kind, server_default="new"))
        connection.commit()
        op.execute("alter type al_states add value if not exists 'open' before 'done'")
        connection.commit()
        op.execute("update al_enum set s = 'open' where id = 1")
        same(connection.scalar(sa.text("select max(s::text) from al_enum")), "open")


@cases.case
def an_index_is_made_concurrently() -> None:
    with _operations("al_concurrent") as (op, connection):
        connection.commit()
        connection.execution_options(isolation_level="AUTOCOMMIT")
        op.create_index("al_ci", "al_concurrent", ["v"], postgresql_concurrently=True)
        op.drop_index("al_ci", "al_concurrent", postgresql_concurrently=True)
        same(sa.inspect(connection).get_indexes("al_concurrent"), [])


@cases.case
def a_failed_migration_leaves_nothing() -> None:
    with _project() as (config, _):
        script: Any = alembic.command.revision(config, "broken")
        body = Path(script.path).read_text().replace(
            "    pass", "    op.execute('create table al_schema.half (id int)')\n"
            "    op.execute('select 1/0')", 1)  # fmt: skip
        Path(script.path).write_text(body)
        with fails("22012"):
            alembic.command.upgrade(config, "head")
        assert "half" not in _tables()


if __name__ == "__main__":
    cases.run()
