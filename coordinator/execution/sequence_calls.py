"""Evaluate sequence and session functions, before a statement runs or for each row that it yields.

    plan ─▶ rows ─▶ arguments ─▶ calls, row by row ─▶ rows of `called` ─▶ what is shown

Calls before the statement fill its runtime parameters; calls for each row are those of
`sql/binder/expressions/row_calls.py`.

INVARIANTS
  V1  a sequence value that a statement takes is used up, also if the statement fails. A statement
      that starts again by itself takes new values, after those that a short way has taken for it
      (V4 of `short_writes/given_values.py`).
  V2  calls are made in the order of rows, those of a row in the order of the statement.
"""

from collections.abc import AsyncIterator, Mapping, Sequence

import pyarrow as pa

from coordinator.execution.advisory_locks import call_advisory_lock
from coordinator.execution.context import Batches, Execution
from coordinator.execution.dml.transient_relations import (
    run_over_transient,
    transient_batch,
    transient_table,
    transient_view,
)
from coordinator.execution.session_functions import (
    call_session_function,
    evaluate_arguments,
    notify,
    session_function_for_row,
    session_value,
)
from coordinator.streams import closing_batches
from ingest.copy_text.arrow_types import normalize_column, to_array, to_values
from ingest.copy_text.kernels import Column
from sql.binder.bind import bind_with_context
from sql.binder.expressions.acting_calls import ACTING_FUNCTIONS, NOTIFY_FUNCTION
from sql.binder.expressions.row_calls import ROW_CALL_RESULTS
from sql.binder.expressions.session_calls import (
    SESSION_VALUES,
    SIDE_EFFECT_FUNCTIONS,
    computes_more_than_calls,
)
from sql.binder.resolve.reg_literals import reg_literal
from sql.binder.stored.sequence_values import REGCLASS, SEQUENCE_FUNCTIONS, sequence_of_oid
from sql.catalog.catalog import NameDependency
from sql.catalog.objects import SequenceDefinition
from sql.errors import not_supported
from sql.plan.nodes import ColumnId, ColumnRef, Const, Expr, Param, output_columns
from sql.plan.traverse import column_ids, substitute_columns
from sql.statements.bound import BoundQuery, Explain, ParameterizedStatement, RowCall, RowCalls
from sql.statements.runtime_parameters import RuntimeParameter
from sql.types.sql_type import Value

# --- before a statement runs -------------------------------------------------------------------


async def evaluate_runtime_parameters(
    execution: Execution, prepared: ParameterizedStatement
) -> None:
    """Compute the statement's runtime parameters, which follow the client's."""
    execution.filled = prepared.filled
    own = execution.parameters[: len(prepared.parameters)]
    if isinstance(prepared.bound, Explain) and prepared.bound.runs is None:
        # A plan is shown, and no sequence moves.
        execution.parameters = (*own, *[None] * len(prepared.supplied))
        return
    writes = not isinstance(prepared.bound, BoundQuery | Explain)
    caller = _Caller(execution)
    execution.parameters = own
    bound_under = execution.variables.evaluation_key
    for call in prepared.supplied:
        # Arguments of the next may be what those before it have answered.
        value = await _value(caller, call, writes=writes)
        execution.parameters = (*execution.parameters, value)
    if execution.variables.evaluation_key != bound_under and computes_more_than_calls(
        prepared.bound
    ):
        raise not_supported("set_config() of such a setting beside other expressions")


async def _value(caller: "_Caller", supplied: RuntimeParameter, *, writes: bool) -> Value:
    if supplied.kind in SESSION_VALUES:
        return session_value(caller.execution, supplied.kind, writes=writes)
    args: Sequence[Value]
    if supplied.kind in ACTING_FUNCTIONS:
        args = ()
        if supplied.args:
            args = await evaluate_arguments(caller.execution, supplied.args, supplied.kind)
        return await _act(caller.execution, supplied.kind, args)
    if supplied.kind not in SEQUENCE_FUNCTIONS:
        return await call_session_function(caller.execution, supplied)
    args = (None,)
    if supplied.args and (supplied.sequence is None or len(supplied.args) > 1):
        args = await evaluate_arguments(caller.execution, supplied.args, supplied.kind)
    return await caller.answer(supplied.kind, supplied.sequence, args)


async def take_values(
    execution: Execution, sequence: SequenceDefinition, count: int
) -> Sequence[int]:
    """The next values of a sequence, for many rows. Raises 25006, 2200H."""
    return await _Caller(execution).take(sequence, count)


# --- one call ----------------------------------------------------------------------------------


async def _act(execution: Execution, name: str, args: Sequence[Value]) -> Value:
    """Make a call of one of ACTING_FUNCTIONS."""
    if name == NOTIFY_FUNCTION:
        return notify(execution, *args)
    return await call_advisory_lock(execution, name, args)


