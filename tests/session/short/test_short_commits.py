"""Flights that end in a commit are answered whole: what they meet, and who is told what."""

import asyncio
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from coordinator.pgwire.client_codec import row_values
from coordinator.pgwire.messages import (
    BackendMessage,
    Bind,
    CommandComplete,
    DataRows,
    Execute,
    FrontendMessage,
    ParameterStatus,
    Parse,
    Query,
    ReadyForQuery,
    Sync,
)
from coordinator.session.commands import Commands
from coordinator.session.short_commits import CommitFlight, ShortCommits
from storage.errors import Determinate
from storage.memory import MemoryStash
from storage.stash import Require, Write
from storage.types import Epoch
from tests.session.short.test_short_reads import Alone
from tests.support.connections import (
    Connection,
    GatedStash,
    all_rows,
    blocked,
    connected,
    on_a_loop,
    waiting,
)
from tests.support.stack import running
from tests.support.wire import WireClient

KEYED = "insert into k values (%s, 0)"
CHANGE = "update k set n = n + 1 where id = %s"


class Taken:
    """How many flights were answered, how many left, and what came message by message."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.answered = self.left = 0
        self.messages: list[object] = []
        answer, extended, query = ShortCommits.answer, Commands.extended, Commands.query
        finish = ShortCommits.finish

        async def counted(short: ShortCommits, flight: CommitFlight) -> None:
            await answer(short, flight)
            self.left += flight.is_left
            self.answered += not flight.is_left

        def finished(short: ShortCommits, flight: CommitFlight) -> bool:
            done = finish(short, flight)
            self.answered += done
            return done

        def one(commands: Commands, message: Any) -> Any:
            self.messages.append(message)
            return extended(commands, message)

        def text(commands: Commands, words: str) -> Any:
            self.messages.append(words)
            return query(commands, words)

        patch.setattr(ShortCommits, "answer", counted)
        patch.setattr(ShortCommits, "finish", finished)
        patch.setattr(Commands, "extended", one)
        patch.setattr(Commands, "query", text)


async def run(connection: Connection, text: str, *values: object) -> str | None:
    """As a prepared statement."""
    return (await connection.execute(text.encode(), values, prepare=True)).statusmessage


async def tables(connection: Connection) -> None:
    await connection.execute("create table t (id int, name text)")
    await connection.execute("create table k (id int primary key, n int)")
    for number in range(3):
        await run(connection, "insert into t values (%s, 'x')", number)
        await run(connection, KEYED, number)
        await run(connection, CHANGE, number)


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("insert into t values (%s, 'x')", "INSERT 0 1"),
        ("insert into t values (%s, 'x'), (7, now()::text)", "INSERT 0 2"),
        (KEYED, "INSERT 0 1"),
        ("insert into k values (%s, 1) returning id, n", "INSERT 0 1"),
        ("insert into k values (%s, 1) on conflict do nothing", "INSERT 0 1"),
        (CHANGE, "UPDATE 0"),
        ("delete from k where id = %s", "DELETE 0"),
    ],
)
def test_a_write_is_answered_whole(text: str, tag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    @on_a_loop
    async def story() -> None:
        async with running(stash=Alone()) as stack, connected(stack, 1) as (one,):
            await tables(one)
            for number in range(10, 13):
                assert await run(one, text, number) == tag
            taken = Taken(monkeypatch)
            for number in range(20, 23):
                assert await run(one, text, number) == tag
            assert (taken.answered, taken.messages) == (3, [])
            for number in range(30, 34):
                assert (await one.execute(text.replace("%s", str(number)))).statusmessage == tag
            assert taken.answered >= 4

    story()


@on_a_loop
async def test_a_block_is_answered_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(stash=Alone()) as stack, connected(stack, 2) as (one, other):
        await tables(one)
        other.prepare_threshold = None
        taken = Taken(monkeypatch)
        for end, count in (("commit", 1), ("rollback", 0), ("END transaction;", 1), ("abort", 0)):
            before = await all_rows(other, "select n from k where id = 1")
            for prepared in (True, True, False):
                begin, last = b"begin", end.encode()
                await one.execute(begin, prepare=prepared)
                await run(one, CHANGE, 1)
                done = await one.execute(last, prepare=prepared)
                assert done.statusmessage == ("COMMIT" if count else "ROLLBACK")
                assert one.info.transaction_status is psycopg.pq.TransactionStatus.IDLE
            (after,) = await all_rows(other, "select n from k where id = 1")
            assert after[0] == before[0][0] + 3 * count
        assert taken.answered >= 8
        assert [message for message in taken.messages if isinstance(message, Execute)] == []


@on_a_loop
async def test_what_meets_a_lock_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(stash=Alone()) as stack, connected(stack, 2) as (one, other):
        await tables(one)
        await run(other, CHANGE, 1)
        taken = Taken(monkeypatch)
        await one.execute("begin")
        await run(one, CHANGE, 1)
        waits = await blocked(stack, other, CHANGE, [1])
        assert taken.left == 1
        await one.execute("commit")
        assert (await waits).statusmessage == "UPDATE 1"
        assert await all_rows(one, "select n from k where id = 1") == [(4,)]


@on_a_loop
async def test_a_key_that_is_taken_is_told_as_always() -> None:
    async with running(stash=Alone()) as stack, connected(stack, 1) as (one,):
        await tables(one)
        for _ in range(2):
            with pytest.raises(psycopg.errors.UniqueViolation) as taken:
                await run(one, KEYED, 1)
            assert taken.value.diag.message_detail == "Key (id)=(1) already exists."
            assert one.info.transaction_status is psycopg.pq.TransactionStatus.IDLE
        assert await run(one, KEYED, 50) == "INSERT 0 1"


@on_a_loop
async def test_a_commit_that_is_refused_leaves_no_block(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(stash=Alone()) as stack, connected(stack, 2) as (one, other):
        await tables(one)
        taken = Taken(monkeypatch)
        for _ in range(2):
            await one.execute("begin isolation level serializable")
            await all_rows(one, "select sum(n) from k")
            await run(one, KEYED, 60)
            await run(other, CHANGE, 2)
            with pytest.raises(psycopg.errors.SerializationFailure):
                await one.execute(b"commit", prepare=True)
            assert one.info.transaction_status is psycopg.pq.TransactionStatus.IDLE
        assert taken.messages.count("commit") == 0
        assert await all_rows(one, "select count(*) from k where id = 60") == [(0,)]


class Full(Alone):
    """A disk that is full for as many commits as it is told."""

    refuses = 0

    async def transact(
        self, epoch: Epoch, writes: Sequence[Write], *, requires: Sequence[Require] = ()
    ) -> None:
        if self.refuses and writes[0].collection == "commits":
            self.refuses -= 1
            raise Determinate("disk full")
        await super().transact(epoch, writes, requires=requires)


@on_a_loop
async def test_what_fails_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The general way would not either: somebody may have seen that it failed (W2)."""
    stash = Full()
    async with running(stash=stash) as stack, connected(stack, 1) as (one,):
        await tables(one)
        taken = Taken(monkeypatch)
        for text in ("insert into t values (%s, 'x')", KEYED):
            stash.refuses = 1
            with pytest.raises(psycopg.OperationalError) as failed:
                await run(one, text, 70)
            assert failed.value.sqlstate == "58030"
            assert stash.refuses == 0
            assert one.info.transaction_status is psycopg.pq.TransactionStatus.IDLE
            assert await run(one, text, 71) == "INSERT 0 1"
        await one.execute("begin")
        await run(one, KEYED, 72)
        stash.refuses = 1
        with pytest.raises(psycopg.OperationalError):
            await one.execute(b"commit", prepare=True)
        assert one.info.transaction_status is psycopg.pq.TransactionStatus.IDLE
        assert not [message for message in taken.messages if isinstance(message, Execute)]
        assert await all_rows(one, "select id from k where id >= 70") == [(71,)]
        assert await all_rows(one, "select id from t where id >= 70") == [(71,)]


