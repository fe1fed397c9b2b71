"""The last statement of a string is called complete when what it did is committed, not before."""

import pytest
from psycopg import errors

from tests.session.transactions.test_followed_views import play
from tests.support.connections import Connection, all_rows, connected, on_a_loop
from tests.support.stack import running

KEYED = "create table t (id int primary key)"


async def copy_one(connection: Connection, other: Connection) -> None:
    """Copies a key that the other takes meanwhile."""
    # psycopg takes two results of one COPY for a bug of its own.
    async with connection.cursor().copy("copy t from stdin") as copy:
        await copy.write_row((1,))
        await play(other, "insert into t values (1)")


@on_a_loop
async def test_a_copy_whose_commit_is_refused_was_never_complete() -> None:
    async with running() as stack, connected(stack, 2) as (one, other):
        await play(other, KEYED)
        with pytest.raises((errors.UniqueViolation, errors.SerializationFailure)):
            await copy_one(one, other)
        async with one.cursor().copy("copy t from stdin") as copy:
            await copy.write_row((2,))
        assert await all_rows(other, "table t order by 1") == [(1,), (2,)]
