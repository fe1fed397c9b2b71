"""ON CONFLICT: infer the arbiter keys, and bind the update of the existing row.

Follows PostgreSQL's transformOnConflictClause and infer_arbiter_indexes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pglast import ast
from pglast.enums import OnConflictAction

from sql.binder.dml.assignment import assignments
from sql.binder.dml.returning import scanned_tables
from sql.binder.dml.target_relation import TargetRelation
from sql.binder.dml.updatable_views import WriteEvent
from sql.binder.expressions.expression import condition
from sql.binder.resolve.collations import check_collation
from sql.binder.resolve.column_lookup import missing_column
from sql.binder.resolve.operator_classes import is_default_class
from sql.binder.state import Binding, FromItem, Scope
from sql.binder.stored.table_changes import with_generated_columns
from sql.binder.stored.unique_indexes import (
    by_ordinal,
    unique_index_expressions,
    unique_indexes_of,
)
from sql.catalog.catalog import Table
from sql.catalog.constraint_names import constraint_names
from sql.errors import SqlError
from sql.parser.syntax import Node, is_a, offset_to_position, string_values
from sql.plan.nodes import ColumnRef, Expr, Filter, Plan, PlanColumn, Project, RelationId, Scan
from sql.plan.pruning import prune_columns
from sql.plan.traverse import (
    conjuncts,
)
from sql.statements.bound import OnConflict
from sql.types.sql_type import INT8

CONFLICTING_ROWS = RelationId("conflicts")


def on_conflict(binding: Binding, outer: Scope, written: TargetRelation, node: Node) -> OnConflict:
    """Bind the ON CONFLICT clause of an INSERT."""
    clause = node.onConflictClause
    updates = clause.action == OnConflictAction.ONCONFLICT_UPDATE
    if updates and clause.infer is None:
        message = "ON CONFLICT DO UPDATE requires inference specification or constraint name"
        hint = "For example, ON CONFLICT (column_name)."
        raise SqlError("42601", message, offset_to_position(clause.location), hint=hint)
    named = _named(binding, outer, written, node)
    if not updates:
        found = _inferred(binding, outer, written, node) if named is None else named
        return OnConflict(found.keys, indexes=found.indexes)
    plan, assigned = _update(binding, outer, written, node)
    found = _inferred(binding, outer, written, node) if named is None else named
    tables = scanned_tables(binding, plan)
    return OnConflict(found.keys, plan, assigned, tables, found.indexes)


@dataclass(frozen=True, slots=True)
class _Arbiters:
    """Places of keys, and oids of other unique indexes."""

    keys: tuple[int, ...]
    indexes: tuple[int, ...] = ()


def _named(binding: Binding, outer: Scope, written: TargetRelation, node: Node) -> _Arbiters | None:
    """The key of ON CONSTRAINT; all keys without a target; None: to be inferred."""
    keys, infer = written.table.keys, node.onConflictClause.infer
    if infer is None:
        indexes = unique_indexes_of(binding.context.catalog, written.table)
        return _Arbiters(tuple(range(len(keys))), tuple(index.oid for index in indexes))
    if infer.conname is not None:
        found = [
            place for place, key in enumerate(keys) if key.name == infer.conname and not key.index
        ]
        if not found and not written.is_view and infer.conname in _constraints(written.table):
            message = "constraint in ON CONFLICT clause has no associated index"
            raise SqlError("42809", message)
        if not found or written.is_view:
            message = f'constraint "{infer.conname}" for table "{written.name}" does not exist'
            raise SqlError("42704", message)
        return _Arbiters(tuple(found))
    _check_elements(binding, outer, written, node)
    return None


def _constraints(table: Table) -> set[str]:
    return {*constraint_names(table)} - {key.name for key in table.keys}


def _check_elements(binding: Binding, outer: Scope, written: TargetRelation, node: Node) -> None:
    columns, infer = {column.name for column in written.columns}, node.onConflictClause.infer
    scope, _, _ = _scope(binding, outer, written, node, excluded=False)
    scope.clause = "ON CONFLICT"
    for element in infer.indexElems:
        for given, word in (
            (int(element.ordering or 0), "ASC/DESC"),
            (int(element.nulls_ordering or 0), "NULLS FIRST/LAST"),
        ):
            if given:
                message = f"{word} is not allowed in ON CONFLICT clause"
                raise SqlError("42P10", message, offset_to_position(infer.location))
        if element.expr is not None:
            binding.expression(scope, element.expr)
        elif element.name not in columns:
            raise missing_column(scope, element.name, infer.location)
    if infer.whereClause is not None:
        condition(binding, scope, infer.whereClause, "WHERE")


def _inferred(binding: Binding, outer: Scope, written: TargetRelation, node: Node) -> _Arbiters:
    """The keys of just these columns, and the unique indexes of just these columns and expressions
    whose predicate the condition implies.
    """
    infer = node.onConflictClause.infer
    names = {
        element.name if element.expr is None else _column_of(element.expr)
        for element in infer.indexElems
    }
    places = {column.name: place for place, column in enumerate(written.columns)}
    ordinals = {
        None if name is None or name not in places else written.ordinal(places[name])
        for name in names
    }
    keys = enumerate(written.table.keys)
    found = [place for place, key in keys if {*key.columns} == ordinals]
    others = [e for e in infer.indexElems if not _says_as_keys(binding, written, e)]
    if others:
        found = []
    indexes: tuple[int, ...] = ()
    if written.table.unique_indexes and not others:
        indexes = _inferred_indexes(binding, outer, written, node)
    if not found and not indexes:
        message = (
            "there is no unique or exclusion constraint matching the ON CONFLICT specification"
        )
        raise SqlError("42P10", message)
    return _Arbiters(tuple(found), indexes)


def _inferred_indexes(
    binding: Binding, outer: Scope, written: TargetRelation, node: Node
) -> tuple[int, ...]:
    infer = node.onConflictClause.infer
    scope, _, there = _scope(binding, outer, written, node, excluded=False)
    scope.clause = "ON CONFLICT"
    wanted = {
        by_ordinal(binding.expression(scope, _element_node(element)), there)
        for element in infer.indexElems
    }
    given: set[Expr] = set()
    if infer.whereClause is not None:
        whole = condition(binding, scope, infer.whereClause, "WHERE")
        given = {by_ordinal(part, there) for part in conjuncts(whole)}
    found: list[int] = []
    for index in unique_indexes_of(binding.context.catalog, written.table):
        elements, predicate = unique_index_expressions(binding, written.table, index)
        implied = predicate is None or given.issuperset(conjuncts(predicate))
        if implied and wanted == {*elements}:
            found.append(index.oid)
    return tuple(found)


def _element_node(element: Node) -> Node:
    if element.expr is not None:
        return element.expr
    return ast.ColumnRef(fields=(ast.String(sval=element.name),))


def _says_as_keys(binding: Binding, written: TargetRelation, element: Node) -> bool:
    """Whether a column is compared as our keys compare it: by its type's own operator class, in the
    collation that every text has if it is not told another one.
    """
    name = element.name if element.expr is None else _column_of(element.expr)
    found = [column.type for column in written.columns if column.name == name]
    if not found:
        return True  # no key's column, whatever is said of it
    (type_,) = found
    if element.opclass and not is_default_class(binding, string_values(element.opclass), type_):
        return False
    if not element.collation:
        return True
    if type_.category != "S":
        return False
    check_collation(binding, ast.CollateClause(collname=element.collation), type_)
    return string_values(element.collation)[-1] == "default"


def _column_of(expr: Node) -> str | None:
    """`(a)` in parentheses is the column a."""
    if is_a(expr, ast.ColumnRef) and len(expr.fields) == 1 and is_a(expr.fields[0], ast.String):
        name: str = expr.fields[0].sval
        return name
    return None


# --- DO UPDATE ---------------------------------------------------------------------------------


def _scope(
    binding: Binding, outer: Scope, written: TargetRelation, node: Node, *, excluded: bool = True
) -> tuple[Scope, Scan, Sequence[PlanColumn]]:
    """The row that is there under the table's name, the other as `excluded`."""
    table = written.table
    place = binding.new_column("place", INT8)
    there = _columns(binding, table)
    proposed = _columns(binding, table)
    columns = (place, *there, *proposed)
    scan = Scan(CONFLICTING_ROWS, table.name, columns, tuple(range(len(columns))))
    item = written.item(binding, there, node.relation.alias)
    scope = Scope(None, [item], dict(outer.ctes), {column.id for column in columns})
    if excluded:
        shown = zip(written.columns, written.shown(proposed), strict=True)
        scope.items.append(FromItem("excluded", [(column.name, expr) for column, expr in shown]))
    return scope, scan, there


def _columns(binding: Binding, table: Table) -> tuple[PlanColumn, ...]:
    return tuple([binding.table_column(column) for column in table.columns])


def _update(
    binding: Binding, outer: Scope, written: TargetRelation, node: Node
) -> tuple[Plan, tuple[int, ...]]:
    """The plan, and the ordinals that it assigns."""
    clause = node.onConflictClause
    scope, rows, there = _scope(binding, outer, written, node)
    scope.clause = "UPDATE"
    changes = assignments(binding, scope, written, clause.targetList, WriteEvent.INSERT)
    plan: Plan = rows
    if clause.whereClause is not None:
        scope.clause = "WHERE"
        plan = Filter(rows, condition(binding, scope, clause.whereClause, "WHERE"))
    place = rows.columns[0]
    exprs: list[Expr] = [ColumnRef(place.id, place.type)]
    exprs += [
        changes.get(ordinal, ColumnRef(column.id, column.type))
        for ordinal, column in enumerate(there)
    ]
    made = (binding.new_column("place", INT8), *_columns(binding, written.table))
    return prune_columns(Project(plan, made, tuple(exprs))), with_generated_columns(
        written.table, changes
    )
