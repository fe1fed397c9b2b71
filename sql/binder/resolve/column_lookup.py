"""Resolve column references against the FROM items of a query and its outer queries.

    Scope (one per query level) ──parent──▶ Scope of the outer query
      └ items: one per table, subquery, join; each has named columns

Follows parse_relation.c: the search goes outwards level by level; the first level that has the name
decides, and two matches in one level are 42702.
"""

from collections.abc import Sequence
from dataclasses import replace

from sql.binder.resolve.column_hints import similar_columns
from sql.binder.resolve.system_columns import SYSTEM_COLUMNS, system_column
from sql.binder.state import Binding, FromItem, Scope
from sql.errors import SqlError, not_supported, undefined_column
from sql.plan.nodes import ColumnRef, Expr
from sql.plan.renumbering import expression_with_fresh_ids
from sql.plan.traverse import has_subquery


def hidden_target(item: FromItem) -> FromItem:
    """The target of an UPDATE or DELETE inside its own FROM, where it must not be referenced."""
    return replace(item, lateral_only=True, is_target=True)


def find_column(binding: Binding, scope: Scope, name: str, place: int) -> Expr | None:
    """An unqualified column (colNameToVar); None if no level has it."""
    for level in scope.levels():
        found: Expr | None = None
        for item in level.visible():
            if not item.columns_visible:
                continue
            match = column_in_item(item, name, place) or system_column(binding, item, name, place)
            if match is None:
                continue
            if found is not None:
                raise SqlError("42702", f'column reference "{name}" is ambiguous', place + 1)
            found = match
            _use(level, item, name, place)
        if found is not None:
            return reference_at(binding, found, place)
    return None


def column_in_item(item: FromItem, name: str, place: int) -> Expr | None:
    """The item's column of that name; 42702 if it has two."""
    found: Expr | None = None
    for column, expr in (*item.columns, *item.unexpanded):
        if column == name:
            if found is not None:
                raise SqlError("42702", f'column reference "{name}" is ambiguous', place + 1)
            found = expr
    return found


def _use(level: Scope, item: FromItem, name: str, place: int) -> None:
    if not item.lateral_only:
        return
    if item.is_target:
        message = f'invalid reference to FROM-clause entry for table "{item.name}"'
        hint = (
            f'There is an entry for table "{item.name}", but it cannot be referenced from this '
            "part of the query."
        )
        raise SqlError("42P10", message, place + 1, hint=hint)
    if not item.lateral_ok:
        raise SqlError(
            "42P10",
            f'invalid reference to FROM-clause entry for table "{item.name or name}"',
            place + 1,
            detail="The combining JOIN type must be INNER or LEFT for a LATERAL reference.",
        )
    level.lateral_used = True


def reference_at(binding: Binding, expr: Expr, place: int) -> Expr:
    """A copy of an item's column, recorded with the position of the reference."""
    if isinstance(expr, ColumnRef):
        ref = ColumnRef(expr.id, expr.type)
        binding.places[id(ref)] = (ref, place)
        return ref
    # A subquery that stands twice makes columns of its own in each place (P1 of `nodes.py`).
    return expression_with_fresh_ids(expr, binding.new_id) if has_subquery(expr) else expr


def find_item(scope: Scope, schema: str | None, name: str, place: int) -> FromItem | None:
    """The item that `name.` or `schema.name.` means (refnameNamespaceItem)."""
    for level in scope.levels():
        found: FromItem | None = None
        for item in level.visible():
            if not item.names_visible or item.name != name:
                continue
            if schema is not None and (item.schema != schema or item.relation is not None):
                continue
            if found is not None:
                raise SqlError("42P09", f'table reference "{name}" is ambiguous', place + 1)
            found = item
        if found is not None:
            _use(level, found, name, place)
            return found
    return None


def qualified_column(
    binding: Binding, scope: Scope, qualifier: Sequence[str], name: str, place: int
) -> Expr:
    """`t.c` or `s.t.c`; 42P01 without such an item, 42703 without such a column."""
    item = required_item(binding, scope, qualifier, name, place)
    found = column_in_item(item, name, place) or system_column(binding, item, name, place)
    if found is not None:
        return reference_at(binding, found, place)
    has_them = item.schema is not None or (item.again and item.scanned is not None)
    if name in SYSTEM_COLUMNS and has_them:
        raise not_supported(f"the system column {name}", place + 1)
    raise _missing(scope, qualifier[-1], name, place)


