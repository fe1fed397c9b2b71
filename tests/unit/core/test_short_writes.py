"""Short writes in the queue: places, chains, what others are told, and what leaves the queue."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

import pyarrow as pa
import pytest
from pyroaring import BitMap64

from compute.arrow import table_schema
from coordinator.core.group_commit import GatheredMembers, GroupCommit
from coordinator.core.group_members import PendingChange, PendingCommit
from coordinator.core.leases import WriteLeases
from coordinator.core.locking.lock_table import LockRequest, LockTable
from coordinator.core.locking.modes import LockMode, LockWait, RowTag
from coordinator.core.locking.wait_graph import WaitGraph
from coordinator.core.messages.identities import ConnectionId, Isolation, RequestId, TransactionId
from coordinator.core.messages.replies import Blocked, RefusedReason, Snapshot
from coordinator.core.messages.requests import WriteRows
from coordinator.core.predicates import ReadPredicate
from coordinator.core.short_writes.by_key import (
    CannotEvaluate,
    ChangedRow,
    CurrentRows,
    RowValues,
    WriteAnswer,
    row_bytes,
)
from coordinator.core.short_writes.gathered import GATHER_WORK_MAX
from coordinator.core.transactions import Transaction
from sql.catalog.catalog import Catalog, Column, Key, Table
from sql.types.sql_type import INT8
from storage.batch import RowIdentity, ShardView, WriteBatch
from storage.shard import ShardState
from storage.types import ShardId, Source, Timestamp, Token
from storage.unencoded_rows import UnencodedRows, schema_message

TABLE = Table(
    7,
    "public",
    "t",
    "t",
    (Column("a", INT8), Column("n", INT8)),
    keys=(Key("t_pkey", (0,), primary=True),),
)
OTHER = Table(8, "public", "o", "o", TABLE.columns, keys=TABLE.keys)
SHARD = ShardId("t")
AT_5 = Source("@5")
SCHEMA = table_schema(TABLE.columns)
CATALOG = Catalog(tables={("public", "t"): TABLE, ("public", "o"): OTHER})


class Encoder:
    """Implements RowEncoder; 99 cannot be stored."""

    schema = SCHEMA
    encoded_schema = schema_message(SCHEMA)

    def table(self, rows: Sequence[RowValues]) -> pa.Table:
        if any(99 in row for row in rows):
            raise ValueError("99")
        columns = [pa.array(list(column), pa.int64()) for column in zip(*rows, strict=True)]
        return pa.Table.from_arrays(columns, schema=SCHEMA)

    def rows(self, rows: Sequence[RowValues]) -> UnencodedRows:
        self.table(rows)
        return UnencodedRows(rows, 8 * len(rows), self)


class Finder:
    """Implements RowFinder: it looks at every row of the view."""

    def find(
        self, view: ShardView, key: Key, values: tuple[Hashable, ...]
    ) -> tuple[RowIdentity, RowValues] | None:
        assert key.columns == (0,)
        for part in view.inline:
            for at, row in enumerate(zip(*part.rows.to_pydict().values(), strict=True)):
                if at not in part.deleted and row[0] == values[0]:
                    return (part.source, at), row
        return None


@dataclass(frozen=True)
class Change:
    """Implements WriteByKey: what `make` says."""

    make: Callable[[CurrentRows], Sequence[ChangedRow]]
    table: Table = TABLE
    names: tuple[()] = ()
    nbytes: int = 10
    finder: Finder = field(default_factory=Finder)
    encoder: Encoder = field(default_factory=Encoder)

    def reads(self) -> Sequence[ReadPredicate]:
        raise AssertionError("a whole transaction has no read set")

    def evaluate(self, rows: CurrentRows) -> Sequence[ChangedRow]:
        return self.make(rows)


def add_one(number: int, by: int = 1, table: Table = TABLE) -> Change:
    def make(rows: CurrentRows) -> Sequence[ChangedRow]:
        row = rows.find(TABLE.keys[0], (number,))
        if row is None:
            return ()
        assert row.values is not None
        return (ChangedRow(row, (number, cast("int", row.values[1]) + by)),)

    return Change(make, table)


class Free:
    """Implements FreeRows: all rows of the view, the last one first."""

    mode = LockMode.ROW_UPDATE

    def candidates(self, view: ShardView) -> Iterator[tuple[RowIdentity, RowValues]]:
        for part in reversed(view.inline):
            rows = list(zip(*part.rows.to_pydict().values(), strict=True))
            yield from [((part.source, at), rows[at]) for at in reversed(range(len(rows)))]

    def row(self, view: ShardView, identity: RowIdentity) -> RowValues:
        return next(row for place, row in self.candidates(view) if place == identity)


def take(n: int, limit: int = 1) -> Change:
    def make(rows: CurrentRows) -> Sequence[ChangedRow]:
        found = rows.first_free(Free(), limit)
        return [ChangedRow(row, (shown[0], n), returned=shown) for row, shown in found]

    return Change(make)


def insert(number: int, n: int) -> Change:
    def make(rows: CurrentRows) -> Sequence[ChangedRow]:
        if rows.find(TABLE.keys[0], (number,)) is not None:
            raise CannotEvaluate
        return (ChangedRow(None, (number, n)),)

    return Change(make)


def look_for(numbers: Sequence[int]) -> Change:
    def make(rows: CurrentRows) -> Sequence[ChangedRow]:
        assert not any(rows.find(TABLE.keys[0], (number,)) for number in numbers)
        return ()

    return Change(make)


def delete(number: int) -> Change:
    def make(rows: CurrentRows) -> Sequence[ChangedRow]:
        row = rows.find(TABLE.keys[0], (number,))
        return () if row is None else (ChangedRow(row, None),)

    return Change(make)


class Queue:
    """A queue of commits over two tables with rows (1, 10) and (2, 20), committed at 5."""

    def __init__(self) -> None:
        rows = Encoder().table([(1, 10), (2, 20)])
        state = ShardState(SHARD, SCHEMA, Timestamp(1))
        self.shards = {
            SHARD: state.committed(Timestamp(5), WriteBatch(rows)),
            ShardId("o"): ShardState(ShardId("o"), SCHEMA, Timestamp(1)),
        }
        self.groups = GroupCommit(group_max=1_000)
        self.leases = WriteLeases()
        self.locks = LockTable(WaitGraph())
        self.requests = 0

    def change(self, change: Change, session: int | None = None) -> PendingChange:
        """Queue a short write, of a session of its own if none is given."""
        self.requests += 1
        owner = ConnectionId(self.requests + 100 if session is None else session)
        pending = PendingChange(RequestId(self.requests), owner, change, self.leases.ticket())
        self.groups.enqueue(pending)
        return pending

    def commit(self, batch: WriteBatch, table: Table = TABLE) -> PendingCommit:
        """Queue a transaction that has read at 5."""
        self.requests += 1
        txn = Transaction(
            TransactionId(self.requests),
            ConnectionId(self.requests + 100),
            Isolation.STRICT_SERIALIZABLE,
            read_only=False,
        )
        txn.snapshot = Snapshot(Timestamp(5), CATALOG)
        txn.write(WriteRows(txn.id, table, batch))
        pending = PendingCommit(RequestId(self.requests), txn, self.leases.ticket())
        self.groups.enqueue(pending)
        return pending

    def gather(self) -> GatheredMembers:
        """The next group."""
        return self.groups.gather(CATALOG, self.shards, self.leases, self.locks, lambda _: SCHEMA)


def net(gathered: GatheredMembers) -> tuple[list[tuple[int, ...]], dict[str, list[int]]]:
    """The rows of a group for the table, and what it deletes."""
    batch = gathered.batches.get(SHARD, WriteBatch())
    rows = (
        [] if batch.inserts is None else list(zip(*batch.inserts.to_pydict().values(), strict=True))
    )
    return rows, {str(source): list(at) for source, at in batch.deletes.items()}


def test_changes_of_a_row_are_a_chain() -> None:
    queue = Queue()
    for _ in range(3):
        queue.change(add_one(1))
    gathered = queue.gather()
    assert net(gathered) == ([(1, 13)], {"@5": [0]})
    assert list(gathered.answers.values()) == [WriteAnswer(1)] * 3
    (entry,) = gathered.interim[SHARD]
    assert [list(rows.values(1)) for rows in entry.came] == [[13]]
    assert [list(rows.values(1)) for rows in entry.went] == [[10]]
    assert not entry.unknown


def test_rows_come_and_go_within_a_group() -> None:
    queue = Queue()
    for change in (insert(3, 1), add_one(3), delete(1), insert(1, 7), delete(3), add_one(3)):
        queue.change(change)
    gathered = queue.gather()
    assert net(gathered) == ([(1, 7)], {"@5": [0]})
    assert [one.affected for one in gathered.answers.values()] == [1, 1, 1, 1, 1, 0]


def test_skip_locked_passes_over_what_members_ahead_have_changed_or_made() -> None:
    queue = Queue()
    for change in (insert(3, 1), take(7), add_one(2), take(8, limit=2), take(9)):
        queue.change(change)
    gathered = queue.gather()
    assert net(gathered) == ([(3, 1), (2, 8), (1, 8)], {"@5": [0, 1]})
    answers = [answer.returned for answer in gathered.answers.values()]
    assert answers == [(), ((2, 20),), (), ((1, 10),), ()]


def test_skip_locked_passes_over_what_others_hold() -> None:
    queue = Queue()
    tag = RowTag(TABLE.oid, (2,))
    queue.locks.rows.add(SHARD, (AT_5, 1), tag)
    asked = LockRequest(RequestId(90), ConnectionId(90), None, tag, LockMode.ROW_KEY_SHARE, 0, 1)
    queue.locks.acquire(asked, LockWait.NO)
    queue.change(take(7))
    queue.change(take(8), session=90)
    gathered = queue.gather()
    answers = [answer.returned for answer in gathered.answers.values()]
    assert answers == [((1, 10),), ((2, 20),)]


def test_rows_that_the_session_itself_has_changed_go_the_general_way() -> None:
    queue = Queue()
    queue.change(add_one(2), session=50)
    queue.change(take(8), session=50)
    gathered = queue.gather()
    assert [refused.reason for _, refused in gathered.refused] == [RefusedReason.STALE]


def test_what_comes_to_nothing_has_written_all_the_same() -> None:
    queue = Queue()
    queue.change(insert(3, 1))
    queue.change(delete(3))
    gathered = queue.gather()
    assert net(gathered) == ([], {})
    assert gathered.is_durable
    queue.change(delete(3))
    assert not queue.gather().is_durable


def test_who_cannot_be_evaluated_leaves_alone() -> None:
    queue = Queue()
    queue.change(add_one(1))
    taken = queue.change(insert(2, 0))
    queue.change(add_one(1))
    gathered = queue.gather()
    assert net(gathered) == ([(1, 12)], {"@5": [0]})
    ((member, refused),) = gathered.refused
    assert member is taken
    assert refused.reason is RefusedReason.STALE


def test_a_value_that_cannot_be_stored_refuses_all_of_its_table() -> None:
    queue = Queue()
    queue.change(add_one(1))
    queue.change(add_one(2, 79))
    gathered = queue.gather()
    assert not gathered.members
    assert not gathered.batches
    assert not gathered.answers
    assert [refused.reason for _, refused in gathered.refused] == [RefusedReason.STALE] * 2


def test_a_transaction_behind_is_told() -> None:
    """It has deleted a row that a short write ahead has replaced (E2)."""
    queue = Queue()
    queue.change(add_one(1))
    loser = queue.commit(WriteBatch(deletes={AT_5: BitMap64([0])}))
    winner = queue.commit(WriteBatch(deletes={AT_5: BitMap64([1])}))
    gathered = queue.gather()
    assert [member for member, _ in gathered.refused] == [loser]
    assert winner in gathered.members
    assert net(gathered) == ([(1, 11)], {"@5": [0, 1]})


def test_a_short_write_behind_a_transaction_waits_for_the_next_group() -> None:
    queue = Queue()
    queue.change(add_one(2))
    queue.commit(WriteBatch(Encoder().table([(9, 9)])))
    late = queue.change(add_one(2))
    own = queue.change(add_one(2, table=OTHER), session=late.owner)
    another = queue.change(add_one(2, table=OTHER))
    gathered = queue.gather()
    assert late not in gathered.members
    assert own not in gathered.members
    assert another in gathered.members
    assert net(gathered) == ([(9, 9), (2, 21)], {"@5": [1]})
    assert set(queue.gather().members) == {late, own}


def test_others_are_told_of_each_part_of_a_chain_once() -> None:
    queue = Queue()
    queue.change(add_one(1))
    queue.commit(WriteBatch(Encoder().table([(9, 9)])), OTHER)
    queue.change(add_one(1))
    gathered = queue.gather()
    assert net(gathered) == ([(1, 12)], {"@5": [0]})
    told = [
        ([list(r.values(1)) for r in entry.came], [list(r.values(1)) for r in entry.went])
        for entry in gathered.interim[SHARD]
    ]
    assert told == [([[11]], [[10]]), ([[12]], [[11]])]


def test_a_gather_stops_when_it_has_done_enough() -> None:
    queue = Queue()
    for _ in range(GATHER_WORK_MAX):
        queue.change(add_one(1))
    first, second = queue.gather(), queue.gather()
    assert len(first.members) == GATHER_WORK_MAX // 2
    assert len(second.members) == GATHER_WORK_MAX // 2


def test_rows_that_are_only_looked_at_count_too() -> None:
    """E4: those that SKIP LOCKED passes over, and those that come to nothing."""
    queue = Queue()
    for _ in range(GATHER_WORK_MAX):
        queue.change(take(7, limit=3))
    passed = len(queue.gather().members)
    queue = Queue()
    for _ in range(GATHER_WORK_MAX):
        queue.change(look_for(range(10, 20)))
    looked = len(queue.gather().members)
    assert passed < GATHER_WORK_MAX
    assert looked <= GATHER_WORK_MAX // 10 + 1


def test_a_group_that_was_passed_over_is_evaluated_again() -> None:
    queue = Queue()
    for _ in range(2):
        queue.change(add_one(1))
    gathered = queue.gather()
    group = gathered.at(Timestamp(6), Token("a"), (), is_durable=True)
    queue.groups.launch(group)
    queue.groups.pass_over(queue.groups.landed(Token("a")))
    again = queue.gather()
    assert net(again) == ([(1, 12)], {"@5": [0]})
    assert again.members == gathered.members


def test_who_comes_after_a_member_of_its_session_that_left_goes_again() -> None:
    queue = Queue()
    first = queue.change(insert(1, 0), session=1)
    second = queue.change(add_one(2), session=1)
    third = queue.change(add_one(2), session=2)
    gathered = queue.gather()
    assert [member for member, _ in gathered.refused] == [first, second]
    assert gathered.members == (third,)


def test_also_who_was_not_reached_by_then() -> None:
    queue = Queue()
    first = queue.change(insert(1, 0), session=1)
    for _ in range(GATHER_WORK_MAX):
        queue.change(add_one(1))
    last = queue.change(add_one(2), session=1)
    gathered = queue.gather()
    assert [member for member, _ in gathered.refused] == [first, last]


def test_who_waits_for_a_lease_is_not_passed_by_its_own_session() -> None:
    queue = Queue()
    queue.leases.ask(RequestId(90), TransactionId(90), [OTHER.oid])
    assert queue.leases.grant(lambda *_: False) == [RequestId(90)]
    first = queue.change(add_one(1, table=OTHER), session=1)
    second = queue.change(add_one(1), session=1)
    third = queue.change(add_one(1), session=2)
    assert queue.gather().members == (third,)
    queue.leases.release(TransactionId(90))
    assert queue.gather().members == (first, second)


@pytest.mark.parametrize(
    ("change", "held", "waits"),
    [
        (add_one(1), LockMode.ROW_UPDATE, True),
        (add_one(1), LockMode.ROW_KEY_SHARE, False),
        (delete(1), LockMode.ROW_KEY_SHARE, True),
        (add_one(2), LockMode.ROW_UPDATE, False),
        (insert(3, 0), LockMode.ROW_UPDATE, False),
    ],
)
def test_who_meets_a_lock_leaves(change: Change, held: LockMode, *, waits: bool) -> None:
    queue = Queue()
    tag = RowTag(TABLE.oid, (1,))
    queue.locks.rows.add(SHARD, (AT_5, 0), tag)
    queue.locks.acquire(
        LockRequest(RequestId(90), ConnectionId(90), TransactionId(90), tag, held), LockWait.NO
    )
    pending = queue.change(change)
    gathered = queue.gather()
    if waits:
        ((member, blocked),) = gathered.blocked
        assert member is pending
        assert isinstance(blocked, Blocked)
        assert blocked.tag == tag
        assert not gathered.batches
    else:
        assert gathered.members == (pending,)


@pytest.mark.parametrize(
    ("value", "nbytes"),
    [("abc", 3), ("äöü", 6), ("a\u20ac", 4), ("\U0001f418", 4), ("\ud800", 3), (b"\xff\xfe", 2)],
)
def test_limits_count_the_bytes_of_a_value(value: object, nbytes: int) -> None:
    assert row_bytes((7, value, None)) == row_bytes((7, None, None)) + nbytes
