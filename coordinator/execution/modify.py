"""Execute INSERT, UPDATE, DELETE and MERGE, alone and in WITH; write the result to the transaction.

    INSERT VALUES   source in process ────────────────────────────▶ inserts        (blind: no scan)
    the others      views ─▶ engine ─▶ (source, index | new rows) ─▶ deletes + inserts
                                                └─▶ RETURNING over relation `new`

`modify_part.py` runs one part; `statement_work.py` collects the effects of all parts.
"""

from dataclasses import replace

import pyarrow as pa

from compute.arrow import batch_schema
from coordinator.execution.context import (
    Done,
    Execution,
    Inputs,
    Outcome,
    Rows,
    stream_table,
    tag_with_count,
)
from coordinator.execution.dml.modify_part import ModifyResult, reads_of, run_modify
from coordinator.execution.dml.returned_xmins import check_returned_xmins, with_returned_xmins
from coordinator.execution.dml.statement_work import PlanRead, StatementEffects
from coordinator.execution.dml.transient_relations import run_over_transient, transient_view
from coordinator.execution.locked_rows import LockedParts
from coordinator.execution.locking_queries import run_locking_parts
from coordinator.execution.reg_names import oid_naming
from coordinator.execution.sequence_calls import evaluate_row_calls
from coordinator.memory_account import MemoryOwner
from coordinator.streams import closing_batches
from sql.catalog.catalog import Table
from sql.errors import SqlError
from sql.plan.nodes import output_columns
from sql.statements.bound import BoundQuery, Modify, ModifyingCte, ModifyingWith


async def execute_modify(execution: Execution, modify: Modify, tag: str) -> Outcome:
    """Run the statement and buffer what it writes into the transaction."""
    execution.transaction.check_writable(modify.kind.value.upper(), [modify.table])
    check_returned_xmins(execution, modify)
    locked = await run_locking_parts(execution, modify.locking)
    modify = locked.modify(modify, execution.parameters)
    execution = _with_parameters(execution, locked)
    work = StatementEffects(execution)
    try:
        work.made.update(_inputs_of(modify, locked))
        await work.look_at(reads_of(modify))
        done = await run_modify(execution, modify, work)
        await work.write()
    except BaseException:
        await work.discard()
        raise
    return _outcome(execution, modify, done, tag)


async def execute_compound(execution: Execution, compound: ModifyingWith, tag: str) -> Outcome:
    """The same for a statement of several parts, all of which see the tables as they were."""
    main = compound.main
    verb = "SELECT" if isinstance(main, BoundQuery) else main.kind.value.upper()
    tables = [modify.table for modify in compound.modifications]
    execution.transaction.check_writable(verb, tables)
    check_returned_xmins(execution, main)
    locked = await run_locking_parts(execution, compound.locking)
    compound = _with_known_rows(execution, compound, locked)
    main = compound.main
    execution = _with_parameters(execution, locked)
    work = StatementEffects(execution)
    try:
        for modify in compound.modifications:
            work.made.update(_inputs_of(modify, locked))
        if isinstance(main, BoundQuery):
            work.made.update(locked.inputs([main.plan], main.calls))
        await work.look_at(
            [
                *(reading for modify in compound.modifications for reading in reads_of(modify)),
                *([PlanRead(main.plan, main.tables)] if isinstance(main, BoundQuery) else []),
            ]
        )
        await _run_parts(execution, compound.parts[: compound.before], work)
        if isinstance(main, BoundQuery):
            rows = await _rows(execution, main, work)
            done = ModifyResult(rows.num_rows, rows)
        else:
            done = await run_modify(execution, main, work)
        await _run_parts(execution, compound.parts[compound.before :], work)
        await work.write()
    except BaseException:
        await work.discard()
        raise
    return _outcome(execution, main, done, tag)


def _inputs_of(modify: Modify, locked: LockedParts) -> Inputs:
    """The locked rows that a part scans."""
    return locked.inputs([reading.plan for reading in reads_of(modify)], modify.calls)


def _with_parameters(execution: Execution, locked: LockedParts) -> Execution:
    """The statement from here on; should it begin again, it does so with what it was given."""
    parameters = locked.parameters(execution.parameters)
    if len(parameters) == len(execution.parameters):
        return execution
    return replace(execution, parameters=parameters)


def _with_known_rows(
    execution: Execution, compound: ModifyingWith, locked: LockedParts
) -> ModifyingWith:
    """The parts of the statement, which read by the keys of locked rows if they may."""
    if not compound.locking:
        return compound
    given = execution.parameters
    parts = tuple(
        [replace(part, modify=locked.modify(part.modify, given)) for part in compound.parts]
    )
    main = compound.main
    if isinstance(main, BoundQuery):
        return replace(compound, parts=parts, main=replace(main, plan=locked.plan(main.plan)))
    return replace(compound, parts=parts, main=locked.modify(main, given))


async def _run_parts(
    execution: Execution, parts: tuple[ModifyingCte, ...], work: StatementEffects
) -> None:
    for part in parts:
        done = await run_modify(execution, part.modify, work)
        if done.returned is not None:
            work.made[part.relation] = transient_view(part.relation, done.returned)


async def _rows(execution: Execution, query: BoundQuery, work: StatementEffects) -> pa.Table:
    """The rows of a query, held until the commit is acknowledged (Q1 of `context.py`)."""
    batches: list[pa.RecordBatch] = []
    size = 0
    rows = run_over_transient(execution, query.plan, work.inputs(query.tables))
    memory = execution.services.memory.holding(MemoryOwner.ROWS)
    async with closing_batches(evaluate_row_calls(execution, rows, query.calls)) as called:
        async for batch in called:
            batches.append(batch)
            size += batch.nbytes
            memory.set(size)
            if size > execution.services.limits.returning_bytes_max:
                raise SqlError(
                    "54000",
                    "the rows of a statement that also writes are too large",
                    hint="Write the rows first and read them with a query.",
                )
    schema = batch_schema(output_columns(query.plan))
    return pa.Table.from_batches(batches) if batches else schema.empty_table()


def _outcome(
    execution: Execution, main: BoundQuery | Modify, done: ModifyResult, tag: str
) -> Outcome:
    of_count = tag_with_count(tag)
    if done.returned is None:
        return Done(of_count(done.affected))
    names = oid_naming(main.columns, execution.context)
    if isinstance(main, Modify) and main.xmins:
        batches = with_returned_xmins(execution, main, done.returned)
    else:
        batches = stream_table(done.returned)
    return Rows(main.columns, batches, of_count, names)


def tables_read_and_written(bound: Modify | ModifyingWith) -> tuple[Table, ...]:
    """The tables that a statement reads and writes."""
    if isinstance(bound, Modify):
        others = () if bound.conflict is None else bound.conflict.tables
        checked = () if bound.view_checks is None else bound.view_checks.tables
        return (bound.table, *bound.tables, *bound.returning_tables, *others, *checked)
    found = tuple(
        table for modify in bound.modifications for table in tables_read_and_written(modify)
    )
    return found + (bound.main.tables if isinstance(bound.main, BoundQuery) else ())
