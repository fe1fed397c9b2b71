"""A block that has changed many rows goes on as a short one does."""

import psycopg
import pytest

from tests.session.short.test_short_reads import Alone
from tests.session.short.test_short_waits import general_attempts
from tests.support.connections import all_rows, connected, on_a_loop
from tests.support.stack import running

OWN = 1_500
"""More than the dictionary of `key_index.py` takes of one commit."""

INSERT = "insert into t values (%s, %s, 0)"
UPDATE = "update t set n = n + 1 where b = %s and a = %s"
DELETE = "delete from t where a = %s and b = %s"


@on_a_loop
async def test_what_it_has_changed_is_compared_on_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(stash=Alone()) as stack, connected(stack, 1) as (client,):
        client.prepare_threshold = 0

        async def change(text: str, number: int) -> int:
            key = (number, f"name {number}")
            values = key[::-1] if text is UPDATE else key
            return (await client.execute(text.encode(), values)).rowcount

        await client.execute("create table t (a int, b text, n int, primary key (a, b))")
        await client.execute(
            f"insert into t select g, 'name ' || g, 0 from generate_series(0, {OWN + 9}) g"
        )
        await client.execute("begin")
        for text in (INSERT, UPDATE, DELETE):
            assert await change(text, -1) == 1  # bound once, under this catalog
        await client.execute("commit")
        await client.execute("begin")
        general = general_attempts(monkeypatch)
        for number in range(OWN):
            assert await change(UPDATE, number) == 1
        assert await change(DELETE, OWN + 1) == 1
        assert await change(UPDATE, OWN + 1) == 0
        assert await change(UPDATE, OWN + 2) == 1
        assert await change(INSERT, OWN + 1) == 1
        assert await change(INSERT, -1) == 1
        assert general == []
        # Rows of its own.
        assert await change(UPDATE, 7) == 1
        assert await change(UPDATE, -1) == 1
        assert await change(DELETE, 8) == 1
        assert await change(DELETE, 8) == 0
        await client.execute("savepoint s")
        for number in (7, OWN + 3):
            with pytest.raises(psycopg.errors.UniqueViolation):
                await change(INSERT, number)
            await client.execute("rollback to s")
        await client.execute("commit")
        told = await all_rows(client, "select n, count(*), min(a) from t group by n order by n")
        assert told == [(0, 9, OWN), (1, OWN, -1), (2, 1, 7)]
