"""Expressions that a table stores as text: DEFAULT and CHECK, bound again at every use.

    CREATE TABLE .. DEFAULT e ─▶ bound once, for its errors ─▶ a constant, or its text
    INSERT, UPDATE, COPY ──────▶ text ─parse─▶ bound as part of the statement

INVARIANTS
  X1  the text of an expression parses to the tree that the user wrote, except for the changes of
      X3 and X4. An expression that the printer cannot reproduce is refused.
  X2  errors of a stored expression carry no position, because the client did not send its text.
  X3  a name in an expression is a column of its table, a name of PostgreSQL's own, a type with its
      schema, or a relation's oid (`stored_names.py`). None of them depends on a search path.
  X4  a time literal has the value that it had at the definition, for its author
      (`setting_literals.py`).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache, partial
from typing import TypeVar

from pglast import ast, parser
from pglast.stream import RawStream

from sql.binder.resolve.coercion import ASSIGNMENT, coerce, coerce_to_storage, to_boolean
from sql.binder.resolve.relations import table_item, table_scan
from sql.binder.resolve.type_names import find_user_type, with_array_bounds
from sql.binder.state import Binding, Scope
from sql.binder.stored.sequence_values import (
    next_value_per_row,
    runtime_parameter,
    sequence_of_constant_text,
)
from sql.binder.stored.stored_names import canonical_text
from sql.catalog.catalog import CheckConstraint, Column, NameDependency, Table
from sql.catalog.objects import SequenceDefinition
from sql.errors import SqlError, datatype_mismatch, not_supported
from sql.functions.table import find_cast
from sql.parser.syntax import (
    Node,
    is_a,
    offset_to_position,
    refuse_parameters,
    tree_nodes,
    unsupported_at,
)
from sql.plan.nodes import Call, ColumnRef, Const, Expr, Plan, Project, Scan
from sql.statements.runtime_parameters import RowDefault
from sql.types.sql_type import BOOL, INT8, SqlType, Value, format_type

T = TypeVar("T")

NEW_ROWS = "new"
"""The relation of rows that a statement is about to write."""


# --- text --------------------------------------------------------------------------------------


def stored_text_of(binding: Binding, node: Node) -> str:
    """The SQL text of an expression that was bound (X1, X3).

    42P02 for a parameter, because later statements do not have it.
    """
    refuse_parameters(node)
    text = str(RawStream()(node))
    try:
        same = parse_stored_expression(text) == node
    except SqlError:
        same = False
    if not same:
        raise unsupported_at("keeping this expression", node)
    return canonical_text(binding, text, node, _tree)


@lru_cache(maxsize=2_000)
def parse_stored_expression(text: str) -> Node:
    """Parse a text that `stored_text_of` made."""
    return _tree(text)


def _tree(text: str) -> Node:
    try:
        (tree,) = parser.parse_sql(f"SELECT {text}")
    except parser.ParseError as error:
        raise SqlError("42601", str(error.args[0])) from None
    statement: Node = tree.stmt
    (target,) = statement.targetList
    return target.val


def referenced_column_names(node: Node) -> tuple[str, ...]:
    """The names of columns in an expression over one table, each once, in order of appearance."""
    found = [part.fields for part in tree_nodes(node) if is_a(part, ast.ColumnRef)]
    return tuple(dict.fromkeys(fields[-1].sval for fields in reversed(found)))


# --- defaults ----------------------------------------------------------------------------------


def default_value(binding: Binding, column: Column, *, acts: bool = False) -> Expr:
    """The default of a column, a fresh expression at every use.

    `acts`: sequences may be called for each row. A generated column has no value before all others
    are known. 0A000 for a sequence's next value unless rows are bound one by one; elsewhere
    `per_row_default` records it as a per-row default.
    """
    if column.sequence or column.identity:
        return _next_value(binding, column, acts=acts)
    if column.expression is None:
        return Const(column.default if column.has_default else None, column.type)
    before = len(binding.supplied)
    value = _kept_default(binding, column, column.expression)
    if not binding.makes_rows and _taken(binding, before):
        raise _refused_here(column)
    return value


def per_row_default(binding: Binding, table: Table, ordinal: int) -> Expr:
    """The default for each row of a query or of COPY; sequences yield values when rows are
    written.
    """
    column = table.columns[ordinal]
    sequence, before = _sequence_of(binding, column), len(binding.supplied)
    sequences: tuple[SequenceDefinition, ...] = () if sequence is None else (sequence,)
    if sequence is None and column.expression is not None:
        value = _kept_default(binding, column, column.expression)
        sequences = _taken(binding, before)
        kinds = [call.kind for call in binding.supplied[before:]]
        mixed = bool(sequences) and len(kinds) != len(sequences)
        reads = "currval" in kinds or "lastval" in kinds
        if mixed or (reads and any(map(_moves_on, table.columns))):
            raise _refused_here(column)  # of what currval() is then, each row would have its own
        if not sequences:
            return value
        del binding.supplied[before:]
    if not sequences:
        return default_value(binding, column)
    binding.filled.setdefault(table.oid, {})[ordinal] = RowDefault(sequences, column.expression)
    return Const(None, column.type)


def sequence_default_plan(binding: Binding, column: Column, text: str, calls: int) -> Plan:
    """Compute a default over rows of `new`, whose columns are the sequence values of
    `per_row_default`.
    """
    taken = tuple(Column(f"value{at}", INT8) for at in range(calls))
    scanned = table_scan(binding, Table(0, "", NEW_ROWS, "", taken), relation=NEW_ROWS)
    binding.taken = [ColumnRef(made.id, made.type) for made in scanned.columns]
    value = _kept_default(binding, column, text)
    return Project(scanned, (binding.new_column(column.name, column.type),), (value,))


def _kept_default(binding: Binding, column: Column, text: str) -> Expr:
    return bind_stored(
        binding, partial(bound_default, binding, column, parse_stored_expression(text))
    )


def _taken(binding: Binding, before: int) -> tuple[SequenceDefinition, ...]:
    """The sequences whose next values were asked for since."""
    calls = [call for call in binding.supplied[before:] if call.kind == "nextval"]
    return tuple(
        [call.sequence or sequence_of_constant_text(binding, call.args[0]) for call in calls]
    )


def _moves_on(column: Column) -> bool:
    """Whether a default takes values of a sequence, so that currval() is another in every row."""
    return bool(column.sequence or column.identity) or "nextval" in (column.expression or "")


def _refused_here(column: Column) -> SqlError:
    return not_supported(f'the default of column "{column.name}" here')


def _sequence_of(binding: Binding, column: Column) -> SequenceDefinition | None:
    if not column.sequence:
        return None
    found = binding.context.catalog.sequence_by_oid(column.sequence)
    assert found is not None, "a sequence that a column uses is not dropped"
    binding.uses.add(NameDependency(found.schema, found.name, found.oid))
    return found


def _next_value(binding: Binding, column: Column, *, acts: bool) -> Expr:
    sequence = _sequence_of(binding, column)
    assert sequence is not None, "an identity column has a sequence"
    if not binding.makes_rows and not acts:
        raise _refused_here(column)
    value: Expr = (
        next_value_per_row(binding, sequence)
        if acts
        else runtime_parameter(binding, "nextval", sequence)
    )
    if column.type.name == "int8":
        return value
    narrowed = find_cast("int8", column.type.name)
    assert narrowed is not None, "integers have casts to each other"
    return Call(narrowed, (value,), column.type)


def bound_default(binding: Binding, column: Column, node: Node) -> Expr:
    """A DEFAULT in its column's type. Raises the errors of PostgreSQL at its definition."""
    refuse_subqueries(node, "DEFAULT expression")
    expr = binding.expression(Scope(clause="DEFAULT"), node)
    done = coerce(binding, expr, node, column.type, ASSIGNMENT)
    if done is None:
        shown, wanted = (format_type(SqlType(name)) for name in (expr.type.name, column.type.name))
        message = (
            f'column "{column.name}" is of type {wanted} but default expression is of type {shown}'
        )
        raise datatype_mismatch(message, hint="You will need to rewrite or cast the expression.")
    return coerce_to_storage(binding, done, column.type)


