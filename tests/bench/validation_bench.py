"""What validation costs: microseconds per member of a group, by the size of group and history.

    python -m tests.bench.validation_bench

Each member has read one row by key and replaces it; nobody conflicts. The cost per member must not
grow with the group, nor with the commits since the snapshot.
"""

import time
from collections.abc import Sequence

import pyarrow as pa
from pyroaring import BitMap64

from compute.access.row_predicates import RowPredicate
from compute.arrow import table_schema
from coordinator.core.messages.identities import ConnectionId, Isolation, TransactionId
from coordinator.core.recent_writes import RecentWrites, committed_writes
from coordinator.core.transactions import Transaction
from coordinator.core.validation import (
    RecentHistory,
    ValidationCounts,
    WritesAhead,
    conflict_refusal,
)
from sql.catalog.catalog import Catalog, Column, Table
from sql.functions.table import operators
from sql.plan.nodes import Call, ColumnId, ColumnRef, Const
from sql.plan.read_conditions import ReadCondition
from sql.types.sql_type import BOOL, INT8
from storage.batch import WriteBatch
from storage.known_rows import KnownRows, OldRows
from storage.shard import ShardState
from storage.types import ShardId, Timestamp, inline_source

COLUMNS = (Column("id", INT8), Column("n", INT8))
TABLE = Table(20_000, "public", "t", "shard", COLUMNS)
SCHEMA = table_schema(COLUMNS)
SHARD = ShardId("shard")
FIRST = Timestamp(1)
EQUAL = next(f for f in operators("=") if f.args == ("int8", "int8"))


def rows(keys: Sequence[int]) -> pa.Table:
    """Rows with these keys."""
    arrays = [pa.array(keys, pa.int64()), pa.array([0] * len(keys), pa.int64())]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def replacing(key: int) -> tuple[WriteBatch, OldRows]:
    """One row of the first commit replaced."""
    deletes = {inline_source(FIRST): BitMap64([key])}
    return WriteBatch(rows([key]), (), deletes), OldRows(deletes, KnownRows.of(rows([key])))


def member(number: int, key: int) -> Transaction:
    """A transaction that has read a row by key and replaces it."""
    txn = Transaction(
        TransactionId(number), ConnectionId(1), Isolation.STRICT_SERIALIZABLE, read_only=False
    )
    txn.take_snapshot(FIRST, Catalog())
    equal = Call(EQUAL, (ColumnRef(ColumnId(0), INT8), Const(key, INT8)), BOOL)
    txn.read(TABLE, RowPredicate(TABLE, (ReadCondition((equal,)),), ()))
    txn.write(TABLE, *replacing(key))
    return txn


def measure(members: int, history: int) -> float:
    """CPU seconds to validate a group of `members` after `history` commits since the snapshot."""
    state = ShardState(SHARD, SCHEMA, Timestamp(0))
    state = state.committed(FIRST, WriteBatch(rows(range(members + history))))
    writes = RecentWrites()
    for number in range(history):
        batch, old = replacing(members + number)
        ts = Timestamp(2 + number)
        writes.committed(state, ts, [committed_writes(batch, [old])])
        # The tail is kept short: what a long one costs is not asked here.
        state = ShardState(SHARD, SCHEMA, Timestamp(0), (), state.tail, 0, ts)
    # Whoever asks first by a key has the history indexed; from then on it is indexed as it comes.
    conflict_refusal(
        member(0, 0), {}, RecentHistory({SHARD: state}, writes, ValidationCounts(), WritesAhead())
    )
    group = [member(number, number) for number in range(members)]
    recent = RecentHistory({SHARD: state}, writes, ValidationCounts(), WritesAhead())
    began = time.process_time()
    for txn in group:
        batch = txn.final_writes()[SHARD]
        assert conflict_refusal(txn, {SHARD: batch}, recent) is None, (
            "different rows do not conflict"
        )
        recent.ahead.add(SHARD, state, batch, committed_writes(batch, txn.replaced[SHARD]))
    return time.process_time() - began


def main() -> None:
    """Print the table."""
    print("members  commits since  us per member")
    for members in (1, 16, 64, 256, 1_000):
        for history in (0, 100, 10_000):
            best = min(measure(members, history) for _ in range(3))
            print(f"{members:7}  {history:13}  {best / members * 1e6:13.1f}")


if __name__ == "__main__":
    main()
