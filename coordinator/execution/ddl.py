"""Execute DDL statements: buffer their catalog changes in the transaction."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from coordinator.core.messages.catalog_changes import (
    CatalogChange,
    PutComment,
    PutObject,
    PutPrivileges,
    PutReadHold,
    PutSchema,
    PutTable,
    PutTimeline,
    RemoveObject,
    RemoveReadHold,
    RemoveSchema,
    RemoveTable,
    RemoveTimeline,
)
from coordinator.execution.alter_table import (
    apply_redefinition,
    rewrite_tables,
    validate_rows,
    with_next_version,
)
from coordinator.execution.context import Done, Execution
from coordinator.execution.dml.computed_keys import check_unique_rows
from coordinator.execution.dml.deferred_constraints import check_no_pending_checks
from coordinator.execution.grant import role_changes, with_owners
from coordinator.execution.sources.definitions import check_feeds, source_changes
from coordinator.execution.spill import write_rows
from coordinator.execution.time_value import time_value
from coordinator.pgwire.messages import Severity
from sql.binder.ddl.sequence_options import check_restart
from sql.binder.ddl.storage_parameters import CHANGES_NOTHING
from sql.binder.stored.stored_texts import refuse_temporary_dependency
from sql.binder.stored.unique_indexes import unique_indexes_of
from sql.catalog.acl import ObjectPrivileges
from sql.catalog.catalog import ReadHold, Table
from sql.catalog.extensions import AVAILABLE_EXTENSIONS
from sql.catalog.objects import (
    CatalogObject,
    Comment,
    EnumDefinition,
    ExtensionDefinition,
    IndexDefinition,
    MaterializedView,
    SequenceDefinition,
    StatisticsDefinition,
    Subject,
    object_kind_name,
)
from sql.catalog.temporary import is_temporary_schema
from sql.errors import SqlError
from sql.statements.bound import (
    AlterTable,
    CreateSchema,
    CreateTable,
    Definition,
    DropSchema,
    DropTable,
)
from sql.statements.ddl import (
    ChangeObjects,
    ChangePrivileges,
    CreateObject,
    CreateSequence,
    Redefinition,
)
from sql.statements.runtime_parameters import RowDefault
from sql.statements.sources import (
    CreateFedTables,
    CreateSource,
    CreateUpstreamTables,
    SkipRecord,
)
from sql.statements.timelines import (
    AdvanceReadHold,
    AdvanceTimeline,
    CreateReadHold,
    CreateTimeline,
    DropReadHold,
    DropTimeline,
)

_WARNINGS: Final = frozenset({"01", "22", "3D"})
"""Classes of SQLSTATE that say more than a notice."""


async def execute_definition(execution: Execution, statement: Definition, tag: str) -> Done:
    """Buffer the DDL; it is part of the commit like any write."""
    execution.transaction.check_writable(tag)
    _check_unused(execution, statement)
    check_feeds(execution, statement)
    changes = _with_schema(execution, await _changes(execution, statement))
    if changes:
        _buffer(execution, changes)
    return Done(tag)


def _check_unused(execution: Execution, statement: Definition) -> None:
    """55006 for a table whose rows deferred constraints have still to look at."""
    match statement:
        case AlterTable(unused=command) if command:
            check_no_pending_checks(
                execution, [change.before for change in statement.tables], command
            )
        case DropTable(tables=tables) | DropSchema(tables=tables):
            check_no_pending_checks(execution, tables, "DROP TABLE")
        case CreateObject(object=IndexDefinition(table=oid)):
            table = execution.catalog().by_oid(oid)
            check_no_pending_checks(execution, [] if table is None else [table], "CREATE INDEX")
        case _:
            pass


def _with_schema(execution: Execution, changes: list[CatalogChange]) -> list[CatalogChange]:
    """The first temporary relation of a session brings their schema along."""
    there = execution.catalog().schemas
    for change in changes:
        if isinstance(change, PutTable | PutObject):
            made = change.table if isinstance(change, PutTable) else change.object
            if is_temporary_schema(made.schema) and made.schema not in there:
                return [PutSchema(made.schema), *changes]
    return changes


def _buffer(execution: Execution, changes: list[CatalogChange]) -> None:
    catalog = execution.catalog()
    for change in changes:
        if isinstance(change, PutTable | PutObject):
            made = change.table if isinstance(change, PutTable) else change.object
            refuse_temporary_dependency(catalog, made)
    execution.transaction.changed_catalog = True
    execution.transaction.wrote = True
    owned = with_owners(execution, changes)
    execution.services.coordination.change_catalog(execution.transaction.id, owned)


def redefine_table(execution: Execution, after: Table) -> None:
    """Give a table another definition that no row is rewritten for."""
    _buffer(execution, [PutTable(after)])


async def execute_advance(execution: Execution, statement: AdvanceTimeline, tag: str) -> Done:
    """ADVANCE TIMELINE: the commit brings it there, with what the transaction writes to it."""
    execution.transaction.check_writable(tag)
    ts = await time_value(execution, statement.to, "TO")
    execution.transaction.wrote = True
    execution.services.coordination.advance(execution.transaction.id, statement.name, ts)
    return Done(tag)


async def _changes(execution: Execution, statement: Definition) -> list[CatalogChange]:
    match statement:
        case CreateTable(exists=True):
            _skipping(execution, "42P07", f'relation "{statement.name}" already exists')
            return []
        case CreateTable():
            return await _created_table(execution, statement)
        case CreateSequence(exists=True, sequence=sequence):
            _skipping(execution, "42P07", f'relation "{sequence.name}" already exists')
            return []
        case CreateSequence(sequence=sequence):
            oid, state = await execution.services.coordination.new_table_id()
            return [PutObject(replace(sequence, oid=oid, state=str(state)))]
        case CreateObject(exists=True, object=thing):
            _skipping(execution, "42P07", f'relation "{thing.name}" already exists')
            return []
        case CreateObject(object=thing):
            shown = isinstance(thing, IndexDefinition | StatisticsDefinition)
            told = CHANGES_NOTHING if shown else "00000"
            for text in statement.notices:
                execution.notice(SqlError(told, text), Severity.NOTICE)
            oid, _ = await execution.services.coordination.new_table_id()
            if isinstance(thing, EnumDefinition):
                array, _ = await execution.services.coordination.new_table_id()
                thing = replace(thing, array=array)
            made = replace(thing, oid=oid)
            return [PutObject(made), *_described(made)]
        case ChangePrivileges():
            return await role_changes(execution, statement)
        case ChangeObjects():
            return await _objects(execution, statement)
        case DropTable():
            for told in statement.missing:
                execution.notice(SqlError("00000", told), Severity.NOTICE)
            if len(statement.cascades) == 1:
                _cascade(execution, statement.cascades[0], None)
            elif statement.cascades:
                text = f"drop cascades to {len(statement.cascades)} other objects"
                _cascade(execution, text, "\n".join(statement.cascades))
            changed: list[CatalogChange] = [PutTable(change.after) for change in statement.changed]
            changed += _removed(execution, statement.objects)
            return changed + _dropped(execution, statement.tables)
        case CreateSchema(exists=True):
            _skipping(execution, "42P06", f'schema "{statement.name}" already exists')
            return []
        case CreateSchema(owner=int(owner)):
            whose = PutPrivileges(
                Subject("schema", statement.name), ObjectPrivileges(owner, version=1)
            )
            return [PutSchema(statement.name), whose]
        case CreateSchema():
            return [PutSchema(statement.name)]
        case DropSchema():
            return _dropped_schemas(execution, statement)
        case AlterTable():
            return await _altered(execution, statement)
        case CreateSource() | CreateFedTables() | CreateUpstreamTables() | SkipRecord():
            return await source_changes(execution, statement)
        case CreateTimeline() | DropTimeline():
            return await _timelines(execution, statement)
        case CreateReadHold() | AdvanceReadHold() | DropReadHold():
            return await _read_holds(execution, statement)


def _described(made: CatalogObject) -> list[CatalogChange]:
    """The comment that an extension comes with."""
    if not isinstance(made, ExtensionDefinition):
        return []
    text = AVAILABLE_EXTENSIONS[made.name].comment
    return [PutComment(Comment(Subject("extension", made.oid), text))]


async def _created_table(execution: Execution, statement: CreateTable) -> list[CatalogChange]:
    oid, shard = await execution.services.coordination.new_table_id()
    table = Table(
        oid,
        statement.schema,
        statement.name,
        shard,
        statement.columns,
        timeline=statement.timeline,
        history_us=statement.history_us,
        keys=statement.keys,
        checks=statement.checks,
        on_commit=statement.on_commit,
        clustered=statement.clustered,
        parameters=statement.parameters,
        unlogged=statement.unlogged,
        query=statement.query,
        change_feed=statement.change_feed,
    )
    for text in statement.notices:
        execution.notice(SqlError(CHANGES_NOTHING, text), Severity.NOTICE)
    own = tuple(replace(key, table=key.table or oid) for key in statement.foreign_keys)
    table = replace(table, foreign_keys=own)
    execution.transaction.fresh.add(oid)
    table, sequences = await _with_sequences(execution, table, statement.sequences)
    parents = [PutTable(with_next_version(parent)) for parent in statement.parents]
    indexes, oids = await _with_indexes(execution, table, statement.indexes)
    unique = [index.oid for index in indexes if index.unique]
    table = replace(table, unique_indexes=tuple(unique))
    comments = [
        PutComment(replace(said, subject=replace(said.subject, of=oids[int(said.subject.of)])))
        for said in statement.comments
    ]
    return [PutTable(table), *sequences, *parents, *map(PutObject, indexes), *comments]


async def _with_indexes(
    execution: Execution, table: Table, wanted: Sequence[IndexDefinition]
) -> tuple[list[IndexDefinition], dict[int, int]]:
    """The indexes of a new table, and the oids of what comments call 0, -1, -2 .."""
    made: list[IndexDefinition] = []
    oids = {0: table.oid}
    for number, bare in enumerate(wanted, 1):
        oid, _ = await execution.services.coordination.new_table_id()
        made.append(replace(bare, oid=oid, table=table.oid))
        oids[-number] = oid
    return made, oids


async def _with_sequences(
    execution: Execution, table: Table, wanted: Sequence[tuple[int, SequenceDefinition]]
) -> tuple[Table, list[CatalogChange]]:
    """A table whose serial and identity columns have sequences, and these."""
    columns = list(table.columns)
    made: list[CatalogChange] = []
    for ordinal, bare in wanted:
        oid, state = await execution.services.coordination.new_table_id()
        field = columns[ordinal].field
        made.append(
            PutObject(replace(bare, oid=oid, state=str(state), owner=table.oid, owner_field=field))
        )
        columns[ordinal] = replace(columns[ordinal], sequence=oid)
    return replace(table, columns=tuple(columns)), made


def _dropped(execution: Execution, tables: Sequence[Table]) -> list[CatalogChange]:
    """Tables go with the sequences that belong to their columns."""
    oids = {table.oid for table in tables}
    catalog = execution.catalog()
    owned: list[CatalogObject] = [s for s in catalog.sequences() if s.owner in oids]
    owned += [thing for oid in oids for thing in catalog.indexes(oid)]
    owned += [thing for oid in oids for thing in catalog.statistics(oid)]
    return [*(RemoveTable(table) for table in tables), *(RemoveObject(thing) for thing in owned)]


def _removed(execution: Execution, things: Sequence[CatalogObject]) -> list[CatalogChange]:
    """Objects that are dropped; a materialized view goes as the table that it is."""
    catalog = execution.catalog()
    views = [catalog.by_oid(thing.oid) for thing in things if isinstance(thing, MaterializedView)]
    others = [thing for thing in things if not isinstance(thing, MaterializedView)]
    tables = _dropped(execution, [table for table in views if table is not None])
    return [*map(RemoveObject, others), *tables]


async def _objects(execution: Execution, statement: ChangeObjects) -> list[CatalogChange]:
    for sqlstate, text, detail in statement.notices:
        severity = Severity.WARNING if sqlstate[:2] in _WARNINGS else Severity.NOTICE
        execution.notice(SqlError(sqlstate, text, detail=detail), severity)
    changes: list[CatalogChange] = [PutTable(change.after) for change in statement.tables]
    batches = await rewrite_tables(execution, statement.rewritings)
    changes += [PutTable(item.change.after) for item in statement.rewritings]
    changes += _dropped(execution, statement.dropped_tables)
    changes += _removed(execution, statement.dropped)
    for thing in statement.objects:
        changes.append(PutObject(await _begun(execution, thing, statement.fresh)))
    changes += [PutComment(comment) for comment in statement.comments]
    if not batches and not statement.validations:
        return changes
    _buffer(execution, changes)
    for table, batch in batches:
        await write_rows(execution, table, batch)
        for index in unique_indexes_of(execution.catalog(), table):
            await check_unique_rows(execution, table, index)
    for table, validation in statement.validations:
        await validate_rows(execution, table, [validation])
    return []


async def _begun(
    execution: Execution, thing: CatalogObject, fresh: frozenset[int]
) -> CatalogObject:
    """A sequence that begins anew has another state, which stands at its restart value."""
    if not isinstance(thing, SequenceDefinition):
        return thing
    if thing.oid not in fresh:
        await _check_bounds(execution, thing)
        return thing
    value = int(thing.state.removeprefix("@"))
    _, state = await execution.services.coordination.new_table_id()
    begun = replace(thing, state=str(state))
    await execution.services.coordination.set_value(begun, value, called=False)
    return begun


async def _check_bounds(execution: Execution, after: SequenceDefinition) -> None:
    """22023 if a sequence that goes on stands beyond its new bounds."""
    (known,) = (s for s in execution.catalog().sequences() if s.oid == after.oid)
    if (known.least, known.greatest) != (after.least, after.greatest):
        state = await execution.services.coordination.sequence_state(known)
        check_restart(after, state.last)


async def _altered(execution: Execution, statement: AlterTable) -> list[CatalogChange]:
    if statement.missing is not None:
        _skipping(execution, "00000", f'relation "{statement.missing}" does not exist')
    for sqlstate, text, detail in statement.notices:
        execution.notice(SqlError(sqlstate, text, detail=detail), Severity.NOTICE)
    if statement.unique_index is not None:
        return await _unique_index(execution, statement.tables[0].after, statement.unique_index)
    objects = [
        PutObject(await _begun(execution, thing, statement.fresh)) for thing in statement.objects
    ]
    looks = statement.validations or statement.parents or statement.sequences
    if statement.rewrite is not None or looks or statement.recomputed:
        change, *children = statement.tables
        change, sequences = await _with_own(execution, change, statement)
        others = [*_removed(execution, statement.dropped), *sequences, *objects]
        others += [PutTable(child.after) for child in children]
        if others:
            _buffer(execution, others)
        await apply_redefinition(execution, change, statement.rewrite, statement.parents)
        await validate_rows(execution, change.after, statement.validations)
        for index in statement.recomputed:
            await check_unique_rows(execution, change.after, index)
        return [PutComment(comment) for comment in statement.comments]
    changes = _removed(execution, statement.dropped)
    if statement.new_schema is not None:
        changes.append(PutSchema(statement.new_schema))
    changes += [PutTable(redefined.after) for redefined in statement.tables]
    changes += objects
    changes += [PutComment(comment) for comment in statement.comments]
    changes += [PutPrivileges(subject, rights) for subject, rights in statement.rights]
    if statement.old_schema is not None:
        changes.append(RemoveSchema(statement.old_schema))
    return changes


async def _unique_index(
    execution: Execution, table: Table, bare: IndexDefinition
) -> list[CatalogChange]:
    """A unique index that is no key, whose table knows of it; its rows are looked at."""
    oid, _ = await execution.services.coordination.new_table_id()
    index = replace(bare, oid=oid)
    after = replace(table, unique_indexes=(*table.unique_indexes, oid))
    _buffer(execution, [PutTable(after), PutObject(index)])
    await check_unique_rows(execution, after, index)
    return []


async def _with_own(
    execution: Execution, change: Redefinition, statement: AlterTable
) -> tuple[Redefinition, list[CatalogChange]]:
    """The change with the sequences of its new columns."""
    after, made = await _with_sequences(execution, change.after, statement.sequences)
    old = {column.field for column in change.before.columns}
    for ordinal, _ in statement.sequences:
        if after.columns[ordinal].field in old:
            # It has its values already.
            continue
        created = after.columns[ordinal].sequence
        (sequence,) = [
            c.object for c in made if isinstance(c, PutObject) and c.object.oid == created
        ]
        assert isinstance(sequence, SequenceDefinition), "it was made as one"
        execution.filled = {
            **execution.filled,
            after.oid: {**execution.filled.get(after.oid, {}), ordinal: RowDefault((sequence,))},
        }
    return replace(change, after=after), made


async def _timelines(
    execution: Execution, statement: CreateTimeline | DropTimeline
) -> list[CatalogChange]:
    match statement:
        case CreateTimeline(exists=True):
            name = statement.timeline.name
            _skipping(execution, "42710", f'timeline "{name}" already exists')
            return []
        case CreateTimeline():
            _, part = await execution.services.coordination.new_table_id()
            return [PutTimeline(replace(statement.timeline, part=part))]
        case DropTimeline():
            for name in statement.missing:
                _skipping(execution, "00000", f'timeline "{name}" does not exist')
            return [RemoveTimeline(name) for name in statement.names]


async def _read_holds(
    execution: Execution, statement: CreateReadHold | AdvanceReadHold | DropReadHold
) -> list[CatalogChange]:
    match statement:
        case CreateReadHold(name=name, timeline=timeline, at=at):
            ts = None if at is None else await time_value(execution, at, "AT")
            txn = execution.transaction.id
            ts = await execution.services.coordination.hold(txn, timeline, ts)
            return [PutReadHold(ReadHold(name, timeline, ts))]
        case AdvanceReadHold(name=name, to=to):
            ts = await time_value(execution, to, "TO")
            hold = (await execution.transaction.snapshot()).catalog.read_holds[name]
            if ts < hold.ts:
                message = f'read hold "{name}" is at {hold.ts}, which is later'
                raise SqlError("22023", message)
            txn = execution.transaction.id
            ts = await execution.services.coordination.hold(txn, hold.timeline, ts)
            return [RemoveReadHold(name), PutReadHold(ReadHold(name, hold.timeline, ts))]
        case DropReadHold():
            for name in statement.missing:
                _skipping(execution, "00000", f'read hold "{name}" does not exist')
            return [RemoveReadHold(name) for name in statement.names]


def _dropped_schemas(execution: Execution, statement: DropSchema) -> list[CatalogChange]:
    for name in statement.missing:
        _skipping(execution, "00000", f'schema "{name}" does not exist')
    inside: list[tuple[str, Table | CatalogObject]] = [(t.kind, t) for t in statement.tables]
    inside += [(object_kind_name(thing), thing) for thing in statement.objects]
    inside.sort(key=lambda entry: entry[1].oid)
    told = [f"drop cascades to {word} {thing.qualified}" for word, thing in inside]
    told += statement.told
    if len(told) == 1:
        _cascade(execution, told[0], None)
    elif told:
        _cascade(execution, f"drop cascades to {len(told)} other objects", "\n".join(told))
    tables: list[CatalogChange] = [PutTable(change.after) for change in statement.changed]
    tables += _dropped(execution, statement.tables)
    tables += _removed(execution, (*statement.objects, *statement.outside))
    return tables + [RemoveSchema(name) for name in statement.names]


def _skipping(execution: Execution, sqlstate: str, message: str) -> None:
    execution.notice(SqlError(sqlstate, f"{message}, skipping"), Severity.NOTICE)


def _cascade(execution: Execution, message: str, detail: str | None) -> None:
    execution.notice(SqlError("00000", message, detail=detail), Severity.NOTICE)
