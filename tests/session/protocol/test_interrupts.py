"""Interrupts: cancel requests, time limits, clients that vanish or do not read, shutdown."""

import asyncio
import socket
from collections.abc import AsyncIterator, Coroutine
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from compute.executor import Run
from coordinator.config import Settings
from coordinator.large_work import Turns
from coordinator.pgwire.client_codec import encode_frontend
from coordinator.pgwire.messages import CancelRequest, FrontendMessage, Query
from coordinator.session.portal import Portal
from coordinator.transaction.transaction import SessionTransaction
from tests.support.stack import Stack, running
from tests.support.wire import WireClient, show


class StuckEngine:
    """Answers nothing until it is let go; says when it started and when it was ended."""

    name = "stuck"

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.ended = asyncio.Event()
        self.let_go = asyncio.Event()

    async def run(self, run: Run) -> AsyncIterator[pa.RecordBatch]:
        self.started.set()
        try:
            await self.let_go.wait()
            yield pa.record_batch({"a": pa.array([1], pa.int32())})
        finally:
            self.ended.set()

    async def close(self) -> None:
        self.let_go.set()


class EndlessEngine(StuckEngine):
    """Yields batches as long as somebody takes them."""

    def __init__(self) -> None:
        super().__init__()
        self.batches = 0

    async def run(self, run: Run) -> AsyncIterator[pa.RecordBatch]:
        try:
            while True:
                self.batches += 1
                yield pa.record_batch({"a": pa.array(range(4096), pa.int32())})
        finally:
            self.ended.set()


class Client:
    """A blocking client, driven from the loop's threads."""

    opened: ClassVar[list[WireClient]] = []

    def __init__(self, wire: WireClient) -> None:
        self.wire = wire
        self.opened.append(wire)

    @classmethod
    async def connect(cls, stack: Stack) -> "Client":
        return cls(await asyncio.to_thread(WireClient, stack.dsn))

    async def ask(self, text: str, *, ready: int = 1) -> list[str]:
        self.wire.send(Query(text))
        return await self.hear(ready=ready)

    async def hear(self, *, ready: int = 1) -> list[str]:
        answers = await asyncio.to_thread(self.wire.answers, ready)
        return [show(answer) for answer in answers]


async def raw(stack: Stack, message: FrontendMessage) -> bytes:
    """Send one message on a connection of its own; everything that comes back."""

    def talk() -> bytes:
        with socket.create_connection(("127.0.0.1", stack.port), 10) as connection:
            connection.sendall(encode_frontend(message))
            return b"".join(iter(lambda: connection.recv(4096), b""))

    return await asyncio.to_thread(talk)


def run(story: Coroutine[Any, Any, None]) -> None:
    try:
        asyncio.run(asyncio.wait_for(story, 30))
    finally:
        while Client.opened:
            Client.opened.pop().close()


async def stuck(stack: Stack, engine: StuckEngine) -> Client:
    """A client whose query does not end."""
    client = await Client.connect(stack)
    await client.ask("create table if not exists t (a int4)")
    client.wire.send(Query("select a from t"))
    await engine.started.wait()
    return client


def test_a_cancel_request_ends_the_statement_and_nothing_else() -> None:
    async def story() -> None:
        engine = StuckEngine()
        async with running(engine=engine) as stack:
            client = await stuck(stack, engine)
            key = client.wire.key
            assert key is not None
            assert await raw(stack, CancelRequest(key.pid, b"\0" * len(key.secret))) == b""
            assert await raw(stack, CancelRequest(key.pid + 1, key.secret)) == b""
            assert not engine.ended.is_set()
            assert await raw(stack, CancelRequest(key.pid, key.secret)) == b""
            assert await client.hear() == [
                "RowDescription a:int4",
                "ERROR 57014 canceling statement due to user request",
                "ReadyForQuery I",
            ]
            assert engine.ended.is_set()
            # A late one hits nobody.
            assert await raw(stack, CancelRequest(key.pid, key.secret)) == b""
            assert (await client.ask("select 1"))[-1] == "ReadyForQuery I"
            client.wire.close()

    run(story())


