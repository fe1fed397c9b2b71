"""Rows of system catalogs are computed once, and again when what they were made of has changed."""

from unittest.mock import patch

import psycopg

from coordinator.pgcatalog import syscache
from coordinator.pgcatalog.relations import catalog_view
from coordinator.pgcatalog.syscache import SystemCache
from coordinator.variables.variables import Variables
from sql.binder.state import BindContext
from sql.catalog.catalog import Catalog, Column, Table
from sql.catalog.system_catalogs import system_catalog
from sql.types.sql_type import INT4, TEXT
from storage.batch import ShardView
from storage.known_rows import Points
from tests.support.stack import serving


def a_table(oid: int, name: str) -> Table:
    columns = (Column("id", INT4), Column("what", TEXT))
    return Table(oid, "public", name, f"s{oid}", columns)


def catalog_of(*tables: Table) -> Catalog:
    return Catalog(1, tables={(table.schema, table.name): table for table in tables})


def context_of(catalog: Catalog, *path: str, now: int = 0, user: str = "meridian") -> BindContext:
    return BindContext(catalog, path or ("public",), now, user=user)


def look(
    cache: SystemCache, name: str, context: BindContext, points: Points | None = None
) -> ShardView:
    relation = system_catalog("pg_catalog", name)
    assert relation is not None
    return catalog_view(relation, context, cache, points)


def test_rows_are_kept_until_a_field_that_they_are_made_of_changes() -> None:
    cache, catalog = SystemCache(), catalog_of(a_table(20_000, "a"))
    classes = look(cache, "pg_class", context_of(catalog))
    assert look(cache, "pg_class", context_of(catalog, user="x")) is not classes
    again = look(cache, "pg_attribute", context_of(catalog))
    assert look(cache, "pg_attribute", context_of(catalog, now=5)) is again
    # Visibility depends on the path, and on the catalog itself, not on an equal one.
    visible = look(cache, "meridian_visible", context_of(catalog))
    assert look(cache, "meridian_visible", context_of(catalog, "other")) is not visible
    assert look(cache, "meridian_visible", context_of(catalog)) is visible
    equal = catalog_of(a_table(20_000, "a"))
    assert look(cache, "meridian_visible", context_of(equal)) is not visible


def test_settings_change_in_place_and_are_not_kept() -> None:
    cache, variables = SystemCache(), Variables(user="meridian", defaults={})
    context = BindContext(Catalog(), ("public",), 0, settings=variables.shown)
    first = look(cache, "pg_settings", context).inline[0].rows
    variables.set("search_path", "other", local=False)
    second = look(cache, "pg_settings", context).inline[0].rows
    assert first.column("setting").to_pylist() != second.column("setting").to_pylist()


def test_points_give_the_rows_with_these_values() -> None:
    cache = SystemCache()
    context = context_of(catalog_of(a_table(20_001, "b"), a_table(20_000, "a")))
    relation = system_catalog("pg_catalog", "pg_attribute")
    assert relation is not None
    numbers = {column.name: place for place, column in enumerate(relation.columns)}
    key = (numbers["attrelid"], numbers["attnum"])
    one = look(cache, "pg_attribute", context, Points(key, frozenset({(20_000, 2)}), True))
    assert one.inline[0].rows.column(numbers["attname"]).to_pylist() == ["what"]
    both = Points((numbers["attrelid"],), frozenset({(20_001,), (20_000,), (7,)}), True)
    found = look(cache, "pg_attribute", context, both).inline[0].rows
    assert found.column(numbers["attrelid"]).to_pylist() == [20_000, 20_000, 20_001, 20_001]


def test_each_session_and_transaction_sees_its_own_catalog() -> None:
    names = "select relname from pg_class where relname like 'seen%'"
    visible = "select pg_table_is_visible('public.seen'::regclass)"
    columns = "select attname from pg_attribute where attrelid = to_regclass('seen') and attnum > 0"
    with serving() as dsn, psycopg.connect(dsn) as one, psycopg.connect(dsn) as other:
        one.execute("create table seen (b int, a int)")
        assert one.execute(names).fetchall() == [("seen",)]
        assert other.execute(names).fetchall() == []
        one.commit()
        other.rollback()
        assert other.execute(names).fetchall() == [("seen",)]
        other.execute("create temp table seen (c int)")
        assert other.execute(visible).fetchone() == (False,)
        assert one.execute(visible).fetchone() == (True,)
        assert other.execute(columns).fetchall() == [("c",)]
        assert one.execute(columns).fetchall() == [("b",), ("a",)]
        one.execute("alter table seen rename a to d")
        assert one.execute(columns).fetchall() == [("b",), ("d",)]
        one.execute("rollback")
        assert one.execute(columns).fetchall() == [("b",), ("a",)]


def test_a_view_over_a_view_does_not_keep_rows_from_being_kept() -> None:
    """Found by a hostile user: settings were asked for, and each look took 60 ms."""
    asked = "select attname from pg_attribute where attrelid = 't'::regclass and attnum > 0"
    with serving() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create table t (a int); create view v as select a from t")
        connection.execute("create view w as select * from v")
        connection.execute(asked)
        with patch.object(syscache, "rows_as_view", side_effect=AssertionError("made again")):
            assert connection.execute(asked).fetchall() == [("a",)]
