"""Clients that count their own writes, each in a row of its own, and find them again.

| who | how | rows |
| --- | --- | --- |
| `write_by_key` | psycopg, single statements and batches | `own` |
| `write_blocks` | psycopg's asyncio, blocks over two tables | `own` and `mirror`, always equal |
| `write_messages` | Parse, Bind, Execute in pipelines | `own` |
| `copy_in` | psql's `\\copy`, all rows of a batch or none | `bulk` |
"""

import asyncio
import random
import subprocess
from collections.abc import Iterator
from typing import Final, LiteralString

import psycopg

from coordinator.pgwire.client_codec import row_values
from coordinator.pgwire.messages import (
    Bind,
    CommandComplete,
    DataRows,
    ErrorResponse,
    Execute,
    Parse,
    Sync,
)
from tests.resilience.faults.clients import state_of
from tests.resilience.soak.crowd import Connection, Crowd, OwnCount, keep_on
from tests.support.servers import postgres_program
from tests.support.wire import WireClient

ADD: Final[LiteralString] = "UPDATE own SET n = n + 1 WHERE id = %s"
MIRROR: Final[LiteralString] = "UPDATE mirror SET n = n + 1 WHERE id = %s"
SEEN: Final[LiteralString] = "SELECT n FROM own WHERE id = %s"

BATCH: Final = 5
"""Increments in one pipeline: all of them, or none."""

COPIED_ROWS: Final = 2_000
COPY_SECONDS_MAX: Final = 300
"""Only against hanging for ever."""


def write_by_key(crowd: Crowd, name: str, key: int, count: OwnCount) -> None:
    """Increment, and look, by key."""

    def step(connection: Connection, rng: random.Random) -> None:
        crowd.rest(rng, 0.02)
        roll = rng.random()
        if roll < 0.3:
            [[seen]] = connection.execute(SEEN, (key,)).fetchall()
            assert isinstance(seen, int), "it is a bigint"
            count.seen(seen)
            return
        times = BATCH if roll < 0.5 else 1
        try:
            if times > 1:
                with connection.pipeline(), connection.transaction():
                    connection.cursor().executemany(ADD, [(key,)] * times)
            else:
                connection.execute(ADD, (key,))
        except psycopg.Error as error:
            count.failed(state_of(error), times)
            raise
        count.acknowledged(times)

    keep_on(crowd, name, step)


async def write_blocks(crowd: Crowd, name: str, key: int, count: OwnCount) -> None:
    """Increment in two tables, in blocks of psycopg's asyncio connections."""
    rng = random.Random(name)
    with crowd.present(name):
        while not crowd.ended.is_set():
            try:
                connection = await psycopg.AsyncConnection.connect(crowd.dsn, autocommit=True)
                async with connection:
                    while not crowd.ended.is_set():
                        await _block(crowd, connection, key, count, rng)
            except psycopg.Error as error:
                crowd.told(state_of(error), str(error))


async def _block(
    crowd: Crowd,
    connection: psycopg.AsyncConnection[tuple[object, ...]],
    key: int,
    count: OwnCount,
    rng: random.Random,
) -> None:
    committing = False
    try:
        await connection.execute("BEGIN")
        cursor = await connection.execute(SEEN, (key,))
        [[seen]] = await cursor.fetchall()
        assert isinstance(seen, int), "it is a bigint"
        for statement in (ADD, MIRROR):
            await connection.execute(statement, (key,))
        committing = True
        await connection.execute("COMMIT")
    except psycopg.Error as error:
        if committing:
            count.failed(state_of(error))
        crowd.told(state_of(error), str(error))
        if connection.closed:
            raise
        await connection.rollback()
        return
    count.seen(seen)
    count.acknowledged()
    crowd.counted("blocks")
    await asyncio.sleep(rng.random() * 0.1)


def write_messages(crowd: Crowd, name: str, key: int, count: OwnCount) -> None:
    """Increments in pipelines of the extended protocol; an implicit block is all or nothing."""
    rng = random.Random(name)
    with crowd.present(name):
        while not crowd.ended.is_set():
            try:
                with WireClient(crowd.dsn) as client:
                    while not crowd.ended.is_set() and _pipeline(crowd, client, key, count):
                        crowd.rest(rng, 0.05)
            except OSError as error:
                crowd.told("lost", str(error))


def _pipeline(crowd: Crowd, client: WireClient, key: int, count: OwnCount) -> bool:
    """Whether the connection is still there. Raises OSError, after it was counted."""
    value = (str(key).encode(),)
    add = Parse("", "UPDATE own SET n = n + 1 WHERE id = $1", (23,))
    see = Parse("", "SELECT n FROM own WHERE id = $1", (23,))
    bound = (Bind("", "", (), value, ()), Execute("", 0))
    try:
        client.send(add, *bound * BATCH, Sync())
        answers = client.answers(1)
    except OSError:
        count.failed("lost", BATCH)
        raise
    states = [dict(a.fields)["C"] for a in answers if isinstance(a, ErrorResponse)]
    done = sum(isinstance(a, CommandComplete) and a.tag == "UPDATE 1" for a in answers)
    if states:
        count.failed(states[0], BATCH)
        crowd.told(states[0], "in a pipeline")
        return states[0] not in {"57P01", "57P02"}
    if done != BATCH:
        count.failed("lost", BATCH)
        raise OSError("the stream has ended")
    count.acknowledged(BATCH)
    client.send(see, *bound, Sync())
    for answer in client.answers(1):
        if isinstance(answer, DataRows):
            [seen] = row_values(answer.data)
            count.seen(int(seen or -1))
    crowd.counted("messages")
    return True


def copy_in(crowd: Crowd, name: str, batches: Iterator[int]) -> None:
    """A batch of rows by psql, which is there whole or not at all; then it goes."""
    rng = random.Random(name)
    with crowd.present(name):
        while not crowd.ended.is_set():
            crowd.rest(rng, 0.3)
            # A new number each time: a commit that nobody has heard of may come late.
            batch = next(batches)
            rows = "".join(f"{batch}\t{row}\ttext of row {row}\n" for row in range(COPIED_ROWS))
            crowd.doing[name] = "copies"
            code, said = _psql(crowd, "\\copy bulk from pstdin", rows)
            crowd.doing[name] = "counts"
            asked, answer = _psql(crowd, f"SELECT count(*) FROM bulk WHERE batch = {batch}")
            if asked == 0:
                _judge_copy(crowd, f"batch {batch}", code, said, int(answer))
            crowd.doing[name] = "deletes"
            while _psql(crowd, f"DELETE FROM bulk WHERE batch = {batch}")[0] != 0:
                if crowd.ended.is_set():
                    return


def _judge_copy(crowd: Crowd, batch: str, code: int, said: str, count: int) -> None:
    # psql tells the primary message only; the end of the server's session tells nothing.
    unknown = "connection" in said
    expected = {COPIED_ROWS} if code == 0 else {0, COPIED_ROWS} if unknown else {0}
    if count not in expected:
        crowd.found("copy", f"{batch} has {count} rows after {code} {said!r}")
    crowd.counted("copies" if code == 0 else "copies refused")


def _psql(crowd: Crowd, command: str, rows: str = "") -> tuple[int, str]:
    program = [postgres_program("psql"), crowd.dsn, "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]
    ended = subprocess.run(
        [*program, "-c", command],
        input=rows,
        capture_output=True,
        text=True,
        timeout=COPY_SECONDS_MAX,
        check=False,
    )
    return ended.returncode, (ended.stdout if ended.returncode == 0 else ended.stderr).strip()