def test_statement_timeout() -> None:
    async def story() -> None:
        engine = StuckEngine()
        async with running(engine=engine) as stack:
            client = await Client.connect(stack)
            await client.ask("create table t (a int4)")
            await client.ask("set statement_timeout = '20ms'")
            await client.ask("begin")
            answers = await client.ask("select a from t")
            assert answers == [
                "RowDescription a:int4",
                "ERROR 57014 canceling statement due to statement timeout",
                "ReadyForQuery E",
            ]
            client.wire.close()

    run(story())


def test_idle_timeouts_end_the_session() -> None:
    async def story() -> None:
        async with running() as stack:
            client = await Client.connect(stack)
            await client.ask("set idle_in_transaction_session_timeout = 20")
            await client.ask("begin")
            assert await client.hear() == [
                "FATAL 25P03 terminating connection due to idle-in-transaction timeout"
            ]

    run(story())


def test_a_client_that_vanishes_ends_its_query() -> None:
    async def story() -> None:
        engine = StuckEngine()
        async with running(engine=engine) as stack:
            client = await stuck(stack, engine)
            client.wire.close()
            await engine.ended.wait()

    run(story())


def test_a_client_that_does_not_read_stops_its_query_and_nobody_else() -> None:
    async def story() -> None:
        engine = EndlessEngine()
        async with running(Settings(send_bytes_max=1 << 16), engine=engine) as stack:
            slow, other = await Client.connect(stack), await Client.connect(stack)
            await slow.ask("create table t (a int4)")
            slow.wire.send(Query("select a from t"))
            assert (await other.ask("select 1"))[-1] == "ReadyForQuery I"
            produced = -1
            while produced != engine.batches:
                produced = engine.batches
                # Several turns of the loop without a batch: the engine waits for the client.
                for _ in range(20):
                    assert (await other.ask("select 1"))[-1] == "ReadyForQuery I"
            assert produced < 2_000
            slow.wire.close()
            await engine.ended.wait()
            other.wire.close()

    run(story())


@pytest.mark.parametrize("grace_s", [0.05, 20.0])
def test_shutdown_ends_idle_sessions_and_lets_blocks_finish(grace_s: float) -> None:
    async def story() -> None:
        engine = StuckEngine()
        settings = Settings(shutdown_grace_s=grace_s)
        async with running(settings, engine=engine) as stack:
            idle, busy = await Client.connect(stack), await Client.connect(stack)
            await busy.ask("create table t (a int4)")
            await busy.ask("begin")
            await busy.ask("insert into t values (1)")
            stopping = stack.group.create_task(stack.server.stop())
            assert await idle.hear() == [
                "FATAL 57P01 terminating connection due to administrator command"
            ]
            if grace_s > 1:
                # The answer is whole, or a driver would take the last words for COMMIT's failure.
                assert await busy.ask("commit") == ["CommandComplete COMMIT", "ReadyForQuery I"]
            assert await busy.hear() == [
                "FATAL 57P01 terminating connection due to administrator command"
            ]
            await stopping

    run(story())


def test_shutdown_interrupts_what_does_not_end() -> None:
    async def story() -> None:
        engine = StuckEngine()
        async with running(Settings(shutdown_grace_s=0.05), engine=engine) as stack:
            client = await stuck(stack, engine)
            stopping = stack.group.create_task(stack.server.stop())
            answers = [*await client.hear(), *await client.hear()]
            assert answers[-1] == "FATAL 57P01 terminating connection due to administrator command"
            await stopping
            assert engine.ended.is_set()

    run(story())


def test_a_session_cancels_and_terminates_others() -> None:
    async def story() -> None:
        engine = StuckEngine()
        async with running(engine=engine) as stack:
            victim = await stuck(stack, engine)
            other = await Client.connect(stack)
            found = "from pg_stat_activity where state = 'active' and query like 'select a%'"
            assert (await other.ask(f"select pg_cancel_backend(pid) {found}"))[1] == "DataRow t"
            assert (await victim.hear())[-2:] == [
                "ERROR 57014 canceling statement due to user request", "ReadyForQuery I"
            ]  # fmt: skip
            idle = "from pg_stat_activity where state = 'idle'"
            assert (await other.ask(f"select wait_event {idle}"))[1] == "DataRow ClientRead"
            assert (await other.ask(f"select pg_terminate_backend(pid) {idle}"))[1] == "DataRow t"
            assert await victim.hear() == [
                "FATAL 57P01 terminating connection due to administrator command"
            ]
            # What is gone is not listed any more; one's own session ends without an answer.
            count = "select count(*) from pg_stat_activity where datid is not null"
            assert (await other.ask(count))[1] == "DataRow 1"
            own = await other.ask("select pg_terminate_backend(pg_backend_pid())")
            assert own == [
                "FATAL 57P01 terminating connection due to administrator command",
            ]

    run(story())


