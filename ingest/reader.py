"""The contract between the coordinator and what reads an upstream.

`tests/conformance/` holds readers to it: `test_source_reader.py` and `test_slot_reader.py`.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Protocol, TypeAlias

import pyarrow as pa

from sql.types.sql_type import SqlType, Value

Position: TypeAlias = Mapping[str, int]
"""How far a source has been read, by partition; one entry for a source without partitions.

PostgreSQL: `{"lsn": n}`, the end of the last commit. A generator: `{"offset": n}`, the next row.
A position is behind another one if none of its numbers is greater and one is less.
"""


class Unchanged(Enum):
    """A value that upstream did not send, since the change leaves it as it was."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED

ChangeRow: TypeAlias = tuple["Value | Unchanged", ...]
"""A row in the order of its table's columns, as `UpstreamTable` has them."""


class ChangeKind(Enum):
    """What an upstream did to a row, or to a table."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    TRUNCATE = "truncate"


@dataclass(frozen=True, slots=True)
class UpstreamChange:
    """One change, in upstream's order.

    `old` has the row before, at least its key; None where the key stays, or none is known. `new`
    has the row after it; None for DELETE and TRUNCATE.
    """

    kind: ChangeKind
    old: "ChangeRow | None" = None
    new: "ChangeRow | None" = None

    @property
    def is_insert(self) -> bool:
        """Whether no row of before is concerned."""
        return self.kind is ChangeKind.INSERT


RecordPlace: TypeAlias = Mapping[str, int | str]
"""Where a record stands upstream, such as `{"lsn": "0/16B3748", "row": 3}`."""


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that no column can take. It goes into the source's table of errors.

    Without a `key` nobody can say which row it changes. With one, the batch deletes the row that
    the record supersedes.
    """

    reference: str
    place: RecordPlace
    code: str
    message: str
    key: bytes | None = None
    value: bytes | None = None


@dataclass(frozen=True, slots=True)
class SourceBatch:
    """Whole upstream transactions up to `upto`; changes by the name of the table upstream.

    Of one that is too large for memory it is a part, unless it `ends`: the next batch goes on
    there. Parts do not move the position. The batch that ends may have others behind it.
    """

    upto: Position
    changes: Mapping[str, Sequence[UpstreamChange]] = field(default_factory=dict)
    errors: Sequence[BadRecord] = ()
    ends: bool = True
    size: int = 0
    """Bytes, roughly as they were received."""
    newest: Position = field(default_factory=dict[str, int])
    """Where upstream ended when it was looked at last; empty: unknown."""


@dataclass(frozen=True, slots=True)
class UpstreamColumn:
    """A column as its source has it."""

    name: str
    type: SqlType
    not_null: bool = False


@dataclass(frozen=True, slots=True)
class UpstreamTable:
    """A table as its source has it; `key` names the columns that identify a row, if any do."""

    reference: str
    columns: tuple[UpstreamColumn, ...]
    key: tuple[str, ...] = ()
    unsupported: Mapping[str, str] = field(default_factory=dict)
    """Columns of types that we lack: the names of these types. They can be read as text."""
    obstacle: "ReaderFailure | None" = None
    """Why the table cannot be read; raised when somebody wants it."""
    only: tuple[tuple[str, str], ...] = ()
    """All of its columns with the names of their types, if another one stops the source."""


UpstreamIdentity: TypeAlias = Mapping[str, str]
"""By what a source is known again. Opaque: kept with the position, given back at the next start."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """What `inspect` has seen. `notices` are for the person who creates the source."""

    identity: UpstreamIdentity
    tables: tuple[UpstreamTable, ...]
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceProgress:
    """What a source remembers between two starts, with what a person has decided meanwhile."""

    position: Position
    identity: UpstreamIdentity
    later: Mapping[str, Position] = field(default_factory=dict)
    """Tables that were copied later: their changes up to there are left out."""
    skip: tuple[RecordPlace, ...] = ()
    """Records without a readable key that become bad records, instead of a failure."""


@dataclass(frozen=True, slots=True)
class SnapshotPart:
    """Some rows of a table, columns by their names upstream, and those that no column can take."""

    reference: str
    rows: pa.RecordBatch
    errors: Sequence[BadRecord] = ()


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """How much one `read` gives: it returns after `wait_ms` at the latest, maybe with nothing."""

    size: int = 8 << 20
    wait_ms: int = 1000


class ReaderFailure(Exception):
    """Reading cannot go on; `broken` means that only a person can mend it, otherwise try again."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str = "",
        broken: bool = False,
        place: RecordPlace | None = None,
    ) -> None:
        super().__init__(message)
        self.place = place
        self.code = code
        self.message = message
        self.hint = hint
        self.broken = broken


class SourceReader(Protocol):
    """Reads one source. Every method may raise `ReaderFailure`; one is called at a time.

    `acknowledge`, `newest` and `close` are the exceptions: they may come while `read` waits. After
    a failure of `read` only `close` and `start` are left.
    """

    async def inspect(self) -> Upstream:
        """What can be read. Changes nothing upstream."""
        ...

    async def prepare(self, tables: Sequence[UpstreamTable], /) -> SourceProgress:
        """Make what reading needs upstream (a slot), under the name of this source's generation.

        Returns the position of the snapshot that `snapshot` gives. What tries before have made
        for this generation goes first, but nothing of later coordinators.
        """
        ...

    def snapshot(self) -> AsyncIterator[SnapshotPart]:
        """All rows at the position that `prepare` gave; Arrow as tables store it."""
        ...

    async def start(
        self, progress: SourceProgress, tables: Sequence[UpstreamTable], /
    ) -> UpstreamIdentity:
        """Go on directly behind a position: the next `read` gives what follows.

        Fails if upstream is another one, or has lost what follows. Whoever has read before fails
        from now on. Returns the identity that is kept from now on.
        """
        ...

    async def read(self, limits: ReadLimits) -> SourceBatch:
        """See F6 and F9. A batch without changes may still move the position."""
        ...

    async def acknowledge(self, upto: Position) -> None:
        """Upstream may forget what lies up to `upto`. Cumulative; never ahead of what is given."""
        ...

    async def newest(self) -> Position:
        """A position that covers all that upstream had committed when this was called."""
        ...

    async def close(self) -> None:
        """End the connection; what is upstream stays."""
        ...

    async def release(self) -> None:
        """Remove what `prepare` made upstream; nothing happens if it is gone."""
        ...
