"""Sources, and the tables that they feed: CREATE, ALTER, DROP, DETACH; users' writes are refused.

INVARIANTS
  S1  a fed table is a table with a feed. Only its source writes to it, so all other statements that
      would change its rows or its columns are refused.
  S2  nothing is done upstream here: what is made there comes after the commit (F8 of `ingest`).
"""

from collections.abc import Sequence
from dataclasses import replace

from sql.binder.ddl.connections import sources_of_connection
from sql.binder.ddl.create import create_table
from sql.binder.ddl.source_names import (
    find_feeding,
    look_up_feeding,
    new_feeding_place,
    undefined_feeding,
)
from sql.binder.resolve.catalog_lookup import (
    look_up_table,
    refuse_row_type_clash,
    relation_exists,
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
from sql.catalog.catalog import Catalog, Table
from sql.catalog.objects import (
    SOURCE_SPACE,
    CatalogObject,
    ConnectionDefinition,
    Feed,
    SourceDefinition,
)
from sql.catalog.sources import (
    ERROR_COLUMNS,
    GENERATOR,
    connection_by_oid,
    errors_name,
    has_snapshot,
    source_by_oid,
    tables_of_source,
    upstream_tables,
)
from sql.errors import SqlError, duplicate_table, not_supported, undefined_table
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
from sql.parser.source_grammar import SOURCE_SETTINGS
from sql.statements.bound import CreateTable
from sql.statements.ddl import ChangeObjects, Redefinition, drop_cascade_notices
from sql.statements.sources import (
    CreateFedTables,
    CreateSource,
    CreateUpstreamTables,
    SkipRecord,
)

RATE_MAX = 1_000_000
"""Rows a second. Larger than what one source can write anyway."""
_INT8_MAX = (1 << 63) - 1
_BOUNDS = {
    "rows per second": (1, RATE_MAX),
    "max rows": (0, _INT8_MAX),
    "seed": (0, _INT8_MAX),
    "error_limit": (0, _INT8_MAX),
}


# --- CREATE ------------------------------------------------------------------------------------


def create_source(binding: Binding, node: CreateSourceNode) -> CreateSource:
    """CREATE SOURCE [IF NOT EXISTS]. Raises 42704, 42710, 42P07, 22023."""
    schema, name = new_feeding_place(binding, node.name)
    connection = None
    if node.connector == GENERATOR:
        options = (("kind", node.kind), *map(_checked, node.options))
    else:
        connection = find_feeding(binding, ConnectionDefinition, node.connection)
        if connection.connector != node.connector:
            message = f'connection "{connection.name}" is not to {node.connector.upper()}'
            raise SqlError("42809", message, node.connection[0].place + 1)
        options = (*map(_text, node.options), *map(_setting, node.settings))
    source = SourceDefinition(
        0,
        schema,
        name,
        connector=node.connector,
        options=options,
        connection=0 if connection is None else connection.oid,
    )
    errors = Table(0, schema, errors_name(name), "", ERROR_COLUMNS, feed=Feed(0, ""))
    if (SOURCE_SPACE, schema, name) in binding.context.catalog.objects:
        if not node.if_not_exists:
            raise SqlError("42710", f'source "{name}" already exists')
        return CreateSource(source, errors, exists=True)
    _refuse_taken(binding, schema, errors.name)
    return CreateSource(source, errors, connection=connection)


def _checked(option: SourceOption) -> tuple[str, str]:
    least, greatest = _BOUNDS[option.name]
    assert isinstance(option.value, int), "it was read as a number"
    if not least <= option.value <= greatest:
        message = f"{option.value} is outside the valid range for {option.name.upper()}"
        detail = f"Valid values are between {least} and {greatest}."
        raise SqlError("22023", message, option.place, detail=detail)
    return option.name, str(option.value)


def _text(option: SourceOption) -> tuple[str, str]:
    if not option.value:
        raise SqlError("22023", f"{option.name.upper()} must not be empty", option.place)
    return option.name, str(option.value)


def _setting(option: SourceOption) -> tuple[str, str]:
    value, known = str(option.value), SOURCE_SETTINGS[option.name]
    if option.name == "schema_changes" and value == "add":
        raise not_supported("schema_changes = 'add'", option.place)
    if not known:
        return _checked(option)
    if value not in known:
        message = f'invalid value for parameter "{option.name}": "{value}"'
        hint = f"Valid values are: {', '.join(known)}."
        raise SqlError("22023", message, option.place, hint=hint)
    return option.name, value


def create_table_from(
    binding: Binding, node: CreateTableFromNode
) -> CreateFedTables | CreateUpstreamTables:
    """CREATE TABLE [IF NOT EXISTS] .. FROM SOURCE. Raises 42704, 42P07, 0A000."""
    schema, name = new_feeding_place(binding, node.name)
    source = find_feeding(binding, SourceDefinition, node.source)
    if relation_exists(binding, schema, name):
        if not node.if_not_exists:
            raise duplicate_table(name)
        return CreateFedTables("CREATE TABLE", exists=name)
    if source.connector != GENERATOR:
        return _asked(binding, node, source, schema, name)
    if node.create is not None or node.options:
        place = node.create.node.relation.location + 1 if node.create else node.options[0].place
        raise not_supported("choosing the columns of a table of a generator", place)
    known = upstream_tables(source)
    only = next(iter(known)) if len(known) == 1 else name
    reference = only if node.reference is None else node.reference
    if reference not in known:
        hint = f"It has: {', '.join(known)}. Name one of them with REFERENCE."
        message = f'source "{source.name}" has no table "{reference}"'
        raise SqlError("42704", message, hint=hint)
    return CreateFedTables("CREATE TABLE", (_fed(binding, source, reference, schema, name),))


def _asked(
    binding: Binding, node: CreateTableFromNode, source: SourceDefinition, schema: str, name: str
) -> CreateUpstreamTables:
    """A table of an upstream that has to be asked for its columns."""
    refuse_row_type_clash(binding, schema, name)
    if node.reference is None:
        message = f'REFERENCE has to name a table of source "{source.name}"'
        hint = f"As in: FROM SOURCE {source.shown} (REFERENCE 'public.{name}')."
        raise SqlError("42601", message, node.source[0].place + 1, hint=hint)
    columns = key = None
    if node.create is not None:
        given = create_table(binding, node.create.node)
        _check_plain(given, node.create.node.relation.location + 1)
        columns = given.columns
        for one in given.keys:
            key = tuple([columns[ordinal].name for ordinal in one.columns])
    lists = {
        option.name: tuple([part.strip() for part in str(option.value).split(",")])
        for option in node.options
    }
    for option in node.options:
        if "" in lists[option.name]:
            message = f'"{option.name}" takes names of columns with commas between'
            raise SqlError("22023", message, option.place)
    return CreateUpstreamTables(
        "CREATE TABLE",
        source,
        _connection(binding, source),
        schema,
        name,
        node.reference,
        columns,
        key,
        lists.get("text_columns", ()),
        lists.get("exclude_columns", ()),
    )


def _check_plain(table: CreateTable, place: int) -> None:
    """Names, types, NOT NULL and keys alone: all else is upstream's business."""
    others = (table.checks, table.sequences, table.foreign_keys, table.indexes, table.comments)
    unplain = [c for c in table.columns if c.has_default or c.expression or c.generated]
    if any(others) or unplain or any(not key.primary for key in table.keys) or table.clustered:
        raise not_supported("more than types, NOT NULL and PRIMARY KEY in a fed table", place)


def _connection(binding: Binding, source: SourceDefinition) -> ConnectionDefinition:
    found = connection_by_oid(binding.context.catalog, source.connection)
    assert found is not None, "a source has its connection"
    return found


def create_tables_from(
    binding: Binding, node: CreateTablesFromNode
) -> CreateFedTables | CreateUpstreamTables:
    """CREATE TABLES FROM SOURCE [IN SCHEMA]: those that are not fed yet."""
    source = find_feeding(binding, SourceDefinition, node.source)
    if source.connector != GENERATOR:
        place = 0 if node.schema is None else node.schema.place
        bare = Identifier("t", place)
        schema, _ = new_feeding_place(
            binding, (bare,) if node.schema is None else (node.schema, bare)
        )
        return CreateUpstreamTables("CREATE TABLES", source, _connection(binding, source), schema)
    fed = {t.feed.reference for t in _tables(binding, source) if t.feed is not None}
    tables: list[Table] = []
    for reference in upstream_tables(source):
        if reference not in fed:
            place = 0 if node.schema is None else node.schema.place
            qualified = Identifier(reference, place)
            names = (qualified,) if node.schema is None else (node.schema, qualified)
            schema, name = new_feeding_place(binding, names)
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


# --- ALTER, DROP -------------------------------------------------------------------------------


def alter_source(binding: Binding, node: AlterSourceNode) -> ChangeObjects | SkipRecord:
    """ALTER SOURCE .. {PAUSE | RESUME | SET | SKIP RECORD}. RESUME of one that runs tries again
    what failed.
    """
    source = find_feeding(binding, SourceDefinition, node.name)
    if node.action == "skip record" and source.connector != GENERATOR:
        return SkipRecord(source)
    after = replace(source, version=source.version + 1)
    match node.action:
        case "pause" | "resume":
            after = replace(after, paused=node.action == "pause")
        case "resnapshot" if has_snapshot(source):
            after = replace(after, generation=source.generation + 1, skip=())
        case "set" if source.connector != GENERATOR:
            given = dict(map(_setting, node.settings))
            after = replace(after, options=tuple({**dict(source.options), **given}.items()))
        case action:
            what = f"ALTER SOURCE .. {action.upper()}"
            if source.connector == GENERATOR:
                what += " of a generator"
            raise not_supported(what, node.place)
    return ChangeObjects("ALTER SOURCE", objects=(after,))


def drop_source(binding: Binding, node: DropSourceNode) -> ChangeObjects:
    """DROP {SOURCE | CONNECTION} [IF EXISTS] .. [CASCADE]; without, 2BP01 while something needs it:
    tables are fed by the source, or sources read by the connection.
    """
    is_source = node.kind == SourceDefinition.kind
    found: dict[int, SourceDefinition | ConnectionDefinition] = {}
    notices: list[tuple[str, str, str | None]] = []
    for names in node.names:
        named: SourceDefinition | ConnectionDefinition | None
        if is_source:
            named = look_up_feeding(binding, SourceDefinition, names)
        else:
            named = look_up_feeding(binding, ConnectionDefinition, names)
        if named is None:
            if not node.missing_ok:
                raise undefined_feeding(node.kind, names)
            told = f'{node.kind} "{names[-1].text}" does not exist, skipping'
            notices.append(("00000", told, None))
        else:
            found[named.oid] = named
    along = [
        source
        for oid, one in found.items()
        if isinstance(one, ConnectionDefinition)
        for source in sources_of_connection(binding.context.catalog, oid)
    ]
    return _dropped(binding, node, [*found.values()], along, notices)


def _dropped(
    binding: Binding,
    node: DropSourceNode,
    named: Sequence[SourceDefinition | ConnectionDefinition],
    along: Sequence[SourceDefinition],
    notices: list[tuple[str, str, str | None]],
) -> ChangeObjects:
    catalog = binding.context.catalog
    sources = [*(one for one in named if isinstance(one, SourceDefinition)), *along]
    shown = {one.oid: f"{one.kind} {one.shown}" for one in (*named, *along)}
    every = [table for one in sources for table in tables_of_source(catalog, one.oid)]
    tables = [table for table in every if table.feed is not None and table.feed.reference]
    oids = {table.oid for table in every}
    gone = with_owned_sequences(catalog, oids)
    views, used = views_over(catalog, gone), outside_uses_of(catalog, oids)
    if (along or tables or views or used) and not node.cascade:
        told = [f"source {one.shown} depends on {shown[one.connection]}" for one in along]
        told += [f"table {t.shown} depends on {shown[t.feed.source]}" for t in tables if t.feed]
        told += [*use_dependency_details(used), *view_dependency_details(catalog, views, gone)]
        raise dependent_objects_still_exist([shown[one.oid] for one in named], told)
    cascades = [f"drop cascades to source {one.shown}" for one in along]
    cascades += [f"drop cascades to table {table.shown}" for table in tables]
    cascades += cascade_notices(used)
    cascades += [f"drop cascades to {view.kind} {view.shown}" for view in views]
    return ChangeObjects(
        f"DROP {node.kind.upper()}",
        dropped=(*named, *along, *views),
        dropped_tables=tuple(every),
        tables=without_defaults(catalog, gone),
        notices=(*notices, *drop_cascade_notices(cascades)),
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
        if not has_index and _only_drops_and_renames(before, after):
            continue
        if has_index or not before.is_same_but_for_name(after):
            what = f'changing columns or keys of table "{before.name}", which a source feeds,'
            raise not_supported(what, hint=DETACH_HINT)


def _only_drops_and_renames(before: Table, after: Table) -> bool:
    """Whether all that changes is that columns are called otherwise, or gone, but for those of the
    key: its source knows upstream's names.
    """
    if before.feed is None or not before.feed.columns or len(before.keys) != len(after.keys):
        return False
    known = {before.number_of(at): column for at, column in enumerate(before.columns)}
    for at, column in enumerate(after.columns):
        kept = known.get(after.number_of(at))
        if kept is None or kept.type != column.type or kept.not_null != column.not_null:
            return False
        if column.has_default or column.generated or column.identity or column.sequence:
            return False
    same = replace(
        before,
        columns=after.columns,
        numbers=after.numbers,
        keys=after.keys,
        feed=after.feed,
    )
    return same.is_same_but_for_name(after)


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


def refuse_torn_feeds(
    catalog: Catalog, tables: Sequence[Table], objects: Sequence[CatalogObject]
) -> None:
    """2BP01 for a schema whose source feeds a table elsewhere, or whose connection is used there:
    a schema takes along what is inside.
    """
    gone = {thing.oid for thing in (*tables, *objects)}
    for thing in objects:
        users: Sequence[Table | SourceDefinition] = ()
        if isinstance(thing, SourceDefinition):
            users = tables_of_source(catalog, thing.oid)
        elif isinstance(thing, ConnectionDefinition):
            users = sources_of_connection(catalog, thing.oid)
        for user in users:
            if user.oid not in gone:
                message = f"cannot drop {thing.kind} {thing.shown} because {user.kind}"
                hint = f"Use DROP {thing.kind.upper()} .. CASCADE before."
                raise SqlError("2BP01", f"{message} {user.qualified} depends on it", hint=hint)


DETACH_HINT = "ALTER TABLE .. DETACH SOURCE makes it an ordinary table."


# --- names -------------------------------------------------------------------------------------


def _tables(binding: Binding, source: SourceDefinition) -> Sequence[Table]:
    return tables_of_source(binding.context.catalog, source.oid)