@pytest.mark.parametrize("held", ["", "declare c cursor for select 1"])
@pytest.mark.parametrize("last", ["commit", "update t set v = 2", "select 3; commit"])
def test_what_has_committed_is_not_cancelled(
    monkeypatch: pytest.MonkeyPatch, held: str, last: str
) -> None:
    """A cancel that comes between the commit and the end of its answer comes too late."""

    async def story() -> None:
        async with running() as stack:
            client = await Client.connect(stack)
            key = client.wire.key
            assert key is not None
            await client.ask("create table t (v int primary key)")
            await client.ask("insert into t values (1)")
            close, give_way, end = Portal.close, Turns.give_way, SessionTransaction._end
            ends: list[bool] = []

            def ended(transaction: SessionTransaction, *, committed: bool) -> None:
                end(transaction, committed=committed)
                ends.append(committed)

            async def cancelled() -> None:
                if ends:
                    stack.server.cancel_backend(key.pid)
                await asyncio.sleep(0)

            async def closed(portal: Portal) -> None:
                await cancelled()
                await close(portal)

            async def gave_way(turns: Turns) -> None:
                await cancelled()
                await give_way(turns)

            if "commit" in last:
                await client.ask("begin")
                if held:
                    await client.ask(held)
                await client.ask("update t set v = 2")
            monkeypatch.setattr(SessionTransaction, "_end", ended)
            monkeypatch.setattr(Portal, "close", closed)
            monkeypatch.setattr(Turns, "give_way", gave_way)
            answers = await client.ask(last)
            monkeypatch.undo()
            assert ends[0]
            assert not any("ERROR" in answer for answer in answers), answers
            assert "DataRow 2" in await client.ask("select v from t")
            await client.ask("begin")
            assert "CommandComplete SELECT 1" in await client.ask("select 1; select 2")

    run(story())


def test_the_state_of_a_session_in_a_block() -> None:
    async def story() -> None:
        async with running() as stack:
            seen, other = await Client.connect(stack), await Client.connect(stack)
            states: list[str] = []
            asked = "select state from pg_stat_activity where pid <> pg_backend_pid()"
            asked += " and backend_type = 'client backend'"
            for text in ("begin", "select 1/0", "rollback"):
                await seen.ask(text)
                states.append((await other.ask(asked))[1])
            assert states == [
                "DataRow idle in transaction",
                "DataRow idle in transaction (aborted)",
                "DataRow idle",
            ]

    run(story())


def test_too_many_connections_are_turned_away() -> None:
    async def story() -> None:
        settings = Settings(connections_max=2, superuser_reserved_connections=0)
        async with running(settings) as stack:
            first, second = await Client.connect(stack), await Client.connect(stack)
            third = await Client.connect(stack)
            assert [show(item) for item in third.wire.greeting] == [
                "FATAL 53300 sorry, too many clients already"
            ]
            first.wire.close()
            second.wire.close()

    run(story())


def test_garbage_and_silence_do_not_disturb_others() -> None:
    async def story() -> None:
        async with running(Settings(startup_timeout_s=0.05)) as stack:
            client = await Client.connect(stack)
            with socket.create_connection(("127.0.0.1", stack.port), 10) as silent:
                assert await asyncio.to_thread(silent.recv, 1) == b""
            with socket.create_connection(("127.0.0.1", stack.port), 10) as browser:
                browser.sendall(b"GET / HTTP/1.1\r\n\r\n")
                assert await asyncio.to_thread(browser.recv, 1) == b""
            assert (await client.ask("select 1"))[-1] == "ReadyForQuery I"
            client.wire.close()

    run(story())
