"""Run a writing statement for many sets of values at once, as batches of drivers ask.

    sets ─┬─ INSERT: rows of VALUES ──────────┐
          └─ UPDATE, DELETE: rows by key, new ┴─▶ one batch ─▶ constraints, keys, locks, buffer
                                                                        └▶ a tag for each set

What is done for a statement is then done once: scans, key checks, messages to the coordinator.
An INSERT of many rows may be given as runs, too, one for each row (`StatementRuns.is_one`).

INVARIANTS
  B1  what comes of it is what one run after the other would come to. So runs share no row: a batch
      ends before a key that comes again, and statements are left out whose constraints could tell
      the order (keys that move, rows that refer to their own table, parents of other rows).
  B2  if anything fails, nothing of the batch has happened: the caller runs one set after the other,
      or the text of the rows, and what fails there says so. Only sequences have moved then, as far
      as the runs' own parameters could not tell that they are no batch.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import pyarrow as pa

from compute.access.point_reads import (
    PointRead,
    plan_point_change,
    point_value,
    unique_point,
)
from compute.access.row_predicates import RowPredicate
from compute.computed_values import ComputedValues, computed_values
from compute.identity_cache import IdentityCache
from compute.reference.arrow import BatchMaker
from compute.reference.executor import PreparedPlan
from compute.reference.expressions import Row
from compute.reference.joins import KEY_TYPES
from coordinator.core.short_writes.by_key import row_bytes
from coordinator.driver.coordination import RequestRefused
from coordinator.execution.context import Done, Execution, StatementRuns, stream_table
from coordinator.execution.dml.arbiter_keys import ArbiterKeys
from coordinator.execution.dml.modify_part import take_source_rows
from coordinator.execution.dml.repeated_values import (
    is_given_at_once,
    is_given_once,
    values_of_runs,
)
from coordinator.execution.dml.row_sink import stored_schema
from coordinator.execution.dml.statement_work import StatementEffects
from coordinator.execution.keyed_access import run_point_plan
from coordinator.large_work import begun_turns
from coordinator.transaction.transaction import StatementRestart
from sql.catalog.catalog import SYSTEM_TIMELINE, Catalog, Key, Table
from sql.catalog.foreign_keys import referencing_keys
from sql.plan.nodes import ColumnId, ColumnRef, Const, InList, Param, Plan, RelationId, Values
from sql.plan.read_conditions import ReadCondition
from sql.plan.traverse import is_volatile_plan, plan_has_subquery, walk
from sql.statements.bound import Modify, ModifyKind, ParameterizedStatement
from sql.types.sql_type import SqlType, Value

RUNS_MAX: Final = 200
"""Runs of one batch. Larger: others wait longer for the loop. Smaller: more is done for each."""

_ROWS_MAX: Final = 2_000
_BYTES_MAX: Final = 256 << 10
"""Of the rows of a batch that has more than one run."""

_PIECE: Final = 500
"""Rows of one statement that are computed in one turn of the loop."""

_BOOL: Final = SqlType("bool")


class NotRepeatable(Exception):
    """The statement does not fit, or a set has to go alone."""


@dataclass(frozen=True, slots=True)
class _Inserts:
    """INSERT .. VALUES. `count`: of its rows; `values`: what its functions read; `keys`: those that
    decide about ON CONFLICT.
    """

    modify: Modify
    plan: PreparedPlan
    count: int
    values: ComputedValues | None
    maker: BatchMaker
    keys: ArbiterKeys


@dataclass(frozen=True, slots=True)
class _Changes:
    """UPDATE or DELETE by a unique key."""

    modify: Modify
    reading: PointRead
    key: Key
    wanted: Sequence[Const | Param]


_known: IdentityCache[ParameterizedStatement, _Inserts | _Changes | None] = IdentityCache()
"""Statements compiled, once for all sessions; None: they run one after the other."""


async def execute_repeatedly(
    execution: Execution, prepared: ParameterizedStatement, runs: StatementRuns
) -> Done:
    """Do the first of the runs, as many as fit at once; a tag for each. Raises NotRepeatable,
    RequestRefused, StatementRestart.
    """
    found = [
        _known.found(one, partial(_compiled, execution, one))
        for one in runs.statements or [prepared]
    ]
    statements = [one for one in found if one is not None]
    if len(statements) < len(found):
        raise NotRepeatable
    try:
        counts = await _run(execution, prepared, runs, statements)
    except (NotRepeatable, RequestRefused, StatementRestart):
        raise
    except Exception as error:
        raise NotRepeatable from error  # B2
    if runs.is_one:
        return Done(f"{prepared.tag} {sum(counts)}")
    first, *others = [f"{prepared.tag} {count}" for count in counts]
    return Done(first, tuple(others))


async def _run(
    execution: Execution,
    prepared: ParameterizedStatement,
    runs: StatementRuns,
    statements: Sequence[_Inserts | _Changes],
) -> Sequence[int]:
    """How many rows each run has changed."""
    modify = statements[0].modify
    execution.transaction.check_writable(modify.kind.value.upper(), [modify.table])
    work = StatementEffects(execution)
    try:
        match statements[0]:
            case _Changes() as changes:
                given = execution.parameters[len(prepared.parameters) :]
                counts = await _change(execution, runs, changes, work, given)
            case _Inserts():
                inserts = [one for one in statements if isinstance(one, _Inserts)]
                counts = await _insert(execution, prepared, runs, inserts, work)
        if not execution.alone:
            execution.transaction.mark_statement()
        await work.write()
    except BaseException:
        await work.discard()
        raise
    return counts


async def _insert(
    execution: Execution,
    prepared: ParameterizedStatement,
    runs: StatementRuns,
    statements: Sequence[_Inserts],
    work: StatementEffects,
) -> Sequence[int]:
    rows: list[Row] = []
    ends: list[int] = []
    seen: set[Hashable] = set()
    nbytes = 0
    first = statements[0]
    of_each = runs.statements or (prepared,)
    moves = not all(map(is_given_once, of_each))
    if moves and not runs.is_one:
        runs = _fitting(runs, first, len(prepared.supplied))
    given = await values_of_runs(execution, of_each, runs)
    turns = begun_turns()
    for number, values in enumerate(runs.sets):
        execution.parameters = (*values, *next(given))
        statement = statements[runs.of[number]] if runs.of else first
        if statement.values is not None:
            if not statement.values.are_few(execution.parameters):
                raise NotRepeatable
            await turns.give_way()
        made = statement.plan.rows(execution.parameters)
        nbytes += sum(map(row_bytes, made))
        keys = () if runs.is_one else statement.keys.of(made)
        is_full = nbytes > _BYTES_MAX or len(rows) + len(made) > _ROWS_MAX
        if moves and not seen.isdisjoint(keys):
            raise NotRepeatable  # keys that sequences make, which have moved
        if not seen.isdisjoint(keys) or (number and is_full and not (runs.is_one or moves)):
            break
        seen.update(keys)
        rows += made
        ends.append(len(rows))
        if number % _PIECE == _PIECE - 1 and runs.is_one:
            await asyncio.sleep(0)
    table = pa.Table.from_batches([first.maker.batch(rows)])
    done = await take_source_rows(execution, first.modify, work, stream_table(table))
    if done.taken is None:
        return [end - begin for begin, end in zip([0, *ends], ends, strict=False)]
    counts = [0] * len(ends)
    for number in done.taken:
        counts[bisect_right(ends, number)] += 1
    return counts


def _fitting(runs: StatementRuns, inserts: _Inserts, supplied: int) -> StatementRuns:
    """As many runs as are a batch by their own parameters; nothing is taken from sequences yet.
    `supplied`: the number of runtime parameters.
    """
    rows = nbytes = 0
    seen: set[Hashable] = set()
    for number, values in enumerate(runs.sets):
        parameters = (*values, *(None,) * supplied)
        if inserts.values is not None and not inserts.values.are_few(parameters):
            raise NotRepeatable
        rows += inserts.count
        nbytes += row_bytes(values)
        keys = inserts.keys.early(parameters)
        is_full = rows > _ROWS_MAX or nbytes > _BYTES_MAX
        if not seen.isdisjoint(keys) or (number and is_full):
            return replace(runs, sets=runs.sets[:number])
        seen.update(keys)
    return runs


async def _change(
    execution: Execution,
    runs: StatementRuns,
    statement: _Changes,
    work: StatementEffects,
    given: Sequence[Value],
) -> Sequence[int]:
    """`given`: the runtime parameters, which all runs share."""
    modify, reading = statement.modify, statement.reading
    sets: list[tuple[Value, ...]] = []
    keys: dict[tuple[Value, ...], None] = {}
    for values in runs.sets:
        key = tuple([point_value(expr, values) for expr in statement.wanted])
        if key in keys:
            break
        keys[key] = None
        sets.append((*values, *given))
    wanted = list(keys)
    await work.look_at_rows(modify.table, _having(modify.table, statement.key, wanted))
    view = work.views[RelationId(modify.table.shard)]
    look_up = partial(
        reading.rows_by_key, execution.services.key_index, view, reading.keys_of(wanted)
    )
    try:
        found = look_up(may_read=False)
        if found is None:
            found = await asyncio.to_thread(look_up, may_read=True)
    except Exception:
        await execution.services.coordination.examine([view])
        raise
    rows: list[Row] = []
    counts: list[int] = []
    turns = begun_turns()
    assert found is not None, "who may read files answers (R2 of `point_reads.py`)"
    for key, values in zip(wanted, sets, strict=True):
        old = [found[key]] if key in found else []
        made = await run_point_plan(execution, reading, old, values)
        if reading.has_functions:
            await turns.give_way()
        rows += made
        counts.append(len(made))
    if rows:
        batch = pa.Table.from_batches([reading.batch(rows)])
        await take_source_rows(execution, modify, work, stream_table(batch))
    return counts


def _having(table: Table, key: Key, values: Sequence[tuple[Value, ...]]) -> RowPredicate:
    """The rows that have one of these values of a key. NULL is in no key."""
    known = [row for row in values if None not in row]
    columns = [(at, table.columns[at].type) for at in key.columns]

    def among(place: int, items: Sequence[tuple[Value, ...]]) -> InList:
        ordinal, type_ = columns[place]
        constants = tuple([Const(row[place], type_) for row in items])
        return InList(ColumnRef(ColumnId(ordinal), type_), constants, False, _BOOL)

    if len(columns) == 1:
        return RowPredicate(table, (ReadCondition((among(0, known),)),), ())
    conditions = [
        ReadCondition(tuple([among(place, [row]) for place in range(len(columns))]))
        for row in known
    ]
    return RowPredicate(table, tuple(conditions), ())


# --- which statements fit -----------------------------------------------------------------------


def _compiled(execution: Execution, prepared: ParameterizedStatement) -> _Inserts | _Changes | None:
    modify = prepared.bound
    if not isinstance(modify, Modify) or prepared.tells_timestamp or prepared.fails is not None:
        return None
    if modify.returning is not None or modify.locking or modify.extras or modify.calls is not None:
        return None
    if modify.view_checks is not None or modify.table.timeline != SYSTEM_TIMELINE.name:
        return None
    keys, references = modify.table.keys, modify.table.foreign_keys
    if any(key.deferrable for key in keys) or any(key.deferrable for key in references):
        return None  # which violation is told at the end is a matter of order
    if execution.services.in_process.refusal(modify.source) is not None:
        return None
    match modify.kind:
        case ModifyKind.INSERT if is_given_at_once(prepared):
            return _inserts(modify, len(prepared.parameters))
        case ModifyKind.UPDATE | ModifyKind.DELETE if is_given_once(prepared):
            return _changes(modify, execution.catalog())
        case _:
            return None


def _inserts(modify: Modify, own: int) -> _Inserts | None:
    """`own`: the number of the client's parameters."""
    source, table, conflict = modify.source, modify.table, modify.conflict
    if modify.tables or not isinstance(source, Values) or plan_has_subquery(source):
        return None
    if any(key.table == table.oid for key in table.foreign_keys):
        return None
    arbiters: list[tuple[int, ...]] = []
    if conflict is not None:
        keyed = {ordinal for key in table.keys for ordinal in key.columns}
        if conflict.indexes or conflict.tables or not keyed.isdisjoint(conflict.assigned):
            return None
        if conflict.update is not None and _uses_parameters(conflict.update, own):
            return None  # DO UPDATE runs once for the rows of all runs
        # Without a target every key decides, as the binder says.
        arbiters = [table.keys[place].columns for place in conflict.arbiters]
    values = computed_values(source)
    if values is not None and values.may_grow:
        return None
    maker = BatchMaker([column.type for column in table.columns], stored_schema(table))
    keys = ArbiterKeys(source, arbiters, own)
    return _Inserts(modify, PreparedPlan(source), len(source.rows), values, maker, keys)


def _uses_parameters(plan: Plan, own: int) -> bool:
    """Whether a plan depends on what each run gives."""
    return any(isinstance(node, Param) and node.index <= own for node in walk(plan))


def _changes(modify: Modify, catalog: Catalog) -> _Changes | None:
    table, source = modify.table, modify.source
    if modify.tables != (table,) or table.unique_indexes or is_volatile_plan(source):
        return None
    if modify.kind is ModifyKind.DELETE and referencing_keys(catalog, table.oid):
        return None
    keyed = {ordinal for key in table.keys for ordinal in key.columns}
    if modify.kind is ModifyKind.UPDATE and not keyed.isdisjoint(modify.old):
        return None
    point, reading = unique_point(source, table), plan_point_change(source, table)
    if point is None or reading is None or not reading.is_unique or point[0].deferrable:
        return None
    if any(table.columns[ordinal].type.name not in KEY_TYPES for ordinal in point[0].columns):
        return None
    return _Changes(modify, reading, *point)
