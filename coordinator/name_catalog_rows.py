"""What functions and reg types look up: names, definitions and visibility of catalog objects.

A row names the columns it has (W2 of `catalog_rows.py`).
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from compute.reference_strings import quote_ident
from coordinator.catalog_objects import (
    EVERYTHING,
    definitions,
    view_events,
    view_text,
)
from coordinator.information_schema_rows import Named, is_base
from coordinator.table_catalog_rows import all_tables, users_tables
from coordinator.type_catalog_rows import all_types, domain_definitions
from sql.binding import BindContext
from sql.catalog_oids import index_oid, schema_oid
from sql.role_names import roles_of
from sql.system_catalogs import (
    CATALOG_SCHEMAS,
    PG_CATALOG,
)
from sql.system_relations import SYSTEM_SCHEMA
from sql.types import OIDS, SqlType, display


def _definitions(context: BindContext) -> Iterator[Named]:
    for table in users_tables(context.catalog):
        for oid, part, text in definitions(context, table):
            yield {"oid": oid, "part": part, "definition": text}
    for oid, text in domain_definitions(context):
        yield {"oid": oid, "part": 0, "definition": text}
    for view in context.catalog.views():
        yield {"oid": view.oid, "part": 0, "definition": view_text(context, view)}


def _type_names(context: BindContext) -> Iterator[Named]:
    for named in all_types(context):
        is_array = named.domain is None and named.type.element is not None
        yield {
            "oid": named.oid,
            "name": named.shown,
            "base": named.name.removeprefix("_") if is_array else named.name,
            "plain": named.shown.removesuffix("[]"),
            "suffix": "[]" if is_array else "",
        }


def _visible(context: BindContext) -> Iterator[Named]:
    """Whether a name without schema finds it; all of PostgreSQL's types are found."""
    for oid, _, _, visible in _relation_names(context):
        yield {"oid": oid, "visible": visible}
    for named in all_types(context):
        yield {"oid": named.oid, "visible": named.visible}


def _relation_names(context: BindContext) -> Iterator[tuple[int, str, str, bool]]:
    """Oid, schema, name of every table, view and index, and whether the name alone finds it."""
    path = [PG_CATALOG, *(name for name in context.search_path if name != PG_CATALOG)]
    rank = {schema: place for place, schema in reversed(list(enumerate(path)))}
    first: dict[str, int] = {}
    named: list[tuple[int, str, str]] = []
    for table in all_tables(context):
        named.append((table.oid, table.schema, table.name))
        named += ((index_oid(table, key), table.schema, key.name) for key in table.keys)
    named += ((found.oid, found.schema, found.name) for found in context.catalog.sequences())
    for table in users_tables(context.catalog):
        indexes = context.catalog.indexes(table.oid)
        named += ((found.oid, found.schema, found.name) for found in indexes)
    for _, schema, name in named:
        if schema in rank:
            first[name] = min(first.get(name, len(path)), rank[schema])
    for oid, schema, name in named:
        yield oid, schema, name, schema in rank and first[name] == rank[schema]


def _names(context: BindContext) -> Iterator[Named]:
    """What the reg types show."""
    for kind, oid, shown, other in registered_names(context):
        yield {"kind": kind, "oid": oid, "shown": shown, "other": other}
    for other, name in _ALIASES.items():
        yield {"kind": "type", "oid": OIDS[name], "shown": display(SqlType(name)), "other": other}


_ALIASES: Final = {
    "int": "int4", "decimal": "numeric", "dec": "numeric", "float": "float8", "char": "bpchar",
    "nchar": "bpchar", "char varying": "varchar", "national character": "bpchar",
}  # fmt: skip


def registered_names(context: BindContext) -> Iterator[tuple[str, int, str, str]]:
    """Kind and oid of everything that a reg type may name, its text, and how else it is called."""
    for oid, schema, name, visible in _relation_names(context):
        text = quote_ident(name)
        qualified = f"{quote_ident(schema)}.{text}"
        yield "class", oid, text if visible else qualified, qualified
    for named in all_types(context):
        other = named.name
        if named.schema != PG_CATALOG:
            is_array = named.domain is None and named.type.element is not None
            suffix = "[]" if is_array else ""
            plain = quote_ident(named.name.removeprefix("_") if suffix else named.name)
            other = f"{quote_ident(named.schema)}.{plain}{suffix}"
        yield "type", named.oid, named.shown, other
    for schema in (*CATALOG_SCHEMAS, SYSTEM_SCHEMA, *context.catalog.schemas):
        text = quote_ident(schema)
        yield "namespace", schema_oid(schema), text, text
    roles = roles_of(context)
    for role in roles.all():
        text = quote_ident(roles.name(role.oid))
        yield "role", role.oid, text, text


def _serials(context: BindContext) -> Iterator[Named]:
    """What pg_get_serial_sequence() answers: always with the schema."""
    for table in users_tables(context.catalog):
        for column in table.columns:
            owned = [s for s in context.catalog.sequences() if s.owner == table.oid]
            for sequence in owned:
                if sequence.owner_field == column.field:
                    name = quote_ident(table.name)
                    yield {
                        "shown": name if table.schema in context.search_path else None,
                        "other": f"{quote_ident(table.schema)}.{name}",
                        "attname": column.name,
                        "sequence": f"{quote_ident(sequence.schema)}.{quote_ident(sequence.name)}",
                    }


def _updatable(context: BindContext) -> Iterator[Named]:
    """What may be done to a relation, part 0; to each column of a view, or all of a table: -1."""
    for table in all_tables(context):
        if is_base(table):
            for part in (0, -1):
                yield {"oid": table.oid, "part": part, "events": EVERYTHING}
    for view in context.catalog.views():
        events, columns = view_events(context, view)
        for part, said in enumerate([events, *columns]):
            yield {"oid": view.oid, "part": part, "events": said}


NAME_ROWS: Final[Mapping[str, Callable[[BindContext], Iterator[Named]]]] = {
    "meridian_definitions": _definitions,
    "meridian_names": _names,
    "meridian_serials": _serials,
    "meridian_type_names": _type_names,
    "meridian_updatable": _updatable,
    "meridian_visible": _visible,
}
