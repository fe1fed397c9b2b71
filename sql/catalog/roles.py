"""Roles and their memberships, as values like the catalog.

    Catalog.roles ─┐
    BUILT_IN      ─┼▶ roles_of(context) ─▶ Role by name, by oid, and what it is a member of
    login name    ─┘

INVARIANTS
  U1  a role's oid is never given to another one; each new definition has a version one higher.
  U2  objects without another owner belong to the first superuser, OWNER, who has always existed.
      While the built-in rules trust this machine (A2 of `coordinator/server/login.py`), a session
      under a name that no role has is OWNER, and sees it under that name.
  U3  a password is stored as a SCRAM verifier, which only superusers see.

Not here: permission checks. Privileges are recorded and shown; nobody is refused anything yet.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from sql.catalog.acl import OWNER

FIRST_SUPERUSER_NAME: Final = "meridian"
"""What the first superuser is called by those who have a role of their own."""
DATABASE_OWNER: Final = 6171
"""pg_database_owner: its one member is the owner of the database."""


@dataclass(frozen=True, slots=True)
class Membership:
    """A membership in the role that holds this value: `member`, granted by `grantor`."""

    member: int
    grantor: int = OWNER
    admin: bool = False
    inherit: bool = True
    set: bool = True


@dataclass(frozen=True, slots=True)
class Role:
    """A role. `limit`: of connections, -1 none. `valid_until`: of its password, microseconds.
    `members`: those that it was granted to.
    """

    oid: int
    name: str
    superuser: bool = False
    inherit: bool = True
    create_role: bool = False
    create_database: bool = False
    login: bool = False
    replication: bool = False
    bypass_rls: bool = False
    limit: int = -1
    password: str | None = field(default=None, repr=False)
    valid_until: int | None = None
    members: tuple[Membership, ...] = ()
    version: int = 0


_FIRST: Final = Role(
    OWNER,
    FIRST_SUPERUSER_NAME,
    superuser=True,
    create_role=True,
    create_database=True,
    login=True,
    replication=True,
    bypass_rls=True,
)
_PREDEFINED: Final = {
    "pg_database_owner": DATABASE_OWNER, "pg_read_all_data": 6181, "pg_write_all_data": 6182,
    "pg_monitor": 3373, "pg_read_all_settings": 3374, "pg_read_all_stats": 3375,
    "pg_stat_scan_tables": 3377, "pg_read_server_files": 4569, "pg_write_server_files": 4570,
    "pg_execute_server_program": 4571, "pg_signal_backend": 4200, "pg_checkpoint": 4544,
    "pg_maintain": 6337, "pg_use_reserved_connections": 4550, "pg_create_subscription": 6304,
    "pg_signal_autovacuum_worker": 6392,
}  # fmt: skip
ALL_STATS_ROLE: Final = _PREDEFINED["pg_read_all_stats"]
"""Its members see what all sessions do."""
SIGNAL_ROLE: Final = _PREDEFINED["pg_signal_backend"]
"""Its members end statements and sessions of others."""
_MONITORED: Final = ("pg_read_all_settings", "pg_read_all_stats", "pg_stat_scan_tables")


def _predefined(name: str, oid: int) -> Role:
    monitor = Membership(_PREDEFINED["pg_monitor"])
    return Role(oid, name, members=(monitor,) if name in _MONITORED else ())


BUILT_IN_ROLES: Final[Mapping[int, Role]] = {
    OWNER: _FIRST,
    **{oid: _predefined(name, oid) for name, oid in _PREDEFINED.items()},
}


class Roles:
    """All roles as one session sees them (U2). `login`: the name that it connected under."""

    def __init__(self, stored: Mapping[int, Role], login: str, database_owner: int = OWNER) -> None:
        self._by_oid: Mapping[int, Role] = (
            {**BUILT_IN_ROLES, **stored} if stored else BUILT_IN_ROLES
        )
        self._login = login
        self._database_owner = database_owner

    @cached_property
    def _names(self) -> Mapping[str, int]:
        names = {role.name: oid for oid, role in self._by_oid.items()}
        return {self._login: OWNER, **names} if self._login else names

    def named(self, name: str) -> Role | None:
        """The role of that name, or None."""
        oid = self._names.get(name)
        return None if oid is None else self._by_oid[oid]

    def by_oid(self, oid: int) -> Role | None:
        """The role with this oid."""
        return self._by_oid.get(oid)

    def all(self) -> Iterator[Role]:
        """All roles, by oid."""
        return (self._by_oid[oid] for oid in sorted(self._by_oid))

    def name(self, oid: int) -> str:
        """The name of a role, as pg_get_userbyid() answers."""
        if oid == OWNER and self._names[self._login or FIRST_SUPERUSER_NAME] == OWNER:
            return self._login or FIRST_SUPERUSER_NAME
        role = self._by_oid.get(oid)
        return f"unknown (OID={oid})" if role is None else role.name

    # --- membership -----------------------------------------------------------------------------

    def above(self, oid: int, how: str = "member") -> frozenset[int]:
        """The roles that a role is a member of, itself among them. `how`: `member`, by any grant;
        `usage`, whose privileges it inherits; `set`, that it may SET ROLE to; `admin`, that it may
        grant.
        """
        found = {oid}
        waiting = [oid]
        while waiting:
            member = waiting.pop()
            for role in self._granted.get(member, ()):
                if role not in found and self._counts(role, member, how):
                    found.add(role)
                    waiting.append(role)
        return frozenset(found)

    def administers(self, oid: int) -> frozenset[int]:
        """The roles that were granted to it, or a role above it, WITH ADMIN OPTION."""
        above = self.above(oid)
        return frozenset(
            role.oid
            for role in self._by_oid.values()
            for membership in role.members
            if membership.admin and membership.member in above
        )

    @cached_property
    def _granted(self) -> Mapping[int, list[int]]:
        """The roles that each was granted."""
        granted: dict[int, list[int]] = {self._database_owner: [DATABASE_OWNER]}
        for role in self._by_oid.values():
            for membership in role.members:
                granted.setdefault(membership.member, []).append(role.oid)
        return granted

    def _counts(self, role: int, member: int, how: str) -> bool:
        if role == DATABASE_OWNER and member == self._database_owner:
            return True
        grants = [one for one in self._by_oid[role].members if one.member == member]
        if how == "usage":
            return any(one.inherit for one in grants)
        return how == "member" or any(one.set for one in grants)

    def is_super(self, oid: int) -> bool:
        """Whether a role is a superuser, who has all privileges."""
        role = self._by_oid.get(oid)
        return role is not None and role.superuser

    def has(self, oid: int, target: int) -> bool:
        """Whether a role has the privileges of another role."""
        return oid == target or self.is_super(oid) or target in self.above(oid, "usage")


def is_reserved_role_name(name: str) -> bool:
    """Whether a role name is reserved for the system."""
    return name.startswith("pg_")
