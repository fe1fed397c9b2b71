"""Find stored definitions that no longer bind: missing names, incompatible foreign key columns.

No session exists here. A stored expression that reads a setting therefore finds every setting, with
an empty value.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from sql.binder.bind import bind_with_context
from sql.binder.ddl.foreign_keys import check_foreign_key_types
from sql.binder.ddl.generated import generated_plan
from sql.binder.ddl.indexes import recheck_index
from sql.binder.state import BindContext, Binding
from sql.binder.stored.column_expressions import (
    bind_stored,
    bound_default,
    check_plan,
    parse_stored_expression,
)
from sql.binder.stored.domain_checks import domain_check_plan
from sql.binder.stored.views import view_plan
from sql.catalog.catalog import Catalog, Column, ForeignKey, Table
from sql.catalog.objects import CatalogObject, DomainDefinition, IndexDefinition, ViewDefinition
from sql.errors import SqlError
from sql.functions.postgresql_settings import SessionSettings


def find_broken_definitions(catalog: Catalog) -> Iterator[tuple[Table | CatalogObject, str]]:
    """The definitions that would be refused today, each with the error message.

    The catalog must be consistent (F1 of `coordinator/core/catalog_references.py`).
    """
    context = BindContext(catalog, ("public",), 0, settings=_AnySetting())
    for thing in (*catalog.tables.values(), *catalog.objects.values()):
        for bind in _parts(catalog, thing):
            try:
                bind_with_context(context, bind)
            except SqlError as error:
                yield thing, error.message


def _parts(catalog: Catalog, thing: Table | CatalogObject) -> Iterator[Callable[[Binding], object]]:
    match thing:
        case Table():
            yield from _parts_of_table(thing)
            view = thing.materialized_view
            if view is not None:
                yield partial(view_plan, view=view)
            yield from (partial(_refers, catalog, thing, key) for key in thing.foreign_keys)
        case IndexDefinition():
            table = catalog.by_oid(thing.table)
            assert table is not None, "F1: an index is of a table that is there"
            yield partial(recheck_index, table=table, index=thing)
        case ViewDefinition():
            yield partial(view_plan, view=thing)
        case DomainDefinition():
            value = Column("value", thing.type, domain=thing.domain)
            yield partial(domain_check_plan, table=Table(0, "", "", "", (value,)))
            if thing.default:
                yield partial(_default, value, thing.default)
        case _:
            pass


def _parts_of_table(table: Table) -> Iterator[Callable[[Binding], object]]:
    for column in table.columns:
        if column.expression is not None:
            yield partial(_default, column, column.expression)
    if any(column.generated is not None for column in table.columns):
        yield partial(generated_plan, table=table)
    if table.checks:
        yield partial(check_plan, table=table, checks=table.checks)


def _refers(catalog: Catalog, table: Table, key: ForeignKey, _: Binding) -> None:
    other = catalog.by_oid(key.table)
    assert other is not None, "F1: a foreign key refers to a table that is there"
    check_foreign_key_types(table, other, key.name, key.columns, key.references)


def _default(column: Column, text: str, binding: Binding) -> None:
    bare = replace(column, domain=None)
    bind_stored(binding, partial(bound_default, binding, bare, parse_stored_expression(text)))


class _AnySetting(SessionSettings):
    """Every setting there may be, and none of them known."""

    def __getitem__(self, name: str) -> str:
        return ""

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0
