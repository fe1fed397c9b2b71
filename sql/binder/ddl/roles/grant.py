"""GRANT, REVOKE and ALTER DEFAULT PRIVILEGES (aclchk.c).

Privileges are stored and shown, but not enforced yet. A role without grant option therefore grants
in the owner's name.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pglast import ast
from pglast.enums import DropBehavior, GrantTargetType, ObjectType

from sql.binder.ddl.roles.grant_targets import relation_to_grant, type_to_grant
from sql.binder.resolve.catalog_lookup import schema_exists
from sql.binder.resolve.database_names import elsewhere
from sql.binder.resolve.role_names import current_role, grantees, resolve_role, roles_of
from sql.binder.state import Binding
from sql.catalog.acl import (
    ALL_PRIVILEGES,
    PRIVILEGE_NAMES,
    GrantOperation,
    ObjectPrivileges,
    apply_grant,
    default_acl,
    grantable_letters,
    is_same_acl,
    ordered_letters,
    privilege_letter,
    sorted_acl,
)
from sql.catalog.catalog import Table
from sql.catalog.objects import CatalogObject, Subject, ViewDefinition
from sql.catalog.ownership import (
    DATABASE_SUBJECT,
    DEFAULT_ACL_LETTERS,
    OwnedObject,
    effective_acl,
    object_privileges,
    owned_object,
    owned_schema,
)
from sql.catalog.roles import Role, Roles
from sql.catalog.system_catalogs import SYSTEM_SCHEMAS
from sql.errors import SqlError, not_supported, undefined_function, undefined_schema
from sql.functions.table import functions
from sql.parser.option_values import options_by_name
from sql.parser.statement_names import object_type_name
from sql.parser.syntax import Node, is_a, string_values
from sql.statements.ddl import ChangePrivileges

_TARGETS: Final = {
    ObjectType.OBJECT_TABLE: "table",
    ObjectType.OBJECT_SEQUENCE: "sequence",
    ObjectType.OBJECT_SCHEMA: "schema",
    ObjectType.OBJECT_DATABASE: "database",
    ObjectType.OBJECT_TYPE: "type",
    ObjectType.OBJECT_DOMAIN: "domain",
    ObjectType.OBJECT_FUNCTION: "function",
    ObjectType.OBJECT_PROCEDURE: "function",
    ObjectType.OBJECT_ROUTINE: "function",
    ObjectType.OBJECT_LARGEOBJECT: "large object",
}
_RELATIONS: Final = ordered_letters(ALL_PRIVILEGES["table"] + ALL_PRIVILEGES["sequence"])


@dataclass(slots=True)
class _Change:
    """What a statement makes of rights, thing by thing."""

    binding: Binding
    roles: Roles
    acting: Role
    is_grant: bool
    grantees: tuple[int, ...]
    option: bool
    cascade: bool
    after: dict[Subject, ObjectPrivileges] = field(default_factory=dict[Subject, ObjectPrivileges])
    notices: list[SqlError] = field(default_factory=list[SqlError])

    def grant(self, thing: OwnedObject, letters: str) -> None:
        """Grant or revoke these of it."""
        if not letters:
            return
        rights = self.after.get(thing.subject) or object_privileges(
            self.binding.context.catalog, thing
        )
        acl = effective_acl(rights, thing.kind)
        owner = rights.owner
        if thing.kind == "column":
            table = OwnedObject(
                Subject("relation", thing.subject.of), "table", thing.schema, thing.name
            )
            owner = object_privileges(self.binding.context.catalog, table).owner
        grantor = owner
        if not self.roles.has(self.acting.oid, owner):
            mine = self.roles.above(self.acting.oid, "usage")
            able = [
                one
                for one in sorted(mine)
                if set(letters) <= set(grantable_letters(acl, one, owner))
            ]
            grantor = self.acting.oid if self.acting.oid in able else (*able, owner)[0]
        granting = GrantOperation(self.is_grant, letters, self.grantees, self.option, self.cascade)
        changed = apply_grant(acl, granting, grantor=grantor, owner=owner)
        nothing = thing.kind == "column" and not changed
        self.after[thing.subject] = replace(rights, acl=None if nothing else changed)

    def rights(self) -> tuple[tuple[Subject, ObjectPrivileges], ...]:
        """What is to be put."""
        known = self.binding.context.catalog.rights
        return tuple(
            (subject, replace(rights, version=rights.version + 1))
            for subject, rights in self.after.items()
            if rights != known.get(subject, ObjectPrivileges())
        )


def grant(binding: Binding, node: Node) -> ChangePrivileges:
    """GRANT and REVOKE of privileges."""
    kind = _TARGETS.get(node.objtype)
    if kind is None or kind == "large object":
        raise not_supported(f"GRANT and REVOKE ON {object_type_name(node.objtype)}")
    change = _change(binding, node)
    whole, columns = _privileges(node.privileges, kind)
    if node.targtype == GrantTargetType.ACL_TARGET_ALL_IN_SCHEMA:
        if columns:
            message = "column privileges are only valid for relations"
            raise SqlError("0LP01", message)
        for thing in _in_schemas(binding, node, kind):
            change.grant(thing, ALL_PRIVILEGES[thing.kind] if whole is None else whole)
    elif kind in ("table", "sequence"):
        for relation in node.objects:
            found = relation_to_grant(binding, relation, sequence=kind == "sequence")
            _grant_relation(change, found, whole, columns)
    else:
        for thing in _named(binding, node, kind):
            change.grant(thing, ALL_PRIVILEGES[thing.kind] if whole is None else whole)
    tag = "GRANT" if node.is_grant else "REVOKE"
    return ChangePrivileges(tag, rights=change.rights(), notices=tuple(change.notices))


def _change(binding: Binding, node: Node) -> _Change:
    roles = roles_of(binding.context)
    if node.grantor is not None:
        grantor = resolve_role(binding, roles, node.grantor)
        if grantor.oid != current_role(binding.context).oid:
            raise SqlError("0A000", "grantor must be current user")
    binding.uses_session = True
    return _Change(
        binding,
        roles,
        current_role(binding.context),
        bool(node.is_grant),
        grantees(binding, roles, node.grantees),
        bool(node.grant_option),
        node.behavior == DropBehavior.DROP_CASCADE,
    )


def _privileges(
    nodes: Sequence[Node] | None, kind: str
) -> tuple[str | None, list[tuple[tuple[str, ...], str | None]]]:
    """The letters of the whole, None for ALL, and those of columns."""
    if not nodes:
        return None, []
    whole, columns = "", list[tuple[tuple[str, ...], str | None]]()
    allowed = (
        _RELATIONS if kind == "table" else ALL_PRIVILEGES["type" if kind == "domain" else kind]
    )
    for node in nodes:
        letter = None if node.priv_name is None else privilege_letter(node.priv_name)
        if node.cols:
            if kind != "table":
                message = "column privileges are only valid for relations"
                raise SqlError("0LP01", message)
            if letter is not None and letter not in ALL_PRIVILEGES["column"]:
                raise _invalid(letter, "column")
            columns.append((tuple(string_values(node.cols)), letter))
            continue
        assert letter is not None, "ALL stands alone, or with columns"
        if letter not in allowed:
            raise _invalid(letter, "relation" if kind == "table" else kind)
        whole += letter
    return (ordered_letters(whole), columns)


def _invalid(letter: str, kind: str) -> SqlError:
    return SqlError("0LP01", f"invalid privilege type {PRIVILEGE_NAMES[letter]} for {kind}")


def _grant_relation(
    change: _Change,
    found: Table | CatalogObject,
    whole: str | None,
    columns: Sequence[tuple[tuple[str, ...], str | None]],
) -> None:
    thing = owned_object(found)
    letters = ALL_PRIVILEGES[thing.kind] if whole is None else whole
    if thing.kind == "sequence":
        if set(letters) - set(ALL_PRIVILEGES["sequence"]):
            text = f'sequence "{thing.name}" only supports USAGE, SELECT, and UPDATE privileges'
            change.notices.append(SqlError("0LP01", text))
            letters = ordered_letters(x for x in letters if x in ALL_PRIVILEGES["sequence"])
    elif "U" in letters:
        raise SqlError("0LP01", "invalid privilege type USAGE for table")
    change.grant(thing, letters)
    numbers = _numbers(found)
    shared = ordered_letters(x for x in letters if x in ALL_PRIVILEGES["column"])
    if not change.is_grant and shared:
        # What is taken back of a table is taken back of its columns.
        rights = change.binding.context.catalog.rights
        for number in numbers.values():
            subject = Subject("column", found.oid, number)
            if subject in rights:
                change.grant(OwnedObject(subject, "column", thing.schema, thing.name), shared)
    for names, letter in columns:
        for name in names:
            if name not in numbers:
                message = f'column "{name}" of relation "{thing.name}" does not exist'
                raise SqlError("42703", message)
            subject = Subject("column", found.oid, numbers[name])
            column = OwnedObject(subject, "column", thing.schema, thing.name)
            change.grant(column, ALL_PRIVILEGES["column"] if letter is None else letter)


def _numbers(found: Table | CatalogObject) -> dict[str, int]:
    if isinstance(found, Table):
        return {column.name: found.number_of(at) for at, column in enumerate(found.columns)}
    if isinstance(found, ViewDefinition):
        return {name: number for number, name in enumerate(found.columns, 1)}
    return {}


def _in_schemas(binding: Binding, node: Node, kind: str) -> Iterator[OwnedObject]:
    catalog = binding.context.catalog
    for item in node.objects:
        name = item.sval
        if name in SYSTEM_SCHEMAS:
            raise not_supported(f"ALL IN SCHEMA {name}")
        if not schema_exists(binding, name):
            raise undefined_schema(name)
        if kind == "table":
            yield from (owned_object(t) for t in catalog.tables.values() if t.schema == name)
            yield from (owned_object(view) for view in catalog.views() if view.schema == name)
        elif kind == "sequence":
            yield from (owned_object(s) for s in catalog.sequences() if s.schema == name)


def _named(binding: Binding, node: Node, kind: str) -> Iterator[OwnedObject]:
    for item in node.objects:
        match kind:
            case "schema":
                if item.sval not in SYSTEM_SCHEMAS and not schema_exists(binding, item.sval):
                    raise undefined_schema(item.sval)
                yield owned_schema(item.sval)
            case "database":
                if item.sval != binding.context.database:
                    raise elsewhere(item.sval)
                yield OwnedObject(DATABASE_SUBJECT, "database", "", "")
            case "type" | "domain":
                yield type_to_grant(binding, string_values(item), domain=kind == "domain")
            case _:
                raise _no_function(item)


def _no_function(node: Node) -> SqlError:
    names = string_values(node.objname)
    if functions(names[-1]):
        return not_supported("a privilege of a built-in function")
    if node.args_unspecified:
        return SqlError("42883", f'could not find a function named "{".".join(names)}"')
    types = ", ".join(t.names[-1].sval for t in node.objargs or () if is_a(t, ast.TypeName))
    error = undefined_function(f"{'.'.join(names)}({types})")
    return replace(error, hint=None)


# --- ALTER DEFAULT PRIVILEGES ------------------------------------------------------------------


def alter_default_privileges(binding: Binding, node: Node) -> ChangePrivileges:
    """ALTER DEFAULT PRIVILEGES [FOR ROLE ..] [IN SCHEMA ..] GRANT or REVOKE."""
    action, roles = node.action, roles_of(binding.context)
    options = options_by_name(node.options or ())
    kind = _TARGETS[action.objtype]
    change = _change(binding, action)
    whole, _ = _privileges(action.privileges, kind)
    letters = ALL_PRIVILEGES[kind] if whole is None else whole
    if kind == "table" and "U" in letters:
        raise _invalid("U", "relation")
    schemas: Sequence[str] = [""]
    if "schemas" in options:
        schemas = string_values(options["schemas"].arg)
        for name in schemas:
            if name not in SYSTEM_SCHEMAS and not schema_exists(binding, name):
                raise undefined_schema(name)
        if kind in ("schema", "large object"):
            what = "SCHEMAS" if kind == "schema" else "LARGE OBJECTS"
            message = f"cannot use IN SCHEMA clause when using GRANT/REVOKE ON {what}"
            raise SqlError("0LP01", message)
    whose = [current_role(binding.context)]
    if "roles" in options:
        whose = [resolve_role(binding, roles, spec) for spec in options["roles"].arg]
    granting = GrantOperation(
        change.is_grant, letters, change.grantees, change.option, change.cascade
    )
    for role in whose:
        for schema in schemas:
            subject = Subject("default", role.oid, DEFAULT_ACL_LETTERS[kind] + schema)
            plain = () if schema else default_acl(kind, role.oid)
            rights = binding.context.catalog.rights.get(subject, ObjectPrivileges(role.oid))
            before = plain if rights.acl is None else rights.acl
            after = apply_grant(before, granting, grantor=role.oid, owner=role.oid)
            acl = None if is_same_acl(after, plain) else sorted_acl(after)
            if acl != rights.acl:
                change.after[subject] = replace(rights, acl=acl)
    return ChangePrivileges("ALTER DEFAULT PRIVILEGES", rights=change.rights())
