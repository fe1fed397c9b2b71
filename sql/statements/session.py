"""Bound statements about the session and its transaction, not about data: BEGIN, SET, SHOW."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from sql.errors import SqlError


class TransactionVerb(StrEnum):
    """Transaction control."""

    BEGIN = "begin"
    START = "start transaction"
    COMMIT = "commit"
    ROLLBACK = "rollback"
    SET = "set transaction"
    SAVEPOINT = "savepoint"
    RELEASE = "release savepoint"
    ROLLBACK_TO = "rollback to savepoint"


@dataclass(frozen=True, slots=True)
class TransactionControl:
    """BEGIN, COMMIT and the like. None: not given. `isolation` as the setting's value, e.g. `read
    committed`. `name` of a savepoint, `snapshot` of SET TRANSACTION SNAPSHOT.
    """

    verb: TransactionVerb
    isolation: str | None = None
    read_only: bool | None = None
    deferrable: bool | None = None
    chain: bool = False
    name: str | None = None
    snapshot: str | None = None


@dataclass(frozen=True, slots=True)
class SetConstraints:
    """SET CONSTRAINTS. `named`: tables and names of deferrable constraints; None: ALL. `problem`:
    an error about a name, raised at execution.
    """

    named: tuple[tuple[int, str], ...] | None
    deferred: bool
    problem: SqlError | None = None


@dataclass(frozen=True, slots=True)
class SetVariable:
    """SET [LOCAL] name = value, SET .. TO DEFAULT (`value` None). Lists are joined as PostgreSQL
    does.

    `also`: further settings of the same statement (SET SESSION CHARACTERISTICS).
    """

    name: str
    value: str | None
    local: bool = False
    also: "tuple[SetVariable, ...]" = ()


@dataclass(frozen=True, slots=True)
class ShowVariable:
    """SHOW name; `all` for SHOW ALL."""

    name: str


@dataclass(frozen=True, slots=True)
class ResetVariable:
    """RESET name; `all` for RESET ALL."""

    name: str


@dataclass(frozen=True, slots=True)
class Discard:
    """DISCARD and its relatives, in lower case.

    `all`, `plans`, `temp`, `sequences`; `deallocate all`, `close all`; with `name`: `deallocate`,
    `close`.
    """

    what: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Listen:
    """LISTEN."""

    channel: str


@dataclass(frozen=True, slots=True)
class Unlisten:
    """UNLISTEN; `channel` None: UNLISTEN *."""

    channel: str | None


@dataclass(frozen=True, slots=True)
class Notify:
    """NOTIFY; a missing payload is the empty one."""

    channel: str
    payload: str


NotificationStatement: TypeAlias = Listen | Unlisten | Notify
