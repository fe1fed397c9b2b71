"""What only the SQLite stash has: locks, formats, modes, failures of the disk, kill -9."""

import asyncio
import os
import random
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from storage.errors import (
    Corrupt,
    Determinate,
    Fatal,
    Fenced,
    Indeterminate,
    Locked,
    NewerFormat,
    RequireFailed,
)
from storage.sqlite_file import StashFile, classify, open_stash_file, refuse_lossy
from storage.stash import FORMAT, Delete, Put, Require
from storage.stash_sqlite import SqliteStash
from storage.types import Epoch

CHILD = Path(__file__).parent / "stash_child.py"


class Disk(sqlite3.Connection):
    """A connection whose next statements of a kind fail as a disk does."""

    fail: tuple[str, int] | None = None

    def execute(self, sql: str, parameters: Sequence[object] = (), /) -> sqlite3.Cursor:  # type: ignore[override]
        if self.fail is not None and sql.startswith(self.fail[0]):
            raise failure(self.fail[1])
        return super().execute(sql, parameters)


def failure(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = code
    error.sqlite_errorname = f"SQLITE_{code}"
    return error


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "stash.db"


def with_stash(path: Path, story: Callable[[SqliteStash], Awaitable[None]]) -> None:
    async def whole() -> None:
        stash = await SqliteStash.open(path)
        try:
            await story(stash)
        finally:
            await stash.close()

    asyncio.run(whole())


async def nothing(stash: SqliteStash) -> None:
    pass


def failing_disk(path: Path) -> tuple[StashFile, Disk, Epoch]:
    open_stash_file(path, exclusive=False).close()
    disk = sqlite3.connect(path, isolation_level=None, factory=Disk)
    disk.execute("PRAGMA synchronous = FULL")
    file = StashFile(disk)
    return file, disk, file.fence()


def test_only_the_owner_may_read(path: Path) -> None:
    async def story(stash: SqliteStash) -> None:
        epoch = await stash.fence()
        await stash.transact(epoch, [Put("c", "k", b"secret")])
        found = sorted(path.parent.iterdir())
        assert [file.name for file in found] == ["stash.db", "stash.db-wal", "stash.db.lock"]
        for file in found:
            assert stat.S_IMODE(file.stat().st_mode) == 0o600

    before = os.umask(0)
    try:
        with_stash(path, story)
    finally:
        os.umask(before)


def test_a_second_opener_is_locked_out(path: Path) -> None:
    async def story(stash: SqliteStash) -> None:
        with pytest.raises(Locked, match=f"in use by process {os.getpid()}$"):
            await SqliteStash.open(path)
        await stash.fence()

    with_stash(path, story)
    with_stash(path, nothing)


def test_another_process_cannot_open_the_file_itself(path: Path) -> None:
    async def story(stash: SqliteStash) -> None:
        await stash.fence()
        with sqlite3.connect(path, timeout=0) as other, pytest.raises(sqlite3.OperationalError):
            other.execute("SELECT * FROM meta")
        other.close()

    with_stash(path, story)


def test_a_newer_format_is_refused_and_left_alone(path: Path) -> None:
    with_stash(path, nothing)
    connection = sqlite3.connect(path)
    # The newer one may have chosen another journal, too.
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("UPDATE meta SET value = ? WHERE name = 'format'", (FORMAT + 1,))
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with pytest.raises(NewerFormat, match=f"format {FORMAT + 1}"):
        with_stash(path, nothing)
    assert path.read_bytes() == before
    assert not path.with_name("stash.db-wal").exists()
    # The lock is free again.
    with pytest.raises(NewerFormat):
        with_stash(path, nothing)


@pytest.mark.parametrize("content", [b"not a database, but long enough to be one" * 40, b"short"])
def test_other_files_are_refused_and_left_alone(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(Corrupt):
        with_stash(path, nothing)
    assert path.read_bytes() == content


def test_another_database_is_refused_and_left_alone(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs (a)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(Corrupt, match="not a stash"):
        with_stash(path, nothing)
    assert path.read_bytes() == before


def test_an_empty_file_is_a_fresh_stash(path: Path) -> None:
    """A crash during the very first start leaves one."""
    path.touch()

    async def story(stash: SqliteStash) -> None:
        assert await stash.fence() == 1

    with_stash(path, story)


def test_a_missing_directory_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(Determinate, match=r"cannot open .*: No such file or directory"):
        with_stash(tmp_path / "missing" / "stash.db", nothing)


@pytest.mark.parametrize("setting", ["journal_mode = DELETE", "synchronous = NORMAL"])
def test_lossy_settings_are_refused(path: Path, setting: str) -> None:
    open_stash_file(path, exclusive=False).close()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    refuse_lossy(connection)
    connection.execute(f"PRAGMA {setting}")
    with pytest.raises(Determinate, match="lossy"):
        refuse_lossy(connection)
    connection.close()


@pytest.mark.parametrize(
    ("code", "working", "committing"),
    [
        (sqlite3.SQLITE_FULL, Determinate, Determinate),
        (sqlite3.SQLITE_IOERR_WRITE, Determinate, Indeterminate),
        (sqlite3.SQLITE_IOERR_FSYNC, Fatal, Fatal),
        (sqlite3.SQLITE_IOERR_DIR_FSYNC, Fatal, Fatal),
        (sqlite3.SQLITE_CORRUPT, Corrupt, Indeterminate),
        (sqlite3.SQLITE_NOTADB, Corrupt, Indeterminate),
        (sqlite3.SQLITE_NOMEM, Determinate, Indeterminate),
    ],
)
def test_what_may_be_concluded(code: int, working: type, committing: type) -> None:
    assert type(classify(failure(code), committing=False)) is working
    assert type(classify(failure(code), committing=True)) is committing


@pytest.mark.parametrize(
    ("at", "code", "outcome"),
    [
        ("BEGIN", sqlite3.SQLITE_IOERR_READ, Determinate),
        ("SELECT", sqlite3.SQLITE_IOERR_READ, Determinate),
        ("REPLACE", sqlite3.SQLITE_FULL, Determinate),
        ("DELETE", sqlite3.SQLITE_CORRUPT, Corrupt),
        ("COMMIT", sqlite3.SQLITE_FULL, Determinate),
        ("COMMIT", sqlite3.SQLITE_IOERR_WRITE, Indeterminate),
        ("COMMIT", sqlite3.SQLITE_IOERR_FSYNC, Fatal),
    ],
)
def test_a_failure_rolls_back_and_the_next_transaction_works(
    path: Path, at: str, code: int, outcome: type[Exception]
) -> None:
    file, disk, epoch = failing_disk(path)
    file.transact(epoch, [Put("c", "a", b"1")], [])
    disk.fail = (at, code)
    with pytest.raises(outcome) as raised:
        file.transact(epoch, [Put("c", "b", b"2"), Delete("c", "a")], [])
    assert type(raised.value) is outcome
    disk.fail = None
    assert not disk.in_transaction
    assert file.scan("c") == {"a": b"1"}
    file.transact(epoch, [Put("c", "c", b"3")], [])
    assert file.scan("c") == {"a": b"1", "c": b"3"}
    file.close()


def test_a_full_disk_is_determinate_and_passes(path: Path) -> None:
    """A real SQLITE_FULL, by a limit on the file's pages."""
    file, disk, epoch = failing_disk(path)
    (pages,) = disk.execute("PRAGMA page_count").fetchone()
    disk.execute(f"PRAGMA max_page_count = {pages + 3}")
    with pytest.raises(Determinate, match="full") as raised:
        file.transact(epoch, [Put("c", "big", bytes(100_000))], [])
    assert not isinstance(raised.value, Fenced | RequireFailed | Corrupt)
    file.transact(epoch, [Put("c", "small", b"1")], [])
    disk.execute("PRAGMA max_page_count = 100000")
    file.transact(epoch, [Put("c", "big", bytes(100_000))], [])
    assert list(file.scan("c")) == ["big", "small"]
    file.close()


def test_no_statement_reads_the_whole_table(path: Path) -> None:
    """Or the cost of a commit would grow with what the stash holds."""
    file, disk, epoch = failing_disk(path)
    file.close()
    statements: list[str] = []

    class Recording(Disk):
        def execute(self, sql: str, parameters: Sequence[object] = (), /) -> sqlite3.Cursor:  # type: ignore[override]
            if sql.startswith(("SELECT", "REPLACE", "DELETE", "UPDATE", "INSERT")):
                statements.append(sql)
                plan = super().execute(f"EXPLAIN QUERY PLAN {sql}", parameters).fetchall()
                scans = [row for row in plan if row[3].startswith("SCAN entries")]
                assert not scans, sql
            return super().execute(sql, parameters)

    disk = sqlite3.connect(path, isolation_level=None, factory=Recording)
    file = StashFile(disk)
    writes = [Put("c", str(n), b"1") if n % 2 else Delete("c", str(n)) for n in range(40)]
    file.transact(epoch, writes, [Require("c", "a", None), Require("c", "b", None)])
    file.transact(epoch, [Put("c", "a", b"1")], [Require("c", "b", None)])
    file.read("c", "1")
    file.scan("c")
    file.close()
    assert {sql.split()[0] for sql in statements} == {"SELECT", "REPLACE", "DELETE", "INSERT"}


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (sqlite3.SQLITE_FULL, Determinate),
        (sqlite3.SQLITE_IOERR_WRITE, Indeterminate),
        (sqlite3.SQLITE_IOERR_FSYNC, Fatal),
    ],
)
def test_the_statement_of_one_row_commits(path: Path, code: int, outcome: type[Exception]) -> None:
    """What fails in it may have been written."""
    file, disk, epoch = failing_disk(path)
    absent = [Require("c", "mark", None)]
    file.transact(epoch, [Put("c", "a", b"1")], absent)
    disk.fail = ("INSERT", code)
    with pytest.raises(outcome) as raised:
        file.transact(epoch, [Put("c", "b", b"2")], absent)
    assert type(raised.value) is outcome
    disk.fail = None
    assert not disk.in_transaction
    assert file.scan("c") == {"a": b"1"}
    file.transact(epoch, [Put("c", "c", b"3")], absent)
    assert file.scan("c") == {"a": b"1", "c": b"3"}
    file.close()


def test_a_format_that_came_since_is_not_taken_over(path: Path) -> None:
    """Without the lock, another process may have upgraded the file."""
    file = open_stash_file(path, exclusive=False)
    assert file.fence() == 1
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("UPDATE meta SET value = ? WHERE name = 'format'", (FORMAT + 1,))
    with pytest.raises(NewerFormat):
        file.fence()
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT value FROM meta WHERE name = 'epoch'").fetchone() == (1,)
    file.close()


def test_nothing_is_served_after_a_failed_sync(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(stash: SqliteStash) -> None:
        epoch = await stash.fence()

        def broken(*_: object) -> None:
            raise Fatal("fsync")

        with monkeypatch.context() as patch:
            patch.setattr(StashFile, "transact", broken)
            with pytest.raises(Fatal):
                await stash.transact(epoch, [])
        with pytest.raises(Fatal, match="before"):
            await stash.transact(epoch, [])
        with pytest.raises(Fatal, match="before"):
            await stash.read("c", "k")

    with_stash(path, story)


def test_a_failed_sync_in_a_checkpoint_is_not_swallowed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(file: StashFile, *, quiet: bool) -> None:
        raise Fatal("fsync")

    monkeypatch.setattr(StashFile, "checkpoint_if_due", broken)

    async def story(stash: SqliteStash) -> None:
        # The thread has come by a checkpoint after it opened the file.
        with pytest.raises(Fatal, match="before"):
            await stash.fence()

    with_stash(path, story)


def test_the_log_stays_bounded(path: Path) -> None:
    """Far more is written than the log may hold; checkpoints let SQLite start it again."""
    log = path.with_name("stash.db-wal")

    async def story(stash: SqliteStash) -> None:
        epoch = await stash.fence()
        for number in range(60):
            await stash.transact(epoch, [Put("c", f"k{number % 2}", bytes([number]) * 1_000_000)])
        assert await stash.read("c", "k1") == bytes([59]) * 1_000_000
        sizes.append(os.stat(log).st_size)

    sizes: list[int] = []
    with_stash(path, story)
    assert 1_000_000 < sizes[0] < 40_000_000


def test_a_flipped_byte_in_a_value_is_noticed(path: Path) -> None:
    async def write(stash: SqliteStash) -> None:
        await stash.transact(await stash.fence(), [Put("c", "a", b"precious" * 10)])
        assert await stash.verify() == []

    with_stash(path, write)
    content = path.read_bytes()
    assert content.count(b"precious" * 10) == 1
    path.write_bytes(content.replace(b"precious" * 10, b"precious" * 9 + b"precioas"))

    async def read(stash: SqliteStash) -> None:
        with pytest.raises(Corrupt, match="c/a"):
            await stash.read("c", "a")
        with pytest.raises(Corrupt, match="c/a"):
            await stash.scan("c")
        assert await stash.verify() == ["c/a: the value does not match its checksum"]

    with_stash(path, read)


def test_a_torn_log_is_cut_back_to_whole_transactions(path: Path, tmp_path: Path) -> None:
    """Whatever the log lost at its end, what is left is a prefix of the commits (C: torn tail)."""
    snapshot: dict[str, bytes] = {}

    def photograph() -> None:
        snapshot["db"] = path.read_bytes()
        snapshot["wal"] = path.with_name("stash.db-wal").read_bytes()

    async def story(stash: SqliteStash) -> None:
        epoch = await stash.fence()
        for number in range(8):
            await stash.transact(
                epoch, [Put("c", f"{number}a", b"1"), Put("d", f"{number}b", b"1")]
            )
        photograph()

    with_stash(path, story)
    draw = random.Random(3)
    seen = set()
    for number in range(25):
        torn = tmp_path / f"torn-{number}"
        torn.mkdir()
        (torn / "stash.db").write_bytes(snapshot["db"])
        wal = bytearray(snapshot["wal"])
        at = draw.randrange(len(wal) // 4, len(wal))
        if number % 2:
            wal[at] ^= 1 << draw.randrange(8)
        else:
            del wal[at:]
        (torn / "stash.db-wal").write_bytes(wal)
        file = open_stash_file(torn / "stash.db", exclusive=True)
        kept = len(file.scan("c"))
        assert list(file.scan("c")) == [f"{n}a" for n in range(kept)]
        assert list(file.scan("d")) == [f"{n}b" for n in range(kept)]
        assert file.verify() == []
        file.close()
        seen.add(kept)
    assert len(seen) > 3


@pytest.mark.parametrize("seed", range(4))
def test_kill_9_loses_nothing_acknowledged(path: Path, seed: int) -> None:
    draw = random.Random(seed)
    acknowledged: list[int] = []
    for _ in range(3):
        acknowledged += commit_until_killed(path, after=draw.randrange(1, 300))
    file = open_stash_file(path, exclusive=True)
    stored = [int.from_bytes(value, "big") for value in file.scan("numbers").values()]
    mirrored = [int.from_bytes(value, "big") for value in file.scan("mirror").values()]
    assert file.verify() == []
    file.close()
    assert stored == mirrored
    assert stored == list(range(len(stored)))
    assert acknowledged == sorted(set(acknowledged))
    assert set(acknowledged) <= set(stored)
    # Each killed process may have made one more than it could tell of.
    assert len(stored) - len(acknowledged) <= 3


def commit_until_killed(path: Path, *, after: int) -> list[int]:
    """Run the child until it has acknowledged `after` commits, kill it, return all it told."""
    command = [sys.executable, str(CHILD), str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]) as child:
        assert child.stdout is not None
        told = [child.stdout.readline() for _ in range(after)]
        child.send_signal(signal.SIGKILL)
        told += child.stdout.readlines()
    return [int(line) for line in told if line.endswith(b"\n")]
