"""Texts of definitions, printed as PostgreSQL prints them (pg_get_viewdef and its kin).

    catalog object ─ `sql/deparse` ─▶ text ─┬─ known shape ─▶ PostgreSQL's text
                                            └─ other ──────▶ the stored text, names of now

INVARIANTS
  D1  a text that is shown means the same as the definition, whatever was renamed since.
  D2  a definition whose shape `sql/deparse` does not know is shown as it is stored. No definition
      keeps another one from being shown.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from coordinator.pgcatalog.definitions import (
    bound_view_columns,
    column_list,
    default_text,
    foreign_key_text,
    include_text,
    index_orders,
    parameters_text,
    stored_view_text,
    text_with_present_names,
    validation_text,
    when_text,
)
from sql.binder.resolve.visible_names import shown_type_name
from sql.binder.state import BindContext
from sql.binder.stored.unique_indexes import index_element_text
from sql.catalog.catalog import CheckConstraint, Column, Key, Table
from sql.catalog.constraint_names import not_null_name
from sql.catalog.objects import (
    DomainDefinition,
    IndexDefinition,
    StatisticsDefinition,
    ViewDefinition,
)
from sql.catalog.oids import constraint_oid, derived_oid, index_oid
from sql.catalog.temporary import TEMPORARY_SCHEMA_ALIAS, is_temporary_schema
from sql.deparse.coercion import UnknownShape
from sql.deparse.constants import quoted
from sql.deparse.definitions import Definitions
from sql.deparse.printer import PLAIN, PRETTY, Style
from sql.deparse.types import BOOL_TYPE, type_of
from sql.errors import SqlError
from sql.types.sql_type import quoted_name

_GAPS: Final = (
    UnknownShape, SqlError, LookupError, ValueError, RecursionError, StopIteration, AttributeError,
    AssertionError,
)  # fmt: skip
"""What the printer raises for what it does not know: syntax trees have no types, so a node that it
has not met may lack an attribute (D2).
"""

EXPRESSIONS: Final = -1
"""The part of a relation under which expressions are listed; those of domains have no relation."""

NOT_WRAPPED: Final = -2
"""The part of a view under which its text without line breaks in lists is found."""

STATISTICS_COLUMNS: Final = -3
"""The part of a statistics object under which its columns are found."""


@dataclass(slots=True)
class DefinitionTexts:
    """The texts of one catalog for one session; see the module."""

    context: BindContext
    _views: dict[int, list[Column] | None] = field(default_factory=dict[int, Any])

    def default(self, table: Table, column: Column, style: Style = PLAIN) -> str | None:
        """The default, or the expression of a generated column; an identity has none."""
        if column.identity:
            return None
        if column.sequence:
            name = self._printer().relation_name(column.sequence) or str(column.sequence)
            return f"nextval({quoted(name)}::regclass)"
        path = self.context.search_path
        stored = default_text(column, partial(shown_type_name, self.context.catalog, path))
        if stored is None:
            return None
        known = bool(column.generated or column.expression)
        text = stored if known else column.default_text
        if not text:
            return text_with_present_names(self.context, stored)
        target = type_of(column.type, column.domain)
        return self._printed(
            lambda printed: printed.expression(table, text, style, target=target), stored
        )

    def has_default(self, column: Column) -> bool:
        """Whether `default` has a text."""
        if column.identity:
            return False
        return bool(column.sequence) or default_text(column) is not None

    def condition(self, table: Table, text: str, style: Style = PLAIN) -> str:
        """The condition of a check or of an index, as pg_get_expr() shows it."""
        return self._printed(
            lambda printed: printed.expression(table, text, style, target=BOOL_TYPE), f"({text})"
        )

    def domain_condition(self, domain: DomainDefinition, text: str, style: Style = PLAIN) -> str:
        """The condition of a domain's check."""
        value = type_of(domain.type)
        return self._printed(
            lambda printed: printed.expression(None, text, style, target=BOOL_TYPE, value=value),
            f"({text})",
        )

    def domain_default(self, domain: DomainDefinition) -> str | None:
        """The default of a domain."""
        if not domain.default:
            return None
        target = type_of(domain.type)
        return self._printed(
            lambda printed: printed.expression(None, domain.default, target=target),
            domain.default,
        )

    def domain_check(self, domain: DomainDefinition, text: str, style: Style = PLAIN) -> str:
        """The check of a domain, whole."""
        return f"CHECK ({self.domain_condition(domain, text, style)})"

    def check(self, table: Table, check: CheckConstraint, style: Style = PLAIN) -> str:
        """A check, whole."""
        condition = self.condition(table, check.expression, style)
        inherited = " NO INHERIT" if check.no_inherit else ""
        return f"CHECK ({condition}){inherited}{validation_text(check)}"

    # --- indexes -------------------------------------------------------------------------------

    def key_index(self, table: Table, key: Key, style: Style = PLAIN) -> str:
        """CREATE INDEX of a key."""
        columns = ", ".join(
            f"{quoted_name(table.columns[at].name)} {order}".strip()
            for at, order in zip(key.columns, index_orders(key), strict=True)
        )
        distinct = "" if key.nulls_distinct else " NULLS NOT DISTINCT"
        on = self._on(table, style)
        text = f"CREATE UNIQUE INDEX {quoted_name(key.name)} ON {on} USING btree ({columns})"
        return text + include_text(table, key) + distinct + parameters_text(key.parameters)

    def index(self, table: Table, index: IndexDefinition, style: Style = PLAIN) -> str:
        """CREATE INDEX."""
        options = index.options or ("",) * len(index.elements)
        parts = [
            f"{self.index_element(table, element, style)} {option}".strip()
            for element, option in zip(index.elements, options, strict=True)
        ]
        kind = "UNIQUE INDEX" if index.unique else "INDEX"
        text = f"CREATE {kind} {quoted_name(index.name)} ON {self._on(table, style)}"
        text += f" USING {index.method} ({', '.join(parts)})"
        if index.include:
            text += f" INCLUDE ({', '.join(index.include)})"
        text += "" if index.nulls_distinct else " NULLS NOT DISTINCT"
        text += parameters_text(index.parameters)
        if index.predicate:
            text += f" WHERE {self.condition(table, index.predicate, style)}"
        return text

    def index_element(self, table: Table, element: str, style: Style = PLAIN) -> str:
        """A column or an expression of an index."""
        return self._printed(
            lambda printed: printed.index_element(table, element, style),
            index_element_text(element),
        )

    def statistics(self, table: Table, one: StatisticsDefinition) -> str:
        """CREATE STATISTICS; its kinds, if not all of them."""
        names = {"d": "ndistinct", "f": "dependencies", "m": "mcv"}
        kinds = [names[kind] for kind in one.kinds if kind in names]
        shown = f" ({', '.join(kinds)})" if 0 < len(kinds) < len(names) else ""
        text = f"CREATE STATISTICS {_schema_text(one.schema)}.{quoted_name(one.name)}{shown}"
        on = self._on(table, Style(bare=True))
        return f"{text} ON {self.statistics_columns(table, one)} FROM {on}"

    def statistics_columns(self, table: Table, one: StatisticsDefinition) -> str:
        """Its columns and expressions."""
        columns = [quoted_name(table.columns[table.ordinal_of(n)].name) for n in one.columns]
        texts = [self.index_element(table, text, PRETTY) for text in one.expressions]
        return ", ".join([*columns, *texts])

    def _on(self, table: Table, style: Style) -> str:
        if style.bare and table.schema in self.context.search_path:
            return quoted_name(table.name)
        return f"{_schema_text(table.schema)}.{quoted_name(table.name)}"

    # --- views ---------------------------------------------------------------------------------

    def view(self, view: ViewDefinition, style: Style = PLAIN) -> str:
        """The query of a view with a semicolon."""
        try:
            return f"{self._printer().view(view, style)};"
        except _GAPS:
            return stored_view_text(self.context, view)

    def uses(self, view: ViewDefinition) -> Sequence[tuple[int, int]]:
        """Oid and number of what a view depends on: columns, or 0 for a relation as such."""
        try:
            found = self._printer().uses(view)
        except _GAPS:
            return view.uses
        # A relation that a constant names is none of FROM.
        named = [use for use in view.uses if not use[1] and use not in found]
        return [*found, *named]

    def rule(self, view: ViewDefinition, style: Style = PLAIN) -> str:
        """The rule that a view is (pg_get_ruledef)."""
        name = quoted_name(view.name)
        if not style.bare or view.schema not in self.context.search_path:
            name = f"{_schema_text(view.schema)}.{name}"
        head = f'CREATE RULE "_RETURN" AS\n    ON SELECT TO {name} DO INSTEAD '
        return head + self.view(view, style)

    # --- all of them ---------------------------------------------------------------------------

    def of_table(self, table: Table) -> Iterator[tuple[int, int, str, str]]:
        """Oid, part, text and pretty text of a table's constraints and indexes; part 0 is the
        whole.
        """
        for key in table.keys:
            kind = "PRIMARY KEY" if key.primary else "UNIQUE"
            distinct = "" if key.nulls_distinct else " NULLS NOT DISTINCT"
            columns = f"({column_list(table, key.columns)}){include_text(table, key)}"
            text = f"{kind}{distinct} {columns}{when_text(key)}"
            yield constraint_oid(table, key.name), 0, text, text
            oid = index_oid(table, key)
            yield oid, 0, self.key_index(table, key), self.key_index(table, key, PRETTY)
            for part, at in enumerate((*key.columns, *key.include), 1):
                name = quoted_name(table.columns[at].name)
                yield oid, part, name, name
        for index in self.context.catalog.indexes(table.oid):
            yield index.oid, 0, self.index(table, index), self.index(table, index, PRETTY)
            for part, element in enumerate((*index.elements, *index.include), 1):
                plain, pretty = (
                    self.index_element(table, element, style) for style in (PLAIN, PRETTY)
                )
                yield index.oid, part, plain, pretty
        for one in self.context.catalog.statistics(table.oid):
            text = self.statistics(table, one)
            yield one.oid, 0, text, text
            columns = self.statistics_columns(table, one)
            yield one.oid, STATISTICS_COLUMNS, columns, columns
        for foreign in table.foreign_keys:
            text = foreign_key_text(self.context, table, foreign)
            yield constraint_oid(table, foreign.name), 0, text, text
        for check in table.checks:
            oid = constraint_oid(table, check.name)
            yield oid, 0, self.check(table, check), self.check(table, check, PRETTY)
        for column in table.columns:
            if column.not_null:
                text = f"NOT NULL {quoted_name(column.name)}"
                yield constraint_oid(table, not_null_name(table, column)), 0, text, text

    def expressions(self, table: Table) -> Iterator[tuple[int, int, str, str]]:
        """The expressions that pg_get_expr() may be asked for, plain and pretty."""
        for column in table.columns:
            text = self.default(table, column)
            if text is not None:
                yield table.oid, EXPRESSIONS, text, self.default(table, column, PRETTY) or text
        texts = [check.expression for check in table.checks]
        texts += (index.predicate for index in self.context.catalog.indexes(table.oid))
        for text in filter(None, texts):
            pair = self.condition(table, text), self.condition(table, text, PRETTY)
            yield table.oid, EXPRESSIONS, *pair

    def of_domain(self, domain: DomainDefinition) -> Iterator[tuple[int, int, str, str]]:
        """The same of a domain's constraints."""
        oid = derived_oid("constraint", domain.oid, domain.not_null_name)
        yield oid, 0, "NOT NULL", "NOT NULL"
        for name, text in domain.checks:
            pair = self.domain_check(domain, text), self.domain_check(domain, text, PRETTY)
            yield derived_oid("constraint", domain.oid, name), 0, *pair
            plain, pretty = (
                self.domain_condition(domain, text, style) for style in (PLAIN, PRETTY)
            )
            yield 0, EXPRESSIONS, plain, pretty

    def of_view(self, view: ViewDefinition) -> Iterator[tuple[int, int, str, str]]:
        """The same of a view and its rule."""
        yield view.oid, 0, self.view(view), self.view(view, PRETTY)
        unwrapped = Style(bare=True, wrap=-1)
        yield view.oid, NOT_WRAPPED, self.view(view, unwrapped), ""
        rule = derived_oid("rule", view.oid)
        yield rule, 0, self.rule(view), self.rule(view, PRETTY)

    # --- the printer ---------------------------------------------------------------------------

    def _printed(self, write: Callable[[Definitions], str], stored: str) -> str:
        try:
            return write(self._printer())
        except _GAPS:
            return text_with_present_names(self.context, stored)

    def _printer(self) -> Definitions:
        context = self.context
        return Definitions(
            context.catalog, context.search_path, context.timezone, self._view_columns
        )

    def _view_columns(self, oid: int) -> list[Column] | None:
        if oid not in self._views:
            view = next((one for one in self.context.catalog.views() if one.oid == oid), None)
            found = None if view is None else bound_view_columns(self.context, view)
            self._views[oid] = found
        return self._views[oid]


def _schema_text(schema: str) -> str:
    """A schema in a name; that of temporary relations by its alias (get_namespace_name_or_temp)."""
    return TEMPORARY_SCHEMA_ALIAS if is_temporary_schema(schema) else quoted_name(schema)
