"""Rows of helper relations that functions and reg types read: names, definitions, visibility.

A row names the columns it has (W2 of `pgcatalog/relations.py`).
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from coordinator.pgcatalog.definition_texts import DefinitionTexts
from coordinator.pgcatalog.definitions import (
    EVERYTHING,
    supported_view_events,
    user_tables,
    views_with_defaults,
)
from coordinator.pgcatalog.information_schema import is_base_table
from coordinator.pgcatalog.named_row import NamedRow
from coordinator.pgcatalog.system_indexes import system_definitions
from coordinator.pgcatalog.tables import all_tables
from coordinator.pgcatalog.types import all_types
from sql.binder.resolve.role_names import roles_of
from sql.binder.state import BindContext
from sql.catalog.extension_relations import extension_views
from sql.catalog.meridian_schema import (
    SYSTEM_RELATIONS,
    SYSTEM_SCHEMA,
    SYSTEM_SCHEMA_ALIAS,
    SYSTEM_SCHEMA_NAMES,
    system_view_definition,
)
from sql.catalog.objects import STATISTICS_SPACE, SequenceDefinition
from sql.catalog.oids import index_oid, schema_oid
from sql.catalog.system_catalogs import CATALOG_SCHEMAS, PG_CATALOG
from sql.catalog.system_indexes import system_indexes
from sql.catalog.temporary import TEMPORARY_SCHEMA_ALIAS
from sql.functions.pg_proc import function_only_types
from sql.types.sql_type import TYPE_OIDS, SqlType, format_type, quoted_name


def _definitions(context: BindContext) -> Iterator[NamedRow]:
    for oid, part, text, pretty in _texts(context):
        yield {"oid": oid, "part": part, "definition": text, "pretty": pretty}


def _texts(context: BindContext) -> Iterator[tuple[int, int, str, str]]:
    texts = DefinitionTexts(context)
    for table in user_tables(context.catalog):
        yield from texts.of_table(table)
        yield from texts.expressions(table)
    for domain in context.catalog.domains():
        yield from texts.of_domain(domain)
    for view in context.catalog.defined_views():
        yield from texts.of_view(view)
    for table in views_with_defaults(context):
        yield from texts.expressions(table)
    for oid, part, text in system_definitions():
        yield oid, part, text, text.replace("pg_catalog.", "")
    for table in (*SYSTEM_RELATIONS.values(), *extension_views(context.catalog)):
        text = system_view_definition(table)
        yield table.oid, 0, text, text


def _type_names(context: BindContext) -> Iterator[NamedRow]:
    for named in all_types(context):
        is_array = named.domain is None and named.type.element is not None
        yield {
            "oid": named.oid,
            "name": named.shown,
            "base": named.name.removeprefix("_") if is_array else named.name,
            "plain": named.shown.removesuffix("[]"),
            "suffix": "[]" if is_array else "",
        }
    for oid, (name, shown) in function_only_types().items():
        yield {"oid": oid, "name": shown, "base": name, "plain": shown, "suffix": ""}


def _visible(context: BindContext) -> Iterator[NamedRow]:
    """Whether a name without schema finds it; all of PostgreSQL's types are found."""
    for oid, _, _, visible in _relation_names(context):
        yield {"oid": oid, "visible": visible}
    for named in all_types(context):
        yield {"oid": named.oid, "visible": named.visible}
    for oid in function_only_types():
        yield {"oid": oid, "visible": True}
    objects = context.catalog.objects
    for key, found in objects.items():
        if key[0] == STATISTICS_SPACE:
            first = next(
                (s for s in context.search_path if (STATISTICS_SPACE, s, found.name) in objects),
                None,
            )
            yield {"oid": found.oid, "visible": first == found.schema}


def _relation_names(context: BindContext) -> Iterator[tuple[int, str, str, bool]]:
    """Oid, schema, name of every table, view and index, and whether the name alone finds it."""
    path = [PG_CATALOG, *(name for name in context.search_path if name != PG_CATALOG)]
    rank = {schema: place for place, schema in reversed(list(enumerate(path)))}
    first: dict[str, int] = {}
    named: list[tuple[int, str, str]] = []
    for table in all_tables(context):
        named.append((table.oid, table.schema, table.name))
        named += ((index_oid(table, key), table.schema, key.name) for key in table.keys)
    named += ((found.oid, PG_CATALOG, found.name) for found in system_indexes().values())
    named += ((found.oid, found.schema, found.name) for found in context.catalog.sequences())
    for table in user_tables(context.catalog):
        indexes = context.catalog.indexes(table.oid)
        named += ((found.oid, found.schema, found.name) for found in indexes)
    for _, schema, name in named:
        if schema in rank:
            first[name] = min(first.get(name, len(path)), rank[schema])
    for oid, schema, name in named:
        yield oid, schema, name, schema in rank and first[name] == rank[schema]


