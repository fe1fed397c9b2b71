"""Analyze a query: SELECT, VALUES, set operations and WITH (analyze.c, parse_cte.c)."""

from collections.abc import Mapping, Sequence
from typing import Final

from pglast import ast
from pglast.enums import (
    CTEMaterialize,
    GroupingSetKind,
    LimitOption,
    LockWaitPolicy,
)
from pglast.enums import (
    SetOperation as SetKind,
)

from sql.deparse.calls import sort_item, window
from sql.deparse.coercion import (
    UnknownShape,
    add_coercion,
    common_type,
    common_typmod,
    converted,
    settled,
)
from sql.deparse.from_clause import from_items, subquery_entry
from sql.deparse.nodes import (
    CommonTable,
    Constant,
    Entry,
    GroupingSet,
    QueryTree,
    ResultColumn,
    SetOperation,
    SortItem,
    TypedExpr,
    Var,
)
from sql.deparse.state import Analysis, Item, Level, item_called
from sql.deparse.types import BOOL_TYPE, INT8_TYPE, Type
from sql.parser.syntax import LOCKING_WORDS, Node, column_name, is_a, string_values

_NAMES: Final = {
    SetKind.SETOP_UNION: "UNION",
    SetKind.SETOP_INTERSECT: "INTERSECT",
    SetKind.SETOP_EXCEPT: "EXCEPT",
}
_SETS: Final = {
    GroupingSetKind.GROUPING_SET_ROLLUP: "ROLLUP",
    GroupingSetKind.GROUPING_SET_CUBE: "CUBE",
    GroupingSetKind.GROUPING_SET_SETS: "SETS",
}
_MATERIALIZED: Final = {
    CTEMaterialize.CTEMaterializeDefault: "",
    CTEMaterialize.CTEMaterializeAlways: "MATERIALIZED ",
    CTEMaterialize.CTEMaterializeNever: "NOT MATERIALIZED ",
}


def query(
    analysis: Analysis,
    node: Node,
    parent: Level | None,
    *,
    resolves: bool = True,
    ctes: Mapping[str, CommonTable] | None = None,
    recursive: CommonTable | None = None,
) -> QueryTree:
    """A SelectStmt. `recursive`: the WITH query whose own query it is."""
    if not is_a(node, ast.SelectStmt):
        raise UnknownShape(type(node).__name__)
    known = ctes if ctes is not None else ({} if parent is None else parent.ctes)
    level = Level(QueryTree(), parent, ctes=known)
    if node.withClause is not None:
        level.ctes = _with(analysis, level, node.withClause)
    if node.valuesLists:
        _values(analysis, level, node)
    elif node.op != SetKind.SETOP_NONE:
        _set_operation(analysis, level, node, recursive)
    else:
        _select(analysis, level, node, resolves=resolves)
    _limits(analysis, level, node)
    return level.query


# --- WITH --------------------------------------------------------------------------------------


def _with(analysis: Analysis, level: Level, clause: Node) -> Mapping[str, CommonTable]:
    known = dict(level.ctes)
    level.query.recursive = bool(clause.recursive)
    for cte in clause.ctes:
        if cte.search_clause is not None or cte.cycle_clause is not None:
            raise UnknownShape("SEARCH or CYCLE")
        made = CommonTable(
            cte.ctename,
            string_values(cte.aliascolnames),
            _MATERIALIZED[cte.ctematerialized],
        )
        inside = {**known, cte.ctename: made} if clause.recursive else dict(known)
        made.query = query(
            analysis, cte.ctequery, level, ctes=inside, recursive=made if clause.recursive else None
        )
        set_columns(made, made.query)
        known[cte.ctename] = made
        level.query.ctes.append(made)
    return known


def set_columns(made: CommonTable, source: QueryTree) -> None:
    """The columns of a WITH query, from those of its query."""
    columns = source.columns
    made.names = [*made.columns, *(column.name for column in columns[len(made.columns) :])]
    made.types = [column.expr.type for column in columns]


# --- SELECT ------------------------------------------------------------------------------------


