"""Write calls of functions, aggregates and window functions, and sort keys (ruleutils.c)."""

from collections.abc import Sequence
from typing import Final

from sql.deparse.coercion import UnknownShape
from sql.deparse.nodes import (
    AggregateCall,
    Cast,
    Constant,
    FuncExpr,
    SortItem,
    TypedExpr,
    Var,
    WindowClause,
)
from sql.deparse.printer import Printer
from sql.types.sql_type import quoted_name

_TRIMS: Final = {"btrim": "BOTH", "ltrim": "LEADING", "rtrim": "TRAILING"}
_START: Final = (
    (0x20, "UNBOUNDED PRECEDING"), (0x200, "CURRENT ROW"), (0x800, "PRECEDING"),
    (0x2000, "FOLLOWING"),
)  # fmt: skip
_END: Final = (
    (0x100, "UNBOUNDED FOLLOWING"), (0x400, "CURRENT ROW"), (0x1000, "PRECEDING"),
    (0x4000, "FOLLOWING"),
)  # fmt: skip
_UNITS: Final = ((0x2, "RANGE"), (0x4, "ROWS"), (0x8, "GROUPS"))
_EXCLUDED: Final = ((0x8000, "CURRENT ROW"), (0x10000, "GROUP"), (0x20000, "TIES"))
_BETWEEN: Final = 0x10
_NONDEFAULT: Final = 0x1


def write_function(printer: Printer, expr: FuncExpr) -> None:
    """A function by its name, or with the keywords of the standard."""
    if expr.sql_syntax and _with_keywords(printer, expr):
        return
    printer.add(f"{printer.function_name(expr)}(")
    _arguments(printer, expr.args, variadic=expr.variadic)
    printer.add(")")


def _arguments(printer: Printer, args: Sequence[TypedExpr], *, variadic: bool) -> None:
    for at, arg in enumerate(args):
        printer.add(", " if at else "")
        printer.add("VARIADIC " if variadic and at == len(args) - 1 else "")
        printer.expression(arg, implicit=True)


def _parts(printer: Printer, *parts: str | TypedExpr) -> bool:
    for part in parts:
        if isinstance(part, str):
            printer.add(part)
        else:
            printer.expression(part, implicit=False)
    return True


def _with_keywords(printer: Printer, expr: FuncExpr) -> bool:
    """get_func_sql_syntax; whether it is known."""
    args = expr.args
    match expr.name, args:
        case "timezone", (zone, value):
            return _parts(printer, "(", value, " AT TIME ZONE ", zone, ")")
        case "timezone", (value,):
            return _parts(printer, "(", value, " AT LOCAL)")
        case "overlaps", (a, b, c, d):
            return _parts(printer, "((", a, ", ", b, ") OVERLAPS (", c, ", ", d, "))")
        case "extract", (Constant(text=str(field)), value):
            return _parts(printer, f"EXTRACT({field} FROM ", value, ")")
        case "position", (text, part):
            return _parts(printer, "POSITION((", part, ") IN (", text, "))")
        case "substring", (text, begin) if begin.type.name == "int4":
            return _parts(printer, "SUBSTRING(", text, " FROM ", begin, ")")
        case "substring", (text, begin, length) if begin.type.name == "int4":
            return _parts(printer, "SUBSTRING(", text, " FROM ", begin, " FOR ", length, ")")
        case "substring", (text, pattern, escape):
            return _parts(
                printer, "SUBSTRING(", text, " SIMILAR ", pattern, " ESCAPE ", escape, ")"
            )
        case "overlay", (text, new, begin):
            return _parts(printer, "OVERLAY(", text, " PLACING ", new, " FROM ", begin, ")")
        case "overlay", (text, new, begin, length):
            head = ("OVERLAY(", text, " PLACING ", new, " FROM ", begin)
            return _parts(printer, *head, " FOR ", length, ")")
        case (("btrim" | "ltrim" | "rtrim"), (text,)):
            return _parts(printer, f"TRIM({_TRIMS[expr.name]} FROM ", text, ")")
        case (("btrim" | "ltrim" | "rtrim"), (text, characters)):
            return _parts(printer, f"TRIM({_TRIMS[expr.name]} ", characters, " FROM ", text, ")")
        case "normalize", (text,):
            return _parts(printer, "NORMALIZE(", text, ")")
        case "normalize", (text, Constant(text=str(form))):
            return _parts(printer, "NORMALIZE(", text, f", {form})")
        case "is_normalized", (text,):
            return _parts(printer, "(", text, " IS NORMALIZED)")
        case "is_normalized", (text, Constant(text=str(form))):
            return _parts(printer, "(", text, f" IS {form} NORMALIZED)")
        case _:
            return False


