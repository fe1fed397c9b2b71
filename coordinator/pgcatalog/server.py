"""Rows of pg_catalog about the server itself: databases, settings, access methods, collations ..

A row names the columns it has (W2 of `pgcatalog/relations.py`).
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from coordinator.pgcatalog.named_row import NamedRow
from coordinator.pgcatalog.privileges import PrivilegeColumns
from sql.binder.state import BindContext
from sql.catalog import ownership as role_names_ownership
from sql.catalog.acl import OWNER, PUBLIC, AclItem
from sql.catalog.catalog import Table
from sql.catalog.objects import CatalogObject
from sql.catalog.oids import DATABASE_OIDS
from sql.catalog.ownership import OwnedObject
from sql.functions.pg_proc import function_oid

HEAP: Final = 2
BTREE: Final = 403
METHODS: Final = {"btree": 403, "hash": 405, "gist": 783, "gin": 2742, "spgist": 4000, "brin": 3580}
_HANDLERS: Final = {"btree": "bthandler", "spgist": "spghandler"}
_TABLESPACE: Final = 1663


def _pg_am(_context: BindContext) -> Iterator[NamedRow]:
    yield {
        "oid": HEAP,
        "amname": "heap",
        "amhandler": function_oid("heap_tableam_handler"),
        "amtype": "t",
    }
    for name, oid in METHODS.items():
        handler = function_oid(_HANDLERS.get(name, f"{name}handler"))
        yield {"oid": oid, "amname": name, "amhandler": handler, "amtype": "i"}


_OTHER_NAMES: Final = ("template1", "postgres")
_ONE_CONTENT: Final = -2
"""Names of the one database that clients may connect to. pg_dumpall, vacuumdb and their kin leave
out what has this limit: they would visit the same tables once for each name."""


def _pg_database(context: BindContext) -> Iterator[NamedRow]:
    owner, acl = PrivilegeColumns(context).of(
        OwnedObject(role_names_ownership.DATABASE_SUBJECT, "database", "", "")
    )
    for name, oid in DATABASE_OIDS.items():
        is_template = name.startswith("template")
        yield {
            "oid": oid,
            "datname": name,
            "datdba": OWNER if is_template else owner,
            "datacl": _template_acl(context) if is_template else acl,
            "encoding": 6,
            "datlocprovider": "c",
            "datistemplate": is_template,
            "datallowconn": name != "template0",
            "datconnlimit": _ONE_CONTENT if name in _OTHER_NAMES else -1,
            "dattablespace": _TABLESPACE,
            # Text is ordered by code point, and all letters have upper and lower case.
            "datcollate": "C.UTF-8",
            "datctype": "C.UTF-8",
        }


def _template_acl(context: BindContext) -> tuple[str, ...]:
    """Nobody but the owner creates schemas in a template."""
    acl = (AclItem(PUBLIC, OWNER, "c"), AclItem(OWNER, OWNER, "CTc"))
    return PrivilegeColumns(context).acl(acl) or ()


def _pg_tablespace(_context: BindContext) -> Iterator[NamedRow]:
    yield {"oid": _TABLESPACE, "spcname": "pg_default", "spcowner": OWNER}
    yield {"oid": 1664, "spcname": "pg_global", "spcowner": OWNER}


def _pg_settings(context: BindContext) -> Iterator[NamedRow]:
    for row in context.settings.rows():
        setting = row.setting
        yield {
            "name": setting.name,
            "setting": row.value,
            "unit": setting.unit or None,
            "category": setting.category,
            "short_desc": setting.description,
            "extra_desc": setting.more,
            "context": setting.context,
            "vartype": setting.vartype,
            "source": row.source,
            "min_val": setting.least,
            "max_val": setting.greatest,
            "enumvals": setting.choices or None,
            "boot_val": setting.boot,
            "reset_val": row.reset,
            "pending_restart": False,
        }


_CONFIGURATION: Final = (
    "BINDIR", "DOCDIR", "HTMLDIR", "INCLUDEDIR", "PKGINCLUDEDIR", "INCLUDEDIR-SERVER", "LIBDIR",
    "PKGLIBDIR", "LOCALEDIR", "MANDIR", "SHAREDIR", "SYSCONFDIR", "PGXS", "CONFIGURE", "CC",
    "CPPFLAGS", "CFLAGS", "CFLAGS_SL", "LDFLAGS", "LDFLAGS_EX", "LDFLAGS_SL", "LIBS",
)  # fmt: skip


def _pg_config(context: BindContext) -> Iterator[NamedRow]:
    """What PostgreSQL says of a build that did not record its options."""
    for name in _CONFIGURATION:
        yield {"name": name, "setting": "not recorded"}
    yield {"name": "VERSION", "setting": context.version}


def _pg_shdepend(context: BindContext) -> Iterator[NamedRow]:
    """Owners of relations and types, but for the first superuser, who owns all else."""
    shown = PrivilegeColumns(context)
    catalog = context.catalog
    classes = {"rel": 1259, "typ": 1247}
    owned: list[tuple[str, Table | CatalogObject]] = [
        *(("rel", table) for table in catalog.tables.values()),
        *(
            ("typ" if thing.kind in ("enum", "domain") else "rel", thing)
            for thing in catalog.objects.values()
            if thing.kind in ("enum", "domain", "view", "sequence")
        ),
    ]
    for prefix, thing in owned:
        owner = shown.named(thing, prefix)[f"{prefix}owner"]
        if owner != OWNER:
            yield {
                "dbid": DATABASE_OIDS[context.database],
                "classid": classes[prefix],
                "objid": thing.oid,
                "objsubid": 0,
                "refclassid": 1260,
                "refobjid": owner,
                "deptype": "o",
            }


SERVER_ROWS: Final[Mapping[str, Callable[[BindContext], Iterator[NamedRow]]]] = {
    "pg_am": _pg_am,
    "pg_config": _pg_config,
    "pg_shdepend": _pg_shdepend,
    "pg_database": _pg_database,
    "pg_settings": _pg_settings,
    "pg_tablespace": _pg_tablespace,
}
