"""Print stored definitions as PostgreSQL prints them: the entry points of the package.

    text of a definition ─ parse ─▶ tree ─ analyze ─▶ typed nodes ─ write ─▶ text

INVARIANTS
  D1  a text that is printed means the same as the definition's.
  D2  a definition with a shape that the package does not know raises `UnknownShape`.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Final

from pglast import ast

from sql.binder.resolve.visible_names import shown_type_name
from sql.binder.stored.column_expressions import parse_stored_expression, referenced_column_names
from sql.binder.stored.views import parse_view_query
from sql.catalog.catalog import Catalog, Column, Table
from sql.catalog.extensions import extension_of_function, installed_extension
from sql.catalog.objects import DomainDefinition, EnumDefinition, ViewDefinition
from sql.catalog.system_catalogs import PG_CATALOG, system_catalogs
from sql.deparse import expressions, queries, write_expressions, write_queries
from sql.deparse.coercion import UnknownShape, add_coercion, settled
from sql.deparse.dependencies import direct_uses
from sql.deparse.nodes import (
    AggregateCall,
    Entry,
    FuncExpr,
    Keyword,
    Listed,
    QueryTree,
    TypedExpr,
    Var,
)
from sql.deparse.printer import PLAIN, Printer, Style
from sql.deparse.state import Analysis, Item, Level, PresentRelation
from sql.deparse.types import Type, UserTypeName, shown_type, type_of
from sql.errors import SqlError
from sql.parser.syntax import Node, is_a, string_values, tree_nodes
from sql.parser.type_names import is_builtin_type, parse_type_name, resolve_type_name
from sql.types.sql_type import quoted_name


@dataclass(frozen=True, slots=True)
class Definitions:
    """What the texts of definitions are printed for: a catalog, a search path, a time zone.

    `view_columns`: the columns of a view, as they are bound now. A name has its schema only if the
    search path does not find it.
    """

    catalog: Catalog
    search_path: Sequence[str]
    zone: str
    view_columns: Callable[[int], Sequence[Column] | None]
    type_names: Mapping[UserTypeName, str] = field(default_factory=dict[UserTypeName, str])
    """How users' types are called, where the catalog is not to say it."""

    def view(self, view: ViewDefinition, style: Style = PLAIN) -> str:
        """The query of a view."""
        known = None if "reg" in view.text else self._fingerprint(view, frozenset())
        if known is None:
            return self._view(view, style)
        key = (known, tuple(self.search_path), self.zone, style)
        found = _VIEW_TEXTS.get(key)
        if found is None:
            found = self._view(view, style)
            if len(_VIEW_TEXTS) >= _VIEW_TEXTS_MAX:
                _VIEW_TEXTS.clear()
            _VIEW_TEXTS[key] = found
        return found

    def _view(self, view: ViewDefinition, style: Style) -> str:
        query = self._query(view)
        printer = self._printer(style)
        printer.subquery(query, view.columns, names_visible=True)
        return printer.text

    def uses(self, view: ViewDefinition) -> list[tuple[int, int]]:
        """Oid and number of each column that a view names itself, 0 for a relation as such."""
        return direct_uses(self._query(view))

    def _query(self, view: ViewDefinition) -> QueryTree:
        pinned = {
            (schema, name): (oid, names, numbers)
            for schema, name, oid, names, numbers in view.relations
        }
        return self._analysis(pinned).query(_parsed_view(view.text), None)

    def _fingerprint(self, view: ViewDefinition, above: frozenset[int]) -> Hashable | None:
        """All that a view's text depends on; None if that cannot be told."""
        below: list[Hashable] = []
        for _, _, oid, _, _ in view.relations:
            table = self._table(oid)
            if table is not None:
                visible = self._is_visible(table.schema, table.name)
                columns = _columns(table)
                below.append((table.schema, table.name, visible, columns))
                below.append(self._type_names([type_ for _, _, type_ in columns]))
                continue
            other = next((one for one in self.catalog.views() if one.oid == oid), None)
            if other is None or oid in above:
                return None
            found = self._fingerprint(other, above | {view.oid})
            if found is None:
                return None
            below.append((found, self._is_visible(other.schema, other.name)))
        return replace(view, version=0), tuple(below), self._names_in(view)

    def _names_in(self, view: ViewDefinition) -> Hashable:
        """How types and functions that a view's text names are called now."""
        types, extensions = _named_in_view(view.text)
        found = [installed_extension(self.catalog, name) for name in extensions]
        schemas = tuple(None if one is None else one.schema for one in found)
        return self._type_names([self._declared(node) for node in types]), schemas

    def _type_names(self, types: Iterable[Type]) -> Hashable:
        users = [type_.user_type for type_ in types]
        return tuple(self._user_type_name(named) for named in users if named is not None)

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
        return self._text(_Job(text, _used_columns(table, text), style, target, value))

    def index_element(self, table: Table, text: str, style: Style = PLAIN) -> str:
        """A column of an index: an expression has parentheses if it is no call."""
        return self._text(_Job(text, _used_columns(table, text), style, is_element=True))

    def _text(self, job: "_Job") -> str:
        if not _is_pure(job.text):
            return self.printed(job)
        names = [(named, self._user_type_name(named)) for named in job.user_types()]
        return _pure_text(job, self.zone, tuple(names))

    def printed(self, job: "_Job") -> str:
        """One expression."""
        expr = self._analyzed(job)
        printer = self._printer(job.style)
        printer.expression(expr, implicit=False)
        bare = not job.is_element or isinstance(expr, Var) or _looks_like_function(expr)
        return printer.text if bare else f"({printer.text})"

    def _analyzed(self, job: "_Job") -> TypedExpr:
        analysis = self._analysis({})
        level = Level(QueryTree())
        entry = _entry(job.columns)
        named: list[tuple[str, TypedExpr]] = [
            (name, Var(entry, at, type_)) for at, (name, type_) in enumerate(job.columns)
        ]
        level.items.append(Item(None, named, entry=entry))
        if job.value is not None:
            level.value = Keyword("VALUE", job.value)
        expr = analysis.expression(level, parse_stored_expression(job.text))
        if job.target is not None:
            return add_coercion(expr, job.target, self.zone)
        return settled(expr, self.zone)

    def _printer(self, style: Style) -> Printer:
        return Printer(
            style,
            write_expressions.write_expression,
            write_queries.write_query,
            self._relation_text,
            self._type_text,
            self._function_name,
        )

    def _type_text(self, type_: Type) -> str:
        return shown_type(type_, self._user_type_name)

    def _user_type_name(self, named: UserTypeName) -> str:
        return self.type_names.get(named) or shown_type_name(self.catalog, self.search_path, *named)

    def _function_name(self, call: FuncExpr) -> str:
        name = quoted_name(call.name)
        if call.extension is None:
            return name
        found = installed_extension(self.catalog, call.extension)
        if found is None:
            raise UnknownShape(call.name)
        is_found = found.schema in self.search_path and extension_of_function(call.name) is not None
        return name if is_found else f"{quoted_name(found.schema)}.{name}"

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
        def relation(
            schema: str, name: str
        ) -> tuple[PresentRelation, Sequence[str], Sequence[int]]:
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

    def _table(self, oid: int) -> Table | None:
        return self.catalog.by_oid(oid) or _catalogs_by_oid().get(oid)

    def _relation(self, oid: int) -> PresentRelation:
        table = self._table(oid)
        if table is not None:
            columns = {number: (name, type_) for number, name, type_ in _columns(table)}
            return PresentRelation(oid, table.schema, table.name, columns)
        view = next((one for one in self.catalog.views() if one.oid == oid), None)
        found = None if view is None else self.view_columns(oid)
        if view is None or found is None:
            raise UnknownShape(str(oid))
        columns = {
            at: (name, type_of(column.type, column.domain))
            for at, (name, column) in enumerate(zip(view.columns, found, strict=True), 1)
        }
        return PresentRelation(oid, view.schema, view.name, columns)

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
            return self.relation_name(int(text)) or text
        if type_name == "regtype" and not text.isdecimal() and text != "-":
            return self._type_text(self._declared(parse_type_name(text, None)))
        return text

    def relation_name(self, oid: int) -> str | None:
        """A relation as regclass shows it."""
        found = self.catalog.by_oid(oid) or next(
            (thing for thing in self.catalog.objects.values() if thing.oid == oid), None
        )
        if found is None:
            return None
        name = quoted_name(found.name)
        if self._is_visible(found.schema, found.name):
            return name
        return f"{quoted_name(found.schema)}.{name}"


