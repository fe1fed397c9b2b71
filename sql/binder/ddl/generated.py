"""GENERATED ALWAYS AS (..) STORED: bind the expressions, and the plan that computes them.

INVARIANTS
  G1  the expression reads ordinary columns of its row only, and is immutable: every later reader
      would compute the same value.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from pglast import ast

from sql.binder.resolve.coercion import ASSIGNMENT, coerce, coerce_to_storage
from sql.binder.state import Binding, Scope
from sql.binder.stored.column_expressions import (
    bind_stored,
    check_scope,
    parse_stored_expression,
    referenced_column_names,
    refuse_subqueries,
    stored_text_of,
)
from sql.binder.stored.table_changes import without_qualifiers
from sql.catalog.catalog import Column, Table
from sql.errors import SqlError, datatype_mismatch
from sql.parser.syntax import Node, is_a, node_position, offset_to_position, tree_nodes
from sql.plan.nodes import Call, ColumnRef, Expr, Plan, Project
from sql.plan.traverse import child_expressions
from sql.types.enums import is_enum
from sql.types.sql_type import SqlType, format_type

_PLAIN: Final = frozenset(
    {"text", "varchar", "bpchar", "bool", "int2", "int4", "int8", "numeric", "uuid"}
)
_PRINTING: Final = frozenset({"||", "quote_literal", "quote_nullable"})
"""Stable, as they are of any type; PostgreSQL looks into them (inline_function)."""


def with_generated(binding: Binding, table: Table, nodes: Mapping[str, Node]) -> tuple[Column, ...]:
    """The table's columns, with the expressions of its generated columns."""
    made: list[Column] = []
    for column in table.columns:
        node = nodes.get(column.name)
        if node is None:
            made.append(column)
            continue
        _refuse_whole_rows(node)
        known = {other.name for other in table.columns if other.generated is not None}
        for name in referenced_column_names(node):
            if name in nodes or name in known:
                message = f'cannot use generated column "{name}" in column generation expression'
                detail = "A generated column cannot reference another generated column."
                raise SqlError("42P17", message, node_position(node), detail=detail)
        _check(binding, table, column, node)
        made.append(replace(column, generated=without_qualifiers(stored_text_of(binding, node))))
    return tuple(made)


def _refuse_whole_rows(node: Node) -> None:
    for part in tree_nodes(node):
        if is_a(part, ast.ColumnRef) and is_a(part.fields[-1], ast.A_Star):
            message = "cannot use whole-row variable in column generation expression"
            detail = "This would cause the generated column to depend on its own value."
            raise SqlError("42P17", message, offset_to_position(part.location), detail=detail)


def _check(binding: Binding, table: Table, column: Column, node: Node) -> None:
    refuse_subqueries(node, "column generation expression")
    _, scope = check_scope(binding, table)
    scope.clause = "column generation expressions"
    bind = partial(_value, binding, scope, column, node)
    bind_immutable(binding, bind, "generation expression is not immutable")


def bind_immutable(binding: Binding, bind: Callable[[], Expr], message: str) -> Expr:
    """Run a binding step whose result must depend on no setting and no time, or raise 42P17."""
    moved = binding.uses_now, binding.uses_session
    binding.uses_now = binding.uses_session = False
    expr = bind()
    moving = binding.uses_now or binding.uses_session
    binding.uses_now, binding.uses_session = moved
    if moving or _is_mutable(expr):
        raise SqlError("42P17", message)
    return expr


def _value(binding: Binding, scope: Scope, column: Column, node: Node) -> Expr:
    expr = binding.expression(scope, node)
    done = coerce(binding, expr, node, column.type, ASSIGNMENT)
    if done is None:
        shown, wanted = (format_type(SqlType(name)) for name in (expr.type.name, column.type.name))
        message = (
            f'column "{column.name}" is of type {wanted} but default expression is of type {shown}'
        )
        raise datatype_mismatch(message, hint="You will need to rewrite or cast the expression.")
    return coerce_to_storage(binding, done, column.type)


def _is_mutable(expr: Expr) -> bool:
    if isinstance(expr, Call):
        # What these make of such values is the same everywhere.
        plain = expr.function.name in _PRINTING and all(a.type.name in _PLAIN for a in expr.args)
        if expr.function.volatility != "immutable" and (expr.function.zone or not plain):
            return True
        if expr.function.context is not None and _is_of_labels(expr):
            return True
    return any(_is_mutable(part) for part in child_expressions(expr))


def _is_of_labels(cast: Call) -> bool:
    """Whether a cast makes text of an enum, or the reverse: labels get other names."""
    return is_enum(cast.type.name) or any(is_enum(arg.type.name) for arg in cast.args)


def generated_plan(binding: Binding, table: Table) -> Plan:
    """All columns of the table over rows of `new`, with the generated columns computed."""
    scanned, scope = check_scope(binding, table)
    exprs: list[Expr] = []
    for made, column in zip(scanned.columns, table.columns, strict=True):
        if column.generated is None:
            exprs.append(ColumnRef(made.id, made.type))
        else:
            node = parse_stored_expression(column.generated)
            exprs.append(bind_stored(binding, partial(_value, binding, scope, column, node)))
    new = tuple([binding.table_column(column) for column in table.columns])
    return Project(scanned, new, tuple(exprs))
