"""DROP TABLE, VIEW, SCHEMA, TYPE ..: check dependents, and expand CASCADE (RemoveObjects)."""

from collections.abc import Collection, Sequence

from pglast.enums import DropBehavior, ObjectType

from sql.binder.ddl.casts import drop_cast
from sql.binder.ddl.drop_absent import drop_absent
from sql.binder.ddl.drop_sequences import drop_sequences
from sql.binder.ddl.dropped_domains import domains_dropped_with
from sql.binder.ddl.extended_statistics import drop_statistics
from sql.binder.ddl.extensions import drop_extensions, refuse_used_extensions
from sql.binder.ddl.foreign_keys import without_foreign_keys
from sql.binder.ddl.indexes import drop_indexes
from sql.binder.ddl.user_types import column_dependency_details, drop_columns_of_types, drop_types
from sql.binder.ddl.views import drop_views
from sql.binder.resolve.catalog_lookup import (
    look_up_table,
    missing_object_notice,
    refuse_system_change,
    relation_name,
    schema_exists,
    wrong_kind,
)
from sql.binder.state import Binding
from sql.binder.stored.relation_users import (
    cascade_notices,
    dependent_objects_still_exist,
    outside_uses_of,
    relation_display_name,
    stored_uses_of,
    use_dependency_details,
    with_owned_sequences,
    without_defaults,
)
from sql.binder.stored.views import view_dependency_details, views_over
from sql.catalog.catalog import ForeignKey, Table
from sql.catalog.foreign_keys import dependent_foreign_keys
from sql.catalog.objects import (
    CatalogObject,
    ConnectionDefinition,
    DomainDefinition,
    EnumDefinition,
    ExtensionDefinition,
    IndexDefinition,
    SequenceDefinition,
    SourceDefinition,
    StatisticsDefinition,
    ViewDefinition,
    object_kind_name,
)
from sql.catalog.system_catalogs import SYSTEM_SCHEMAS
from sql.catalog.temporary import is_temporary_schema
from sql.errors import SqlError, not_supported, undefined_schema
from sql.parser.syntax import Node, string_values
from sql.statements.bound import DropSchema, DropTable
from sql.statements.ddl import ChangeObjects


def _drop_schemas(binding: Binding, node: Node) -> DropSchema:
    catalog = binding.context.catalog
    names: list[str] = []
    missing: list[str] = []
    tables: list[Table] = []
    for item in node.objects:
        name = item.sval
        if is_temporary_schema(name):
            raise SqlError("42501", f"permission denied for schema {name}")
        if name in SYSTEM_SCHEMAS:
            message = f"cannot drop schema {name} because it is required by the database system"
            raise SqlError("2BP01", message)
        if schema_exists(binding, name):
            if name in names:
                continue
            names.append(name)
            tables.extend(table for table in catalog.tables.values() if table.schema == name)
        elif node.missing_ok:
            missing.append(name)
        else:
            raise undefined_schema(name)
    oids = {table.oid for table in tables}
    objects = tuple(
        thing
        for thing in catalog.objects.values()
        if thing.schema in names and _stands_alone(thing, oids)
    )
    visible = binding.context.search_path
    gone = with_owned_sequences(catalog, oids) | {thing.oid for thing in objects}
    used = [
        use for use in stored_uses_of(catalog, gone, visible) if use.kept.of.schema not in names
    ]
    outside = [view for view in views_over(catalog, gone) if view.schema not in names]
    types = [thing for thing in objects if isinstance(thing, EnumDefinition | DomainDefinition)]
    if (tables or objects) and node.behavior != DropBehavior.DROP_CASCADE:
        along = domains_dropped_with(catalog, used).told
        told_ = [
            *use_dependency_details(used, along),
            *column_dependency_details(catalog, types, oids),
            *view_dependency_details(catalog, outside, gone, visible),
        ]
        inside: list[tuple[str, Table | CatalogObject]] = [(t.kind, t) for t in tables]
        inside += [(object_kind_name(thing), thing) for thing in objects]
        raise _not_empty(binding, names, inside, told_)
    extensions = [thing for thing in objects if isinstance(thing, ExtensionDefinition)]
    refuse_used_extensions(catalog, extensions, cascade=True)
    lost, columns = drop_columns_of_types(binding, types, oids, objects, "DROP SCHEMA")
    views = [f"drop cascades to {v.kind} {relation_display_name(v, visible)}" for v in outside]
    told = (*cascade_notices(used), *columns, *views)
    keys = without_foreign_keys(dependent_foreign_keys(catalog, oids))
    if {change.before.oid for change in keys} & {change.before.oid for change in lost.tables}:
        raise not_supported("DROP SCHEMA of tables and types that one table of another schema uses")
    changed = without_defaults(catalog, gone, (*keys, *lost.tables))
    changed = tuple(change for change in changed if change.before.oid not in oids)
    found = (tuple(names), tuple(tables), tuple(missing), objects, changed, told)
    return DropSchema(*found, outside=(*lost.dropped, *outside))


