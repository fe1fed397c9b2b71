"""Write many comparisons of columns with constants as lists, which DuckDB joins.

a = 1 or a = 2 ..                        ─▶  a in (1, 2, ..)
a <> 1 and a <> 2 ..                     ─▶  a not in (1, 2, ..)
(a = 1 and b = 5) or (a = 2 ..) ..       ─▶  (a, b) in (select unnest([1, 2]), unnest([5, 6]))
case when a = 1 then 'x' when a = 2 ..   ─▶  ['x', ..][list_position([1, 2, ..], a)]

DuckDB's optimizer compares each operand of a condition with all others, several times.

INVARIANTS
  E1  the value is the same for every row, NULL included. For a row with NULLs, some columns of the
      list decide between NULL and false.
  E2  nothing that may fail moves: such conditions stay as they are.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Final, TypeAlias

from sql.emit.duckdb.constant_lists import LIST_MIN, constant_list
from sql.emit.duckdb.types import bind_variable, duckdb_type
from sql.emit.state import Scope
from sql.functions.table import FunctionKind
from sql.plan.conditions import equality_sides
from sql.plan.constant_items import ConstantItems
from sql.plan.constant_rows import ConstantWhens
from sql.plan.nodes import (
    BoolOp,
    Call,
    Case,
    ColumnId,
    ColumnRef,
    Const,
    Expr,
    InList,
    InRows,
    Logical,
)
from sql.plan.traverse import column_ids, has_subquery, is_volatile_expression
from sql.rewrite.guard_expressions import may_fail
from sql.types.sql_type import BOOL, Value

OPERANDS_MAX: Final = 32
"""Conditions that DuckDB may compare with each other. More: its optimizer takes the square."""

_COLUMNS_MAX: Final = 3
"""Of rows with NULLs: each set of columns that may be NULL is a join."""

_TYPES: Final = frozenset(
    {"int2", "int4", "int8", "text", "varchar", "numeric", "date", "timestamp", "timestamptz"}
)
"""DuckDB compares their values as PostgreSQL does, also where it hashes them."""

_Pair: TypeAlias = tuple[ColumnRef, Value]


def merge_equalities(op: BoolOp, args: Sequence[Expr], scope: Scope) -> Sequence[Expr]:
    """The operands of AND or OR in any order, comparisons of a column as one IN (E2)."""
    if scope.in_lambda or scope.joining or len(args) < LIST_MIN:
        return args
    compared: dict[ColumnId, list[tuple[Expr, _Pair]]] = {}
    others: list[Expr] = []
    for arg in args:
        pair = _comparison(arg, "=" if op is BoolOp.OR else "<>", scope)
        if pair is None:
            others.append(arg)
        else:
            compared.setdefault(pair[0].id, []).append((arg, pair))
    for found in compared.values():
        if len(found) < LIST_MIN:
            others += [arg for arg, _ in found]
            continue
        column = found[0][1][0]
        items = ConstantItems([value for _, (_, value) in found], column.type)
        others.append(InList(column, items, op is BoolOp.AND, BOOL))
    return others


def _comparison(expr: Expr, operator: str, scope: Scope) -> _Pair | None:
    """The column and the known value of `column = value`; None for anything else."""
    if (
        not isinstance(expr, Call)
        or expr.function.name != operator
        or expr.function.kind is not FunctionKind.OPERATOR
        or len(expr.args) != 2
    ):
        return None
    column, other = expr.args
    if not isinstance(column, ColumnRef):
        column, other = other, column
    types = column.type, other.type
    if not isinstance(column, ColumnRef) or not all(type_.name in _TYPES for type_ in types):
        return None
    known = scope.statement.known(other)
    if known is None or duckdb_type(types[0]) != duckdb_type(types[1]):
        return None
    return column, known[0]


def merge_rows(op: BoolOp, args: Sequence[Expr], scope: Scope) -> tuple[list[str], list[Expr]]:
    """The texts of long lists of rows among the operands of AND or OR, and the other operands."""
    if scope.in_lambda or scope.joining or len(args) < LIST_MIN:
        return [], list(args)
    listed: dict[tuple[ColumnId, ...], list[tuple[Expr, Sequence[_Pair]]]] = {}
    others: list[Expr] = []
    for arg in args:
        pairs = _row(arg, op, scope)
        if pairs is None:
            others.append(arg)
        else:
            listed.setdefault(tuple([column.id for column, _ in pairs]), []).append((arg, pairs))
    texts: list[str] = []
    for found in listed.values():
        text = _rows_text(op, [pairs for _, pairs in found], scope)
        if text is None:
            others += [arg for arg, _ in found]
        else:
            texts.append(text)
    return texts, others


def _row(arg: Expr, op: BoolOp, scope: Scope) -> Sequence[_Pair] | None:
    """The columns and constants of `a = 1 and b = 2` in OR, of `a <> 1 or b <> 2` in AND."""
    within, operator = (BoolOp.AND, "=") if op is BoolOp.OR else (BoolOp.OR, "<>")
    if not isinstance(arg, Logical) or arg.op is not within:
        return None
    pairs: dict[ColumnId, _Pair] = {}
    for part in arg.args:
        pair = _comparison(part, operator, scope)
        if pair is None or pair[1] is None or pair[0].id in pairs:
            return None
        pairs[pair[0].id] = pair
    return [pairs[id_] for id_ in sorted(pairs)]


def _rows_text(op: BoolOp, rows: Sequence[Sequence[_Pair]], scope: Scope) -> str | None:
    if len(rows) < LIST_MIN or len(rows[0]) > _COLUMNS_MAX:
        return None
    columns = [column for column, _ in rows[0]]
    pairs = zip(columns, zip(*rows, strict=True), strict=True)
    items = [ConstantItems([value for _, value in values], col.type) for col, values in pairs]
    return _among_rows(op, columns, items, scope)


def in_constant_rows(expr: InRows, scope: Scope) -> str | None:
    """`(a, b) [NOT] IN` many rows as a join; None where that cannot be one."""
    columns = [arg for arg in expr.args if isinstance(arg, ColumnRef)]
    items = [column for column in expr.columns if isinstance(column, ConstantItems)]
    if scope.in_lambda or len(columns) < len(expr.args) or len(items) < len(columns):
        return None
    if len(columns) == 1:
        return scope.emit(InList(columns[0], items[0], expr.negated, BOOL))
    if scope.joining or len(columns) > _COLUMNS_MAX:
        return None
    return _among_rows(BoolOp.AND if expr.negated else BoolOp.OR, columns, items, scope)


def _among_rows(
    op: BoolOp, columns: Sequence[ColumnRef], items: Sequence[ConstantItems], scope: Scope
) -> str | None:
    found = [constant_list(column.values, column.type, scope) for column in items]
    lists = [text for text in found if text is not None]
    if len(lists) < len(found):
        return None
    names = [scope.emit(column) for column in columns]

    def among(which: Sequence[int]) -> str:
        subject = ", ".join(names[at] for at in which)
        items = ", ".join(f"unnest({lists[at]})" for at in which)
        return f"({subject}) in (select {items})"

    everything = range(len(columns))
    present = " and ".join(f"{name} is not null" for name in names)
    if op is BoolOp.OR and scope.filtering:
        return f"({among(everything)} and {present})"
    whens = [f"when {present} then {among(everything)}"]
    whens += _whens_of_nulls(names, among)
    return f"({'' if op is BoolOp.OR else 'not '}case {' '.join(whens)} end)"


def _whens_of_nulls(names: Sequence[str], among: Callable[[Sequence[int]], str]) -> Iterator[str]:
    """The branches for rows with NULLs: false if no item of the list equals their other columns,
    otherwise NULL, as for a row of NULLs (E1).
    """
    for nulls in product((False, True), repeat=len(names)):
        known = [at for at, null in enumerate(nulls) if not null]
        if known and len(known) < len(names):
            asked = " and ".join(f"{names[at]} is null" for at, null in enumerate(nulls) if null)
            present = " and ".join(f"{names[at]} is not null" for at in known)
            yield f"when {asked} and {present} and not ({among(known)}) then false"


def in_groups(op: BoolOp, texts: Sequence[str]) -> str:
    """A long AND or OR as groups, which DuckDB does not join again: it looks into no COALESCE."""
    word = f" {op.value} "
    while len(texts) > OPERANDS_MAX:
        parts = [texts[at : at + OPERANDS_MAX] for at in range(0, len(texts), OPERANDS_MAX)]
        texts = [f"coalesce(({word.join(part)}), null)" for part in parts]
    return f"({word.join(texts)})"


def group_conditions(parts: Sequence[Expr]) -> Sequence[Expr]:
    """Conditions of WHERE; many over the same columns are one (E2). Those that equate columns stay:
    DuckDB joins by them.
    """
    if len(parts) <= OPERANDS_MAX or any(map(may_fail, parts)):
        return parts
    found: list[Expr] = []
    groups: dict[frozenset[ColumnId], list[Expr]] = {}
    for part in parts:
        if has_subquery(part) or is_volatile_expression(part) or equality_sides(part):
            found.append(part)
        else:
            groups.setdefault(frozenset(column_ids(part)), []).append(part)
    for group in groups.values():
        if len(group) > OPERANDS_MAX:
            found.append(Logical(BoolOp.AND, tuple(group), BOOL))
        else:
            found += group
    return found


def looked_up(case: Case, scope: Scope) -> str | None:
    """A CASE that compares a column with many constants, as a list; None for any other (E1)."""
    if len(case.whens) < LIST_MIN or not isinstance(case.otherwise, Const | ColumnRef):
        return None
    found: dict[Value, Value] = {}
    subject: ColumnRef | None = None
    if isinstance(case.whens, ConstantWhens):
        subject = case.whens.subject if isinstance(case.whens.subject, ColumnRef) else None
        for key, value in zip(case.whens.keys.values, case.whens.results.values, strict=True):
            found.setdefault(key, value)
        return None if subject is None else _from_lists(case, subject, found, scope)
    for when, then in case.whens:
        pair = _comparison(when, "=", scope)
        if pair is None or not isinstance(then, Const) or pair[0] != (subject or pair[0]):
            return None
        subject = pair[0]
        if pair[1] is not None:
            found.setdefault(pair[1], then.value)
    types = {duckdb_type(then.type) for _, then in case.whens}
    if subject is None or types != {duckdb_type(case.type)}:
        return None
    return _from_lists(case, subject, found, scope)


def _from_lists(
    case: Case, subject: ColumnRef, found: Mapping[Value, Value], scope: Scope
) -> str | None:
    if duckdb_type(case.whens[0][1].type) != duckdb_type(case.type):
        return None
    keys = constant_list(list(found), subject.type, scope)
    values = constant_list(list(found.values()), case.type, scope)
    if keys is None or values is None:
        return None
    name = scope.variable()
    text = f"case when {name} > 0 then ({values})[{name}] else {scope.emit(case.otherwise)} end"
    return bind_variable(name, f"list_position({keys}, {scope.emit(subject)})", text)