def _select(analysis: Analysis, level: Level, node: Node, *, resolves: bool) -> None:
    made = level.query
    if node.intoClause is not None:
        raise UnknownShape("INTO")
    level.windows = {one.name: one for one in node.windowClause or ()}
    from_items(analysis, level, node.fromClause or ())
    for target in node.targetList or ():
        made.targets += _targets(analysis, level, target, resolves=resolves)
    if node.whereClause is not None:
        made.where = _condition(analysis, level, node.whereClause)
    if node.havingClause is not None:
        made.having = _condition(analysis, level, node.havingClause)
    made.order = [_sorted(analysis, level, item) for item in node.sortClause or ()]
    _group(analysis, level, node)
    if node.distinctClause:
        made.distinct = True
        if node.distinctClause[0] is not None:
            made.distinct_on = [_named(analysis, level, one) for one in node.distinctClause]
    made.windows = [window(analysis, level, one) for one in node.windowClause or ()]
    for clause in node.lockingClause or ():
        made.locking += _locks(level, clause)


def _condition(analysis: Analysis, level: Level, node: Node) -> TypedExpr:
    return converted(analysis.expression(level, node), BOOL_TYPE, analysis.zone)


def _targets(analysis: Analysis, level: Level, node: Node, *, resolves: bool) -> list[ResultColumn]:
    value = node.val
    if is_a(value, ast.ColumnRef) and is_a(value.fields[-1], ast.A_Star):
        names = string_values(value.fields[:-1])
        items = [item_called(level, names)] if names else level.items
        shown = [item for item in items if names or item.columns_visible]
        return [ResultColumn(name, expr) for item in shown for name, expr in item.columns]
    expr = analysis.expression(level, value)
    if resolves:
        expr = settled(expr, analysis.zone)
    return [ResultColumn(node.name or column_name(value), expr)]


def _named(analysis: Analysis, level: Level, node: Node, *, groups: bool = False) -> TypedExpr:
    """What ORDER BY, GROUP BY or DISTINCT ON mean (findTargetlistEntrySQL92)."""
    columns = level.query.columns
    if is_a(node, ast.A_Const) and not node.isnull and is_a(node.val, ast.Integer):
        return columns[(node.val.ival or 0) - 1].expr
    if is_a(node, ast.ColumnRef) and len(node.fields) == 1 and is_a(node.fields[0], ast.String):
        name = node.fields[0].sval
        own = [
            expr
            for item in level.items
            if groups and item.columns_visible
            for called, expr in item.columns
            if called == name
        ]
        found = [column.expr for column in columns if column.name == name]
        if own or found:
            return (own or found)[0]
    return settled(analysis.expression(level, node), analysis.zone)


def _sorted(analysis: Analysis, level: Level, node: Node) -> SortItem:
    return sort_item(analysis, level, node, _named(analysis, level, node.node))


def _group(analysis: Analysis, level: Level, node: Node) -> None:
    made = level.query
    made.group_distinct = bool(node.groupDistinct)
    clause = node.groupClause or ()
    if any(is_a(part, ast.GroupingSet) for part in clause):
        made.grouping_sets = [_grouping_set(analysis, level, part) for part in clause]
        return
    for part in clause:
        parts = part.args if is_a(part, ast.RowExpr) else (part,)
        for one in parts:
            expr = _named(analysis, level, one, groups=True)
            if expr not in made.group:
                made.group.append(expr)


def _grouping_set(analysis: Analysis, level: Level, node: Node) -> GroupingSet:
    if is_a(node, ast.GroupingSet):
        if node.kind == GroupingSetKind.GROUPING_SET_EMPTY:
            return GroupingSet("EMPTY", [])
        items = [_grouping_set(analysis, level, part) for part in node.content or ()]
        return GroupingSet(_SETS[node.kind], [*items])
    implicit = is_a(node, ast.RowExpr)
    parts = node.args or () if implicit else (node,)
    return GroupingSet("SIMPLE", [_named(analysis, level, part, groups=True) for part in parts])


def _locks(level: Level, clause: Node) -> list[str]:
    """Each lock with the name of what it locks, which the printer puts in."""
    waits = {LockWaitPolicy.LockWaitSkip: " SKIP LOCKED", LockWaitPolicy.LockWaitError: " NOWAIT"}
    wait = waits.get(clause.waitPolicy, "")
    names = [relation.relname for relation in clause.lockedRels or ()]
    shown = [
        item.name
        for item in level.items
        if item.name is not None
        and item.entry is not None
        and item.entry.kind in ("relation", "subquery")
        and (not names or item.name in names)
    ]
    return [f"{LOCKING_WORDS[clause.strength]}|{name}|{wait}" for name in shown]


