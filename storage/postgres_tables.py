"""The stash's tables in PostgreSQL, and the statements on them (`stash_postgres.py` is the rest).

    meridian.stash     format │ epoch │ session │ known_epoch   one row
    meridian.entries   collection │ key │ value │ checksum
    meridian.lease     epoch │ beat                         one row (`postgres_lease.py`)

INVARIANTS
  Y1  the epoch is compared in the same statement that writes, under a share lock on its row:
      when `fence` has returned, no transaction of an older epoch is under way any more.
  Y2  so is the session: a connection that is lost may leave a transaction under way on the server.
      A new connection takes a new session first, which waits for that transaction or refuses it.
      So it takes effect before everything sent on the new connection, or never (S3).
  Y3  several that start at once make the tables once.
  Y4  a row read has the checksum that was written with it, or raises Corrupt.
  Y5  who takes over names the new epoch twice. A program of format 1 knows one of the two columns,
      and the table refuses it from format 2 on, also if it has stood by since before (S6).

On READ COMMITTED: a statement sees what was committed when it began, but a row lock gives the
newest version of the row. Requirements are therefore read as of the statement's start, the epoch as
of the lock. Nothing can have been written between the two under this epoch and session (Y2), and
under another one the statement writes nothing.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from storage.errors import Corrupt, Fenced, RequireFailed
from storage.postgres_link import Link, Row
from storage.stash import FORMAT, Put, Require, Write, refuse_newer
from storage.types import Epoch

STATEMENT_S: Final = 10.0
"""For a statement to be answered. Larger: a network that is cut is noticed later."""

BYTES_PER_S: Final = 5_000_000
"""Time on top for large values."""

READ_S: Final = 120.0
"""For a whole collection."""

# Makes those that start at once take turns (Y3); any number that nobody else uses.
_TURN: Final = 0x4D45524944

# Also of a stash that a program of format 1 has made (Y5).
_NAME_EPOCH_TWICE: Final = """
ALTER TABLE meridian.stash ADD COLUMN IF NOT EXISTS known_epoch bigint
    CONSTRAINT epoch_is_known CHECK (format < 2 OR known_epoch IS NOT DISTINCT FROM epoch)
"""

_CREATE: Final = f"""
BEGIN;
SELECT pg_advisory_xact_lock({_TURN});
CREATE SCHEMA IF NOT EXISTS meridian;
CREATE TABLE IF NOT EXISTS meridian.stash (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    format integer NOT NULL, epoch bigint NOT NULL, session bigint NOT NULL);
{_NAME_EPOCH_TWICE};
CREATE TABLE IF NOT EXISTS meridian.entries (
    collection text COLLATE "C", key text COLLATE "C", value bytea NOT NULL,
    checksum bigint NOT NULL, PRIMARY KEY (collection, key));
ALTER TABLE meridian.entries ALTER COLUMN value SET STORAGE EXTERNAL;
CREATE TABLE IF NOT EXISTS meridian.lease (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    epoch bigint NOT NULL, beat bigint NOT NULL);
INSERT INTO meridian.stash (format, epoch, session, known_epoch) VALUES ({FORMAT}, 0, 0, 0)
    ON CONFLICT DO NOTHING;
INSERT INTO meridian.lease (epoch, beat) VALUES (0, 0) ON CONFLICT DO NOTHING;
COMMIT
"""

_FOUND: Final = """
SELECT to_regclass('meridian.stash')::text, EXISTS (
    SELECT FROM pg_attribute
    WHERE attrelid = to_regclass('meridian.stash') AND attname = 'known_epoch')
