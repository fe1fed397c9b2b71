"""The rows of pg_catalog: from the catalog that a statement is bound with to Arrow tables.

    BindContext ─▶ rows per relation, by column name ─▶ ShardView, an input like any other

INVARIANTS
  W2  a column that a row does not name is NULL, or zero, false, empty where PostgreSQL has no NULL.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from compute.reference_strings import quote_ident
from coordinator.catalog_objects import (
    check_numbers,
    column_number,
    default_text,
    definitions,
    index_definition,
    key_numbers,
    not_null_name,
)
from coordinator.information_schema_rows import INFORMATION_SCHEMA_ROWS
from coordinator.relation_rows import Row, view_of
from sql.binding import BindContext
from sql.catalog import Catalog, Column, Key, Table
from sql.catalog_oids import OWNER, constraint_oid, derived_oid, index_oid, schema_oid
from sql.system_catalogs import (
    CATALOG_SCHEMAS,
    INFORMATION_SCHEMA,
    PG_CATALOG,
    is_view,
    system_catalogs,
)
from sql.system_relations import SYSTEM_RELATIONS, SYSTEM_SCHEMA
from sql.types import CATEGORIES, OIDS, PREFERRED, SqlType, Value, display
from storage.batch import ShardView

Named: TypeAlias = Mapping[str, Value]
"""A row by column name (W2)."""

_HEAP, _BTREE = 2, 403
_CHAR: Final = 18
_DEFAULT_COLLATION, _C_COLLATION = 100, 950
_DATABASE: Final = 5
_TABLESPACE: Final = 1663


def catalog_view(relation: Table, context: BindContext) -> ShardView:
    """The relation as a view with rows in memory."""
    make = _ROWS.get((relation.schema, relation.name))
    rows = [] if make is None else [_row(relation, named) for named in make(context)]
    return view_of(relation, rows)


def _row(relation: Table, named: Named) -> Row:
    return tuple(
        named[column.name] if column.name in named else _absent(column)
        for column in relation.columns
    )


def _absent(column: Column) -> Value:
    if not column.not_null:
        return None
    match column.type.category:
        case "B":
            return False
        case "N":
            return 0.0 if column.type.name.startswith("float") else 0
        case "A":
            return ()
        case _:
            return ""


# --- relations ---------------------------------------------------------------------------------


def _users(catalog: Catalog) -> list[Table]:
    return list(catalog.tables.values())


def _everything(catalog: Catalog) -> Iterator[Table]:
    yield from system_catalogs().values()
    yield from SYSTEM_RELATIONS.values()
    yield from _users(catalog)


def _is_shown_as_view(table: Table) -> bool:
    if table.schema in CATALOG_SCHEMAS:
        return is_view(table)
    return table.schema == SYSTEM_SCHEMA


def _pg_namespace(context: BindContext) -> Iterator[Named]:
    names = {*CATALOG_SCHEMAS, SYSTEM_SCHEMA, *context.catalog.schemas}
    for name in sorted(names):
        yield {"oid": schema_oid(name), "nspname": name, "nspowner": OWNER}


def _pg_class(context: BindContext) -> Iterator[Named]:
    for table in _everything(context.catalog):
        view = _is_shown_as_view(table)
        yield _class_row(table) | {
            "oid": table.oid,
            "relname": table.name,
            "relkind": "v" if view else "r",
            "relam": 0 if view else _HEAP,
            "relnatts": len(table.columns),
            "relchecks": len(table.checks),
            "relhasindex": bool(table.keys),
            "relreplident": "n" if view or table.schema == PG_CATALOG else "d",
        }
        for key in table.keys:
            yield _class_row(table) | {
                "oid": index_oid(table, key),
                "relname": key.name,
                "relkind": "i",
                "relam": _BTREE,
                "relnatts": len(key.columns),
                "relreplident": "n",
            }


def _class_row(table: Table) -> dict[str, Value]:
    return {
        "relnamespace": schema_oid(table.schema),
        "relowner": OWNER,
        "relpersistence": "p",
        "relispopulated": True,
        "reltuples": -1.0,
    }


_ALIGNED: Final = {1: "c", 2: "s", 4: "i", 8: "d"}


def _stored(type_: SqlType) -> dict[str, Value]:
    """What pg_type and pg_attribute say about storing a type, by the ends of the names."""
    size = type_.size
    return {
        "len": size,
        "byval": size in _ALIGNED,
        "align": _alignment(type_),
        "storage": "m" if type_.name == "numeric" else "p" if size > 0 else "x",
        "collation": _collation(type_),
    }


def _alignment(type_: SqlType) -> str:
    if type_.name in ("name", "uuid"):
        return "c"
    if type_.element is not None:
        return "d" if _alignment(type_.element) == "d" else "i"
    return _ALIGNED.get(min(type_.size, 8), "i")


def _collation(type_: SqlType) -> int:
    name = (type_.element or type_).name
    if name == "name":
        return _C_COLLATION
    return _DEFAULT_COLLATION if name in ("text", "varchar", "bpchar") else 0


def _pg_attribute(context: BindContext) -> Iterator[Named]:
    for table in _everything(context.catalog):
        for place, column in enumerate(table.columns, 1):
            yield {f"att{end}": value for end, value in _stored(column.type).items()} | {
                "attrelid": table.oid,
                "attname": column.name,
                "atttypid": column.type.oid,
                "attnum": column_number(column, place),
                "atttypmod": column.type.typmod,
                "attndims": int(column.type.element is not None),
                "attnotnull": column.not_null,
                "atthasdef": default_text(column) is not None,
                "attislocal": True,
            }
        for key in table.keys:
            yield from _index_columns(table, key)


def _index_columns(table: Table, key: Key) -> Iterator[Named]:
    for place, at in enumerate(key.columns, 1):
        column = table.columns[at]
        yield {f"att{end}": value for end, value in _stored(column.type).items()} | {
            "attrelid": index_oid(table, key),
            "attname": column.name,
            "atttypid": column.type.oid,
            "attnum": place,
            "atttypmod": column.type.typmod,
            "attislocal": True,
        }


def _pg_attrdef(context: BindContext) -> Iterator[Named]:
    for table in _users(context.catalog):
        for place, column in enumerate(table.columns, 1):
            text = default_text(column)
            if text is not None:
                number = column_number(column, place)
                yield {
                    "oid": derived_oid("default", table.oid, number),
                    "adrelid": table.oid,
                    "adnum": number,
                    "adbin": text,
                }


def _pg_constraint(context: BindContext) -> Iterator[Named]:
    for table in _users(context.catalog):
        common: dict[str, Value] = {
            "connamespace": schema_oid(table.schema),
            "conrelid": table.oid,
            "convalidated": True,
            "conenforced": True,
            "conislocal": True,
            "confupdtype": " ",
            "confdeltype": " ",
            "confmatchtype": " ",
        }
        yield from (common | row for row in _constraints(table))


def _constraints(table: Table) -> Iterator[dict[str, Value]]:
    for key in table.keys:
        yield {
            "oid": constraint_oid(table, key.name),
            "conname": key.name,
            "contype": "p" if key.primary else "u",
            "conindid": index_oid(table, key),
            "conkey": key_numbers(table, key),
            "connoinherit": True,
        }
    for check in table.checks:
        yield {
            "oid": constraint_oid(table, check.name),
            "conname": check.name,
            "contype": "c",
            "conkey": check_numbers(table, check),
            "conbin": check.expression,
        }
    for place, column in enumerate(table.columns, 1):
        if column.not_null:
            name = not_null_name(table, column)
            yield {
                "oid": constraint_oid(table, name),
                "conname": name,
                "contype": "n",
                "conkey": (column_number(column, place),),
            }


def _pg_index(context: BindContext) -> Iterator[Named]:
    for table in _users(context.catalog):
        for key in table.keys:
            count = len(key.columns)
            types = [table.columns[at].type for at in key.columns]
            yield {
                "indexrelid": index_oid(table, key),
                "indrelid": table.oid,
                "indnatts": count,
                "indnkeyatts": count,
                "indisunique": True,
                "indnullsnotdistinct": not key.nulls_distinct,
                "indisprimary": key.primary,
                "indimmediate": True,
                "indisvalid": True,
                "indisready": True,
                "indislive": True,
                "indkey": key_numbers(table, key),
                "indcollation": tuple(map(_collation, types)),
                "indclass": (0,) * count,
                "indoption": (0,) * count,
            }


def _pg_type(_context: BindContext) -> Iterator[Named]:
    for name, oid in OIDS.items():
        type_ = SqlType(name)
        kind = "p" if CATEGORIES.get(name) in ("P", "X") else "b"
        element = _CHAR if name == "name" else OIDS.get(name[1:], 0) if name[0] == "_" else 0
        yield {f"typ{end}": value for end, value in _stored(type_).items()} | {
            "oid": oid,
            "typname": name,
            "typnamespace": schema_oid(PG_CATALOG),
            "typowner": OWNER,
            "typtype": kind,
            "typcategory": type_.category,
            "typispreferred": name in PREFERRED,
            "typisdefined": True,
            "typdelim": ",",
            "typelem": element,
            "typarray": OIDS.get(f"_{name}", 0),
            "typtypmod": -1,
            "typinput": "array_in" if name[0] == "_" else f"{name}in",
            "typoutput": "array_out" if name[0] == "_" else f"{name}out",
        }


def _pg_tables(context: BindContext) -> Iterator[Named]:
    for table in (*system_catalogs().values(), *_users(context.catalog)):
        if not _is_shown_as_view(table):
            yield {
                "schemaname": table.schema,
                "tablename": table.name,
                "tableowner": context.user,
                "hasindexes": bool(table.keys),
                "hasrules": False,
                "hastriggers": False,
                "rowsecurity": False,
            }


def _pg_indexes(context: BindContext) -> Iterator[Named]:
    for table in _users(context.catalog):
        for key in table.keys:
            yield {
                "schemaname": table.schema,
                "tablename": table.name,
                "indexname": key.name,
                "indexdef": index_definition(table, key),
            }


# --- what functions look into ------------------------------------------------------------------


def _definitions(context: BindContext) -> Iterator[Named]:
    for table in _users(context.catalog):
        for oid, part, text in definitions(table):
            yield {"oid": oid, "part": part, "definition": text}


def _type_names(_context: BindContext) -> Iterator[Named]:
    for name, oid in OIDS.items():
        type_ = SqlType(name)
        base = type_.element or type_
        yield {
            "oid": oid,
            "name": display(type_),
            "base": base.name,
            "plain": display(base),
            "suffix": "[]" if type_.element is not None else "",
        }


def _visible(context: BindContext) -> Iterator[Named]:
    """Whether a name without schema finds it; all types are found."""
    for oid, _, _, visible in _relation_names(context):
        yield {"oid": oid, "visible": visible}
    for oid in OIDS.values():
        yield {"oid": oid, "visible": True}


def _relation_names(context: BindContext) -> Iterator[tuple[int, str, str, bool]]:
    """Oid, schema, name of every table, view and index, and whether the name alone finds it."""
    path = [PG_CATALOG, *(name for name in context.search_path if name != PG_CATALOG)]
    rank = {schema: place for place, schema in reversed(list(enumerate(path)))}
    found: dict[str, int] = {}
    named: list[tuple[int, str, str]] = []
    for table in _everything(context.catalog):
        named.append((table.oid, table.schema, table.name))
        named += ((index_oid(table, key), table.schema, key.name) for key in table.keys)
    for _, schema, name in named:
        if schema in rank:
            found[name] = min(found.get(name, len(path)), rank[schema])
    for oid, schema, name in named:
        yield oid, schema, name, schema in rank and found[name] == rank[schema]


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
    for name, oid in OIDS.items():
        yield "type", oid, display(SqlType(name)), name
    for row in _pg_namespace(context):
        text = quote_ident(str(row["nspname"]))
        yield "namespace", schema_oid(str(row["nspname"])), text, text
    yield "role", OWNER, quote_ident(context.user), quote_ident(context.user)


# --- the server --------------------------------------------------------------------------------


def _pg_am(_context: BindContext) -> Iterator[Named]:
    yield {"oid": _HEAP, "amname": "heap", "amhandler": "heap_tableam_handler", "amtype": "t"}
    yield {"oid": _BTREE, "amname": "btree", "amhandler": "bthandler", "amtype": "i"}


def _pg_collation(_context: BindContext) -> Iterator[Named]:
    for oid, name, provider in (
        (_DEFAULT_COLLATION, "default", "d"),
        (_C_COLLATION, "C", "c"),
        (951, "POSIX", "c"),
    ):
        yield {
            "oid": oid,
            "collname": name,
            "collnamespace": schema_oid(PG_CATALOG),
            "collowner": OWNER,
            "collprovider": provider,
            "collisdeterministic": True,
            "collencoding": -1,
        }


def _pg_database(context: BindContext) -> Iterator[Named]:
    yield {
        "oid": _DATABASE,
        "datname": context.database,
        "datdba": OWNER,
        "encoding": 6,
        "datlocprovider": "c",
        "datallowconn": True,
        "datconnlimit": -1,
        "dattablespace": _TABLESPACE,
        "datcollate": "C",
        "datctype": "C",
    }


def _pg_tablespace(_context: BindContext) -> Iterator[Named]:
    yield {"oid": _TABLESPACE, "spcname": "pg_default", "spcowner": OWNER}
    yield {"oid": 1664, "spcname": "pg_global", "spcowner": OWNER}


def _pg_roles(context: BindContext) -> Iterator[Named]:
    yield {
        "oid": OWNER,
        "rolname": context.user,
        "rolsuper": True,
        "rolinherit": True,
        "rolcreaterole": True,
        "rolcreatedb": True,
        "rolcanlogin": True,
        "rolreplication": False,
        "rolbypassrls": True,
        "rolconnlimit": -1,
        "rolpassword": "********",
    }


def _pg_user(context: BindContext) -> Iterator[Named]:
    yield {
        "usename": context.user,
        "usesysid": OWNER,
        "usecreatedb": True,
        "usesuper": True,
        "userepl": False,
        "usebypassrls": True,
        "passwd": "********",
    }


def _pg_settings(context: BindContext) -> Iterator[Named]:
    for name in sorted(context.settings):
        yield {"name": name, "setting": context.settings[name], "pending_restart": False}


_ROWS: Final[Mapping[tuple[str, str], Callable[[BindContext], Iterator[Named]]]] = {
    (PG_CATALOG, "pg_am"): _pg_am,
    (PG_CATALOG, "pg_attrdef"): _pg_attrdef,
    (PG_CATALOG, "pg_attribute"): _pg_attribute,
    (PG_CATALOG, "pg_class"): _pg_class,
    (PG_CATALOG, "pg_collation"): _pg_collation,
    (PG_CATALOG, "pg_constraint"): _pg_constraint,
    (PG_CATALOG, "pg_database"): _pg_database,
    (PG_CATALOG, "pg_index"): _pg_index,
    (PG_CATALOG, "pg_indexes"): _pg_indexes,
    (PG_CATALOG, "pg_namespace"): _pg_namespace,
    (PG_CATALOG, "pg_roles"): _pg_roles,
    (PG_CATALOG, "pg_settings"): _pg_settings,
    (PG_CATALOG, "pg_tables"): _pg_tables,
    (PG_CATALOG, "pg_tablespace"): _pg_tablespace,
    (PG_CATALOG, "pg_type"): _pg_type,
    (PG_CATALOG, "pg_user"): _pg_user,
    (PG_CATALOG, "meridian_definitions"): _definitions,
    (PG_CATALOG, "meridian_type_names"): _type_names,
    (PG_CATALOG, "meridian_visible"): _visible,
    (PG_CATALOG, "meridian_names"): _names,
    **{(INFORMATION_SCHEMA, name): make for name, make in INFORMATION_SCHEMA_ROWS.items()},
}
