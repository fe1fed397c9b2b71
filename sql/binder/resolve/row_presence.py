"""Tell a real row of a FROM item from one that an outer join null-extends.

INVARIANTS
  R1  a NOT NULL column of the item's table tells the two apart, or else a presence column that is
      added to its side of the join (`outer_join_presence.py`).
"""

from sql.binder.state import Binding, FromItem
from sql.catalog.catalog import Table
from sql.errors import not_supported
from sql.plan.nodes import ColumnRef, Expr, IsTest, Test
from sql.types.sql_type import BOOL


def row_presence(binding: Binding, item: FromItem, place: int) -> Expr | None:
    """Whether it is a real row; None if it always is. 0A000 where that is unknown (R1)."""
    if not item.nullable:
        return None
    known = _required(binding, item)
    if known is None and item.side is not None:
        known = item.side.asked(binding, place - 1)
    if known is None:
        what = "the whole row of a table without a NOT NULL column in an outer join"
        raise not_supported(what, place)
    return IsTest(Test.IS_NOT_NULL, known, BOOL)


def item_table(binding: Binding, item: FromItem) -> Table | None:
    """The table that an item is of; None for other items, and in the text of a view."""
    return binding.tables.get((item.schema or "", item.relation or item.name or ""))


def _required(binding: Binding, item: FromItem) -> Expr | None:
    """A column that is NULL only where the row of the item was made up."""
    table = item_table(binding, item)
    if table is None:
        return None
    required = {
        (table.oid, table.number_of(ordinal))
        for ordinal, column in enumerate(table.columns)
        if column.not_null
    }
    for _, expr in item.columns:
        if isinstance(expr, ColumnRef) and binding.origins.get(expr.id) in required:
            return expr
    return None
