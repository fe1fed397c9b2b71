"""Recent commits tested against predicates: never a conflict missed; false ones are counted."""

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pytest
from pyroaring import BitMap64

from compute.access.row_predicates import RowPredicate
from compute.arrow import table_schema
from coordinator.core.recent_writes import (
    LOG_BYTES_MAX,
    TESTED_ROWS_MAX,
    CommittedWrites,
    DeletedRowIndex,
    RowTestBudget,
    ShardCommitLog,
    Verdict,
    committed_writes,
)
from sql.catalog.catalog import Column, Table
from sql.plan.nodes import RelationId
from sql.types.sql_type import INT8, TEXT
from storage.batch import DataFile, WriteBatch
from storage.cuts import flush
from storage.delta.statistics import table_statistics
from storage.known_rows import KnownRows, OldRows
from storage.memory import MemoryObjectStore
from storage.shard import ShardState
from storage.types import ShardId, Source, Timestamp
from tests.unit.sql.test_read_conditions import plan_of, read_conditions

log_ = logging.getLogger(__name__)

COLUMNS = (Column("id", INT8), Column("k", INT8), Column("v", INT8), Column("s", TEXT))
TABLE = Table(20_000, "public", "l", "shard_l", COLUMNS)
SCHEMA = table_schema(COLUMNS)

Row = tuple[int, int | None, int | None, str | None]


