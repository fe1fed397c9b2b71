"""Print stored definitions as PostgreSQL prints them: the entry points of the package.

    text of a definition ─ parse ─▶ tree ─ analyze ─▶ typed nodes ─ write ─▶ text

INVARIANTS
  D1  a text that is printed means the same as the definition's, and prints the same again.
  D2  a definition with a shape that the package does not know raises `UnknownShape`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sql.binder.stored.column_expressions import parse_stored_expression
from sql.binder.stored.views import parse_view_query
from sql.catalog.catalog import Catalog, Column, Table
from sql.catalog.objects import DomainDefinition, EnumDefinition, ViewDefinition
from sql.catalog.system_catalogs import PG_CATALOG, system_catalogs
from sql.deparse import expressions, queries, write_expressions, write_queries
from sql.deparse.coercion import UnknownShape, coerce, converted, literal_text
from sql.deparse.nodes import AggregateCall, Entry, Expr, FunctionCall, Keyword, Listed, Query, Var
from sql.deparse.printer import PLAIN, Printer, Style
from sql.deparse.state import Analysis, Item, Level, Relation
from sql.deparse.types import BOOL, Type, shown_type, type_of
from sql.errors import SqlError
from sql.parser.syntax import Node, string_values
from sql.parser.type_names import is_builtin_type, parse_type_name, resolve_type_name
from sql.types.sql_type import quoted_name


@dataclass(frozen=True, slots=True)
class Definitions:
    """What the texts of definitions are printed for: a catalog, a search path, a time zone.

    `view_columns`: the columns of a view, as they are bound now.
    """

    catalog: Catalog
    search_path: Sequence[str]
    zone: str
    view_columns: Callable[[int], Sequence[Column] | None]

    def view(self, view: ViewDefinition, style: Style = PLAIN) -> str:
        """The query of a view."""
        pinned = {
            (schema, name): (oid, names, numbers)
            for schema, name, oid, names, numbers in view.relations
        }
        analysis = self._analysis(pinned)
        query = analysis.query(parse_view_query(view.text), None)
        printer = self._printer(style)
        printer.subquery(query, view.columns, names_visible=True)
        return printer.text

    def expression(
        self,
        table: Table | None,
        text: str,
        style: Style = PLAIN,
        *,
        target: Type | None = None,
        value: Type | None = None,
    ) -> str:
        """An expression over a table's columns; `target`: what it is assigned to, `value`: the
        type of VALUE.
        """
        expr = self._analyzed(table, text, target=target, value=value)
        printer = self._printer(style)
        printer.expression(expr, implicit=False)
        return printer.text

    def index_element(self, table: Table, text: str, style: Style = PLAIN) -> str:
        """A column of an index: an expression has parentheses if it is no call."""
        expr = self._analyzed(table, text)
        printer = self._printer(style)
        printer.expression(expr, implicit=False)
        if isinstance(expr, Var) or _looks_like_function(expr):
            return printer.text
        return f"({printer.text})"

    def _analyzed(
        self,
        table: Table | None,
        text: str,
        *,
        target: Type | None = None,
        value: Type | None = None,
    ) -> Expr:
        analysis = self._analysis({})
        level = Level(Query())
        if table is not None:
            entry = _entry(table)
            columns = enumerate(zip(entry.columns, entry.types, strict=True))
            named: list[tuple[str, Expr]] = [
                (name, Var(entry, at, type_)) for at, (name, type_) in columns
            ]
            level.items.append(Item(table.name, named, table.schema, entry))
        if value is not None:
            level.value = Keyword("VALUE", value)
        expr = analysis.expression(level, parse_stored_expression(text))
        if target is not None:
            return coerce(expr, target, self.zone)
        return converted(expr, Type("text"), self.zone) if expr.type.name == "unknown" else expr

    def _printer(self, style: Style) -> Printer:
        return Printer(
            style,
            write_expressions.write_expression,
            write_queries.write_query,
            self._relation_text,
        )

    def _relation_text(self, entry: Entry, printer: Printer) -> str:
        name = quoted_name(entry.relation_name)
        hidden = entry.relation_name in printer.cte_names
        if not hidden and self._is_visible(entry.schema, entry.relation_name):
            return name
        return f"{quoted_name(entry.schema)}.{name}"

    def _is_visible(self, schema: str, name: str) -> bool:
        """Whether the name alone finds the relation (RelationIsVisible)."""
        path = [PG_CATALOG, *(one for one in self.search_path if one != PG_CATALOG)]
        for one in path:
            if one == schema:
                return True
            taken = self.catalog.relation(one, name) is not None
            if taken or (one, name) in self.catalog.tables or (one, name) in system_catalogs():
                return False
        return False

    # --- names ---------------------------------------------------------------------------------

    def _analysis(
        self,
        pinned: Mapping[tuple[str, str], tuple[int, Sequence[str], Sequence[int]]],
    ) -> Analysis:
        def relation(schema: str, name: str) -> tuple[Relation, Sequence[str], Sequence[int]]:
            found = pinned.get((schema, name))
            if found is None:
                raise UnknownShape(name)
            return self._relation(found[0]), found[1], found[2]

        return Analysis(
            relation,
            self._declared,
            self._reg_text,
            self.zone,
            expressions.expression,
            queries.query,
        )

    def _relation(self, oid: int) -> Relation:
        table = self.catalog.by_oid(oid)
        if table is None:
            table = next((one for one in system_catalogs().values() if one.oid == oid), None)
        if table is not None:
            columns = {
                table.number_of(at): (column.name, type_of(column.type, column.domain))
                for at, column in enumerate(table.columns)
            }
            return Relation(oid, table.schema, table.name, columns)
        view = next((one for one in self.catalog.views() if one.oid == oid), None)
        found = None if view is None else self.view_columns(oid)
        if view is None or found is None:
            raise UnknownShape(str(oid))
        columns = {
            at: (name, type_of(column.type, column.domain))
            for at, (name, column) in enumerate(zip(view.columns, found, strict=True), 1)
        }
        return Relation(oid, view.schema, view.name, columns)

    def _declared(self, node: Node) -> Type:
        *qualifier, name = string_values(node.names)
        if (not qualifier and is_builtin_type(name)) or qualifier == ["pg_catalog"]:
            try:
                return type_of(resolve_type_name(node))
            except SqlError as error:
                if node.typmods or node.arrayBounds or not is_builtin_type(name):
                    raise UnknownShape(name) from error
                return Type(name)
        for schema in qualifier or self.search_path:
            found = self.catalog.type_named(schema, name)
            if isinstance(found, DomainDefinition) and not node.arrayBounds:
                return type_of(found.type, found.domain)
            if isinstance(found, EnumDefinition):
                prefix = "_" if node.arrayBounds else ""
                return Type(prefix + found.type.name)
        raise UnknownShape(name)

    def _reg_text(self, type_name: str, text: str) -> str:
        if type_name == "regclass" and text.isdecimal():
            return self._relation_name(int(text)) or text
        if type_name == "regtype" and not text.isdecimal() and text != "-":
            return shown_type(self._declared(parse_type_name(text, None)))
        return text

    def _relation_name(self, oid: int) -> str | None:
        found = self.catalog.by_oid(oid) or next(
            (thing for thing in self.catalog.objects.values() if thing.oid == oid), None
        )
        if found is None:
            return None
        name = quoted_name(found.name)
        if self._is_visible(found.schema, found.name):
            return name
        return f"{quoted_name(found.schema)}.{name}"


def _entry(table: Table) -> Entry:
    names = [column.name for column in table.columns]
    types = [type_of(column.type, column.domain) for column in table.columns]
    made = Entry("relation", names, types, [*names], name=table.name)
    made.shown = table.name
    made.shown_columns = [*names]
    return made


def _looks_like_function(expr: Expr) -> bool:
    if isinstance(expr, Listed):
        return expr.name in ("COALESCE", "GREATEST", "LEAST", "NULLIF")
    return isinstance(expr, FunctionCall | AggregateCall | Keyword)


def constant_text_of(text: str, type_: Type, zone: str) -> str:
    """The text of a constant of a type."""
    return literal_text(text, type_, zone)


BOOLEAN = BOOL
