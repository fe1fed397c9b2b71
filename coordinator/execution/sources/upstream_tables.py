"""Ask an upstream before a source or its tables are made; its tables as ours.

    connection ─▶ inspect ─▶ tables of the publication ─▶ chosen columns ─▶ Table with a Feed

Nothing is changed upstream (F8): that comes after the commit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from coordinator.execution.context import Execution
from coordinator.pgwire.messages import Severity
from ingest.postgres.upstream_types import chosen_columns, fits
from ingest.reader import ReaderFailure, Upstream, UpstreamColumn, UpstreamTable
from sql.binder.ddl.keys import TakenNames, made_key_name
from sql.catalog.catalog import Catalog, Column, Key, Table
from sql.catalog.objects import ConnectionDefinition, Feed, SourceDefinition
from sql.catalog.sources import tables_of_source
from sql.errors import SqlError, duplicate_table, not_supported
from sql.statements.sources import CreateUpstreamTables
from sql.types.sql_type import format_type


async def look_at_upstream(
    execution: Execution, source: SourceDefinition, connection: ConnectionDefinition
) -> Upstream:
    """What upstream has. Raises SqlError 08001, 28P01, 55000, 42704, 42501 .."""
    try:
        return await execution.services.upstreams.inspect(source, connection)
    except ReaderFailure as failure:
        raise _refused(failure) from None


def _refused(failure: ReaderFailure) -> SqlError:
    return SqlError(failure.code, failure.message, hint=failure.hint or None)


async def check_upstream(
    execution: Execution, source: SourceDefinition, connection: ConnectionDefinition
) -> None:
    """Before CREATE SOURCE answers: that it can be read, and notices of what cannot."""
    found = await look_at_upstream(execution, source, connection)
    for text in found.notices:
        execution.notice(SqlError("00000", text), Severity.NOTICE)
    for table in found.tables:
        if table.obstacle is not None:
            told = SqlError("00000", table.obstacle.message, hint=table.obstacle.hint)
            execution.notice(told, Severity.NOTICE)


async def upstream_tables_made(
    execution: Execution, statement: CreateUpstreamTables
) -> tuple[Table, ...]:
    """The tables of CREATE TABLE(S) FROM SOURCE, without oids and shards."""
    source, catalog = statement.source, execution.catalog()
    fed = {
        table.feed.reference: table
        for table in tables_of_source(catalog, source.oid)
        if table.feed is not None
    }
    found = await look_at_upstream(execution, source, statement.connection)
    known = {table.reference: table for table in found.tables}
    if not statement.name:
        new = [table for table in found.tables if table.reference not in fed]
        made = [_table(statement, table, _plain_name(table)) for table in new]
        return tuple(_named(catalog, made))
    reference = statement.reference
    if reference in fed:
        what = f'a second table for "{reference}" of source "{source.name}"'
        raise not_supported(what, hint=f"It feeds {fed[reference].qualified}.")
    if reference not in known:
        publication = dict(source.options)["publication"]
        message = f'table "{reference}" is not in publication "{publication}"'
        raise SqlError("42704", message, hint=_missing_hint(reference, known, publication))
    made = [_table(statement, known[reference], statement.name)]
    return tuple(_named(catalog, made))


def _missing_hint(reference: str, known: Mapping[str, UpstreamTable], publication: str) -> str:
    same = sorted(name for name, table in known.items() if _plain_name(table) == reference)
    if same:
        return f"Name it with its schema: {', '.join(same)}."
    return f"Upstream: ALTER PUBLICATION {publication} ADD TABLE {reference}."


def _plain_name(table: UpstreamTable) -> str:
    return table.reference.partition(".")[2]


def _named(catalog: Catalog, tables: Sequence[Table]) -> list[Table]:
    """With names of keys. Raises 42P07."""
    taken: dict[str, TakenNames] = {}
    named: list[Table] = []
    for table in tables:
        names = taken.setdefault(table.schema, TakenNames(catalog, table.schema))
        if table.name in names:
            raise duplicate_table(table.name)
        names.add(table.name)
    for table in tables:
        names = taken[table.schema]
        keys: list[Key] = []
        for key in table.keys:
            name = made_key_name(table.name, table.columns, key, names)
            names.add(name)
            keys.append(replace(key, name=name))
        named.append(replace(table, keys=tuple(keys)))
    return named


def _table(statement: CreateUpstreamTables, upstream: UpstreamTable, name: str) -> Table:
    try:
        chosen = _chosen(statement, upstream)
    except ReaderFailure as failure:
        raise _refused(failure) from None
    if statement.columns is not None:
        chosen = _given(statement, statement.columns, upstream, chosen)
    if not chosen.columns:
        raise not_supported(f"a table without columns, such as {upstream.reference} upstream,")
    columns = tuple([Column(c.name, c.type, not_null=c.not_null) for c in chosen.columns])
    names = [column.name for column in columns]
    key = tuple([names.index(column) for column in chosen.key])
    keys = (Key("", key, primary=True),) if key else ()
    seen = [(column.name, format_type(column.type)) for column in upstream.columns]
    feed = Feed(
        statement.source.oid,
        upstream.reference,
        tuple(names),
        chosen.key,
        (*seen, *upstream.unsupported.items()),
    )
    return Table(0, statement.schema, name, "", columns, keys=keys, feed=feed)


def _chosen(statement: CreateUpstreamTables, upstream: UpstreamTable) -> UpstreamTable:
    excluded = statement.exclude_columns
    texts = statement.text_columns
    if statement.columns is not None:
        # What is not given is left out; what is given as text is one.
        given = {column.name: column.type.name for column in statement.columns}
        every = [*(column.name for column in upstream.columns), *upstream.unsupported]
        excluded = (*excluded, *(name for name in every if name not in given))
        texts += tuple([n for n in upstream.unsupported if given.get(n) == "text"])
    return chosen_columns(upstream, texts, excluded)


def _given(
    statement: CreateUpstreamTables,
    columns: Sequence[Column],
    upstream: UpstreamTable,
    chosen: UpstreamTable,
) -> UpstreamTable:
    """In the order and with the types that the statement has. Raises 42703, 42804, 0A000."""
    known = {column.name: column for column in chosen.columns}
    taken: list[UpstreamColumn] = []
    where = f"of upstream table {upstream.reference}"
    for column in columns:
        there = known.get(column.name)
        if there is None:
            raise SqlError("42703", f'column "{column.name}" {where} does not exist')
        if not fits(there.type, column.type):
            upstreams, ours = format_type(there.type), format_type(column.type)
            message = f'column "{column.name}" {where} is of type {upstreams}'
            detail = f"Not every value of it is one of type {ours}."
            raise SqlError("42804", message, detail=detail)
        if column.not_null and not there.not_null:
            raise not_supported(f'NOT NULL of column "{column.name}", which may be NULL upstream,')
        taken.append(replace(there, type=column.type, not_null=there.not_null))
    if statement.key is not None and {*statement.key} != {*upstream.key}:
        shown = ", ".join(upstream.key) or "none"
        raise not_supported("a key other than upstream's", hint=f"Upstream's is: {shown}.")
    return replace(chosen, columns=tuple(taken))
