"""Names in a query: what a FROM clause makes visible, and how a column reference finds it.

    Scope (one per query level) ──parent──▶ Scope of the query around it
      └ items: one per table, subquery, join; each has named columns

Follows parse_relation.c: lookup goes outwards level by level, the first level that knows a name
decides, two matches in one level are 42702.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from sql.binding import Binding
from sql.errors import SqlError, not_supported, undefined_column
from sql.plan import Aggregate, ColumnId, ColumnRef, Expr, PlanColumn, SetCall, WindowCall
from sql.presence import Side
from sql.renumbering import renumbered_expression
from sql.similar_names import similar_columns
from sql.traverse import has_subquery

if TYPE_CHECKING:
    from sql.select_result import SelectResult
    from sql.bind_windows import WindowDefinition

SYSTEM_COLUMNS: Final = frozenset({"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"})


@dataclass(frozen=True, slots=True)
class GroupingCall:
    """The column of a GROUPING call, where its arguments stand, and whether that is HAVING."""

    column: PlanColumn
    places: tuple[int | None, ...]
    in_having: bool


@dataclass(slots=True)
class Item:
    """Something in FROM. `columns` are expressions over the plan's columns: a merged column of
    FULL JOIN USING is a COALESCE. A join without alias has no name; its parts then lend their names
    only.
    """

    name: str | None
    columns: Sequence[tuple[str, Expr]]
    schema: str | None = None
    relation: str | None = None
    """The table's own name, when an alias hides it."""
    declared: Sequence[str] = ()
    """What the columns are called in the type of its rows, where an alias may call them otherwise.
    """
    names_visible: bool = True
    columns_visible: bool = True
    lateral_only: bool = False
    lateral_ok: bool = True
    """Whether a LATERAL reference to it is legal; not from the right side of RIGHT and FULL
    joins.
    """
    unexpanded: Sequence[tuple[str, Expr]] = ()
    """Columns that a name finds, and a star does not show."""
    whole: Expr | None = None
    """What the name itself means as a value."""
    is_target: bool = False
    """The table that an UPDATE or DELETE changes, which its FROM cannot see."""
    nullable: bool = False
    """Whether an outer join may have made its row up, of NULLs."""
    side: Side | None = None
    """The innermost such join's side; None where its plan is not at hand."""
    again: bool = False
    """Another name for what an item has already: OLD and NEW, a join's own."""

    @property
    def is_lateral(self) -> bool:
        """Whether it could be referred to if LATERAL were written (rte_visible_if_lateral)."""
        return self.lateral_only and self.lateral_ok and not self.is_target


