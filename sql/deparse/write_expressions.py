"""Write an analyzed expression (get_rule_expr of ruleutils.c)."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from sql.deparse.coercion import UnknownShape
from sql.deparse.nodes import (
    AggregateCall,
    ArrayOperation,
    Boolean,
    CaseExpr,
    Cast,
    Collate,
    Constant,
    FuncExpr,
    GroupingExpr,
    Keyword,
    Listed,
    NullOrBooleanTest,
    Operation,
    ResultColumn,
    RowComparison,
    SubLink,
    Subscript,
    TypedExpr,
    Var,
    WholeRowVar,
)
from sql.deparse.printer import VAR_STEP, Printer
from sql.deparse.simplicity import is_simple
from sql.deparse.write_calls import write_aggregate, write_function
from sql.types.sql_type import quoted_name


def write_expression(printer: Printer, expr: TypedExpr, implicit: bool) -> None:
    """One expression; `implicit`: conversions that nobody wrote are shown."""
    _WRITERS[type(expr)](printer, expr, implicit)


def within(printer: Printer, expr: TypedExpr, parent: TypedExpr, *, implicit: bool) -> None:
    """An operand, in parentheses if the style leaves out its own (get_rule_expr_paren)."""
    needs = printer.style.bare and not is_simple(expr, parent)
    printer.add("(" if needs else "")
    printer.expression(expr, implicit=implicit)
    printer.add(")" if needs else "")


def _open(printer: Printer) -> None:
    printer.add("" if printer.style.bare else "(")


def _close(printer: Printer) -> None:
    printer.add("" if printer.style.bare else ")")


# --- columns -----------------------------------------------------------------------------------


def column_name_of(expr: Var) -> tuple[str | None, str]:
    """The names of a column: of its entry, None in a join without alias, and its own."""
    entry = expr.entry
    if entry.kind == "join" and entry.shown is None:
        merged = entry.merged[expr.at]
        if isinstance(merged, Var):
            return column_name_of(merged)
    name = entry.shown_columns[expr.at]
    if name is None:
        raise UnknownShape("a column that is no more")
    return entry.shown, name


def write_column(printer: Printer, expr: Var) -> str:
    """A Var; the name that a result's column would have of it (get_variable)."""
    table, name = column_name_of(expr)
    prefixes = printer.prefixes or (
        printer.sorting and not printer.grouping and _is_other(printer, expr, name)
    )
    printer.add(f"{quoted_name(table)}." if prefixes and table is not None else "")
    printer.add(quoted_name(name))
    return name


def _is_other(printer: Printer, expr: Var, name: str) -> bool:
    """Whether ORDER BY would take the name for another column of the result."""
    if printer.query is None:
        return False
    columns = printer.query.columns
    return any(
        result_name(printer, at, column) == name and column.expr != expr
        for at, column in enumerate(columns)
    )


def result_name(printer: Printer, at: int, column: ResultColumn) -> str:
    """What a column of the result is called."""
    known = printer.result
    return known[at] if known is not None and at < len(known) else column.name


def _column(printer: Printer, expr: Var, _implicit: bool) -> None:
    write_column(printer, expr)


def _whole_row(printer: Printer, expr: WholeRowVar, _implicit: bool) -> None:
    name = expr.entry.shown
    if name is None:
        raise UnknownShape("a row of a join")
    printer.add(f"{quoted_name(name)}.*")


# --- operators ---------------------------------------------------------------------------------


def _constant(printer: Printer, expr: Constant, _implicit: bool) -> None:
    printer.constant(expr, typed=0)


def _cast(printer: Printer, expr: Cast, implicit: bool) -> None:
    if expr.implicit and not implicit:
        within(printer, expr.arg, expr, implicit=False)
        return
    arg = expr.arg
    is_own = isinstance(arg, Constant) and not expr.type.domain
    if is_own and arg.type.name == expr.type.name and arg.type.typmod == -1:
        assert isinstance(arg, Constant), "it is one"
        printer.constant(arg, typed=-1)
    else:
        _open(printer)
        within(printer, arg, expr, implicit=False)
        _close(printer)
    printer.add(f"::{printer.type_text(expr.type)}")


def _operation(printer: Printer, expr: Operation, _implicit: bool) -> None:
    _open(printer)
    *left, right = expr.args
    for operand in left:
        within(printer, operand, expr, implicit=True)
        printer.add(" ")
    printer.add(f"{expr.name} ")
    within(printer, right, expr, implicit=True)
    _close(printer)


def _array_operation(printer: Printer, expr: ArrayOperation, _implicit: bool) -> None:
    _open(printer)
    within(printer, expr.left, expr, implicit=True)
    printer.add(f" {expr.name} {'ANY' if expr.any else 'ALL'} (")
    within(printer, expr.right, expr, implicit=True)
    if isinstance(expr.right, SubLink) and expr.right.kind == "EXPR":
        printer.add(f"::{printer.type_text(expr.right.type)}")
    printer.add(")")
    _close(printer)


