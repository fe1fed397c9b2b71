"""Attribute numbers, index flags and definition texts of catalog objects, in PostgreSQL's form."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Final

from sql.binder.bind import bind_with_context
from sql.binder.dml.target_relation import writable_columns
from sql.binder.resolve.collations import collation_to_store
from sql.binder.state import BindContext, Binding
from sql.binder.stored.column_expressions import parse_stored_expression, referenced_column_names
from sql.binder.stored.stored_names import named_relations, with_current_names
from sql.binder.stored.view_text import view_query_text
from sql.binder.stored.views import view_plan
from sql.catalog.catalog import Catalog, CheckConstraint, Column, ForeignKey, Key, Table
from sql.catalog.objects import CatalogObject, ViewDefinition
from sql.errors import SqlError
from sql.types.sql_type import SqlType, format_type, quoted_name
from sql.types.text_output import format_text


def check_numbers(table: Table, check: CheckConstraint) -> tuple[int, ...]:
    """The attnums of the columns that a check looks at, as PostgreSQL lists them."""
    numbers = {
        column.name: column_number(column, place) for place, column in enumerate(table.columns, 1)
    }
    names = referenced_column_names(parse_stored_expression(check.expression))
    return tuple(sorted(numbers[name] for name in names if name in numbers))


def column_number(column: Column, place: int) -> int:
    """attnum; `place` from 1."""
    return column.number or place


def key_numbers(table: Table, key: Key) -> tuple[int, ...]:
    """The attnums of a key's columns."""
    return tuple(column_number(table.columns[at], at + 1) for at in key.columns)


def index_numbers(table: Table, key: Key) -> tuple[int, ...]:
    """The attnums of the columns of a key's index, those of INCLUDE last."""
    return tuple(column_number(table.columns[at], at + 1) for at in (*key.columns, *key.include))


def constraints_of(table: Table) -> list[Key]:
    """The keys that are constraints by name; the others are indexes only."""
    return [key for key in table.keys if not key.index]


def default_text(column: Column, user_name: Callable[[str, str], str] | None = None) -> str | None:
    """The default as an expression; None without. `user_name`: as for `format_type`."""
    if column.generated is not None:
        return column.generated
    if column.default_of_domain:
        return None
    if column.expression is not None:
        return column.expression
    if not column.has_default or column.default is None:
        return "NULL" if column.has_default else None
    if isinstance(column.default, Decimal):
        return _number(f"{column.default:f}", column)  # as it was written
    text = format_text(column.default, column.type)
    if column.type.category == "N":
        return _number(text, column)
    if column.type.name == "bool":
        return "true" if column.default else "false"
    if column.type.name == "bpchar" and not column.type.has_blanks:
        # PostgreSQL keeps what was written, and fills it up when it is used.
        text = text.rstrip(" ")
    escaped = text.replace("'", "''")
    shown = (
        "bpchar"
        if column.type.name == "bpchar"
        else format_type(SqlType(column.type.name), user_name)
    )
    return f"'{escaped}'::{shown}"


def _number(text: str, column: Column) -> str:
    """A literal of the type that the parser gives to a number that is written so."""
    digits = text.removeprefix("-")
    if not digits.replace(".", "", 1).isdecimal():
        return f"'{text}'::{format_type(SqlType(column.type.name))}"
    if "." in digits:
        type_ = "numeric"
    else:
        sizes = ((31, "integer"), (63, "bigint"))
        type_ = next((name for bits, name in sizes if abs(int(text)) < 1 << bits), "numeric")
    bare = digits == text and ("." in digits or type_ == "integer")
    return text if bare else f"'{text}'::{type_}"


def index_orders(key: Key) -> Sequence[str]:
    """The ordering options of each column of the key's index."""
    return key.orders or ("",) * len(key.columns)


def index_flags(orders: Sequence[str]) -> tuple[int, ...]:
    """indoption: 1 is DESC, 2 is NULLS FIRST."""
    return tuple(
        ("DESC" in order) + 2 * ("FIRST" in order or ("DESC" in order and "LAST" not in order))
        for order in orders
    )


def column_list(table: Table, ordinals: Sequence[int]) -> str:
    """The names of columns, as definitions list them."""
    return ", ".join(quoted_name(table.columns[at].name) for at in ordinals)


def include_text(table: Table, key: Key) -> str:
    """INCLUDE of a key."""
    return f" INCLUDE ({column_list(table, key.include)})" if key.include else ""


def parameters_text(texts: Sequence[str]) -> str:
    """WITH of an index."""
    if not texts:
        return ""
    pairs = (text.partition("=") for text in texts)
    shown = (
        f"{quoted_name(name)}={value}"
        if quoted_name(value) == value
        else f"{quoted_name(name)}='{value}'"
        for name, _, value in pairs
    )
    return f" WITH ({', '.join(shown)})"


def text_with_present_names(context: BindContext, text: str) -> str:
    """A stored text with the present names of its relations."""
    return (
        with_current_names(text, partial(_relation_name, context))
        if named_relations(text)
        else text
    )


def stored_view_text(context: BindContext, view: ViewDefinition) -> str:
    """The stored query of a view, with the names that everything has."""
    query = view_query_text(context.catalog, context.search_path, view)
    return f" {text_with_present_names(context, query)};"


