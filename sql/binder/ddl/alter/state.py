"""The state of a table between two actions of one ALTER TABLE (`alter/actions.py`)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sql.binder.ddl.foreign_keys import ForeignKeyNode
from sql.binder.ddl.keys import KeyNode
from sql.binder.resolve.system_columns import SYSTEM_COLUMNS
from sql.binder.state import Binding
from sql.binder.stored.table_changes import with_column_definition
from sql.catalog.catalog import Column, Table
from sql.catalog.objects import CatalogObject, Comment, SequenceDefinition
from sql.errors import SqlError
from sql.parser.syntax import Node
from sql.plan.nodes import Expr, Scan
from sql.statements.ddl import Validation


@dataclass(slots=True)
class AlterTableState:
    """A table being altered: the values of its new columns, and the validations still to do."""

    binding: Binding
    before: Table
    table: Table
    source: Scan
    values: list[Expr]
    rewrites: bool = False
    required: list[str] = field(default_factory=list[str])
    checks: list[str] = field(default_factory=list[str])
    domains: list[str] = field(default_factory=list[str])
    """Columns that now have a domain."""
    retyped: list[str] = field(default_factory=list[str])
    """Columns that now have another type."""
    keys: list[Sequence[KeyNode]] = field(default_factory=list[Sequence[KeyNode]])
    """New keys, by action."""
    foreign: list[ForeignKeyNode] = field(default_factory=list[ForeignKeyNode])
    looked: list[Validation] = field(default_factory=list[Validation])
    new_checks: list[Node] = field(default_factory=list[Node])
    sequences: dict[str, SequenceDefinition] = field(default_factory=dict[str, SequenceDefinition])
    dropped: list[CatalogObject] = field(default_factory=list[CatalogObject])
    children: dict[int, Table] = field(default_factory=dict[int, Table])
    """Other tables, without the foreign keys that CASCADE dropped."""
    changed: list[CatalogObject] = field(default_factory=list[CatalogObject])
    """Sequences of identity columns with other options."""
    comments: list[Comment] = field(default_factory=list[Comment])
    """The comments of renamed constraints."""
    fresh: frozenset[int] = frozenset()
    """Those of them that begin anew."""
    notices: list[tuple[str, str, str | None]] = field(
        default_factory=list[tuple[str, str, str | None]]
    )

    def ordinal(self, name: str) -> int:
        """A column's ordinal, or 42703; 0A000 for a system column."""
        for place, column in enumerate(self.table.columns):
            if column.name == name:
                return place
        if name in SYSTEM_COLUMNS:
            raise SqlError("0A000", f'cannot alter system column "{name}"')
        message = f'column "{name}" of relation "{self.table.name}" does not exist'
        raise SqlError("42703", message)

    def column(self, name: str) -> Column:
        """A column, or 42703."""
        return self.table.columns[self.ordinal(name)]

    def define(self, name: str, change: Callable[[Column], Column]) -> None:
        """Change a column's properties."""
        ordinal = self.ordinal(name)
        column = change(self.table.columns[ordinal])
        self.table = with_column_definition(self.table, ordinal, column)
