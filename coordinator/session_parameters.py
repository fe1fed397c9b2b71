"""Parameters of the extended protocol: type OIDs declared in Parse, values given in Bind."""

from collections.abc import Sequence
from typing import Final

from coordinator import session_errors as wrong
from coordinator.pgwire.messages import Bind
from coordinator.pgwire.values import decode_value
from sql.bind_types import unresolved
from sql.char_blanks import column_type
from sql.errors import SqlError, not_supported
from sql.styles import PLAIN, Styles
from sql.types import NAMES_BY_OID, SqlType, Value, plain_type

_FIRST_USER_OID: Final = 16_384
_UNSPECIFIED: Final = frozenset({0, 705})
"""No type, and `unknown`: to be found by the binder."""


def declared_types(oids: Sequence[int]) -> tuple[SqlType | None, ...]:
    """The types that the client declared; None where it left the choice to us."""
    return tuple(_declared(oid) for oid in oids)


def _declared(oid: int) -> SqlType | None:
    if oid in _UNSPECIFIED:
        return None
    name = NAMES_BY_OID.get(oid)
    if name is None:
        if oid < _FIRST_USER_OID:
            raise not_supported(f"a parameter of the type with OID {oid}")
        return unresolved(oid)
    return column_type(plain_type(name))


def decode_parameters(
    message: Bind, types: Sequence[SqlType], timezone: str, styles: Styles = PLAIN
) -> tuple[Value, ...]:
    """The values of a Bind. Raises 08P01 for a wrong count, 22P02, 22P03 .. for a wrong value."""
    given = message.parameters
    if len(given) != len(types):
        raise wrong.parameter_count(message.statement, given=len(given), wanted=len(types))
    if not given:
        return ()
    formats = message.parameter_formats
    if len(formats) not in (0, 1, len(given)):
        raise SqlError(
            "08P01",
            f"bind message has {len(formats)} parameter formats but {len(given)} parameters",
        )
    values: list[Value] = []
    for place, (data, type_) in enumerate(zip(given, types, strict=True)):
        code = 0 if not formats else formats[0 if len(formats) == 1 else place]
        values.append(
            None if data is None else _decoded(data, type_, code, place, timezone, styles)
        )
    return tuple(values)


def _decoded(
    data: bytes, type_: SqlType, code: int, place: int, timezone: str, styles: Styles
) -> Value:
    try:
        return decode_value(data, type_, code, timezone=timezone, styles=styles)
    except SqlError as error:
        error.context = error.context or f"unnamed portal parameter ${place + 1}"
        raise