def rows(*values: Row) -> pa.Table:
    columns = zip(*values, strict=True) if values else [()] * len(COLUMNS)
    arrays = [pa.array(list(c), f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def predicate(where: str) -> RowPredicate:
    """The predicate of a scan of l with this condition."""
    conditions = read_conditions(plan_of(f"select * from l where {where}"))
    found = conditions[RelationId("shard_l")]
    assert found is not None
    return RowPredicate(TABLE, found, ())


@dataclass(frozen=True)
class Asked:
    """A condition, as SQL and as truth."""

    where: str
    holds: Callable[[Row], bool]


def asked(rng: random.Random, keys: int) -> Asked:
    """A random condition of the kinds that transactions ask for."""
    a, b = rng.randrange(keys), rng.randrange(keys)
    low, high = min(a, b), min(a, b) + rng.randrange(5)
    match rng.randrange(5):
        case 0:
            return Asked(f"id = {a}", lambda row: row[0] == a)
        case 1:
            return Asked(
                f"id in ({a}, {b}) and v > 3",
                lambda row: row[0] in (a, b) and row[2] is not None and row[2] > 3,
            )
        case 2:
            return Asked(f"id between {low} and {high}", lambda row: low <= row[0] <= high)
        case 3:
            return Asked(
                f"v = {a % 10} and k = {b % 3}", lambda row: row[2] == a % 10 and row[1] == b % 3
            )
        case _:
            return Asked(f"s = 'x{a}' or id = {b}", lambda row: row[3] == f"x{a}" or row[0] == b)


def random_row(rng: random.Random, keys: int) -> Row:
    key = rng.randrange(keys)
    text = rng.choice((None, f"x{key}"))
    return key, rng.choice((None, 0, 1, 2)), rng.choice((None, *range(10))), text


def commit(
    rng: random.Random, came: Sequence[Row], went: Sequence[Row], *, forgetful: bool
) -> CommittedWrites:
    """An entry: inline or staged rows that came; rows that went, some columns of them forgotten."""
    deletes = {Source("@1"): BitMap64(range(len(went)))} if went else {}
    known = KnownRows.of(rows(*went))
    if forgetful and rng.random() < 0.3:
        known = KnownRows(known.count, {at: known.columns[at] for at in (0, 1, 2)})
    old = [OldRows(deletes, known)] if went else []
    table = rows(*came)
    if forgetful and rng.random() < 0.02:
        file = DataFile(Source("f"), len(came), 1, table_statistics(table))
        return committed_writes(WriteBatch(None, (file,), deletes), old)
    return committed_writes(WriteBatch(table, (), deletes), old)


@pytest.mark.parametrize("forgetful", [False, True], ids=["all values known", "some forgotten"])
@pytest.mark.parametrize("seed", range(5))
def test_no_conflict_is_missed_and_few_are_false(seed: int, *, forgetful: bool) -> None:
    rng = random.Random(seed)
    keys = 1_000
    log = ShardCommitLog(Timestamp(0))
    history: list[tuple[Timestamp, list[Row]]] = []
    right = false = by_table = spared = 0
    for ts in range(1, 300):
        touched = [random_row(rng, keys) for _ in range(rng.choice((1, 1, 1, 2, 5)))]
        split = rng.randrange(len(touched) + 1)
        log.append(
            Timestamp(ts), commit(rng, touched[:split], touched[split:], forgetful=forgetful)
        )
        history.append((Timestamp(ts), touched))
        if rng.random() < 0.02:
            log.prune(Timestamp(max(0, ts - 100)))
        question = asked(rng, keys)
        after = Timestamp(max(ts - rng.randrange(1, 40), log.floor))
        verdict = log.look(predicate(question.where), after, RowTestBudget())
        truth = any(at > after and any(map(question.holds, rows_then)) for at, rows_then in history)
        if truth:
            assert verdict is not Verdict.CLEAR, f"{question.where} after {after}"
            right += 1
        elif verdict is not Verdict.CLEAR:
            false += 1
        elif after < ts:
            spared += 1
        by_table += after < ts
    log_.info("of %s conflicts %s are false; by table: %s", right + false, false, by_table)
    assert right, "no conflict: nothing was shown"
    assert spared, "validation by rows spares nobody anything"
    assert forgetful or not false, "with all values at hand the answer is exact"


def test_commits_before_the_floor_are_unsure() -> None:
    log = ShardCommitLog(Timestamp(10))
    log.append(Timestamp(11), committed_writes(WriteBatch(rows((1, None, None, None))), ()))
    asked_for = predicate("id = 2")
    assert log.look(asked_for, Timestamp(9), RowTestBudget()) is Verdict.UNSURE
    assert log.look(asked_for, Timestamp(10), RowTestBudget()) is Verdict.CLEAR
    log.prune(Timestamp(11))
    assert log.look(asked_for, Timestamp(10), RowTestBudget()) is Verdict.UNSURE
    assert log.look(asked_for, Timestamp(11), RowTestBudget()) is Verdict.CLEAR


def test_memory_is_bounded_by_forgetting() -> None:
    log = ShardCommitLog(Timestamp(0))
    wide = committed_writes(WriteBatch(rows((1, None, None, "x" * (LOG_BYTES_MAX // 4)))), ())
    for ts in range(1, 20):
        log.append(Timestamp(ts), wide)
        assert log.nbytes <= LOG_BYTES_MAX
    assert log.look(predicate("id = 2"), Timestamp(1), RowTestBudget()) is Verdict.UNSURE


def test_a_bulk_commit_is_tested_by_its_bounds() -> None:
    many = rows(*((i, i % 7, None, None) for i in range(5_000)))
    log = ShardCommitLog(Timestamp(0))
    log.append(Timestamp(1), committed_writes(WriteBatch(many), ()))

    def look(where: str) -> Verdict:
        return log.look(predicate(where), Timestamp(0), RowTestBudget())

    assert look("id = 70000") is Verdict.CLEAR
    assert look("id between 10 and 20 and k = 9") is Verdict.CLEAR
    assert look("id between 10 and 20 and k = 3") is Verdict.MATCH
    assert look("k = 9") is Verdict.CLEAR
    assert look("v is not null") is Verdict.MATCH, "too many rows to look at one by one"


def test_looking_is_bounded() -> None:
    log = ShardCommitLog(Timestamp(0))
    some = committed_writes(WriteBatch(rows(*((i, 0, 0, None) for i in range(500)))), ())
    for ts in range(1, 3 + TESTED_ROWS_MAX // 500):
        log.append(Timestamp(ts), some)
    assert log.look(predicate("v > 5"), Timestamp(0), RowTestBudget()) is Verdict.UNSURE
    assert log.look(predicate("id = 600"), Timestamp(0), RowTestBudget()) is Verdict.CLEAR, "by key"


# --- rows that are gone --------------------------------------------------------------------------


def deleted(**sources: Iterable[int]) -> dict[Source, BitMap64]:
    return {Source(name.replace("at", "@")): BitMap64(list(r)) for name, r in sources.items()}


def test_a_row_is_gone_under_every_name_it_has_had() -> None:
    state = ShardState(ShardId("t"), SCHEMA, Timestamp(0))
    gone = DeletedRowIndex()
    state = state.committed(
        Timestamp(1_000), WriteBatch(rows(*((i, 0, 0, None) for i in range(4))))
    )
    assert not gone.any_gone(state, deleted(at1000=(0, 1)))
    state = state.committed(Timestamp(1_500), WriteBatch(deletes=deleted(at1000=(0,))))
    assert gone.any_gone(state, deleted(at1000=(0, 1)))
    assert not gone.any_gone(state, deleted(at1000=(1,)))

    state = flushed(state, Timestamp(2_000))
    assert gone.any_gone(state, deleted(at1000=(0,)))
    assert not gone.any_gone(state, deleted(at1000=(1,)))
    (name,) = state.versions[-1].files
    assert gone.any_gone(state, {name: BitMap64([0])})
    assert not gone.any_gone(state, {name: BitMap64([1, 2])})

    state = state.committed(Timestamp(2_500), WriteBatch(deletes={name: BitMap64([1])}))
    assert gone.any_gone(state, deleted(at1000=(1,)))
    assert gone.any_gone(state, {name: BitMap64([1, 2])})
    assert not gone.any_gone(state, {name: BitMap64([2])})

    state = flushed(state, Timestamp(3_000))
    assert gone.any_gone(state, deleted(at1000=(1,)))
    assert not gone.any_gone(state, deleted(at1000=(2, 3)))


def flushed(state: ShardState, cut: Timestamp) -> ShardState:
    """The state after a real flush."""
    store = STORES.setdefault(id(state.schema), MemoryObjectStore())
    return state.flushed(asyncio.run(flush(store, state, cut)))


STORES: dict[int, MemoryObjectStore] = {}
