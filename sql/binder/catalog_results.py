"""Expressions and columns of types that only catalogs have (`sql/types/catalog_types.py`).

'5'::xid, an expression of int8 ─▶ a column of int8 ─▶ the result says xid
"""

from dataclasses import dataclass, field

from sql.plan.nodes import ColumnId, ColumnRef, Expr
from sql.types.sql_type import SqlType


@dataclass(slots=True)
class CatalogResults:
    """The types that results show, by the identity of expressions and by columns."""

    _exprs: dict[int, tuple[Expr, SqlType]] = field(default_factory=dict[int, tuple[Expr, SqlType]])
    _columns: dict[ColumnId, SqlType] = field(default_factory=dict[ColumnId, SqlType])

    def note(self, expr: Expr, type_: SqlType) -> None:
        """Remember the type of an expression, which is kept alive."""
        self._exprs[id(expr)] = expr, type_

    def of(self, expr: Expr) -> SqlType | None:
        """The type of an expression; None if it is its own."""
        if isinstance(expr, ColumnRef):
            return self._columns.get(expr.id)
        found = self._exprs.get(id(expr))
        return None if found is None else found[1]

    def of_column(self, column: ColumnId) -> SqlType | None:
        """That of a column."""
        return self._columns.get(column)

    def set_column(self, column: ColumnId, type_: SqlType | None) -> None:
        """The column shows an expression of that type."""
        if type_ is not None:
            self._columns[column] = type_
