"""The subscriptions that a session has open, how it reads each, and how one ends its statement.

INVARIANTS
  V1  a FETCH ends where a client may go on later: behind rows that it was given, or behind a step
      of which it was given all.
  V2  a FETCH without a time waits for one row, and gives what is there then. One with a time gives
      what came until then. What is there is what the core offers at that moment: writers who never
      stop do not make it longer.
"""

import asyncio
from collections.abc import Callable, Generator, Hashable, Sequence
from contextlib import contextmanager

import pyarrow as pa

from coordinator.pgwire.messages import DataRows
from sql.errors import SqlError
from storage.types import Timestamp


class Encodings(dict[Hashable, Sequence[DataRows]]):
    """A batch that several subscribers are told, as it was encoded for one of them, by format."""


def _nobody(_: SqlError) -> None:
    """Before the session has begun."""


class Following:
    """See the module."""

    def __init__(self) -> None:
        self.open = 0
        """How many there are."""
        self.statements = 0
        """How many of the statements of the transaction began one."""
        self.interrupt: Callable[[SqlError], None] = _nobody
        """Ends the statement that runs, if any."""


class ChangeReader:
    """How the rows of one subscription are read: by a statement of its own, or by FETCHes."""

    def __init__(self) -> None:
        self.reads = False
        """Whether the statement that runs reads them."""
        self._fetches = False
        self._deadline: float | None = None
        self._has_given = False
        self._last: Timestamp | None = None
        self.shared: tuple[pa.RecordBatch, Encodings] | None = None
        """The batch that it is given, if others are told the same."""

    def encodings(self, batch: pa.RecordBatch) -> Encodings | None:
        """What others have made of the batch; None: nobody else is told this."""
        if self.shared is None or self.shared[0] is not batch:
            return None
        return self.shared[1]

    @contextmanager
    def reading(self) -> Generator[None]:
        """A statement reads from here on."""
        self.reads = True
        try:
            yield
        finally:
            self.reads = False

    @contextmanager
    def fetching(self, timeout_us: int | None) -> Generator[None]:
        """A FETCH reads from here on, and ends by itself (V2)."""
        self._fetches, self._has_given, self._last = True, False, None
        self._deadline = None
        if timeout_us is not None:
            self._deadline = asyncio.get_running_loop().time() + timeout_us / 1e6
        try:
            yield
        finally:
            self._fetches = False

    def ends_at(self, given: pa.RecordBatch) -> bool:
        """Rows were given; true: a FETCH ends here, since these are none."""
        self._has_given = self._has_given or given.num_rows > 0
        return not given.num_rows

    @property
    def owes_nothing(self) -> bool:
        """Whether an error may end it here: a client forgets the rows that came with an error."""
        return not (self._fetches and self._has_given)

    def patience(self) -> float | None:
        """How many seconds it waits for more; None: for ever."""
        if not self._fetches:
            return None
        if self._deadline is not None:
            return max(self._deadline - asyncio.get_running_loop().time(), 0)
        return 0 if self._has_given else None

    def took(self, upto: Timestamp) -> None:
        """The core offers changes up to there: if its time is over, these are the last (V2)."""
        if self._last is None and self.patience() == 0:
            self._last = upto

    def is_content(self, reached: Timestamp) -> bool:
        """Whether a FETCH ends behind a step (V1)."""
        return self._fetches and self._last is not None and reached >= self._last