def checked_default(binding: Binding, column: Column, node: Node) -> Expr:
    """Bind a DEFAULT at its definition, without taking values from sequences."""
    before = len(binding.supplied)
    expr = bound_default(binding, column, node)
    del binding.supplied[before:]
    return expr


def with_defined_default(binding: Binding, column: Column, node: Node) -> Column:
    """The column with this DEFAULT: a constant if possible, otherwise its text."""
    moved = binding.uses_now, binding.uses_session
    binding.uses_now = binding.uses_session = False
    expr = checked_default(binding, column, node)
    moving = binding.uses_now or binding.uses_session
    binding.uses_now, binding.uses_session = moved
    if isinstance(expr, Const) and not moving:
        value = _as_written(node, expr.value)
        text = _constant_text(binding, node)
        return replace(column, has_default=True, default=value, expression=None, default_text=text)
    return replace(column, has_default=True, default=None, expression=stored_text_of(binding, node))


def _constant_text(binding: Binding, node: Node) -> str:
    """The text of a constant, which is shown; empty if it names a user's type, which may change."""
    named = [part for part in tree_nodes(node) if is_a(part, ast.TypeName)]
    users = (find_user_type(binding, with_array_bounds(binding, part)) for part in named)
    if any(found is not None for found in users):
        return ""
    try:
        return stored_text_of(binding, node)
    except SqlError:
        return ""


