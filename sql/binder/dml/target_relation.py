"""The target of a statement that writes: a table, or updatable views over one (rewriteTargetView).

    UPDATE outer ─▶ levels: outer ─▶ inner ─▶ table
                     each: its columns over those of the relation below, and a condition

INVARIANTS
  G1  a statement writes rows of `table`. A view maps column names, and only rows that it shows can
      be read, updated or deleted through it.
  G2  all columns of a view can be read. A column can be written if it is a plain column of the
      relation below, at every level.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sql.binder.dml.updatable_views import NO_COLUMNS, WriteEvent, not_updatable, refuse_view_query
from sql.binder.expressions.expression import condition
from sql.binder.queries.from_clause import pinned_item
from sql.binder.queries.target_list import settle_target, target_list
from sql.binder.resolve.catalog_lookup import refuse_fed_write, refuse_system_write
from sql.binder.resolve.relations import (
    aliased_columns,
    find_table,
    find_view,
    resolve_relation,
    table_item,
)
from sql.binder.resolve.updatable_query import NO_SINGLE_RELATION
from sql.binder.state import Binding, FromItem, Scope
from sql.binder.stored.column_expressions import default_value
from sql.binder.stored.views import inside_view, parse_view_query
from sql.catalog.catalog import Column, Table
from sql.catalog.objects import ViewDefinition
from sql.catalog.sequence_relation import is_sequence
from sql.catalog.sources import is_table_of_errors
from sql.errors import SqlError
from sql.parser.syntax import Node
from sql.plan.nodes import (
    ColumnId,
    ColumnRef,
    Const,
    Expr,
    Filter,
    Plan,
    PlanColumn,
    RelationId,
    Scan,
)
from sql.plan.traverse import substitute_columns

_DOING: Final = {
    WriteEvent.INSERT: "insert into",
    WriteEvent.UPDATE: "update",
    WriteEvent.MERGE: "merge into",
}


@dataclass(frozen=True, slots=True)
class _Level:
    """A view: `exprs` are its columns, and `condition` its WHERE, over the columns `below`."""

    view: ViewDefinition
    below: Sequence[PlanColumn]
    exprs: Sequence[Expr]
    condition: Expr | None

    def place(self, number: int) -> int | None:
        """Which column of the relation below a column is, if it is one."""
        expr = self.exprs[number]
        if not isinstance(expr, ColumnRef):
            return None
        found = [place for place, column in enumerate(self.below) if column.id == expr.id]
        return found[0] if found else None


@dataclass(frozen=True, slots=True)
class TargetRelation:
    """The target relation. `columns`: as the statement names them. `levels`: innermost view
    first.
    """

    table: Table
    schema: str
    name: str
    columns: tuple[Column, ...]
    levels: tuple[_Level, ...] = ()
    lent: Table | None = None
    """The table with the defaults that views set for its columns, if they set any."""

    @property
    def defaults(self) -> Table:
        """The table, with the defaults that apply to new rows."""
        return self.table if self.lent is None else self.lent

    @property
    def is_view(self) -> bool:
        """Whether the statement names a view."""
        return bool(self.levels)

    def ordinals(self, places: Sequence[int], event: WriteEvent) -> list[int]:
        """The ordinals of these columns in the table. 0A000 for one that cannot be written (G2)."""
        self.check(places, event)
        found = list(places)
        for level in reversed(self.levels):
            through = [level.place(number) for number in found]
            found = [number for number in through if number is not None]
            for at, number in enumerate(found):
                if number in found[:at]:
                    name = level.below[number].name
                    raise SqlError("42601", f'multiple assignments to same column "{name}"')
        return found

    def ordinal(self, place: int) -> int | None:
        """The ordinal of this column in the table, if it is a table column."""
        found: int | None = place
        for level in reversed(self.levels):
            found = None if found is None else level.place(found)
        return found

    def check(self, places: Iterable[int], event: WriteEvent) -> None:
        """0A000 if one of these columns cannot be written (G2)."""
        numbers = sorted(set(places))
        for level in reversed(self.levels):
            below: list[int] = []
            for number in numbers:
                place = level.place(number)
                if place is None:
                    raise _not_writable(level.view, number, event)
                below.append(place)
            numbers = sorted(set(below))

    def mapped(self, values: Mapping[int, Expr], event: WriteEvent) -> dict[int, Expr]:
        """New values of these columns, by their ordinals in the table."""
        if not self.levels:
            return dict(values)
        return dict(zip(self.ordinals(list(values), event), values.values(), strict=True))

    def default(self, binding: Binding, place: int, *, acts: bool) -> Expr:
        """The value of SET .. = DEFAULT; in a view only a default of the view itself counts.

        `acts`: sequences may be called for each row.
        """
        column = self.columns[place]
        if self.levels and all(place != at for at, _ in self.levels[-1].view.defaults):
            return Const(None, column.type)
        return default_value(binding, column, acts=acts)

    def item(self, binding: Binding, columns: Sequence[PlanColumn], alias: Node | None) -> FromItem:
        """The FROM item over a row of the table with these columns."""
        if not self.levels:
            return table_item(Scan(_ROWS, self.name, tuple(columns), ()), self.table, alias)
        shown = self.shown(columns)
        for number, expr in reversed([*enumerate(shown, 1)]):
            if isinstance(expr, ColumnRef):
                binding.origins[expr.id] = (self.levels[-1].view.oid, number)
        named = [(column.name, expr) for column, expr in zip(self.columns, shown, strict=True)]
        if alias is None:
            return FromItem(self.name, named, schema=self.schema)
        named = aliased_columns(named, alias, alias.aliasname)
        return FromItem(alias.aliasname, named, schema=self.schema, relation=self.name)

    def shown(self, columns: Sequence[PlanColumn]) -> list[Expr]:
        """The target's columns, computed from a row of the table."""
        return self._through(columns)[0]

    def seen(self, plan: Plan, columns: Sequence[PlanColumn]) -> Plan:
        """The rows of the table that the views show (G1)."""
        for asked in self.conditions(columns):
            plan = plan if asked is None else Filter(plan, asked)
        return plan

    def conditions(self, columns: Sequence[PlanColumn]) -> list[Expr | None]:
        """The conditions of the views on a row, innermost first."""
        return self._through(columns)[1]

    def _through(self, columns: Sequence[PlanColumn]) -> tuple[list[Expr], list[Expr | None]]:
        """The columns of a row, and the conditions of the levels."""
        exprs: list[Expr] = [ColumnRef(column.id, column.type) for column in columns]
        conditions: list[Expr | None] = []
        for level in self.levels:
            by: dict[ColumnId, Expr] = {
                column.id: expr for column, expr in zip(level.below, exprs, strict=True)
            }
            asked = level.condition
            conditions.append(None if asked is None else substitute_columns(asked, by))
            exprs = [substitute_columns(expr, by) for expr in level.exprs]
        return exprs, conditions


