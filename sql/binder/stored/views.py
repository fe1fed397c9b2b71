"""Views as stored: bind the query behind a view's name, and find the views over a relation."""

from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from functools import lru_cache

from pglast import ast, parser
from pglast.stream import RawStream

from sql.binder.resolve.query_result import resolve_unknown_columns
from sql.binder.state import Binding, FromItem
from sql.catalog.catalog import Catalog, Table, definition_of
from sql.catalog.objects import CatalogObject, ViewDefinition, relations_used_by
from sql.errors import SqlError
from sql.parser.syntax import Node, column_name, is_a
from sql.plan.nodes import ColumnRef, Expr, Plan, PlanColumn


def _is_star(target: Node) -> bool:
    return is_a(target.val, ast.ColumnRef) and is_a(target.val.fields[-1], ast.A_Star)


def view_can_be_bound(binding: Binding, view: ViewDefinition) -> bool:
    """Whether a view still binds in this binding's catalog."""
    try:
        view_plan(binding, view)
    except SqlError:
        return False
    return True


@contextmanager
def inside_view(binding: Binding, view: ViewDefinition) -> Generator[None, None, None]:
    """While a view's text is bound: names resolve as at its creation, and errors have no
    position.
    """
    binding.uses.add(definition_of(view))
    before = binding.pinned, binding.recorded, binding.parameters
    binding.pinned = {
        (schema, name): (oid, names, numbers)
        for schema, name, oid, names, numbers in view.relations
    }
    binding.recorded, binding.parameters = None, []
    try:
        yield
    except SqlError as error:
        error.position = None
        raise
    finally:
        binding.pinned, binding.recorded, binding.parameters = before


@lru_cache(maxsize=500)
def query_with_column_names(text: str, names: Sequence[str]) -> str:
    """The query of a view whose columns have these names: CREATE VIEW v (a, b), RENAME COLUMN."""
    tree = parse_view_query(text)
    first = tree
    while first.larg is not None:
        first = first.larg
    targets = first.targetList or ()
    named = [target.name or column_name(target.val) for target in targets]
    if named == [*names] or len(named) != len(names) or any(map(_is_star, targets)):
        return text
    for target, name in zip(targets, names, strict=True):
        if target.name is not None or name != column_name(target.val):
            target.name = name
    return str(RawStream()(tree))


def view_dependency_details(
    catalog: Catalog,
    views: Sequence[ViewDefinition],
    oids: Collection[int],
    path: Sequence[str] | None = None,
) -> list[str]:
    """Lines such as `view v depends on table t`, for the detail of 2BP01.

    `path`: names of relations of other schemas are qualified.
    """

    def named(thing: Table | CatalogObject) -> str:
        return thing.shown if path is None or thing.schema in path else thing.qualified

    shown = {table.oid: f"{table.kind} {named(table)}" for table in catalog.tables.values()}
    shown |= {thing.oid: f"{thing.kind} {named(thing)}" for thing in catalog.objects.values()}
    inside = {*oids, *(view.oid for view in views)}
    return [
        f"{view.kind} {named(view)} depends on {shown[oid]}"
        for view in views
        for oid in relations_used_by(view)
        if oid in inside
    ]


def view_item(view: ViewDefinition, columns: Sequence[PlanColumn]) -> FromItem:
    """The FROM item of a view."""
    named: list[tuple[str, Expr]] = [
        (name, ColumnRef(column.id, column.type))
        for name, column in zip(view.columns, columns, strict=True)
    ]
    return FromItem(view.name, named, schema=view.schema)


def view_plan(binding: Binding, view: ViewDefinition) -> tuple[Plan, Sequence[PlanColumn]]:
    """The plan of a view and its columns."""
    with inside_view(binding, view):
        result = binding.bind_query(binding, parse_view_query(view.text), None)
        resolve_unknown_columns(binding, result)
    for number, column in enumerate(result.columns, 1):
        binding.origins[column.id] = (view.oid, number)
    return result.plan, result.columns


def parse_view_query(text: str) -> Node:
    """Parse the query of a view."""
    (tree,) = parser.parse_sql(text)
    return tree.stmt


def views_over(catalog: Catalog, oids: Collection[int]) -> list[ViewDefinition]:
    """The views over these relations, directly or through other views, each once."""
    found: dict[int, ViewDefinition] = {}
    waiting = set(oids)
    while waiting:
        more = [
            view
            for view in catalog.defined_views()
            if view.oid not in found and not waiting.isdisjoint(relations_used_by(view))
        ]
        found.update((view.oid, view) for view in more)
        waiting = {view.oid for view in more}
    return sorted(found.values(), key=lambda view: view.oid)


def has_materialized_view(catalog: Catalog, oids: Collection[int]) -> bool:
    """Whether one of these relations is a materialized view."""
    return not catalog.named_tables.materialized.keys().isdisjoint(oids)


def views_reading_column(catalog: Catalog, oid: int, number: int) -> list[ViewDefinition]:
    """The views that read a table's column directly, not through other views."""
    return [
        view
        for view in catalog.defined_views()
        if (oid, number) in view.uses and any(relation[2] == oid for relation in view.relations)
    ]