def required_item(
    binding: Binding, scope: Scope, qualifier: Sequence[str], name: str, place: int
) -> FromItem:
    """The item of a qualified reference, or the error PostgreSQL gives."""
    if len(qualifier) > 2:
        _check_database(binding, (*qualifier, name), place)
    schema = qualifier[-2] if len(qualifier) > 1 else None
    item = find_item(scope, schema, qualifier[-1], place)
    if item is None:
        raise missing_item(scope, qualifier[-1], place)
    return item


def _check_database(binding: Binding, names: Sequence[str], place: int) -> None:
    shown = ".".join(names)
    if len(names) > 4:
        message = f"improper qualified name (too many dotted names): {shown}"
        raise SqlError("42601", message, place + 1)
    if names[0] != binding.context.database:
        message = f"cross-database references are not implemented: {shown}"
        raise SqlError("0A000", message, place + 1)


def missing_item(scope: Scope, name: str, place: int) -> SqlError:
    """42P01, with a hint if the item exists but is not visible here (errorMissingRTE)."""
    for level in scope.levels():
        for item in level.items:
            if name not in (item.name, item.relation):
                continue
            message = f'invalid reference to FROM-clause entry for table "{name}"'
            if item.name == name:
                detail = (
                    f'There is an entry for table "{name}", but it cannot be referenced from this '
                    "part of the query."
                )
                hint = "To reference that table, you must mark this subquery with LATERAL."
                shown = hint if item.is_lateral else None
                return SqlError("42P01", message, place + 1, detail=detail, hint=shown)
            hint = f'Perhaps you meant to reference the table alias "{item.name}".'
            return SqlError("42P01", message, place + 1, hint=hint)
    return SqlError("42P01", f'missing FROM-clause entry for table "{name}"', place + 1)


def missing_column(scope: Scope, name: str, place: int) -> SqlError:
    """42703 for an unqualified name; 0A000 for a system column of a visible table."""
    if name in SYSTEM_COLUMNS and any(
        item.schema is not None for level in scope.levels() for item in level.visible()
    ):
        return not_supported(f"the system column {name}", place + 1)
    return _missing(scope, None, name, place)


def _missing(scope: Scope, qualifier: str | None, name: str, place: int) -> SqlError:
    """42703, with the column that may have been meant (errorMissingColumn)."""
    shown = f'"{name}"' if qualifier is None else f"{qualifier}.{name}"
    items = [
        item
        for level in scope.levels()
        for item in level.items
        if item.name is not None and not item.again
    ]
    exact = [
        item
        for item in items
        if qualifier in (None, item.name) and any(name == column for column, _ in item.columns)
    ]
    if exact:
        return _out_of_reach(exact, name, shown, place)
    relations = [(item.name or "", [column for column, _ in item.columns]) for item in items]
    similar = [f'the column "{one}"' for one in similar_columns(relations, qualifier, name)]
    hint = f"Perhaps you meant to reference {' or '.join(similar)}." if similar else None
    return undefined_column(shown, place + 1, hint=hint)


def _out_of_reach(items: Sequence[FromItem], name: str, shown: str, place: int) -> SqlError:
    """42703 for a column that is there, in relations that may not be referred to."""
    elsewhere = "that cannot be referenced from this part of the query."
    if len(items) > 1:
        detail = f'There are columns named "{name}", but they are in tables {elsewhere}'
        near = "Try using a table-qualified name."
        return undefined_column(shown, place + 1, detail=detail, hint=near)
    (item,) = items
    detail = f'There is a column named "{name}" in table "{item.name}", but it {elsewhere[5:]}'
    hint: str | None = None
    if item.is_lateral:
        hint = "To reference that column, you must mark this subquery with LATERAL."
    elif item.names_visible:
        hint = "To reference that column, you must use a table-qualified name."
    return undefined_column(shown, place + 1, detail=detail, hint=hint)