@on_a_loop
async def test_a_cancel_does_not_take_back_a_commit() -> None:
    stash = GatedStash()
    async with running(stash=stash) as stack, connected(stack, 2) as (one, other):
        await tables(one)
        stash.gate.clear()
        async with asyncio.TaskGroup() as tasks:
            for text in (KEYED, CHANGE):
                writing = tasks.create_task(run(one, text, 80))
                await waiting(stack, other, 1)
                await one.cancel_safe()
                stash.gate.set()
                assert await writing in ("INSERT 0 1", "UPDATE 1")
                stash.gate.clear()
            stash.gate.set()
        assert await all_rows(one, "select n from k where id = 80") == [(1,)]
        assert await all_rows(one, "select 1") == [(1,)]


@on_a_loop
async def test_a_cancel_does_not_take_back_a_block() -> None:
    stash = GatedStash()
    async with running(stash=stash) as stack, connected(stack, 2) as (one, other):
        await tables(one)
        for is_prepared in (True, False):
            await one.execute("begin")
            await run(one, CHANGE, 1)
            stash.gate.clear()
            async with asyncio.TaskGroup() as tasks:
                ending = tasks.create_task(one.execute("commit", prepare=is_prepared))
                await waiting(stack, other, 1)
                await one.cancel_safe()
                stash.gate.set()
                assert (await ending).statusmessage == "COMMIT"
            assert one.info.transaction_status is psycopg.pq.TransactionStatus.IDLE
        assert await all_rows(other, "select n from k where id = 1") == [(3,)]