def _as_written(node: Node, value: Value) -> Value:
    """The number with the decimals that were written, which PostgreSQL shows: 0 and not 0.00."""
    if not isinstance(value, Decimal) or not is_a(node, ast.A_Const):
        return value
    literal: Node = node.val
    if is_a(literal, ast.Integer):
        written = Decimal(literal.ival or 0)
    elif is_a(literal, ast.Float):
        written = Decimal(literal.fval)
    else:
        return value
    return written if written == value else value


# --- checks ------------------------------------------------------------------------------------


def check_scope(
    binding: Binding, table: Table, relation: str | None = NEW_ROWS
) -> tuple[Scan, Scope]:
    """A scan of `new` or of the table itself, and the names that its constraints may use."""
    scanned = table_scan(binding, table, relation=relation)
    items = [table_item(scanned, table, None)]
    return scanned, Scope(clause="check constraints", items=items)


def bound_check(binding: Binding, scope: Scope, node: Node) -> Expr:
    """The condition of a CHECK."""
    refuse_subqueries(node, "check constraint")
    return to_boolean(binding, binding.expression(scope, node), node, "CHECK")


def check_plan(binding: Binding, table: Table, checks: Sequence[CheckConstraint]) -> Plan:
    """One boolean column per constraint over rows of `new`: false where a row violates it."""
    scanned, scope = check_scope(binding, table)
    nodes = [parse_stored_expression(check.expression) for check in checks]
    exprs = tuple(
        [bind_stored(binding, partial(bound_check, binding, scope, node)) for node in nodes]
    )
    made = tuple([binding.new_column(check.name, BOOL) for check in checks])
    return Project(scanned, made, exprs)


def refuse_subqueries(node: Node, where: str) -> None:
    """0A000 for a subquery where none is allowed."""
    found = [part for part in tree_nodes(node) if is_a(part, ast.SubLink)]
    if found:
        place = min(part.location for part in found)
        raise SqlError("0A000", f"cannot use subquery in {where}", offset_to_position(place))


def bind_stored(binding: Binding, bind: Callable[[], T]) -> T:
    """Bind an expression from stored text: its errors have no position (X2)."""
    before, binding.kept = binding.kept, True
    try:
        return without_position(bind)
    finally:
        binding.kept = before


def without_position(bind: Callable[[], T]) -> T:
    """Run a binding step whose errors lose their position."""
    try:
        return bind()
    except SqlError as error:
        error.position = None
        raise
