"""Resolve the time zones that calls name by constants."""

from datetime import tzinfo
from functools import cache
from importlib.resources import files
from zoneinfo import ZoneInfo

from sql.emit.state import Scope
from sql.plan.nodes import Call, SetCall
from sql.types.datetime.timezones import find_named_zone, find_zone, fixed_offset


def argument_zone(call: Call | SetCall, place: int, name: str, scope: Scope) -> tzinfo | None:
    """The zone that the argument at `place`, of this name, stands for; None for no zone. The last
    argument is the session's zone (F3 of `sql/functions/table.py`).
    """
    if place == len(call.args) - 1:
        return find_zone(name)
    session = scope.statement.known(call.args[-1])
    assert session is not None, "the session's zone is a constant"
    return find_named_zone(name, str(session[0]))


def is_utc(zone: tzinfo | None) -> bool:
    """Whether the zone's clock always shows UTC."""
    return zone is not None and fixed_offset(zone) == 0


def has_java_rules(zone: tzinfo | None) -> bool:
    """Whether Java knows the zone by the same name, with the same rules."""
    # Java reads abbreviations and POSIX offsets as something else.
    return isinstance(zone, ZoneInfo) and "/" in zone.key and zone.key not in _other_in_java()


@cache
def _other_in_java() -> frozenset[str]:
    text = files("sql").joinpath("data/java_zones.txt").read_text("ascii")
    return frozenset(line for line in text.splitlines() if not line.startswith("#"))
