"""Savepoints of a session's transaction: the state that each restores, and look-up by name."""

from collections.abc import Sequence
from dataclasses import dataclass

from coordinator.transaction.deferral import DeferralMark
from coordinator.transaction.notifications import NotificationsMark
from coordinator.variables.variables import VariablesMark
from sql.errors import SqlError


@dataclass(frozen=True, slots=True)
class Savepoint:
    """`number`: the coordinator's (X5 of `transaction.py`). `serial`: portals opened since have at
    least this one.
    """

    name: str
    number: int
    serial: int
    variables: VariablesMark
    deferral: DeferralMark
    notifications: NotificationsMark
    changed_catalog: bool
    wrote: bool


def savepoint_index(savepoints: Sequence[Savepoint], name: str) -> int:
    """The index of the newest savepoint of that name. Raises 3B001."""
    for place in reversed(range(len(savepoints))):
        if savepoints[place].name == name:
            return place
    raise SqlError("3B001", f'savepoint "{name}" does not exist')
