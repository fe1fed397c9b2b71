"""Refuse writes through views that are not updatable (view_query_is_auto_updatable)."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from pglast import ast
from pglast.enums import ViewCheckOption

from sql.binder.resolve.updatable_query import NO_SINGLE_RELATION, not_updatable_reasons
from sql.catalog.objects import ViewDefinition
from sql.errors import SqlError, not_supported
from sql.parser.syntax import Node, is_a, offset_to_position, string_values


class WriteEvent(StrEnum):
    """The kind of modification of a view."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    MERGE = "merge"


_WORDS: Final = {
    WriteEvent.INSERT: ("insert into", "inserting into"),
    WriteEvent.UPDATE: ("update", "updating"),
    WriteEvent.DELETE: ("delete from", "deleting from"),
}

LOCAL: Final = "local"
CASCADED: Final = "cascaded"
"""What a view's WITH CHECK OPTION says of the views below it."""

NO_COLUMNS: Final = "Views that have no updatable columns are not automatically updatable."


def refuse_view_query(
    view: ViewDefinition, tree: Node, events: Sequence[WriteEvent], *, merge: bool
) -> None:
    """55000 if the view is not updatable in PostgreSQL.

    `events`: the modifications, or those that a MERGE may make.
    """
    reason = next(not_updatable_reasons(tree), None)
    if reason is not None:
        raise not_updatable(view, reason, events or (WriteEvent.UPDATE,), merge=merge)


def not_updatable(
    view: ViewDefinition, reason: str, events: Sequence[WriteEvent], *, merge: bool
) -> SqlError:
    """55000 with PostgreSQL's hint, which differs for MERGE."""
    verb, doing = _WORDS[events[0]]
    event = events[0].value.upper()
    hint = f"To enable {doing} the view, provide an INSTEAD OF {event} trigger or an unconditional"
    hint += f" ON {event} DO INSTEAD rule."
    if merge:
        hint = f"To enable {doing} the view using MERGE, provide an INSTEAD OF {event} trigger."
    return SqlError("55000", f'cannot {verb} view "{view.name}"', detail=reason, hint=hint)


def check_option(node: Node, *, has_columns: bool, of_materialized: bool) -> str:
    """The WITH CHECK OPTION of CREATE VIEW. `has_columns`: some columns can be written;
    `of_materialized`: it selects from a materialized view.
    """
    said = {
        ViewCheckOption.LOCAL_CHECK_OPTION: [LOCAL],
        ViewCheckOption.CASCADED_CHECK_OPTION: [CASCADED],
    }.get(node.withCheckOption, [])
    for option in node.options or ():
        if option.defname != "check_option":
            raise not_supported(
                f"the view option {option.defname}", offset_to_position(option.location)
            )
        said.append(parse_check_option(option))
    if len(said) > 1:
        raise SqlError("22023", 'parameter "check_option" specified more than once')
    if not said:
        return ""
    refuse_check_option(node.query, has_columns=has_columns, of_materialized=of_materialized)
    return said[0]


def refuse_check_option(query: Node, *, has_columns: bool, of_materialized: bool) -> None:
    """0A000 for WITH CHECK OPTION of a view that is not updatable."""
    other = NO_SINGLE_RELATION if of_materialized else None if has_columns else NO_COLUMNS
    reason = next(not_updatable_reasons(query), other)
    if reason is not None:
        message = "WITH CHECK OPTION is supported only on automatically updatable views"
        raise SqlError("0A000", message, hint=reason)


def parse_check_option(option: Node) -> str:
    """The value of the view parameter check_option."""
    arg = option.arg
    value = ""
    if is_a(arg, ast.String):
        value = arg.sval
    elif is_a(arg, ast.TypeName):  # as the grammar takes a bare word
        value = string_values(arg.names)[-1]
    if value.lower() not in (LOCAL, CASCADED):
        detail = 'Valid values are "local" and "cascaded".'
        message = f'invalid value for enum option "check_option": {value}'
        raise SqlError("22023", message, detail=detail)
    return str(value.lower())
