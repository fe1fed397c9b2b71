"""A column of CREATE TABLE or ADD COLUMN: its type, default, constraints, identity and serial.

ColumnDef ─▶ Column, and in Parts: keys, checks, the sequences of serial and identity columns
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from pglast import ast
from pglast.enums import ConstrType

from sql.binder.ddl.deferral import Deferrability, constraints_with_deferrability
from sql.binder.ddl.foreign_keys import ForeignKeyNode
from sql.binder.ddl.keys import KEY_KINDS, KeyNode, TakenNames
from sql.binder.ddl.sequence_options import plain_nextval, sequence_with_options
from sql.binder.resolve.collations import column_collation
from sql.binder.resolve.type_names import declared_type, refuse_pseudo_type
from sql.binder.state import Binding
from sql.binder.stored.column_expressions import with_defined_default, without_position
from sql.binder.stored.domain_checks import with_domain_default
from sql.binder.stored.sequence_values import SEQUENCE_FUNCTIONS
from sql.catalog.catalog import Column
from sql.catalog.constraint_names import make_object_name
from sql.catalog.objects import INT_BOUNDS, SequenceDefinition
from sql.errors import SqlError, duplicate_table, not_supported
from sql.parser.syntax import Node, is_a, offset_to_position, string_values, tree_nodes
from sql.types.sql_type import INT2, INT4, INT8, REG_TYPES, SqlType, is_reg_array

UNSUPPORTED_CONSTRAINTS: Final = {
    ConstrType.CONSTR_EXCLUSION: "EXCLUDE",
}
"""Unsupported kinds of constraints, by the name that the error shows."""

_SERIALS: Final = {
    "serial": INT4, "serial4": INT4, "bigserial": INT8, "serial8": INT8, "smallserial": INT2,
    "serial2": INT2,
}  # fmt: skip


@dataclass(slots=True)
class TableParts:
    """The parts of column definitions that belong to the table: keys, checks, sequences."""

    schema: str
    table: str
    keys: list[KeyNode] = field(default_factory=list[KeyNode])
    foreign: list[ForeignKeyNode] = field(default_factory=list[ForeignKeyNode])
    checks: list[Node] = field(default_factory=list[Node])
    not_nulls: list[Node] = field(default_factory=list[Node])
    """NOT NULL constraints that stand beside the columns and name one."""
    taken: list[SequenceDefinition] = field(default_factory=list[SequenceDefinition])
    """Sequences that the same statement creates for other columns."""
    altered: bool = False
    """Whether the statement is ALTER TABLE."""
    freed: list[str] = field(default_factory=list[str])
    """Names of sequences that the same statement drops."""
    sequences: dict[str, SequenceDefinition] = field(default_factory=dict[str, SequenceDefinition])
    """By the name of their column; the session gives them oids."""
    generated: dict[str, Node] = field(default_factory=dict[str, Node])
    """Expressions of generated columns, to be bound when all columns are known."""


@dataclass(slots=True)
class _Making:
    column: Column
    not_null: bool | None = None
    defaulted: bool = False


def bind_column(binding: Binding, node: Node, found: TableParts) -> Column:
    """Bind a column definition; its table-level parts are added to `found`."""
    serial = _serial(node.typeName)
    type_, domain = declared_type(binding, node.typeName) if serial is None else (serial, None)
    refuse_column_type(node, type_)
    collation = column_collation(binding, node.collClause, type_)
    if node.fdwoptions:
        raise SqlError("42809", f'"{found.table}" is not a foreign table')
    for used, what in ((node.compression, "COMPRESSION"), (node.storage_name, "STORAGE")):
        if used:
            raise not_supported(what, offset_to_position(node.location))
    making = _Making(Column(node.colname, type_, domain=domain, collation=collation))
    if serial is not None:
        if node.typeName.arrayBounds:
            message = "array of serial is not implemented"
            raise SqlError("0A000", message, offset_to_position(node.typeName.location))
        _add_sequence(binding, making, found, (), identity="")
        making.not_null, making.defaulted = True, True
    for constraint, when in constraints_with_deferrability(node.constraints or ()):
        _constraint(binding, making, node, constraint, when, found)
    key = any(key.primary and key.column == node.colname for key in found.keys)
    if making.not_null is False and (key or making.column.identity):
        raise _conflicting(node, found, offset_to_position(_last_null(node).location))
    column = replace(making.column, not_null=bool(making.not_null))
    return column if column.name in found.generated else with_domain_default(binding, column)


def _serial(type_name: Node) -> SqlType | None:
    """The type of a serial column; None for other types, and for a column without one."""
    return None if type_name is None else _SERIALS.get(string_values(type_name.names)[-1])


def refuse_column_type(node: Node, type_: SqlType) -> None:
    """0A000 for a type that tables cannot store."""
    if type_.name != "void":
        refuse_pseudo_type(node.colname, type_)
    if type_.name in ("void", "jsonpath", *REG_TYPES) or is_reg_array(type_):
        raise not_supported(
            f"a column of type {type_.name}", offset_to_position(node.typeName.location)
        )


def _conflicting(node: Node, found: TableParts, place: int | None) -> SqlError:
    message = (
        f'conflicting NULL/NOT NULL declarations for column "{node.colname}" '
        f'of table "{found.table}"'
    )
    return SqlError("42601", message, place)


def _constraint(
    binding: Binding,
    making: _Making,
    node: Node,
    constraint: Node,
    when: Deferrability,
    found: TableParts,
) -> None:
    place = offset_to_position(constraint.location)
    match constraint.contype:
        case ConstrType.CONSTR_NULL | ConstrType.CONSTR_NOTNULL:
            wanted = constraint.contype == ConstrType.CONSTR_NOTNULL
            if making.not_null is not None and making.not_null is not wanted:
                raise _conflicting(node, found, place)
            making.not_null = wanted
            if constraint.is_no_inherit:
                raise not_supported("NO INHERIT", place)
            if constraint.conname:
                known = making.column.not_null_name
                if known and known != constraint.conname:
                    names = f'"{known}" and "{constraint.conname}"'
                    raise SqlError("42601", f"conflicting not-null constraint names {names}")
                making.column = replace(making.column, not_null_name=constraint.conname)
        case ConstrType.CONSTR_DEFAULT:
            _once(making, node, found, place)
            _refuse_own_sequence(found, constraint.raw_expr)
            default = altered_column_default if found.altered else column_default
            making.column = default(binding, making.column, constraint.raw_expr)
        case ConstrType.CONSTR_IDENTITY:
            _identity(binding, making, node, constraint, found)
        case ConstrType.CONSTR_GENERATED:
            if constraint.generated_kind == "v":
                raise not_supported("a virtual generated column", place)
            if making.defaulted:
                what = "identity" if making.column.identity else "default"
                message = (
                    f"both {what} and generation expression specified for column "
                    f'"{node.colname}" of table "{found.table}"'
                )
                raise SqlError("42601", message, place)
            making.defaulted = True
            found.generated[node.colname] = constraint.raw_expr
        case kind if kind in KEY_KINDS:
            found.keys.append(KeyNode(constraint, node.colname, when))
        case ConstrType.CONSTR_CHECK:
            found.checks.append(constraint)
        case ConstrType.CONSTR_FOREIGN:
            found.foreign.append(ForeignKeyNode(constraint, node.colname, when))
        case kind:
            raise not_supported(UNSUPPORTED_CONSTRAINTS.get(kind, "this constraint"), place)


def _once(making: _Making, node: Node, found: TableParts, place: int | None) -> None:
    if node.colname in found.generated:
        what = "both default and generation expression specified"
    elif making.column.identity:
        what = "both default and identity specified"
    else:
        what = "multiple default values specified"
    if making.defaulted:
        message = f'{what} for column "{node.colname}" of table "{found.table}"'
        raise SqlError(
            "42601",
            message,
            None if node.colname in found.sequences and not making.column.identity else place,
        )
    making.defaulted = True


def _identity(
    binding: Binding, making: _Making, node: Node, constraint: Node, found: TableParts
) -> None:
    place = offset_to_position(constraint.location)
    if making.column.identity:
        message = (
            f'multiple identity specifications for column "{node.colname}" of table "{found.table}"'
        )
        raise SqlError("42601", message, place)
    if making.defaulted:
        message = (
            f'both default and identity specified for column "{node.colname}" '
            f'of table "{found.table}"'
        )
        raise SqlError("42601", message, place)
    if making.not_null is False:
        raise _conflicting(node, found, place)
    if making.column.type.name not in INT_BOUNDS:
        raise SqlError("22023", "identity column type must be smallint, integer, or bigint")
    kind = "always" if constraint.generated_when == "a" else "by default"
    _add_sequence(binding, making, found, constraint.options or (), identity=kind)
    making.not_null, making.defaulted = True, True


def _add_sequence(
    binding: Binding,
    making: _Making,
    found: TableParts,
    options: Collection[Node],
    *,
    identity: str,
) -> None:
    column = making.column
    name = sequence_name(binding, found, column.name, options)
    bare = SequenceDefinition(
        0, found.schema, name, "", type=column.type.name, identity=bool(identity)
    )
    made = sequence_with_options(binding, bare, tuple(options), created=True)
    found.sequences[column.name] = replace(made, owner_field=column.field)
    making.column = replace(column, has_default=not identity, identity=identity)


def sequence_name(
    binding: Binding, found: TableParts, column: str, options: Collection[Node] = ()
) -> str:
    """The name of the sequence of a serial or identity column; `options` may give it."""
    mine = {found.table} - {*found.freed}
    taken = TakenNames(binding.context.catalog, found.schema, taken=mine, freed=found.freed)
    taken.add(*(other.name for other in (*found.taken, *found.sequences.values())))
    said = [option for option in options if option.defname == "sequence_name"]
    if said:
        *schemas, own = string_values(said[0].arg)
        if schemas and schemas[-1] != found.schema:
            raise not_supported(
                "a sequence of an identity in another schema", offset_to_position(said[0].location)
            )
        if own in taken:
            raise duplicate_table(own)
        return own
    name, number = make_object_name(found.table, column, "seq"), 0
    while name in taken:
        number += 1
        name = make_object_name(found.table, column, f"seq{number}")
    return name


def _refuse_own_sequence(found: TableParts, node: Node) -> None:
    """0A000 for a default that calls a sequence which the same statement makes: it has no oid."""
    made = {sequence.name for sequence in (*found.taken, *found.sequences.values())}
    for call in tree_nodes(node) if made else ():
        if is_a(call, ast.FuncCall) and string_values(call.funcname)[-1] in SEQUENCE_FUNCTIONS:
            for part in tree_nodes(call):
                constant = (
                    part.val.sval if is_a(part, ast.A_Const) and is_a(part.val, ast.String) else ""
                )
                if constant.rpartition(".")[2] in made:
                    what = "a default that calls a sequence of another column of the statement"
                    raise not_supported(what, offset_to_position(call.location))


def altered_column_default(binding: Binding, column: Column, node: Node) -> Column:
    """The column with this DEFAULT of ALTER TABLE, for which PostgreSQL reports no position."""
    return without_position(partial(column_default, binding, column, node))


def column_default(binding: Binding, column: Column, node: Node) -> Column:
    """The column with this DEFAULT."""
    bare = replace(column, has_default=False, default=None, expression=None, sequence=0)
    bare = replace(bare, default_of_domain=False)
    sequence = plain_nextval(binding, node)
    if sequence is not None and column.type.name in INT_BOUNDS:
        return replace(bare, has_default=True, sequence=sequence.oid)
    made = with_defined_default(binding, bare, node)
    return bare if _is_nothing(binding, bare, node) else made


def _is_nothing(binding: Binding, column: Column, node: Node) -> bool:
    """DEFAULT NULL is none; of a domain it is one, which keeps the domain's away. PostgreSQL keeps
    a NULL that it would have to fit into a length or a scale.
    """
    type_ = column.type
    if column.domain is not None or (type_.typmod >= 0 and type_.name != "interval"):
        return False
    if is_a(node, ast.TypeCast):
        if declared_type(binding, node.typeName) != (type_, None):
            return False
        node = node.arg
    return is_a(node, ast.A_Const) and bool(node.isnull)


def _last_null(node: Node) -> Node:
    """The later one of NULL and PRIMARY KEY."""
    kinds = (ConstrType.CONSTR_NULL, ConstrType.CONSTR_PRIMARY, ConstrType.CONSTR_IDENTITY)
    return [item for item in node.constraints if item.contype in kinds][-1]
