"""Expressions that a table keeps: defaults, and the conditions of CHECK; as text, bound when used.

    CREATE TABLE .. DEFAULT e ─▶ bound once, for its errors ─▶ a constant, or its text
    INSERT, UPDATE, COPY ──────▶ text ─parse─▶ bound as if it stood in the statement

INVARIANTS
  X1  the text of an expression parses to the very tree that the user wrote, but for what X3 and X4
      say; what our printer cannot write so is refused.
  X2  errors of a kept expression carry no position: it stands in no text that the client has sent.
  X3  a name in an expression is a column of its table, PostgreSQL's own, that of a type with its
      schema, or a relation's oid (`stored_names.py`): nothing of it depends on the search path of
      who writes a row.
  X4  a literal of a time means what it did to him who wrote it, and then (`setting_literals.py`).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache, partial
from typing import TypeVar

from pglast import ast, parser
from pglast.stream import RawStream

from sql.binder.resolve.coercion import ASSIGNMENT, coerce, stored, to_boolean
from sql.binder.resolve.relations import scan, table_item
from sql.binder.state import Binding, Scope
from sql.binder.stored.sequence_values import next_value_of_row, sequence_now, supplied
from sql.binder.stored.stored_names import for_everybody
from sql.catalog.catalog import Check, Column, LookUp, Table
from sql.catalog.objects import SequenceDefinition
from sql.errors import SqlError, mismatch, not_supported
from sql.functions.table import cast
from sql.parser.syntax import Node, at, is_a, parts, refuse_parameters, unsupported
from sql.plan.nodes import Call, ColumnRef, Const, Expr, Plan, Project, Scan
from sql.statements.supplied import Filled
from sql.types.sql_type import BOOL, INT8, SqlType, Value, display

T = TypeVar("T")

NEW_ROWS = "new"
"""The relation of rows that a statement makes."""


# --- text --------------------------------------------------------------------------------------


def text_of(binding: Binding, node: Node) -> str:
    """An expression that was bound as SQL text (X1, X3). 42P02 for a parameter: no later statement
    has it.
    """
    refuse_parameters(node)
    text = str(RawStream()(node))
    try:
        same = expression_of(text) == node
    except SqlError:
        same = False
    if not same:
        raise unsupported("keeping this expression", node)
    return for_everybody(binding, text, node, _tree)


@lru_cache(maxsize=2_000)
def expression_of(text: str) -> Node:
    """The tree of a text that `text_of` has made."""
    return _tree(text)


def _tree(text: str) -> Node:
    try:
        (tree,) = parser.parse_sql(f"SELECT {text}")
    except parser.ParseError as error:
        raise SqlError("42601", str(error.args[0])) from None
    statement: Node = tree.stmt
    (target,) = statement.targetList
    return target.val


def column_names(node: Node) -> tuple[str, ...]:
    """The names of columns in an expression over one table, each once, as they come."""
    found = [part.fields for part in parts(node) if is_a(part, ast.ColumnRef)]
    return tuple(dict.fromkeys(fields[-1].sval for fields in reversed(found)))


# --- defaults ----------------------------------------------------------------------------------


def default_value(binding: Binding, column: Column, *, acts: bool = False) -> Expr:
    """What a column gets that is given no value. Every use is an expression of its own. `acts`:
    where sequences may be called for each row.

    A column that is generated has no value before all others are known. 0A000 for the next value
    of a sequence where rows are not bound one by one; `row_default` has it filled in.
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


def row_default(binding: Binding, table: Table, ordinal: int) -> Expr:
    """The same for each row of a query or of COPY; sequences give values when rows are written."""
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
    binding.filled.setdefault(table.oid, {})[ordinal] = Filled(sequences, column.expression)
    return Const(None, column.type)


def filled_plan(binding: Binding, column: Column, text: str, calls: int) -> Plan:
    """Rows of `new`, the values of the sequences that `row_default` has found, as the default."""
    taken = tuple(Column(f"value{at}", INT8) for at in range(calls))
    scanned = scan(binding, Table(0, "", NEW_ROWS, "", taken), relation=NEW_ROWS)
    binding.taken = [ColumnRef(made.id, made.type) for made in scanned.columns]
    value = _kept_default(binding, column, text)
    return Project(scanned, (binding.new_column(column.name, column.type),), (value,))


