"""Values of sequences for a statement: supplied before it runs, and setval() as a statement.

INVARIANTS
  V1  a value that a statement takes is gone, whatever becomes of the statement; one that starts
      again by itself takes new ones.
"""

import pyarrow as pa

from coordinator.execute_query import start_query
from coordinator.execution import Execution, Rows, counted, held
from coordinator.pgwire.arrow_types import to_array, to_values
from coordinator.session_calls import session_answer, transaction_number
from sql.bind_session_calls import NUMBERS
from sql.binding import Supplied
from sql.statements import Explain, OutputColumn, Prepared, Query, SetSequence
from sql.types import BOOL, INT8, Value

SETVAL_COLUMNS = (OutputColumn("setval", INT8),)


async def supply(execution: Execution, prepared: Prepared) -> None:
    """Give the statement its supplied parameters, behind the client's."""
    execution.filled = prepared.filled
    own = execution.parameters[: len(prepared.parameters)]
    if isinstance(prepared.bound, Explain) and prepared.bound.runs is None:
        # A plan is shown, and no sequence moves.
        execution.parameters = (*own, *[None] * len(prepared.supplied))
        return
    writes = not isinstance(prepared.bound, Query | Explain)
    values = [await _value(execution, call, writes=writes) for call in prepared.supplied]
    execution.parameters = (*own, *values)


async def _value(execution: Execution, supplied: Supplied, *, writes: bool) -> Value:
    known, sequence = execution.transaction.sequences, supplied.sequence
    if supplied.kind in NUMBERS:
        return transaction_number(execution, supplied.kind, writes=writes)
    if supplied.kind == "lastval":
        return known.newest()
    if sequence is None:
        return await session_answer(execution, supplied)
    if supplied.kind == "currval":
        return known.current(sequence)
    execution.transaction.check_writable("nextval()")
    (value,) = await execution.services.coordination.next_values(sequence, 1)
    known.took(sequence, value)
    return value


async def execute_set_sequence(execution: Execution, statement: SetSequence) -> Rows:
    """SELECT setval(..): once for each row of the query."""
    execution.transaction.check_writable("setval()")
    done: list[int] = []
    batches = await start_query(execution, statement.query, as_of=None)
    found = [batch async for batch in batches]
    for batch in found:
        values = to_values(batch.column(0), INT8)
        called = to_values(batch.column(1), BOOL)
        for value, is_called in zip(values, called, strict=True):
            if value is None or is_called is None:
                continue
            await execution.services.coordination.set_value(
                statement.sequence, int(str(value)), called=bool(is_called)
            )
            if is_called:
                execution.transaction.sequences.took(statement.sequence, int(str(value)))
            done.append(int(str(value)))
    rows = pa.table({"setval": to_array(done, INT8)})
    return Rows(SETVAL_COLUMNS, held(rows), counted("SELECT"))
