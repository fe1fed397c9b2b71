"""Encode catalog objects other than tables as JSON for the stash: their fields, by name; and roles
and privileges (K3 of `core/catalog.py`).

Every later version reads them: a field that is missing has its default, and fields that are unknown
are a newer version's, which does not start on an older server.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TypeAlias, cast

from sql.catalog.acl import AclItem, ObjectPrivileges
from sql.catalog.objects import OBJECT_CLASSES, CatalogObject, Subject
from sql.catalog.roles import Membership, Role

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"


def encode_object(thing: CatalogObject) -> dict[str, Json]:
    """An object with its kind."""
    body: dict[str, Json] = {field.name: getattr(thing, field.name) for field in fields(thing)}
    return {"kind": thing.kind, **body}


def decode_object(record: Mapping[str, Json]) -> CatalogObject:
    """The object that `encode_object` wrote."""
    kind = OBJECT_CLASSES.get(cast("str", record["kind"]))
    assert kind is not None, f"K3: unknown kind of object {record['kind']}"
    body = {name: _frozen(value) for name, value in record.items() if name != "kind"}
    return kind(**body)  # type: ignore[arg-type] # JSON has what the fields had


def encode_subject(subject: Subject) -> tuple[str, int | str, int | str]:
    """What something is said about."""
    return subject.kind, subject.of, subject.part


def decode_subject(record: Sequence[Json]) -> Subject:
    """The subject that `encode_subject` wrote."""
    return Subject(*cast("tuple[str, int | str, int | str]", tuple(record)))


def encode_role(role: Role) -> dict[str, Json]:
    """A role, with those that it was granted to."""
    plain = {name.name: getattr(role, name.name) for name in fields(role)}
    return {**plain, "members": [_fields(membership) for membership in role.members]}


def decode_role(record: Mapping[str, Json]) -> Role:
    """The role that `encode_role` wrote."""
    members = cast("Sequence[Mapping[str, Json]]", record["members"])
    plain = {**record, "members": tuple(Membership(**one) for one in members)}  # type: ignore[arg-type] # JSON has what the fields had
    return Role(**plain)  # type: ignore[arg-type] # as above


def encode_privileges(rights: ObjectPrivileges) -> dict[str, Json]:
    """Who owns something, and what was granted of it."""
    items = None if rights.acl is None else [_fields(item) for item in rights.acl]
    return {"owner": rights.owner, "acl": items, "version": rights.version}


def decode_privileges(record: Mapping[str, Json]) -> ObjectPrivileges:
    """What `encode_privileges` wrote."""
    items = cast("Sequence[Mapping[str, Json]] | None", record["acl"])
    acl = None if items is None else tuple(AclItem(**item) for item in items)  # type: ignore[arg-type] # as above
    return ObjectPrivileges(cast("int", record["owner"]), acl, cast("int", record["version"]))


def _fields(value: Membership | AclItem) -> dict[str, Json]:
    return {name.name: getattr(value, name.name) for name in fields(value)}


def _frozen(value: Json) -> object:
    """Lists are tuples again."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(_frozen(item) for item in value)
    return value