def _kept_default(binding: Binding, column: Column, text: str) -> Expr:
    return unplaced(binding, partial(bound_default, binding, column, expression_of(text)))


def _taken(binding: Binding, before: int) -> tuple[SequenceDefinition, ...]:
    """The sequences whose next values were asked for since."""
    calls = [call for call in binding.supplied[before:] if call.kind == "nextval"]
    return tuple([call.sequence or sequence_now(binding, call.args[0]) for call in calls])


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
    binding.look_ups.add(LookUp(found.schema, found.name, found.oid))
    return found


def _next_value(binding: Binding, column: Column, *, acts: bool) -> Expr:
    sequence = _sequence_of(binding, column)
    assert sequence is not None, "an identity column has a sequence"
    if not binding.makes_rows and not acts:
        raise _refused_here(column)
    value: Expr = (
        next_value_of_row(binding, sequence) if acts else supplied(binding, "nextval", sequence)
    )
    if column.type.name == "int8":
        return value
    narrowed = cast("int8", column.type.name)
    assert narrowed is not None, "integers have casts to each other"
    return Call(narrowed, (value,), column.type)


def bound_default(binding: Binding, column: Column, node: Node) -> Expr:
    """A DEFAULT as its column stores it. Raises what PostgreSQL does at its definition."""
    refuse_subqueries(node, "DEFAULT expression")
    expr = binding.expression(Scope(clause="DEFAULT"), node)
    done = coerce(binding, expr, node, column.type, ASSIGNMENT)
    if done is None:
        shown, wanted = (display(SqlType(name)) for name in (expr.type.name, column.type.name))
        message = (
            f'column "{column.name}" is of type {wanted} but default expression is of type {shown}'
        )
        raise mismatch(message, hint="You will need to rewrite or cast the expression.")
    return stored(binding, done, column.type)


def checked_default(binding: Binding, column: Column, node: Node) -> Expr:
    """A DEFAULT that is defined, and not used: it takes no values of sequences."""
    before = len(binding.supplied)
    expr = bound_default(binding, column, node)
    del binding.supplied[before:]
    return expr


def defined_default(binding: Binding, column: Column, node: Node) -> Column:
    """The column with this DEFAULT: a constant if it is one, else its text."""
    moved = binding.uses_now, binding.uses_session
    binding.uses_now = binding.uses_session = False
    expr = checked_default(binding, column, node)
    moving = binding.uses_now or binding.uses_session
    binding.uses_now, binding.uses_session = moved
    if isinstance(expr, Const) and not moving:
        value = _as_written(node, expr.value)
        return replace(column, has_default=True, default=value, expression=None)
    return replace(column, has_default=True, default=None, expression=text_of(binding, node))


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
    """Rows of `new`, or the table's own, and the names that a constraint of it may use."""
    scanned = scan(binding, table, relation=relation)
    items = [table_item(scanned, table, None)]
    return scanned, Scope(clause="check constraints", items=items)


def bound_check(binding: Binding, scope: Scope, node: Node) -> Expr:
    """The condition of a CHECK."""
    refuse_subqueries(node, "check constraint")
    return to_boolean(binding, binding.expression(scope, node), node, "CHECK")


def check_plan(binding: Binding, table: Table, checks: Sequence[Check]) -> Plan:
    """Rows of `new` as one boolean a constraint: false where it is violated."""
    scanned, scope = check_scope(binding, table)
    nodes = [expression_of(check.expression) for check in checks]
    exprs = tuple([unplaced(binding, partial(bound_check, binding, scope, node)) for node in nodes])
    made = tuple([binding.new_column(check.name, BOOL) for check in checks])
    return Project(scanned, made, exprs)


def refuse_subqueries(node: Node, where: str) -> None:
    """0A000 for a subquery where none may be."""
    found = [part for part in parts(node) if is_a(part, ast.SubLink)]
    if found:
        place = min(part.location for part in found)
        raise SqlError("0A000", f"cannot use subquery in {where}", at(place))


def unplaced(binding: Binding, bind: Callable[[], T]) -> T:
    """What is bound from kept text: its errors have no place (X2)."""
    before, binding.kept = binding.kept, True
    try:
        return placeless(bind)
    finally:
        binding.kept = before


def placeless(bind: Callable[[], T]) -> T:
    """What is bound, with errors that have no place."""
    try:
        return bind()
    except SqlError as error:
        error.position = None
        raise
