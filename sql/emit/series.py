"""generate_series() of numerics: written out, because no engine adds them up exactly."""

from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Final

from sql.emit.scope import Scope
from sql.errors import SqlError
from sql.plan import SetCall

VALUES_MAX: Final = 1_000
"""Larger: statements of which the engines' parsers take seconds."""
_EXACT: Final = Context(prec=80)


def decimal_series(call: SetCall, scope: Scope) -> Sequence[Decimal]:
    """The values of a series of constants; 0A000 for another one."""
    known = [scope.statement.known(arg) for arg in call.args]
    values = [value[0] for value in known if value is not None]
    if len(values) < len(known):
        raise scope.statement.dialect.unsupported("generate_series of computed numerics")
    if any(value is None for value in values):
        return ()
    start, stop, *rest = (Decimal(str(value)) for value in values)
    step = rest[0] if rest else Decimal(1)
    if not step:
        raise SqlError("22023", "step size cannot equal zero")
    found: list[Decimal] = []
    value = start
    while value <= stop if step > 0 else value >= stop:
        found.append(value)
        if len(found) > VALUES_MAX:
            raise scope.statement.dialect.unsupported("a long generate_series of numerics")
        value = _EXACT.add(value, step)
    return found


def constants(values: Sequence[Decimal], call: SetCall, scope: Scope) -> list[str]:
    """The values as texts."""
    return [scope.statement.constant(value, call.type) for value in values]
