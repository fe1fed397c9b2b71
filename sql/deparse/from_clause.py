"""Analyze FROM: relations, subqueries, functions, joins (parse_clause.c, parse_relation.c).

INVARIANTS
  F1  entries stand in a query's table in PostgreSQL's order: both sides of a join before it.
"""

from collections.abc import Sequence
from typing import Final

from pglast import ast
from pglast.enums import JoinType

from sql.deparse.coercion import UnknownShape, add_coercion, common_type, common_typmod, converted
from sql.deparse.nodes import (
    Entry,
    FromNode,
    FuncExpr,
    JoinTree,
    Listed,
    QueryTree,
    TypedExpr,
    Var,
)
from sql.deparse.overloads import called_function
from sql.deparse.state import Analysis, Item, Level
from sql.deparse.types import BOOL_TYPE, INT8_TYPE, Type
from sql.parser.syntax import Node, is_a, string_values

_JOINS: Final = {
    JoinType.JOIN_INNER: "JOIN",
    JoinType.JOIN_LEFT: "LEFT JOIN",
    JoinType.JOIN_RIGHT: "RIGHT JOIN",
    JoinType.JOIN_FULL: "FULL JOIN",
}
_ORDINALITY: Final = "ordinality"


def from_items(analysis: Analysis, level: Level, nodes: Sequence[Node]) -> None:
    """All items of a FROM clause, each of which a later LATERAL one may use."""
    for node in nodes:
        made, items = _item(analysis, level, node)
        level.query.sources.append(made)
        level.items += items


def _item(analysis: Analysis, level: Level, node: Node) -> tuple[FromNode, list[Item]]:
    match node:
        case ast.RangeVar():
            return _added(level, _relation(analysis, level, node))
        case ast.RangeTableSample():
            return _sample(analysis, level, node)
        case ast.RangeSubselect():
            return _added(level, _subquery(analysis, level, node))
        case ast.RangeFunction():
            return _added(level, _function(analysis, level, node))
        case ast.JoinExpr():
            return _join(analysis, level, node)
        case _:
            raise UnknownShape(type(node).__name__)


def _added(level: Level, entry: Entry) -> tuple[Entry, list[Item]]:
    level.query.table.append(entry)
    columns = [
        (name, Var(entry, at, type_))
        for at, (name, type_) in enumerate(zip(entry.columns, entry.types, strict=True))
    ]
    schema = entry.schema if entry.alias is None else None
    return entry, [Item(entry.alias or entry.name, [*columns], schema, entry)]


def _with_alias(entry: Entry, alias: Node) -> Entry:
    if alias is not None:
        entry.alias = alias.aliasname
        entry.alias_columns = string_values(alias.colnames)
        entry.columns[: len(entry.alias_columns)] = entry.alias_columns
    return entry


def _relation(analysis: Analysis, level: Level, node: Node) -> Entry:
    name = node.relname
    cte = level.ctes.get(name) if node.schemaname is None else None
    if cte is not None:
        made = Entry("cte", [*cte.names], [*cte.types], [*cte.names], name=name)
        return _with_alias(made, node.alias)
    relation, names, numbers = analysis.relation(node.schemaname or "", name)
    now = [relation.columns.get(number) for number in numbers]
    known = {*numbers}
    made = Entry(
        "relation",
        [*names],
        [Type("unknown") if column is None else column[1] for column in now],
        [None if column is None else column[0] for column in now],
        name=name,
        schema=relation.schema,
        only=not node.inh,
    )
    made.relation_name, made.oid, made.numbers = relation.name, relation.oid, tuple(numbers)
    made.later = [column for number, (column, _) in relation.columns.items() if number not in known]
    return _with_alias(made, node.alias)


def _sample(analysis: Analysis, level: Level, node: Node) -> tuple[FromNode, list[Item]]:
    entry = _relation(analysis, level, node.relation)
    args = [
        add_coercion(analysis.expression(level, arg), Type("float4"), analysis.zone)
        for arg in node.args
    ]
    repeatable = None
    if node.repeatable is not None:
        expr = analysis.expression(level, node.repeatable)
        repeatable = add_coercion(expr, Type("float8"), analysis.zone)
    entry.sample = (node.method[-1].sval, tuple(args), repeatable)
    return _added(level, entry)


def subquery_entry(source: QueryTree, name: str) -> Entry:
    """The entry of a subquery."""
    names = [column.name for column in source.columns]
    types = [column.expr.type for column in source.columns]
    return Entry("subquery", names, types, [*names], name=name, query=source)


def _subquery(analysis: Analysis, level: Level, node: Node) -> Entry:
    parent = level if node.lateral else _hidden(level)
    source = analysis.query(node.subquery, parent)
    made = _with_alias(subquery_entry(source, "unnamed_subquery"), node.alias)
    made.lateral = bool(node.lateral)
    return made


def _hidden(level: Level) -> Level:
    """The level without its own items, which a subquery that is not LATERAL does not see."""
    return Level(level.query, level.parent, ctes=level.ctes)


# --- functions ---------------------------------------------------------------------------------


def _function(analysis: Analysis, level: Level, node: Node) -> Entry:
    before = _has_items(level)
    calls, definitions = _calls(analysis, level, node)
    names: list[str] = []
    types: list[Type] = []
    for call in calls:
        columns = definitions or _output(call, node, len(calls))
        names += (name for name, _ in columns)
        types += (type_ for _, type_ in columns)
    if node.ordinality:
        names.append(_ORDINALITY)
        types.append(INT8_TYPE)
    first = calls[0]
    name = first.name if isinstance(first, FuncExpr) else "function"
    made = Entry("function", names, types, [*names], name=name)
    made.functions, made.definitions = tuple(calls), tuple(definitions)
    made.ordinality = bool(node.ordinality)
    made.lateral = bool(node.lateral) or (before and any(map(_has_columns, calls)))
    if node.alias is not None and node.coldeflist:
        made.alias = node.alias.aliasname
        return made
    return _with_alias(made, node.alias)


