"""SEARCH and CYCLE of WITH RECURSIVE, rewritten as PostgreSQL does (rewriteSearchCycle.c).

    SEARCH DEPTH FIRST BY a SET o     o: the path of rows, array[row(a)], then o || row(a)
    SEARCH BREADTH FIRST BY a SET o   o: row(depth, a)
    CYCLE a SET m USING p             p: the path of rows; m: whether row(a) is one of them, and
                                      then nothing follows that row

INVARIANTS
  S1  a row of the recursion has the query's columns, then the added ones in this order, then the
      depth. The step may read the added columns by name; a star does not show them.
  S2  each row of the step comes from exactly one row of the previous iteration. The added columns
      are carried up from the scan of that iteration through joins, filters and projections only.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pglast import ast
from pglast.enums import SetOperation

from sql.binder.expressions.calls import operator
from sql.binder.expressions.rows import comparable_record
from sql.binder.resolve.unified_types import to_common_type
from sql.binder.state import Binding, Scope
from sql.errors import SqlError, not_supported
from sql.functions.table import function_by_id
from sql.parser.syntax import Node, is_a, offset_to_position, string_values
from sql.plan.nodes import (
    AnyAll,
    Call,
    Case,
    ColumnRef,
    Const,
    CteId,
    CteScan,
    Expr,
    Filter,
    Join,
    Plan,
    PlanColumn,
    Project,
    Recursive,
    output_columns,
)
from sql.types.records import RECORD
from sql.types.sql_type import BOOL, INT8, SqlType, array_of

_PATH = array_of(RECORD)
"""With the session's styles behind the values."""


@dataclass(slots=True)
class SearchCycle:
    """The clauses of one query, and the columns that they add (S1)."""

    node: Node
    sequence: SqlType | None = None
    mark: tuple[Expr, Expr] | None = None
    """The mark of a row that closes a cycle, and that of others."""
    columns: list[PlanColumn] = field(default_factory=list[PlanColumn])

    @property
    def search(self) -> Node:
        """The SEARCH clause."""
        return self.node.search_clause

    @property
    def cycle(self) -> Node:
        """The CYCLE clause."""
        return self.node.cycle_clause

    @property
    def shown(self) -> Sequence[PlanColumn]:
        """The added columns without the depth."""
        return self.columns[:-1]


def search_cycle(binding: Binding, scope: Scope, cte: Node) -> SearchCycle | None:
    """The columns that SEARCH and CYCLE of a recursive query add; None without these clauses."""
    if cte.search_clause is None and cte.cycle_clause is None:
        return None
    found = SearchCycle(cte)
    named: list[tuple[str, SqlType]] = []
    if found.search is not None:
        found.sequence = RECORD if found.search.search_breadth_first else _PATH
        named.append((found.search.search_seq_column, found.sequence))
    if found.cycle is not None:
        nodes = [found.cycle.cycle_mark_value, found.cycle.cycle_mark_default]
        exprs = [binding.expression(scope, node) for node in nodes]
        (value, default), type_ = to_common_type(binding, exprs, nodes, "CYCLE")
        found.mark = value, default
        named += [(found.cycle.cycle_mark_column, type_), (found.cycle.cycle_path_column, _PATH)]
    named.append(("depth", INT8))
    found.columns = [binding.new_column(name, type_) for name, type_ in named]
    return found


def refuse_search_cycle(cte: Node) -> None:
    """42601 for such a clause on a query that does not refer to itself."""
    if cte.search_clause is not None or cte.cycle_clause is not None:
        raise SqlError("42601", "WITH query is not recursive", offset_to_position(cte.location))


# --- checks ------------------------------------------------------------------------------------


def _check_clauses(found: SearchCycle, columns: Sequence[PlanColumn]) -> None:
    """Forms and names that PostgreSQL does not take, in its order (analyzeCTE)."""
    start = "with a SEARCH or CYCLE clause, the"
    query = found.node.ctequery
    for side, word, state in ((query.larg, "left", "0A000"), (query.rarg, "right", "42601")):
        if side.op != SetOperation.SETOP_NONE:
            raise SqlError(state, f"{start} {word} side of the UNION must be a SELECT")
    names = [column.name for column in columns]
    sequence = mark = path = ""
    if found.search is not None:
        sequence = found.search.search_seq_column
        place = offset_to_position(found.search.location)
        _check_names("search", string_values(found.search.search_col_list), names, place)
        _check_new("search sequence", sequence, names, place)
    if found.cycle is not None:
        mark, path = found.cycle.cycle_mark_column, found.cycle.cycle_path_column
        place = offset_to_position(found.cycle.location)
        _check_names("cycle", string_values(found.cycle.cycle_col_list), names, place)
        _check_new("cycle mark", mark, names, place)
        _check_new("cycle path", path, names, place)
        if mark == path:
            message = "cycle mark column name and cycle path column name are the same"
            raise SqlError("42601", message, place)
    if found.search is not None and sequence in (mark, path):
        kind = "mark" if sequence == mark else "path"
        message = f"search sequence column name and cycle {kind} column name are the same"
        raise SqlError("42601", message, offset_to_position(found.search.location))
    if not any(_reads(item, found.node.ctename) for item in query.rarg.fromClause or ()):
        message = (
            f'{start} recursive reference to WITH query "{found.node.ctename}" must be at the top'
            " level of its right-hand SELECT"
        )
        raise SqlError("0A000", message)


def _check_names(
    clause: str, wanted: Sequence[str], names: Sequence[str], place: int | None
) -> None:
    for number, name in enumerate(wanted):
        if name not in names:
            message = f'{clause} column "{name}" not in WITH query column list'
            raise SqlError("42601", message, place)
        if name in wanted[:number]:
            raise SqlError("42701", f'{clause} column "{name}" specified more than once', place)