def _drop_tables(binding: Binding, node: Node) -> DropTable:
    context = binding.context
    found: dict[int, Table] = {}
    missing: list[str] = []
    for names in node.objects:
        schema, name = relation_name(binding, string_values(names))
        table = look_up_table(binding, name, schema=schema)
        if table is not None:
            refuse_system_change(table)
            if table.query is not None:
                raise wrong_kind(name, "table", table.kind)
            found[table.oid] = table
        elif (kind := _other_kind(binding, schema, name)) is not None:
            raise wrong_kind(name, "table", kind)
        else:
            missing.append(
                missing_object_notice(binding, "table", schema, name, missing_ok=node.missing_ok)
            )
    keys = dependent_foreign_keys(context.catalog, found)
    gone = with_owned_sequences(context.catalog, found)
    views = views_over(context.catalog, gone)
    used = outside_uses_of(context.catalog, found)
    domains = domains_dropped_with(context.catalog, used)
    if (keys or views or used) and node.behavior != DropBehavior.DROP_CASCADE:
        told_ = [
            *use_dependency_details(used, domains.told),
            *view_dependency_details(context.catalog, views, gone),
        ]
        raise _referred_to(keys, [*found.values()], told_)
    told = [f"drop cascades to constraint {k.name} on table {c.shown}" for c, k, _ in keys]
    told += cascade_notices(used)
    told += [f"drop cascades to {view.kind} {view.shown}" for view in views]
    changed = without_defaults(context.catalog, gone, without_foreign_keys(keys))
    changed = tuple(change for change in changed if change.before.oid not in found)
    return DropTable(tuple(found.values()), tuple(missing), changed, tuple(told), tuple(views))


def _not_empty(
    binding: Binding,
    names: Sequence[str],
    inside: Sequence[tuple[str, Table | CatalogObject]],
    told: Sequence[str],
) -> SqlError:
    visible = binding.context.search_path
    detail = [
        f"{kind} {relation_display_name(thing, visible)} depends on schema {thing.schema}"
        for kind, thing in sorted(inside, key=lambda entry: entry[1].oid)
    ]
    message = f"cannot drop schema {', '.join(names)} because other objects depend on it"
    hint = "Use DROP ... CASCADE to drop the dependent objects too."
    return SqlError("2BP01", message, detail="\n".join([*detail, *told]), hint=hint)


def _other_kind(binding: Binding, schema: str | None, name: str) -> str | None:
    """What else is called so."""
    for candidate in binding.context.search_path if schema is None else (schema,):
        thing = binding.context.catalog.relation(candidate, name)
        if thing is not None:
            return thing.kind
    return None


def _referred_to(
    keys: Sequence[tuple[Table, ForeignKey, Table]],
    dropped: Sequence[Table],
    views: Sequence[str],
) -> SqlError:
    told = [
        f"constraint {key.name} on table {child.shown} depends on table {parent.shown}"
        for child, key, parent in keys
    ]
    return dependent_objects_still_exist(
        [f"table {table.shown}" for table in dropped], [*told, *views]
    )


def _stands_alone(thing: CatalogObject, tables: Collection[int]) -> bool:
    """Whether an object of a schema does not go with one of these tables."""
    match thing:
        case SequenceDefinition(owner=owner):
            return owner not in tables
        case IndexDefinition(table=table) | StatisticsDefinition(table=table):
            return table not in tables
        case ViewDefinition() | ExtensionDefinition() | EnumDefinition() | DomainDefinition():
            return True
        case SourceDefinition() | ConnectionDefinition():
            return True


def drop(binding: Binding, node: Node) -> DropTable | DropSchema | ChangeObjects:
    """DROP of any kind of object."""
    match node.removeType:
        case ObjectType.OBJECT_TABLE:
            return _drop_tables(binding, node)
        case ObjectType.OBJECT_SCHEMA:
            return _drop_schemas(binding, node)
        case ObjectType.OBJECT_VIEW | ObjectType.OBJECT_MATVIEW:
            return drop_views(binding, node)
        case ObjectType.OBJECT_INDEX:
            return drop_indexes(binding, node)
        case ObjectType.OBJECT_TYPE | ObjectType.OBJECT_DOMAIN:
            return drop_types(binding, node)
        case ObjectType.OBJECT_SEQUENCE:
            return drop_sequences(binding, node)
        case ObjectType.OBJECT_EXTENSION:
            return drop_extensions(binding, node)
        case ObjectType.OBJECT_CAST:
            return drop_cast(binding, node)
        case ObjectType.OBJECT_STATISTIC_EXT:
            return drop_statistics(binding, node)
        case _:
            return drop_absent(binding, node)
