"""COPY .. ON_ERROR ignore passes over bad input only, not over values that PostgreSQL has."""

import psycopg
import pytest

from tests.support.connections import all_rows, connected, on_a_loop
from tests.support.stack import running


@pytest.mark.parametrize("line", ["NaN\t2024-01-01", "1\tinfinity", "1\t0044-03-15 BC"])
@on_a_loop
async def test_a_value_that_we_do_not_hold_is_not_skipped(line: str) -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        await one.execute("create table t (n numeric, d date)")
        with pytest.raises(psycopg.errors.DataError):
            async with one.cursor().copy("copy t from stdin (on_error ignore)") as copy:
                await copy.write(f"x\t2024-01-01\n{line}\n")
        assert await all_rows(one, "select * from t") == []
