"""One SQLite file as a stash: the blocking half, on one thread (`stash_sqlite.py` is the rest).

    meta      name │ value                          `format`, `epoch`
    entries   collection │ key │ value │ checksum

INVARIANTS
  Q1  the file is in WAL mode with synchronous=FULL, and says so when asked: a COMMIT returns after
      the log is synced. Anything less loses acknowledged commits in silence.
  Q2  a failed COMMIT is Determinate only where SQLite cannot have written its commit frame (disk
      full); else Indeterminate; a failed sync is Fatal.
  Q3  a row read has the checksum that was written with it, or raises Corrupt.
  Q4  a file of a newer format, or one that is no stash, is left as it is.

Checkpoints are ours, not SQLite's own: an automatic checkpoint runs inside COMMIT, before we can
acknowledge it, and swallows its errors, even a failed sync of the database file, after which the
log would be overwritten. Here they run between transactions, while nobody waits if possible. The
log is never truncated: overwriting it in place syncs faster than growing it.

A statement that waits for the disk gives up the interpreter lock, and getting it back can be slow
under load. So a transaction is few statements: BEGIN, one check, one per 16 rows, COMMIT. What puts
one row under one requirement, as a commit does, is a single statement (`_put_alone`).
"""

import os
import sqlite3
import zlib
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from storage.errors import (
    Corrupt,
    Determinate,
    Fatal,
    Fenced,
    Indeterminate,
    RequireFailed,
    StorageError,
)
from storage.stash import FORMAT, Put, Require, Write, refuse_newer
from storage.types import Epoch

_ROWS_MAX = 16
# About 8 MB of log before a checkpoint waits for a quiet moment, 32 MB before it does not wait.
# More: rarer and cheaper checkpoints; a longer log to read at start (about 10 ms for 8 MB).
_LOG_PAGES_DUE = 2_000
_LOG_PAGES_MAX = 8_000
_PAGE_BYTES = 4_096

_SYNC_FAILED = {sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC}
_NOT_COMMITTED = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY}

_EPOCH = "(SELECT value FROM meta WHERE name = 'epoch')"
_VALUE = "(SELECT value FROM entries WHERE collection = ? AND key = ?)"
_PUT_ALONE = (
    f"INSERT INTO entries SELECT ?, ?, ?, ? WHERE {_EPOCH} = ? AND {_VALUE} IS ?"
    " ON CONFLICT (collection, key)"
    " DO UPDATE SET value = excluded.value, checksum = excluded.checksum"
)

_Row = tuple[str, str, bytes, int]


