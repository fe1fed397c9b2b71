"""What must hold of leases after every step of a core (`core/leases.py`).

L1  nobody writes a table that another transaction leases.
L2  who waits for a lock holds no lease, and nobody waits for a lease without a reason: a holder,
    one ahead in the line, a commit ahead that writes the table (L3) or defines something (L4).
"""

from collections.abc import Callable, Sequence

from coordinator.core.core import Core
from coordinator.core.group_members import GroupMember, changes_definitions

Expect = Callable[[bool, str, str], None]
"""A condition, the rule that asks for it, an explanation."""


def check_leases(core: Core, in_lanes: Sequence[GroupMember], expect: Expect) -> None:
    """See the module; `in_lanes`: members whose commit waits for the maintenance of views."""
    leases, groups = core.leases, core.groups
    waiting = {w.txn for queue in core.locks.queues() for w in queue.waiting}
    for oid, holder in leases._holders.items():
        expect(holder not in waiting, "L2", f"{holder} waits, and has a lease of {oid}")
    for member in in_lanes:
        others = {leases._holders.get(oid) for oid in member.tables()} - {None, member.holder}
        expect(not others, "L1", f"{member.request} is in a lane, {others} lease it")
    flight = groups.in_flight
    before: set[int] = set(leases._holders)
    for lease in leases._waiting:
        queued = [member for member in groups._queue if member.ticket < lease.ticket]
        under_way = (*(() if flight is None else flight.members), *in_lanes, *queued)
        ahead = {oid for member in under_way for oid in member.tables()}
        defined = bool(flight and flight.changes) or any(map(changes_definitions, queued))
        blocked = bool(lease.tables & (before | ahead)) or defined
        expect(blocked, "L2", f"{lease} waits for nobody")
        before |= lease.tables