@dataclass(slots=True)
class Scope:
    """One query level. `clause` names the part being bound, as messages call it."""

    parent: "Scope | None" = None
    items: list[Item] = field(default_factory=list[Item])
    ctes: dict[str, "SelectResult"] = field(default_factory=dict[str, "SelectResult"])
    ids: set[ColumnId] = field(default_factory=set[ColumnId])
    clause: str = "SELECT"
    aggregates: dict[Aggregate, PlanColumn] = field(default_factory=dict[Aggregate, PlanColumn])
    in_aggregate: bool = False
    acts: bool = False
    """What is being bound is computed once for each row that the statement yields."""
    reads_itself: bool = False
    """Whether FROM has the rows of a recursion whose step this is."""
    windows: dict[WindowCall, PlanColumn] = field(default_factory=dict[WindowCall, PlanColumn])
    named_windows: "dict[str, WindowDefinition]" = field(
        default_factory=dict[str, "WindowDefinition"]
    )
    groupings: dict[tuple[Expr, ...], GroupingCall] = field(
        default_factory=dict[tuple[Expr, ...], GroupingCall]
    )
    """GROUPING calls by their arguments."""
    set_calls: dict[SetCall, PlanColumn] = field(default_factory=dict[SetCall, PlanColumn])
    """Set-returning functions of the target list, a column each."""
    grouped_sets: dict[ColumnId, SetCall] = field(default_factory=dict[ColumnId, SetCall])
    """Those that are grouped by, by their columns."""
    without_sets: str | None = None
    """Where a set-returning function must not stand: CASE or COALESCE."""
    set_ordinality: PlanColumn | None = None
    window_part: str | None = None
    """`arguments` or `definition`, while such a part of a window is bound."""
    sides: list[Side] = field(default_factory=list[Side])
    """Those of outer joins in FROM whose rows may be made up."""
    lateral_active: bool = False
    lateral_used: bool = False
    merge_action: Expr | None = None
    """What MERGE_ACTION() answers, in RETURNING of MERGE."""

    def levels(self) -> Iterator["Scope"]:
        """This level, then those around it."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def visible(self) -> Iterator[Item]:
        """Items that expressions of this level may use now."""
        for item in self.items:
            if not item.lateral_only or self.lateral_active:
                yield item

    def add(self, items: Sequence[Item]) -> None:
        """Make items visible; 42712 when a name is there already."""
        check_conflicts(self.items, items)
        self.items.extend(items)


def hidden_target(item: Item) -> Item:
    """The target of an UPDATE or DELETE, as its FROM knows it: not to be referred to."""
    return replace(item, lateral_only=True, is_target=True)


def check_conflicts(left: Sequence[Item], right: Sequence[Item]) -> None:
    """42712 when both sides have an item of one name (two tables of different schemas may share
    it).
    """
    for item in right:
        if not item.names_visible or item.name is None:
            continue
        for other in left:
            if other.names_visible and other.name == item.name and not _distinct(other, item):
                raise SqlError("42712", f'table name "{item.name}" specified more than once')


def _distinct(left: Item, right: Item) -> bool:
    return (
        left.schema is not None
        and right.schema is not None
        and left.relation is None
        and right.relation is None
        and left.schema != right.schema
    )


def find_column(binding: Binding, scope: Scope, name: str, place: int) -> Expr | None:
    """An unqualified column (colNameToVar); None if no level has it."""
    for level in scope.levels():
        found: Expr | None = None
        for item in level.visible():
            if not item.columns_visible:
                continue
            match = in_item(item, name, place)
            if match is None:
                continue
            if found is not None:
                raise SqlError("42702", f'column reference "{name}" is ambiguous', place + 1)
            found = match
            _use(level, item, name, place)
        if found is not None:
            return referred(binding, found, place)
    return None


def in_item(item: Item, name: str, place: int) -> Expr | None:
    """The item's column of that name; 42702 if it has two."""
    found: Expr | None = None
    for column, expr in (*item.columns, *item.unexpanded):
        if column == name:
            if found is not None:
                raise SqlError("42702", f'column reference "{name}" is ambiguous', place + 1)
            found = expr
    return found


def _use(level: Scope, item: Item, name: str, place: int) -> None:
    if not item.lateral_only:
        return
    if item.is_target:
        message = f'invalid reference to FROM-clause entry for table "{item.name}"'
        hint = (
            f'There is an entry for table "{item.name}", but it cannot be referenced from this '
            "part of the query."
        )
        raise SqlError("42P10", message, place + 1, hint=hint)
    if not item.lateral_ok:
        raise SqlError(
            "42P10",
            f'invalid reference to FROM-clause entry for table "{item.name or name}"',
            place + 1,
            detail="The combining JOIN type must be INNER or LEFT for a LATERAL reference.",
        )
    level.lateral_used = True


def referred(binding: Binding, expr: Expr, place: int) -> Expr:
    """An item's column as an expression of its own, with its place."""
    if isinstance(expr, ColumnRef):
        ref = ColumnRef(expr.id, expr.type)
        binding.places[id(ref)] = (ref, place)
        return ref
    # A subquery that stands twice makes columns of its own in each place (P1 of `plan.py`).
    return renumbered_expression(expr, binding.new_id) if has_subquery(expr) else expr


def find_item(scope: Scope, schema: str | None, name: str, place: int) -> Item | None:
    """The item that `name.` or `schema.name.` means (refnameNamespaceItem)."""
    for level in scope.levels():
        found: Item | None = None
        for item in level.visible():
            if not item.names_visible or item.name != name:
                continue
            if schema is not None and (item.schema != schema or item.relation is not None):
                continue
            if found is not None:
                raise SqlError("42P09", f'table reference "{name}" is ambiguous', place + 1)
            found = item
        if found is not None:
            _use(level, found, name, place)
            return found
    return None