"""

_MAKE_READY: Final = f"""
BEGIN;
SELECT pg_advisory_xact_lock({_TURN});
{_NAME_EPOCH_TWICE};
COMMIT
"""

_TRANSACT: Final = """
WITH leader AS MATERIALIZED (
    SELECT epoch, session FROM meridian.stash FOR SHARE
), failed AS MATERIALIZED (
    SELECT r.place FROM unnest($3::text[], $4::text[], $5::bytea[])
        WITH ORDINALITY AS r (collection, key, value, place)
    LEFT JOIN meridian.entries e USING (collection, key)
    WHERE e.value IS DISTINCT FROM r.value ORDER BY r.place LIMIT 1
), allowed AS MATERIALIZED (
    SELECT FROM leader WHERE epoch = $1 AND session = $2 AND NOT EXISTS (SELECT FROM failed)
), removed AS (
    DELETE FROM meridian.entries e USING allowed, unnest($6::text[], $7::text[])
        AS d (collection, key)
    WHERE e.collection = d.collection AND e.key = d.key
), written AS (
    INSERT INTO meridian.entries (collection, key, value, checksum)
    SELECT w.* FROM allowed, unnest($8::text[], $9::text[], $10::bytea[], $11::bigint[]) AS w
    ON CONFLICT (collection, key)
        DO UPDATE SET value = excluded.value, checksum = excluded.checksum
)
SELECT epoch, session, (SELECT place FROM failed) FROM leader
"""

# The same, and the format (S6).
_UPGRADE: Final = _TRANSACT.replace(
    "\n)\nSELECT epoch",
    f"""
), upgraded AS (
    UPDATE meridian.stash s SET format = {FORMAT}, known_epoch = s.epoch FROM allowed
)
SELECT epoch""",
)
assert _UPGRADE != _TRANSACT, "the upgrade has a statement more"

_FENCE: Final = f"""
UPDATE meridian.stash SET epoch = epoch + 1, known_epoch = epoch + 1, session = 1
WHERE ($1::bigint IS NULL OR epoch = $1) AND format <= {FORMAT} RETURNING epoch
"""

_NEW_SESSION: Final = """
UPDATE meridian.stash SET session = session + 1 WHERE epoch = $1 RETURNING session
"""


@dataclass(frozen=True, slots=True)
class Session:
    """What a connection may write under (Y2)."""

    epoch: Epoch
    number: int


class SessionLost(Exception):
    """Another connection has taken a session since; nothing was written."""


async def make_tables(link: Link, *, make: bool) -> None:
    """Lay the stash out if need be (Y3). Raises NewerFormat, Corrupt, Determinate."""
    ((found, is_ready),) = await link.rows(_FOUND, seconds=STATEMENT_S)
    if found is None and make:
        await link.script(_CREATE, seconds=STATEMENT_S)
    elif found is None:
        raise Corrupt("the database has no stash")
    elif make and not is_ready:
        await link.script(_MAKE_READY, seconds=STATEMENT_S)
    refuse_newer(await read_format(link))


async def read_format(link: Link) -> int:
    """The format that the stash has. Raises Corrupt."""
    rows = await link.rows("SELECT format FROM meridian.stash", seconds=STATEMENT_S)
    if len(rows) != 1:
        raise Corrupt("the stash has no epoch")
    return cast(int, rows[0][0])


async def read_system(link: Link) -> str:
    """The system identifier of the cluster; empty if this role may not ask."""
    rows = await link.rows(_SYSTEM, seconds=STATEMENT_S)
    return cast(str, rows[0][0]) if rows else ""


_SYSTEM: Final = """
SELECT system_identifier::text FROM pg_control_system()
WHERE has_function_privilege('pg_control_system()', 'EXECUTE')
"""


async def increment_epoch(link: Link, expected: Epoch | None = None) -> Session | None:
    """A new epoch with its first session; None if the epoch is not the `expected` one any more.

    Raises NewerFormat (S6).
    """
    rows = await link.rows(_FENCE, expected, seconds=STATEMENT_S)
    if not rows:
        refuse_newer(await read_format(link))
    return Session(Epoch(cast(int, rows[0][0])), 1) if rows else None


async def new_session(link: Link, epoch: Epoch) -> Session:
    """The right to write on a new connection (Y2). Raises Fenced."""
    rows = await link.rows(_NEW_SESSION, epoch, seconds=STATEMENT_S)
    if not rows:
        raise await _fenced(link, epoch)
    return Session(epoch, cast(int, rows[0][0]))


async def check_epoch(link: Link, epoch: Epoch) -> None:
    """Raise Fenced unless the epoch is the newest."""
    ((stored,),) = await link.rows("SELECT epoch FROM meridian.stash", seconds=STATEMENT_S)
    if stored != epoch:
        raise Fenced(f"epoch {epoch}, the stash is at {stored}")


async def _fenced(link: Link, epoch: Epoch) -> Fenced:
    ((stored,),) = await link.rows("SELECT epoch FROM meridian.stash", seconds=STATEMENT_S)
    return Fenced(f"epoch {epoch}, the stash is at {stored}")


async def transact(
    link: Link,
    session: Session,
    writes: Sequence[Write],
    requires: Sequence[Require],
    *,
    upgrades: bool = False,
) -> None:
    """Check epoch, session and requirements, then write all (Y1, Y2). Raises SessionLost.

    `upgrades`: the stash has the present format then (S6).
    """
    final = {
        (write.collection, write.key): write.value if isinstance(write, Put) else None
        for write in writes
    }
    removed = [place for place, value in final.items() if value is None]
    written = [(*place, value) for place, value in final.items() if value is not None]
    size_bytes = sum(len(value) for _, _, value in written)
    ((epoch, number, failed),) = await link.rows(
        _UPGRADE if upgrades else _TRANSACT,
        session.epoch,
        session.number,
        [require.collection for require in requires],
        [require.key for require in requires],
        [require.value for require in requires],
        [collection for collection, _ in removed],
        [key for _, key in removed],
        [collection for collection, _, _ in written],
        [key for _, key, _ in written],
        [value for _, _, value in written],
        [_checksum(*entry) for entry in written],
        seconds=STATEMENT_S + size_bytes / BYTES_PER_S,
    )
    if epoch != session.epoch:
        raise Fenced(f"epoch {session.epoch}, the stash is at {epoch}")
    if number != session.number:
        raise SessionLost
    if failed is not None:
        require = requires[cast(int, failed) - 1]
        raise RequireFailed(f"{require.collection}/{require.key}")


async def scan(link: Link, collection: str) -> Mapping[str, bytes]:
    """All keys and values of a collection, in the order of the keys (Y4)."""
    sql = "SELECT key, value, checksum FROM meridian.entries WHERE collection = $1 ORDER BY key"
    rows = await link.rows(sql, collection, seconds=READ_S)
    return {cast(str, row[0]): _checked(collection, row) for row in rows}


async def read(link: Link, collection: str, key: str) -> bytes | None:
    """One value, or None (Y4)."""
    sql = "SELECT key, value, checksum FROM meridian.entries WHERE collection = $1 AND key = $2"
    rows = await link.rows(sql, collection, key, seconds=STATEMENT_S)
    return _checked(collection, rows[0]) if rows else None


async def verify(link: Link) -> Sequence[str]:
    """What is wrong with the entries, line by line; reads all of them."""
    rows = await link.rows(
        "SELECT collection, key, value, checksum FROM meridian.entries", seconds=READ_S
    )
    return [
        f"{collection}/{key}: {_MISMATCH}"
        for collection, key, value, checksum in rows
        if _checksum(cast(str, collection), cast(str, key), cast(bytes, value)) != checksum
    ]


_MISMATCH: Final = "the value does not match its checksum"


def _checksum(collection: str, key: str, value: bytes) -> int:
    return zlib.crc32(value, zlib.crc32(f"{collection}\0{key}\0".encode()))


def _checked(collection: str, row: Row) -> bytes:
    key, value, checksum = cast("tuple[str, bytes, int]", tuple(row))
    if _checksum(collection, key, value) != checksum:
        raise Corrupt(f"{collection}/{key}: {_MISMATCH}")
    return value
