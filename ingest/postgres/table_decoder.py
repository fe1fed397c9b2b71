"""Make changes of a table's messages: texts become values, or the record is a bad one; pure.

INVARIANTS
  F7  each message becomes a change or a bad record, or reading fails. A delete of a row that could
      not be read is neither: that row is not here.
  D1  the shape is checked at the relation message, before any row in that shape.
  D2  a row with a bad value takes the row that it supersedes with it: nothing stale stays.
"""

import json
from collections.abc import Callable, Collection, Sequence
from typing import Final, TypeAlias

from ingest.copy_text.lines import unescape_field
from ingest.postgres.pgoutput import (
    DeleteMessage,
    InsertMessage,
    RelationMessage,
    UpdateMessage,
    UpstreamField,
    UpstreamFields,
)
from ingest.postgres.upstream_types import (
    KEY_HINT,
    TypeRows,
    column_type_name,
    fits,
    matching_type,
    type_name,
)
from ingest.reader import (
    UNCHANGED,
    BadRecord,
    ChangeKind,
    ChangeRow,
    ReaderFailure,
    RecordPlace,
    Unchanged,
    UpstreamChange,
    UpstreamTable,
)
from sql.errors import SqlError
from sql.types.last_year import is_stored, last_stored, too_late
from sql.types.sql_type import SqlType, Value, format_type
from sql.types.text_input import apply_typmod, parse_text

VALUE_BYTES_MAX: Final = 64 << 10
"""So much of a bad record is kept."""

RowMessage: TypeAlias = InsertMessage | UpdateMessage | DeleteMessage
Decoded: TypeAlias = tuple[Sequence[UpstreamChange], BadRecord | None]
ParseValue: TypeAlias = Callable[[str], Value]


def value_parser(type_: SqlType) -> ParseValue:
    """How the texts of upstream's output functions are read; as COPY reads them into a table."""
    if type_.name in ("int2", "int4", "int8", "oid"):
        return int
    if type_.name == "text":
        return str
    if type_.name == "bool":
        return "t".__eq__

    def parse(text: str) -> Value:
        value = parse_text(type_.name, text, typmod=type_.typmod)
        return apply_typmod(value, type_, explicit=False)

    last = last_stored(type_)
    if last is None:
        return parse

    def parse_stored(text: str) -> Value:
        value = parse(text)
        if not is_stored(value, last):
            raise too_late(type_)
        return value

    return parse_stored


_MEND: Final = "Mend the row upstream, or leave the table out."
_SKIP: Final = "ALTER SOURCE .. SKIP RECORD leaves the record out, and tells it in the errors."


class _BadValue(Exception):
    def __init__(self, column: str, error: SqlError) -> None:
        super().__init__(error.message)
        self.code = error.sqlstate
        self.text = f'column "{column}": {error.message}'


class RowDecoder:
    """Rows of one table, whose columns are at these places in a message or line."""

    def __init__(self, table: UpstreamTable, places: Sequence[int]) -> None:
        self.table = table
        self._columns = [
            (place, value_parser(column.type), column.name)
            for place, column in zip(places, table.columns, strict=True)
        ]
        names = [column.name for column in table.columns]
        self.key = [names.index(name) for name in table.key]

    def row(self, fields: UpstreamFields, wanted: Collection[int] | None = None) -> ChangeRow:
        """The values, UNCHANGED for those that are not wanted. Raises `_BadValue`."""
        values: list[Value | Unchanged] = []
        for at, (place, parse, name) in enumerate(self._columns):
            field = fields[place]
            if wanted is not None and at not in wanted:
                values.append(UNCHANGED)
            elif field is None or field is UNCHANGED:
                values.append(field)
            else:
                assert isinstance(field, str), "all other fields are texts"
                try:
                    values.append(parse(field))
                except SqlError as error:
                    raise _BadValue(name, error) from None
        return tuple(values)

    def bad_record(self, fields: UpstreamFields, place: RecordPlace, bad: _BadValue) -> BadRecord:
        """What is told of a record that no column can take."""
        key = self._texts(fields, self.key) if self.key else None
        return BadRecord(
            self.table.reference,
            place,
            bad.code,
            bad.text,
            None if key is None else json.dumps(key).encode()[:VALUE_BYTES_MAX],
            json.dumps(self._texts(fields)).encode()[:VALUE_BYTES_MAX],
        )

    def _texts(
        self, fields: UpstreamFields, wanted: Sequence[int] | None = None
    ) -> dict[str, str | None]:
        chosen = range(len(self._columns)) if wanted is None else wanted
        found: dict[str, str | None] = {}
        for at in chosen:
            place, _, name = self._columns[at]
            field = fields[place]
            if isinstance(field, str) or field is None:
                found[name] = field
        return found

    def snapshot_row(self, fields: UpstreamFields, place: RecordPlace) -> "ChangeRow | BadRecord":
        """A row of a copy; a key that cannot be read fails with `broken`."""
        try:
            if self.key:
                self.row(fields, self.key)
        except _BadValue as bad:
            raise self.key_failure(bad, place, _MEND) from None
        try:
            return self.row(fields)
        except _BadValue as bad:
            return self.bad_record(fields, place, bad)

    def key_failure(self, bad: _BadValue, place: RecordPlace, hint: str) -> ReaderFailure:
        """Nobody can say which row the record changes."""
        return ReaderFailure(
            bad.code,
            f"key of a row of {self.table.reference} cannot be read: {bad.text}",
            hint=hint,
            broken=True,
            place=place,
        )


