"""The table of a FROM item, and the system columns that the statement names of it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from sql.catalog.catalog import Table
from sql.plan.nodes import ColumnId, Expr, PlanColumn, Scan


@dataclass(slots=True, eq=False)
class ScannedTable:
    """`scan`: None if a statement has just made the rows. `ids`: the columns of the item's query
    level. `columns`: by ordinal (`resolve/system_columns.py`). `xmax`: of rows just made or
    deleted; None: unknown. `deleted`: they are those that a DELETE returns. `written`: the commit
    of the statement will be theirs.
    """

    table: Table
    scan: Scan | None
    ids: set[ColumnId]
    columns: dict[int, PlanColumn] = field(default_factory=dict[int, PlanColumn])
    xmax: Expr | None = None
    deleted: bool = False
    written: bool = False

    def asked(self, ordinal: int, make: Callable[[], PlanColumn]) -> PlanColumn:
        """The column of that ordinal, created on first demand."""
        found = self.columns.get(ordinal)
        if found is None:
            found = self.columns[ordinal] = make()
            self.ids.add(found.id)
        return found