@dataclass(frozen=True, slots=True)
class _Job:
    """An expression to print: its text, and the columns that it uses."""

    text: str
    columns: tuple[tuple[str, Type], ...]
    style: Style
    target: Type | None = None
    value: Type | None = None
    is_element: bool = False

    def user_types(self) -> Iterator[UserTypeName]:
        """Those that its columns, its target and VALUE have."""
        for type_ in (*(type_ for _, type_ in self.columns), self.target, self.value):
            if type_ is not None and type_.user_type is not None:
                yield type_.user_type


_VIEW_TEXTS_MAX: Final = 5_000
_VIEW_TEXTS: Final[dict[Hashable, str]] = {}
"""Texts of views by all that they depend on."""


@lru_cache(maxsize=20_000)
def _pure_text(job: _Job, zone: str, names: tuple[tuple[UserTypeName, str], ...]) -> str:
    """The text of an expression that names nothing of a catalog; `names`: how types are called."""
    return Definitions(Catalog(), (), zone, lambda _: None, dict(names)).printed(job)


@lru_cache(maxsize=20_000)
def _is_pure(text: str) -> bool:
    tree = parse_stored_expression(text)
    names = [string_values(part.names) for part in tree_nodes(tree) if is_a(part, ast.TypeName)]
    return not _called_extensions(tree) and all(
        _is_builtin(name) and not name[-1].startswith("reg") for name in names
    )


