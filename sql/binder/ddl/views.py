"""CREATE [OR REPLACE] VIEW and DROP VIEW: store a view's text with the meaning of its names.

A view is stored as text, together with the oids of the relations that its names meant, and their
columns by number. Every query that uses it binds the text again. The view thus follows relations
and columns that are renamed, and does not see columns that are added later.

INVARIANTS
  V1  a view keeps the columns that it was created with, whatever is added or renamed below it.
  V2  an object that a view uses is never dropped without the view.
"""

from collections.abc import Sequence
from dataclasses import replace

from pglast import ast, parser
from pglast.enums import DropBehavior
from pglast.stream import RawStream

from sql.binder.ddl.schemas import creation_schema, temporary_schema
from sql.binder.dml.updatable_views import check_option
from sql.binder.resolve.catalog_lookup import (
    Relation,
    missing_object_notice,
    named_relation,
    refuse_row_type_clash,
    relation_exists,
    relation_kind,
    relation_name,
    wrong_kind,
)
from sql.binder.resolve.query_result import resolve_unknown_columns
from sql.binder.resolve.type_names import refuse_pseudo_type
from sql.binder.state import Binding
from sql.binder.stored.column_expressions import without_position
from sql.binder.stored.relation_users import (
    cascade_notices,
    dependent_objects_still_exist,
    stored_uses_of,
    use_dependency_details,
    without_defaults,
)
from sql.binder.stored.stored_names import canonical_text, named_relations
from sql.binder.stored.views import (
    has_materialized_view,
    parse_view_query,
    view_dependency_details,
    view_plan,
    views_over,
)
from sql.catalog.catalog import Table
from sql.catalog.objects import ViewDefinition
from sql.catalog.temporary import is_temporary_schema
from sql.errors import SqlError, duplicate_table, not_supported
from sql.parser.statement_names import object_type_name
from sql.parser.syntax import Node, is_a, refuse_parameters, string_values
from sql.plan.nodes import Plan, PlanColumn, RelationId
from sql.plan.pruning import prune_columns
from sql.plan.system_columns import is_system_column
from sql.plan.traverse import (
    scans,
)
from sql.statements.ddl import ChangeObjects, CreateObject, drop_cascade_notices
from sql.types.limits import check_column_count
from sql.types.sql_type import format_type

# --- in queries --------------------------------------------------------------------------------


# --- CREATE ------------------------------------------------------------------------------------


def create_view(binding: Binding, node: Node) -> CreateObject | ChangeObjects:
    """CREATE [OR REPLACE] VIEW."""
    relation = node.view
    _refuse_forms(node)
    refuse_parameters(node.query)
    binding.recorded = {}
    result = binding.bind_query(binding, node.query, None)
    resolve_unknown_columns(binding, result)
    recorded, binding.recorded = binding.recorded, None
    # It is defined, and locks nothing.
    binding.locking.clear()
    used = {oid for oid, _, _ in recorded.values()}
    schema, notices = without_position(lambda: _schema(binding, relation, used))
    names = _names(node, [column.name for column in result.columns])
    check_column_count(len(names))
    for name, column in zip(names, result.columns, strict=True):
        refuse_pseudo_type(name, column.type)
    text = stored_query_text(binding, node.query)
    # It is defined, and takes no values of sequences.
    binding.supplied.clear()
    made = ViewDefinition(
        0,
        schema,
        relation.relname,
        text,
        names,
        tuple((schema_ or "", name, *found) for (schema_, name), found in recorded.items()),
        (
            *used_columns(binding, prune_columns(result.plan)),
            *((oid, 0) for oid in named_relations(text)),
        ),
        check_option(
            node,
            has_columns=any(c.id in binding.origins for c in result.columns),
            of_materialized=has_materialized_view(binding.context.catalog, used),
        ),
    )
    known = binding.context.catalog.relation(schema, relation.relname)
    if not relation_exists(binding, schema, relation.relname):
        refuse_row_type_clash(binding, schema, relation.relname)
        return CreateObject(made, "CREATE VIEW", notices=notices)
    if not node.replace:
        raise duplicate_table(relation.relname)
    if not isinstance(known, ViewDefinition):
        raise SqlError("42809", f'"{relation.relname}" is not a view')
    _check_replaced(binding, known, made, result.columns)
    below = {relation[2] for relation in made.relations}
    if known.oid in below or not below.isdisjoint(
        view.oid for view in views_over(binding.context.catalog, [known.oid])
    ):
        message = f'infinite recursion detected in rules for relation "{known.name}"'
        raise SqlError("42P17", message)
    made = replace(made, oid=known.oid, version=known.version + 1, defaults=known.defaults)
    told = tuple(("00000", text, None) for text in notices)
    return ChangeObjects("CREATE VIEW", objects=(made,), notices=told)


def _refuse_forms(node: Node) -> None:
    """What is no query of a view, as PostgreSQL says it: without a place."""
    first = node.query
    while first.larg is not None:
        first = first.larg
    if first.intoClause is not None:
        raise SqlError("0A000", "views must not contain SELECT INTO")
    if has_modifying_cte(node.query):
        message = "views must not contain data-modifying statements in WITH"
        raise SqlError("0A000", message)
    if node.view.relpersistence == "u":
        message = "views cannot be unlogged because they do not have storage"
        raise SqlError("42601", message)


