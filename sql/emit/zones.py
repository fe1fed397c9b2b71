"""The zones that calls name, where the name is known when they are emitted."""

from datetime import tzinfo

from sql.emit.scope import Scope
from sql.plan import Call, SetCall
from sql.timezones import find_named_zone, find_zone, fixed_offset


def argument_zone(call: Call | SetCall, place: int, name: str, scope: Scope) -> tzinfo | None:
    """What the argument at `place`, this name, means; None for no zone. The last argument is the
    session's zone (F3 of `sql/functions.py`).
    """
    if place == len(call.args) - 1:
        return find_zone(name)
    session = scope.statement.known(call.args[-1])
    assert session is not None, "the session's zone is a constant"
    return find_named_zone(name, str(session[0]))


def is_utc(zone: tzinfo | None) -> bool:
    """Whether its clock always shows UTC."""
    return zone is not None and fixed_offset(zone) == 0
