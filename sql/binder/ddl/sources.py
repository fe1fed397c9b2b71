"""Sources, and the tables that they feed: CREATE, ALTER, DROP, DETACH; users' writes are refused.

INVARIANTS
  S1  a fed table is a table with a feed. Only its source writes to it, so all other statements that
      would change its rows or its columns are refused.
  S2  nothing is done upstream here: what is made there comes after the commit (F8 of `ingest`).
"""

from collections.abc import Sequence
from dataclasses import replace

from pglast import ast

from sql.binder.ddl.schemas import creation_schema
from sql.binder.resolve.catalog_lookup import (
    existing_schemas,
    look_up_table,
    refuse_row_type_clash,
    relation_exists,
    schema_exists,
)
from sql.binder.state import Binding
from sql.binder.stored.relation_users import (
    cascade_notices,
    dependent_objects_still_exist,
    outside_uses_of,
    use_dependency_details,
    with_owned_sequences,
    without_defaults,
)
from sql.binder.stored.views import view_dependency_details, views_over
from sql.catalog.catalog import Catalog, NameDependency, Table
from sql.catalog.objects import SOURCE_SPACE, CatalogObject, Feed, SourceDefinition
from sql.catalog.sources import (
    ERROR_COLUMNS,
    GENERATOR,
    source_by_oid,
    tables_of_source,
    upstream_tables,
)
from sql.catalog.temporary import is_temporary_schema
from sql.errors import SqlError, duplicate_table, not_supported, undefined_schema, undefined_table
from sql.parser.meridian_nodes import (
    AlterSourceNode,
    CreateSourceNode,
    CreateTableFromNode,
    CreateTablesFromNode,
    DetachSourceNode,
    DropSourceNode,
    Identifier,
    SourceOption,
)
from sql.statements.ddl import ChangeObjects, Redefinition, drop_cascade_notices
from sql.statements.sources import CreateFedTables, CreateSource

RATE_MAX = 1_000_000
"""Rows a second. Larger than what one source can write anyway."""
_INT8_MAX = (1 << 63) - 1
_BOUNDS = {"rows per second": (1, RATE_MAX), "max rows": (0, _INT8_MAX), "seed": (0, _INT8_MAX)}


# --- CREATE ------------------------------------------------------------------------------------


def create_source(binding: Binding, node: CreateSourceNode) -> CreateSource:
    """CREATE SOURCE [IF NOT EXISTS]. Raises 42710, 42P07, 22023."""
    schema, name = _new_place(binding, node.name)
    options = (("kind", node.kind), *map(_checked, node.options))
    source = SourceDefinition(0, schema, name, connector=GENERATOR, options=options)
    errors = Table(0, schema, f"{name}_errors", "", ERROR_COLUMNS, feed=Feed(0, ""))
    if (SOURCE_SPACE, schema, name) in binding.context.catalog.objects:
        if not node.if_not_exists:
            raise SqlError("42710", f'source "{name}" already exists')
        return CreateSource(source, errors, exists=True)
    _refuse_taken(binding, schema, errors.name)
    return CreateSource(source, errors)


def _checked(option: SourceOption) -> tuple[str, str]:
    least, greatest = _BOUNDS[option.name]
    if not least <= option.value <= greatest:
        message = f"{option.value} is outside the valid range for {option.name.upper()}"
        detail = f"Valid values are between {least} and {greatest}."
        raise SqlError("22023", message, option.place, detail=detail)
    return option.name, str(option.value)


def create_table_from(binding: Binding, node: CreateTableFromNode) -> CreateFedTables:
    """CREATE TABLE [IF NOT EXISTS] .. FROM SOURCE. Raises 42704, 42P07, 0A000."""
    schema, name = _new_place(binding, node.name)
    source = _found(binding, node.source)
    if relation_exists(binding, schema, name):
        if not node.if_not_exists:
            raise duplicate_table(name)
        return CreateFedTables("CREATE TABLE", exists=name)
    known = upstream_tables(source)
    only = next(iter(known)) if len(known) == 1 else name
    reference = only if node.reference is None else node.reference
    if reference not in known:
        hint = f"It has: {', '.join(known)}. Name one of them with REFERENCE."
        message = f'source "{source.name}" has no table "{reference}"'
        raise SqlError("42704", message, hint=hint)
    return CreateFedTables("CREATE TABLE", (_fed(binding, source, reference, schema, name),))


