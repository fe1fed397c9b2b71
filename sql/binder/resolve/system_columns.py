"""System columns of relations: tableoid, and those of catalogs that tell no rows apart.

    tableoid                 the oid of the relation that the row is in
    xmin, xmax, cmin, cmax   of a catalog: constants, as of rows that PostgreSQL started with

INVARIANTS
  K1  a view, a subquery and a join have none. The text of a stored view uses none, either.
  K2  in a row that an outer join null-extends, they are NULL.

Not here: ctid, and xmin of tables. They would have to name row versions.
"""

from collections.abc import Mapping
from typing import Final

from sql.binder.resolve.row_presence import item_table, row_presence
from sql.binder.state import Binding, FromItem
from sql.catalog.catalog import Table
from sql.catalog.system_catalogs import is_system_catalog
from sql.plan.nodes import Case, Const, Expr
from sql.types.sql_type import INT8, OID, Value

SYSTEM_COLUMNS: Final = frozenset({"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"})

_OF_CATALOGS: Final[Mapping[str, Value]] = {"xmin": 1, "xmax": 0, "cmin": 0, "cmax": 0}


def system_column(binding: Binding, item: FromItem, name: str, place: int) -> Expr | None:
    """The column of the item, if its relation has it (K1)."""
    if name not in SYSTEM_COLUMNS or item.schema is None or item.again:
        return None
    if binding.pinned is not None or binding.recorded is not None:
        # A view's text names relations as they were called when it was created.
        return None
    table = item_table(binding, item)
    value = None if table is None else _value(table, name)
    if value is None:
        return None
    present = row_presence(binding, item, place + 1)
    if present is None:
        return value
    return Case(((present, value),), Const(None, value.type), value.type)


def _value(table: Table, name: str) -> Const | None:
    if name == "tableoid":
        return Const(table.oid, OID)
    if is_system_catalog(table) and name in _OF_CATALOGS:
        # As xid and cid are held (U1 of `catalog_types.py`).
        return Const(_OF_CATALOGS[name], INT8)
    return None
