"""ALTER COLUMN for identity and generated columns: ADD, SET, DROP IDENTITY and EXPRESSION.

Only SET EXPRESSION changes rows. A column that becomes identity keeps its values, and so does a
generated column that loses its expression.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from pglast import ast

from sql.binder.ddl.alter.owned_sequences import (
    added_column_parts,
    change_sequence,
    latest_sequence,
)
from sql.binder.ddl.alter.state import AlterTableState
from sql.binder.ddl.columns import sequence_name
from sql.binder.ddl.generated import with_generated
from sql.binder.ddl.sequence_options import sequence_with_options
from sql.binder.ddl.sequences import altered_sequence
from sql.binder.ddl.storage_options import refuse_clustering_column
from sql.binder.stored.relation_users import (
    dependent_objects_still_exist,
    relation_display_name,
    stored_uses_of,
    use_dependency_details,
)
from sql.binder.stored.table_changes import columns_in_check, with_rewritten_column
from sql.binder.stored.views import view_dependency_details, views_over
from sql.catalog.catalog import Column, Table
from sql.catalog.objects import INT_BOUNDS, SequenceDefinition
from sql.errors import SqlError
from sql.parser.option_values import options_by_name
from sql.parser.syntax import Node
from sql.plan.nodes import Const


def add_identity(work: AlterTableState, command: Node) -> None:
    """ALTER COLUMN .. ADD GENERATED .. AS IDENTITY."""
    node, column = command.def_, work.column(command.name)
    shown = f'column "{column.name}" of relation "{work.table.name}"'
    if column.type.name not in INT_BOUNDS:
        raise SqlError("22023", "identity column type must be smallint, integer, or bigint")
    if not column.not_null:
        message = f"{shown} must be declared NOT NULL before identity can be added"
        raise SqlError("55000", message)
    if column.identity:
        raise SqlError("55000", f"{shown} is already an identity column")
    if column.has_default or column.generated is not None:
        raise SqlError("55000", f"{shown} already has a default value")
    parts = added_column_parts(work)
    name = sequence_name(work.binding, parts, column.name, node.options or ())
    bare = SequenceDefinition(0, work.table.schema, name, "", type=column.type.name, identity=True)
    made = sequence_with_options(work.binding, bare, tuple(node.options or ()), created=True)
    work.sequences[column.name] = replace(made, owner_field=column.field)
    work.define(column.name, _identified(node.generated_when))


def set_identity(work: AlterTableState, command: Node) -> None:
    """ALTER COLUMN .. SET GENERATED .., SET and RESTART of its sequence."""
    column = work.column(command.name)
    if not column.identity:
        raise _no_identity(work, column)
    options: Sequence[Node] = command.def_
    said = [option for option in options if option.defname == "generated"]
    for option in options_by_name(said, placed=False).values():
        work.define(column.name, _identified(chr(option.arg.ival)))
    rest = [option for option in options if option.defname != "generated"]
    if rest and column.name in work.sequences:
        work.sequences[column.name] = _altered_early(work, work.sequences[column.name], rest)
    elif rest:
        made, fresh = altered_sequence(
            work.binding, latest_sequence(work, _sequence(work, column)), rest
        )
        change_sequence(work, made)
        work.fresh |= fresh


def _altered_early(
    work: AlterTableState, found: SequenceDefinition, options: Sequence[Node]
) -> SequenceDefinition:
    """A sequence of the same statement, which is yet to be made: it begins where RESTART says."""
    made, fresh = altered_sequence(work.binding, found, options)
    first = int(made.state.removeprefix("@")) if fresh else made.first
    return replace(made, state=found.state, version=found.version, first=first)


def retype_identity(work: AlterTableState, column: Column, type_: Node) -> None:
    """Limit the sequence of an identity column to the range of the column's new type."""
    if column.sequence:
        option = ast.DefElem(defname="as", arg=type_)
        known = latest_sequence(work, _sequence(work, column))
        made, _ = altered_sequence(work.binding, known, [option])
        change_sequence(work, made)


def drop_identity(work: AlterTableState, command: Node) -> None:
    """ALTER COLUMN .. DROP IDENTITY [IF EXISTS]: the column stays NOT NULL."""
    column = work.column(command.name)
    if not column.identity:
        error = _no_identity(work, column)
        if not command.missing_ok:
            raise error
        work.notices.append(("00000", f"{error.message}, skipping", None))
        return
    sequence = _sequence(work, column)
    _check_unused(work, column, sequence)
    work.dropped.append(sequence)
    work.define(column.name, lambda c: replace(c, identity="", sequence=0))


def _check_unused(work: AlterTableState, column: Column, sequence: SequenceDefinition) -> None:
    """2BP01 for a sequence that others use; DROP IDENTITY does not cascade."""
    catalog, path = work.binding.context.catalog, work.binding.context.search_path
    used = [
        use
        for use in stored_uses_of(catalog, {sequence.oid}, path)
        if use.kept.column is None
        or (use.kept.of.oid, use.kept.column.name) != (work.before.oid, column.name)
    ]
    views = views_over(catalog, {sequence.oid})
    if used or views:
        told = [
            *use_dependency_details(used),
            *view_dependency_details(catalog, views, {sequence.oid}),
        ]
        raise dependent_objects_still_exist(
            [f"sequence {relation_display_name(sequence, path)}"], told
        )


def drop_expression(work: AlterTableState, command: Node) -> None:
    """ALTER COLUMN .. DROP EXPRESSION [IF EXISTS]."""
    column = work.column(command.name)
    if column.generated is not None:
        work.define(column.name, lambda c: replace(c, generated=None))
        return
    message = f'column "{column.name}" of relation "{work.table.name}" is not a generated column'
    if not command.missing_ok:
        raise SqlError("55000", message)
    work.notices.append(("00000", f"{message}, skipping", None))


def set_expression(work: AlterTableState, command: Node) -> None:
    """ALTER COLUMN .. SET EXPRESSION: recompute all rows, and validate the constraints over the
    column.
    """
    name = command.name
    ordinal = work.ordinal(name)
    column = work.table.columns[ordinal]
    if column.generated is None:
        message = f'column "{name}" of relation "{work.table.name}" is not a generated column'
        raise SqlError("55000", message)
    refuse_clustering_column(work.table, ordinal, "alter")
    bare = replace(work.table, columns=_with(work.table, ordinal, replace(column, generated=None)))
    try:
        columns = with_generated(work.binding, bare, {name: command.def_})
    except SqlError as error:
        # PostgreSQL has the expression in a form without places by then.
        error.position = None
        raise
    work.table = with_rewritten_column(work.table, ordinal, columns[ordinal])
    work.values[ordinal] = Const(None, column.type)
    work.rewrites = True
    work.checks += [
        c.name for c in work.table.checks if c.validated and name in columns_in_check(c)
    ]
    if column.not_null:
        work.required.append(name)
    if column.domain is not None:
        work.domains.append(name)


def _with(table: Table, ordinal: int, column: Column) -> tuple[Column, ...]:
    return (*table.columns[:ordinal], column, *table.columns[ordinal + 1 :])


def _identified(letter: str) -> Callable[[Column], Column]:
    kind = "always" if letter == "a" else "by default"
    return lambda column: replace(column, identity=kind)


def _sequence(work: AlterTableState, column: Column) -> SequenceDefinition:
    (found,) = (s for s in work.binding.context.catalog.sequences() if s.oid == column.sequence)
    return found


def _no_identity(work: AlterTableState, column: Column) -> SqlError:
    message = f'column "{column.name}" of relation "{work.table.name}" is not an identity column'
    return SqlError("55000", message)
