"""Put messages together to whole transactions of upstream; pure.

    Begin · Relation · Insert · .. · Commit ─▶ UpstreamTransaction(end_lsn, changes, errors)

INVARIANTS
  F2  a transaction comes whole, with its Commit, or not at all.
  F6  transactions up to the position that the source began at are left out, and of a table that was
      copied later those that its copy has.
  F9  a transaction larger than `size_max` is refused before memory is.
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
    UpstreamChange,
    UpstreamTable,
)

TRANSACTION_SIZE_MAX: Final = 32 << 20
"""Bytes of messages; their changes take five to ten times as much memory. Less refuses sooner."""


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
        size_max: int = TRANSACTION_SIZE_MAX,
    ) -> None:
        self._tables = tables
        self.types = types
        self._after = after
        self._later = later or {}
        self._skip = skip
        self._size_max = size_max
        self._decoders: dict[int, TableDecoder] = {}
        self._shapes: dict[int, RelationMessage] = {}
        self._open: _Open | None = None

    @property
    def is_open(self) -> bool:
        """Whether a transaction has begun and not ended."""
        return self._open is not None

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
        if taken.size > self._size_max:
            raise self._too_large()
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

    def _too_large(self) -> ReaderFailure:
        assert self._open is not None, "F2: rows are of a transaction"
        where = format_lsn(self._open.final_lsn)
        return ReaderFailure(
            "54000",
            f"upstream transaction {where} has more than {self._size_max} bytes",
            hint="ALTER SOURCE .. RESNAPSHOT takes in its rows, or raise the limit.",
            broken=True,
            place={"lsn": where},
        )


_USER_OID: Final = 16_384
"""Oids from here on are of types that users made."""
