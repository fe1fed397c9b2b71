"""Rows of pg_depend: which catalog object depends on which, and how a drop treats it.

Not here: objects that PostgreSQL has and Meridian does not (triggers, toast tables).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from coordinator.pgcatalog.definition_texts import DefinitionTexts
from coordinator.pgcatalog.definitions import (
    check_numbers,
    column_number,
    constraints_of,
    index_numbers,
    referenced_key,
)
from coordinator.pgcatalog.named_row import NamedRow
from coordinator.pgcatalog.syscache import with_catalog
from sql.binder.bind import bind_with_context
from sql.binder.state import BindContext
from sql.binder.stored.column_expressions import parse_stored_expression, referenced_column_names
from sql.binder.stored.stored_names import named_relations
from sql.binder.stored.views import view_can_be_bound
from sql.catalog.catalog import Table
from sql.catalog.constraint_names import not_null_name
from sql.catalog.extension_relations import views_of_extension
from sql.catalog.extensions import (
    PLPGSQL,
    PLPGSQL_FUNCTIONS,
    PLPGSQL_LANGUAGE_OID,
    installed_extensions,
)
from sql.catalog.objects import IndexDefinition, StatisticsDefinition, ViewDefinition
from sql.catalog.oids import cast_oid, constraint_oid, derived_oid, index_oid, schema_oid
from sql.functions.pg_proc import function_oid
from sql.types.enums import enum_of, is_enum
from sql.types.sql_type import quoted_name

TYPE: Final = 1247
PROCEDURE: Final = 1255
LANGUAGE: Final = 2612
EXTENSION: Final = 3079
CAST: Final = 2605
CLASS: Final = 1259
ATTRDEF: Final = 2604
CONSTRAINT: Final = 2606
NAMESPACE: Final = 2615
REWRITE: Final = 2618
STATISTICS: Final = 3381

_Address: TypeAlias = tuple[int, int, int]
"""classid, objid, objsubid."""


def pg_depend(context: BindContext) -> Iterator[NamedRow]:
    """All rows."""
    materialized = context.catalog.named_tables.materialized
    for table in context.catalog.tables.values():
        yield _row((CLASS, table.oid, 0), (NAMESPACE, schema_oid(table.schema), 0), "n")
        yield from _defaults(context, table)
        yield from _keys(table)
        yield from _constraints(context, table)
        for index in context.catalog.indexes(table.oid):
            for number in _used(table, index):
                yield _row((CLASS, index.oid, 0), (CLASS, table.oid, number), "a")
            for text in (*index.elements, index.predicate):
                yield from _named((CLASS, index.oid, 0), text)
        for one in context.catalog.statistics(table.oid):
            yield from _statistics((STATISTICS, one.oid, 0), table, one)
    for view in context.catalog.defined_views():
        if view.oid not in materialized:
            yield _row((CLASS, view.oid, 0), (NAMESPACE, schema_oid(view.schema), 0), "n")
        rule = (REWRITE, derived_oid("rule", view.oid), 0)
        yield _row(rule, (CLASS, view.oid, 0), "i")
        for oid, number in DefinitionTexts(context).uses(view):
            yield _row(rule, (CLASS, oid, number), "n")
        for on in _grouped_by_keys(context, view):
            yield _row(rule, on, "n")
    for domain in context.catalog.domains():
        yield from _named((TYPE, domain.oid, 0), domain.default)
        if is_enum(domain.type.name):
            yield _row((TYPE, domain.oid, 0), (TYPE, enum_of(domain.type.name).oid, 0), "n")
    for enum in context.catalog.enums():
        for text, outward, _ in enum.casts:
            yield _row(
                (CAST, cast_oid(enum.oid, text, outward=outward), 0), (TYPE, enum.oid, 0), "n"
            )
    yield from _sequences(context)
    extension = (EXTENSION, PLPGSQL.oid, 0)
    for name in PLPGSQL_FUNCTIONS:
        yield _row((PROCEDURE, function_oid(name), 0), extension, "e")
    yield _row((LANGUAGE, PLPGSQL_LANGUAGE_OID, 0), extension, "e")
    for found in installed_extensions(context.catalog):
        for shown in views_of_extension(found):
            yield _row((CLASS, shown.oid, 0), (EXTENSION, found.oid, 0), "e")


def _statistics(at: _Address, table: Table, one: StatisticsDefinition) -> Iterator[NamedRow]:
    names = [referenced_column_names(parse_stored_expression(text)) for text in one.expressions]
    numbers = _numbers(table)
    used = {*one.columns, *(numbers[name] for found in names for name in found)}
    for number in sorted(used):
        yield _row(at, (CLASS, table.oid, number), "a")
    yield _row(at, (NAMESPACE, schema_oid(one.schema), 0), "n")


def _grouped_by_keys(context: BindContext, view: ViewDefinition) -> Iterator[_Address]:
    """The primary keys of its tables that its GROUP BY relies on."""
    if "group by" not in view.text.lower():
        return
    named = {relation[2] for relation in view.relations}
    for table in context.catalog.tables.values():
        if table.oid in named:
            yield from _grouped_by_key(context, view, table)


def _grouped_by_key(context: BindContext, view: ViewDefinition, table: Table) -> Iterator[_Address]:
    """The primary key, if the view shows columns that depend on it (check_functional_grouping)."""
    key = next((key for key in table.keys if key.primary), None)
    if key is None:
        return
    bare = replace(table, keys=tuple(other for other in table.keys if other is not key))
    tables = {**context.catalog.tables, (table.schema, table.name): bare}
    without = with_catalog(context, replace(context.catalog, tables=tables))
    if not bind_with_context(without, lambda binding: view_can_be_bound(binding, view)):
        yield CONSTRAINT, constraint_oid(table, key.name), 0


def _row(one: _Address, on: _Address, kind: str) -> NamedRow:
    return {
        "classid": one[0],
        "objid": one[1],
        "objsubid": one[2],
        "refclassid": on[0],
        "refobjid": on[1],
        "refobjsubid": on[2],
        "deptype": kind,
    }


def _named(one: _Address, text: str) -> Iterator[NamedRow]:
    """The relations that a stored text names."""
    for oid in named_relations(text):
        yield _row(one, (CLASS, oid, 0), "n")


def _defaults(context: BindContext, table: Table) -> Iterator[NamedRow]:
    numbers, texts = _numbers(table), DefinitionTexts(context)
    for place, column in enumerate(table.columns, 1):
        if not texts.has_default(column):
            continue
        number = column_number(column, place)
        one = (ATTRDEF, derived_oid("default", table.oid, number), 0)
        kind = "a" if column.generated is None else "i"
        yield _row(one, (CLASS, table.oid, number), kind)
        if column.sequence:
            yield _row(one, (CLASS, column.sequence, 0), "n")
        yield from _named(one, column.expression or column.generated or "")
        if column.generated is not None:
            for name in dict.fromkeys(
                referenced_column_names(parse_stored_expression(column.generated))
            ):
                yield _row(one, (CLASS, table.oid, numbers[name]), "n")


def _keys(table: Table) -> Iterator[NamedRow]:
    constraints = constraints_of(table)
    for key in table.keys:
        columns = [(CLASS, table.oid, number) for number in index_numbers(table, key)]
        index = (CLASS, index_oid(table, key), 0)
        if key in constraints:
            constraint = (CONSTRAINT, constraint_oid(table, key.name), 0)
            yield from (_row(constraint, column, "a") for column in columns)
            yield _row(index, constraint, "i")
        else:
            yield from (_row(index, column, "a") for column in columns)


def _constraints(context: BindContext, table: Table) -> Iterator[NamedRow]:
    for foreign in table.foreign_keys:
        one = (CONSTRAINT, constraint_oid(table, foreign.name), 0)
        for ordinal in foreign.columns:
            yield _row(one, (CLASS, table.oid, table.number_of(ordinal)), "a")
        for number in foreign.references:
            yield _row(one, (CLASS, foreign.table, number), "n")
        yield _row(one, (CLASS, index_oid(*referenced_key(context, foreign)), 0), "n")
    for check in table.checks:
        one = (CONSTRAINT, constraint_oid(table, check.name), 0)
        for number in check_numbers(table, check):
            yield _row(one, (CLASS, table.oid, number), "a")
            yield _row(one, (CLASS, table.oid, number), "n")
        yield from _named(one, check.expression)
    for place, column in enumerate(table.columns, 1):
        if column.not_null:
            one = (CONSTRAINT, constraint_oid(table, not_null_name(table, column)), 0)
            yield _row(one, (CLASS, table.oid, column_number(column, place)), "a")


def _sequences(context: BindContext) -> Iterator[NamedRow]:
    for sequence in context.catalog.sequences():
        one = (CLASS, sequence.oid, 0)
        yield _row(one, (NAMESPACE, schema_oid(sequence.schema), 0), "n")
        owner = context.catalog.by_oid(sequence.owner) if sequence.owner else None
        for ordinal, column in enumerate(() if owner is None else owner.columns):
            if owner is not None and column.field == sequence.owner_field:
                on = (CLASS, owner.oid, owner.number_of(ordinal))
                yield _row(one, on, "i" if sequence.identity else "a")


def _numbers(table: Table) -> dict[str, int]:
    return {column.name: table.number_of(at) for at, column in enumerate(table.columns)}


def _used(table: Table, index: IndexDefinition) -> Sequence[int]:
    """The numbers of the columns that an index names anywhere."""
    numbers = _numbers(table)
    texts = [*index.elements, *index.include, *([index.predicate] if index.predicate else ())]
    names = {
        name for text in texts for name in referenced_column_names(parse_stored_expression(text))
    }
    quoted = {quoted_name(name): name for name in numbers}
    names |= {quoted[text] for text in texts if text in quoted}
    return sorted(numbers[name] for name in names if name in numbers)
