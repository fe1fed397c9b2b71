"""Parts of bound DDL: changed catalog objects, and checks that existing rows must pass."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sql.catalog.acl import ObjectPrivileges
from sql.catalog.catalog import Key, Table
from sql.catalog.objects import CatalogObject, Comment, SequenceDefinition, Subject
from sql.catalog.roles import Role
from sql.catalog.stored_settings import SettingScope
from sql.errors import SqlError
from sql.plan.nodes import Plan


@dataclass(frozen=True, slots=True)
class Redefinition:
    """A table's definition before and after a change."""

    before: Table
    after: Table


@dataclass(frozen=True, slots=True)
class TableRewrite:
    """A changed table, and the plan of its rows: identities, then new values."""

    change: Redefinition
    rows: Plan


@dataclass(frozen=True, slots=True)
class CreateSequence:
    """CREATE SEQUENCE; the session allocates oid and state. `exists`: IF NOT EXISTS found one."""

    sequence: SequenceDefinition
    exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateObject:
    """CREATE of another object; the session allocates its oid. `exists`: IF NOT EXISTS found one;
    notice only. `computed`: the expressions of an index; if a constant in one fails, so does the
    statement.
    """

    object: CatalogObject
    tag: str
    exists: bool = False
    notices: tuple[str, ...] = ()
    computed: tuple[Plan, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangeObjects:
    """DDL whose changes are known when it is bound. `fresh`: oids of sequences that restart.
    `notices`: SQLSTATE, text, detail.
    """

    tag: str
    objects: tuple[CatalogObject, ...] = ()
    dropped: tuple[CatalogObject, ...] = ()
    tables: tuple[Redefinition, ...] = ()
    dropped_tables: tuple[Table, ...] = ()
    fresh: frozenset[int] = frozenset()
    notices: tuple[tuple[str, str, str | None], ...] = ()
    comments: tuple[Comment, ...] = ()
    rewritings: tuple[TableRewrite, ...] = ()
    validations: "tuple[tuple[Table, Validation], ...]" = ()
    """Checks of existing rows, each with its table's new definition."""


@dataclass(frozen=True, slots=True)
class StoredSetting:
    """A change of what sessions of a scope start with. `name` None: RESET ALL; `value` None: RESET,
    or FROM CURRENT if `is_current`.
    """

    scope: SettingScope
    name: str | None
    value: str | None = None
    is_current: bool = False


@dataclass(frozen=True, slots=True)
class ChangePrivileges:
    """Changes of roles, owners, privileges, and of what sessions start with. The oid 0 of a new
    role is replaced everywhere.

    `password`: of the first of `roles`, as it was written; None: unchanged.
    """

    tag: str
    roles: tuple[Role, ...] = ()
    dropped: tuple[Role, ...] = ()
    rights: tuple[tuple[Subject, ObjectPrivileges], ...] = ()
    password: str | None = field(default=None, repr=False)
    notices: tuple[SqlError, ...] = ()
    """Notices; those with another SQLSTATE than 00000 are warnings."""
    setting: StoredSetting | None = None


@dataclass(frozen=True, slots=True)
class Validation:
    """Rows that an altered table must not have. The plan returns one; for a `key`, its values.

    The other fields are those of the error.
    """

    plan: Plan
    sqlstate: str
    message: str
    column: str | None = None
    constraint: str | None = None
    key: Key | None = None
    error: SqlError | None = None
    """The error to raise, if it does not belong to the table."""
    foreign: tuple[tuple[int, ...], Table] | None = None
    """Of a foreign key: its columns, and the referenced table."""
    of: Table | None = None
    """The table whose rows they are, if it may differ from the altered one."""


def drop_cascade_notices(told: Sequence[str]) -> list[tuple[str, str, str | None]]:
    """The notices about objects that CASCADE drops."""
    if len(told) <= 1:
        return [("00000", text, None) for text in told]
    return [("00000", f"drop cascades to {len(told)} other objects", "\n".join(told))]