def has_modifying_cte(query: Node) -> bool:
    """Whether a WITH query of it modifies data."""
    ctes = () if query.withClause is None else query.withClause.ctes
    return not all(is_a(cte.ctequery, ast.SelectStmt) for cte in ctes)


def temporary_relations(binding: Binding) -> set[int]:
    """The oids of temporary tables and views."""
    catalog = binding.context.catalog
    own = {table.oid for table in catalog.tables.values() if is_temporary_schema(table.schema)}
    return own | {view.oid for view in catalog.views() if is_temporary_schema(view.schema)}


def _schema(binding: Binding, relation: Node, used: set[int]) -> tuple[str, tuple[str, ...]]:
    """Where the view comes to be: what shows something temporary is so itself, with a notice."""
    if relation.relpersistence == "t" or temporary_relations(binding).isdisjoint(used):
        return creation_schema(binding, relation), ()
    notice = f'view "{relation.relname}" will be a temporary view'
    if relation.schemaname not in (None, binding.context.temporary):
        raise SqlError("42P16", "cannot create temporary relation in non-temporary schema")
    return temporary_schema(binding), (notice,)


def stored_query_text(binding: Binding, query: Node) -> str:
    """The text that a view keeps of its query."""
    text = str(RawStream()(query))
    try:
        same = parse_view_query(text) == query
    except parser.ParseError:
        same = False
    if not same:
        raise not_supported("keeping this query in a view")
    return canonical_text(binding, text, query, parse_view_query)


def _names(node: Node, found: list[str]) -> tuple[str, ...]:
    given = string_values(node.aliases)
    if len(given) > len(found):
        raise SqlError("42601", "CREATE VIEW specifies more column names than columns")
    names = [*given, *found[len(given) :]]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise SqlError("42701", f'column "{name}" specified more than once')
    return tuple(names)


def used_columns(binding: Binding, plan: Plan) -> tuple[tuple[int, int], ...]:
    """Oid and number of each column that the view reads."""
    by_shard = {RelationId(table.shard): table for table in binding.tables.values()}
    return tuple(
        dict.fromkeys(
            (by_shard[scan.relation].oid, by_shard[scan.relation].number_of(ordinal))
            for scan in scans(plan)
            if scan.relation in by_shard
            for ordinal in scan.ordinals
            if not is_system_column(ordinal)
        )
    )


def _check_replaced(
    binding: Binding, old: ViewDefinition, new: ViewDefinition, columns: Sequence[PlanColumn]
) -> None:
    """What CREATE OR REPLACE may not change (checkViewColumns)."""
    _, before = view_plan(binding, old)
    if len(new.columns) < len(old.columns):
        raise SqlError("42P16", "cannot drop columns from view")
    for name, was, column, known in zip(new.columns, old.columns, columns, before, strict=False):
        if name != was:
            hint = "Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead."
            message = f'cannot change name of view column "{was}" to "{name}"'
            raise SqlError("42P16", message, hint=hint)
        types = [_shown_type(binding, shown) for shown in (known, column)]
        if types[0] != types[1]:
            message = (
                f'cannot change data type of view column "{was}" from {types[0]} to {types[1]}'
            )
            raise SqlError("42P16", message)


def _shown_type(binding: Binding, column: PlanColumn) -> str:
    domain = binding.domain(column.id)
    return format_type(column.type) if domain is None else domain.shown


# --- DROP, and what depends on what ------------------------------------------------------------


def drop_views(binding: Binding, node: Node) -> ChangeObjects:
    """DROP [MATERIALIZED] VIEW [IF EXISTS] .. [CASCADE]."""
    catalog = binding.context.catalog
    tag = f"DROP {object_type_name(node.removeType)}"
    wanted = object_type_name(node.removeType).lower()
    dropped: dict[int, ViewDefinition] = {}
    notices: list[tuple[str, str, str | None]] = []
    for names in node.objects:
        schema, name = relation_name(binding, string_values(names))
        path = binding.context.search_path if schema is None else (schema,)
        found = _found(binding, path, name)
        view = found.materialized_view if isinstance(found, Table) else found
        if isinstance(view, ViewDefinition) and view.kind == wanted:
            dropped[view.oid] = view
        elif found is not None:
            raise wrong_kind(name, wanted, relation_kind(found))
        else:
            told = missing_object_notice(binding, wanted, schema, name, missing_ok=node.missing_ok)
            notices.append(("00000", told, None))
    others = [view for view in views_over(catalog, dropped) if view.oid not in dropped]
    gone = {*dropped, *(view.oid for view in others)}
    used = stored_uses_of(catalog, gone)
    if (others or used) and node.behavior != DropBehavior.DROP_CASCADE:
        raise dependent_objects_still_exist(
            [f"{view.kind} {view.shown}" for view in dropped.values()],
            [*use_dependency_details(used), *view_dependency_details(catalog, others, dropped)],
        )
    along = [*cascade_notices(used)]
    along += [f"drop cascades to {view.kind} {view.shown}" for view in others]
    notices += drop_cascade_notices(along)
    return ChangeObjects(
        tag,
        dropped=(*dropped.values(), *others),
        tables=without_defaults(catalog, gone),
        notices=tuple(notices),
    )


def _found(binding: Binding, path: Sequence[str], name: str) -> Relation | None:
    found = (named_relation(binding.context.catalog, schema, name) for schema in path)
    return next((thing for thing in found if thing is not None), None)