def _names(context: BindContext) -> Iterator[NamedRow]:
    """What the reg types show."""
    for kind, oid, shown, other in reg_type_names(context):
        yield {"kind": kind, "oid": oid, "shown": shown, "other": other}
    for other, name in _ALIASES.items():
        yield {
            "kind": "type",
            "oid": TYPE_OIDS[name],
            "shown": format_type(SqlType(name)),
            "other": other,
        }


def _name_lists(context: BindContext) -> Iterator[NamedRow]:
    """What `compute/reference/functions/reg_types.py` reads: each kind's names in one text."""
    names: dict[str, dict[str, int]] = {kind: {} for kind in ("class", "type", "namespace", "role")}
    for kind, oid, shown, other in reg_type_names(context):
        names[kind].setdefault(shown, oid)
        names[kind].setdefault(other, oid)
        if kind == "type" and other.startswith("_"):
            names[kind].setdefault(f"{other[1:]}[]", oid)
    types = names["type"]
    for alias, name in _ALIASES.items():
        types[alias] = TYPE_OIDS[name]
        types[f"{alias}[]"] = TYPE_OIDS[f"_{name}"]
    schemas = [*CATALOG_SCHEMAS, *SYSTEM_SCHEMA_NAMES, context.temporary, *context.catalog.schemas]
    further: dict[str, dict[str, object]] = {
        "class": {
            "database": context.database,
            "schemas": schemas,
            "aliases": {
                TEMPORARY_SCHEMA_ALIAS: context.temporary,
                SYSTEM_SCHEMA_ALIAS: SYSTEM_SCHEMA,
            },
        },
        "type": {"relations": list(names["class"])},
    }
    for kind, known in names.items():
        text = json.dumps({"names": known, **further.get(kind, {})})
        yield {"kind": kind, "names": text}


_ALIASES: Final = {
    "int": "int4", "decimal": "numeric", "dec": "numeric", "float": "float8", "char": "bpchar",
    "nchar": "bpchar", "char varying": "varchar", "national character": "bpchar",
}  # fmt: skip


def reg_type_names(context: BindContext) -> Iterator[tuple[str, int, str, str]]:
    """Kind, oid, displayed name and alternative name of every object that a reg type may name."""
    for oid, schema, name, visible in _relation_names(context):
        text = quoted_name(name)
        qualified = f"{quoted_name(schema)}.{text}"
        yield "class", oid, text if visible else qualified, qualified
    for named in all_types(context):
        other = named.name
        if named.schema != PG_CATALOG:
            is_array = named.domain is None and named.type.element is not None
            suffix = "[]" if is_array else ""
            plain = quoted_name(named.name.removeprefix("_") if suffix else named.name)
            other = f"{quoted_name(named.schema)}.{plain}{suffix}"
        yield "type", named.oid, named.shown, other
    for oid, (name, shown) in function_only_types().items():
        yield "type", oid, shown, name
    for schema in (*CATALOG_SCHEMAS, SYSTEM_SCHEMA, *context.catalog.schemas):
        text = quoted_name(schema)
        other = SYSTEM_SCHEMA_ALIAS if schema == SYSTEM_SCHEMA else text
        yield "namespace", schema_oid(schema), text, other
    roles = roles_of(context)
    for role in roles.all():
        text = quoted_name(roles.name(role.oid))
        yield "role", role.oid, text, text


def _serials(context: BindContext) -> Iterator[NamedRow]:
    """What pg_get_serial_sequence() answers: always with the schema."""
    owned: dict[int, list[SequenceDefinition]] = {}
    for found in context.catalog.sequences():
        owned.setdefault(found.owner, []).append(found)
    for table in user_tables(context.catalog):
        for column in table.columns:
            for sequence in owned.get(table.oid, ()):
                if sequence.owner_field == column.field:
                    yield {
                        "relation": table.oid,
                        "attname": column.name,
                        "sequence": f"{quoted_name(sequence.schema)}.{quoted_name(sequence.name)}",
                    }


def _updatable(context: BindContext) -> Iterator[NamedRow]:
    """What may be done to a relation, part 0; to each column of a view, or all of a table: -1."""
    for table in all_tables(context):
        if is_base_table(table) and table.query is None:
            for part in (0, -1):
                yield {"oid": table.oid, "part": part, "events": EVERYTHING}
    for view in context.catalog.views():
        events, columns = supported_view_events(context, view)
        for part, said in enumerate([events, *columns]):
            yield {"oid": view.oid, "part": part, "events": said}


NAME_ROWS: Final[Mapping[str, Callable[[BindContext], Iterator[NamedRow]]]] = {
    "meridian_definitions": _definitions,
    "meridian_name_lists": _name_lists,
    "meridian_names": _names,
    "meridian_serials": _serials,
    "meridian_type_names": _type_names,
    "meridian_updatable": _updatable,
    "meridian_visible": _visible,
}