class StashFile:
    """See the module. Every method may block on the disk; one thread at a time."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._log_pages = 0

    def fence(self) -> Epoch:
        """Increment the epoch, durably, and return it."""
        with self._transaction():
            # Another process may have changed the format since the file was opened (S6).
            refuse_newer(self._format())
            self._connection.execute("UPDATE meta SET value = value + 1 WHERE name = 'epoch'")
            row = self._connection.execute(f"SELECT {_EPOCH}").fetchone()
        return Epoch(row[0])

    def read_format(self) -> int:
        """The format that the stash has."""
        with _failures():
            return self._format()

    def upgrade(self, epoch: Epoch, writes: Sequence[Write]) -> None:
        """As `transact`, and the stash has the present format then (S6)."""
        with self._transaction():
            self._write(epoch, writes, ())
            self._connection.execute("UPDATE meta SET value = ? WHERE name = 'format'", (FORMAT,))

    def transact(self, epoch: Epoch, writes: Sequence[Write], requires: Sequence[Require]) -> None:
        """Check the epoch and the requirements, then write all (S1, S2, S4)."""
        if (
            len(writes) == 1
            and len(requires) == 1
            and isinstance(write := writes[0], Put)
            and self._put_alone(epoch, write, requires[0])
        ):
            self._log_pages += 2 + len(write.value) // _PAGE_BYTES
            return
        with self._transaction():
            self._write(epoch, writes, requires)

    def _put_alone(self, epoch: Epoch, write: Put, require: Require) -> bool:
        """Put one row in one statement, a transaction of its own; False: nothing was written.

        Why not is asked by the way of many statements, which finds the same.
        """
        collection, key, value = write.collection, write.key, write.value
        row = (collection, key, value, _checksum(collection, key, value))
        need = (epoch, require.collection, require.key, require.value)
        try:
            # The statement commits: what fails may have been written.
            with _failures(committing=True):
                return self._connection.execute(_PUT_ALONE, (*row, *need)).rowcount == 1
        except BaseException:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise

    def _write(self, epoch: Epoch, writes: Sequence[Write], requires: Sequence[Require]) -> None:
        final = {
            (write.collection, write.key): write.value if isinstance(write, Put) else None
            for write in writes
        }
        puts = [
            (collection, key, value, _checksum(collection, key, value))
            for (collection, key), value in final.items()
            if value is not None
        ]
        removals = [key for key, value in final.items() if value is None]
        self._check(epoch, requires)
        self._put(puts)
        self._remove(removals)
        self._log_pages += 1 + len(final) + sum(len(row[2]) for row in puts) // _PAGE_BYTES

    def confirm(self, epoch: Epoch) -> None:
        """Raise Fenced unless the epoch is the newest (S5)."""
        with _failures():
            self._check(epoch, ())

    def scan(self, collection: str) -> Mapping[str, bytes]:
        """All keys and values of a collection, in the order of the keys (Q3)."""
        sql = "SELECT key, value, checksum FROM entries WHERE collection = ? ORDER BY key"
        with _failures():
            rows = self._connection.execute(sql, (collection,)).fetchall()
        return {key: _checked(collection, key, value, checksum) for key, value, checksum in rows}

    def read(self, collection: str, key: str) -> bytes | None:
        """One value, or None (Q3)."""
        sql = "SELECT value, checksum FROM entries WHERE collection = ? AND key = ?"
        with _failures():
            row = self._connection.execute(sql, (collection, key)).fetchone()
        return None if row is None else _checked(collection, key, *row)

    def checkpoint_if_due(self, *, quiet: bool) -> None:
        """Move the log into the database if it has grown enough. Raises Fatal, Determinate."""
        if self._log_pages >= (_LOG_PAGES_DUE if quiet else _LOG_PAGES_MAX):
            # Counted from zero also if it fails, so that a full disk is not asked at every commit.
            self._log_pages = 0
            with _failures():
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def verify(self) -> Sequence[str]:
        """What is wrong with the file, line by line; empty if nothing is."""
        try:
            with _failures():
                rows = self._connection.execute("PRAGMA integrity_check").fetchall()
                entries = self._connection.execute("SELECT * FROM entries").fetchall()
        except Corrupt as error:
            return [str(error)]
        return [line for (line,) in rows if line != "ok"] + [
            f"{collection}/{key}: {_MISMATCH}"
            for collection, key, value, checksum in entries
            if _checksum(collection, key, value) != checksum
        ]

    def close(self) -> None:
        """Let go of the file; SQLite folds the log into it if it can."""
        with _failures():
            self._connection.close()

    @contextmanager
    def _transaction(self) -> Generator[None]:
        with _failures():
            self._connection.execute("BEGIN IMMEDIATE")
        try:
            with _failures():
                yield
            with _failures(committing=True):
                self._connection.execute("COMMIT")
        except BaseException:
            # The failure is on its way; a rollback that fails, too, has nothing to add.
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise

    def _format(self) -> int:
        (stored,) = self._connection.execute(
            "SELECT value FROM meta WHERE name = 'format'"
        ).fetchone()
        return int(stored)

    def _check(self, epoch: Epoch, requires: Sequence[Require]) -> None:
        columns = ", ".join([_EPOCH, *[_VALUE] * len(requires)])
        keys = [part for require in requires for part in (require.collection, require.key)]
        stored, *values = self._connection.execute(f"SELECT {columns}", keys).fetchone()
        if stored != epoch:
            raise Fenced(f"epoch {epoch}, the stash is at {stored}")
        for require, value in zip(requires, values, strict=True):
            if value != require.value:
                raise RequireFailed(f"{require.collection}/{require.key}")

    def _put(self, rows: Sequence[_Row]) -> None:
        for start in range(0, len(rows), _ROWS_MAX):
            piece = rows[start : start + _ROWS_MAX]
            places = ", ".join(["(?, ?, ?, ?)"] * len(piece))
            values = [value for row in piece for value in row]
            self._connection.execute(f"REPLACE INTO entries VALUES {places}", values)

    def _remove(self, keys: Sequence[tuple[str, str]]) -> None:
        for start in range(0, len(keys), _ROWS_MAX):
            piece = keys[start : start + _ROWS_MAX]
            # Each pair finds its row by the primary key; `(collection, key) IN (VALUES ..)` would
            # read the whole table.
            places = " OR ".join(["(collection = ? AND key = ?)"] * len(piece))
            values = [value for key in piece for value in key]
            self._connection.execute(f"DELETE FROM entries WHERE {places}", values)


def open_stash_file(path: Path, *, exclusive: bool) -> StashFile:
    """Open or make the file. Raises Determinate, NewerFormat, Corrupt: nothing has changed (Q4).

    `exclusive` keeps every other process out of the file itself, and the log's index in memory.
    """
    _create_if_missing(path)
    uri = f"{path.absolute().as_uri()}?mode=rw"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None)
    try:
        with _failures():
            _prepare(connection, exclusive=exclusive)
    except BaseException:
        connection.close()
        raise
    return StashFile(connection)


def _create_if_missing(path: Path) -> None:
    """An empty file for the owner only; SQLite gives its log the same mode."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        raise Determinate(f"cannot open {path}: {error.strerror}") from error


