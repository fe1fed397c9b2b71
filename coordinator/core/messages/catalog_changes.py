"""What DDL changes in the catalog: the parts of a ChangeCatalog."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from sql.catalog.acl import ObjectPrivileges
from sql.catalog.catalog import ReadHold, Table, Timeline
from sql.catalog.objects import CatalogObject, Comment, ExactView, Subject
from sql.catalog.roles import Role
from sql.catalog.stored_settings import SettingScope


@dataclass(frozen=True, slots=True)
class PutTable:
    """Create a table, or replace its definition, its name and schema included."""

    table: Table


@dataclass(frozen=True, slots=True)
class RemoveTable:
    """Drop a table; its shard stays readable to those who read before."""

    table: Table


@dataclass(frozen=True, slots=True)
class PutSchema:
    """Create a schema."""

    name: str


@dataclass(frozen=True, slots=True)
class RemoveSchema:
    """Drop an empty schema."""

    name: str


@dataclass(frozen=True, slots=True)
class PutTimeline:
    """Create a timeline."""

    timeline: Timeline


@dataclass(frozen=True, slots=True)
class RemoveTimeline:
    """Drop a timeline that no table is in."""

    name: str


@dataclass(frozen=True, slots=True)
class PutReadHold:
    """Create a named read hold."""

    hold: ReadHold


@dataclass(frozen=True, slots=True)
class RemoveReadHold:
    """Drop a named read hold."""

    name: str


@dataclass(frozen=True, slots=True)
class PutObject:
    """Create a sequence, view, index or type, or replace its definition, its name included."""

    object: CatalogObject


@dataclass(frozen=True, slots=True)
class RemoveObject:
    """Drop it."""

    object: CatalogObject


@dataclass(frozen=True, slots=True)
class PutComment:
    """Say something about what is there, or nothing any more."""

    comment: Comment


@dataclass(frozen=True, slots=True)
class PutRole:
    """Create a role, or replace its definition, its name included."""

    role: Role


@dataclass(frozen=True, slots=True)
class RemoveRole:
    """Drop a role that nothing belongs to and nobody granted anything."""

    role: Role


@dataclass(frozen=True, slots=True)
class PutPrivileges:
    """Who owns something, and what was granted of it."""

    subject: Subject
    rights: ObjectPrivileges


@dataclass(frozen=True, slots=True)
class PutSettings:
    """What sessions of a scope start with, instead of what was `before`."""

    scope: SettingScope
    before: tuple[str, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AttachView:
    """The stored rows of a materialized view are exact from here on."""

    oid: int
    view: ExactView


class LeftBecause(StrEnum):
    """Why a commit has left a view behind."""

    LATE = "too late"
    """Its rows did not come within the budget."""
    GIVEN_UP = "given up"
    """The query has failed, or no engine could run it."""
    BUSY = "busy"
    """Late workers are busy still."""
    MANY_ROWS = "many rows"
    """Too many rows of inputs have changed, or rows were staged in files."""
    CONFLICT = "conflict"
    """A member lost its validation twice, or something has changed since its rows were computed."""
    DEFINITION = "definition"
    """What its query rests on is defined otherwise."""
    NO_PROGRAM = "no program"
    """Nobody knows how to follow it."""


@dataclass(frozen=True, slots=True)
class LeaveView:
    """They are not any more. `because`: for who counts; it is not recorded."""

    oid: int
    because: LeftBecause | None = field(default=None, compare=False)


CatalogChange: TypeAlias = (
    PutObject | RemoveObject | PutTable | RemoveTable | PutSchema | RemoveSchema | PutTimeline
    | RemoveTimeline | PutReadHold | RemoveReadHold | PutComment | AttachView | LeaveView
    | PutRole | RemoveRole | PutPrivileges | PutSettings
)  # fmt: skip
