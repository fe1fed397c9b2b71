"""Positions without changes: an idle publication's slot moves, and passes nothing (I1)."""

from __future__ import annotations

import struct
from collections import deque
from typing import Any

import pytest

from ingest.postgres.libpq_link import PostgresAddress
from ingest.postgres.publication import PublicationState
from ingest.postgres.reader import PostgresReader
from ingest.postgres.replication_connection import StreamData, StreamEvent, StreamKeepalive
from ingest.postgres.transaction_assembler import TransactionAssembler
from ingest.reader import ReadLimits, UpstreamColumn, UpstreamTable
from sql.types.sql_type import INT4
from tests.ingest.upstream_database import UpstreamDatabase, run

TABLE = UpstreamTable("public.t", (UpstreamColumn("id", INT4, not_null=True),), ("id",))
RELATION = 16_400


def begin(lsn: int) -> StreamData:
    return StreamData(struct.pack("!cqqI", b"B", lsn, 0, 7))


def commit(lsn: int, end: int) -> StreamData:
    return StreamData(struct.pack("!cbqqq", b"C", 0, lsn, end, 0))


def relation() -> StreamData:
    head = struct.pack("!cI", b"R", RELATION) + b"public\0t\0d" + struct.pack("!H", 1)
    return StreamData(head + b"\1id\0" + struct.pack("!Ii", 23, -1))


def insert(value: int) -> StreamData:
    text = str(value).encode()
    body = struct.pack("!cIcHcI", b"I", RELATION, b"N", 1, b"t", len(text)) + text
    return StreamData(body)


class ScriptedStream:
    """What upstream sends, by script."""

    def __init__(self, *events: StreamEvent) -> None:
        self.events = deque(events)
        self.acknowledged: list[int] = []

    def next_event(self) -> StreamEvent | None:
        return self.events.popleft() if self.events else None

    async def wait(self, seconds: float) -> None:
        pass

    def wake(self) -> None:
        pass

    def acknowledge(self, upto: int) -> None:
        self.acknowledged.append(upto)

    def close(self) -> None:
        pass


class ScriptedStreamReader(PostgresReader):
    """On a script in place of a server."""

    def __init__(self, *events: StreamEvent) -> None:
        super().__init__(
            PostgresAddress("127.0.0.1", "d", "u"), publication="p", slot="s", name="feed"
        )
        self._forget(1000)
        self._tables = {RELATION: TABLE}
        self._known = PublicationState("1", {RELATION: "x"}, "")
        self._assembler = TransactionAssembler(self._tables, {}, after=1000)
        self._stream: Any = ScriptedStream(*events)

    async def _watch(self, upto: int) -> None:
        pass


async def check_open_transaction() -> None:
    """A keepalive between Begin and Commit moves nothing."""
    reader = ScriptedStreamReader(begin(2000), relation(), insert(1), StreamKeepalive(5000))
    batch = await reader.read(ReadLimits(wait_ms=1))
    assert batch.upto == {"lsn": 1000}, "the position passes an open transaction"
    reader._stream.events.extend([insert(2), commit(2000, 2010)])
    batch = await reader.read(ReadLimits(wait_ms=1))
    assert batch.upto == {"lsn": 2010}
    assert len(batch.changes["public.t"]) == 2


def test_a_keepalive_within_an_open_transaction_moves_nothing() -> None:
    run(check_open_transaction())


def test_a_keepalive_behind_batches_moves_the_last_of_them_only() -> None:
    async def scenario() -> None:
        reader = ScriptedStreamReader(
            *(begin(2000), relation(), insert(1), commit(2000, 2010)),
            *(begin(3000), insert(2), commit(3000, 3010)),
            StreamKeepalive(9000),
        )
        first = await reader.read(ReadLimits(size=1, wait_ms=1))
        assert first.upto == {"lsn": 2010}
        second = await reader.read(ReadLimits(size=1 << 20, wait_ms=1))
        assert second.upto == {"lsn": 9000}
        with pytest.raises(AssertionError, match="given"):
            await reader.acknowledge({"lsn": 9001})

    run(scenario())


def test_transactions_up_to_the_start_are_left_out() -> None:
    async def scenario() -> None:
        reader = ScriptedStreamReader(
            *(begin(990), relation(), insert(1), commit(990, 1000)),
            *(begin(1000), insert(2), commit(1000, 1010)),
        )
        batch = await reader.read(ReadLimits(wait_ms=1))
        assert [change.new for change in batch.changes["public.t"]] == [(2,)]

    run(scenario())


def test_an_idle_publication_lets_its_slot_move(database: UpstreamDatabase) -> None:
    """Other tables are written; no heartbeat is needed."""

    async def scenario() -> None:
        reader = database.reader()
        tables = list((await reader.inspect()).tables)
        progress = await reader.prepare(tables)
        await reader.start(progress, tables)
        database.execute(
            "INSERT INTO busy SELECT g, repeat('x', 100) FROM generate_series(1, 9000) g"
        )
        ((end,),) = database.rows("SELECT (pg_current_wal_flush_lsn() - '0/0')::int8")
        upto = 0
        while upto < end:
            batch = await reader.read(ReadLimits(wait_ms=2000))
            assert not batch.changes
            upto = batch.upto["lsn"]
            await reader.acknowledge(batch.upto)
        # Behind the answer to this message upstream has heard the acknowledgement.
        newest = (await reader.newest())["lsn"]
        while upto < newest:
            upto = (await reader.read(ReadLimits(wait_ms=2000))).upto["lsn"]
        assert newest >= end
        ((_, acknowledged),) = database.slots()
        assert acknowledged >= end
        await reader.release()

    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY)",
        "CREATE TABLE busy (id int, x text)",
        "CREATE PUBLICATION p FOR TABLE t",
    )
    run(scenario())
