"""A shard that start-up finds with less history than its table asks for."""

import pyarrow as pa

from compute.arrow import table_schema
from coordinator.core.catalog import VersionedCatalog
from coordinator.core.completions import CutFlushed
from coordinator.core.core import Core
from coordinator.core.effects import FlushCut, Reply, Tidy
from coordinator.core.messages.catalog_changes import PutTable
from coordinator.core.messages.identities import ConnectionId, RequestId, TransactionId
from coordinator.core.messages.replies import Refused, Views
from coordinator.core.messages.requests import Begin, Scan, TakeSnapshot, Tick
from coordinator.core.settings import CoreSettings
from coordinator.core.state import RecoveredState
from sql.catalog.catalog import Column, Table
from sql.types.sql_type import INT8
from storage.batch import WriteBatch
from storage.live_files import FileMap
from storage.shard import ShardState, Version
from storage.types import Epoch, ShardId, Timestamp

TABLE = Table(1, "public", "a", "shard_a", (Column("value", INT8),), history_us=10**9)
SCHEMA: pa.Schema = table_schema(TABLE.columns)


def test_it_is_readable_from_what_is_left_of_its_log() -> None:
    shard = ShardId(TABLE.shard)
    left = Version(7, Timestamp(90_000), FileMap())
    state = ShardState(shard, SCHEMA, Timestamp(10_000), versions=(left,))
    catalog = VersionedCatalog([(Timestamp(10_000), [PutTable(TABLE)])])
    recovered = RecoveredState(
        Epoch(1), Timestamp(100_000), Timestamp(90_000), catalog, {shard: state}
    )
    core = Core(recovered, CoreSettings(), lambda _table: SCHEMA, Timestamp(100_000))
    assert isinstance(read_at(core, 1, 90_000), Views)
    refused = read_at(core, 2, 80_000)
    assert isinstance(refused, Refused)
    assert refused.sqlstate == "72000"
    assert refused.detail is not None
    assert "90000" in refused.detail


def test_rows_older_than_their_table_are_not_tidied_before_they_are_flushed() -> None:
    """A compacted catalog makes a table look younger than it is; its flush fails, others do not."""
    shard, oldest = ShardId(TABLE.shard), Timestamp(20_000)
    rows = pa.table({"value": [1]}, schema=SCHEMA)
    state = ShardState(shard, SCHEMA, Timestamp(50_000)).committed(oldest, WriteBatch(rows))
    catalog = VersionedCatalog([(Timestamp(50_000), [PutTable(TABLE)])])
    recovered = RecoveredState(Epoch(1), Timestamp(100_000), Timestamp(0), catalog, {shard: state})
    settings = CoreSettings(cut_age_us=1)
    core = Core(recovered, settings, lambda _table: SCHEMA, Timestamp(100_000))
    flush = next(
        effect
        for now in range(100_000, 10_000_000, 100_000)
        for effect in core.step(Tick(), Timestamp(now))
        if isinstance(effect, FlushCut)
    )
    flushed = CutFlushed(flush.cut, {}, failed={shard: "no space"})
    (tidy,) = [e for e in core.step(flushed, flush.cut) if isinstance(e, Tidy)]
    assert tidy.cut < oldest


def read_at(core: Core, number: int, ts: int) -> object:
    """What a transaction that reads the table at `ts` is answered."""
    txn, as_of = TransactionId(number), Timestamp(ts)
    core.step(Begin(txn, ConnectionId(1)), Timestamp(100_000))
    core.step(TakeSnapshot(RequestId(number), txn, as_of), Timestamp(100_000))
    effects = core.step(Scan(RequestId(number), txn, as_of, (TABLE,)), Timestamp(100_000))
    (value,) = [effect.value for effect in effects if isinstance(effect, Reply)]
    return value
