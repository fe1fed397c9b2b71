"""GROUPING SETS, ROLLUP and CUBE: expand GROUP BY to sets of keys, and bind GROUPING().

Source: PostgreSQL's transformGroupClause and expand_grouping_sets.

    GROUP BY a, ROLLUP (b, c)  ─▶  (a, b, c), (a, b), (a)
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Final, TypeAlias

from pglast import ast
from pglast.enums import GroupingSetKind

from sql.binder.state import Binding, GroupingCall, Scope
from sql.errors import SqlError, grouping_error
from sql.parser.syntax import Node, is_a, node_position, offset_to_position
from sql.plan.nodes import ColumnId, Expr, PlanColumn
from sql.plan.renumbering import column_refs, is_same_expression
from sql.plan.traverse import column_ids, has_subquery
from sql.types.sql_type import INT4

SETS_MAX: Final = 4096
_CUBE_MAX: Final = 12
_ARGUMENTS_MAX: Final = 31
GROUPING_CLAUSES: Final = frozenset({"SELECT", "HAVING", "ORDER BY", "DISTINCT ON"})
_SHOWN_CLAUSES: Final = {"JOIN/ON": "JOIN conditions", "DEFAULT": "DEFAULT expressions"}

_Key: TypeAlias = Callable[[Node], Expr]
_Set: TypeAlias = tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class GroupClause:
    """The keys, each once, and the sets of them; None for plain keys."""

    keys: tuple[Expr, ...]
    sets: tuple[tuple[Expr, ...], ...] | None


def group_clause(nodes: Sequence[Node], key: _Key, *, distinct: bool) -> GroupClause:
    """Bind GROUP BY; `key` binds one expression. `distinct`: equal sets count once."""
    if not any(map(is_grouping_set, nodes)):
        keys = [key(part) for node in nodes for part in _row_parts(node)]
        return GroupClause(tuple(dict.fromkeys(keys)), None)
    items = [_item(node, key) for node in nodes]
    total = 1
    for item in items:
        total *= len(item)
        if total > SETS_MAX:
            message = f"too many grouping sets present (maximum {SETS_MAX})"
            place = next(node.location for node in nodes if is_a(node, ast.GroupingSet))
            raise SqlError("54001", message, offset_to_position(place))
    sets = [
        tuple(dict.fromkeys(expr for part in parts for expr in part)) for parts in product(*items)
    ]
    if distinct:
        sets = list({frozenset(one): one for one in reversed(sets)}.values())[::-1]
    keys = [expr for one in sets for expr in one]
    return GroupClause(tuple(dict.fromkeys(keys)), tuple(sets))


def is_grouping_set(node: Node) -> bool:
    """Whether it is GROUPING SETS, ROLLUP, CUBE, or the empty set."""
    return is_a(node, ast.GroupingSet)


def _row_parts(node: Node) -> Iterator[Node]:
    """`(a, b)` stands for a and b."""
    if is_a(node, ast.RowExpr) and node.row_format.name == "COERCE_IMPLICIT_CAST":
        for part in node.args or ():
            yield from _row_parts(part)
    else:
        yield node


def _item(node: Node, key: _Key) -> list[_Set]:
    """The sets that one entry stands for."""
    if not is_a(node, ast.GroupingSet):
        return [tuple([key(part) for part in _row_parts(node)])]
    match node.kind:
        case GroupingSetKind.GROUPING_SET_EMPTY:
            return [()]
        case GroupingSetKind.GROUPING_SET_ROLLUP:
            parts = _elements(node, key)
            return [_joined(parts[:count]) for count in range(len(parts), -1, -1)]
        case GroupingSetKind.GROUPING_SET_CUBE:
            if len(node.content) > _CUBE_MAX:
                message = f"CUBE is limited to {_CUBE_MAX} elements"
                raise SqlError("54011", message, offset_to_position(node.location))
            parts = _elements(node, key)
            counts = range(len(parts), -1, -1)
            return [_joined(some) for count in counts for some in combinations(parts, count)]
        case _:
            return [one for part in node.content for one in _item(part, key)]


def _elements(node: Node, key: _Key) -> list[_Set]:
    return [tuple([key(part) for part in _row_parts(entry)]) for entry in node.content]


def _joined(parts: Sequence[_Set]) -> _Set:
    return tuple([expr for part in parts for expr in part])


# --- GROUPING() --------------------------------------------------------------------------------


def grouping_call(binding: Binding, scope: Scope, node: Node) -> Expr:
    """GROUPING(..): a column of the level, resolved when the keys are known."""
    if len(node.args) > _ARGUMENTS_MAX:
        raise SqlError(
            "54023", "GROUPING must have fewer than 32 arguments", offset_to_position(node.location)
        )
    around, scope.in_aggregate = scope.in_aggregate, True
    try:
        args = tuple([binding.expression(scope, arg) for arg in node.args])
    finally:
        scope.in_aggregate = around
    level = innermost_level(scope, args)
    if level.clause not in GROUPING_CLAUSES:
        message = f"grouping operations are not allowed in {clause_display_name(level, scope)}"
        raise grouping_error(message, offset_to_position(node.location))
    if level.in_aggregate:
        raise grouping_error(
            "aggregate function calls cannot be nested", offset_to_position(node.location)
        )
    known = level.groupings.get(args)
    if known is None:
        places = tuple([node_position(arg) for arg in node.args])
        column = binding.new_column("grouping", INT4)
        known = level.groupings[args] = GroupingCall(column, places, level.clause == "HAVING")
    return binding.reference(known.column, node.location)


def clause_display_name(level: Scope, scope: Scope) -> str:
    """The name of the clause that a level is binding; `scope` is inside it."""
    if level.clause == "FROM":
        return "functions in FROM" if level is scope else "FROM clause of their own query level"
    return _SHOWN_CLAUSES.get(level.clause, level.clause)


def innermost_level(scope: Scope, parts: Iterable[Expr]) -> Scope:
    """The innermost level whose columns the expressions use; this one if they use none."""
    used = {column for part in parts for column in column_ids(part)}
    if used.isdisjoint(scope.ids):
        for level in scope.levels():
            if not used.isdisjoint(level.ids) or not used.isdisjoint(_columns(level)):
                return level
    return scope


def refuse_nested_aggregates(binding: Binding, level: Scope, parts: Iterable[Expr]) -> None:
    """42803 for a GROUPING call or an aggregate of the same level in an aggregate's arguments."""
    made = _columns(level)
    for part in parts:
        for column in column_refs(part):
            if column.id in made:
                message = "aggregate function calls cannot be nested"
                raise grouping_error(message, binding.place(column))


