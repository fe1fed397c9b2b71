"""Parameters of the extended protocol: type OIDs declared in Parse, values given in Bind."""

from collections.abc import Sequence
from typing import Final

from coordinator import session_errors as wrong
from coordinator.pgwire.client_encodings import value_from_client
from coordinator.pgwire.messages import TEXT_FORMAT, Bind
from coordinator.pgwire.value_columns import ValueColumn, plain_column
from coordinator.pgwire.values import PLAIN_DECODERS, decode_value
from coordinator.variables.variables import Variables
from sql.binder.resolve.type_names import unresolved_type
from sql.errors import SqlError, not_supported
from sql.types.bpchar import column_type
from sql.types.catalog_types import catalog_types
from sql.types.sql_type import TYPE_NAMES_BY_OID, SqlType, Value, plain_type

_FIRST_USER_OID: Final = 16_384
_SYSTEM_TYPES: Final = {
    catalog_types()[name].oid: SqlType(name)
    for name in ("tid", "xid", "cid", "xid8", "_tid", "_xid", "_xid8")
}
"""Types of system columns."""
_UNSPECIFIED: Final = frozenset({0, 705})
"""No type, and `unknown`: to be found by the binder."""


def declared_types(oids: Sequence[int]) -> tuple[SqlType | None, ...]:
    """The types that the client declared; None where it left the choice to us."""
    return tuple(_declared(oid) for oid in oids)


def _declared(oid: int) -> SqlType | None:
    if oid in _UNSPECIFIED:
        return None
    name = TYPE_NAMES_BY_OID.get(oid)
    if name is None and oid in _SYSTEM_TYPES:
        return _SYSTEM_TYPES[oid]
    if name is None:
        if oid < _FIRST_USER_OID:
            raise not_supported(f"a parameter of the type with OID {oid}")
        return unresolved_type(oid)
    return column_type(plain_type(name))


def check_determined(declared: Sequence[SqlType | None]) -> None:
    """Raises 42P18 for a parameter whose type nothing else can tell."""
    for place, type_ in enumerate(declared, 1):
        if type_ is None:
            raise SqlError("42P18", f"could not determine data type of parameter ${place}")


def check_counts(message: Bind, wanted: int) -> None:
    """Raises 08P01 if a Bind has more or fewer values, or formats of them, than there can be."""
    given, formats = len(message.parameters), len(message.parameter_formats)
    if formats not in (0, 1, given):
        raise SqlError(
            "08P01", f"bind message has {formats} parameter formats but {given} parameters"
        )
    if given != wanted:
        raise wrong.parameter_count(message.statement, given=given, wanted=wanted)


def decode_parameters(
    message: Bind, types: Sequence[SqlType], variables: Variables
) -> tuple[Value, ...]:
    """The values of a Bind whose counts were checked. Raises 22P02, 22P03 .. for a wrong value."""
    given, formats = message.parameters, message.parameter_formats
    if not given:
        return ()
    codes = formats if len(formats) == len(given) else (*formats, TEXT_FORMAT)[:1] * len(given)
    is_utf8 = variables.encoding is None
    values: list[Value] = []
    try:
        for data, type_, code in zip(given, types, codes, strict=True):
            if data is None:
                values.append(None)
                continue
            decode = PLAIN_DECODERS[code].get(type_.name) if is_utf8 else None
            found = decode(data) if decode else _decoded(data, type_, code, variables)
            values.append(found)
    except SqlError as error:
        error.context = error.context or f"unnamed portal parameter ${len(values) + 1}"
        raise
    return tuple(values)


class BatchDecoder:
    """Decodes Binds of one statement that stand behind each other. How a parameter is decoded is
    found once for all of them; types that come again and again, as in many rows of VALUES, are
    decoded as columns. No setting changes in between.
    """

    def __init__(self, types: Sequence[SqlType], variables: Variables) -> None:
        self._types = types
        self._variables = variables
        self._formats: tuple[int, ...] | None = None
        self._columns: Sequence[ValueColumn] = ()

    def decode(self, message: Bind) -> tuple[Value, ...]:
        """See `decode_parameters`."""
        if message.parameter_formats != self._formats:
            self._formats = message.parameter_formats
            self._columns = self._columns_of(self._formats)
        try:
            return tuple(self._decode(message.parameters))
        except SqlError:
            return decode_parameters(message, self._types, self._variables)  # says which it is

    def _decode(self, given: Sequence[bytes | None]) -> Sequence[Value]:
        columns, width = self._columns, len(self._columns)
        if width == len(given):
            return [
                None if data is None else column.decode_one(data)
                for column, data in zip(columns, given, strict=True)
            ]
        values: list[Value] = [None] * len(given)
        for at, column in enumerate(columns):
            values[at::width] = column.decode(given[at::width])
        return values

    def _columns_of(self, formats: Sequence[int]) -> Sequence[ValueColumn]:
        """As few as the types and formats repeat."""
        count = len(self._types)
        codes = formats if len(formats) == count else (*formats, TEXT_FORMAT)[:1] * count
        kinds = list(zip(self._types, codes, strict=True))
        width = next(
            (w for w in range(1, count) if count % w == 0 and kinds[w:] == kinds[:-w]), count
        )
        return [self._column(type_, code) for type_, code in kinds[:width]]

    def _column(self, type_: SqlType, code: int) -> ValueColumn:
        variables = self._variables
        plain = plain_column(type_.name, code) if variables.encoding is None else None
        return plain or ValueColumn(lambda data: _decoded(data, type_, code, variables))


def _decoded(data: bytes, type_: SqlType, code: int, variables: Variables) -> Value:
    if variables.encoding is not None:
        data = value_from_client(data, type_, code, variables.encoding)
    return decode_value(data, type_, code, timezone=variables.timezone, styles=variables.styles)