class _Caller:
    """Makes the calls of a statement."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        self._names: dict[Value, SequenceDefinition] = {}

    async def answer(
        self, name: str, sequence: SequenceDefinition | None, args: Sequence[Value]
    ) -> Value:
        """Make a call. All of these functions are strict."""
        known = self.execution.transaction.sequences
        if name == "lastval":
            return known.newest(self.execution.catalog())
        if None in args[1:] or (sequence is None and args[0] is None):
            return None
        if sequence is None:
            sequence = self._named(args[0])
        match name, [*args[1:]]:
            case "currval", []:
                return known.current(sequence)
            case "nextval", []:
                return (await self.take(sequence, 1))[0]
            case "setval", [int() as value, *others]:
                called = others != [False]
                self.execution.transaction.check_writable("setval()")
                await self.execution.services.coordination.set_value(sequence, value, called=called)
                if called:
                    known.was_set(sequence, value)
                return value
            case _:
                raise AssertionError(f"{name} has no such arguments")

    async def take(self, sequence: SequenceDefinition, count: int) -> Sequence[int]:
        """The next values."""
        self.execution.transaction.check_writable("nextval()")
        left = self.execution.left_values.pop((sequence.oid, sequence.version), [])
        values = left[:count]
        if len(values) < count:
            more = count - len(values)
            coordination = self.execution.services.coordination
            values = [*values, *await coordination.next_values(sequence, more)]
        elif left[count:]:
            self.execution.left_values[sequence.oid, sequence.version] = left[count:]
        self.execution.transaction.sequences.took(sequence, values[-1])
        return values

    def _named(self, name: Value) -> SequenceDefinition:
        """The sequence of an oid, or that a text names."""
        found = self._names.get(name)
        if found is None:
            context, oid = self.execution.context(), name
            if isinstance(name, str):
                oid = bind_with_context(
                    context, lambda b: reg_literal(b, name, REGCLASS, None)
                ).value
            assert isinstance(oid, int), "what names a relation is a text or an oid"
            found = self._names[name] = sequence_of_oid(context.catalog, oid)
            self.execution.rest_on([NameDependency(found.schema, found.name, found.oid)])
        return found


# --- calls for each row ------------------------------------------------------------------------


async def evaluate_row_calls(
    execution: Execution, batches: AsyncIterator[pa.RecordBatch], calls: RowCalls | None
) -> Batches:
    """The result rows of a statement: the rows of its plan, after the calls for each row (V2)."""
    caller = _Caller(execution)
    async with closing_batches(batches):
        async for batch in batches:
            if calls is None:
                yield batch
                continue
            for piece in _pieces(batch, calls):
                async with closing_batches(await _with_called(caller, piece, calls)) as shown:
                    async for made in shown:
                        yield made


def _pieces(batch: pa.RecordBatch, calls: RowCalls) -> Sequence[pa.RecordBatch]:
    """The rows for which calls are made together: one, if a setting must not run ahead of what the
    client fetches.
    """
    if any(call.name in SIDE_EFFECT_FUNCTIONS for call in calls.calls):
        return [batch.slice(row, 1) for row in range(batch.num_rows)]
    return [batch]


async def _with_called(
    caller: _Caller, batch: pa.RecordBatch, calls: RowCalls
) -> AsyncIterator[pa.RecordBatch]:
    """What is shown of a batch."""
    columns = [*batch.columns, *await _Rows(caller, calls, batch).called()]
    after, known = calls.after, output_columns(calls.after.input)
    places = {column.id: place for place, column in enumerate(known)}
    if all(isinstance(expr, ColumnRef) for expr in after.exprs):
        shown = [columns[places[e.id]] for e in after.exprs if isinstance(e, ColumnRef)]
        return _alone(transient_batch(shown, batch.num_rows))
    inputs = {ROW_CALL_RESULTS: transient_view(ROW_CALL_RESULTS, transient_table(columns))}
    return run_over_transient(caller.execution, after, inputs)


async def _alone(batch: pa.RecordBatch) -> Batches:
    yield batch


class _Rows:
    """The rows of a batch, for which calls are made."""

    def __init__(self, caller: _Caller, calls: RowCalls, batch: pa.RecordBatch) -> None:
        self._caller = caller
        self._calls = calls.calls
        self._rows = batch.num_rows
        parts = [expr for call in self._calls for expr in (*call.args, call.guard) if expr]
        used = {id_ for expr in parts for id_ in column_ids(expr)}
        known = output_columns(calls.after.input)
        self._values = {
            column.id: to_values(normalize_column(array, column.type), column.type)
            for column, array in zip(known, batch.columns, strict=False)
            if column.id in used
        }
        self._types = {column.id: column.type for column in known}

    async def called(self) -> Sequence[Column]:
        """What the calls answer."""
        first = self._calls[0]
        alone = len(self._calls) == 1 and first.name == "nextval" and first.guard is None
        if alone and first.sequence is not None and self._rows:
            taken = await self._caller.take(first.sequence, self._rows)
            return [to_array(taken, first.column.type)]
        answers: list[list[Value]] = [[] for _ in self._calls]
        for row in range(self._rows):
            made = {id_: values[row] for id_, values in self._values.items()}
            for call, found in zip(self._calls, answers, strict=True):
                made[call.column.id] = await self._call(call, made)
                found.append(made[call.column.id])
        pairs = zip(self._calls, answers, strict=True)
        return [to_array(found, call.column.type) for call, found in pairs]

    async def _call(self, call: RowCall, row: Mapping[ColumnId, Value]) -> Value:
        if call.guard is not None and await self._value(call.guard, row) is not True:
            return None
        args = [await self._value(arg, row) for arg in call.args]
        if call.name in ACTING_FUNCTIONS:
            return await _act(self._caller.execution, call.name, args)
        if call.name in SIDE_EFFECT_FUNCTIONS:
            return await session_function_for_row(self._caller.execution, call.name, args)
        return await self._caller.answer(call.name, call.sequence, args)

    async def _value(self, expr: Expr, row: Mapping[ColumnId, Value]) -> Value:
        match expr:
            case Const():
                return expr.value
            case Param():
                return self._caller.execution.parameters[expr.index - 1]
            case ColumnRef():
                return row[expr.id]
            case _:
                known = {id_: Const(row[id_], self._types[id_]) for id_ in column_ids(expr)}
                (value,) = await evaluate_arguments(
                    self._caller.execution, [substitute_columns(expr, known)], "this"
                )
                return value