def write_aggregate(printer: Printer, expr: AggregateCall) -> None:
    """get_agg_expr, get_windowfunc_expr."""
    printer.add(f"{quoted_name(expr.name)}({'DISTINCT ' if expr.distinct else ''}")
    if expr.star:
        printer.add("*")
    _arguments(printer, expr.args, variadic=expr.variadic)
    if expr.within:
        printer.add(") WITHIN GROUP (ORDER BY ")
        write_order(printer, expr.order)
    elif expr.order:
        printer.add(" ORDER BY ")
        write_order(printer, expr.order)
    if expr.where is not None:
        printer.add(") FILTER (WHERE ")
        printer.expression(expr.where, implicit=False)
    printer.add(")")
    if expr.over is not None:
        printer.add(" OVER ")
        if expr.over.name is not None:
            printer.add(quoted_name(expr.over.name))
        else:
            write_window(printer, expr.over)


# --- sort keys and windows ---------------------------------------------------------------------


def write_order(
    printer: Printer, items: Sequence[SortItem], numbers: Sequence[int] | None = None
) -> None:
    """ORDER BY; `numbers`: as places of columns (get_rule_orderby)."""
    for at, item in enumerate(items):
        printer.add(", " if at else "")
        if numbers is not None:
            printer.add(str(numbers[at]))
        else:
            write_key(printer, item.expr)
        if item.descending:
            printer.add(" DESC" if item.nulls_first else " DESC NULLS LAST")
        elif item.nulls_first:
            printer.add(" NULLS FIRST")


def write_key(printer: Printer, expr: TypedExpr) -> None:
    """What is sorted or grouped by (get_rule_sortgroupclause)."""
    if isinstance(expr, Constant):
        printer.constant(expr, typed=1)
        return
    if isinstance(expr, Var):
        printer.sorting = True
        printer.expression(expr, implicit=False)
        printer.sorting = False
        return
    calls = isinstance(expr, FuncExpr | AggregateCall)
    calls = calls or (isinstance(expr, Cast) and expr.calls)
    needs = calls or printer.style.bare
    printer.add("(" if needs else "")
    printer.expression(expr, implicit=True)
    printer.add(")" if needs else "")


def write_window(printer: Printer, window: WindowClause) -> None:
    """The parentheses of OVER and WINDOW (get_rule_windowspec)."""
    parts: list[str] = []
    if window.refers_to:
        parts.append(quoted_name(window.refers_to))
    if window.partition and not window.refers_to:
        apart = printer.apart()
        for at, expr in enumerate(window.partition):
            apart.add(", " if at else "PARTITION BY ")
            write_key(apart, expr)
        parts.append(apart.text)
    if window.order:
        apart = printer.apart()
        apart.add("ORDER BY ")
        write_order(apart, window.order)
        parts.append(apart.text)
    if window.frame & _NONDEFAULT:
        parts.append(_frame(printer, window))
    printer.add(f"({' '.join(parts)})")


def _frame(printer: Printer, window: WindowClause) -> str:
    flags = window.frame
    unit = _word(flags, _UNITS)
    start = _bound(printer, _word(flags, _START), window.start)
    text = f"{unit} {start}"
    if flags & _BETWEEN:
        end = _bound(printer, _word(flags, _END), window.end)
        text = f"{unit} BETWEEN {start} AND {end}"
    excluded = next((word for bit, word in _EXCLUDED if flags & bit), None)
    return text if excluded is None else f"{text} EXCLUDE {excluded}"


def _word(flags: int, words: Sequence[tuple[int, str]]) -> str:
    found = next((word for bit, word in words if flags & bit), None)
    if found is None:
        raise UnknownShape("a frame")
    return found


def _bound(printer: Printer, word: str, offset: TypedExpr | None) -> str:
    if offset is None or word.startswith(("UNBOUNDED", "CURRENT")):
        return word
    apart = printer.apart()
    apart.expression(offset, implicit=False)
    return f"{apart.text} {word}"
