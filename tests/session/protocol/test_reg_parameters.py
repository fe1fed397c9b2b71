"""Parameters of the reg types are sent as names or numbers, and looked up when they run."""

import psycopg
import pytest

from tests.support.connections import connected, on_a_loop
from tests.support.stack import running


@on_a_loop
async def test_a_name_and_a_number_mean_the_same() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await one.execute("create table kept (a int)")
        cursor = await one.execute("select 'kept'::regclass::oid")
        found = await cursor.fetchone()
        assert found is not None
        oid = str(found[0])
        await one.execute("prepare named(regclass) as select $1::oid")
        for argument in ("'kept'", oid):
            cursor = await one.execute(f"execute named({argument})".encode())
            assert await cursor.fetchone() == found
        for value in ("kept", "public.kept", oid):
            cursor = await one.execute("select %s::regclass::oid", (value,))
            assert await cursor.fetchone() == found
        cursor = await one.execute("select %s::regclass::oid", ("-",))
        assert await cursor.fetchone() == (0,)
        with pytest.raises(psycopg.errors.UndefinedTable):
            await one.execute("select %s::regclass", ("nowhere",))