def resolve_target(
    binding: Binding, relation: Node, event: WriteEvent, actions: Sequence[WriteEvent] = ()
) -> TargetRelation:
    """The target that a RangeVar names. Raises 55000 for a view that is not updatable.

    `actions`: the actions of a MERGE.
    """
    view = find_view(binding, relation)
    if view is None:
        table = find_table(binding, relation)
        if is_sequence(table) and event is WriteEvent.MERGE:
            detail = "This operation is not supported for sequences."
            message = f'cannot execute MERGE on relation "{table.name}"'
            raise SqlError("0A000", message, detail=detail)
        if table.query is not None and event is WriteEvent.MERGE:
            detail = "This operation is not supported for materialized views."
            message = f'cannot execute MERGE on relation "{table.name}"'
            raise SqlError("0A000", message, detail=detail)
        if event is not WriteEvent.DELETE or not is_table_of_errors(table):
            refuse_system_write(table)
        return TargetRelation(table, table.schema, table.name, table.columns)
    is_merge = event is WriteEvent.MERGE
    return resolve_view_target(binding, view, actions if is_merge else (event,), merge=is_merge)


def resolve_view_target(
    binding: Binding, view: ViewDefinition, events: Sequence[WriteEvent], *, merge: bool = False
) -> TargetRelation:
    """The same for a view. `events`: the kinds of modification."""
    views, table = _views(binding, view, events, merge=merge)
    levels: list[_Level] = []
    columns = table.columns
    for inner in reversed(views):
        level = _level(binding, inner, columns)
        levels.append(level)
        columns = _columns(level, columns)
    _refuse_without_columns(levels, events, merge=merge)
    written = TargetRelation(table, view.schema, view.name, columns, tuple(levels))
    inserts = (
        (WriteEvent.MERGE if merge else WriteEvent.INSERT) if WriteEvent.INSERT in events else None
    )
    if not any(known.defaults for known in views):
        return written
    return replace(written, lent=_lent(written, inserts))