def _has_items(level: Level) -> bool:
    return any(part.items for part in level.levels())


def _has_columns(expr: object) -> bool:
    if isinstance(expr, Var):
        return True
    if isinstance(expr, tuple):
        return any(map(_has_columns, expr))
    slots: Sequence[str] = getattr(expr, "__slots__", ())
    parts = (getattr(expr, name) for name in slots if name not in ("type", "query"))
    return any(_has_columns(part) for part in parts if not isinstance(part, str | Type))


def _calls(
    analysis: Analysis, level: Level, node: Node
) -> tuple[list[TypedExpr], list[tuple[str, Type]]]:
    calls: list[TypedExpr] = []
    definitions = [
        (column.colname, analysis.declared(column.typeName)) for column in node.coldeflist or ()
    ]
    for call, listed in node.functions:
        if listed:
            raise UnknownShape("ROWS FROM with column definitions")
        args = call.args or () if is_a(call, ast.FuncCall) else ()
        unnests = is_a(call, ast.FuncCall) and string_values(call.funcname)[-1] == "unnest"
        if unnests and len(args) > 1:
            arrays = [analysis.expression(level, arg) for arg in args]
            calls += (
                FuncExpr("unnest", (array,), array.type.element, returns_set=True)
                for array in arrays
            )
        else:
            calls.append(analysis.expression(level, call))
    return calls, definitions


def _output(call: TypedExpr, node: Node, count: int) -> list[tuple[str, Type]]:
    """The columns of one function."""
    if not isinstance(call, FuncExpr):
        raise UnknownShape("an expression in FROM")
    types = tuple([arg.type.name for arg in call.args])
    outputs = called_function(call.name, types, variadic=call.variadic).outputs
    if len(outputs) > 1:
        return [(name, Type(type_)) for name, type_ in outputs]
    if call.type.name == "record":
        raise UnknownShape("a row of unknown columns")
    if outputs and outputs[0][0]:
        return [(outputs[0][0], call.type)]
    alias = node.alias if count == 1 else None
    return [(call.name if alias is None else alias.aliasname, call.type)]


# --- joins -------------------------------------------------------------------------------------


def _join(analysis: Analysis, level: Level, node: Node) -> tuple[FromNode, list[Item]]:
    left, left_items = _item(analysis, level, node.larg)
    inside = Level(level.query, level.parent, [*level.items, *left_items], level.ctes)
    inside.windows = level.windows
    right, right_items = _item(analysis, inside, node.rarg)
    entry = Entry("join", [], [], [])
    level.query.table.append(entry)
    made = JoinTree(_JOINS[node.jointype], left, right, entry)
    if node.quals is not None:
        both = Level(level.query, level.parent, [*inside.items, *right_items], level.ctes)
        condition = analysis.expression(both, node.quals)
        made.condition = converted(condition, BOOL_TYPE, analysis.zone)
    sides = _columns(left_items), _columns(right_items)
    using = string_values(node.usingClause)
    if node.isNatural:
        others = {name for name, _ in sides[1]}
        using = tuple([name for name, _ in sides[0] if name in others])
    made.using = using
    columns = [(name, _merged(analysis, made, name, *sides)) for name in using]
    for side in sides:
        columns += ((name, expr) for name, expr in side if name not in using)
    entry.columns = [name for name, _ in columns]
    entry.types = [expr.type for _, expr in columns]
    entry.real = [*entry.columns]
    entry.merged = [expr for _, expr in columns]
    items = _join_items(entry, node, [*left_items, *right_items], len(using))
    if node.join_using_alias is not None:
        made.using_alias = node.join_using_alias.aliasname
        known = items[-1].columns[: len(using)]
        items.append(Item(made.using_alias, known, columns_visible=False))
    return made, items


def _columns(items: Sequence[Item]) -> list[tuple[str, TypedExpr]]:
    return [column for item in items if item.columns_visible for column in item.columns]


def _merged(
    analysis: Analysis,
    made: JoinTree,
    name: str,
    lefts: Sequence[tuple[str, TypedExpr]],
    rights: Sequence[tuple[str, TypedExpr]],
) -> TypedExpr:
    """BuildMergedJoinVar."""
    pair = [next(expr for called, expr in side if called == name) for side in (lefts, rights)]
    made.pairs.append((pair[0], pair[1]))
    type_ = common_type(pair)
    typmod = common_typmod(pair, type_)
    left, right = (
        add_coercion(expr, Type(type_.name, typmod, type_.domain), analysis.zone) for expr in pair
    )
    if made.kind == "FULL JOIN":
        return Listed("COALESCE", (left, right), Type(type_.name, typmod))
    if made.kind == "RIGHT JOIN":
        return right
    if made.kind == "JOIN" and not isinstance(left, Var) and isinstance(right, Var):
        return right
    return left


def _join_items(entry: Entry, node: Node, items: Sequence[Item], merged: int) -> list[Item]:
    alias = node.alias
    for item in items:
        item.columns_visible = False
        item.names_visible = item.names_visible and alias is None
    if alias is not None:
        _with_alias(entry, alias)
    columns: list[tuple[str, TypedExpr]] = []
    for at, (name, expr) in enumerate(zip(entry.columns, entry.merged, strict=True)):
        plain = alias is None and (isinstance(expr, Var) or at >= merged)
        columns.append((name, expr if plain else Var(entry, at, expr.type)))
    return [*items, Item(entry.alias, columns, entry=entry)]
