"""Bind target lists, and resolve the ORDER BY and GROUP BY entries that refer to them.

Source: PostgreSQL's findTargetlistEntry.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pglast import ast

from sql.binder.expressions.grouping_sets import (
    GroupClause,
    group_clause,
    is_grouping_set,
    matching_key,
)
from sql.binder.expressions.json_rows import row_argument
from sql.binder.expressions.row_fields import is_record, part_of_record
from sql.binder.expressions.whole_rows import whole_row
from sql.binder.resolve.coercion import coerce_implicitly
from sql.binder.resolve.column_lookup import column_in_item, reference_at, required_item
from sql.binder.state import Binding, Scope
from sql.errors import SqlError, grouping_error, not_supported
from sql.parser.syntax import Node, column_name, is_a, node_position, offset_to_position
from sql.plan.nodes import ColumnRef, Const, Expr, Param, Subquery
from sql.plan.renumbering import column_refs, is_same_expression
from sql.plan.traverse import child_expressions, has_subquery
from sql.types.records import field_names
from sql.types.sql_type import TEXT, format_type


@dataclass(slots=True)
class TargetEntry:
    """An entry of a target list. `junk`: only for sorting; `is_key`: a GROUP BY key."""

    name: str
    expr: Expr
    node: Node
    junk: bool = False
    is_key: bool = False


def target_list(binding: Binding, scope: Scope, nodes: Sequence[Node]) -> list[TargetEntry]:
    """The targets of SELECT or RETURNING, stars expanded."""
    targets: list[TargetEntry] = []
    for node in nodes:
        value = node.val
        if is_a(value, ast.ColumnRef) and is_a(value.fields[-1], ast.A_Star):
            targets.extend(_star(binding, scope, value))
            continue
        if is_a(value, ast.A_Indirection) and is_a(value.indirection[-1], ast.A_Star):
            targets.extend(_star_of_value(binding, scope, value))
            continue
        name = node.name if node.name is not None else column_name(value)
        expr = _row_asked(binding, scope, value) or binding.expression(scope, value)
        targets.append(TargetEntry(name, expr, value))
    return targets


def _row_asked(binding: Binding, scope: Scope, node: Node) -> Expr | None:
    """The json of a row where it is asked for."""
    if node is not binding.row_asked:
        return None
    row = row_argument(binding, scope, node)
    binding.row_asked = None if row is not None else node
    return row


def _star(binding: Binding, scope: Scope, node: Node) -> list[TargetEntry]:
    place = node.location
    if len(node.fields) > 1:
        qualifier = [field.sval for field in node.fields[:-1]]
        item = required_item(binding, scope, qualifier, "*", place)
        pairs = list(item.columns)
    else:
        visible = [item for item in scope.items if item.columns_visible]
        if not visible:
            raise SqlError(
                "42601", "SELECT * with no tables specified is not valid", offset_to_position(place)
            )
        pairs = [pair for item in visible for pair in item.columns]
    return [TargetEntry(name, reference_at(binding, expr, place), node) for name, expr in pairs]


def _star_of_value(binding: Binding, scope: Scope, node: Node) -> list[TargetEntry]:
    """`(t).*`, `(q.row).*`, `(f(x)).*` (ExpandRowReference)."""
    *path, _ = node.indirection
    if not path and whole_row(binding, scope, node.arg) is not None:
        fields = [field for field in node.arg.fields if is_a(field, ast.String)]
        all_of = ast.ColumnRef(fields=(*fields, ast.A_Star()), location=node.arg.location)
        return _star(binding, scope, all_of)
    part = ast.A_Indirection(arg=node.arg, indirection=tuple(path)) if path else node.arg
    row = binding.expression(scope, part)
    if row.type.name != "record":
        raise SqlError("42809", f"type {format_type(row.type.bare())} is not composite")
    place = node_position(node)
    if not is_record(row.type):
        raise not_supported("expanding a composite value", place)
    return [
        TargetEntry(name, part_of_record(binding, row, number, place), node)
        for number, name in enumerate(field_names(row.type), 1)
    ]


def settle_target(binding: Binding, target: TargetEntry) -> Expr:
    """The target's expression; an untyped literal becomes text."""
    if target.expr.type.name == "unknown":
        target.expr = coerce_implicitly(binding, target.expr, target.node, TEXT)
    return target.expr


def sort_target(
    binding: Binding, scope: Scope, targets: list[TargetEntry], node: Node, *, computed: bool
) -> TargetEntry:
    """The target that an ORDER BY entry sorts by; a junk one is added if needed.

    `computed`: an expression over input columns is allowed (not after UNION).
    """
    found = _by_name_or_number(targets, node, "ORDER BY")
    if found is not None:
        return found
    expr = binding.expression(scope, node)
    if expr.type.name == "unknown":
        expr = coerce_implicitly(binding, expr, node, TEXT)
    for target in targets:
        if is_same_expression(target.expr, expr):
            return target
    if not computed:
        raise SqlError(
            "0A000",
            "invalid UNION/INTERSECT/EXCEPT ORDER BY clause",
            node_position(node),
            detail="Only result column names can be used, not expressions or functions.",
            hint=(
                "Add the expression/function to every SELECT, or move the UNION into a FROM clause."
            ),
        )
    target = TargetEntry("sort", expr, node, junk=True)
    targets.append(target)
    return target


