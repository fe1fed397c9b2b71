"""Apply comments on catalog objects, and remove comments and privileges with their objects.

They are stored beside the definitions (privileges: `privilege_changes.py`): a new comment changes
no definition, so that no statement is bound again.

INVARIANTS
  Q1  comments and privileges of an object are removed with the object, in the same step.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeVar

from coordinator.core.messages.catalog_changes import (
    CatalogChange,
    PutObject,
    PutTable,
    RemoveObject,
    RemoveRole,
    RemoveSchema,
    RemoveTable,
)
from sql.catalog.catalog import Table
from sql.catalog.constraint_names import constraint_names
from sql.catalog.objects import CatalogObject, Comment, DomainDefinition, Subject, ViewDefinition
from sql.catalog.roles import BUILT_IN_ROLES, Role

V = TypeVar("V")

_OF_ROLES: Final = ("role", "default")


def put_comment(comments: dict[Subject, str], comment: Comment) -> None:
    """Say it, or nothing any more."""
    if comment.text is None:
        comments.pop(comment.subject, None)
    else:
        comments[comment.subject] = comment.text


def subject_exists(
    subject: Subject,
    tables: Mapping[tuple[str, str], Table],
    objects: Mapping[tuple[str, str, str], CatalogObject],
    schemas: set[str],
    roles: Mapping[int, Role],
) -> bool:
    """Whether there is anything to say something about."""
    if subject.kind in _OF_ROLES:
        is_somewhere = not subject.schema or subject.schema in schemas
        return is_somewhere and (subject.of in roles or subject.of in BUILT_IN_ROLES)
    if subject.kind == "schema":
        return subject.of in schemas
    if subject.kind == "database":
        return True
    found: list[Table | CatalogObject] = [*tables.values(), *objects.values()]
    return any(_has(thing, subject) for thing in found if thing.oid == subject.of)


def forget_annotations(said: dict[Subject, V], change: CatalogChange) -> None:
    """Q1, after a change."""
    if said:
        for subject in [*_gone(said, change)]:
            del said[subject]


def _gone(comments: Iterable[Subject], change: CatalogChange) -> Iterator[Subject]:
    match change:
        case RemoveSchema(name=name):
            yield from (s for s in comments if s.kind == "schema" and s.of == name)
            yield from (s for s in comments if s.kind == "default" and s.schema == name)
        case RemoveRole(role=role):
            yield from (s for s in comments if s.kind in _OF_ROLES and s.of == role.oid)
        case RemoveTable(table=thing) | RemoveObject(object=thing):
            yield from (s for s in comments if s.of == thing.oid)
        case PutTable(table=thing) | PutObject(object=thing):
            yield from (s for s in comments if s.of == thing.oid and not _has(thing, s))
        case _:
            return


def _has(thing: Table | CatalogObject, subject: Subject) -> bool:
    """Whether it has this part."""
    match subject.kind:
        case "column" if isinstance(thing, Table):
            return any(thing.number_of(at) == subject.part for at in range(len(thing.columns)))
        case "column":
            assert isinstance(subject.part, int), "a column is known by its number"
            return isinstance(thing, ViewDefinition) and subject.part <= len(thing.columns)
        case "constraint" if isinstance(thing, Table):
            return subject.part in {*constraint_names(thing)}
        case "constraint" if isinstance(thing, DomainDefinition):
            return subject.part in thing.rules
        case "index" if isinstance(thing, Table):
            return any(key.name == subject.part for key in thing.keys)
        case _:
            return True
