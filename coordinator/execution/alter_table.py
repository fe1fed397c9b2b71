"""ALTER TABLE: rewrite the rows for the new definition and validate them, in one transaction.

    rows before ─▶ rewrite ─▶ PutTable ─▶ rows after ─▶ validations ─▶ done, or the statement fails

INVARIANTS
  T1  the definition and the rows that fit it are changed in one transaction, or neither.
  T2  a transaction that alters a table has seen all of its rows: the commit is refused if another
      has written to it since (A11 of `coordinator/core/validation.py`).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa

from coordinator.core.messages.catalog_changes import PutTable
from coordinator.execution.context import Execution
from coordinator.execution.dml.claimed_rows import ClaimedRows
from coordinator.execution.dml.row_sink import RowSink
from coordinator.execution.run_plan import run_plan
from coordinator.execution.spill import write_rows
from coordinator.streams import closing_batches
from ingest.copy_text.arrow_types import to_values
from sql.binder.stored.stored_texts import refuse_temporary_dependency
from sql.catalog.catalog import Table
from sql.errors import SqlError
from sql.plan.nodes import Plan
from sql.statements.ddl import Redefinition, TableRewrite, Validation
from sql.types.sql_type import quoted_name
from sql.types.text_output import format_text
from storage.batch import WriteBatch


async def apply_redefinition(
    execution: Execution,
    change: Redefinition,
    rewrite: Plan | None,
    parents: Sequence[Table] = (),
) -> None:
    """Give a table its new definition, and rewrite its rows for it (T1). `parents`: tables that it
    refers to now; statements bound without the reference are bound again.
    """
    refuse_temporary_dependency(execution.catalog(), change.after)
    batch: WriteBatch | None = None
    sink = RowSink.of(execution, change.after, checked=False)
    try:
        if rewrite is not None:
            batch = await _rewritten(execution, change.before, rewrite, sink)
    except BaseException:
        await sink.discard()
        raise
    transaction = execution.transaction
    transaction.changed_catalog = True
    transaction.wrote = True
    execution.services.coordination.change_catalog(
        transaction.id,
        [PutTable(change.after), *(PutTable(with_next_version(parent)) for parent in parents)],
    )
    if batch is not None:
        await write_rows(execution, change.after, batch)


async def rewrite_tables(
    execution: Execution, rewritings: Sequence[TableRewrite]
) -> list[tuple[Table, WriteBatch]]:
    """The new rows of several tables, to be written once these have their new definitions."""
    done: list[tuple[Table, WriteBatch]] = []
    for item in rewritings:
        sink = RowSink.of(execution, item.change.after, checked=False)
        try:
            batch = await _rewritten(execution, item.change.before, item.rows, sink)
        except BaseException:
            await sink.discard()
            raise
        done.append((item.change.after, batch))
    return done


async def _rewritten(
    execution: Execution, table: Table, rewrite: Plan, sink: RowSink
) -> WriteBatch:
    claims = ClaimedRows()
    inputs = await execution.with_catalog(rewrite, await execution.views([table]))
    async with closing_batches(run_plan(execution, rewrite, inputs)) as batches:
        async for rows in batches:
            if rows.num_rows:
                claims.take(rows.column(0), rows.column(1))
                batch = pa.RecordBatch.from_arrays(list(rows.columns[2:]), schema=sink.schema)
                await sink.take(await sink.fill(batch))
    return await sink.finish(claims.rows)


def with_next_version(table: Table) -> Table:
    """The same table, as another version."""
    return replace(table, version=table.version + 1)


async def validate_rows(
    execution: Execution, table: Table, validations: Sequence[Validation]
) -> None:
    """Raises for the first constraint that a row of the table, or of another one involved,
    violates.
    """
    for validation in validations:
        own = table if validation.of is None or validation.of.oid == table.oid else validation.of
        others = () if validation.foreign is None else (validation.foreign[1],)
        tables = {other.oid: other for other in (*others, own)}
        if table.oid in tables:
            tables[table.oid] = table
        inputs = await execution.with_catalog(
            validation.plan, await execution.views([*tables.values()])
        )
        async with closing_batches(run_plan(execution, validation.plan, inputs)) as batches:
            async for rows in batches:
                if rows.num_rows:
                    raise _violation(own, validation, rows)


def _violation(table: Table, validation: Validation, rows: pa.RecordBatch) -> SqlError:
    if validation.error is not None:
        return validation.error
    return SqlError(
        validation.sqlstate,
        validation.message,
        detail=_detail(table, validation, rows),
        schema=table.schema,
        table=table.name,
        column=validation.column,
        constraint=validation.constraint,
    )


def _detail(table: Table, validation: Validation, rows: pa.RecordBatch) -> str | None:
    if validation.key is not None:
        return f"Key {_shown(table, validation.key.columns, rows, quoted_name)} is duplicated."
    if validation.foreign is not None:
        ordinals, parent = validation.foreign
        shown = _shown(table, ordinals, rows, str)
        return f'Key {shown} is not present in table "{parent.name}".'
    return None


def _shown(
    table: Table, ordinals: Sequence[int], rows: pa.RecordBatch, named: Callable[[str], str]
) -> str:
    columns = [table.columns[ordinal] for ordinal in ordinals]
    shown: list[str] = []
    for place, column in enumerate(columns):
        (value,) = to_values(rows.column(place).slice(0, 1), column.type)
        shown.append("null" if value is None else format_text(value, column.type))
    names = ", ".join(named(column.name) for column in columns)
    return f"({names})=({', '.join(shown)})"