def create_tables_from(binding: Binding, node: CreateTablesFromNode) -> CreateFedTables:
    """CREATE TABLES FROM SOURCE [IN SCHEMA]: those that are not fed yet."""
    source = _found(binding, node.source)
    fed = {t.feed.reference for t in _tables(binding, source) if t.feed is not None}
    tables: list[Table] = []
    for reference in upstream_tables(source):
        if reference not in fed:
            place = 0 if node.schema is None else node.schema.place
            qualified = Identifier(reference, place)
            names = (qualified,) if node.schema is None else (node.schema, qualified)
            schema, name = _new_place(binding, names)
            tables.append(_fed(binding, source, reference, schema, name))
    return CreateFedTables("CREATE TABLES", tuple(tables))


def _fed(
    binding: Binding, source: SourceDefinition, reference: str, schema: str, name: str
) -> Table:
    for other in _tables(binding, source):
        if other.feed is not None and other.feed.reference == reference:
            what = f'a second table for "{reference}" of source "{source.name}"'
            raise not_supported(what, hint=f"It feeds {other.qualified}.")
    _refuse_taken(binding, schema, name)
    return Table(
        0, schema, name, "", upstream_tables(source)[reference], feed=Feed(source.oid, reference)
    )


def _refuse_taken(binding: Binding, schema: str, name: str) -> None:
    if relation_exists(binding, schema, name):
        raise duplicate_table(name)
    refuse_row_type_clash(binding, schema, name)


def _new_place(binding: Binding, names: Sequence[Identifier]) -> tuple[str, str]:
    """The schema and name of something new."""
    schema = names[0].text if len(names) > 1 else None
    node = ast.RangeVar(
        relname=names[-1].text, schemaname=schema, relpersistence="p", location=names[0].place
    )
    found = creation_schema(binding, node)
    if is_temporary_schema(found):
        raise not_supported("a source or its table among temporary ones", names[0].place + 1)
    return found, names[-1].text


# --- ALTER, DROP -------------------------------------------------------------------------------


def alter_source(binding: Binding, node: AlterSourceNode) -> ChangeObjects:
    """ALTER SOURCE .. {PAUSE | RESUME}. RESUME of one that runs tries again what has failed."""
    source = _found(binding, node.name)
    after = replace(source, paused=node.paused, version=source.version + 1)
    return ChangeObjects("ALTER SOURCE", objects=(after,))


def drop_source(binding: Binding, node: DropSourceNode) -> ChangeObjects:
    """DROP SOURCE [IF EXISTS] .. [CASCADE]; without, 2BP01 while it feeds tables."""
    sources: dict[int, SourceDefinition] = {}
    notices: list[tuple[str, str, str | None]] = []
    for names in node.names:
        found = _looked_up(binding, names)
        if found is None:
            if not node.missing_ok:
                raise _undefined_source(names)
            notices.append(("00000", f'source "{names[-1].text}" does not exist, skipping', None))
        else:
            sources[found.oid] = found
    catalog = binding.context.catalog
    every = [table for oid in sources for table in tables_of_source(catalog, oid)]
    tables = [table for table in every if table.feed is not None and table.feed.reference]
    oids = {table.oid for table in every}
    gone = with_owned_sequences(catalog, oids)
    views, used = views_over(catalog, gone), outside_uses_of(catalog, oids)
    if (tables or views or used) and not node.cascade:
        shown = {oid: f"source {source.shown}" for oid, source in sources.items()}
        told = [f"table {t.shown} depends on {shown[t.feed.source]}" for t in tables if t.feed]
        told += [*use_dependency_details(used), *view_dependency_details(catalog, views, gone)]
        raise dependent_objects_still_exist([*shown.values()], told)
    along = [f"drop cascades to table {table.shown}" for table in tables]
    along += cascade_notices(used)
    along += [f"drop cascades to {view.kind} {view.shown}" for view in views]
    notices += drop_cascade_notices(along)
    return ChangeObjects(
        "DROP SOURCE",
        dropped=(*sources.values(), *views),
        dropped_tables=tuple(every),
        tables=without_defaults(catalog, gone),
        notices=tuple(notices),
    )