def _lent(written: TargetRelation, inserts: WriteEvent | None) -> Table:
    """The table with the defaults of the views, the outermost's before all. `inserts`: what is
    refused then, if a default is of a column that is not to be written (G2).
    """
    columns = list(written.table.columns)
    for height, level in enumerate(written.levels, 1):
        upto = replace(written, levels=written.levels[:height])
        for place, text in level.view.defaults:
            if inserts is not None:
                upto.check((place,), inserts)
            ordinal = upto.ordinal(place)
            if ordinal is not None:
                columns[ordinal] = _with_default(columns[ordinal], text)
    return replace(written.table, columns=tuple(columns))


def _with_default(column: Column, text: str) -> Column:
    return replace(
        column, has_default=True, default=None, expression=text, sequence=0, default_of_domain=False
    )


def writable_columns(binding: Binding, view: ViewDefinition) -> list[bool] | None:
    """Which columns of a view can be written; None if not even its rows can be deleted."""
    try:
        written = resolve_view_target(binding, view, (WriteEvent.DELETE,))
    except SqlError:
        return None
    return [written.ordinal(place) is not None for place in range(len(written.columns))]


def _views(
    binding: Binding, view: ViewDefinition, events: Sequence[WriteEvent], *, merge: bool
) -> tuple[list[ViewDefinition], Table]:
    """The views on the way to the table, the outermost first."""
    views: list[ViewDefinition] = []
    found: Table | ViewDefinition = view
    while isinstance(found, ViewDefinition):
        views.append(found)
        tree = parse_view_query(found.text)
        refuse_view_query(found, tree, events, merge=merge)
        with inside_view(binding, found):
            found = resolve_relation(binding, tree.fromClause[0])
    if found.query is not None:
        # No table whose rows anybody writes (M1 of `ddl/materialized_views.py`).
        asked = events or (WriteEvent.UPDATE,)
        raise not_updatable(views[-1], NO_SINGLE_RELATION, asked, merge=merge)
    refuse_fed_write(found)
    return views, found


def _level(binding: Binding, view: ViewDefinition, columns: Sequence[Column]) -> _Level:
    """The view, over columns like those of the relation that it selects from."""
    tree = parse_view_query(view.text)
    (node,) = tree.fromClause
    below = [binding.new_column(column.name, column.type) for column in columns]
    places, binding.places = binding.places, {}
    try:
        with inside_view(binding, view):
            found = resolve_relation(binding, node)
            named = [(made.name, ColumnRef(made.id, made.type)) for made in below]
            item = pinned_item(
                binding, node, found, FromItem(found.name, named, schema=found.schema)
            )
            scope = Scope(None, [item], ids={made.id for made in below})
            asked = None
            if tree.whereClause is not None:
                scope.clause = "WHERE"
                asked = condition(binding, scope, tree.whereClause, "WHERE")
            scope.clause = "SELECT"
            targets = target_list(binding, scope, tree.targetList or ())
            exprs = [settle_target(binding, target) for target in targets]
    finally:
        # Where something stands in the text of a view is nowhere in the statement's.
        binding.places = places
    return _Level(view, below, exprs, asked)


def _columns(level: _Level, below: Sequence[Column]) -> tuple[Column, ...]:
    """The columns of a view, those of the relation below by their names here."""
    columns: list[Column] = []
    defaults = dict(level.view.defaults)
    for number, (name, expr) in enumerate(zip(level.view.columns, level.exprs, strict=True)):
        place = level.place(number)
        made = Column(name, expr.type) if place is None else replace(below[place], name=name)
        columns.append(_with_default(made, defaults[number]) if number in defaults else made)
    return tuple(columns)


def _refuse_without_columns(
    levels: Sequence[_Level], events: Sequence[WriteEvent], *, merge: bool
) -> None:
    if not {WriteEvent.INSERT, WriteEvent.UPDATE} & {*events}:
        return
    for level in reversed(levels):
        if all(level.place(number) is None for number in range(len(level.exprs))):
            raise not_updatable(level.view, NO_COLUMNS, events, merge=merge)


def _not_writable(view: ViewDefinition, number: int, event: WriteEvent) -> SqlError:
    message = f'cannot {_DOING[event]} column "{view.columns[number]}" of view "{view.name}"'
    detail = "View columns that are not columns of their base relation are not updatable."
    return SqlError("0A000", message, detail=detail)


_ROWS: Final = RelationId("new")
