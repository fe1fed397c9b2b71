"""In-memory twins of the stash and the object store: deterministic, without threads or waits.

    calls ──▶ twin ── crash() ──▶ a new twin with what was durable
                          └─────▶ the old one refuses everything: its process is dead

INVARIANTS
  M1  what a call wrote is durable when it returns, as with the real ones; only objects written by
      `write_unsynced` wait for `sync`, as files written by an engine do (W3).
  M2  no call awaits anything: a call is one step of the event loop, so a simulation's seed alone
      decides what overlaps. Latency, lost calls and lost replies come from wrappers in
      `tests/resilience/sim`.
  M3  a twin that has crashed answers Indeterminate: whoever still holds it cannot know.

Not here: more than one process at once needs no support; two coordinators share one twin.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias, TypeVar

from storage.errors import (
    AlreadyExists,
    Determinate,
    Fenced,
    Indeterminate,
    NotFound,
    RequireFailed,
)
from storage.object_store import Reading, name_parts
from storage.stash import FORMAT, Put, Require, Write, refuse_newer
from storage.types import Epoch

Survival: TypeAlias = Callable[[str, bytes], bytes | None]
"""What is left of an unsynced object after a crash: whole, torn, empty, or None for gone."""


def nothing_survives(name: str, content: bytes) -> bytes | None:  # noqa: ARG001 - a Survival
    """The disk forgets every object that was not synced."""
    return None


class MemoryStash:
    """The stash in a dictionary (M1-M3)."""

    def __init__(self, *, stored_format: int = FORMAT) -> None:
        self._epoch = Epoch(0)
        self._format = stored_format
        self._collections: dict[str, dict[str, bytes]] = {}
        self._refusal: Callable[[], Exception] | None = None

    @property
    def epoch(self) -> Epoch:
        """The newest epoch; for observation."""
        return self._epoch

    async def fence(self) -> Epoch:
        """Take over: increment the epoch and return it."""
        self._check_alive()
        refuse_newer(self._format)
        self._epoch = Epoch(self._epoch + 1)
        return self._epoch

    async def read_format(self) -> int:
        """See Stash."""
        self._check_alive()
        return self._format

    async def upgrade(self, epoch: Epoch, writes: Sequence[Write]) -> None:
        """See Stash."""
        await MemoryStash.transact(self, epoch, writes)
        self._format = FORMAT

    async def transact(
        self, epoch: Epoch, writes: Sequence[Write], *, requires: Sequence[Require] = ()
    ) -> None:
        """Check the epoch and the requirements, then write all (S1, S2)."""
        self._check_alive()
        if epoch != self._epoch:
            raise Fenced(f"epoch {epoch}, the stash is at {self._epoch}")
        for require in requires:
            if self._value(require.collection, require.key) != require.value:
                raise RequireFailed(f"{require.collection}/{require.key}")
        for write in writes:
            collection = self._collections.setdefault(write.collection, {})
            if isinstance(write, Put):
                collection[write.key] = write.value
            else:
                collection.pop(write.key, None)

    @property
    def exclusive(self) -> bool:
        """See Stash: two coordinators may share a twin."""
        return False

    async def confirm(self, epoch: Epoch) -> None:
        """See Stash (S5)."""
        self._check_alive()
        if epoch != self._epoch:
            raise Fenced(f"epoch {epoch}, the stash is at {self._epoch}")

    async def scan(self, collection: str) -> Mapping[str, bytes]:
        """All keys and values of a collection, in the order of the keys."""
        self._check_alive()
        return dict(sorted(self._collections.get(collection, {}).items()))

    async def read(self, collection: str, key: str) -> bytes | None:
        """One value, or None."""
        self._check_alive()
        return self._value(collection, key)

    async def close(self) -> None:
        """Refuse everything from now on."""
        self._refusal = self._refusal or (lambda: Determinate("the stash is closed"))

    def crash(self) -> "MemoryStash":
        """The stash that the next process opens; this one is dead (M3)."""
        reborn = MemoryStash(stored_format=self._format)
        reborn._epoch = self._epoch
        reborn._collections = {name: dict(rows) for name, rows in self._collections.items()}
        self._refusal = lambda: Indeterminate("the process of this stash has crashed")
        return reborn

    def _value(self, collection: str, key: str) -> bytes | None:
        return self._collections.get(collection, {}).get(key)

    def _check_alive(self) -> None:
        if self._refusal is not None:
            raise self._refusal()


Result = TypeVar("Result")


class MemoryObjectStore:
    """The object store in two dictionaries: what is durable, and what is not yet (M1-M3)."""

    def __init__(self) -> None:
        self._durable: dict[str, bytes] = {}
        self._unsynced: dict[str, bytes] = {}
        self._modified_ms: dict[str, int] = {}
        self._crashed = False

    async def read_together(self, reading: Reading[Result]) -> Result:
        """What `reading` returns (W5)."""
        return await reading(self)

    async def create(self, name: str, content: bytes, *, modified_ms: int | None = None) -> None:
        """Write an object that must not exist yet, durably (W1, W4)."""
        self._check(name)
        if name in self._durable or name in self._unsynced:
            raise AlreadyExists(name)
        self._durable[name] = bytes(content)
        self._note_time(name, modified_ms)

    async def read(self, name: str) -> bytes:
        """The whole content, synced or not. Raises NotFound."""
        self._check(name)
        content = self._unsynced.get(name, self._durable.get(name))
        if content is None:
            raise NotFound(name)
        return content

    async def list(self, prefix: str) -> Sequence[str]:
        """The names below a directory (recursive), sorted."""
        self._check_alive()
        if prefix:
            name_parts(prefix)
        below = f"{prefix}/" if prefix else ""
        names = self._durable.keys() | self._unsynced.keys()
        return sorted(name for name in names if name.startswith(below))

    async def delete(self, name: str) -> None:
        """Remove an object; nothing happens if it is not there."""
        self._check(name)
        self._durable.pop(name, None)
        self._unsynced.pop(name, None)

    async def sync(self, names: Sequence[str], *, modified_ms: int | None = None) -> None:
        """Make objects written by `write_unsynced` durable (W3, W4). Raises NotFound."""
        self._check_alive()
        for name in names:
            self._check(name)
            if name in self._unsynced:
                self._durable[name] = self._unsynced.pop(name)
            elif name not in self._durable:
                raise NotFound(name)
            self._note_time(name, modified_ms)

    def local_path(self, name: str) -> Path:
        """There are no files here: what an engine would write goes through `write_unsynced`."""
        raise AssertionError(f"{name}: the objects of a MemoryObjectStore have no path")

    def peek(self, name: str) -> bytes:
        """The whole content, for tests that look at files without being the server."""
        return self._unsynced.get(name, self._durable.get(name, b""))

    def modified_ms(self, name: str) -> int | None:
        """The modification time that an object was given (W4), for tests; None: none."""
        return self._modified_ms.get(name)

    def write_unsynced(self, name: str, content: bytes) -> None:
        """Write an object as an engine writes a file: there at once, durable after `sync` (W3)."""
        self._check(name)
        assert name not in self._durable, f"{name}: names are never written twice"
        self._unsynced[name] = bytes(content)

    def tamper(self, name: str, content: bytes | None) -> None:
        """Change an object, or remove it, as somebody else would; for tests."""
        for objects in (self._durable, self._unsynced):
            objects.pop(name, None)
        if content is not None:
            self._durable[name] = content

    def sync_everything(self) -> None:
        """As a file system that is unmounted; for tests."""
        self._durable |= self._unsynced
        self._unsynced = {}

    def crash(self, survives: Survival = nothing_survives) -> "MemoryObjectStore":
        """The store that the next process opens (M3).

        `survives` decides what is left of unsynced objects; what is left is still unsynced.
        """
        reborn = MemoryObjectStore()
        reborn._durable = dict(self._durable)
        reborn._modified_ms = dict(self._modified_ms)
        for name, content in sorted(self._unsynced.items()):
            left = survives(name, content)
            if left is not None:
                reborn._unsynced[name] = left
        self._crashed = True
        return reborn

    def _note_time(self, name: str, modified_ms: int | None) -> None:
        if modified_ms is not None:
            self._modified_ms[name] = modified_ms

    def _check(self, name: str) -> None:
        self._check_alive()
        name_parts(name)

    def _check_alive(self) -> None:
        if self._crashed:
            raise Indeterminate("the process of this object store has crashed")