def _boolean(printer: Printer, expr: Boolean, _implicit: bool) -> None:
    _open(printer)
    if expr.name == "NOT":
        printer.add("NOT ")
    for at, arg in enumerate(expr.args):
        printer.add(f" {expr.name} " if at else "")
        within(printer, arg, expr, implicit=False)
    _close(printer)


def _test(printer: Printer, expr: NullOrBooleanTest, _implicit: bool) -> None:
    _open(printer)
    within(printer, expr.arg, expr, implicit="NULL" in expr.what)
    printer.add(f" {expr.what}")
    _close(printer)


def _row_comparison(printer: Printer, expr: RowComparison, _implicit: bool) -> None:
    printer.add("(ROW(")
    printer.listed(expr.left)
    printer.add(f") {expr.name} ROW(")
    printer.listed(expr.right)
    printer.add("))")


def _listed(printer: Printer, expr: Listed, _implicit: bool) -> None:
    before, after = ("[", "]") if expr.name == "ARRAY" else ("(", ")")
    printer.add(expr.name + before)
    printer.listed(expr.args)
    printer.add(after)
    if expr.name == "ARRAY" and not expr.args:
        printer.add(f"::{printer.type_text(expr.type)}")


def _case(printer: Printer, expr: CaseExpr, _implicit: bool) -> None:
    printer.keyword("CASE", 0, VAR_STEP, 0)
    if expr.arg is not None:
        printer.add(" ")
        printer.expression(expr.arg, implicit=True)
    for test, result in expr.whens:
        printer.keyword("WHEN ", 0, 0, 0)
        printer.expression(test, implicit=False)
        printer.add(" THEN ")
        printer.expression(result, implicit=True)
    printer.keyword("ELSE ", 0, 0, 0)
    printer.expression(expr.otherwise, implicit=True)
    printer.keyword("END", -VAR_STEP, 0, 0)


def _keyword(printer: Printer, expr: Keyword, _implicit: bool) -> None:
    printer.add(expr.text)


def _subscript(printer: Printer, expr: Subscript, implicit: bool) -> None:
    plain = isinstance(expr.arg, Var)
    printer.add("" if plain else "(")
    printer.expression(expr.arg, implicit=implicit)
    printer.add("" if plain else ")")
    for part in expr.parts:
        printer.add("[")
        for at, bound in enumerate(part):
            printer.add(":" if at else "")
            if bound is not None:
                printer.expression(bound, implicit=False)
        printer.add("]")


def _collate(printer: Printer, expr: Collate, implicit: bool) -> None:
    _open(printer)
    within(printer, expr.arg, expr, implicit=implicit)
    printer.add(f" COLLATE {quoted_name(expr.collation)}")
    _close(printer)


def _grouping(printer: Printer, expr: GroupingExpr, _implicit: bool) -> None:
    printer.add("GROUPING(")
    printer.listed(expr.args)
    printer.add(")")


def _sublink(printer: Printer, expr: SubLink, _implicit: bool) -> None:
    printer.add("ARRAY(" if expr.kind == "ARRAY" else "(")
    if expr.left:
        is_row = len(expr.left) > 1
        printer.add("(" if is_row else "")
        printer.listed(expr.left)
        printer.add(")" if is_row else "")
    words = {"EXISTS": "EXISTS ", "ALL": f" {expr.operator} ALL "}
    words["ANY"] = " IN " if expr.operator == "=" else f" {expr.operator} ANY "
    word = words.get(expr.kind)
    printer.add("" if word is None else f"{word}(")
    printer.subquery(expr.query, None, names_visible=False)
    printer.add(")" if word is None else "))")


def _function(printer: Printer, expr: FuncExpr, _implicit: bool) -> None:
    write_function(printer, expr)


def _aggregate(printer: Printer, expr: AggregateCall, _implicit: bool) -> None:
    write_aggregate(printer, expr)


_WRITERS: Final[Mapping[type, Callable[[Printer, Any, bool], None]]] = {
    AggregateCall: _aggregate,
    ArrayOperation: _array_operation,
    Boolean: _boolean,
    CaseExpr: _case,
    Cast: _cast,
    Collate: _collate,
    Constant: _constant,
    FuncExpr: _function,
    GroupingExpr: _grouping,
    Keyword: _keyword,
    Listed: _listed,
    Operation: _operation,
    RowComparison: _row_comparison,
    SubLink: _sublink,
    Subscript: _subscript,
    NullOrBooleanTest: _test,
    Var: _column,
    WholeRowVar: _whole_row,
}
