"""Put messages together to whole transactions of upstream; pure.

    Begin · Relation · Insert · .. · Commit ─▶ UpstreamTransaction(end_lsn, changes, errors)
                                └ large: taken in parts before its Commit has come

INVARIANTS
  F2  a transaction ends with its Commit; what is taken before is told to be a part of it.
  F6  transactions up to the position that the source began at are left out, and of a table that was
      copied later those that its copy has.
  F9  a record larger than `record_max` is refused. Of a transaction, memory has what was not taken.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ingest.postgres.pgoutput import (
    BeginMessage,
    CommitMessage,
    DeleteMessage,
    InsertMessage,
    LogicalMessage,
    OriginMessage,
    PgoutputMessage,
    RelationMessage,
    TruncateMessage,
    TypeMessage,
    UpdateMessage,
    format_lsn,
)
from ingest.postgres.table_decoder import RowMessage, TableDecoder
from ingest.postgres.upstream_types import TypeRows
from ingest.reader import (
    BadRecord,
    ChangeKind,
    ReaderFailure,
    RecordPlace,
    SourceBatch,
    UpstreamChange,
    UpstreamTable,
)

RECORD_SIZE_MAX: Final = 32 << 20
"""Bytes of a message; its values take several times as much memory. Less refuses more rows."""


@dataclass(slots=True)
class UpstreamTransaction:
    """A transaction that upstream has committed; `end_lsn` is the position behind it."""

    end_lsn: int = 0
    changes: dict[str, list[UpstreamChange]] = field(default_factory=dict)
    errors: list[BadRecord] = field(default_factory=list)
    size: int = 0


@dataclass(slots=True)
class _Open:
    """The transaction between its Begin and its Commit."""

    final_lsn: int
    taken: UpstreamTransaction = field(default_factory=UpstreamTransaction)
    records: int = 0
    parted: bool = False


class TransactionAssembler:
    """Takes messages in order. Raises `ReaderFailure` at a record that nobody can take."""

    def __init__(
        self,
        tables: Mapping[int, UpstreamTable],
        types: TypeRows,
        *,
        after: int,
        later: Mapping[str, int] | None = None,
        skip: Sequence[RecordPlace] = (),
        record_max: int = RECORD_SIZE_MAX,
    ) -> None:
        self._tables = tables
        self.types = types
        self._after = after
        self._later = later or {}
        self._skip = skip
        self._record_max = record_max
        self._decoders: dict[int, TableDecoder] = {}
        self._shapes: dict[int, RelationMessage] = {}
        self._open: _Open | None = None

    @property
    def is_open(self) -> bool:
        """Whether a transaction has begun and not ended."""
        return self._open is not None

    @property
    def open_size(self) -> int:
        """Bytes of the transaction that has begun, as far as they were not taken."""
        return 0 if self._open is None else self._open.taken.size

    def take_part(self) -> UpstreamTransaction:
        """What there is of the transaction that has begun (F2); its end is not known."""
        assert self._open is not None, "F2: a part is of a transaction"
        taken, self._open.taken = self._open.taken, UpstreamTransaction()
        self._open.parted = True
        return taken

    @property
    def is_parted(self) -> bool:
        """Whether parts of the transaction that has begun were taken."""
        return self._open is not None and self._open.parted

    def needs_types(self, message: RelationMessage) -> bool:
        """Whether a table of ours has a type that was made after `types` were asked."""
        return message.oid in self._tables and any(
            column.type_oid >= _USER_OID and column.type_oid not in self.types
            for column in message.columns
        )

    def feed(self, message: PgoutputMessage, size: int) -> UpstreamTransaction | None:
        """The transaction that the message ends (F2)."""
        match message:
            case BeginMessage(final_lsn=final_lsn):
                assert self._open is None, "F2: transactions come one after the other"
                self._open = _Open(final_lsn)
            case CommitMessage(end_lsn=end_lsn):
                return self._commit(end_lsn)
            case RelationMessage():
                self._shapes[message.oid] = message
                self._decoders.pop(message.oid, None)
            case InsertMessage() | UpdateMessage() | DeleteMessage():
                self._take_row(message, size)
            case TruncateMessage(relations=relations):
                self._truncate(relations)
            case TypeMessage() | OriginMessage() | LogicalMessage():
                pass
        return None

    def _commit(self, end_lsn: int) -> UpstreamTransaction | None:
        assert self._open is not None, "F2: a Commit ends a transaction"
        taken = self._open.taken
        self._open = None
        taken.end_lsn = end_lsn
        return taken if end_lsn > self._after else None

    def _is_left_out(self, reference: str) -> bool:
        """F6. A commit that begins before a position ends at or before it."""
        assert self._open is not None, "F2: rows are of a transaction"
        return self._open.final_lsn < max(self._after, self._later.get(reference, 0))

    def _take_row(self, message: RowMessage, size: int) -> None:
        assert self._open is not None, "F2: rows are of a transaction"
        self._open.records += 1
        table = self._tables.get(message.relation)
        if table is None or self._is_left_out(table.reference):
            return
        taken = self._open.taken
        taken.size += size
        if size > self._record_max:
            raise self._too_large(table)
        place: RecordPlace = {"lsn": format_lsn(self._open.final_lsn), "row": self._open.records}
        decoder = self._decoder(message.relation, table)
        changes, bad = decoder.changes(message, place, skip=place in self._skip)
        if changes:
            taken.changes.setdefault(table.reference, []).extend(changes)
        if bad is not None:
            taken.errors.append(bad)

    def _decoder(self, relation: int, table: UpstreamTable) -> TableDecoder:
        """Made at the first row in a shape, so that a shape without rows breaks nothing."""
        decoder = self._decoders.get(relation)
        if decoder is None:
            decoder = TableDecoder(table, self._shapes[relation], self.types)
            self._decoders[relation] = decoder
        return decoder

    def _truncate(self, relations: Sequence[int]) -> None:
        assert self._open is not None, "F2: TRUNCATE is of a transaction"
        self._open.records += 1
        for relation in relations:
            table = self._tables.get(relation)
            if table is not None and not self._is_left_out(table.reference):
                changes = self._open.taken.changes.setdefault(table.reference, [])
                # What was there before it has gone, with its memory; errors stay, as they happened.
                changes[:] = [UpstreamChange(ChangeKind.TRUNCATE)]

    def _too_large(self, table: UpstreamTable) -> ReaderFailure:
        return ReaderFailure(
            "54000",
            f"a row of {table.reference} has more than {self._record_max} bytes",
            hint="Leave the table out, or make it again without the column (exclude_columns).",
            broken=True,
        )


def batch_of(
    taken: Sequence[UpstreamTransaction], upto: int, newest: int, *, ends: bool = True
) -> SourceBatch:
    """These transactions as one batch. `ends`: not a part of one."""
    changes: dict[str, list[UpstreamChange]] = {}
    for one in taken:
        for name, rows in one.changes.items():
            changes.setdefault(name, []).extend(rows)
    errors = [bad for one in taken for bad in one.errors]
    size = sum(one.size for one in taken)
    there = {"lsn": newest} if newest else {}
    return SourceBatch({"lsn": upto}, changes, errors, ends=ends, size=size, newest=there)


_USER_OID: Final = 16_384
"""Oids from here on are of types that users made."""
