"""What only the local object store has: links, modes, leftovers, the order of syncs."""

import asyncio
import errno
import os
import stat
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from storage.errors import AlreadyExists, Determinate, Fatal, Indeterminate
from storage.local_store import LocalObjectStore
from storage.object_store import ObjectReader


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "warehouse"


def tell(root: Path, story: Callable[[LocalObjectStore], Awaitable[None]]) -> None:
    store = LocalObjectStore.open(root)
    try:
        asyncio.run(story(store))
    finally:
        store.close()


class Trace:
    """Records the calls that decide about durability, and makes one fail if told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
        self.calls: list[str] = []
        self.fail: tuple[str, int] | None = None
        self._root = root.parent
        for name in ("fsync", "mkdir", "link", "unlink", "utime"):
            monkeypatch.setattr(os, name, self._traced(name, getattr(os, name)))

    def _traced(self, name: str, call: Callable[..., None]) -> Callable[..., None]:
        def traced(path: int | str, *rest: object, **options: object) -> None:
            told = f"{name} {self._told(path)}"
            self.calls.append(told)
            if self.fail is not None and told.startswith(self.fail[0]):
                raise OSError(self.fail[1], os.strerror(self.fail[1]))
            call(path, *rest, **options)

        return traced

    def _told(self, path: int | str) -> str:
        if isinstance(path, str):
            return "file" if str(os.getpid()) in path else path
        target = os.readlink(f"/proc/self/fd/{path}")
        return "file" if ".tmp/" in target else os.path.relpath(target, self._root)


def test_everything_is_durable_in_the_right_order(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(store: LocalObjectStore) -> None:
        trace = Trace(monkeypatch, root)
        await store.create("t/log/0", b"x")
        # A new directory's parent is synced before anything lies in it; the object's content
        # before its name; its name before the call returns.
        assert trace.calls == [
            "mkdir t",
            "fsync warehouse",
            "mkdir log",
            "fsync warehouse/t",
            "fsync file",
            "link file",
            "unlink file",
            "fsync warehouse/t/log",
        ] or trace.calls == [
            "mkdir t",
            "fsync warehouse",
            "mkdir log",
            "fsync warehouse/t",
            "fsync file",
            "link file",
            "fsync warehouse/t/log",
            "unlink file",
        ]
        trace.calls.clear()
        await store.create("t/log/1", b"x")
        assert sorted(trace.calls) == [
            "fsync file",
            "fsync warehouse/t/log",
            "link file",
            "unlink file",
        ]

    tell(root, story)


def test_a_modification_time_is_set_before_anybody_sees_the_object(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D6: in the sync of the content; an object that came with another time gets it with a sync."""

    async def story(store: LocalObjectStore) -> None:
        await store.create("t/0", b"x")
        trace = Trace(monkeypatch, root)
        await store.create("t/1", b"x", modified_ms=1_700_000_000_001)
        assert [call for call in trace.calls if call != "unlink file"] == [
            "utime file",
            "fsync file",
            "link file",
            "fsync warehouse/t",
        ]
        trace.calls.clear()
        await store.sync(["t/0", "t/1"], modified_ms=1_700_000_000_001)
        assert [call for call in trace.calls if call.startswith("utime")] == ["utime warehouse/t/0"]
        for name in ("t/0", "t/1"):
            assert (root / name).stat().st_mtime_ns == 1_700_000_000_001_000_000

    tell(root, story)


