"""A table whose flush meets a full disk holds up nobody else, and goes on when there is room."""

import errno

import psycopg
import pytest

from storage.errors import Determinate
from storage.memory import MemoryObjectStore
from tests.support.connections import Connection, all_rows, connected, on_a_loop
from tests.support.stack import running


class FullStore(MemoryObjectStore):
    """Has no room for objects of some shards."""

    def __init__(self) -> None:
        super().__init__()
        self.full: set[str] = set()
        self.refused = 0

    async def create(self, name: str, content: bytes, *, modified_ms: int | None = None) -> None:
        if name.partition("/")[0] in self.full:
            self.refused += 1
            full = OSError(errno.ENOSPC, "No space left on device")
            raise Determinate(f"{name}: {full.strerror}") from full
        await super().create(name, content, modified_ms=modified_ms)


async def tails(connection: Connection) -> dict[str, int]:
    query = "select table_name, tail_rows from meridian.frontiers"
    return dict(await all_rows(connection, query))


@on_a_loop
async def test_one_table_without_room_holds_up_no_other() -> None:
    store = FullStore()
    async with running(store=store) as stack, connected(stack, 1) as (connection,):
        for name in ("bad", "good"):
            await connection.execute(f"create table {name} (a int primary key)")
            await connection.execute(f"optimize {name}")
        shards = dict(await all_rows(connection, "select table_name, shard from meridian.cuts"))
        store.full.add(shards["bad"])
        for number in range(3):
            for name in ("bad", "good"):
                await connection.execute(f"insert into {name} values ({number})")
            await connection.execute("optimize good")
            assert (await tails(connection))["good"] == 0
        assert store.refused >= 3
        # The one without room is served from the stash, and takes more.
        assert (await tails(connection))["bad"] == 3
        assert await all_rows(connection, "select a from bad order by a") == [(0,), (1,), (2,)]
        with pytest.raises(psycopg.Error):
            await connection.execute("optimize bad")
        assert await all_rows(connection, "select fenced from meridian.frontiers") == [(False,)] * 2
        store.full.clear()
        await connection.execute("optimize bad")
        assert await tails(connection) == {"bad": 0, "good": 0}
        assert await all_rows(connection, "select a from bad order by a") == [(0,), (1,), (2,)]