@on_a_loop
async def test_whoever_leaves_while_its_block_commits_has_committed() -> None:
    stash = GatedStash()
    async with running(stash=stash) as stack, connected(stack, 2) as (one, other):
        await tables(one)
        client = await asyncio.to_thread(WireClient, stack.dsn)
        client.send(Query("begin"), Query("insert into k values (90, 0)"))
        await asyncio.to_thread(client.answers, 2)
        stash.gate.clear()
        client.send(Query("commit"))
        await waiting(stack, other, 1)
        client.reset()
        stash.gate.set()
        while not await all_rows(other, "select id from k where id = 90"):
            continue


@on_a_loop
async def test_whoever_leaves_while_it_commits_has_committed() -> None:
    stash = GatedStash()
    async with running(stash=stash) as stack, connected(stack, 2) as (one, other):
        await tables(one)
        client = await asyncio.to_thread(WireClient, stack.dsn)
        put = Parse("put", "insert into k values ($1, 0)", ())
        client.send(put, Sync(), *flight("put", 88))
        await asyncio.to_thread(client.answers, 2)
        stash.gate.clear()
        client.send(*flight("put", 90))
        await waiting(stack, other, 1)
        client.reset()
        stash.gate.set()
        while not await all_rows(other, "select id from k where id = 90"):
            continue


def flight(statement: str, *values: int) -> Sequence[FrontendMessage]:
    texts = tuple([str(value).encode() for value in values])
    return Bind("", statement, (), texts, ()), Execute("", 0), Sync()


def told(answers: Sequence[BackendMessage]) -> list[object]:
    """Rows and tags."""
    return [
        row_values(message.data) if isinstance(message, DataRows) else message.tag
        for message in answers
        if isinstance(message, DataRows | CommandComplete)
    ]


def talk(dsn: str) -> None:
    with WireClient(dsn) as client:

        def ask(*messages: FrontendMessage) -> Sequence[BackendMessage]:
            client.send(*messages)
            return client.answers(sum(isinstance(one, Query | Sync) for one in messages))

        ask(Query("create table k (id int primary key, n int)"))
        ask(Parse("put", "insert into k values ($1, 0)", ()), Sync())
        ask(Parse("add", "update k set n = n + 1 where id = $1", ()), Sync())
        ask(Parse("get", "select n from k where id = $1", ()), Sync())
        ask(Parse("end", "commit", ()), Sync())
        for number in range(3):
            ask(*flight("put", number), *flight("add", number), *flight("get", number))
        # A read comes after its own session's writes, and answers in order.
        steps = [flight("put", 7), *[flight("add", 7), flight("get", 7)] * 3]
        answers = ask(*[message for step in steps for message in step])
        assert told(answers) == [
            "INSERT 0 1", "UPDATE 1", (b"1",), "SELECT 1", "UPDATE 1", (b"2",), "SELECT 1",
            "UPDATE 1", (b"3",), "SELECT 1",
        ]  # fmt: skip
        # What the block has set for itself alone is reported when it ends.
        ask(Query("begin"), Query("set local timezone = 'Asia/Tokyo'"), *flight("add", 7))
        ended = ask(*flight("end"))
        (at,) = [at for at, one in enumerate(ended) if isinstance(one, ParameterStatus)]
        assert isinstance(ended[at + 1], ReadyForQuery)
        # An error of one flight ends with its Sync.
        answers = ask(*flight("put", 7), *flight("add", 7), *flight("get", 7))
        assert told(answers) == ["UPDATE 1", (b"5",), "SELECT 1"]


@on_a_loop
async def test_a_pipeline_of_flights_is_answered_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(stash=Alone()) as stack:
        taken = Taken(monkeypatch)
        await asyncio.to_thread(talk, stack.dsn)
        assert taken.answered >= 8


@on_a_loop
async def test_whoever_has_notified_goes_the_general_way() -> None:
    async with running(stash=Alone()) as stack, connected(stack, 2) as (one, other):
        await other.execute("listen news")
        await one.execute("begin")
        await one.execute("notify news, 'said'")
        await one.execute(b"commit", prepare=True)
        heard = [notice.payload async for notice in other.notifies(timeout=30, stop_after=1)]
        assert heard == ["said"]