def _check_new(what: str, name: str, names: Sequence[str], place: int | None) -> None:
    if name in names:
        message = f'{what} column name "{name}" already used in WITH query column list'
        raise SqlError("42601", message, place)


def _reads(item: Node, name: str) -> bool:
    if is_a(item, ast.JoinExpr):
        return _reads(item.larg, name) or _reads(item.rarg, name)
    return is_a(item, ast.RangeVar) and item.schemaname is None and item.relname == name


def with_search_cycle(binding: Binding, found: SearchCycle, plan: Recursive) -> Recursive:
    """The recursion with the columns that its clauses add (S1)."""
    _check_clauses(found, plan.columns)
    return replace(
        plan,
        base=_with_first(binding, found, plan.base, plan.columns),
        step=_with_next(binding, found, plan.step, plan.columns, plan.cte),
        columns=(*plan.columns, *found.columns),
    )


# --- base and step -----------------------------------------------------------------------------


def _with_first(
    binding: Binding, found: SearchCycle, plan: Plan, columns: Sequence[PlanColumn]
) -> Plan:
    """The rows of the base with the added columns. `columns`: what the query's are called."""
    refs = _by_name(plan, columns)
    added: list[Expr] = []
    if found.search is not None:
        key = [refs[name] for name in string_values(found.search.search_col_list)]
        breadth = found.search.search_breadth_first
        row = comparable_record(binding, [Const(0, INT8), *key] if breadth else key)
        added.append(row if breadth else _array(row))
    if found.cycle is not None and found.mark is not None:
        row = comparable_record(
            binding, [refs[name] for name in string_values(found.cycle.cycle_col_list)]
        )
        added += [found.mark[1], _array(row)]
    return _extended(binding, plan, len(columns), [*added, Const(0, INT8)])


def _with_next(
    binding: Binding,
    found: SearchCycle,
    plan: Plan,
    columns: Sequence[PlanColumn],
    cte: CteId,
) -> Plan:
    """The rows of the step with the added columns, and none behind a row that closed a cycle."""
    carried, old = _carried(binding, plan, cte, len(columns))
    *earlier, depth = old
    refs = _by_name(carried, columns)
    added: list[Expr] = []
    if found.search is not None:
        key = [refs[name] for name in string_values(found.search.search_col_list)]
        before = earlier.pop(0)
        if found.search.search_breadth_first:
            added.append(comparable_record(binding, [_deeper(binding, depth, found), *key]))
        else:
            added.append(_appended(before, comparable_record(binding, key)))
    if found.cycle is not None and found.mark is not None:
        mark, path = earlier
        row = comparable_record(
            binding, [refs[name] for name in string_values(found.cycle.cycle_col_list)]
        )
        closes = AnyAll(function_by_id("record = record"), False, (row, path), BOOL)
        added += [Case(((closes, found.mark[0]),), found.mark[1], mark.type), _appended(path, row)]
        nodes = [found.cycle, found.cycle]
        place = found.cycle.location
        carried = Filter(carried, operator(binding, "<>", [mark, found.mark[0]], nodes, place))
    added.append(_deeper(binding, depth, found))
    return _extended(binding, carried, len(columns), added)


def _by_name(plan: Plan, columns: Sequence[PlanColumn]) -> dict[str, Expr]:
    made = output_columns(plan)
    return {
        column.name: ColumnRef(own.id, own.type) for column, own in zip(columns, made, strict=False)
    }


def _extended(binding: Binding, plan: Plan, count: int, added: Sequence[Expr]) -> Plan:
    own = output_columns(plan)[:count]
    exprs = [*(ColumnRef(column.id, column.type) for column in own), *added]
    names = [*(column.name for column in own), *("added" for _ in added)]
    made = [binding.new_column(name, e.type) for name, e in zip(names, exprs, strict=True)]
    return Project(plan, tuple(made), tuple(exprs))


def _array(row: Expr) -> Expr:
    return Call(function_by_id("array(any)"), (row,), _PATH)


def _appended(path: Expr, row: Expr) -> Expr:
    return Call(function_by_id("anycompatiblearray || anycompatible"), (path, row), _PATH)


def _deeper(binding: Binding, depth: Expr, found: SearchCycle) -> Expr:
    nodes = [found.node, found.node]
    return operator(binding, "+", [depth, Const(1, INT8)], nodes, found.node.location)


def _carried(binding: Binding, plan: Plan, cte: CteId, count: int) -> tuple[Plan, list[ColumnRef]]:
    """The plan with the added columns of the round before, and these (S2)."""
    match plan:
        case CteScan() if plan.cte == cte:
            return plan, [ColumnRef(column.id, column.type) for column in plan.columns[count:]]
        case Filter():
            below, refs = _carried(binding, plan.input, cte, count)
            return Filter(below, plan.predicate), refs
        case Join():
            left = _holds(plan.left, cte)
            below, refs = _carried(binding, plan.left if left else plan.right, cte, count)
            sides = (below, plan.right) if left else (plan.left, below)
            return Join(plan.kind, *sides, plan.condition, plan.lateral), refs
        case Project():
            below, refs = _carried(binding, plan.input, cte, count)
            made = [binding.new_column("carried", ref.type) for ref in refs]
            project = Project(below, (*plan.columns, *made), (*plan.exprs, *refs))
            return project, [ColumnRef(column.id, column.type) for column in made]
        case _:
            raise not_supported("SEARCH or CYCLE of a recursion like this")


def _holds(plan: Plan, cte: CteId) -> bool:
    match plan:
        case CteScan():
            return plan.cte == cte
        case Filter() | Project():
            return _holds(plan.input, cte)
        case Join():
            return _holds(plan.left, cte) or _holds(plan.right, cte)
        case _:
            return False
