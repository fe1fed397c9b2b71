"""Whole-row references: a table's name in place of a value (whole-row Var).

    to_jsonb(t), count(t), t::text   the row as JSON, whether there is one, its text
    t IS NULL, t IS DISTINCT FROM u  evaluated on the columns
    (t).a, (t).*, ROW(t.*)           the columns themselves
    t, anywhere else                 a record of the table's row type (`rows.py`)

INVARIANTS
  O1  a row that an outer join null-extends is NULL as a whole, not a row of NULLs. A NOT NULL
      column of its table tells the two apart, or else a presence column that is added to its side
      of the join (`outer_join_presence.py`).
  O2  the whole row of a table gains and loses columns with the table, even inside a stored
      definition. No stored definition may therefore contain one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pglast import ast

from sql.binder.resolve.catalog_lookup import named_relation
from sql.binder.resolve.column_lookup import find_column, find_item, reference_at, required_item
from sql.binder.resolve.row_presence import row_presence
from sql.binder.resolve.row_types import row_type_of
from sql.binder.state import Binding, FromItem, Scope
from sql.catalog.catalog import Table
from sql.catalog.objects import ViewDefinition
from sql.catalog.system_catalogs import INFORMATION_SCHEMA, PG_CATALOG
from sql.errors import SqlError, not_supported
from sql.parser.syntax import Node, is_a, offset_to_position
from sql.plan.nodes import Case, Const, Expr
from sql.types.sql_type import RowType

_GENERATED: Final = "column generation expressions"
_CHECK: Final = "check constraints"
_KEPT: Final = frozenset({_GENERATED, _CHECK})


@dataclass(frozen=True, slots=True)
class WholeRow:
    """A whole row, column by column."""

    columns: Sequence[tuple[str, Expr]]
    place: int
    item: FromItem

    @property
    def of_table(self) -> bool:
        """Whether its type has a name in PostgreSQL: that of its table or view."""
        return self.item.schema is not None or self.item.again

    @property
    def names(self) -> list[str]:
        """The column names."""
        return [name for name, _ in self.columns]

    @property
    def exprs(self) -> list[Expr]:
        """The columns."""
        return [expr for _, expr in self.columns]

    def row_type(self, binding: Binding) -> RowType | None:
        """The row type of its table or view; None for the rows of a query, a function, a join."""
        schema, name = self.item.schema, self.item.relation or self.item.name
        if schema in (None, PG_CATALOG, INFORMATION_SCHEMA):
            return None
        found = named_relation(binding.context.catalog, schema or "", name or "")
        return row_type_of(found) if isinstance(found, Table | ViewDefinition) else None

    def present(self, binding: Binding) -> Expr | None:
        """Whether it is a real row; None if it always is (O1)."""
        return row_presence(binding, self.item, self.place)

    def or_null(self, binding: Binding, value: Expr) -> Expr:
        """The value, which is NULL for a null-extended row."""
        present = self.present(binding)
        if present is None:
            return value
        return Case(((present, value),), Const(None, value.type), value.type)


def whole_row(binding: Binding, scope: Scope, node: Node) -> WholeRow | None:
    """The row that `t` or `t.*` means; None for any other expression."""
    if not is_a(node, ast.ColumnRef):
        return None
    *qualifier, last = node.fields
    place = node.location
    if is_a(last, ast.A_Star):
        if not qualifier:
            return None
        item: FromItem | None = required_item(
            binding, scope, [f.sval for f in qualifier], "*", place
        )
    elif (
        qualifier
        or not _may_be_item(scope, last.sval)
        or find_column(binding, scope, last.sval, place) is not None
    ):
        return None
    else:
        item = find_item(scope, None, last.sval, place)
    if item is None or item.whole is not None:
        return None
    _check_kept(binding, scope, item, offset_to_position(place))
    names = item.declared or [name for name, _ in item.columns]
    columns = [
        (name, reference_at(binding, expr, place))
        for name, (_, expr) in zip(names, item.columns, strict=True)
    ]
    return WholeRow(columns, place + 1, item)


def _may_be_item(scope: Scope, name: str) -> bool:
    return any(item.name == name for level in scope.levels() for item in level.items)


def _check_kept(binding: Binding, scope: Scope, item: FromItem, place: int | None) -> None:
    """O2."""
    if scope.clause == _GENERATED:
        message = "cannot use whole-row variable in column generation expression"
        detail = "This would cause the generated column to depend on its own value."
        raise SqlError("42P17", message, place, detail=detail)
    if scope.clause == _CHECK:
        raise not_supported("a whole row in a constraint or an index", place)
    if binding.recorded is not None and item.schema is not None:
        raise not_supported("a whole row of a table in a view", place)


def expanded_row_fields(binding: Binding, scope: Scope, row: Node) -> list[Node]:
    """The fields of a ROW(..), with each `t.*` expanded (transformExpressionList)."""
    return [part for node in row.args or () for part in _expanded(binding, scope, node)]


def _expanded(binding: Binding, scope: Scope, node: Node) -> Sequence[Node]:
    *qualifier, last = node.fields if is_a(node, ast.ColumnRef) else (node,)
    if not qualifier or not is_a(last, ast.A_Star):
        return [node]
    place = node.location
    item = required_item(binding, scope, [field.sval for field in qualifier], "*", place)
    if scope.clause in _KEPT:
        raise not_supported(
            "all columns of a table in a constraint or an index", offset_to_position(place)
        )
    names = [name for name, _ in item.columns]
    if len(set(names)) < len(names):
        raise not_supported("two columns of one name in a row value", offset_to_position(place))
    return [
        ast.ColumnRef(fields=(*qualifier, ast.String(sval=name)), location=node.location)
        for name in names
    ]
