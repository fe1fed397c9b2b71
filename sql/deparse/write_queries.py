"""Write an analyzed query (get_query_def of ruleutils.c)."""

from collections.abc import Sequence

from sql.deparse.coercion import UnknownShape
from sql.deparse.entry_names import name_entries
from sql.deparse.nodes import (
    CommonTable,
    Constant,
    Entry,
    GroupingSet,
    QueryTree,
    SetOperation,
    TypedExpr,
    Var,
)
from sql.deparse.printer import STEP, VAR_STEP, Printer
from sql.deparse.write_calls import write_key, write_order, write_window
from sql.deparse.write_expressions import result_name, write_column
from sql.deparse.write_from import write_from, write_values
from sql.types.sql_type import quoted_name


def write_query(
    outer: Printer, query: QueryTree, result: Sequence[str] | None, names_visible: bool
) -> None:
    """A query at the end of the text; `result`: what its columns are called, if others say so."""
    ctes = frozenset(cte.name for cte in query.ctes)
    printer = Printer(
        outer.style,
        outer.write_expression,
        outer.write_query,
        outer.relation_name,
        outer.type_text,
        outer.function_name,
        outer.text,
        outer.indent,
        prefixes=outer.query is not None or len(query.table) != 1,
        names=name_entries(query, outer.names),
        query=query,
        result=result,
        names_visible=names_visible,
        cte_names=outer.cte_names | ctes,
    )
    _select(printer, query)
    outer.text = printer.text


def _select(printer: Printer, query: QueryTree) -> None:
    if query.ctes:
        _with(printer, query)
    if query.operation is not None:
        _operation(printer, query, query.operation)
    else:
        _basic(printer, query)
    if query.order:
        printer.keyword(" ORDER BY ", -STEP, STEP, 1)
        write_order(printer, query.order, _numbers(query))
    if query.offset is not None:
        printer.keyword(" OFFSET ", -STEP, STEP, 0)
        printer.expression(query.offset, implicit=False)
    if query.limit is not None:
        _limit(printer, query, query.limit)
    for lock in query.locking:
        strength, name, wait = lock.split("|")
        printer.keyword(f" {strength} OF {quoted_name(_shown(query, name))}{wait}", -STEP, STEP, 0)


def _shown(query: QueryTree, name: str) -> str:
    for entry in query.table:
        if name == (entry.alias or entry.name) and entry.shown is not None:
            return entry.shown
    return name


def _numbers(query: QueryTree) -> list[int] | None:
    """The places of what a set operation is sorted by."""
    if query.operation is None:
        return None
    exprs = [column.expr for column in query.columns]
    try:
        return [exprs.index(item.expr) + 1 for item in query.order]
    except ValueError:
        raise UnknownShape("ORDER BY of a set operation") from None


def _limit(printer: Printer, query: QueryTree, limit: TypedExpr) -> None:
    if query.with_ties:
        printer.keyword(" FETCH FIRST ", -STEP, STEP, 0)
        printer.add("(")
        printer.expression(limit, implicit=False)
        printer.add(") ROWS WITH TIES")
        return
    printer.keyword(" LIMIT ", -STEP, STEP, 0)
    if isinstance(limit, Constant) and limit.text is None:
        printer.add("ALL")
    else:
        printer.expression(limit, implicit=False)


def _with(printer: Printer, query: QueryTree) -> None:
    printer.indent += STEP
    printer.add(" ")
    for at, cte in enumerate(query.ctes):
        word = "WITH RECURSIVE " if query.recursive else "WITH "
        printer.add(", " if at else word)
        _common_table(printer, cte)
    printer.indent -= STEP
    printer.keyword("", 0, 0, 0)


def _common_table(printer: Printer, cte: CommonTable) -> None:
    printer.add(quoted_name(cte.name))
    if cte.columns:
        printer.add(f"({', '.join(map(quoted_name, cte.columns))})")
    printer.add(f" AS {cte.materialized}(")
    printer.keyword("", 0, 0, 0)
    assert cte.query is not None, "it was analyzed"
    printer.subquery(cte.query, None, names_visible=True)
    printer.keyword("", 0, 0, 0)
    printer.add(")")


# --- SELECT ------------------------------------------------------------------------------------


def _basic(printer: Printer, query: QueryTree) -> None:
    printer.indent += STEP
    printer.add(" ")
    values = _bare_values(printer, query)
    if values is not None:
        write_values(printer, values.values)
        return
    printer.add("SELECT")
    if query.distinct_on:
        printer.add(" DISTINCT ON (")
        _keys(printer, query.distinct_on)
        printer.add(")")
    elif query.distinct:
        printer.add(" DISTINCT")
    _targets(printer, query)
    write_from(printer, query)
    if query.where is not None:
        printer.keyword(" WHERE ", -STEP, STEP, 1)
        printer.expression(query.where, implicit=False)
    _group(printer, query)
    if query.having is not None:
        printer.keyword(" HAVING ", -STEP, STEP, 0)
        printer.expression(query.having, implicit=False)
    for at, window in enumerate(query.windows):
        if at:
            printer.add(", ")
        else:
            printer.keyword(" WINDOW ", -STEP, STEP, 1)
        printer.add(f"{quoted_name(window.name or '')} AS ")
        write_window(printer, window)


