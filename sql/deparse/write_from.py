"""Write FROM (get_from_clause of ruleutils.c)."""

from collections.abc import Sequence

from sql.deparse.nodes import Entry, FromNode, FuncExpr, JoinTree, QueryTree, TypedExpr
from sql.deparse.printer import JOIN_STEP, STEP, VAR_STEP, Printer
from sql.types.sql_type import quoted_name


def write_from(printer: Printer, query: QueryTree) -> None:
    """The clause, if there is one."""
    for at, node in enumerate(query.sources):
        if not at:
            printer.keyword(" FROM ", -STEP, STEP, 2)
            _item(printer, node)
            continue
        printer.add(", ")
        apart = printer.apart()
        _item(apart, node)
        if printer.style.wrap >= 0:
            if apart.text.startswith("\n"):
                printer.text = printer.text.rstrip(" ")
            elif printer.line_length() + len(apart.text.encode()) > printer.style.wrap:
                printer.keyword("", -STEP, STEP, VAR_STEP)
        printer.add(apart.text)


def write_values(printer: Printer, rows: Sequence[Sequence[TypedExpr]]) -> None:
    """VALUES (get_values_def)."""
    printer.add("VALUES ")
    for at, row in enumerate(rows):
        printer.add(", (" if at else "(")
        for place, item in enumerate(row):
            printer.add("," if place else "")
            printer.expression(item, implicit=False)
        printer.add(")")


def _item(printer: Printer, node: FromNode) -> None:
    if isinstance(node, JoinTree):
        _join(printer, node)
        return
    printer.add("LATERAL " if node.lateral else "")
    match node.kind:
        case "relation":
            printer.add("ONLY " if node.only else "")
            printer.add(printer.relation_name(node, printer))
        case "subquery":
            assert node.query is not None, "it has one"
            printer.add("(")
            printer.subquery(node.query, None, names_visible=True)
            printer.add(")")
        case "function":
            _functions(printer, node)
        case "values":
            printer.add("(")
            write_values(printer, node.values)
            printer.add(")")
        case _:
            printer.add(quoted_name(node.name))
    _alias(printer, node)
    if node.definitions:
        listed = node.definitions
        columns = (f"{quoted_name(name)} {printer.type_text(type_)}" for name, type_ in listed)
        printer.add(f"({', '.join(columns)})")
    elif node.prints_columns:
        _columns(printer, node)
    if node.sample is not None:
        _sample(printer, node)


def _alias(printer: Printer, node: Entry) -> None:
    name = node.shown
    assert name is not None, "only a join has none"
    own = node.relation_name if node.kind == "relation" else node.name
    always = node.alias is not None or node.kind in ("function", "subquery", "values")
    if always or node.prints_columns or name != own:
        printer.add(f" {quoted_name(name)}")


def _columns(printer: Printer, node: Entry) -> None:
    names = [name for name in node.shown_columns if name is not None]
    printer.add(f"({', '.join(map(quoted_name, [*names, *node.later_shown]))})")


def _functions(printer: Printer, node: Entry) -> None:
    if len(node.functions) == 1:
        printer.expression(node.functions[0], implicit=True)
    elif all(isinstance(one, FuncExpr) and one.name == "unnest" for one in node.functions):
        arrays = [arg for one in node.functions if isinstance(one, FuncExpr)
                  for arg in one.args]  # fmt: skip
        printer.add("UNNEST(")
        printer.listed(arrays)
        printer.add(")")
    else:
        printer.add("ROWS FROM(")
        printer.listed(node.functions)
        printer.add(")")
    if node.ordinality:
        printer.add(" WITH ORDINALITY")


def _sample(printer: Printer, node: Entry) -> None:
    assert node.sample is not None, "there is one"
    method, args, repeatable = node.sample
    printer.add(f" TABLESAMPLE {quoted_name(method)} (")
    printer.listed(args, implicit=False)
    printer.add(")")
    if repeatable is not None:
        printer.add(" REPEATABLE (")
        printer.expression(repeatable, implicit=False)
        printer.add(")")


def _join(printer: Printer, node: JoinTree) -> None:
    bare = printer.style.bare
    named = node.entry.alias is not None
    around = not bare or named
    right = node.right
    right_around = bare and isinstance(right, JoinTree) and right.entry.alias is None
    printer.add("(" if around else "")
    _item(printer, node.left)
    if node.kind == "JOIN" and node.condition is None and not node.using:
        printer.keyword(" CROSS JOIN ", -STEP, STEP, JOIN_STEP)
    else:
        printer.keyword(f" {node.kind} ", -STEP, STEP, JOIN_STEP)
    printer.add("(" if right_around else "")
    _item(printer, right)
    printer.add(")" if right_around else "")
    _join_condition(printer, node)
    printer.add(")" if around else "")
    if named:
        printer.add(f" {quoted_name(node.entry.shown or '')}")
        if node.entry.prints_columns:
            _columns(printer, node.entry)


def _join_condition(printer: Printer, node: JoinTree) -> None:
    if node.using:
        names = [name for name in node.entry.shown_columns[: len(node.using)] if name is not None]
        printer.add(f" USING ({', '.join(map(quoted_name, names))})")
        if node.using_alias is not None:
            printer.add(f" AS {quoted_name(node.using_alias)}")
    elif node.condition is not None:
        bare = printer.style.bare
        printer.add(" ON " if bare else " ON (")
        printer.expression(node.condition, implicit=False)
        printer.add("" if bare else ")")
    elif node.kind != "JOIN":
        printer.add(" ON TRUE")
