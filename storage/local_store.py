"""Store objects as files of a local directory, created atomically and synced.

    create:  .tmp/<n> ── write, sync ── link(2) to the name ── sync directory ──▶ durable
                 └ unlinked afterwards; left over after a crash: removed at the next open

INVARIANTS
  D1  an object appears by link(2), which fails if the name is taken: nothing is overwritten (W1).
  D2  a directory is used for the first time in a process only after all directories above it are
      durable; a process before may have died between making and syncing one.
  D3  every step down from the root refuses symbolic links, so that no name leaves it (W2).
  D4  files and directories that we make are for the owner only.
  D6  a modification time is set before the link and is durable with the content (W4).
  D5  a failed sync is Fatal; whatever fails before the link did not happen.

Unfinished objects lie in one directory of their own and not beside their name: finding leftovers
costs nothing in a large warehouse, and no Delta reader ever meets one. Directories that become
empty stay: removing one would race with whoever creates the next object in it.
"""

import asyncio
import errno
import io
import itertools
import os
import secrets
from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from storage.errors import AlreadyExists, Determinate, Fatal, Indeterminate, NotFound
from storage.object_store import RESERVED, Reading, name_parts
from storage.threads import Threads

Result = TypeVar("Result")

# Enough to overlap the syncs of a flush; more would only queue at the disk.
_THREADS = 4

_READ_BYTES = 1 << 16
"""Log entries are smaller, most of them. Larger: more memory is set aside for each."""

_MS = 1_000_000
"""Nanoseconds, as files have them."""

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


