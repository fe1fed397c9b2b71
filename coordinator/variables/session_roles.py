"""Look up the roles of SET ROLE and SET SESSION AUTHORIZATION (check_role and its neighbour).

    who has connected ──▶ session user ──▶ current user, who owns what is created
                      SET SESSION       SET ROLE
                      AUTHORIZATION

INVARIANTS
  O1  a role is looked up when it is set; from then on the session is that oid, however the role is
      called. What is restored, by ROLLBACK or RESET, is looked up by nobody.
  O2  SET SESSION AUTHORIZATION sets `role` as well: to none, or to its default with DEFAULT.
  O3  who has connected decides who the session user may be, and the session user who the current
      one may be.

Not here: SET and its undoing (`variables.py`), the catalog to look in (`execution/settings.py`).
"""

from collections.abc import Mapping
from typing import Final

from sql.catalog.roles import Roles
from sql.errors import SqlError

ROLE: Final = "role"
SESSION_AUTHORIZATION: Final = "session_authorization"
NO_ROLE: Final = "none"


class RoleName(str):
    """The name of a role, as a setting's value, and what was found under it (O1)."""

    __slots__ = ("is_superuser", "oid")

    oid: int
    is_superuser: bool

    def __new__(cls, name: str, oid: int, *, is_superuser: bool) -> "RoleName":
        """A role of the catalog."""
        made = super().__new__(cls, name)
        made.oid = oid
        made.is_superuser = is_superuser
        return made


def find_role(roles: Roles, name: str) -> RoleName | None:
    """The role of that name."""
    found = roles.named(name)
    if found is None:
        return None
    return RoleName(roles.name(found.oid), found.oid, is_superuser=found.superuser)


def look_up_role(
    roles: Roles, setting: str, value: str, *, connected: RoleName, session_user: RoleName
) -> str:
    """The value of `role` or `session_authorization` (O3). Raises 22023, 42501."""
    if setting == ROLE and value == NO_ROLE:
        return NO_ROLE
    found = find_role(roles, value)
    if found is None:
        raise SqlError("22023", f'role "{value}" does not exist')
    if setting == ROLE:
        above = roles.above(session_user.oid, "set")
        if found.oid not in above and not roles.is_super(session_user.oid):
            raise SqlError("42501", f'permission denied to set role "{value}"')
    elif found.oid != connected.oid and not roles.is_super(connected.oid):
        raise SqlError("42501", f'permission denied to set session authorization "{value}"')
    return found


def look_up_started_roles(
    roles: Roles, connected: RoleName, parameters: Mapping[str, str]
) -> dict[str, str]:
    """The start-up parameters, with a role for its name. Raises 22023, 42501.

    The session user is the one that has connected: PostgreSQL checks another one and forgets it.
    """
    given = {name.lower(): value for name, value in parameters.items()}
    for setting in {ROLE, SESSION_AUTHORIZATION} & given.keys():
        given[setting] = look_up_role(
            roles, setting, given[setting], connected=connected, session_user=connected
        )
    given.pop(SESSION_AUTHORIZATION, None)
    return given


def look_up_stored_role(
    roles: Roles, connected: RoleName, settings: Mapping[str, str], problems: list[SqlError]
) -> Mapping[str, str]:
    """Stored settings of a role or database, with a role for its name. One that the session may
    not have is added to `problems` instead. The session user is the one that has connected.
    """
    found = dict(settings)
    found.pop(SESSION_AUTHORIZATION, None)
    if ROLE in found:
        try:
            found[ROLE] = look_up_role(
                roles, ROLE, found[ROLE], connected=connected, session_user=connected
            )
        except SqlError as error:
            problems.append(error)
            del found[ROLE]
    return found


def check_role(name: str, value: str) -> str:
    """55P02 for a name that was not looked up: outside of sessions there is no catalog."""
    if isinstance(value, RoleName) or (name == ROLE and value == NO_ROLE):
        return value
    raise SqlError("55P02", f'parameter "{name}" cannot be changed now')
