"""CREATE DOMAIN and ALTER DOMAIN; `ddl/user_types.py` drops domains.

The constraints of a domain are stored with every column of it (K5 of
`coordinator/core/catalog.py`). Changing them therefore changes the tables, after new constraints
have been validated against all rows.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from pglast.enums import ConstrType

from sql.binder.ddl.comments import comments_of_renamed_constraint
from sql.binder.ddl.row_validations import first_violation
from sql.binder.resolve.catalog_lookup import row_type_exists
from sql.binder.resolve.relations import table_scan
from sql.binder.resolve.type_names import find_user_type, resolve_type
from sql.binder.state import Binding
from sql.binder.stored.column_expressions import (
    bound_check,
    checked_default,
    stored_text_of,
    without_position,
)
from sql.binder.stored.domain_checks import (
    bound_domain_check,
    check_violation,
    null_violation,
    ordered_checks,
    value_scope,
    with_domain_default,
)
from sql.binder.stored.type_users import find_domain, tables_with, type_creation_schema
from sql.catalog.catalog import Column, Table
from sql.catalog.objects import DomainDefinition
from sql.errors import SqlError, not_supported
from sql.parser.syntax import Node, offset_to_position, string_values
from sql.plan.nodes import ColumnRef, Const, Expr, Filter, IsTest, Plan, Test
from sql.statements.ddl import ChangeObjects, CreateObject, Redefinition, Validation
from sql.types.enums import is_enum
from sql.types.sql_type import BOOL, REG_TYPES, is_reg_array

_TAG: Final = "ALTER DOMAIN"


# --- CREATE ------------------------------------------------------------------------------------


def create_domain(binding: Binding, node: Node) -> CreateObject:
    """CREATE DOMAIN."""
    *qualifier, name = string_values(node.domainname)
    schema = type_creation_schema(binding, qualifier, name)
    if row_type_exists(binding, schema, name):
        raise SqlError("42710", f'type "{name}" already exists')
    if node.collClause is not None:
        raise not_supported("COLLATE", offset_to_position(node.collClause.location))
    place = offset_to_position(node.typeName.location)
    if isinstance(find_user_type(binding, node.typeName), DomainDefinition):
        raise not_supported("a domain over a domain", place)
    base = resolve_type(binding, node.typeName)
    if (
        is_enum(base.name.removeprefix("_"))
        or base.name in ("void", *REG_TYPES)
        or (is_reg_array(base))
    ):
        raise not_supported(f"a domain over {base.name.partition('[')[0]}", place)
    shape = (base.name, base.typmod, base.precision, base.scale, base.trim)
    made = DomainDefinition(0, schema, name, shape)
    nulls: list[bool] = []
    for constraint in node.constraints or ():
        made = _constrained(binding, made, constraint, nulls)
    return CreateObject(made, "CREATE DOMAIN")


def _constrained(
    binding: Binding, made: DomainDefinition, node: Node, nulls: list[bool]
) -> DomainDefinition:
    place = offset_to_position(node.location)
    match node.contype:
        case ConstrType.CONSTR_DEFAULT:
            if made.default:
                raise SqlError("42601", "multiple default expressions", place)
            return replace(made, default=_default(binding, made, node.raw_expr))
        case ConstrType.CONSTR_NOTNULL | ConstrType.CONSTR_NULL:
            wanted = node.contype == ConstrType.CONSTR_NOTNULL
            if nulls and nulls[-1] is not wanted:
                raise SqlError("42601", "conflicting NULL/NOT NULL constraints", place)
            if nulls and wanted:
                raise SqlError("42P17", "redundant NOT NULL constraint definition", place)
            nulls.append(wanted)
            return _not_null(made, node.conname) if wanted else made
        case ConstrType.CONSTR_CHECK:
            if node.is_no_inherit:
                message = "check constraints for domains cannot be marked NO INHERIT"
                raise SqlError("42P17", message, place)
            return _with_check(binding, made, node)
        case ConstrType.CONSTR_UNIQUE:
            raise SqlError("42601", "unique constraints not possible for domains", place)
        case ConstrType.CONSTR_PRIMARY:
            raise SqlError("42601", "primary key constraints not possible for domains", place)
        case ConstrType.CONSTR_FOREIGN:
            raise SqlError("42601", "foreign key constraints not possible for domains", place)
        case _:
            raise not_supported("this constraint of a domain", place)


def _default(binding: Binding, made: DomainDefinition, node: Node) -> str:
    bound = checked_default(binding, Column(made.name, made.type), node)
    # DEFAULT NULL is none.
    none = isinstance(bound, Const) and bound.value is None
    return "" if none else stored_text_of(binding, node)


def _not_null(made: DomainDefinition, name: str | None) -> DomainDefinition:
    """With NOT NULL under this name, unless it is NOT NULL already."""
    if made.not_null:
        return made
    if name in made.rules:
        raise SqlError("42710", f'constraint "{name}" for domain "{made.name}" already exists')
    chosen, number = name or f"{made.name}_not_null", 0
    while chosen in made.rules:
        number += 1
        chosen = f"{made.name}_not_null{number}"
    return replace(made, not_null=True, null_rule=chosen)


def _with_check(binding: Binding, made: DomainDefinition, node: Node) -> DomainDefinition:
    # ALTER DOMAIN .. NO INHERIT means nothing in PostgreSQL either.
    if node.skip_validation:
        raise not_supported("NOT VALID", offset_to_position(node.location))
    column = binding.new_column("value", made.type)
    scope = value_scope(ColumnRef(column.id, column.type))
    without_position(lambda: bound_check(binding, scope, node.raw_expr))
    taken = made.rules
    name, number = node.conname or f"{made.name}_check", 0
    if node.conname in taken:
        raise SqlError("42710", f'constraint "{name}" for domain "{made.name}" already exists')
    while name in taken:
        number += 1
        name = f"{made.name}_check{number}"
    return replace(made, checks=(*made.checks, (name, stored_text_of(binding, node.raw_expr))))


# --- ALTER -------------------------------------------------------------------------------------


def alter_domain(binding: Binding, node: Node) -> ChangeObjects:
    """ALTER DOMAIN, except RENAME and SET SCHEMA."""
    found = find_domain(binding, string_values(node.typeName))
    match node.subtype:
        case "T":
            text = "" if node.def_ is None else _default(binding, found, node.def_)
            return _redefined(binding, found, replace(found, default=text))
        case "N":
            return _redefined(binding, found, replace(found, not_null=False))
        case "O":
            return _redefined(binding, found, _not_null(found, None))
        case "C" if node.def_.contype == ConstrType.CONSTR_NOTNULL:
            return _redefined(binding, found, _not_null(found, node.def_.conname))
        case "C":
            return _redefined(binding, found, _with_check(binding, found, node.def_))
        case "X":
            return _without_check(binding, found, node)
        case _:
            raise not_supported("VALIDATE CONSTRAINT of a domain", None)


def _without_check(binding: Binding, found: DomainDefinition, node: Node) -> ChangeObjects:
    if node.name == found.not_null_name and found.not_null:
        return _redefined(binding, found, replace(found, not_null=False))
    kept = tuple(check for check in found.checks if check[0] != node.name)
    if kept != found.checks:
        return _redefined(binding, found, replace(found, checks=kept))
    message = f'constraint "{node.name}" of domain "{found.name}" does not exist'
    if not node.missing_ok:
        raise SqlError("42704", message)
    return ChangeObjects(_TAG, notices=(("00000", f"{message}, skipping", None),))


def rename_domain_constraint(binding: Binding, node: Node) -> ChangeObjects:
    """ALTER DOMAIN .. RENAME CONSTRAINT."""
    found = find_domain(binding, string_values(node.object))
    names = found.rules
    if node.subname not in names:
        message = f'constraint "{node.subname}" for domain {found.name} does not exist'
        raise SqlError("42704", message)
    if node.newname in names:
        message = f'constraint "{node.newname}" for domain {found.name} already exists'
        raise SqlError("42710", message)
    checks = tuple(
        (node.newname if name == node.subname else name, text) for name, text in found.checks
    )
    after = replace(found, checks=checks)
    if found.not_null and node.subname == found.not_null_name:
        after = replace(found, null_rule=node.newname)
    said = comments_of_renamed_constraint(
        binding.context.catalog, found, node.subname, node.newname
    )
    return replace(redefined_domain(binding, found, after), comments=said)


def redefined_domain(
    binding: Binding, old: DomainDefinition, new: DomainDefinition
) -> ChangeObjects:
    """A new definition of the domain, and of all columns of it."""
    made = replace(new, version=old.version + 1)
    return ChangeObjects(
        _TAG,
        objects=(made,),
        tables=tuple(
            Redefinition(table, _with_domain(binding, table, made))
            for table in tables_with(binding.context.catalog, old)
        ),
    )


def _with_domain(binding: Binding, table: Table, made: DomainDefinition) -> Table:
    columns: list[Column] = []
    for column in table.columns:
        if column.domain is None or column.domain.oid != made.oid:
            columns.append(column)
            continue
        if column.default_of_domain:
            column = replace(  # noqa: PLW2901
                column, has_default=False, default=None, expression=None, default_of_domain=False
            )
        columns.append(with_domain_default(binding, replace(column, domain=made.domain)))
    return replace(table, columns=tuple(columns), version=table.version + 1)


def _redefined(binding: Binding, old: DomainDefinition, new: DomainDefinition) -> ChangeObjects:
    """The same, with rows looked at for what is new."""
    changed = redefined_domain(binding, old, new)
    more = [check for check in new.checks if check not in old.checks]
    looked: list[tuple[Table, Validation]] = []
    for change in changed.tables:
        after = change.after
        if new.not_null and not old.not_null:
            looked += [(after, _nulls(binding, after, at_)) for at_ in _ordinals(after, new)]
        for _, text in more:
            looked += [(after, _broken(binding, after, at_, text)) for at_ in _ordinals(after, new)]
    return replace(changed, validations=tuple(looked))


def _ordinals(table: Table, domain: DomainDefinition) -> list[int]:
    return [
        ordinal
        for ordinal, column in enumerate(table.columns)
        if column.domain is not None and column.domain.oid == domain.oid
    ]


def _nulls(binding: Binding, table: Table, ordinal: int) -> Validation:
    name = table.columns[ordinal].name
    message = f'column "{name}" of table "{table.name}" contains null values'
    return _validation(
        binding, table, ordinal, "23502", message, lambda ref: IsTest(Test.IS_NULL, ref, BOOL)
    )


def _broken(binding: Binding, table: Table, ordinal: int, text: str) -> Validation:
    name = table.columns[ordinal].name
    message = (
        f'column "{name}" of table "{table.name}" contains values that violate the new constraint'
    )
    return _validation(
        binding,
        table,
        ordinal,
        "23514",
        message,
        lambda ref: IsTest(Test.IS_FALSE, bound_domain_check(binding, ref, text), BOOL),
    )


def _validation(
    binding: Binding,
    table: Table,
    ordinal: int,
    sqlstate: str,
    message: str,
    broken: Callable[[Expr], Expr],
) -> Validation:
    rows = table_scan(binding, table)
    column = rows.columns[ordinal]
    plan: Plan = Filter(rows, broken(ColumnRef(column.id, column.type)))
    found = first_violation(binding, plan)
    return Validation(found, sqlstate, message, column=table.columns[ordinal].name)


def domain_validations(binding: Binding, table: Table, ordinal: int) -> list[Validation]:
    """Validate the existing rows of a column against the domain that it now has."""
    domain = table.columns[ordinal].domain
    if domain is None:
        return []
    looked: list[Validation] = []
    if domain.not_null:
        found = _nulls(binding, table, ordinal)
        looked.append(replace(found, error=null_violation(binding.context, domain)))
    for name, text in ordered_checks(domain):
        found = _broken(binding, table, ordinal, text)
        looked.append(replace(found, error=check_violation(binding.context, domain, name)))
    return looked