def _is_builtin(name: Sequence[str]) -> bool:
    return is_builtin_type(name[-1]) and (len(name) == 1 or name[0] == PG_CATALOG)


def _called_extensions(tree: Node) -> set[str]:
    """The extensions whose functions are called."""
    calls = [string_values(part.funcname) for part in tree_nodes(tree) if is_a(part, ast.FuncCall)]
    found = (extension_of_function(name, qualifier) for *qualifier, name in calls)
    return {extension for extension in found if extension is not None}


@lru_cache(maxsize=20_000)
def _names_in(text: str) -> frozenset[str]:
    return frozenset(referenced_column_names(parse_stored_expression(text)))


def _used_columns(table: Table | None, text: str) -> tuple[tuple[str, Type], ...]:
    if table is None:
        return ()
    names = _names_in(text)
    return tuple(
        (column.name, type_of(column.type, column.domain))
        for column in table.columns
        if column.name in names
    )


def _columns(table: Table) -> tuple[tuple[int, str, Type], ...]:
    return tuple(
        (table.number_of(at), column.name, type_of(column.type, column.domain))
        for at, column in enumerate(table.columns)
    )


@cache
def _catalogs_by_oid() -> Mapping[int, Table]:
    return {table.oid: table for table in system_catalogs().values()}


@lru_cache(maxsize=1_000)
def _parsed_view(text: str) -> Node:
    return parse_view_query(text)


@lru_cache(maxsize=1_000)
def _named_in_view(text: str) -> tuple[Sequence[Node], Sequence[str]]:
    """The names of types that are not built in, and the extensions whose functions are called."""
    tree = _parsed_view(text)
    nodes = [part for part in tree_nodes(tree) if is_a(part, ast.TypeName)]
    types = [node for node in nodes if not _is_builtin(string_values(node.names))]
    return types, sorted(_called_extensions(tree))


def _entry(columns: Sequence[tuple[str, Type]]) -> Entry:
    names = [name for name, _ in columns]
    made = Entry("relation", names, [type_ for _, type_ in columns], [*names])
    made.shown = ""
    made.shown_columns = [*names]
    return made


def _looks_like_function(expr: TypedExpr) -> bool:
    if isinstance(expr, Listed):
        return expr.name in ("COALESCE", "GREATEST", "LEAST", "NULLIF")
    return isinstance(expr, FuncExpr | AggregateCall | Keyword)
