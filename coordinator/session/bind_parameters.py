"""Parameters of the extended protocol: type OIDs declared in Parse, values given in Bind."""

from collections.abc import Sequence
from typing import Final

from coordinator import session_errors as wrong
from coordinator.pgwire.client_encodings import value_from_client
from coordinator.pgwire.messages import TEXT_FORMAT, Bind
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


def _decoded(data: bytes, type_: SqlType, code: int, variables: Variables) -> Value:
    if variables.encoding is not None:
        data = value_from_client(data, type_, code, variables.encoding)
    return decode_value(data, type_, code, timezone=variables.timezone, styles=variables.styles)