def test_a_stash_that_is_shared_is_served_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is read before the commit, which carries the epoch: there is nothing to confirm."""

    @on_a_loop
    async def story() -> None:
        async with running(stash=MemoryStash()) as stack, connected(stack, 1) as (one,):
            await tables(one)
            taken = Taken(monkeypatch)
            assert await run(one, KEYED, 5) == "INSERT 0 1"
            assert taken.answered == 1
            assert stack.driver.core.observe() is not None

    story()


@on_a_loop
async def test_a_notification_comes_behind_the_tag_of_a_write_under_way() -> None:
    stash = GatedStash()
    async with running(stash=stash) as stack, connected(stack, 2) as (one, other):
        await tables(one)
        client = await asyncio.to_thread(WireClient, stack.dsn)
        put = Parse("put", "insert into k values ($1, 0)", ())
        client.send(Query("listen news"), put, Sync(), *flight("put", 88))
        await asyncio.to_thread(client.answers, 3)
        await one.execute("begin")
        await run(one, KEYED, 89)
        await one.execute("notify news, 'said'")
        stash.gate.clear()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(one.execute("commit"))
            await waiting(stack, other, 1)
            client.send(*flight("put", 90), Query("select 1"))
            await waiting(stack, other, 2)
            stash.gate.set()
            answers = await asyncio.to_thread(client.answers, 2)
        client.close()
        kinds = [type(message).__name__ for message in answers]
        first = kinds[: kinds.index("ReadyForQuery") + 1]
        assert first == [
            "BindComplete", "CommandComplete", "NotificationResponse", "ReadyForQuery"
        ]  # fmt: skip
        assert told(answers)[1:] == [(b"1",), "SELECT 1"]


@on_a_loop
async def test_a_notification_comes_behind_the_tag_of_a_commit_under_way() -> None:
    stash = GatedStash()
    async with running(stash=stash) as stack, connected(stack, 2) as (one, other):
        await tables(one)
        client = await asyncio.to_thread(WireClient, stack.dsn)
        client.send(Query("listen news"), Query("begin"), Query("insert into k values (88, 0)"))
        await asyncio.to_thread(client.answers, 3)
        await one.execute("begin")
        await one.execute("notify news, 'said'")
        stash.gate.clear()
        async with asyncio.TaskGroup() as tasks:
            client.send(Query("commit"))
            await waiting(stack, other, 1)
            tasks.create_task(one.execute("commit"))
            await waiting(stack, other, 2)
            stash.gate.set()
            answers = list(await asyncio.to_thread(client.answers, 1))
        client.send(Query("select 1"))
        answers += await asyncio.to_thread(client.answers, 1)
        client.close()
        kinds = [type(message).__name__ for message in answers]
        assert kinds[0] == "CommandComplete"
        assert kinds.count("NotificationResponse") == 1
        assert told(answers) == ["COMMIT", (b"1",), "SELECT 1"]


@on_a_loop
async def test_a_block_without_writes_ends_as_others(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(stash=Alone()) as stack, connected(stack, 1) as (one,):
        await tables(one)
        for text in (None, "select n from k where id = 1", "select count(*) from k"):
            await one.execute("begin")
            if text is not None:
                await one.execute(text.encode())
            assert (await one.execute("commit")).statusmessage == "COMMIT"
            assert one.info.transaction_status is psycopg.pq.TransactionStatus.IDLE
        await one.execute("begin")
        await one.execute("declare c cursor with hold for select id from k order by id")
        assert (await one.execute("commit")).statusmessage == "COMMIT"
        assert await all_rows(one, "fetch 2 from c") == [(0,), (1,)]


@on_a_loop
async def test_a_server_that_drains_answers_the_write_under_way() -> None:
    stash = GatedStash()
    async with running(stash=stash) as stack, connected(stack, 2) as (one, other):
        await tables(one)
        stash.gate.clear()
        async with asyncio.TaskGroup() as tasks:
            writing = tasks.create_task(run(one, KEYED, 80))
            await waiting(stack, other, 1)
            ends = f"select pg_terminate_backend({one.info.backend_pid})"
            assert await all_rows(other, ends) == [(True,)]
            stash.gate.set()
            assert await writing == "INSERT 0 1"
        with pytest.raises(psycopg.OperationalError):
            await one.execute("select 1")
        assert await all_rows(other, "select n from k where id = 80") == [(0,)]