def qualified_column(
    binding: Binding, scope: Scope, qualifier: Sequence[str], name: str, place: int
) -> Expr:
    """`t.c` or `s.t.c`; 42P01 without such an item, 42703 without such a column."""
    item = required_item(binding, scope, qualifier, name, place)
    found = in_item(item, name, place)
    if found is not None:
        return referred(binding, found, place)
    if name in SYSTEM_COLUMNS and item.schema is not None:
        raise not_supported(f"the system column {name}", place + 1)
    raise _missing(scope, qualifier[-1], name, place)


def required_item(
    binding: Binding, scope: Scope, qualifier: Sequence[str], name: str, place: int
) -> Item:
    """The item of a qualified reference, or the error PostgreSQL gives."""
    if len(qualifier) > 2:
        _check_database(binding, (*qualifier, name), place)
    schema = qualifier[-2] if len(qualifier) > 1 else None
    item = find_item(scope, schema, qualifier[-1], place)
    if item is None:
        raise missing_item(scope, qualifier[-1], place)
    return item


def _check_database(binding: Binding, names: Sequence[str], place: int) -> None:
    shown = ".".join(names)
    if len(names) > 4:
        message = f"improper qualified name (too many dotted names): {shown}"
        raise SqlError("42601", message, place + 1)
    if names[0] != binding.context.database:
        message = f"cross-database references are not implemented: {shown}"
        raise SqlError("0A000", message, place + 1)


def missing_item(scope: Scope, name: str, place: int) -> SqlError:
    """42P01, with a word about an item that is there but hidden (errorMissingRTE)."""
    for level in scope.levels():
        for item in level.items:
            if name not in (item.name, item.relation):
                continue
            message = f'invalid reference to FROM-clause entry for table "{name}"'
            if item.name == name:
                detail = (
                    f'There is an entry for table "{name}", but it cannot be referenced from this '
                    "part of the query."
                )
                hint = "To reference that table, you must mark this subquery with LATERAL."
                shown = hint if item.is_lateral else None
                return SqlError("42P01", message, place + 1, detail=detail, hint=shown)
            hint = f'Perhaps you meant to reference the table alias "{item.name}".'
            return SqlError("42P01", message, place + 1, hint=hint)
    return SqlError("42P01", f'missing FROM-clause entry for table "{name}"', place + 1)


def missing_column(scope: Scope, name: str, place: int) -> SqlError:
    """42703 for an unqualified name, or 0A000 for a system column of a table in sight."""
    if name in SYSTEM_COLUMNS and any(
        item.schema is not None for level in scope.levels() for item in level.visible()
    ):
        return not_supported(f"the system column {name}", place + 1)
    return _missing(scope, None, name, place)


def _missing(scope: Scope, qualifier: str | None, name: str, place: int) -> SqlError:
    """42703, with the column that may have been meant (errorMissingColumn)."""
    shown = f'"{name}"' if qualifier is None else f"{qualifier}.{name}"
    items = [
        item
        for level in scope.levels()
        for item in level.items
        if item.name is not None and not item.again
    ]
    exact = [
        item
        for item in items
        if qualifier in (None, item.name) and any(name == column for column, _ in item.columns)
    ]
    if exact:
        return _out_of_reach(exact, name, shown, place)
    relations = [(item.name or "", [column for column, _ in item.columns]) for item in items]
    similar = [f'the column "{one}"' for one in similar_columns(relations, qualifier, name)]
    hint = f"Perhaps you meant to reference {' or '.join(similar)}." if similar else None
    return undefined_column(shown, place + 1, hint=hint)


def _out_of_reach(items: Sequence[Item], name: str, shown: str, place: int) -> SqlError:
    """42703 for a column that is there, in relations that may not be referred to."""
    elsewhere = "that cannot be referenced from this part of the query."
    if len(items) > 1:
        detail = f'There are columns named "{name}", but they are in tables {elsewhere}'
        near = "Try using a table-qualified name."
        return undefined_column(shown, place + 1, detail=detail, hint=near)
    (item,) = items
    detail = f'There is a column named "{name}" in table "{item.name}", but it {elsewhere[5:]}'
    hint: str | None = None
    if item.is_lateral:
        hint = "To reference that column, you must mark this subquery with LATERAL."
    elif item.names_visible:
        hint = "To reference that column, you must use a table-qualified name."
    return undefined_column(shown, place + 1, detail=detail, hint=hint)