class TableDecoder(RowDecoder):
    """Rows of one table in one shape (D1)."""

    def __init__(self, table: UpstreamTable, relation: RelationMessage, types: TypeRows) -> None:
        _check_shape(table, relation, types)
        names = [column.name for column in relation.columns]
        super().__init__(table, [names.index(column.name) for column in table.columns])

    def changes(self, message: RowMessage, place: RecordPlace, *, skip: bool) -> Decoded:
        """What the message does. `skip`: a key that cannot be read makes it a bad record."""
        match message:
            case InsertMessage(new=new):
                return self._insert(new, place, skip=skip)
            case DeleteMessage(old=old):
                row = self._old(old)
                return ([] if row is None else [UpstreamChange(ChangeKind.DELETE, row)]), None
            case UpdateMessage():
                return self._update(message, place, skip=skip)

    def _old(self, fields: UpstreamFields) -> "ChangeRow | None":
        """The row before; None if it could not be read, and so is not here."""
        try:
            return self.row(fields, self.key or None)
        except _BadValue:
            return None

    def _insert(self, new: UpstreamFields, place: RecordPlace, *, skip: bool) -> Decoded:
        try:
            return [UpstreamChange(ChangeKind.INSERT, None, self.row(new))], None
        except _BadValue as value:
            return [], self._bad(new, place, value, skip=skip)

    def _bad(
        self, fields: UpstreamFields, place: RecordPlace, value: _BadValue, *, skip: bool
    ) -> BadRecord:
        return self._bad_key(fields, place, skip=skip) or self.bad_record(fields, place, value)

    def _bad_key(
        self, fields: UpstreamFields, place: RecordPlace, *, skip: bool
    ) -> BadRecord | None:
        if not self.key:
            return None
        try:
            self.row(fields, self.key)
        except _BadValue as bad:
            if not skip:
                raise self.key_failure(bad, place, _SKIP) from None
            found = self.bad_record(fields, place, bad)
            return BadRecord(found.reference, place, found.code, found.message, None, found.value)
        return None

    def _update(self, message: UpdateMessage, place: RecordPlace, *, skip: bool) -> Decoded:
        new = message.new
        if message.old is not None:
            # Without REPLICA IDENTITY FULL it has the key only; large keys come there alone.
            known = range(len(new)) if message.full else [self._columns[one][0] for one in self.key]
            filled = list(new)
            for at in known:
                if filled[at] is UNCHANGED:
                    filled[at] = message.old[at]
            new = filled
        # Without an old row in the message the key has stayed.
        old = self._old(new if message.old is None else message.old)
        try:
            row = self.row(new)
            if old is None and UNCHANGED in row:
                raise _BadValue("*", _LOST)
        except _BadValue as value:
            gone = [] if old is None else [UpstreamChange(ChangeKind.DELETE, old)]
            return gone, self._bad(new, place, value, skip=skip)
        if old is None:
            return [UpstreamChange(ChangeKind.INSERT, None, row)], None
        stays = self.key and all(old[at] == row[at] for at in self.key)
        return [UpstreamChange(ChangeKind.UPDATE, None if stays else old, row)], None


_LOST: Final = SqlError(
    "55000", "upstream left out unchanged values of a row that could not be read"
)


def _check_shape(table: UpstreamTable, relation: RelationMessage, types: TypeRows) -> None:
    """D1. Raises with `broken`."""
    columns = {column.name: column for column in relation.columns}
    hint = "ALTER SOURCE .. RESUME goes on at this record, after the table fits."
    for column in table.columns:
        found = columns.get(column.name)
        if found is None:
            message = f'column "{column.name}" of {table.reference} is gone upstream'
            drop = f'ALTER TABLE .. DROP COLUMN "{column.name}", then ALTER SOURCE .. RESUME.'
            raise ReaderFailure("42703", message, hint=drop, broken=True)
        if not fits(matching_type(found.type_oid, found.typmod, types), column.type):
            message = (
                f'column "{column.name}" of {table.reference} has type '
                f"{type_name(found.type_oid, found.typmod, types)} upstream, and "
                f"{format_type(column.type)} here"
            )
            raise ReaderFailure("42804", message, hint=hint, broken=True)
    if table.only:
        _check_unaltered(table, relation, types)
    in_key = {column.name for column in relation.columns if column.in_key}
    full = relation.replica_identity == "f"
    if not full and (not table.key or in_key != set(table.key)):
        wanted = ", ".join(table.key) or "all columns"
        message = f"replica identity of {table.reference} was changed upstream: it was {wanted}"
        raise ReaderFailure("55000", message, hint=KEY_HINT, broken=True)


def _check_unaltered(table: UpstreamTable, relation: RelationMessage, types: TypeRows) -> None:
    """Every column is as it was. Raises with `broken`."""
    now = {
        (column.name, column_type_name(column.type_oid, column.typmod, types))
        for column in relation.columns
    }
    altered = sorted({name for name, _ in now.symmetric_difference(table.only)})
    if altered:
        message = f"columns of {table.reference} were changed upstream: {', '.join(altered)}"
        hint = "ALTER SOURCE .. SET (schema_changes = 'ignore') goes on at this record."
        raise ReaderFailure("42804", message, hint=hint, broken=True)


def split_copy_line(line: bytes) -> list[UpstreamField]:
    """The fields of a line of COPY's text format, as COPY TO writes it with its default options."""
    # Not by `FieldSplitter`: COPY TO escapes every tab of a value, so a tab always parts fields.
    return [
        None if field == rb"\N" else unescape_field(field)
        for field in line.rstrip(b"\n").split(b"\t")
    ]