def detach_source(binding: Binding, node: DetachSourceNode) -> ChangeObjects:
    """ALTER TABLE .. DETACH SOURCE. Raises 42P01, 55000, 42809."""
    *path, name = node.table
    table = look_up_table(binding, name.text, schema=path[0].text if path else None)
    if table is None:
        first = (*path, name)[0]
        raise undefined_table(".".join(part.text for part in node.table), first.place + 1)
    if table.feed is None:
        raise SqlError("55000", f'table "{table.name}" is not fed by a source')
    if not table.feed.reference:
        raise SqlError("42809", f'"{table.name}" is the table of errors of its source')
    after = replace(table, feed=None, version=table.version + 1)
    return ChangeObjects("ALTER TABLE", tables=(Redefinition(table, after),))


# --- what fed tables refuse --------------------------------------------------------------------


def refuse_altered_feeds(tables: Sequence[Redefinition], *, has_index: bool = False) -> None:
    """0A000 for a change of what a source writes to (S1): columns, keys, checks; `has_index`: the
    tables get a unique index.
    """
    for change in tables:
        before, after = change.before, change.after
        if before.feed is None or after.feed is None:
            continue
        if has_index or not before.is_same_but_for_name(after):
            what = f'changing columns or keys of table "{before.name}", which a source feeds,'
            raise not_supported(what, hint=DETACH_HINT)


def refuse_dropped_errors(
    catalog: Catalog, tables: Sequence[Table], objects: Sequence[CatalogObject] = ()
) -> None:
    """2BP01 for the table of errors without its source, which `objects` may have."""
    gone = {thing.oid for thing in objects}
    for table in tables:
        if table.feed is not None and not table.feed.reference and table.feed.source not in gone:
            source = source_by_oid(catalog, table.feed.source)
            assert source is not None, "a fed table has its source"
            name = f"source {source.shown}"
            message = f"cannot drop table {table.shown} because {name} requires it"
            raise SqlError("2BP01", message, hint=f"You can drop {name} instead.")


DETACH_HINT = "ALTER TABLE .. DETACH SOURCE makes it an ordinary table."


# --- names -------------------------------------------------------------------------------------


def _tables(binding: Binding, source: SourceDefinition) -> Sequence[Table]:
    return tables_of_source(binding.context.catalog, source.oid)


def _found(binding: Binding, names: Sequence[Identifier]) -> SourceDefinition:
    found = _looked_up(binding, names)
    if found is None:
        raise _undefined_source(names)
    return found


def _undefined_source(names: Sequence[Identifier]) -> SqlError:
    name = ".".join(part.text for part in names)
    return SqlError("42704", f'source "{name}" does not exist', names[0].place + 1)


def _looked_up(binding: Binding, names: Sequence[Identifier]) -> SourceDefinition | None:
    context = binding.context
    if len(names) > 1 and not schema_exists(binding, names[0].text):
        raise undefined_schema(names[0].text, names[0].place + 1)
    path = [*existing_schemas(context, context.search_path)]
    for schema in path if len(names) == 1 else [names[0].text]:
        found = context.catalog.objects.get((SOURCE_SPACE, schema, names[-1].text))
        if isinstance(found, SourceDefinition):
            binding.look_ups.add(NameDependency(schema, found.name, found.oid, SOURCE_SPACE))
            return found
        binding.look_ups.add(NameDependency(schema, names[-1].text, None, SOURCE_SPACE))
    return None
