"""ALTER COLUMN of columns that make their own values: identity added, changed, dropped; DROP
EXPRESSION, after which a generated column keeps what it has.

Rows stay as they are: a column that becomes identity has its values already.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from pglast import ast

from sql.altering import Altering
from sql.bind_alter_sequences import change, latest, parts_of
from sql.bind_columns import sequence_name
from sql.bind_sequence_definitions import altered_sequence
from sql.bind_sequences import sequence_of
from sql.catalog import Column
from sql.catalog_objects import INT_BOUNDS, SequenceDefinition
from sql.errors import SqlError
from sql.syntax import Node


def add_identity(work: Altering, command: Node) -> None:
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
    parts = parts_of(work)
    name = sequence_name(work.binding, parts, column.name, node.options or ())
    bare = SequenceDefinition(0, work.table.schema, name, "", type=column.type.name)
    made = sequence_of(work.binding, bare, tuple(node.options or ()), created=True)
    work.sequences[column.name] = replace(made, identity=True, owner_field=column.field)
    work.define(column.name, _identified(node.generated_when))


def set_identity(work: Altering, command: Node) -> None:
    """ALTER COLUMN .. SET GENERATED .., SET and RESTART of its sequence."""
    column = work.column(command.name)
    if not column.identity:
        raise _no_identity(work, column)
    options: Sequence[Node] = command.def_
    for option in options:
        if option.defname == "generated":
            work.define(column.name, _identified(chr(option.arg.ival)))
    rest = [option for option in options if option.defname != "generated"]
    if rest:
        made, fresh = altered_sequence(work.binding, latest(work, _sequence(work, column)), rest)
        change(work, made)
        work.fresh |= fresh


def retype_identity(work: Altering, column: Column, type_: Node) -> None:
    """An identity column of another type counts as far as that goes."""
    if column.sequence:
        option = ast.DefElem(defname="as", arg=type_)
        known = latest(work, _sequence(work, column))
        made, _ = altered_sequence(work.binding, known, [option])
        change(work, made)


def drop_identity(work: Altering, command: Node) -> None:
    """ALTER COLUMN .. DROP IDENTITY [IF EXISTS]: it stays NOT NULL."""
    column = work.column(command.name)
    if not column.identity:
        error = _no_identity(work, column)
        if not command.missing_ok:
            raise error
        work.notices.append(("00000", f"{error.message}, skipping", None))
        return
    work.dropped.append(_sequence(work, column))
    work.define(column.name, lambda c: replace(c, identity="", sequence=0))


def drop_expression(work: Altering, command: Node) -> None:
    """ALTER COLUMN .. DROP EXPRESSION [IF EXISTS]."""
    column = work.column(command.name)
    if column.generated is not None:
        work.define(column.name, lambda c: replace(c, generated=None))
        return
    message = f'column "{column.name}" of relation "{work.table.name}" is not a generated column'
    if not command.missing_ok:
        raise SqlError("55000", message)
    work.notices.append(("00000", f"{message}, skipping", None))


def _identified(letter: str) -> Callable[[Column], Column]:
    kind = "always" if letter == "a" else "by default"
    return lambda column: replace(column, identity=kind)


def _sequence(work: Altering, column: Column) -> SequenceDefinition:
    (found,) = (s for s in work.binding.context.catalog.sequences() if s.oid == column.sequence)
    return found


def _no_identity(work: Altering, column: Column) -> SqlError:
    message = f'column "{column.name}" of relation "{work.table.name}" is not an identity column'
    return SqlError("55000", message)
