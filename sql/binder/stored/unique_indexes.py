"""Bind the texts of a unique index that is no key: its columns and expressions, and its predicate.

    IndexDefinition ─▶ Project over rows of `new`: an output for each element, one for the predicate

Its columns are checked when it is made (`sql/binder/ddl/indexes.py`); nothing here can fail then.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from pglast import ast
from pglast.enums import A_Expr_Kind, CoercionForm

from sql.binder.resolve.coercion import to_boolean
from sql.binder.state import Binding, Scope
from sql.binder.stored.column_expressions import (
    bind_stored,
    check_scope,
    parse_stored_expression,
)
from sql.binder.stored.table_changes import columns_in_index
from sql.catalog.catalog import Catalog, Table
from sql.catalog.objects import IndexDefinition
from sql.plan.nodes import ColumnId, ColumnRef, Expr, PlanColumn, Project, Scan
from sql.plan.traverse import rewrite_children


def unique_indexes_of(catalog: Catalog, table: Table) -> Sequence[IndexDefinition]:
    """The unique indexes of a table that are no keys, in the order in which they were made."""
    if not table.unique_indexes:
        return ()
    found = (index for index in catalog.indexes(table.oid) if index.unique)
    return sorted(found, key=lambda index: index.oid)


def unique_index_columns(catalog: Catalog, table: Table) -> set[int]:
    """The ordinals of the columns that these indexes are made of. One over constants is made of the
    first, as in `compute/access/computed_keys.py`.
    """
    found: set[int] = set()
    for index in unique_indexes_of(catalog, table):
        names = columns_in_index(index)
        found.update(at for at, column in enumerate(table.columns) if column.name in names)
        if not columns_in_index(replace(index, include=())):
            found.add(0)
    return found


def index_element_text(text: str) -> str:
    """A column or a call as it is; the grammar wants any other expression in parentheses."""
    match parse_stored_expression(text):
        case ast.ColumnRef() | ast.CoalesceExpr() | ast.MinMaxExpr() | ast.SQLValueFunction():
            return text
        case ast.FuncCall(funcformat=CoercionForm.COERCE_EXPLICIT_CALL):
            return text
        case ast.A_Expr(kind=A_Expr_Kind.AEXPR_NULLIF):
            return text
        case _:
            return f"({text})"


def unique_index_plan(binding: Binding, table: Table, index: IndexDefinition) -> Project:
    """The values of the elements, and of the predicate if there is one."""
    scanned, scope = check_scope(binding, table)
    exprs = [_bound(binding, scope, text) for text in index.elements]
    if index.predicate:
        node = parse_stored_expression(index.predicate)
        condition = partial(binding.expression, scope, node)
        bound = bind_stored(binding, condition)
        exprs.append(to_boolean(binding, bound, node, "WHERE"))
    made = tuple([binding.new_column("element", expr.type) for expr in exprs])
    return Project(scanned, made, tuple(exprs))


def unique_index_expressions(
    binding: Binding, table: Table, index: IndexDefinition
) -> tuple[Sequence[Expr], Expr | None]:
    """The elements, and the predicate, over columns that are numbered by ordinal."""
    plan = unique_index_plan(binding, table, index)
    exprs = expressions_by_ordinal(plan)
    count = len(index.elements)
    return exprs[:count], exprs[count] if index.predicate else None


def expressions_by_ordinal(plan: Project) -> Sequence[Expr]:
    """What a plan of `unique_index_plan` computes, over columns that are numbered by ordinal."""
    assert isinstance(plan.input, Scan), "its input are rows of the table"
    columns = plan.input.columns
    return [by_ordinal(expr, columns) for expr in plan.exprs]


def by_ordinal(expr: Expr, columns: Sequence[PlanColumn]) -> Expr:
    """The expression over the ordinals of these columns."""
    ordinals = {column.id: ColumnId(at) for at, column in enumerate(columns)}

    def renumbered(part: Expr) -> Expr:
        if isinstance(part, ColumnRef):
            return ColumnRef(ordinals[part.id], part.type)
        return rewrite_children(part, renumbered)

    return renumbered(expr)


def _bound(binding: Binding, scope: Scope, text: str) -> Expr:
    return bind_stored(binding, partial(binding.expression, scope, parse_stored_expression(text)))
