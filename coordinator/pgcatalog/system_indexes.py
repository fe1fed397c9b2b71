"""Rows of pg_class, pg_index and their kin for indexes and constraints of PostgreSQL's catalogs.

A row names the columns it has (W2 of `pgcatalog/relations.py`).
"""

from collections.abc import Iterator
from typing import Final

from coordinator.pgcatalog.named_row import NamedRow
from sql.catalog.oids import schema_oid
from sql.catalog.system_catalogs import PG_CATALOG, system_catalogs
from sql.catalog.system_indexes import (
    shared_catalogs,
    system_constraints,
    system_index_columns,
    system_indexes,
)
from sql.types.sql_type import Value

_BTREE: Final = 403
_GLOBAL_TABLESPACE: Final = 1664
_OWNER: Final = 10


def of_system_catalog(oid: int) -> dict[str, Value]:
    """What pg_class says about a catalog that has indexes."""
    if oid not in shared_catalogs():
        return {}
    return {"relhasindex": True} | _place(shared=shared_catalogs()[oid])


def _place(*, shared: bool) -> dict[str, Value]:
    return {"relisshared": shared, "reltablespace": _GLOBAL_TABLESPACE if shared else 0}


def system_index_classes() -> Iterator[NamedRow]:
    """The rows of pg_class."""
    for index in system_indexes().values():
        yield _place(shared=index.shared) | {
            "oid": index.oid,
            "relname": index.name,
            "relnamespace": schema_oid(PG_CATALOG),
            "relowner": _OWNER,
            "relkind": "i",
            "relam": _BTREE,
            "relnatts": len(index.numbers),
            "relpersistence": "p",
            "relispopulated": True,
            "reltuples": -1.0,
            "relreplident": "n",
        }


def system_index_rows() -> Iterator[NamedRow]:
    """The rows of pg_index."""
    for index in system_indexes().values():
        yield {
            "indexrelid": index.oid,
            "indrelid": index.table,
            "indnatts": len(index.numbers),
            "indnkeyatts": len(index.numbers),
            "indisunique": index.unique,
            "indisprimary": index.primary,
            "indimmediate": True,
            "indisvalid": True,
            "indisready": True,
            "indislive": True,
            "indkey": index.numbers,
            "indcollation": index.collations,
            "indclass": index.classes,
            "indoption": index.options,
        }


def system_index_attributes() -> Iterator[NamedRow]:
    """The rows of pg_attribute."""
    for column in system_index_columns():
        yield {
            "attrelid": column.index,
            "attname": column.name,
            "atttypid": column.type,
            "attnum": column.number,
            "atttypmod": -1,
            "attlen": column.size,
            "attbyval": column.by_value,
            "attalign": column.alignment,
            "attstorage": column.storage,
            "attcollation": column.collation,
            "attislocal": True,
        }


def system_constraint_rows() -> Iterator[NamedRow]:
    """The rows of pg_constraint."""
    for constraint in system_constraints():
        yield {
            "oid": constraint.oid,
            "conname": constraint.name,
            "connamespace": schema_oid(PG_CATALOG),
            "contype": constraint.kind,
            "conrelid": constraint.table,
            "conindid": constraint.index,
            "conkey": constraint.numbers,
            "convalidated": True,
            "conenforced": True,
            "conislocal": True,
            "connoinherit": constraint.kind != "n",
            "confupdtype": " ",
            "confdeltype": " ",
            "confmatchtype": " ",
        }


def system_index_texts() -> Iterator[NamedRow]:
    """The rows of pg_indexes."""
    tables = {table.oid: table.name for table in system_catalogs().values()}
    for index in system_indexes().values():
        yield {
            "schemaname": PG_CATALOG,
            "tablename": tables[index.table],
            "indexname": index.name,
            "tablespace": "pg_global" if index.shared else None,
            "indexdef": index.definition,
        }


def system_definitions() -> Iterator[tuple[int, int, str]]:
    """Oid, column and what pg_get_indexdef() and pg_get_constraintdef() print."""
    for index in system_indexes().values():
        yield index.oid, 0, index.definition
    for column in system_index_columns():
        yield column.index, column.number, column.name
    for constraint in system_constraints():
        yield constraint.oid, 0, constraint.definition