def test_directories_of_a_dead_process_are_synced_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have died between making and syncing them (D2)."""
    (root / "t" / "log").mkdir(parents=True)

    async def story(store: LocalObjectStore) -> None:
        trace = Trace(monkeypatch, root)
        await store.create("t/log/0", b"x")
        assert [call for call in trace.calls if call.startswith("fsync warehouse")] == [
            "fsync warehouse",
            "fsync warehouse/t",
            "fsync warehouse/t/log",
        ]

    tell(root, story)


def test_sync_reaches_files_and_all_their_directories(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(store: LocalObjectStore) -> None:
        for name in ("t/a/0", "t/a/1", "t/2"):
            path = store.local_path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"rows")
        trace = Trace(monkeypatch, root)
        await store.sync(["t/a/0", "t/a/1", "t/2"])
        synced = [call for call in trace.calls if call.startswith("fsync")]
        assert sorted(synced[:3]) == [f"fsync warehouse/t/{name}" for name in ("2", "a/0", "a/1")]
        assert set(synced[3:]) == {"fsync warehouse", "fsync warehouse/t", "fsync warehouse/t/a"}

    tell(root, story)


def test_a_deletion_is_durable(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(store: LocalObjectStore) -> None:
        await store.create("t/0", b"x")
        trace = Trace(monkeypatch, root)
        await store.delete("t/0")
        assert trace.calls == ["unlink 0", "fsync warehouse/t"]

    tell(root, story)


@pytest.mark.parametrize(
    ("at", "code", "outcome", "there"),
    [
        ("mkdir t", errno.ENOSPC, Determinate, False),
        ("fsync warehouse", errno.EIO, Fatal, False),
        ("fsync file", errno.EIO, Fatal, False),
        ("link", errno.ENOSPC, Determinate, False),
        ("link", errno.EIO, Indeterminate, False),
        ("fsync warehouse/t", errno.EIO, Fatal, True),
    ],
)
def test_what_may_be_concluded(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    at: str,
    code: int,
    outcome: type[Exception],
    there: bool,
) -> None:
    async def story(store: LocalObjectStore) -> None:
        trace = Trace(monkeypatch, root)
        trace.fail = (at, code)
        with pytest.raises(outcome) as raised:
            await store.create("t/0", b"x")
        assert type(raised.value) is outcome
        trace.fail = None
        assert await store.list("") == (["t/0"] if there else [])
        # Nothing is left of the attempt: it can be made again.
        assert os.listdir(root / ".tmp") == []
        if there:
            with pytest.raises(AlreadyExists):
                await store.create("t/0", b"x")
        else:
            await store.create("t/0", b"x")

    tell(root, story)


def test_a_failed_sync_of_staged_files_is_fatal(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(store: LocalObjectStore) -> None:
        path = store.local_path("t/0")
        path.parent.mkdir()
        path.write_bytes(b"rows")
        trace = Trace(monkeypatch, root)
        trace.fail = ("fsync warehouse/t/0", errno.EIO)
        with pytest.raises(Fatal):
            await store.sync(["t/0"])

    tell(root, story)


def test_only_the_owner_may_read(root: Path) -> None:
    async def story(store: LocalObjectStore) -> None:
        await store.create("t/log/0", b"secret")

    before = os.umask(0)
    try:
        tell(root, story)
    finally:
        os.umask(before)
    modes = {
        str(path.relative_to(root)): stat.S_IMODE(path.stat().st_mode)
        for path in [root, *root.rglob("*")]
    }
    assert modes == {".": 0o700, ".tmp": 0o700, "t": 0o700, "t/log": 0o700, "t/log/0": 0o600}


def test_links_are_refused(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")

    async def story(store: LocalObjectStore) -> None:
        os.symlink(outside, root / "t")
        os.mkdir(root / "u")
        os.symlink(outside / "secret", root / "u" / "0")
        for call in (
            lambda: store.read("t/secret"),
            lambda: store.create("t/new", b""),
            lambda: store.delete("t/secret"),
            lambda: store.sync(["t/secret"]),
            lambda: store.list("t"),
            lambda: store.read("u/0"),
            lambda: store.sync(["u/0"]),
        ):
            with pytest.raises(Determinate):
                await call()
        with pytest.raises(AlreadyExists):
            await store.create("u/0", b"")
        for name in ("t/secret", "u/0"):
            with pytest.raises(Determinate):
                store.local_path(name)
        assert await store.list("") == []
        assert store.local_path("v/0") == root / "v" / "0"

    tell(root, story)
    assert os.listdir(outside) == ["secret"]
    assert (outside / "secret").read_bytes() == b"secret"


def test_leftovers_are_cleaned_at_open_and_never_listed(root: Path) -> None:
    async def create(store: LocalObjectStore) -> None:
        await store.create("t/0", b"x")
        (root / ".tmp" / "123-0").write_bytes(b"half an obj")
        assert await store.list("") == ["t/0"]

    async def look(store: LocalObjectStore) -> None:
        assert os.listdir(root / ".tmp") == []
        assert await store.list("") == ["t/0"]

    tell(root, create)
    tell(root, look)


def test_a_root_without_a_parent_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Determinate):
        LocalObjectStore.open(tmp_path / "missing" / "warehouse")


def test_a_file_as_root_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Determinate):
        LocalObjectStore.open(tmp_path / "file")


def test_what_reads_together_waits_for_nothing_else(root: Path) -> None:
    async def waits(reader: ObjectReader) -> Sequence[str]:
        await asyncio.sleep(0)
        return await reader.list("")

    async def story(store: LocalObjectStore) -> None:
        with pytest.raises(AssertionError, match="W5"):
            await store.read_together(waits)

    tell(root, story)


def test_reading_together_follows_no_links_and_leaves_nothing_open(root: Path) -> None:
    async def linked(reader: ObjectReader) -> bytes:
        return await reader.read("link/secret")

    async def first(reader: ObjectReader) -> bytes:
        names = [name for below in ("a", "b/c", "none") for name in await reader.list(below)]
        return await reader.read(names[0])

    async def story(store: LocalObjectStore) -> None:
        await store.create("a/0", b"x")
        await store.create("b/c/0", b"x")
        (root.parent / "secret").write_bytes(b"x")
        (root / "link").symlink_to(root.parent)
        before = os.listdir("/proc/self/fd")
        with pytest.raises(Determinate):
            await store.read_together(linked)
        assert await store.read_together(first) == b"x"
        assert os.listdir("/proc/self/fd") == before

    tell(root, story)
