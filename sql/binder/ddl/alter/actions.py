"""The actions of ALTER TABLE: add, drop and change columns and constraints, several at once.

    actions, in PostgreSQL's order ─▶ the table after ─┬─▶ rewrite: old rows with new values, if any
                                                       └─▶ validations: rows that must not exist

Adding a column without values, dropping or renaming one changes the definition alone. A default of
a new column, or another type, rewrites all rows: foreign readers know no defaults or conversions.

INVARIANTS
  A1  the table after the statement is bound from exactly the table before it; its version is one
      higher, whatever the number of actions.
  A2  a new constraint holds only for rows that were checked: an action that adds one validates it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from pglast.enums import AlterTableType, ConstrType, DropBehavior

from sql.binder.ddl.alter.column_type import alter_type, recheck_retyped_columns
from sql.binder.ddl.alter.dependents import (
    altered_children,
    apply_drop,
    drop_views_reading,
    foreign_key_revalidations,
)
from sql.binder.ddl.alter.identity import (
    add_identity,
    drop_expression,
    drop_identity,
    set_expression,
    set_identity,
)
from sql.binder.ddl.alter.keys import add_keys, name_new_not_nulls, unique_indexes_left, use_index
from sql.binder.ddl.alter.owned_sequences import (
    added_column_parts,
    drop_owned_sequences,
    sync_owned_sequences,
)
from sql.binder.ddl.alter.state import AlterTableState
from sql.binder.ddl.checks import bind_checks
from sql.binder.ddl.columns import altered_column_default, bind_column
from sql.binder.ddl.delta_invariants import with_delta_invariants
from sql.binder.ddl.domains import domain_validations
from sql.binder.ddl.foreign_keys import (
    ForeignKeyNode,
    bind_foreign_keys,
    foreign_key_validation,
    match_full_validations,
)
from sql.binder.ddl.generated import with_generated
from sql.binder.ddl.keys import KEY_KINDS, KeyNode
from sql.binder.ddl.physical_layout import PHYSICAL_ACTIONS
from sql.binder.ddl.row_validations import row_validations
from sql.binder.ddl.storage_options import refuse_clustering_column, refuse_feed_columns
from sql.binder.resolve.relations import table_scan
from sql.binder.resolve.system_columns import SYSTEM_COLUMNS
from sql.binder.state import Binding
from sql.binder.stored.column_expressions import per_row_default
from sql.binder.stored.domain_checks import with_domain_default
from sql.binder.stored.table_changes import (
    columns_in_index,
    generated_from,
    is_statistics_of,
    with_added_column,
    without_column,
)
from sql.catalog.catalog import ForeignKey, Key, Table
from sql.catalog.constraint_names import constraint_names, not_null_columns, not_null_name
from sql.errors import SqlError, duplicate_constraint, not_supported
from sql.parser.statement_names import alter_action_name
from sql.parser.syntax import Node, offset_to_position
from sql.plan.nodes import ColumnRef, Const, Expr, Plan, PlanColumn, Project
from sql.statements.bound import AlterTable
from sql.statements.ddl import Redefinition, drop_cascade_notices
from sql.types.limits import check_column_count

_A: Final = AlterTableType

# The order of PostgreSQL's passes; within one, as written.
_PASSES: Final = {
    _A.AT_DropColumn: 1,
    _A.AT_DropConstraint: 1,
    _A.AT_DropNotNull: 1,
    _A.AT_DropIdentity: 1,
    _A.AT_DropExpression: 1,
    _A.AT_AlterColumnType: 2,
    _A.AT_AddColumn: 3,
    _A.AT_SetExpression: 4,
    _A.AT_SetNotNull: 5,
    _A.AT_AddConstraint: 6,
    _A.AT_AddIdentity: 6,
    _A.AT_ColumnDefault: 7,
}


def alter_columns(binding: Binding, table: Table, commands: Sequence[Node]) -> AlterTable:
    """All actions of one statement (A1)."""
    source = table_scan(binding, table, identity=True)
    values: list[Expr] = [ColumnRef(column.id, column.type) for column in source.columns]
    work = AlterTableState(binding, table, table, source, values)
    for command in sorted(commands, key=_pass):
        action = _ACTIONS.get(command.subtype)
        if action is None:
            raise not_supported(f"ALTER TABLE {alter_action_name(command.subtype)}", None)
        action(work, command)
    recheck_retyped_columns(work)
    if not work.table.columns:
        raise not_supported("a table without columns", None)
    refuse_feed_columns(work.table)
    _add_constraints(work)
    bound, parents = bind_foreign_keys(binding, work.table, work.foreign)
    foreign = [
        replace(key, validated=not node.node.skip_validation)
        for key, node in zip(bound, work.foreign, strict=True)
    ]
    work.table = replace(work.table, foreign_keys=(*work.table.foreign_keys, *foreign))
    sync_owned_sequences(work)
    told = with_delta_invariants(binding, work.table)
    left = unique_indexes_left(work)
    after = replace(
        told, version=table.version + 1, unique_indexes=tuple(index.oid for index in left)
    )
    again, beside = foreign_key_revalidations(work, after)
    by_oid = {parent.oid: parent for parent in (*beside, *parents, after)}
    rules = row_validations(binding, after, work.required, work.checks, _new_keys(work))
    looked = tuple(
        found
        for key in foreign
        if key.validated
        for found in (
            *match_full_validations(binding, after, key),
            foreign_key_validation(binding, after, by_oid[key.table], key),
        )
    )
    for name in work.domains:
        work.looked += domain_validations(binding, after, work.ordinal(name))
    return AlterTable(
        (Redefinition(table, after), *altered_children(work)),
        notices=tuple(work.notices),
        dropped=tuple(work.dropped),
        objects=tuple(work.changed),
        comments=tuple(work.comments),
        fresh=work.fresh,
        rewrite=_rewrite(work) if work.rewrites else None,
        sequences=tuple(
            (next(at for at, c in enumerate(after.columns) if c.name == name), sequence)
            for name, sequence in work.sequences.items()
        ),
        parents=tuple(
            other for oid, other in by_oid.items() if oid != table.oid and oid not in work.children
        ),
        unused="ALTER TABLE",
        validations=(*rules, *looked, *again, *work.looked),
        recomputed=left if work.rewrites or work.retyped else (),
    )


def _pass(command: Node) -> int:
    if command.subtype == _A.AT_ColumnDefault and command.def_ is None:
        return _PASSES[_A.AT_DropNotNull]
    return _PASSES.get(command.subtype, 8)


def _new_keys(work: AlterTableState) -> Sequence[Key]:
    """Keys whose rows were not looked at: new ones, and those of columns with new values."""
    known = {(key.nulls_distinct, _fields(work.before, key)) for key in work.before.keys}
    return [
        key
        for key in work.table.keys
        if (key.nulls_distinct, _fields(work.table, key)) not in known
    ]


def _fields(table: Table, key: Key) -> tuple[str, ...]:
    return tuple(table.columns[ordinal].field for ordinal in key.columns)


def _rewrite(work: AlterTableState) -> Plan:
    """source, index, then the columns of the table after."""
    assert work.source.identity is not None, "the table is scanned with its rows' identities"
    new = work.binding.new_column
    who = [new(column.name, column.type) for column in work.source.identity]
    refs = [ColumnRef(column.id, column.type) for column in work.source.identity]
    made: list[PlanColumn] = [new(column.name, column.type) for column in work.table.columns]
    return Project(work.source, (*who, *made), (*refs, *work.values))


# --- columns -----------------------------------------------------------------------------------


def _add_column(work: AlterTableState, command: Node) -> None:
    node = command.def_
    if any(column.name == node.colname for column in work.table.columns):
        message = f'column "{node.colname}" of relation "{work.table.name}" already exists'
        if not command.missing_ok:
            raise SqlError("42701", message)
        work.notices.append(("42701", f"{message}, skipping", None))
        return
    check_column_name(node.colname)
    check_column_count((work.table.numbers or len(work.table.columns)) + 1)
    parts = added_column_parts(work)
    column = bind_column(work.binding, node, parts)
    if column.not_null_name in constraint_names(work.table):
        raise duplicate_constraint(column.not_null_name, work.table.name)
    work.table = with_added_column(work.table, column)
    work.sequences |= parts.sequences
    if column.name in parts.generated:
        try:
            columns = with_generated(work.binding, work.table, parts.generated)
        except SqlError as error:
            # PostgreSQL has the expression in a form without places by then.
            error.position = None
            raise
        work.table = replace(work.table, columns=columns)
    makes_own = column.name in parts.sequences or column.name in parts.generated
    ordinal = len(work.table.columns) - 1
    value = (
        Const(None, column.type)
        if makes_own
        else per_row_default(work.binding, work.table, ordinal)
    )
    work.values.append(value)
    filled = ordinal in work.binding.filled.get(work.table.oid, ())
    if makes_own or filled or not (isinstance(value, Const) and value.value is None):
        work.rewrites = True
    if column.not_null:
        work.required.append(column.name)
    if column.domain is not None:
        work.domains.append(column.name)
    work.keys.append(parts.keys)
    work.new_checks += parts.checks
    work.foreign += parts.foreign


def check_column_name(name: str) -> None:
    """42701 for the name of a system column."""
    if name in SYSTEM_COLUMNS:
        message = f'column name "{name}" conflicts with a system column name'
        raise SqlError("42701", message)


def _drop_column(work: AlterTableState, command: Node) -> None:
    if command.name in SYSTEM_COLUMNS:
        raise SqlError("0A000", f'cannot drop system column "{command.name}"')
    try:
        ordinal = work.ordinal(command.name)
    except SqlError as error:
        if not command.missing_ok:
            raise
        work.notices.append(("00000", f"{error.message}, skipping", None))
        return
    table = work.table
    refuse_clustering_column(table, ordinal, "drop")
    over = drop_views_reading(work, command, command.name)
    drop_owned_sequences(work, table.columns[ordinal], command)
    table = work.table
    depending = generated_from(table, command.name)
    if depending and command.behavior != DropBehavior.DROP_CASCADE:
        told = [
            f"column {column.name} of table {table.shown} depends on column {command.name} "
            f"of table {table.shown}"
            for column in depending
        ]
        message = (
            f"cannot drop column {command.name} of table {table.shown} because other objects "
            "depend on it"
        )
        hint = "Use DROP ... CASCADE to drop the dependent objects too."
        raise SqlError("2BP01", message, detail="\n".join(told), hint=hint)
    gone: list[str] = []
    for column in depending:
        gone.append(f"drop cascades to column {column.name} of table {table.shown}")
        gone += drop_views_reading(work, command, column.name)
    work.notices += drop_cascade_notices([*gone, *over])
    for column in depending:
        _forget_column(work, command, column.name)
    work.dropped += [
        index
        for index in work.binding.context.catalog.indexes(table.oid)
        if command.name in columns_in_index(index) and index not in work.dropped
    ]
    work.dropped += [
        statistics
        for statistics in work.binding.context.catalog.statistics(table.oid)
        if is_statistics_of(statistics, table, command.name) and statistics not in work.dropped
    ]
    _forget_column(work, command, command.name)


def _forget_column(work: AlterTableState, command: Node, name: str) -> None:
    ordinal = work.ordinal(name)
    apply_drop(work, command, without_column(work.table, ordinal), column=True)
    del work.values[ordinal]


def _set_default(work: AlterTableState, command: Node) -> None:
    column = work.column(command.name)
    if column.identity:
        message = f'column "{column.name}" of relation "{work.table.name}" is an identity column'
        hint = (
            None
            if command.def_ is not None
            else "Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY instead."
        )
        raise SqlError("42601", message, hint=hint)
    if column.generated is not None:
        message = f'column "{column.name}" of relation "{work.table.name}" is a generated column'
        hint = (
            "Use ALTER TABLE ... ALTER COLUMN ... SET EXPRESSION instead."
            if command.def_ is not None
            else "Use ALTER TABLE ... ALTER COLUMN ... DROP EXPRESSION instead."
        )
        raise SqlError("42601", message, hint=hint)
    bare = replace(column, has_default=False, default=None, expression=None, sequence=0)
    if command.def_ is not None:
        bare = altered_column_default(work.binding, bare, command.def_)
    else:
        bare = with_domain_default(work.binding, replace(bare, default_of_domain=False))
    work.define(command.name, lambda _: bare)


def _set_not_null(work: AlterTableState, command: Node) -> None:
    if not work.column(command.name).not_null:
        work.define(command.name, lambda column: replace(column, not_null=True))
        work.required.append(command.name)


def _name_not_null(work: AlterTableState, name: str, given: str | None) -> None:
    """ADD CONSTRAINT given NOT NULL name."""
    if given is None:
        return
    column, table = work.column(name), work.table
    if column.not_null:
        known = not_null_name(table, column)
        if given == known:
            return
        shown = f'"{given}" on column "{name}" of table "{table.name}"'
        message = f"cannot create not-null constraint {shown}"
        detail = f'A not-null constraint named "{known}" already exists for this column.'
        raise SqlError("55000", message, detail=detail)
    if given in constraint_names(table):
        raise duplicate_constraint(given, table.name)
    work.define(name, lambda c: replace(c, not_null_name=given))


def _drop_not_null(work: AlterTableState, command: Node) -> None:
    ordinal = work.ordinal(command.name)
    if any(key.primary and ordinal in key.columns for key in work.table.keys):
        raise SqlError("42P16", f'column "{command.name}" is in a primary key')
    if work.table.columns[ordinal].identity:
        message = f'column "{command.name}" of relation "{work.table.name}" is an identity column'
        raise SqlError("42601", message)
    work.define(command.name, lambda c: replace(c, not_null=False, not_null_name=""))


# --- constraints -------------------------------------------------------------------------------


def _add_constraint(work: AlterTableState, command: Node) -> None:
    node = command.def_
    match node.contype:
        case kind if kind in KEY_KINDS and node.indexname:
            use_index(work, node)
        case kind if kind in KEY_KINDS:
            work.keys.append([KeyNode(node)])
        case ConstrType.CONSTR_CHECK:
            work.new_checks.append(node)
        case ConstrType.CONSTR_NOTNULL:
            if node.skip_validation or node.is_no_inherit:
                what = "NOT VALID" if node.skip_validation else "NO INHERIT"
                raise not_supported(f"NOT NULL .. {what}", offset_to_position(node.location))
            (name,) = [key.sval for key in node.keys]
            work.ordinal(name)
            _name_not_null(work, name, node.conname)
            _set_not_null(work, with_column_name(command, name))
        case ConstrType.CONSTR_FOREIGN:
            work.foreign.append(ForeignKeyNode(node))
        case kind:
            raise not_supported("this constraint", offset_to_position(node.location))


def with_column_name(command: Node, name: str) -> Node:
    """The action, applied to a column of this name."""
    return type(command)(subtype=command.subtype, name=name)


def _add_constraints(work: AlterTableState) -> None:
    """The constraints of all actions together, as CREATE TABLE has them."""
    name_new_not_nulls(work)
    for keys in work.keys:
        add_keys(work, keys)
    named = not_null_columns(work.table)
    bound = bind_checks(work.binding, work.table, work.new_checks, named=named, altered=True)
    checks = [
        replace(check, validated=not node.skip_validation)
        for check, node in zip(bound, work.new_checks, strict=True)
    ]
    work.table = replace(work.table, checks=(*work.table.checks, *checks))
    work.checks += [check.name for check in checks if check.validated]


def _drop_constraint(work: AlterTableState, command: Node) -> None:
    table, name = work.table, command.name
    keys = tuple(key for key in table.keys if key.name != name)
    checks = tuple(check for check in table.checks if check.name != name)
    foreign = tuple(key for key in table.foreign_keys if key.name != name)
    if (keys, checks, foreign) != (table.keys, table.checks, table.foreign_keys):
        after = replace(table, keys=keys, checks=checks, foreign_keys=foreign)
        apply_drop(work, command, after, column=False)
        return
    for column in table.columns:
        if column.not_null and name == not_null_name(table, column):
            _drop_not_null(work, with_column_name(command, column.name))
            return
    message = f'constraint "{name}" of relation "{table.name}" does not exist'
    if not command.missing_ok:
        raise SqlError("42704", message)
    work.notices.append(("00000", f"{message}, skipping", None))


def _alter_constraint(work: AlterTableState, command: Node) -> None:
    """ALTER CONSTRAINT: when a foreign key is looked at."""
    table, wanted = work.table, command.def_
    if not any(key.name == wanted.conname for key in table.foreign_keys):
        shown = f'constraint "{wanted.conname}" of relation "{table.name}"'
        if wanted.conname in constraint_names(table):
            raise SqlError("42809", f"{shown} is not a foreign key constraint")
        raise SqlError("42704", f"{shown} does not exist")
    if wanted.alterEnforceability or wanted.alterInheritability:
        raise not_supported("ALTER CONSTRAINT of anything but DEFERRABLE", None)
    if not wanted.alterDeferrability:
        return
    deferrable, deferred = bool(wanted.deferrable), bool(wanted.initdeferred)
    keys = tuple(
        replace(key, deferrable=deferrable, deferred=deferred)
        if key.name == wanted.conname
        else key
        for key in table.foreign_keys
    )
    work.table = replace(table, foreign_keys=keys)


def _validate(work: AlterTableState, command: Node) -> None:
    table = work.table
    if any(check.name == command.name for check in table.checks):
        work.checks += [c.name for c in table.checks if c.name == command.name and not c.validated]
        checks = tuple(
            replace(check, validated=True) if check.name == command.name else check
            for check in table.checks
        )
        work.table = replace(table, checks=checks)
        return
    message = f'constraint "{command.name}" of relation "{work.table.name}" does not exist'
    for foreign in work.table.foreign_keys:
        if foreign.name == command.name:
            if not foreign.validated:
                _validate_foreign(work, foreign)
            return
    if any(key.name == command.name for key in work.table.keys):
        message = f'cannot validate constraint "{command.name}" of relation "{work.table.name}"'
        detail = "This operation is not supported for this type of constraint."
        raise SqlError("42809", message, detail=detail)
    if command.name in (not_null_name(table, c) for c in table.columns if c.not_null):
        return
    raise SqlError("42704", message)


def _validate_foreign(work: AlterTableState, foreign: ForeignKey) -> None:
    parent = work.binding.context.catalog.by_oid(foreign.table)
    assert parent is not None, "a table that is referred to is there"
    work.looked.append(foreign_key_validation(work.binding, work.table, parent, foreign))
    work.looked.extend(match_full_validations(work.binding, work.table, foreign))
    keys = tuple(
        replace(key, validated=True) if key == foreign else key for key in work.table.foreign_keys
    )
    work.table = replace(work.table, foreign_keys=keys)


_ACTIONS: Final[dict[AlterTableType, Callable[[AlterTableState, Node], None]]] = {
    _A.AT_AddColumn: _add_column,
    _A.AT_DropColumn: _drop_column,
    _A.AT_ColumnDefault: _set_default,
    _A.AT_SetNotNull: _set_not_null,
    _A.AT_DropNotNull: _drop_not_null,
    _A.AT_AddIdentity: add_identity,
    _A.AT_SetIdentity: set_identity,
    _A.AT_DropIdentity: drop_identity,
    _A.AT_DropExpression: drop_expression,
    _A.AT_SetExpression: set_expression,
    _A.AT_AlterColumnType: alter_type,
    _A.AT_AddConstraint: _add_constraint,
    _A.AT_DropConstraint: _drop_constraint,
    _A.AT_AlterConstraint: _alter_constraint,
    _A.AT_ValidateConstraint: _validate,
    **PHYSICAL_ACTIONS,
}
