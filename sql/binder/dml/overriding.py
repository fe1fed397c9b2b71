"""Identity and generated columns: whether a statement may give them values, and OVERRIDING."""

from pglast.enums import OverridingKind

from sql.catalog.catalog import Column
from sql.errors import SqlError
from sql.parser.syntax import Node


def takes_given_value(column: Column, override: Node, *, default: bool) -> bool:
    """Whether an INSERT stores the given value instead of the column's identity or generated value.

    `override`: the statement's OVERRIDING; `default`: the value is DEFAULT. Raises 428C9.
    """
    if default:
        return False
    if column.generated is not None:
        raise _not_default(column, f'Column "{column.name}" is a generated column.', None)
    if not column.identity or override == OverridingKind.OVERRIDING_SYSTEM_VALUE:
        return True
    if override == OverridingKind.OVERRIDING_USER_VALUE:
        return False
    if column.identity == "always":
        detail = f'Column "{column.name}" is an identity column defined as GENERATED ALWAYS.'
        hint = "Use OVERRIDING SYSTEM VALUE to override."
        raise _not_default(column, detail, hint)
    return True


def _not_default(column: Column, detail: str, hint: str | None) -> SqlError:
    message = f'cannot insert a non-DEFAULT value into column "{column.name}"'
    return SqlError("428C9", message, detail=detail, hint=hint)


def check_generated_assignment(column: Column, *, default: bool) -> None:
    """428C9 for an UPDATE of an identity or generated column to anything but DEFAULT."""
    if default or (column.generated is None and column.identity != "always"):
        return
    what = (
        "a generated column"
        if column.generated is not None
        else "an identity column defined as GENERATED ALWAYS"
    )
    message = f'column "{column.name}" can only be updated to DEFAULT'
    raise SqlError("428C9", message, detail=f'Column "{column.name}" is {what}.')
