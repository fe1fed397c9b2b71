"""Rows of pg_catalog about types and the server itself.

A row names the columns it has (W2 of `catalog_rows.py`).
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from coordinator.information_schema_rows import Named
from sql.binding import BindContext
from sql.catalog_oids import OWNER, derived_oid, schema_oid
from sql.system_catalogs import (
    PG_CATALOG,
)
from sql.types import CATEGORIES, OIDS, PREFERRED, SqlType, Value

HEAP: Final = 2
BTREE: Final = 403
METHODS: Final = {"btree": 403, "hash": 405, "gist": 783, "gin": 2742, "spgist": 4000, "brin": 3580}
_CHAR: Final = 18
_DEFAULT_COLLATION, _C_COLLATION = 100, 950
DATABASE: Final = 5
_TABLESPACE: Final = 1663
_ALIGNED: Final = {1: "c", 2: "s", 4: "i", 8: "d"}


def stored_as(type_: SqlType) -> dict[str, Value]:
    """What pg_type and pg_attribute say about storing a type, by the ends of the names."""
    size = type_.size
    return {
        "len": size,
        "byval": size in _ALIGNED,
        "align": _alignment(type_),
        "storage": "m" if type_.name == "numeric" else "p" if size > 0 else "x",
        "collation": collation_of(type_),
    }


def _alignment(type_: SqlType) -> str:
    if type_.name in ("name", "uuid"):
        return "c"
    if type_.element is not None:
        return "d" if _alignment(type_.element) == "d" else "i"
    return _ALIGNED.get(min(type_.size, 8), "i")


def collation_of(type_: SqlType) -> int:
    """The oid of a type's collation; 0: it has none."""
    name = (type_.element or type_).name
    if name == "name":
        return _C_COLLATION
    return _DEFAULT_COLLATION if name in ("text", "varchar", "bpchar") else 0


def _pg_type(_context: BindContext) -> Iterator[Named]:
    for name, oid in OIDS.items():
        type_ = SqlType(name)
        kind = "p" if CATEGORIES.get(name) in ("P", "X") else "b"
        element = _CHAR if name == "name" else OIDS.get(name[1:], 0) if name[0] == "_" else 0
        yield {f"typ{end}": value for end, value in stored_as(type_).items()} | {
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


def _pg_opclass(_context: BindContext) -> Iterator[Named]:
    for name, oid in OIDS.items():
        if CATEGORIES.get(name, "A") not in ("P", "X", "A"):
            yield {
                "oid": derived_oid("opclass", name),
                "opcmethod": BTREE,
                "opcname": f"{name}_ops",
                "opcnamespace": schema_oid(PG_CATALOG),
                "opcowner": OWNER,
                "opcintype": oid,
                "opcdefault": True,
            }


def _pg_am(_context: BindContext) -> Iterator[Named]:
    yield {"oid": HEAP, "amname": "heap", "amhandler": "heap_tableam_handler", "amtype": "t"}
    yield {"oid": BTREE, "amname": "btree", "amhandler": "bthandler", "amtype": "i"}


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
        "oid": DATABASE,
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


SERVER_ROWS: Final[Mapping[str, Callable[[BindContext], Iterator[Named]]]] = {
    "pg_am": _pg_am,
    "pg_collation": _pg_collation,
    "pg_database": _pg_database,
    "pg_opclass": _pg_opclass,
    "pg_roles": _pg_roles,
    "pg_settings": _pg_settings,
    "pg_tablespace": _pg_tablespace,
    "pg_type": _pg_type,
    "pg_user": _pg_user,
}