def _limits(analysis: Analysis, level: Level, node: Node) -> None:
    made = level.query
    if node.limitOffset is not None:
        made.offset = add_coercion(
            analysis.expression(level, node.limitOffset), INT8_TYPE, analysis.zone
        )
    if node.limitCount is not None:
        made.limit = add_coercion(
            analysis.expression(level, node.limitCount), INT8_TYPE, analysis.zone
        )
    made.with_ties = node.limitOption == LimitOption.LIMIT_OPTION_WITH_TIES


# --- VALUES ------------------------------------------------------------------------------------


def _values(analysis: Analysis, level: Level, node: Node) -> None:
    """transformValuesClause: a query over one entry, `*VALUES*`."""
    rows = [[analysis.expression(level, item) for item in row] for row in node.valuesLists]
    columns = [list(column) for column in zip(*rows, strict=True)]
    types: list[Type] = []
    for column in columns:
        type_ = common_type(column)
        column[:] = [converted(item, type_, analysis.zone) for item in column]
        types.append(Type(type_.name, common_typmod(column, type_), type_.domain))
    names = [f"column{number}" for number in range(1, len(types) + 1)]
    entry = Entry("values", names, types, [*names], name="*VALUES*")
    entry.values = list(zip(*columns, strict=True))
    made = level.query
    made.table.append(entry)
    made.sources.append(entry)
    made.targets = [
        ResultColumn(name, Var(entry, at, type_))
        for at, (name, type_) in enumerate(zip(names, types, strict=True))
    ]
    level.items.append(Item("*VALUES*", [(one.name, one.expr) for one in made.targets]))
    made.order = [_sorted(analysis, level, item) for item in node.sortClause or ()]


# --- set operations ----------------------------------------------------------------------------


def _set_operation(
    analysis: Analysis, level: Level, node: Node, recursive: CommonTable | None
) -> None:
    made = level.query
    tree, leaves = _tree(analysis, level, node, recursive, top=True)
    assert isinstance(tree, SetOperation), "it is one"
    made.operation = tree
    for number, leaf in enumerate(leaves, 1):
        entry = subquery_entry(leaf, f"*SELECT* {number}")
        made.table.append(entry)
    first = made.table[-len(leaves)]
    types = _column_types(tree)
    made.targets = [
        ResultColumn(column.name, Var(first, at, type_))
        for at, (column, type_) in enumerate(zip(leaves[0].columns, types, strict=True))
    ]
    level.items.append(Item(None, [(one.name, one.expr) for one in made.targets]))
    made.order = [_sorted(analysis, level, item) for item in node.sortClause or ()]


def _tree(
    analysis: Analysis, level: Level, node: Node, recursive: CommonTable | None, *, top: bool
) -> tuple[SetOperation | QueryTree, list[QueryTree]]:
    is_leaf = node.op == SetKind.SETOP_NONE or (
        not top
        and (node.sortClause or node.limitOffset or node.limitCount or node.lockingClause
             or node.withClause)
    )  # fmt: skip
    if is_leaf:
        leaf = query(analysis, node, level.parent, resolves=False, ctes=level.ctes)
        return leaf, [leaf]
    left, lefts = _tree(analysis, level, node.larg, None, top=False)
    if top and recursive is not None:
        recursive.types = _types(left)
        names = [column.name for column in lefts[0].columns]
        recursive.names = [*recursive.columns, *names[len(recursive.columns) :]]
    right, rights = _tree(analysis, level, node.rarg, None, top=False)
    made = SetOperation(_NAMES[node.op], bool(node.all), left, right)
    _settle(analysis, made)
    return made, [*lefts, *rights]


def _types(side: SetOperation | QueryTree) -> list[Type]:
    if isinstance(side, SetOperation):
        return _column_types(side)
    return [column.expr.type for column in side.columns]


def _column_types(made: SetOperation) -> list[Type]:
    return [_common(pair) for pair in zip(_types(made.left), _types(made.right), strict=True)]


def _common(pair: Sequence[Type]) -> Type:
    items = [Constant(None, type_) for type_ in pair]
    type_ = common_type(items)
    return Type(type_.name, common_typmod(items, type_), type_.domain)


def _settle(analysis: Analysis, made: SetOperation) -> None:
    """Untyped literals in leaves get the type of their column (transformSetOperationTree)."""
    types = _column_types(made)
    for side in (made.left, made.right):
        if isinstance(side, QueryTree):
            for column, type_ in zip(side.columns, types, strict=True):
                if column.expr.type.name == "unknown":
                    column.expr = converted(column.expr, type_.bare, analysis.zone)