def _prepare(connection: sqlite3.Connection, *, exclusive: bool) -> None:
    # Exclusive before the log is first touched, or SQLite makes a shared index file.
    connection.execute(f"PRAGMA locking_mode = {'EXCLUSIVE' if exclusive else 'NORMAL'}")
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if tables:
        _check_format(connection, tables)
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.execute("PRAGMA synchronous = FULL")
    # On a Mac, fsync alone does not reach the disk.
    connection.execute("PRAGMA fullfsync = ON")
    connection.execute("PRAGMA checkpoint_fullfsync = ON")
    connection.execute("PRAGMA wal_autocheckpoint = 0").fetchall()
    # Removed batches need no overwriting with zeros.
    connection.execute("PRAGMA secure_delete = OFF").fetchall()
    refuse_lossy(connection)
    if not tables:
        _create_tables(connection)


def _check_format(connection: sqlite3.Connection, tables: set[str]) -> None:
    if not {"meta", "entries"} <= tables:
        raise Corrupt("the file is a SQLite database, but not a stash")
    meta = dict(connection.execute("SELECT name, value FROM meta"))
    for name in ("format", "epoch"):
        # Without an epoch nobody would be fenced off.
        if not isinstance(meta.get(name), int):
            raise Corrupt(f"the stash has no {name}")
    refuse_newer(meta["format"])


def refuse_lossy(connection: sqlite3.Connection) -> None:
    """Raise Determinate unless the connection syncs every commit (Q1)."""
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    (synchronous,) = connection.execute("PRAGMA synchronous").fetchone()
    if mode != "wal" or synchronous < 2:
        raise Determinate(f"lossy settings: journal_mode {mode}, synchronous {synchronous}")


def _create_tables(connection: sqlite3.Connection) -> None:
    # One transaction: a crash leaves an empty file or a stash.
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER) WITHOUT ROWID")
    connection.execute(
        "CREATE TABLE entries (collection TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL,"
        " checksum INTEGER NOT NULL, PRIMARY KEY (collection, key)) WITHOUT ROWID"
    )
    connection.execute("INSERT INTO meta VALUES ('format', ?), ('epoch', 0)", (FORMAT,))
    connection.execute("COMMIT")


_MISMATCH = "the value does not match its checksum"


def _checksum(collection: str, key: str, value: bytes) -> int:
    return zlib.crc32(value, zlib.crc32(f"{collection}\0{key}\0".encode()))


def _checked(collection: str, key: str, value: bytes, checksum: int) -> bytes:
    if _checksum(collection, key, value) != checksum:
        raise Corrupt(f"{collection}/{key}: {_MISMATCH}")
    return value


@contextmanager
def _failures(*, committing: bool = False) -> Generator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise classify(error, committing=committing) from error


def classify(error: sqlite3.Error, *, committing: bool) -> StorageError:
    """What the caller may conclude from a failure of SQLite (Q2)."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    assert code is not None, f"misuse of sqlite3: {error}"
    text = f"{error.sqlite_errorname}: {error}"
    primary = code & 0xFF
    if code in _SYNC_FAILED:
        return Fatal(text)
    if committing:
        return Determinate(text) if primary in _NOT_COMMITTED else Indeterminate(text)
    if primary in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        return Corrupt(text)
    return Determinate(text)
