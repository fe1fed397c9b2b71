"""System columns of relations: tableoid, ctid, xmin and their kin.

    name       of a table                             of a catalog
    tableoid   the oid of the relation that the row is in
    ctid       the row's identity, of its scan        a constant: it tells no rows apart
    xmin       the commit that wrote it, of its scan  a constant, as of rows PostgreSQL started with
    xmax, cmin, cmax                  0: nobody sees a row that somebody deletes

    t.ctid ─▶ ScannedTable.asked: a column, on first demand ─▶ with_system_columns: in the scan

The scan is made before any expression names such a column, and other statements should not pay for
it. The binder of the query level therefore adds what was asked for at the end.

INVARIANTS
  K1  a view, a subquery and a join have none; rows that a statement has just made have tableoid,
      xmax if it is known, and xmin if they will have the statement's commit.
  K2  in a row that an outer join null-extends, they are NULL.
  K3  every column that was asked for is added before the level's plan is returned.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from sql.binder.resolve.row_presence import item_table, row_presence
from sql.binder.scanned_tables import ScannedTable
from sql.binder.state import Binding, FromItem
from sql.catalog.catalog import Table
from sql.catalog.meridian_schema import is_server_state
from sql.catalog.system_catalogs import is_system_catalog
from sql.errors import not_supported
from sql.plan.nodes import (
    Case,
    ColumnRef,
    Const,
    Expr,
    Plan,
    PlanColumn,
    Project,
    Scan,
    output_columns,
)
from sql.plan.system_columns import CTID, XMIN
from sql.plan.traverse import rewrite_inputs
from sql.types.sql_type import INT8, OID, TEXT, SqlType

SYSTEM_COLUMNS: Final = frozenset({"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"})

_TYPES: Final = {
    name: SqlType(type_)
    for name, type_ in [
        ("ctid", "tid"), ("xmin", "xid"), ("xmax", "xid"), ("cmin", "cid"), ("cmax", "cid"),
    ]
}  # fmt: skip
"""As results show them; as they are held, see U1 of `sql/types/catalog_types.py`."""

_ZERO: Final = frozenset({"xmax", "cmin", "cmax"})

_OF_SCANS: Final = {"ctid": (CTID, TEXT), "xmin": (XMIN, INT8)}

_OF_CATALOGS: Final = {
    "xmin": Const(1, INT8),
    "xmax": Const(0, INT8),
    "cmin": Const(0, INT8),
    "cmax": Const(0, INT8),
    "ctid": Const("(0000000000,00001)", TEXT),
}
"""A tid is held with all its digits (T1 of `catalog_casts.py`)."""


def system_column(binding: Binding, item: FromItem, name: str, place: int) -> Expr | None:
    """The column of the item, if its relation has it (K1)."""
    if name not in SYSTEM_COLUMNS or item.schema is None or item.again:
        return None
    if item.scanned is not None and item.scanned.table.shard and name in _OF_SCANS:
        found = _of_scan(binding, item.scanned, name)
        if found is not None or not _is_constant(item.scanned.table):
            return found
    value = _constant(binding, item, name)
    if value is None:
        return None
    present = row_presence(binding, item, place + 1)
    made = value if present is None else _if(present, value)
    if name in _TYPES:
        binding.shown.note(made, _TYPES[name])
    return made


def _if(present: Expr, value: Expr) -> Expr:
    return Case(((present, value),), Const(None, value.type), value.type)


def _is_constant(table: Table) -> bool:
    return is_server_state(table) or is_system_catalog(table)


def _of_scan(binding: Binding, scanned: ScannedTable, name: str) -> Expr | None:
    if _is_constant(scanned.table):
        return None
    if scanned.scan is None and not (scanned.written and name == "xmin"):
        return None
    ordinal, type_ = _OF_SCANS[name]
    column = scanned.asked(ordinal, lambda: binding.new_column(name, type_))
    binding.shown.set_column(column.id, _TYPES[name])
    return ColumnRef(column.id, column.type)


def _constant(binding: Binding, item: FromItem, name: str) -> Expr | None:
    scanned = item.scanned
    table = item_table(binding, item) if scanned is None else scanned.table
    if table is None:
        return None
    if name == "tableoid":
        return Const(table.oid, OID)
    if _is_constant(table):
        known = _OF_CATALOGS[name]
        return Const(known.value, known.type)
    if scanned is None or name not in _ZERO:
        return None
    if name == "xmax" and (scanned.scan is None or scanned.deleted):
        return scanned.xmax
    return Const(0, INT8)


def with_system_columns(plan: Plan, tables: Sequence[ScannedTable]) -> Plan:
    """The plan of a level with the system columns that its expressions name (K3)."""
    asked = {id(one.scan): one for one in tables if one.columns}
    if not asked:
        return plan
    adding = _Adding(asked)
    made = adding.plan(plan)
    shown = {column.id for column in output_columns(made)}
    if asked or any(column.id not in shown for column in adding.added):
        raise not_supported("reading ctid or xmin of this table", None)
    return made


class _Adding:
    """Adds the columns to their scans, and hands them up."""

    def __init__(self, asked: dict[int, ScannedTable]) -> None:
        self._asked = asked
        self.added: list[PlanColumn] = []

    def plan(self, plan: Plan) -> Plan:
        if isinstance(plan, Scan):
            table = self._asked.pop(id(plan), None)
            return plan if table is None else self._scan(plan, table)
        if not self._asked:
            return plan
        before = len(self.added)
        made = rewrite_inputs(plan, self.plan)
        added = self.added[before:]
        if not added or not isinstance(made, Project):
            return made
        refs = [ColumnRef(column.id, column.type) for column in added]
        return replace(made, columns=(*made.columns, *added), exprs=(*made.exprs, *refs))

    def _scan(self, scan: Scan, table: ScannedTable) -> Scan:
        self.added += table.columns.values()
        columns = (*scan.columns, *table.columns.values())
        return replace(scan, columns=columns, ordinals=(*scan.ordinals, *table.columns))
