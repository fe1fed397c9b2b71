"""INSERT, UPDATE, DELETE, MERGE: run the statement, write what it does into the transaction.

    INSERT VALUES   source in process ────────────────────────────▶ inserts        (blind: no scan)
    the others      views ─▶ engine ─▶ (source, index | new rows) ─▶ deletes + inserts
                                                └─▶ RETURNING over relation `new`

How one part runs is `modifying.py`, what all of them add up to `statement_work.py`.
"""

from coordinator.execution import Done, Execution, Outcome, Rows, held
from coordinator.modifying import readings, run_modify
from coordinator.statement_work import StatementWork
from sql.statements import Modify


async def execute_modify(execution: Execution, modify: Modify, tag: str) -> Outcome:
    """Run the statement and buffer what it writes into the transaction."""
    execution.transaction.check_writable(modify.kind.value.upper())
    work = StatementWork(execution)
    try:
        await work.look_at(readings(modify))
        done = await run_modify(execution, modify, work)
        await work.write()
    except BaseException:
        await work.discard()
        raise
    complete = f"{tag} {done.affected}"
    if done.returned is None:
        return Done(complete)
    return Rows(modify.columns, held(done.returned), lambda _count: complete)
