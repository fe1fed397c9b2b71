"""FROM: bind tables, subqueries, CTE references, functions and joins to a plan and its FROM items.

Source: PostgreSQL's parse_clause.c (transformFromClause).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from pglast import ast
from pglast.enums import JoinType

from sql.binder.expressions.calls import operator
from sql.binder.expressions.set_returning import from_function
from sql.binder.expressions.system_sets import system_set_subquery
from sql.binder.queries.json_table import json_table
from sql.binder.queries.tablesample import check_sample, sample_rows
from sql.binder.resolve.coercion import coerce_implicitly, to_boolean
from sql.binder.resolve.query_result import resolve_unknown_columns
from sql.binder.resolve.relations import (
    aliased_columns,
    aliased_item,
    resolve_relation,
    table_item,
    table_scan,
)
from sql.binder.resolve.unified_types import select_common_type, to_common_type
from sql.binder.scanned_tables import ScannedTable
from sql.binder.state import (
    Binding,
    FromItem,
    NullSupplyingSide,
    Scope,
    SelectResult,
    check_conflicts,
)
from sql.binder.stored.view_reads import follows_inputs, reads_definition, stored_definition_plan
from sql.binder.stored.views import view_item, view_plan
from sql.catalog.catalog import Table
from sql.catalog.objects import ViewDefinition
from sql.errors import SqlError, not_supported
from sql.parser.syntax import Node, offset_to_position, string_values, unsupported_at
from sql.plan.conditions import conjunction
from sql.plan.nodes import (
    Coalesce,
    Const,
    CteScan,
    Expr,
    Join,
    JoinKind,
    Plan,
    Project,
    Scan,
)
from sql.plan.projections import column_reference
from sql.plan.traverse import is_volatile_plan
from sql.types.sql_type import UNKNOWN

_KINDS: Final = {
    JoinType.JOIN_INNER: JoinKind.INNER,
    JoinType.JOIN_LEFT: JoinKind.LEFT,
    JoinType.JOIN_RIGHT: JoinKind.RIGHT,
    JoinType.JOIN_FULL: JoinKind.FULL,
}


def from_clause(binding: Binding, scope: Scope, nodes: Sequence[Node]) -> Plan:
    """Bind a FROM list into the scope; several entries are cross joined."""
    plan: Plan | None = None
    for node in nodes:
        scope.lateral_used = False
        right, items = from_item(binding, scope, node)
        check_conflicts(scope.items, items)
        # Later entries see these only through LATERAL.
        scope.items.extend([replace(item, lateral_only=True, lateral_ok=True) for item in items])
        if plan is None:
            plan = right
        else:
            plan = Join(JoinKind.CROSS, plan, right, None, lateral=scope.lateral_used)
    for item in scope.items:
        item.lateral_only = False
    assert plan is not None, "a FROM clause has an entry"
    return plan


def from_item(binding: Binding, scope: Scope, node: Node) -> tuple[Plan, list[FromItem]]:
    """One entry of FROM."""
    binder = _ITEMS.get(type(node))
    if binder is None:
        raise unsupported_at("this FROM item", node)
    return binder(binding, scope, node)


# --- tables ------------------------------------------------------------------------------------


def _table(binding: Binding, scope: Scope, node: Node) -> tuple[Plan, list[FromItem]]:
    if node.schemaname is None:
        for level in scope.levels():
            cte = level.ctes.get(node.relname)
            if cte is not None and not cte.returns:
                message = f'WITH query "{node.relname}" does not have a RETURNING clause'
                raise SqlError("0A000", message, offset_to_position(node.location))
            if cte is not None:
                scope.reads_itself = scope.reads_itself or cte.shared in binding.work_tables
                return _cte(binding, scope, node, cte)
    found = resolve_relation(binding, node)
    if isinstance(found, ViewDefinition):
        return _view(binding, scope, node, found)
    if found.query is not None and reads_definition(binding, found):
        plan, columns = stored_definition_plan(binding, found)
        scope.ids.update([column.id for column in columns])
        read = [(column.name, column_reference(column)) for column in columns]
        return plan, [pinned_item(binding, node, found, FromItem(found.name, read))]
    binding.tables[found.schema, found.name] = found
    scanned = table_scan(binding, found)
    scope.ids.update([column.id for column in scanned.columns])
    item = pinned_item(binding, node, found, table_item(scanned, found, None))
    if found.query is not None and follows_inputs(found):
        # It has what its definition has: columns, and nothing that only a table has.
        return scanned, [item]
    item.scanned = ScannedTable(found, scanned, scope.ids)
    scope.scanned.append(item.scanned)
    return scanned, [item]


def _view(
    binding: Binding, scope: Scope, node: Node, view: ViewDefinition
) -> tuple[Plan, list[FromItem]]:
    # In the text of a view the outermost one has been refused, or only catalogs look at it: whose
    # rows are kept as long as nobody reads settings (X3 of `coordinator/pgcatalog/syscache.py`).
    if not binding.of_kept_text:
        restricted = binding.context.settings.get("restrict_nonsystem_relation_kind", "")
        if "view" in restricted:
            raise SqlError("55000", f'access to non-system view "{view.name}" is restricted')
    plan, columns = view_plan(binding, view)
    scope.ids.update([column.id for column in columns])
    return plan, [pinned_item(binding, node, view, view_item(view, columns))]


_GONE: Final = Const(None, UNKNOWN)


def pinned_item(
    binding: Binding, node: Node, found: Table | ViewDefinition, item: FromItem
) -> FromItem:
    """The item under its alias; in a view's text with the column names of the view's creation."""
    columns, name, schema = list(item.columns), found.name, found.schema
    key = (node.schemaname or "", node.relname)
    if binding.pinned is not None and key in binding.pinned:
        _, names, numbers = binding.pinned[key]
        if isinstance(found, Table):
            by_number = {found.number_of(at_): ref for at_, (_, ref) in enumerate(columns)}
        else:
            by_number = {at_ + 1: ref for at_, (_, ref) in enumerate(columns)}
        # One that is gone is used by nobody; it keeps the place of the others in lists of aliases.
        columns = [
            (was, by_number.get(number, _GONE)) for was, number in zip(names, numbers, strict=True)
        ]
        name, schema = node.relname, node.schemaname or schema
    if node.alias is None:
        return FromItem(name, columns, schema=schema)
    return aliased_item(columns, node.alias, schema, name)


def _cte(
    binding: Binding, scope: Scope, node: Node, cte: "SelectResult"
) -> tuple[Plan, list[FromItem]]:
    """A use of a CTE: a scan of its rows, or its plan under a projection with ids of its own
    (P1 of `nodes.py`).
    """
    columns = cte.columns
    made = tuple([binding.new_column(column.name, column.type) for column in columns])
    for fresh, column in zip(made, columns, strict=True):
        binding.follow(fresh.id, column.id)
    if cte.shared is None and is_volatile_plan(cte.plan):
        cte.volatile_uses += 1
        if cte.volatile_uses > 1:
            # Two plans of it would answer in two ways.
            what = "reading a WITH query with a volatile function twice in a statement that writes"
            raise not_supported(what, offset_to_position(node.location))
    wrapped: Plan = Project(cte.plan, made, tuple([column_reference(column) for column in columns]))
    more = tuple([binding.new_column(column.name, column.type) for column in cte.unexpanded])
    if cte.shared is not None:
        wrapped = CteScan(cte.shared, node.relname, (*made, *more))
    scope.ids.update([column.id for column in (*made, *more)])
    name = node.relname if node.alias is None else node.alias.aliasname
    named: list[tuple[str, Expr]] = [(column.name, column_reference(column)) for column in made]
    if node.alias is not None:
        named = aliased_columns(named, node.alias, name)
    # The last of them is nobody's to name.
    hidden = [(column.name, column_reference(column)) for column in more[:-1]]
    return wrapped, [FromItem(name, named, unexpanded=hidden)]


def _sample(binding: Binding, scope: Scope, node: Node) -> tuple[Plan, list[FromItem]]:
    plan, items = _table(binding, scope, node.relation)
    if not isinstance(plan, Scan):
        message = "TABLESAMPLE clause can only be applied to tables and materialized views"
        raise SqlError("0A000", message, offset_to_position(node.relation.location))
    check_sample(node)
    if items[0].scanned is None:
        raise not_supported("TABLESAMPLE of a materialized view that follows its inputs")
    return sample_rows(binding, scope, node, plan), items


def _subselect(binding: Binding, scope: Scope, node: Node) -> tuple[Plan, list[FromItem]]:
    active, clause = scope.lateral_active, scope.clause
    scope.lateral_active, scope.clause = bool(node.lateral), "FROM"
    try:
        result = binding.bind_query(binding, node.subquery, scope)
    finally:
        scope.lateral_active, scope.clause = active, clause
    resolve_unknown_columns(binding, result)
    scope.ids.update([column.id for column in result.columns])
    named: list[tuple[str, Expr]] = [
        (column.name, column_reference(column)) for column in result.columns
    ]
    if node.alias is None:
        return result.plan, [FromItem(None, named, names_visible=False)]
    named = aliased_columns(named, node.alias, node.alias.aliasname)
    return result.plan, [FromItem(node.alias.aliasname, named)]


# --- joins -------------------------------------------------------------------------------------


def _join(binding: Binding, scope: Scope, node: Node) -> tuple[Plan, list[FromItem]]:
    kind = _KINDS[node.jointype]
    left, left_items = from_item(binding, scope, node.larg)
    right, right_items, lateral = _right_side(binding, scope, node, kind, left_items)
    check_conflicts(left_items, right_items)
    left_columns, right_columns = _columns(left_items), _columns(right_items)
    using = _using_names(node, left_columns, right_columns)
    condition: Expr | None = None
    merged: list[tuple[str, Expr]] = []
    if using:
        condition, merged = _using(binding, kind, using, left_columns, right_columns)
    elif node.quals is not None:
        condition = _on(binding, scope, node, [*left_items, *right_items])
    if kind in (JoinKind.RIGHT, JoinKind.FULL):
        left_items = _made_up(scope, left, left_items)
    if kind in (JoinKind.LEFT, JoinKind.FULL):
        right_items = _made_up(scope, right, right_items)
    if condition is None and kind is JoinKind.INNER:
        kind = JoinKind.CROSS
    plan = Join(kind, left, right, condition, lateral=lateral)
    rest = [pair for pair in (*left_columns, *right_columns) if pair[0] not in using]
    return plan, _joined_items(node, [*left_items, *right_items], merged, [*merged, *rest])


def _made_up(scope: Scope, plan: Plan, items: Sequence[FromItem]) -> list[FromItem]:
    """The items of a side whose rows the join may make up; a join inside has done so before."""
    side = NullSupplyingSide(plan, scope.ids)
    scope.sides.append(side)
    return [item if item.nullable else replace(item, nullable=True, side=side) for item in items]


def _right_side(
    binding: Binding, scope: Scope, node: Node, kind: JoinKind, left_items: Sequence[FromItem]
) -> tuple[Plan, list[FromItem], bool]:
    legal = kind in (JoinKind.INNER, JoinKind.LEFT)
    saved, used = scope.items, scope.lateral_used
    offered = [replace(item, lateral_only=True, lateral_ok=legal) for item in left_items]
    scope.items = [*saved, *offered]
    scope.lateral_used = False
    try:
        right, right_items = from_item(binding, scope, node.rarg)
        lateral = scope.lateral_used
    finally:
        scope.items = saved
        scope.lateral_used = used or scope.lateral_used
    return right, right_items, lateral


def _columns(items: Sequence[FromItem]) -> list[tuple[str, Expr]]:
    return [pair for item in items if item.columns_visible for pair in item.columns]


def _on(binding: Binding, scope: Scope, node: Node, items: list[FromItem]) -> Expr:
    saved, clause = scope.items, scope.clause
    scope.items, scope.clause = items, "JOIN/ON"
    try:
        return to_boolean(binding, binding.expression(scope, node.quals), node.quals, "JOIN/ON")
    finally:
        scope.items, scope.clause = saved, clause


def _using_names(
    node: Node, left: Sequence[tuple[str, Expr]], right: Sequence[tuple[str, Expr]]
) -> tuple[str, ...]:
    if node.isNatural:
        there = {name for name, _ in right}
        return tuple(dict.fromkeys(name for name, _ in left if name in there))
    names = string_values(node.usingClause)
    for index, name in enumerate(names):
        if name in names[:index]:
            message = f'column name "{name}" appears more than once in USING clause'
            raise SqlError("42701", message)
    return names


def _using(
    binding: Binding,
    kind: JoinKind,
    names: Sequence[str],
    left: Sequence[tuple[str, Expr]],
    right: Sequence[tuple[str, Expr]],
) -> tuple[Expr, list[tuple[str, Expr]]]:
    """The equalities of USING, and its merged columns."""
    pairs = [(_side(left, name, "left"), _side(right, name, "right")) for name in names]
    parts = [operator(binding, "=", pair, [None, None], None) for pair in pairs]
    merged = [
        (name, _merged(binding, kind, *pair)) for name, pair in zip(names, pairs, strict=True)
    ]
    return conjunction(parts), merged


def _side(columns: Sequence[tuple[str, Expr]], name: str, side: str) -> Expr:
    found = [expr for column, expr in columns if column == name]
    if not found:
        message = f'column "{name}" specified in USING clause does not exist in {side} table'
        raise SqlError("42703", message)
    if len(found) > 1:
        message = f'common column name "{name}" appears more than once in {side} table'
        raise SqlError("42702", message)
    return found[0]


def _merged(binding: Binding, kind: JoinKind, left: Expr, right: Expr) -> Expr:
    """What a USING column is: the side that is never padded with NULLs, with the modifier that
    both have (buildMergedJoinVar).
    """
    if kind is JoinKind.FULL:
        both, type_ = to_common_type(binding, [left, right], [None, None], "JOIN/USING")
        return Coalesce(tuple(both), type_)
    common = select_common_type([left, right], [None, None], "JOIN/USING")
    assert common is not None, "with a clause named a mismatch raises"
    if kind is JoinKind.RIGHT:
        side = coerce_implicitly(binding, right, None, common.bare())
    elif kind is JoinKind.INNER and left.type.name != common.name == right.type.name:
        side = right
    else:
        side = coerce_implicitly(binding, left, None, common.bare())
    if side.type.typmod == -1 or left.type.typmod == right.type.typmod:
        return side
    return Coalesce((side,), side.type.bare())


def _joined_items(
    node: Node,
    parts: Sequence[FromItem],
    merged: Sequence[tuple[str, Expr]],
    columns: Sequence[tuple[str, Expr]],
) -> list[FromItem]:
    if node.alias is not None:
        named = aliased_columns(columns, node.alias, node.alias.aliasname)
        return [FromItem(node.alias.aliasname, named, again=True)]
    hidden = [replace(item, columns_visible=False) for item in parts]
    items = [*hidden, FromItem(None, columns, names_visible=False)]
    if node.join_using_alias is not None:
        lent = FromItem(node.join_using_alias.aliasname, merged, columns_visible=False, again=True)
        check_conflicts(items, [lent])
        items.append(lent)
    return items


def _function(binding: Binding, scope: Scope, node: Node) -> tuple[Plan, list[FromItem]]:
    written = system_set_subquery(node)
    if written is not None:
        return _subselect(binding, scope, written)
    return from_function(binding, scope, node)


_ITEMS: Final[dict[type, Callable[[Binding, Scope, Node], tuple[Plan, list[FromItem]]]]] = {
    ast.RangeVar: _table,
    ast.RangeSubselect: _subselect,
    ast.RangeFunction: _function,
    ast.RangeTableSample: _sample,
    ast.JoinExpr: _join,
    ast.JsonTable: json_table,
}