def _relation_name(context: BindContext, oid: int) -> str | None:
    found = context.catalog.by_oid(oid) or next(
        (thing for thing in context.catalog.objects.values() if thing.oid == oid), None
    )
    return None if found is None else _shown_name(context, found)


def _shown_name(context: BindContext, relation: Table | CatalogObject) -> str:
    """As regclass shows it."""
    name = quoted_name(relation.name)
    if relation.schema in context.search_path:
        return name
    return f"{quoted_name(relation.schema)}.{name}"


_ACTIONS: Final = {
    "no action": "a",
    "restrict": "r",
    "cascade": "c",
    "set null": "n",
    "set default": "d",
}


def action_code(action: str) -> str:
    """The letter of pg_constraint."""
    return _ACTIONS[action]


def user_tables(catalog: Catalog) -> list[Table]:
    """The tables that users have created, in this order."""
    return sorted(catalog.tables.values(), key=lambda table: table.oid)


def base_tables(catalog: Catalog) -> list[Table]:
    """Those of them that are no materialized views, which the SQL standard does not know."""
    return [table for table in user_tables(catalog) if table.query is None]


def views_as_tables(context: BindContext) -> Iterator[Table]:
    """The views as tables without rows, their columns as the view is bound now."""
    for view in sorted(context.catalog.views(), key=lambda view: view.oid):
        columns = bound_view_columns(context, view)
        if columns is None:
            continue
        defaults = dict(view.defaults)
        made = tuple(
            replace(column, has_default=at in defaults, expression=defaults.get(at))
            for at, column in enumerate(columns)
        )
        yield Table(view.oid, view.schema, view.name, "", made, timeline="")


def views_with_defaults(context: BindContext) -> Iterator[Table]:
    """`views_as_tables`, if a column of some view has a default of its own."""
    if any(view.defaults for view in context.catalog.views()):
        yield from views_as_tables(context)


def bound_view_columns(context: BindContext, view: ViewDefinition) -> list[Column] | None:
    """The columns of a view as it is bound now; None if it cannot be."""
    try:
        return bind_with_context(context, lambda binding: _shown_columns(binding, view))
    except SqlError:
        return None


def _shown_columns(binding: Binding, view: ViewDefinition) -> list[Column]:
    _, columns = view_plan(binding, view)
    return [
        Column(
            name,
            column.type,
            domain=binding.domain(column.id),
            collation=collation_to_store(binding, column),
        )
        for name, column in zip(view.columns, columns, strict=True)
    ]


INSERTED, UPDATED, DELETED = 8, 4, 16
EVERYTHING = INSERTED | UPDATED | DELETED
"""What can be done to a relation's rows, as pg_relation_is_updatable() says it."""


def supported_view_events(context: BindContext, view: ViewDefinition) -> tuple[int, Sequence[int]]:
    """The events that a view and its columns support (pg_relation_is_updatable)."""
    try:
        found = bind_with_context(context, lambda binding: writable_columns(binding, view))
    except SqlError:
        found = None
    if found is None:
        return 0, [0] * len(view.columns)
    events = EVERYTHING if any(found) else DELETED
    return events, [EVERYTHING if writable else DELETED for writable in found]


def is_user_view(table: Table) -> bool:
    """Whether it is one of `views_as_tables`."""
    return not table.shard


def referenced_key(context: BindContext, foreign: ForeignKey) -> tuple[Table, Key]:
    """The table that a foreign key refers to, and the key of its columns there."""
    other = context.catalog.by_oid(foreign.table)
    assert other is not None, "a table that is referred to is there"
    wanted = sorted(foreign.references)
    key = next(
        key
        for key in other.keys
        if sorted(key_numbers(other, key)) == wanted and not key.deferrable
    )
    return other, key


def foreign_key_text(context: BindContext, table: Table, key: ForeignKey) -> str:
    """As pg_get_constraintdef() writes it."""
    other, _ = referenced_key(context, key)
    own = column_list(table, key.columns)
    there = ", ".join(
        quoted_name(other.columns[other.ordinal_of(number)].name) for number in key.references
    )
    name = quoted_name(other.name)
    if other.schema not in context.search_path:
        name = f"{quoted_name(other.schema)}.{name}"
    text = f"FOREIGN KEY ({own}) REFERENCES {name}({there})"
    if key.match_full:
        text += " MATCH FULL"
    if key.on_update != "no action":
        text += f" ON UPDATE {key.on_update.upper()}"
    if key.on_delete != "no action":
        text += f" ON DELETE {key.on_delete.upper()}"
    if key.set_columns:
        chosen = [quoted_name(table.columns[key.columns[at]].name) for at in key.set_columns]
        text += f" ({', '.join(chosen)})"
    return text + when_text(key) + validation_text(key)


def when_text(key: Key | ForeignKey) -> str:
    """When it is looked at, if not always at once."""
    if not key.deferrable:
        return ""
    return " DEFERRABLE INITIALLY DEFERRED" if key.deferred else " DEFERRABLE"


def validation_text(constraint: CheckConstraint | ForeignKey) -> str:
    """NOT VALID, if not every row was looked at."""
    return "" if constraint.validated else " NOT VALID"
