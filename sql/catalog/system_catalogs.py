"""System catalogs (pg_catalog) and the views of information_schema, as the binder sees them.

    sql/data/catalogs.txt ─▶ Table(schema pg_catalog | information_schema, oid as in PostgreSQL)

    schema.name oid kind: column type, ..    `!` behind a type: never NULL

Their rows are computed from the catalog that a statement is bound with
(`coordinator/pgcatalog/relations.py`). So they show what the statement would find: the
transaction's own DDL, and the past under AS OF.

INVARIANTS
  G1  a relation is known only if its rows are computed (FILLED), or if the objects that it lists do
      not exist here (EMPTY). All others are refused, never shown empty.
  G2  columns of types that only catalogs have are bound as the types that these are held as
      (`sql/types/catalog_types.py`): node trees as text, vectors as arrays. A result names the type
      itself.

The file is written by `tests/unit/sql/postgresql_catalogs.py`, from a real server.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

from sql.catalog.catalog import Column, Table
from sql.catalog.known_catalogs import COMPUTED_CATALOGS, EMPTY_CATALOGS
from sql.catalog.meridian_schema import STATEMENT_ENGINES, SYSTEM_SCHEMA_NAMES
from sql.types.catalog_types import HELD_AS, is_catalog_type
from sql.types.sql_type import BOOL, INT4, INT8, OID, TEXT, VECTOR_TYPE_OIDS, SqlType, plain_type

PG_CATALOG: Final = "pg_catalog"
INFORMATION_SCHEMA: Final = "information_schema"
CATALOG_SCHEMAS: Final = (PG_CATALOG, INFORMATION_SCHEMA)

SYSTEM_SCHEMAS: Final = frozenset({*CATALOG_SCHEMAS, *SYSTEM_SCHEMA_NAMES})
"""They are always there, and nobody creates or drops anything in them."""

_FILE: Final = Path(__file__).parents[1] / "data" / "catalogs.txt"


def _helper(number: int, name: str, /, **columns: SqlType) -> Table:
    made = tuple(Column(column, type_) for column, type_ in columns.items())
    shard = f"{PG_CATALOG}.{name}"
    return Table(_HELPER_OIDS + number, PG_CATALOG, name, shard, made, timeline="")


_HELPER_OIDS: Final = 14_900
_CHAR: Final = SqlType("char")
HELPER_RELATIONS: Final = {
    (PG_CATALOG, table.name): table
    for table in (
        _helper(0, "meridian_definitions", oid=OID, part=INT4, definition=TEXT, pretty=TEXT),
        _helper(1, "meridian_type_names", oid=OID, name=TEXT, base=TEXT, plain=TEXT, suffix=TEXT),
        _helper(2, "meridian_visible", oid=OID, visible=BOOL),
        _helper(4, "meridian_serials", relation=OID, attname=TEXT, sequence=TEXT),
        _helper(5, "meridian_rights", kind=TEXT, oid=OID, part=INT4, grants=TEXT),
        _helper(6, "meridian_members", oid=OID, roles=TEXT),
        _helper(7, "meridian_updatable", oid=OID, part=INT4, events=INT4),
        _helper(8, "meridian_sequences", oid=OID, last_value=INT8, last=INT8, called=BOOL),
        _helper(
            11,
            "meridian_keywords",
            word=TEXT,
            catcode=_CHAR,
            barelabel=BOOL,
            catdesc=TEXT,
            baredesc=TEXT,
        ),
        _helper(9, "meridian_name_lists", kind=TEXT, names=TEXT),
        _helper(10, "meridian_blocking", pid=INT4, blocked_by=INT4, place=INT4),
        _helper(3, "meridian_names", kind=TEXT, oid=OID, shown=TEXT, other=TEXT),
    )
}
"""What functions of the catalog look into (`sql/data/catalog_functions.txt`); no catalog lists
them.
"""


def system_catalog(schema: str, name: str) -> Table | None:
    """The relation, if it is known (G1)."""
    return _relations().get((schema, name)) or HELPER_RELATIONS.get((schema, name))


def is_unsupported_catalog(schema: str, name: str) -> bool:
    """Whether PostgreSQL has the relation, and Meridian does not (G1)."""
    return (schema, name) in _names() and (schema, name) not in _relations()


def system_catalogs() -> Mapping[tuple[str, str], Table]:
    """All known relations, by schema and name."""
    return _relations()


OBSERVED_CATALOGS: Final = frozenset(
    {
        "meridian_blocking", "pg_cursors", "pg_hba_file_rules", "pg_ident_file_mappings",
        "pg_locks", "pg_prepared_statements", "pg_stat_activity", "pg_stat_all_indexes",
        "pg_stat_all_tables", "pg_stat_archiver", "pg_stat_bgwriter", "pg_stat_checkpointer",
        "pg_stat_database", "pg_stat_gssapi", "pg_stat_io", "pg_stat_progress_copy",
        "pg_stat_progress_vacuum", "pg_stat_recovery_prefetch",
        "pg_stat_slru", "pg_stat_ssl", "pg_stat_statements", "pg_stat_statements_info",
        "pg_stat_sys_indexes", "pg_stat_sys_tables", "pg_stat_user_indexes",
        "pg_stat_user_tables", "pg_stat_wal",
    }
)  # fmt: skip
"""Relations of pg_catalog, and views of extensions, that show sessions, counts or files at this
moment, and not the catalog."""

_OBSERVED_SHARDS: Final = frozenset(
    {STATEMENT_ENGINES.shard, *(f"{PG_CATALOG}.{name}" for name in OBSERVED_CATALOGS)}
)


def shows_sessions(relation: Table) -> bool:
    """Whether it is one of those (`OBSERVED_CATALOGS`)."""
    return relation.shard in _OBSERVED_SHARDS


def is_system_catalog(table: Table) -> bool:
    """Whether a relation is one of pg_catalog or information_schema."""
    return table.schema in CATALOG_SCHEMAS


def is_catalog_view(table: Table) -> bool:
    """Whether the relation is a view in PostgreSQL."""
    return _kinds()[table.schema, table.name] == "v"


@cache
def _lines() -> tuple[tuple[str, str, int, str, str], ...]:
    found: list[tuple[str, str, int, str, str]] = []
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            head, _, columns = line.partition(": ")
            qualified, oid, kind = head.split()
            schema, _, name = qualified.partition(".")
            found.append((schema, name, int(oid), kind, columns))
    return tuple(found)


@cache
def _names() -> frozenset[tuple[str, str]]:
    return frozenset((schema, name) for schema, name, *_ in _lines())


@cache
def _kinds() -> Mapping[tuple[str, str], str]:
    return {(schema, name): kind for schema, name, _, kind, _ in _lines()}


@cache
def _relations() -> Mapping[tuple[str, str], Table]:
    known = COMPUTED_CATALOGS | EMPTY_CATALOGS
    return {
        (schema, name): Table(
            oid, schema, name, f"{schema}.{name}", tuple(map(_column, columns.split(", "))),
            timeline="",
        )
        for schema, name, oid, _, columns in _lines()
        if f"{schema}.{name}" in known
    }  # fmt: skip


@cache
def shown_types() -> Mapping[tuple[int, int], SqlType]:
    """The types of columns that are not shown as they are held (G2), by oid of their relation and
    number.
    """
    return {
        (oid, number): SqlType(kind)
        for _, _, oid, _, columns in _lines()
        for number, column in enumerate(columns.split(", "), 1)
        if is_catalog_type(kind := column.split(" ")[1].removesuffix("!"))
    }


def columns_as_shown(table: Table) -> Sequence[Column]:
    """The columns of any relation, those of catalogs with the types that they show (G2)."""
    if table.schema not in CATALOG_SCHEMAS:
        return table.columns
    shown = shown_types()
    return [
        replace(column, type=shown.get((table.oid, number), column.type))
        for number, column in enumerate(table.columns, 1)
    ]


@cache
def vector_columns() -> Mapping[tuple[int, int], SqlType]:
    """The columns that PostgreSQL shows as vectors, by oid of their relation and number."""
    return {
        column: type_ for column, type_ in shown_types().items() if type_.name in VECTOR_TYPE_OIDS
    }


def _column(text: str) -> Column:
    name, type_name = text.split(" ")
    return Column(name, _type(type_name.removesuffix("!")), type_name.endswith("!"))


def _type(name: str) -> SqlType:
    return plain_type(HELD_AS.get(name, name))
