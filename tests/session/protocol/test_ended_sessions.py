"""Who is ended while something of it commits hears first that it has committed."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeAlias

import pytest

from coordinator.driver.timelines import Timelines
from coordinator.large_work import Turns
from coordinator.pgwire.messages import Bind, Execute, FrontendMessage, Parse, Query, Sync
from coordinator.session.portal import Portal
from coordinator.transaction.transaction import SessionTransaction
from tests.session.protocol.test_interrupts import Client
from tests.session.protocol.test_interrupts import run as play
from tests.support.stack import Stack, running
from tests.support.wire import show

Moment: TypeAlias = Callable[[pytest.MonkeyPatch, Stack, int], AbstractContextManager[None]]

ENDED = "FATAL 57P01 terminating connection due to administrator command"

WAYS: dict[str, tuple[str, tuple[FrontendMessage, ...]]] = {
    "a short write": ("", (Query("insert into t values (2)"),)),
    "a write by key": ("", (Query("update t set v = 2"),)),
    "several statements": ("", (Query("select 3; update t set v = 2"),)),
    "the end of a block": ("begin; update t set v = 2", (Query("commit"),)),
    "the end of a block, prepared": (
        "begin; update t set v = 2",
        (Parse("", "commit"), Bind("", ""), Execute(""), Sync()),
    ),
    "a pipeline": ("", (Parse("", "update t set v = 2"), Bind("", ""), Execute(""), Sync())),
    "a block with a cursor": (
        "begin; declare c cursor for select 1; update t set v = 2",
        (Parse("", "commit"), Bind("", ""), Execute(""), Sync()),
    ),
}


def victim(stack: Stack, client: Client) -> int:
    key = client.wire.key
    assert key is not None
    return key.pid


async def begun(stack: Stack, block: str) -> Client:
    """A client that has a table and, perhaps, a block."""
    client = await Client.connect(stack)
    await client.ask("create table t (v int primary key)")
    await client.ask("insert into t values (1)")
    if block:
        await client.ask(block)
    return client


async def heard(client: Client) -> list[str]:
    """Everything up to the end of the connection."""
    answers = await asyncio.to_thread(client.wire.answers, 9)
    return [show(answer) for answer in answers]


@contextmanager
def ending_behind_the_commit(
    monkeypatch: pytest.MonkeyPatch, stack: Stack, pid: int
) -> Iterator[None]:
    """The session is ended as soon as its transaction has, wherever it stands then."""
    close, give_way, end = Portal.close, Turns.give_way, SessionTransaction._end
    has_ended: list[bool] = []

    def ended(transaction: SessionTransaction, *, committed: bool, has_run: bool = False) -> None:
        end(transaction, committed=committed, has_run=has_run)
        has_ended.append(committed)
        stack.server.terminate_backend(pid)

    async def waited() -> None:
        if has_ended:
            await asyncio.sleep(0)

    async def closed(portal: Portal) -> None:
        await waited()
        await close(portal)

    async def gave_way(turns: Turns) -> None:
        await waited()
        await give_way(turns)

    with monkeypatch.context() as patched:
        patched.setattr(SessionTransaction, "_end", ended)
        patched.setattr(Portal, "close", closed)
        patched.setattr(Turns, "give_way", gave_way)
        yield
    assert has_ended[0], "nothing has committed"


@contextmanager
def ending_while_it_commits(
    monkeypatch: pytest.MonkeyPatch, stack: Stack, pid: int
) -> Iterator[None]:
    """The session is ended when its commit is asked for."""
    asked: list[str] = []

    def ends_at(name: str) -> Callable[..., object]:
        work: Callable[..., object] = getattr(Timelines, name)

        def asks(*arguments: object, **named: object) -> object:
            asked.append(name)
            stack.server.terminate_backend(pid)
            return work(*arguments, **named)

        return asks

    with monkeypatch.context() as patched:
        for name in ("commit", "begin_commit", "begin_write"):
            patched.setattr(Timelines, name, ends_at(name))
        yield
    assert asked, "nothing was asked for"


@pytest.mark.parametrize("moment", [ending_while_it_commits, ending_behind_the_commit])
@pytest.mark.parametrize("way", WAYS)
def test_what_has_committed_is_said_before_the_last_words(
    monkeypatch: pytest.MonkeyPatch, way: str, moment: Moment
) -> None:
    async def story() -> None:
        block, messages = WAYS[way]
        async with running() as stack:
            client = await begun(stack, block)
            with moment(monkeypatch, stack, victim(stack, client)):
                client.wire.send(*messages)
                answers = await heard(client)
            tail = [line for line in answers if line.startswith(("Command", "Ready", "FATAL"))]
            assert tail[-3].startswith("CommandComplete"), answers
            assert tail[-2:] == ["ReadyForQuery I", ENDED], answers
            other = await Client.connect(stack)
            assert "DataRow 2" in await other.ask("select v from t")

    play(story())
