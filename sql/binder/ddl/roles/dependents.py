"""List the objects and privileges that keep a role from being dropped (checkSharedDependencies)."""

from collections.abc import Iterator, Mapping
from typing import Final

from sql.binder.state import Binding
from sql.catalog.acl import roles_in_acl
from sql.catalog.catalog import Catalog, Table
from sql.catalog.objects import CatalogObject, Subject
from sql.catalog.oids import schema_oid
from sql.catalog.roles import Role, Roles
from sql.types.sql_type import quoted_name

DEFAULT_KINDS: Final = {
    "r": "relations", "S": "sequences", "f": "functions", "T": "types", "n": "schemas",
    "L": "large objects",
}  # fmt: skip


def role_dependents(
    binding: Binding, roles: Roles, left: Mapping[int, Role], oid: int
) -> list[str]:
    """Lines of DETAIL, in the order of the objects' oids. `left`: the roles that remain."""
    found = [*_of_rights(binding, roles, oid), *_granted(roles, left, oid)]
    return [text for _, text in sorted(found, key=lambda line: line[0])]


def _of_rights(binding: Binding, roles: Roles, oid: int) -> Iterator[tuple[tuple[int, int], str]]:
    for subject, said in binding.context.catalog.rights.items():
        place = (_oid(subject), subject.part if isinstance(subject.part, int) else 0)
        what = object_description(binding, roles, subject)
        if subject.kind == "default":
            if subject.of == oid and said.acl is not None:
                yield place, f"owner of {what}"
        elif said.owner == oid and subject.kind != "column":
            yield place, f"owner of {what}"
        owner = said.owner
        if subject.kind == "column":
            owner = binding.context.catalog.rights.get(Subject("relation", subject.of), said).owner
        if oid in roles_in_acl(said.acl or ()) and oid != owner:
            yield place, f"privileges for {what}"


def _granted(
    roles: Roles, left: Mapping[int, Role], oid: int
) -> Iterator[tuple[tuple[int, int], str]]:
    for role in left.values():
        for one in role.members:
            if one.grantor == oid:
                member = roles.name(one.member)
                text = f"privileges for membership of role {member} in role {role.name}"
                yield (role.oid, 0), text


def _oid(subject: Subject) -> int:
    match subject.of:
        case int(oid):
            return oid
        case name:
            return schema_oid(name) if subject.kind == "schema" else 0


def object_description(binding: Binding, roles: Roles, subject: Subject) -> str:
    """An object as PostgreSQL's messages describe it (getObjectDescription)."""
    match subject.kind:
        case "schema":
            return f"schema {subject.of}"
        case "database":
            return f"database {binding.context.database}"
        case "default":
            return _default(roles, subject)
        case _:
            thing = _thing(binding.context.catalog, subject)
    if thing is None:
        return f"object {subject.of}"
    visible = thing.schema in binding.context.search_path
    name = quoted_name(thing.name)
    shown = name if visible else f"{quoted_name(thing.schema)}.{name}"
    if isinstance(thing, Table):
        if subject.kind == "column":
            assert isinstance(subject.part, int), "a column is known by its number"
            column = thing.columns[thing.ordinal_of(subject.part)].name
            return f"column {column} of table {shown}"
        return f"table {shown}"
    return f"{'type' if subject.kind == 'type' else thing.kind} {shown}"


def _default(roles: Roles, subject: Subject) -> str:
    assert isinstance(subject.of, int), "of a role"
    assert isinstance(subject.part, str), "of a kind of thing"
    things = DEFAULT_KINDS[subject.part[0]]
    text = f"default privileges on new {things} belonging to role {roles.name(subject.of)}"
    return f"{text} in schema {subject.schema}" if subject.schema else text


def _thing(catalog: Catalog, subject: Subject) -> Table | CatalogObject | None:
    table = catalog.by_oid(subject.of) if isinstance(subject.of, int) else None
    return table or next((o for o in catalog.objects.values() if o.oid == subject.of), None)
