"""COMMITs that were begun as their bytes came: what else happens to their session meanwhile."""

import asyncio

import pytest

from coordinator.failures import admin_shutdown
from coordinator.pgwire.messages import FrontendMessage, Query
from coordinator.session.session import Session
from tests.session.short.test_short_reads import Alone
from tests.support.connections import GatedStash, all_rows, connected, on_a_loop, waiting
from tests.support.stack import running
from tests.support.wire import WireClient, show

TABLE = Query("create table k (id int primary key, n int)")
PUT = Query("insert into k values (1, 0)")
END = Query("commit")


async def ask(client: WireClient, *messages: FrontendMessage) -> list[str]:
    """Queries, each in a packet of its own; what is answered to all of them."""
    told: list[str] = []
    for message in messages:
        client.send(message)
        told += map(show, await asyncio.to_thread(client.answers, 1))
    return told


@on_a_loop
async def test_who_shuts_its_side_is_told_all_the_same() -> None:
    stash = GatedStash()
    async with running(stash=stash) as stack, connected(stack, 1) as (other,):
        client = await asyncio.to_thread(WireClient, stack.dsn)
        await ask(client, TABLE, Query("begin"), PUT)
        stash.gate.clear()
        client.send(END)
        await waiting(stack, other, 1)
        client.shut()
        await all_rows(other, "select 1")
        stash.gate.set()
        told = list(map(show, await asyncio.to_thread(client.answers, 1)))
        assert [line for line in told if not line.startswith("ParameterStatus")] == [
            "CommandComplete COMMIT",
            "ReadyForQuery I",
        ]
        client.close()


@pytest.mark.parametrize("setting", ["select 1", "set local timezone = 'Asia/Tokyo'"])
@on_a_loop
async def test_who_is_ended_when_it_has_committed_hears_of_the_commit(
    setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled = Session._settled

    def ended_then(session: Session) -> None:
        settled(session)
        session.end(admin_shutdown())

    async with running(stash=Alone()) as stack:
        client = await asyncio.to_thread(WireClient, stack.dsn)
        await ask(client, TABLE, Query("begin"), Query(setting), PUT)
        monkeypatch.setattr(Session, "_settled", ended_then)
        assert (await ask(client, END))[0] == "CommandComplete COMMIT"
        client.close()
