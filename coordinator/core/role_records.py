"""Encode roles and privileges as JSON for the stash (K3 of `core/catalog.py`).

Every later version reads them: fields are only ever added.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TypeAlias, cast

from sql.catalog.acl import AclItem, ObjectPrivileges
from sql.catalog.roles import Membership, Role

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"


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
