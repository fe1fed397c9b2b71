"""xmin in RETURNING of INSERT and UPDATE: filled in when the statement has been committed.

    rows with NULL ─▶ commit at ts ─▶ rows with the xmin of ts ─▶ client

A statement alone sends nothing before its commit (Q1 of `context.py`), so its rows can show the
xmin that later reads see. Inside a transaction block nobody knows it yet.

INVARIANTS
  R1  a row shows the xmin that every later read of it shows, or the statement is refused.
"""

import numpy as np
import pyarrow as pa

from compute.row_versions import xmins
from coordinator.execution.context import Batches, Execution
from sql.errors import not_supported
from sql.statements.bound import BoundQuery, Modify


def check_returned_xmins(execution: Execution, main: BoundQuery | Modify) -> None:
    """Raises 0A000 if the commit will be another statement's."""
    if isinstance(main, Modify) and main.xmins and not execution.alone:
        raise not_supported("xmin in RETURNING in a transaction of several statements")


def with_returned_xmins(execution: Execution, modify: Modify, returned: pa.Table) -> Batches:
    """The rows as they are after the commit, before which nobody may take one (R1)."""
    return _after_commit(execution, modify, returned, execution.transaction.ends + 1)


async def _after_commit(
    execution: Execution, modify: Modify, returned: pa.Table, ends: int
) -> Batches:
    transaction = execution.transaction
    commit_ts = transaction.commit_ts
    if not returned.num_rows:
        return
    assert transaction.committed, "R1: rows are told after their commit"
    assert transaction.ends == ends, "R1: the commit is the statement's"
    assert commit_ts is not None, "R1: who writes rows commits"
    (xmin,) = xmins(np.array([commit_ts], np.int64))
    for place in modify.xmins:
        filled = pa.repeat(xmin, returned.num_rows)
        returned = returned.set_column(place, returned.schema.field(place), filled)
    for batch in returned.to_batches():
        yield batch