class LocalObjectStore:
    """See the module; made by `open`. Its methods run on a few threads of its own."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._threads = Threads(_THREADS, thread_name_prefix="store")
        self._numbers = itertools.count()
        # Several processes, on several machines, may share the directory of unfinished objects.
        self._process = f"{os.getpid()}-{secrets.token_hex(4)}"
        # Directories that are durable, with all above them, and no links (D2, D3).
        self._known: set[tuple[str, ...]] = {()}

    @classmethod
    def open(cls, root: Path, *, shared: bool = False) -> "LocalObjectStore":
        """The store at `root`, made if its parent exists; removes what unfinished creates left.

        The caller holds the lock of the data directory: leftovers are nobody's work in progress. In
        a shared one they may be, so they stay until `remove_unfinished`.
        """
        with _failures(str(root)):
            with suppress(FileExistsError):
                root.mkdir(0o700)
            with _opened(root.parent, os.O_RDONLY | os.O_DIRECTORY) as parent:
                _sync(parent, str(root.parent))
        store = cls(root.resolve())
        with _failures(RESERVED), store._directory((RESERVED,), make=True) as unfinished:
            if not shared:
                _empty(unfinished)
        return store

    async def remove_unfinished(self) -> None:
        """Remove what others have not finished; it fails them, so they must have been deposed."""
        await self._on_thread(self._remove_unfinished)

    async def read_together(self, reading: Reading[Result]) -> Result:
        """What `reading` returns (W5): on one thread, without a hand-over for each object."""
        return await self._on_thread(lambda: self._read_together(reading))

    async def create(self, name: str, content: bytes, *, modified_ms: int | None = None) -> None:
        """Write an object that must not exist yet, durably (W1, W4)."""
        await self._on_thread(lambda: self._create(name, content, modified_ms))

    async def read(self, name: str) -> bytes:
        """The whole content. Raises NotFound."""
        return await self._on_thread(lambda: self._read(name))

    async def list(self, prefix: str) -> Sequence[str]:
        """The names below a directory (recursive), sorted."""
        return await self._on_thread(lambda: self._list(prefix))

    async def delete(self, name: str) -> None:
        """Remove an object, durably; nothing happens if it is not there."""
        await self._on_thread(lambda: self._delete(name))

    async def sync(self, names: Sequence[str], *, modified_ms: int | None = None) -> None:
        """Make objects written through `local_path` durable, with their directories (W3, W4)."""
        files = [self._on_thread(partial(self._sync_file, name, modified_ms)) for name in names]
        await asyncio.gather(*files)
        directories = sorted({name_parts(name)[:-1] for name in names})
        await self._on_thread(lambda: self._sync_directories(directories))

    def local_path(self, name: str) -> Path:
        """Where engines find an object; the writer makes parents on demand. Refuses links (W2)."""
        parts = name_parts(name)
        path = self._root.joinpath(*parts)
        if parts[:-1] not in self._known and not path.parent.resolve().is_relative_to(self._root):
            raise Determinate(f"{name}: a directory is a link out of the root")
        if path.is_symlink():
            raise Determinate(f"{name}: is a link")
        return path

    def close(self) -> None:
        """Finish what is under way and end the threads."""
        self._threads.shutdown()

    async def _on_thread(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _read_together(self, reading: Reading[Result]) -> Result:
        with _failures("."):
            root = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        reader = _DirectReader(root)
        try:
            return _finished(reading(reader))
        finally:
            reader.close()
            os.close(root)

    def _create(self, name: str, content: bytes, modified_ms: int | None) -> None:
        *parents, last = name_parts(name)
        with (
            _failures(name),
            self._directory(tuple(parents), make=True) as directory,
            self._unfinished(content, modified_ms) as (unfinished, number),
        ):
            _link(name, (unfinished, number), (directory, last))
            _sync(directory, name)

    @contextmanager
    def _unfinished(self, content: bytes, modified_ms: int | None) -> Generator[tuple[int, str]]:
        """A synced file without its name yet: its directory, and what it is called there."""
        number = f"{self._process}-{next(self._numbers)}"
        with self._directory((RESERVED,), make=False) as directory:
            try:
                with _opened(number, _NEW_FILE, directory) as file:
                    _write(file, content)
                    if modified_ms is not None:
                        _set_modified(file, modified_ms)
                    _sync(file, number)
                yield directory, number
            finally:
                # What cannot be removed now is removed at the next open.
                with suppress(OSError):
                    os.unlink(number, dir_fd=directory)

    def _remove_unfinished(self) -> None:
        with _failures(RESERVED), self._directory((RESERVED,), make=False) as unfinished:
            _empty(unfinished, but=f"{self._process}-")

    def _read(self, name: str) -> bytes:
        with _failures(name), self._file(name) as file:
            return _content(file)

    def _list(self, prefix: str) -> Sequence[str]:
        parts = name_parts(prefix) if prefix else ()
        below = f"{prefix}/" if prefix else ""
        try:
            with _failures(prefix), self._directory(parts, make=False) as directory:
                return sorted(_names(directory, below))
        except NotFound:
            return []

    def _delete(self, name: str) -> None:
        *parents, last = name_parts(name)
        with (
            suppress(NotFound),
            _failures(name),
            self._directory(tuple(parents), make=False) as directory,
        ):
            os.unlink(last, dir_fd=directory)
            _sync(directory, name)

    def _sync_file(self, name: str, modified_ms: int | None) -> None:
        with _failures(name), self._file(name) as file:
            if modified_ms is not None and os.fstat(file).st_mtime_ns != modified_ms * _MS:
                # A file of another user's coordinator keeps the time that it came with.
                with suppress(PermissionError):
                    _set_modified(file, modified_ms)
            _sync(file, name)

    def _sync_directories(self, directories: Sequence[tuple[str, ...]]) -> None:
        for parts in directories:
            name = "/".join(parts)
            with _failures(name), self._directory(parts, make=True) as directory:
                _sync(directory, name)

    @contextmanager
    def _file(self, name: str) -> Generator[int]:
        *parents, last = name_parts(name)
        with (
            self._directory(tuple(parents), make=False) as directory,
            _opened(last, _OLD_FILE, directory) as file,
        ):
            yield file

    @contextmanager
    def _directory(self, parts: tuple[str, ...], *, make: bool) -> Generator[int]:
        """A directory, reached step by step (D3); with `make` it is there and durable (D2)."""
        descriptor = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for depth, part in enumerate(parts, start=1):
                unsure = make and parts[:depth] not in self._known
                if unsure:
                    with suppress(FileExistsError):
                        os.mkdir(part, 0o700, dir_fd=descriptor)
                    _sync(descriptor, part)
                parent = descriptor
                descriptor = os.open(part, _DIRECTORY, dir_fd=parent)
                os.close(parent)
                if unsure:
                    self._known.add(parts[:depth])
            yield descriptor
        finally:
            os.close(descriptor)


class _DirectReader:
    """An ObjectReader whose methods never wait. Reading what was listed costs an open and a read:
    the last directory stays open.
    """

    def __init__(self, root: int) -> None:
        self._root = root
        self._directory: int | None = None
        self._parts: tuple[str, ...] = ()

    async def read(self, name: str) -> bytes:
        """The whole content. Raises NotFound."""
        *parents, last = name_parts(name)
        try:
            file = os.open(last, _OLD_FILE, dir_fd=self._opened(tuple(parents)))
            try:
                return _content(file)
            finally:
                os.close(file)
        except OSError as error:
            raise _failure(name, error) from error

    async def list(self, prefix: str) -> Sequence[str]:
        """The names below a directory (recursive), sorted."""
        below = f"{prefix}/" if prefix else ""
        try:
            directory = self._opened(name_parts(prefix) if prefix else ())
            with os.scandir(directory) as entries:
                found = [*entries]
            if all(map(_is_file, found)):
                return sorted([f"{below}{entry.name}" for entry in found])
            return sorted(_names(directory, below))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _failure(prefix, error) from error

    def close(self) -> None:
        """The directory that is open."""
        if self._directory is not None:
            os.close(self._directory)
            self._directory = None

    def _opened(self, parts: tuple[str, ...]) -> int:
        """A directory, reached step by step (D3)."""
        if not parts:
            return self._root
        if self._directory is not None and parts == self._parts:
            return self._directory
        self.close()
        descriptor = self._root
        for part in parts:
            parent = descriptor
            try:
                descriptor = os.open(part, _DIRECTORY, dir_fd=parent)
            finally:
                if parent != self._root:
                    os.close(parent)
        self._directory, self._parts = descriptor, parts
        return descriptor


def _finished(reading: Coroutine[object, None, Result]) -> Result:
    """The result of a coroutine that never waits."""
    try:
        reading.send(None)
    except StopIteration as ended:
        result: Result = ended.value
        return result
    reading.close()
    raise AssertionError("W5: it awaits its reader and nothing else")


@contextmanager
def _opened(path: str | Path, flags: int, directory: int | None = None) -> Generator[int]:
    descriptor = os.open(path, flags, 0o600, dir_fd=directory)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _empty(unfinished: int, *, but: str | None = None) -> None:
    for leftover in os.listdir(unfinished):
        if but is None or not leftover.startswith(but):
            # Whoever made it may be at it, too.
            with suppress(FileNotFoundError):
                os.unlink(leftover, dir_fd=unfinished)


def _is_file(entry: os.DirEntry[str]) -> bool:
    return entry.is_file(follow_symlinks=False)


def _names(directory: int, below: str) -> Iterator[str]:
    with os.scandir(directory) as entries:
        for entry in entries:
            name = f"{below}{entry.name}"
            if _is_file(entry):
                yield name
            elif entry.is_dir(follow_symlinks=False) and name != RESERVED:
                with _opened(entry.name, _DIRECTORY, directory) as inner:
                    yield from _names(inner, f"{name}/")


def _content(file: int) -> bytes:
    content = os.read(file, _READ_BYTES)
    # Less than was asked for need not be the end.
    more = os.read(file, _READ_BYTES)
    return content + more + io.FileIO(file, closefd=False).readall() if more else content


def _write(file: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        written = os.write(file, left)
        left = left[written:]


def _set_modified(file: int, modified_ms: int) -> None:
    os.utime(file, ns=(modified_ms * _MS, modified_ms * _MS))


def _link(name: str, source: tuple[int, str], target: tuple[int, str]) -> None:
    try:
        os.link(source[1], target[1], src_dir_fd=source[0], dst_dir_fd=target[0])
    except FileExistsError as error:
        raise AlreadyExists(name) from error
    except OSError as error:
        if error.errno == errno.EIO:
            raise Indeterminate(f"{name}: {error.strerror}") from error
        raise


def _sync(descriptor: int, name: str) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise Fatal(f"{name}: sync failed: {error.strerror}") from error


@contextmanager
def _failures(name: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise _failure(name, error) from error


def _failure(name: str, error: OSError) -> Determinate:
    return (
        NotFound(name)
        if isinstance(error, FileNotFoundError)
        else Determinate(f"{name}: {error.strerror}")
    )