def bind_group_by(
    binding: Binding, scope: Scope, targets: list[TargetEntry], select: Node
) -> GroupClause:
    """Bind GROUP BY."""
    entries: Sequence[Node] = select.groupClause or ()
    known = dict[Expr, TargetEntry]() if any(map(is_grouping_set, entries)) else None
    junk: list[Expr] = []
    return group_clause(
        entries,
        lambda node: _group_key(binding, scope, targets, node, known, junk),
        distinct=bool(select.groupDistinct),
    )


def _group_key(
    binding: Binding,
    scope: Scope,
    targets: list[TargetEntry],
    node: Node,
    known: dict[Expr, TargetEntry] | None,
    junk: list[Expr],
) -> Expr:
    """What a GROUP BY entry groups by; a column of the input hides an alias of the same name.

    `known`: the columns that the entries of grouping sets name, each of which is NULL by itself.
    `junk`: keys with subqueries that are no target.
    """
    hidden = False
    if is_a(node, ast.ColumnRef) and len(node.fields) == 1:
        hidden = _is_input_column(scope, node)
    found = None if hidden else _by_name_or_number(targets, node, "GROUP BY")
    if found is not None:
        expr = settle_target(binding, found)
        _refuse_aggregates(binding, scope, expr)
        if known is not None and known.setdefault(expr, found) is not found:
            raise not_supported("grouping sets of columns with the same value", node_position(node))
        found.is_key = True
        return expr
    expr = binding.expression(scope, node)
    if expr.type.name == "unknown":
        expr = coerce_implicitly(binding, expr, node, TEXT)
    same = next((target for target in targets if is_same_expression(target.expr, expr)), None)
    if same is not None:
        same.is_key = True
    if not has_subquery(expr):
        return expr
    # What is written twice is one key, although the columns of its subqueries are others.
    if same is not None:
        return same.expr
    made = matching_key(expr, junk)
    if made is None:
        junk.append(expr)
    return made or expr


def found_as_key(targets: Sequence[TargetEntry], expr: Expr) -> bool | None:
    """Whether the first target that an expression equals is a key; None: it equals none."""
    found = (target.is_key for target in targets if is_same_expression(target.expr, expr))
    return next(found, None)


def _is_input_column(scope: Scope, node: Node) -> bool:
    field = node.fields[0]
    if not is_a(field, ast.String):
        return False
    name = field.sval
    return any(
        item.columns_visible and column_in_item(item, name, node.location) is not None
        for item in scope.items
    )


def _refuse_aggregates(binding: Binding, scope: Scope, expr: Expr) -> None:
    ids = {column.id for column in scope.aggregates.values()}
    windows = {column.id for column in scope.windows.values()}
    waiting: list[Expr] = [expr]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ColumnRef) and part.id in ids:
            message = "aggregate functions are not allowed in GROUP BY"
            raise grouping_error(message, binding.place(part))
        if isinstance(part, ColumnRef) and part.id in windows:
            message = "window functions are not allowed in GROUP BY"
            raise SqlError("42P20", message, binding.place(part))
        if isinstance(part, Subquery):
            waiting.extend(ref for ref in column_refs(part.plan) if ref.id in ids)
        waiting.extend(child_expressions(part))


def _by_name_or_number(targets: list[TargetEntry], node: Node, clause: str) -> TargetEntry | None:
    """A target by its name or its number (the SQL92 rules)."""
    if is_a(node, ast.ColumnRef) and len(node.fields) == 1 and is_a(node.fields[0], ast.String):
        return _by_name(targets, node.fields[0].sval, node, clause)
    if not is_a(node, ast.A_Const):
        return None
    if not is_a(node.val, ast.Integer):
        raise SqlError("42601", f"non-integer constant in {clause}", node_position(node))
    number = node.val.ival or 0
    visible = [target for target in targets if not target.junk]
    if not 1 <= number <= len(visible):
        message = f"{clause} position {number} is not in select list"
        raise SqlError("42P10", message, node_position(node))
    return visible[number - 1]


def _by_name(targets: list[TargetEntry], name: str, node: Node, clause: str) -> TargetEntry | None:
    found: TargetEntry | None = None
    for target in targets:
        if target.junk or target.name != name:
            continue
        if found is not None and found.expr != target.expr:
            raise SqlError(
                "42702", f'{clause} "{name}" is ambiguous', offset_to_position(node.location)
            )
        found = found or target
    return found


def is_untyped(expr: Expr) -> bool:
    """Whether it is an untyped literal or parameter."""
    return expr.type.name == "unknown" and isinstance(expr, Const | Param)