def _columns(level: Scope) -> set[ColumnId]:
    """What the level makes of its groups."""
    groupings = {call.column.id for call in level.groupings.values()}
    return groupings | {column.id for column in level.aggregates.values()}


def check_grouping_arguments(scope: Scope, keys: Sequence[Expr], *, having: bool) -> None:
    """42803 for an argument of GROUPING() that is no key (finalize_grouping_exprs).

    Checks either the calls in HAVING or all others.
    """
    places = dict.fromkeys(keys)
    for args, call in scope.groupings.items():
        if call.in_having is not having:
            continue
        for arg, place in zip(args, call.places, strict=True):
            if matching_key(arg, places) is None:
                message = (
                    "arguments to GROUPING must be grouping expressions of the associated "
                    "query level"
                )
                raise grouping_error(message, place)


def grouping_columns(
    scope: Scope, keys: Sequence[Expr]
) -> tuple[tuple[PlanColumn, ...], tuple[tuple[int, ...], ...]]:
    """The columns of GROUPING calls, and the numbers of each call's keys."""
    places = {expr: number for number, expr in enumerate(keys)}
    columns: list[PlanColumn] = []
    numbers: list[tuple[int, ...]] = []
    for args, call in scope.groupings.items():
        found = [matching_key(arg, places) for arg in args]
        columns.append(call.column)
        numbers.append(tuple([places[key] for key in found if key is not None]))
        assert len(numbers[-1]) == len(args), "checked before"
    return tuple(columns), tuple(numbers)


def matching_key(expr: Expr, keys: Collection[Expr]) -> Expr | None:
    """The key that an expression equals; subqueries are compared without regard to column ids."""
    if expr in keys:
        return expr
    if has_subquery(expr):
        return next((key for key in keys if is_same_expression(key, expr)), None)
    return None
