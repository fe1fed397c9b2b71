"""Pure edits of a table definition: add, drop, rename or retype a column.

    unmapped        a stored field has the name of its column; numbers are positions
    mapped          columns have numbers and fields of their own (Delta's column mapping by name)

A table becomes mapped on its first change that needs it: when a column is renamed, dropped, or gets
other values under the same name. Adding a column needs no mapping.

INVARIANTS
  C1  the name of a field is used once in a table's life, and so is a column's number.
  C2  ordinals in keys follow their columns.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from pglast import ast, parser
from pglast.stream import RawStream

from sql.binder.stored.column_expressions import parse_stored_expression, referenced_column_names
from sql.catalog.catalog import CheckConstraint, Column, Key, Table
from sql.catalog.objects import Feed, IndexDefinition, StatisticsDefinition
from sql.parser.syntax import Node, is_a, tree_nodes


def with_column_mapping(table: Table) -> Table:
    """The table with a number and a field for each column (C1)."""
    if any(column.stored for column in table.columns):
        return table
    columns = tuple(
        replace(column, number=place, stored=column.name)
        for place, column in enumerate(table.columns, 1)
    )
    return replace(table, columns=columns, numbers=len(columns))


def with_added_column(table: Table, column: Column) -> Table:
    """The table with one more column, the last."""
    added = _fresh(table, column)
    return replace(table, columns=(*table.columns, added), numbers=added.number)


def with_rewritten_column(table: Table, ordinal: int, column: Column) -> Table:
    """Replace a column whose values are rewritten: the same name and number, another field."""
    table = with_column_mapping(table)
    fresh = _fresh(table, column)
    kept = replace(fresh, number=table.columns[ordinal].number)
    return replace(_with(table, ordinal, kept), numbers=fresh.number)


def with_column_definition(table: Table, ordinal: int, column: Column) -> Table:
    """Replace a column's properties; its values stay."""
    return _with(table, ordinal, column)


def without_column(table: Table, ordinal: int) -> Table:
    """The table without a column, and without the constraints that include it."""
    table = with_column_mapping(table)
    name = table.columns[ordinal].name
    return replace(
        table,
        columns=(*table.columns[:ordinal], *table.columns[ordinal + 1 :]),
        keys=tuple(
            _shifted(key, ordinal)
            for key in table.keys
            if ordinal not in (*key.columns, *key.include)
        ),
        checks=tuple(check for check in table.checks if name not in columns_in_check(check)),
        foreign_keys=tuple(
            replace(key, columns=tuple(at - (at > ordinal) for at in key.columns))
            for key in table.foreign_keys
            if ordinal not in key.columns
        ),
        feed=_feed_without(table.feed, ordinal),
    )


def _feed_without(feed: Feed | None, ordinal: int) -> Feed | None:
    """Its source brings the column no more."""
    if feed is None or not feed.columns:
        return feed
    gone = feed.columns[ordinal]
    return replace(
        feed,
        columns=(*feed.columns[:ordinal], *feed.columns[ordinal + 1 :]),
        seen=tuple([(name, type_) for name, type_ in feed.seen if name != gone]),
    )


def with_renamed_column(table: Table, ordinal: int, name: str) -> Table:
    """Rename a column, also in the constraints that name it."""
    table = with_column_mapping(table)
    column = table.columns[ordinal]
    checks = tuple(
        replace(check, expression=_renamed(check.expression, column.name, name))
        for check in table.checks
    )
    table = replace(_with(table, ordinal, replace(column, name=name)), checks=checks)
    columns = tuple(
        other
        if other.generated is None
        else replace(other, generated=_renamed(other.generated, column.name, name))
        for other in table.columns
    )
    return replace(table, columns=columns)


def generated_from(table: Table, name: str) -> Sequence[Column]:
    """The generated columns that are computed from a column."""
    return [
        column
        for column in table.columns
        if column.generated is not None
        and name in referenced_column_names(parse_stored_expression(column.generated))
    ]


def with_generated_columns(table: Table, assigned: Collection[int]) -> tuple[int, ...]:
    """These columns, and the generated columns that are computed from any of them."""
    names = {table.columns[ordinal].name for ordinal in assigned}
    computed = [
        ordinal
        for ordinal, column in enumerate(table.columns)
        if column.generated is not None
        and not names.isdisjoint(referenced_column_names(parse_stored_expression(column.generated)))
    ]
    return tuple(sorted({*assigned, *computed}))


def columns_in_check(check: CheckConstraint) -> Sequence[str]:
    """The columns that a CHECK names."""
    return referenced_column_names(parse_stored_expression(check.expression))


def without_qualifiers(text: str) -> str:
    """An expression over one table, its column names without qualifiers."""
    return _rewritten(text, lambda name: name)


def index_with_renamed_column(index: IndexDefinition, old: str, new: str) -> IndexDefinition:
    """An index after a column of its table was renamed."""
    changed = replace(
        index,
        elements=tuple(_renamed(text, old, new) for text in index.elements),
        include=tuple(_renamed(text, old, new) for text in index.include),
        predicate=index.predicate and _renamed(index.predicate, old, new),
    )
    return index if changed == index else replace(changed, version=index.version + 1)


def columns_in_index(index: IndexDefinition) -> set[str]:
    """The columns that an index names."""
    texts = [*index.elements, *index.include, *([index.predicate] if index.predicate else ())]
    return {
        name for text in texts for name in referenced_column_names(parse_stored_expression(text))
    }


def is_statistics_of(statistics: StatisticsDefinition, table: Table, name: str) -> bool:
    """Whether a statistics object of a table is of this column."""
    numbers = {table.columns[at].name: table.number_of(at) for at in range(len(table.columns))}
    return numbers.get(name) in statistics.columns or any(
        name in referenced_column_names(parse_stored_expression(text))
        for text in statistics.expressions
    )


def statistics_with_renamed_column(
    statistics: StatisticsDefinition, old: str, new: str
) -> StatisticsDefinition:
    """A statistics object after a column of its table was renamed."""
    texts = tuple(_renamed(text, old, new) for text in statistics.expressions)
    if texts == statistics.expressions:
        return statistics
    return replace(statistics, expressions=texts, version=statistics.version + 1)


def _with(table: Table, ordinal: int, column: Column) -> Table:
    columns = (*table.columns[:ordinal], column, *table.columns[ordinal + 1 :])
    return replace(table, columns=columns)


def _fresh(table: Table, column: Column) -> Column:
    if not table.numbers:
        return column
    number = table.numbers + 1
    # No user's column is called so by chance, nor was one before the table was mapped.
    return replace(column, number=number, stored=f"col-{number}-{table.oid:x}")


def _shifted(key: Key, gone: int) -> Key:
    columns, include = (
        tuple(at - (at > gone) for at in ordinals) for ordinals in (key.columns, key.include)
    )
    return replace(key, columns=columns, include=include)


def _renamed(text: str, old: str, new: str) -> str:
    return _rewritten(text, lambda name: new if name == old else name)


def _rewritten(text: str, name_of: Callable[[str], str]) -> str:
    # Parsed anew: the tree that `parse_stored_expression` remembers must not change.
    (tree,) = parser.parse_sql(f"SELECT {text}")
    statement: Node = tree.stmt
    node = statement.targetList[0].val
    for part in tree_nodes(node):
        if is_a(part, ast.ColumnRef):
            part.fields = (ast.String(sval=name_of(part.fields[-1].sval)),)
    return str(RawStream()(node))
