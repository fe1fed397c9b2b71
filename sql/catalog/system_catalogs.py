"""System catalogs (pg_catalog) and the views of information_schema, as the binder sees them.

    sql/data/catalogs.txt ─▶ Table(schema pg_catalog | information_schema, oid as in PostgreSQL)

    schema.name oid kind: column type, ..    `!` behind a type: never NULL

Their rows are computed from the catalog that a statement is bound with
(`coordinator/pgcatalog/relations.py`). So they show what the statement would find: the
transaction's own DDL, and the past under AS OF.

INVARIANTS
  G1  a relation is known only if its rows are computed (FILLED), or if the objects that it lists do
      not exist here (EMPTY). All others are refused, never shown empty.
  G2  columns of types that only catalogs have are shown in the nearest type: node trees as text,
      vectors as arrays.

The file is written by `tests/unit/sql/postgresql_catalogs.py`, from a real server.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from sql.catalog.catalog import Column, Table
from sql.catalog.meridian_schema import SYSTEM_SCHEMA_NAMES
from sql.types.sql_type import BOOL, INT4, INT8, OID, TEXT, VECTOR_TYPE_OIDS, SqlType, plain_type

PG_CATALOG: Final = "pg_catalog"
INFORMATION_SCHEMA: Final = "information_schema"
CATALOG_SCHEMAS: Final = (PG_CATALOG, INFORMATION_SCHEMA)

SYSTEM_SCHEMAS: Final = frozenset({*CATALOG_SCHEMAS, *SYSTEM_SCHEMA_NAMES})
"""They are always there, and nobody creates or drops anything in them."""

COMPUTED_CATALOGS: Final = frozenset(
    {
        f"{PG_CATALOG}.{name}"
        for name in (
            "pg_am", "pg_attrdef", "pg_attribute", "pg_auth_members", "pg_authid",
            "pg_available_extension_versions", "pg_available_extensions", "pg_extension",
            "pg_cast", "pg_class", "pg_collation", "pg_constraint", "pg_database",
            "pg_default_acl", "pg_depend", "pg_description", "pg_enum", "pg_group",
            "pg_index", "pg_indexes", "pg_language", "pg_locks", "pg_namespace", "pg_opclass",
            "pg_proc", "pg_rewrite", "pg_roles", "pg_sequence", "pg_sequences",
            "pg_settings", "pg_shadow", "pg_shdescription", "pg_stat_all_tables",
            "pg_stat_sys_tables", "pg_stat_user_indexes", "pg_stat_user_tables", "pg_tables",
            "pg_tablespace", "pg_type", "pg_user", "pg_views",
        )
    }
    | {
        f"{INFORMATION_SCHEMA}.{name}"
        for name in (
            "administrable_role_authorizations", "applicable_roles",
            "column_privileges", "columns", "domain_constraints", "domains",
            "enabled_roles", "key_column_usage", "parameters",
            "referential_constraints", "role_column_grants", "role_table_grants",
            "role_udt_grants", "role_usage_grants", "routines", "schemata", "sequences",
            "table_constraints", "table_privileges", "tables", "udt_privileges",
            "usage_privileges", "views",
        )
    }
)  # fmt: skip

EMPTY_CATALOGS: Final = frozenset(
    {
        f"{PG_CATALOG}.{name}"
        for name in (
            "pg_db_role_setting", "pg_event_trigger",
            "pg_foreign_data_wrapper", "pg_foreign_server", "pg_foreign_table",
            "pg_inherits", "pg_init_privs", "pg_largeobject_metadata", "pg_matviews",
            "pg_partitioned_table", "pg_policies", "pg_policy", "pg_publication",
            "pg_publication_namespace", "pg_publication_rel", "pg_publication_tables", "pg_range",
            "pg_prepared_xacts", "pg_replication_slots", "pg_rules", "pg_seclabel", "pg_shseclabel",
            "pg_stat_replication", "pg_stat_subscription", "pg_stat_user_functions",
            "pg_statistic", "pg_statistic_ext", "pg_stats", "pg_stats_ext", "pg_subscription",
            "pg_transform", "pg_trigger",
            "pg_user_mapping", "pg_user_mappings",
        )
    }
    | {
        f"{INFORMATION_SCHEMA}.{name}"
        for name in ("foreign_tables", "triggers", "user_mappings")
    }
)  # fmt: skip

_FILE: Final = Path(__file__).parents[1] / "data" / "catalogs.txt"
_NEAREST: Final = {
    "xid": "int8", "regtype": "text", "pg_node_tree": "text",
    "int2vector": "_int2", "oidvector": "_oid", "_aclitem": "_text",
    "anyarray": "text", "inet": "text", "pg_lsn": "text", "_regtype": "_text",
    "pg_ndistinct": "text", "pg_dependencies": "text", "pg_mcv_list": "text",
}  # fmt: skip


def _helper(number: int, name: str, /, **columns: SqlType) -> Table:
    made = tuple(Column(column, type_) for column, type_ in columns.items())
    shard = f"{PG_CATALOG}.{name}"
    return Table(_HELPER_OIDS + number, PG_CATALOG, name, shard, made, timeline="")


_HELPER_OIDS: Final = 14_900
HELPER_RELATIONS: Final = {
    (PG_CATALOG, table.name): table
    for table in (
        _helper(0, "meridian_definitions", oid=OID, part=INT4, definition=TEXT),
        _helper(1, "meridian_type_names", oid=OID, name=TEXT, base=TEXT, plain=TEXT, suffix=TEXT),
        _helper(2, "meridian_visible", oid=OID, visible=BOOL),
        _helper(4, "meridian_serials", relation=OID, attname=TEXT, sequence=TEXT),
        _helper(5, "meridian_rights", kind=TEXT, oid=OID, part=INT4, grants=TEXT),
        _helper(6, "meridian_members", oid=OID, roles=TEXT),
        _helper(7, "meridian_updatable", oid=OID, part=INT4, events=INT4),
        _helper(8, "meridian_sequences", oid=OID, last_value=INT8),
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


OBSERVED_CATALOGS: Final = frozenset({"pg_locks", "meridian_blocking"})
"""Relations of pg_catalog that show sessions at this moment, and not the catalog."""


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
def vector_columns() -> Mapping[tuple[int, int], SqlType]:
    """The columns that PostgreSQL shows as vectors, by oid of their relation and number."""
    return {
        (oid, number): SqlType(kind)
        for _, _, oid, _, columns in _lines()
        for number, column in enumerate(columns.split(", "), 1)
        if (kind := column.split(" ")[1].removesuffix("!")) in VECTOR_TYPE_OIDS
    }


def _column(text: str) -> Column:
    name, type_name = text.split(" ")
    return Column(name, _type(type_name.removesuffix("!")), type_name.endswith("!"))


def _type(name: str) -> SqlType:
    return plain_type(_NEAREST.get(name, name))
