"""CREATE and DROP of tables and schemas."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from pglast import ast
from pglast.enums import ConstrType, DropBehavior, ObjectType, OnCommitAction

from sql.bind_checks import bind_checks
from sql.bind_columns import CONSTRAINTS, Parts, column_of
from sql.bind_foreign_keys import (
    ForeignNode,
    bind_foreign_keys,
    dependents,
    without_keys,
)
from sql.bind_generated import with_generated
from sql.bind_keys import KEY_KINDS, KeyNode, bind_keys, relation_names
from sql.bind_like import Copied, like, with_copied
from sql.binding import Binding
from sql.catalog import SYSTEM_TIMELINE, Column, ForeignKey, Table
from sql.catalog_objects import (
    CatalogObject,
    DomainDefinition,
    EnumDefinition,
    IndexDefinition,
    SequenceDefinition,
    ViewDefinition,
    word_for,
)
from sql.definition_statements import ChangeObjects
from sql.delta_invariants import with_invariants
from sql.errors import SqlError, duplicate_table, not_supported, undefined_schema
from sql.look_up import (
    check_database,
    check_may_create,
    existing_schemas,
    look_up,
    not_there,
    refuse_system_change,
    refuse_type_name,
    relation_exists,
    relation_name,
    schema_exists,
    wrong_kind,
)
from sql.role_names import role_of, roles_of, spec_name
from sql.schema_elements import schema_elements
from sql.scope import SYSTEM_COLUMNS
from sql.sequence_users import (
    cascaded_uses,
    still_used,
    told_name,
    told_uses,
    uses_elsewhere,
    uses_of,
    with_owned,
    without_defaults,
)
from sql.sizes import check_columns
from sql.statements import CreateSchema, CreateTable, DropSchema, DropTable
from sql.storage_options import partition_key, storage_options, with_options, without_oids
from sql.syntax import Node, at, is_a, strings
from sql.system_catalogs import SYSTEM_SCHEMAS
from sql.temporary import is_temporary

# --- CREATE ------------------------------------------------------------------------------------


def create_table(
    binding: Binding,
    node: Node,
    timeline: str = SYSTEM_TIMELINE.name,
    *,
    columns: Sequence[Column] = (),
) -> CreateTable:
    """CREATE TABLE [IF NOT EXISTS]. `columns`: those of CREATE TABLE AS."""
    relation = node.relation
    _refuse_table_forms(node)
    options, key = storage_options(without_oids(node.options or ())), partition_key(node)
    schema = creation_schema(binding, relation)
    on_commit = _on_commit(binding, node, schema)
    exists = relation_exists(binding, schema, relation.relname)
    if exists and not node.if_not_exists:
        raise duplicate_table(relation.relname)
    if not exists:
        refuse_type_name(binding, schema, relation.relname)
    columns = list(columns)
    parts, copied = Parts(schema, relation.relname), Copied()
    for element in node.tableElts or ():
        if is_a(element, ast.Constraint):
            _table_constraint(element, parts)
            continue
        if is_a(element, ast.TableLikeClause):
            columns += like(binding, element, parts, copied)
            continue
        columns.append(column_of(binding, element, parts))
    if not columns:
        # Neither Parquet nor Arrow's stream can say how many rows of nothing there are.
        raise not_supported("a table without columns", at(relation.location))
    _check_names(columns)
    columns = _with_not_nulls(relation.relname, columns, parts.not_nulls)
    _check_not_null_names(relation.relname, columns)
    taken = relation_names(binding.context.catalog, schema)
    bound, found = bind_keys(taken, relation.relname, columns, parts.keys)
    bare = Table(0, schema, relation.relname, "", bound, keys=found)
    bare = replace(bare, columns=with_generated(binding, bare, parts.generated))
    checked = replace(bare, checks=bind_checks(binding, bare, parts.checks))
    checked = replace(checked, timeline=timeline, on_commit=on_commit)
    if key is not None:
        options = replace(options, cluster_by=key)
    checked = with_options(checked, options)
    whole, indexes, comments = with_copied(binding, checked, copied)
    whole = with_invariants(binding, whole)
    foreign, parents = bind_foreign_keys(binding, whole, parts.foreign)
    places = {column.name: place for place, column in enumerate(bare.columns)}
    return CreateTable(
        schema,
        relation.relname,
        whole.columns,
        exists,
        timeline,
        checked.history_us,
        whole.keys,
        whole.checks,
        tuple((places[name], sequence) for name, sequence in parts.sequences.items()),
        foreign,
        parents,
        indexes,
        comments,
        on_commit,
        checked.clustered,
    )


def _table_constraint(element: Node, parts: Parts) -> None:
    """A constraint that stands beside the columns."""
    match element.contype:
        case kind if kind in KEY_KINDS:
            parts.keys.append(KeyNode(element))
        case ConstrType.CONSTR_CHECK:
            parts.checks.append(element)
        case ConstrType.CONSTR_FOREIGN:
            parts.foreign.append(ForeignNode(element))
        case ConstrType.CONSTR_NOTNULL:
            if element.skip_validation or element.is_no_inherit:
                what = "NOT VALID" if element.skip_validation else "NO INHERIT"
                raise not_supported(f"NOT NULL .. {what}", at(element.location))
            parts.not_nulls.append(element)
        case kind:
            raise not_supported(CONSTRAINTS.get(kind, "this constraint"), at(element.location))


def _with_not_nulls(table: str, columns: Sequence[Column], nodes: Sequence[Node]) -> list[Column]:
    """The columns, NOT NULL where a constraint of the table says so, and with the name it gives."""
    by_name = {column.name: column for column in columns}
    for node in nodes:
        (name,) = strings(node.keys)
        if name not in by_name:
            raise SqlError("42703", f'column "{name}" of relation "{table}" does not exist')
        known, given = by_name[name].not_null_name, node.conname or ""
        if known and given and known != given:
            names = f'"{known}" and "{given}"'
            raise SqlError("42601", f"conflicting not-null constraint names {names}")
        by_name[name] = replace(by_name[name], not_null=True, not_null_name=known or given)
    return [*by_name.values()]


def _refuse_table_forms(node: Node) -> None:
    place = at(node.relation.location)
    refused = (
        (node.relation.relpersistence == "u", "UNLOGGED"),
        (node.inhRelations and not node.partbound, "INHERITS"),
        (node.ofTypename, "CREATE TABLE OF"),
        (node.tablespacename, "TABLESPACE"),
        (node.accessMethod, "USING in CREATE TABLE"),
    )
    for used, what in refused:
        if used:
            raise not_supported(what, place)


def creation_schema(binding: Binding, relation: Node) -> str:
    """The schema that a new relation comes to. Raises 3F000, 42501."""
    context, place = binding.context, at(relation.location)
    check_database(binding, relation)
    schema: str | None = relation.schemaname
    temporary = relation.relpersistence == "t"
    if schema is None:
        if temporary:
            return temporary_schema(binding)
        for name in existing_schemas(context, context.creation_path):
            check_may_create(name, relation.relname)
            if name == context.temporary or schema_exists(binding, name):
                return name
        raise SqlError("3F000", "no schema has been selected to create in", place)
    if schema == context.temporary:
        return temporary_schema(binding)
    if temporary:
        message = "cannot create temporary relation in non-temporary schema"
        raise SqlError("42P16", message, place)
    check_may_create(schema, relation.relname)
    if not schema_exists(binding, schema):
        raise undefined_schema(schema, place)
    return schema


def temporary_schema(binding: Binding) -> str:
    """The schema of what the session makes for itself; it may not be there yet."""
    if not binding.context.temporary:
        raise not_supported("a temporary relation without a session")
    # T3 of `temporary.py`: it is another one in every session.
    binding.uses_session = True
    return binding.context.temporary


_ON_COMMIT: Final = {
    OnCommitAction.ONCOMMIT_DELETE_ROWS: "delete",
    OnCommitAction.ONCOMMIT_DROP: "drop",
}


def _on_commit(binding: Binding, node: Node, schema: str) -> str:
    """ON COMMIT, of temporary tables only."""
    if node.oncommit in (None, OnCommitAction.ONCOMMIT_NOOP):
        return ""
    if schema != binding.context.temporary:
        raise SqlError("42P16", "ON COMMIT can only be used on temporary tables")
    return _ON_COMMIT.get(node.oncommit, "")


def _check_names(columns: Sequence[Column]) -> None:
    check_columns(len(columns))
    seen: set[str] = set()
    for column in columns:
        if column.name in seen:
            raise SqlError("42701", f'column "{column.name}" specified more than once')
        if column.name in SYSTEM_COLUMNS:
            message = f'column name "{column.name}" conflicts with a system column name'
            raise SqlError("42701", message)
        seen.add(column.name)


def _check_not_null_names(table: str, columns: Sequence[Column]) -> None:
    given = [column.not_null_name for column in columns if column.not_null_name]
    for place, name in enumerate(given):
        if name in given[:place]:
            message = f'constraint "{name}" for relation "{table}" already exists'
            raise SqlError("42710", message)


def create_schema(binding: Binding, node: Node) -> CreateSchema:
    """CREATE SCHEMA [IF NOT EXISTS] [elements]."""
    owner: int | None = None
    name: str = node.schemaname
    if node.authrole is not None:
        role = role_of(binding, roles_of(binding.context), node.authrole)
        owner, name = role.oid, name or spec_name(binding, node.authrole)
    check_schema_name(name)
    exists = name in SYSTEM_SCHEMAS or schema_exists(binding, name)
    if exists and not node.if_not_exists:
        raise SqlError("42P06", f'schema "{name}" already exists')
    if node.schemaElts and owner is not None:
        raise not_supported("CREATE SCHEMA AUTHORIZATION with elements", None)
    return CreateSchema(name, exists, owner, schema_elements(name, node.schemaElts or ()))


def check_schema_name(name: str) -> None:
    """42939 for a name that only the system may give."""
    if name.startswith("pg_"):
        detail = 'The prefix "pg_" is reserved for system schemas.'
        raise SqlError("42939", f'unacceptable schema name "{name}"', detail=detail)


# --- DROP --------------------------------------------------------------------------------------


def drop(binding: Binding, node: Node) -> DropTable | DropSchema | ChangeObjects:
    """DROP of any kind of thing."""
    match node.removeType:
        case ObjectType.OBJECT_TABLE:
            return _drop_tables(binding, node)
        case ObjectType.OBJECT_SCHEMA:
            return _drop_schemas(binding, node)
        case ObjectType.OBJECT_VIEW:
            from sql.bind_views import drop_views

            return drop_views(binding, node)
        case ObjectType.OBJECT_INDEX:
            from sql.bind_indexes import drop_indexes

            return drop_indexes(binding, node)
        case ObjectType.OBJECT_TYPE | ObjectType.OBJECT_DOMAIN:
            from sql.bind_user_types import drop_types

            return drop_types(binding, node)
        case ObjectType.OBJECT_SEQUENCE:
            from sql.bind_drop_sequences import drop_sequences

            return drop_sequences(binding, node)
        case _:
            from sql.bind_drop_absent import drop_absent

            return drop_absent(binding, node)


def _drop_tables(binding: Binding, node: Node) -> DropTable:
    from sql.bind_views import told_views, views_over
    from sql.gone_domains import domains_going

    context = binding.context
    found: dict[int, Table] = {}
    missing: list[str] = []
    for names in node.objects:
        schema, name = relation_name(binding, strings(names))
        table = look_up(binding, name, schema=schema)
        if table is not None:
            refuse_system_change(table)
            found[table.oid] = table
        elif (kind := _other_kind(binding, schema, name)) is not None:
            raise wrong_kind(name, "table", kind)
        else:
            missing.append(not_there(binding, "table", schema, name, missing_ok=node.missing_ok))
    keys = dependents(context.catalog, found)
    gone = with_owned(context.catalog, found)
    views = views_over(context.catalog, gone)
    used = uses_elsewhere(context.catalog, found)
    domains = domains_going(context.catalog, used)
    if (keys or views or used) and node.behavior != DropBehavior.DROP_CASCADE:
        told_ = [*told_uses(used, domains.told), *told_views(context.catalog, views, gone)]
        raise _referred_to(keys, [*found.values()], told_)
    told = [f"drop cascades to constraint {k.name} on table {c.shown}" for c, k, _ in keys]
    told += cascaded_uses(used)
    told += [f"drop cascades to view {view.shown}" for view in views]
    changed = without_defaults(context.catalog, gone, without_keys(keys))
    changed = tuple(change for change in changed if change.before.oid not in found)
    return DropTable(tuple(found.values()), tuple(missing), changed, tuple(told), tuple(views))


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
    return still_used([f"table {table.shown}" for table in dropped], [*told, *views])


def _drop_schemas(binding: Binding, node: Node) -> DropSchema:
    from sql.bind_user_types import columns_of_dropped, told_columns
    from sql.bind_views import views_over
    from sql.gone_domains import domains_going

    catalog = binding.context.catalog
    names: list[str] = []
    missing: list[str] = []
    tables: list[Table] = []
    for item in node.objects:
        name = item.sval
        if is_temporary(name):
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
    gone = with_owned(catalog, oids) | {thing.oid for thing in objects}
    used = [use for use in uses_of(catalog, gone, visible) if use.kept.of.schema not in names]
    types = [thing for thing in objects if isinstance(thing, EnumDefinition | DomainDefinition)]
    if (tables or objects) and node.behavior != DropBehavior.DROP_CASCADE:
        along = domains_going(catalog, used).told
        told_ = [*told_uses(used, along), *told_columns(catalog, types, oids)]
        inside: list[tuple[str, Table | CatalogObject]] = [("table", table) for table in tables]
        inside += [(word_for(thing), thing) for thing in objects]
        raise _not_empty(binding, names, inside, told_)
    outside = [view for view in views_over(catalog, gone) if view.schema not in names]
    if outside:
        raise not_supported("DROP SCHEMA of what views of other schemas use")
    lost, columns = columns_of_dropped(binding, types, oids, objects, "DROP SCHEMA")
    told = (*cascaded_uses(used), *columns)
    keys = without_keys(dependents(catalog, oids))
    if {change.before.oid for change in keys} & {change.before.oid for change in lost.tables}:
        raise not_supported("DROP SCHEMA of tables and types that one table of another schema uses")
    changed = without_defaults(catalog, gone, (*keys, *lost.tables))
    changed = tuple(change for change in changed if change.before.oid not in oids)
    found = (tuple(names), tuple(tables), tuple(missing), objects, changed, told)
    return DropSchema(*found, of_columns=lost.dropped)


def _not_empty(
    binding: Binding,
    names: Sequence[str],
    inside: Sequence[tuple[str, Table | CatalogObject]],
    told: Sequence[str],
) -> SqlError:
    visible = binding.context.search_path
    detail = [
        f"{kind} {told_name(thing, visible)} depends on schema {thing.schema}"
        for kind, thing in sorted(inside, key=lambda entry: entry[1].oid)
    ]
    message = f"cannot drop schema {', '.join(names)} because other objects depend on it"
    hint = "Use DROP ... CASCADE to drop the dependent objects too."
    return SqlError("2BP01", message, detail="\n".join([*detail, *told]), hint=hint)


def _stands_alone(thing: CatalogObject, tables: Collection[int]) -> bool:
    """Whether an object of a schema does not go with one of these tables."""
    match thing:
        case SequenceDefinition(owner=owner):
            return owner not in tables
        case IndexDefinition(table=table):
            return table not in tables
        case ViewDefinition() | EnumDefinition() | DomainDefinition():
            return True
