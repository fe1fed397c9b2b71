"""Parts of bound definitions: what changes in the catalog, and what must be true of rows."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sql.catalog.acl import Rights
from sql.catalog.catalog import Key, Table
from sql.catalog.objects import CatalogObject, Comment, SequenceDefinition, Subject
from sql.catalog.roles import Role
from sql.errors import SqlError
from sql.plan.nodes import Plan


@dataclass(frozen=True, slots=True)
class Redefinition:
    """A table before and after."""

    before: Table
    after: Table


@dataclass(frozen=True, slots=True)
class Rewriting:
    """A table before and after, and the plan of its rows: who they are, then their new values."""

    change: Redefinition
    rows: Plan


@dataclass(frozen=True, slots=True)
class CreateSequence:
    """The session gives it its oid and state. `exists`: IF NOT EXISTS found one; notice only."""

    sequence: SequenceDefinition
    exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateObject:
    """The session gives it its oid. `exists`: IF NOT EXISTS found one; notice only. `computed`:
    what an index computes for each row; the statement fails if a constant in it does.
    """

    object: CatalogObject
    tag: str
    exists: bool = False
    notices: tuple[str, ...] = ()
    computed: tuple[Plan, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangeObjects:
    """DDL whose changes are known when it is bound. `fresh`: sequences that begin anew. `notices`:
    SQLSTATE, text, detail.
    """

    tag: str
    objects: tuple[CatalogObject, ...] = ()
    dropped: tuple[CatalogObject, ...] = ()
    tables: tuple[Redefinition, ...] = ()
    dropped_tables: tuple[Table, ...] = ()
    fresh: frozenset[int] = frozenset()
    notices: tuple[tuple[str, str, str | None], ...] = ()
    comments: tuple[Comment, ...] = ()
    rewritings: tuple[Rewriting, ...] = ()
    validations: "tuple[tuple[Table, Validation], ...]" = ()
    """What must be true of rows, each with its table as it is then."""


@dataclass(frozen=True, slots=True)
class ChangeRights:
    """Roles, owners and privileges. A role with the oid 0 gets one, wherever that stands.

    `password`: of the first of `roles`, as it was written; None: nothing is said of it.
    """

    tag: str
    roles: tuple[Role, ...] = ()
    dropped: tuple[Role, ...] = ()
    rights: tuple[tuple[Subject, Rights], ...] = ()
    password: str | None = field(default=None, repr=False)
    notices: tuple[SqlError, ...] = ()
    """Notices; those with another SQLSTATE than 00000 are warnings."""


@dataclass(frozen=True, slots=True)
class Validation:
    """Rows that an altered table must not have; the plan shows one of them, of a `key` its values.

    The rest is what the error says.
    """

    plan: Plan
    sqlstate: str
    message: str
    column: str | None = None
    constraint: str | None = None
    key: Key | None = None
    error: SqlError | None = None
    """What it raises, if that is not of the table."""
    foreign: tuple[tuple[int, ...], Table] | None = None
    """Of a foreign key: its columns, and the table that they refer to."""
    of: Table | None = None
    """The table whose rows they are, if that need not be the altered one."""


def cascades(told: Sequence[str]) -> list[tuple[str, str, str | None]]:
    """The notice about what CASCADE drops."""
    if len(told) <= 1:
        return [("00000", text, None) for text in told]
    return [("00000", f"drop cascades to {len(told)} other objects", "\n".join(told))]