def _bare_values(printer: Printer, query: QueryTree) -> Entry | None:
    """The rows, if the query is nothing but VALUES (get_simple_values_rte)."""
    if len(query.table) != 1 or query.table[0].kind != "values":
        return None
    (entry,) = query.table
    for at, column in enumerate(query.columns):
        if not isinstance(column.expr, Var) or column.expr.at != at:
            return None
        if result_name(printer, at, column) != entry.columns[at]:
            return None
    return entry


def _keys(printer: Printer, exprs: Sequence[TypedExpr]) -> None:
    for at, expr in enumerate(exprs):
        printer.add(", " if at else "")
        write_key(printer, expr)


def _targets(printer: Printer, query: QueryTree) -> None:
    was_long = False
    for at, column in enumerate(query.columns):
        printer.add(", " if at else " ")
        apart = printer.apart()
        own: str | None = None if printer.names_visible else "?column?"
        if isinstance(column.expr, Var):
            own = write_column(apart, column.expr)
        else:
            apart.expression(column.expr, implicit=True)
        name = result_name(printer, at, column)
        if name != own:
            apart.add(f" AS {quoted_name(name)}")
        was_long = _broken(printer, apart.text, first=not at, after_long=was_long)
        printer.add(apart.text)


def _broken(printer: Printer, text: str, *, first: bool, after_long: bool) -> bool:
    """Break the line before the text if it must; whether the text has several lines."""
    if printer.style.wrap < 0:
        return False
    if text.startswith("\n"):
        printer.text = printer.text.rstrip(" ")
        return "\n" in text[1:]
    too_long = printer.line_length() + len(text.encode()) > printer.style.wrap
    if not first and (too_long or after_long):
        printer.keyword("", -STEP, STEP, VAR_STEP)
    return "\n" in text


def _group(printer: Printer, query: QueryTree) -> None:
    if not query.group and not query.grouping_sets:
        return
    printer.keyword(" GROUP BY ", -STEP, STEP, 1)
    printer.add("DISTINCT " if query.group_distinct else "")
    printer.grouping = True
    _keys(printer, query.group)
    for at, one in enumerate(query.grouping_sets):
        printer.add(", " if at else "")
        _grouping_set(printer, one, bare=True)
    printer.grouping = False


def _grouping_set(printer: Printer, one: GroupingSet, *, bare: bool) -> None:
    if one.kind == "EMPTY":
        printer.add("()")
        return
    if one.kind == "SIMPLE":
        alone = bare and len(one.items) == 1
        printer.add("" if alone else "(")
        _keys(printer, [item for item in one.items if not isinstance(item, GroupingSet)])
        printer.add("" if alone else ")")
        return
    printer.add("GROUPING SETS (" if one.kind == "SETS" else f"{one.kind}(")
    for at, item in enumerate(one.items):
        printer.add(", " if at else "")
        assert isinstance(item, GroupingSet), "only a simple set has expressions"
        _grouping_set(printer, item, bare=one.kind != "SETS")
    printer.add(")")


# --- set operations ----------------------------------------------------------------------------


def _operation(printer: Printer, query: QueryTree, node: SetOperation | QueryTree) -> None:
    if isinstance(node, QueryTree):
        needs = bool(node.ctes or node.order or node.locking or node.operation)
        needs = needs or node.offset is not None or node.limit is not None
        printer.add("(" if needs else "")
        printer.subquery(node, printer.result, names_visible=printer.names_visible)
        printer.add(")" if needs else "")
        return
    left = node.left
    same = isinstance(left, SetOperation) and (left.name, left.all) == (node.name, node.all)
    step = STEP if isinstance(left, SetOperation) and not same else 0
    if step:
        printer.add("(")
        printer.keyword("", step, 0, 0)
    _operation(printer, query, left)
    printer.keyword(") " if step else "", -step, 0, 0)
    printer.add(f"{node.name} {'ALL ' if node.all else ''}")
    nested = isinstance(node.right, SetOperation)
    step = STEP if nested else 0
    printer.add("(" if nested else "")
    printer.keyword("", step, 0, 0)
    visible, printer.names_visible = printer.names_visible, False
    _operation(printer, query, node.right)
    printer.names_visible = visible
    printer.indent -= step
    if nested:
        printer.keyword(")", 0, 0, 0)
