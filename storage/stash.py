"""The stash: a small, durable, transactional key-value store.

    collection ─┬─ key ─ value        e.g. `oracle` / `system` / 8 bytes
                └─ key ─ value

INVARIANTS
  S1  a transaction is all or nothing, and durable (power failure included) when it returns.
  S2  a transaction with another epoch than the stash's raises Fenced and writes nothing, whether
      its requirements hold or not.
  S3  transactions of one epoch take effect in the order they were handed over.
  S4  Determinate: nothing was written. Indeterminate: it may have been.
  S5  `confirm` returns only if the epoch was the newest at some moment after it was called.
  S6  a stash has a format. A program that does not know it neither opens the stash nor takes it
      over, also if it opened the stash before the format changed.

Implementations: `stash_sqlite.py` (embedded default), `stash_postgres.py` (several coordinators),
`memory.py` (the twin). One suite proves all: `tests/conformance/test_stash.py`. What the
collections mean is said by those who own them: `txns.py` (commits, marks, cuts), the coordinator's
catalog and oracle.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol, TypeAlias, runtime_checkable

from storage.errors import NewerFormat
from storage.fast_dataclass import fast_dataclass
from storage.types import Epoch

FORMAT: Final = 3
"""The format of the stash, of everything in it and of the warehouse beside it. 1: a commit lies in
several entries (`former_commits.py`). 2: rows of a commit are always Arrow (`codec.py`)."""


def refuse_newer(stored: int) -> None:
    """Raise NewerFormat if a stash has a format that this program does not know (S6)."""
    if stored > FORMAT:
        raise NewerFormat(f"the stash has format {stored}, this Meridian knows up to {FORMAT}")


@fast_dataclass(frozen=True, slots=True)
class Put:
    """Set a key to a value, whether it was there or not."""

    collection: str
    key: str
    value: bytes


@fast_dataclass(frozen=True, slots=True)
class Delete:
    """Remove a key; nothing happens if it is not there."""

    collection: str
    key: str


@fast_dataclass(frozen=True, slots=True)
class Require:
    """The transaction happens only if the key has this value (None: is absent)."""

    collection: str
    key: str
    value: bytes | None


Write: TypeAlias = Put | Delete

Ended: TypeAlias = Callable[[Exception | None], None]
"""Told on the loop how something has ended: what it has raised, if anything."""


class Stash(Protocol):
    """See the module. Methods may wait; calls may overlap and are served in order (S3)."""

    @property
    def exclusive(self) -> bool:
        """Whether nobody can take over while this is open: then there is nothing to confirm."""
        ...

    async def fence(self) -> Epoch:
        """Take over: durably increment the epoch and return it. Older epochs are fenced from now
        on. Raises NewerFormat (S6).
        """
        ...

    async def read_format(self) -> int:
        """The format that the stash has (S6)."""
        ...

    async def upgrade(self, epoch: Epoch, writes: Sequence[Write]) -> None:
        """As `transact`; the same transaction gives the stash the format of this program (S6)."""
        ...

    async def transact(
        self, epoch: Epoch, writes: Sequence[Write], *, requires: Sequence[Require] = ()
    ) -> None:
        """Check the epoch and the requirements, then write all, durably (S1, S2).

        Of several writes to one key the last one counts. Once handed over it is carried out, also
        if the caller is cancelled. Raises RequireFailed, Fenced, Determinate (e.g. disk full),
        Indeterminate, Fatal.
        """
        ...

    async def confirm(self, epoch: Epoch) -> None:
        """Nobody has taken over yet (S5). Raises Fenced, Determinate: then nothing is known.

        Waits for no transaction that was handed over before.
        """
        ...

    async def scan(self, collection: str) -> Mapping[str, bytes]:
        """All keys and values of a collection, in the order of the keys (by code point)."""
        ...

    async def read(self, collection: str, key: str) -> bytes | None:
        """One value, or None."""
        ...

    async def close(self) -> None:
        """Let go of files and locks; transactions handed over before are finished first."""
        ...


@runtime_checkable
class PromptStash(Protocol):
    """A stash that takes a transaction over at once, so that nobody needs a task to wait for it."""

    def hand_over(
        self, epoch: Epoch, writes: Sequence[Write], requires: Sequence[Require], ended: Ended
    ) -> None:
        """As `transact`. `ended` is told once, later than this call, what `transact` raises."""
        ...
