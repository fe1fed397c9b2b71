"""What must hold of leases after every step of a core (`core/leases.py`).

L1  nobody writes a table that another transaction leases.
L2  who waits for a lock holds no lease, and nobody waits for a lease without a reason: a holder,
    one ahead in the line, a commit ahead that writes or alters the table (L3), or defines something
    and waits for no lease itself (L4).
"""

from collections.abc import Callable, Sequence

from coordinator.core.core import Core
from coordinator.core.group_members import GroupMember, changed_by, changes_definitions

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
    flight = () if groups.in_flight is None else groups.in_flight.members
    before: set[int] = set(leases._holders)
    for lease in leases._waiting:
        ahead = [m for m in (*flight, *groups._queue) if m.ticket < lease.ticket]
        changed = {oid for member in (*ahead, *in_lanes) for oid in changed_by(member)}
        defining = (member for member in ahead if changes_definitions(member))
        defined = any(not _waits_for_lease(core, member) for member in defining)
        blocked = bool(lease.tables & (before | changed)) or defined
        expect(blocked, "L2", f"{lease} waits for nobody")
        before |= lease.tables


def _waits_for_lease(core: Core, member: GroupMember) -> bool:
    """Somebody else holds a table that it changes, or has asked for it earlier."""
    changed, leases = set(changed_by(member)), core.leases
    held = {oid for oid, holder in leases._holders.items() if holder != member.holder}
    asked = {oid for w in leases._waiting if w.ticket < member.ticket for oid in w.tables}
    own = {oid for oid, holder in leases._holders.items() if holder == member.holder}
    return not changed.isdisjoint(held | (asked - own))
