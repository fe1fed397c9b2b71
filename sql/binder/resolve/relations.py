"""Look up the relations of FROM, and build their scans and range table entries."""

from collections.abc import Callable, Sequence

from sql.binder.resolve.catalog_lookup import check_database, look_up_table, schema_exists
from sql.binder.state import Binding, FromItem
from sql.catalog.catalog import NameDependency, Table
from sql.catalog.meridian_schema import is_server_state
from sql.catalog.objects import SequenceDefinition, ViewDefinition
from sql.catalog.sequence_relation import is_sequence, sequence_relation
from sql.catalog.system_catalogs import PG_CATALOG, is_unsupported_catalog
from sql.errors import SqlError, not_supported, undefined_schema, undefined_table
from sql.parser.syntax import Node, offset_to_position, string_values
from sql.plan.nodes import Expr, PlanColumn, RelationId, Scan
from sql.plan.projections import column_reference
from sql.types.sql_type import INT8, TEXT


def aliased_item(
    columns: Sequence[tuple[str, Expr]], alias: Node, schema: str, relation: str
) -> FromItem:
    """The FROM item of a table or view, with its alias."""
    shown = aliased_columns(columns, alias, alias.aliasname)
    declared = tuple([name for name, _ in columns])
    return FromItem(alias.aliasname, shown, schema=schema, relation=relation, declared=declared)


def _recorded(
    binding: Binding, key: tuple[str, str], found: Table | ViewDefinition
) -> Table | ViewDefinition:
    if binding.recorded is None:
        return found
    if isinstance(found, ViewDefinition):
        names, numbers = found.columns, tuple(range(1, len(found.columns) + 1))
    else:
        if is_server_state(found):
            what = "sequences" if is_sequence(found) else "system relations"
            raise not_supported(f"a view over {what}")
        names = tuple(column.name for column in found.columns)
        numbers = tuple(found.number_of(at_) for at_ in range(len(names)))
    binding.recorded[key] = (found.oid, names, numbers)
    return found


def find_table(
    binding: Binding, node: Node, not_a_table: Callable[[str, str], SqlError] | None = None
) -> Table:
    """The table of a RangeVar, or 42P01; a sequence where any relation is allowed.

    `not_a_table`: makes PostgreSQL's error for another relation from its name and kind.
    """
    place = offset_to_position(node.location)
    check_database(binding, node)
    schema = node.schemaname
    sequence = find_sequence_relation(binding, node)
    if sequence is not None:
        if not_a_table is not None:
            raise not_a_table(node.relname, "sequence")
        return sequence
    table = look_up_table(binding, node.relname, schema=schema)
    if table is None:
        view = find_view(binding, node)
        if view is not None:
            raise (
                not_supported("a view here", place)
                if not_a_table is None
                else not_a_table(view.name, "view")
            )
        where = PG_CATALOG if schema is None else schema
        if is_unsupported_catalog(where, node.relname):
            raise not_supported(f"{where}.{node.relname}", place)
        if not_a_table is not None and schema is not None and not schema_exists(binding, schema):
            raise undefined_schema(schema)
        shown = node.relname if schema is None else f"{schema}.{node.relname}"
        raise undefined_table(shown, place)
    return table


def find_view(binding: Binding, node: Node) -> ViewDefinition | None:
    """The view of a RangeVar, if no table precedes it in the search path."""
    check_database(binding, node)
    catalog = binding.context.catalog
    if not catalog.objects:
        return None
    path = (node.schemaname,) if node.schemaname else binding.context.search_path
    for schema in path:
        if (schema, node.relname) in catalog.tables:
            return None
        found = catalog.relation(schema, node.relname)
        if isinstance(found, ViewDefinition):
            return found
        if found is not None:
            message = f'cannot open relation "{node.relname}"'
            detail = "This operation is not supported for indexes."
            if found.kind == "sequence":
                return None
            raise SqlError("42809", message, offset_to_position(node.location), detail=detail)
        binding.look_ups.add(NameDependency(schema, node.relname, None))
    return None


def resolve_relation(binding: Binding, node: Node) -> Table | ViewDefinition:
    """The table or view of a RangeVar; in a view's text the one that it meant when the view was
    created.
    """
    key = (node.schemaname or "", node.relname)
    if binding.pinned is not None and key in binding.pinned:
        oid = binding.pinned[key][0]
        table = binding.context.catalog.by_oid(oid)
        view = next((v for v in binding.context.catalog.views() if v.oid == oid), None)
        found = view if table is None else table
        assert found is not None, "V2 of `views.py`: what a view uses is there"
        return found
    return _recorded(binding, key, find_view(binding, node) or find_table(binding, node))


def aliased_columns(
    columns: Sequence[tuple[str, Expr]], alias: Node, shown: str
) -> list[tuple[str, Expr]]:
    """The columns under the names that an alias gives them."""
    names = string_values(alias.colnames)
    if len(names) > len(columns):
        message = (
            f'table "{shown}" has {len(columns)} columns available but '
            f"{len(names)} columns specified"
        )
        raise SqlError("42P10", message)
    kept = [name for name, _ in columns[len(names) :]]
    return [(name, expr) for name, (_, expr) in zip([*names, *kept], columns, strict=True)]


def table_scan(
    binding: Binding, table: Table, *, identity: bool = False, relation: str | None = None
) -> Scan:
    """All columns of a table; `relation` names the input if it is not the table's shard."""
    columns: list[PlanColumn] = []
    for ordinal, column in enumerate(table.columns):
        made = binding.table_column(column)
        binding.origins[made.id] = (table.oid, table.number_of(ordinal))
        columns.append(made)
    who = None
    if identity:
        who = (binding.new_column("source", TEXT), binding.new_column("index", INT8))
    return Scan(
        RelationId(table.shard if relation is None else relation),
        table.name,
        tuple(columns),
        tuple(range(len(columns))),
        who,
    )


def find_sequence_relation(binding: Binding, node: Node) -> Table | None:
    """The sequence of a RangeVar, if no table precedes it in the search path."""
    catalog = binding.context.catalog
    for schema in (node.schemaname,) if node.schemaname else binding.context.search_path:
        found = catalog.relation(schema, node.relname)
        if isinstance(found, SequenceDefinition):
            binding.uses.add(NameDependency(schema, found.name, found.oid))
            return sequence_relation(found)
        if found is not None or (schema, node.relname) in catalog.tables:
            return None
    return None


def table_item(scan_: Scan, table: Table, alias: Node | None) -> FromItem:
    """The FROM item of a scanned table."""
    columns = [(column.name, column_reference(column)) for column in scan_.columns]
    if alias is None:
        return FromItem(table.name, columns, schema=table.schema)
    return aliased_item(columns, alias, table.schema, table.name)
