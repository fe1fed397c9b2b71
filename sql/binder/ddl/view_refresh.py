"""Decide how a materialized view is refreshed, and refuse `on commit` where it cannot be.

    WITH (refresh = ..) ─▶ or the setting default_view_refresh ─┬─▶ manual
                                                                └─▶ on commit, if `_reason` is None

A view that follows its inputs must be a function of them (V5 of `coordinator/core/views`).
"""

from dataclasses import replace
from typing import Final

from sql.binder.ddl.storage_options import MANUAL, ON_COMMIT, RefreshOption
from sql.binder.resolve.query_result import resolve_unknown_columns
from sql.binder.state import BindContext, Binding
from sql.binder.stored.views import inside_view, parse_view_query
from sql.catalog.catalog import Table
from sql.catalog.meridian_schema import is_server_state
from sql.catalog.objects import MaterializedView, StoredQuery
from sql.catalog.system_catalogs import is_system_catalog
from sql.errors import SqlError, not_supported
from sql.plan.nodes import Plan
from sql.plan.traverse import is_volatile_plan
from sql.types.sql_type import quoted_name
from sql.types.styles import DEFAULT_STYLES, Styles

DEFAULT_SETTING: Final = "default_view_refresh"

_ZONES: Final = ("UTC", "Asia/Kathmandu")
_OTHER_STYLES: Final = Styles("SQL", "DMY", "sql_standard", -3, "escape")


def chosen_refresh(
    binding: Binding, option: RefreshOption, name: str, query: StoredQuery, plan: Plan
) -> tuple[bool, tuple[str, ...]]:
    """Whether a new view follows its inputs, and what is told of that. Raises 0A000 if it is asked
    to and cannot.
    """
    said = option.refresh or binding.context.settings.get(DEFAULT_SETTING)
    if said != ON_COMMIT:
        return False, ()
    reason = why_not_on_commit(binding, query, plan)
    if reason is None:
        return True, ()
    if option.refresh is not None:
        what = f"a materialized view with refresh = '{ON_COMMIT}' and {reason}"
        raise not_supported(what, option.place)
    told = f"materialized view {quoted_name(name)} has refresh = '{MANUAL}': its query has {reason}"
    return False, (told,)


def why_not_on_commit(binding: Binding, query: StoredQuery, plan: Plan) -> str | None:
    """What of a query that was just bound keeps a view from following its inputs; None: nothing."""
    if is_volatile_plan(plan) or binding.supplied:
        return "volatile functions"
    if binding.uses_now or binding.read_clock or binding.tells_timestamp:
        return "a dependence on the time"
    if binding.uses_session or binding.reads_settings:
        return "a dependence on the session"
    if binding.locking:
        return "row locks"
    if any(is_server_state(table) or is_system_catalog(table) for table in binding.tables.values()):
        return "system relations"
    if _depends_on_settings(binding, query):
        return "a dependence on settings such as TimeZone or DateStyle"
    return None


def _depends_on_settings(binding: Binding, query: StoredQuery) -> bool:
    """Whether the text means something else under other settings."""
    context = binding.context
    one = _bound(binding, replace(context, timezone=_ZONES[0], styles=DEFAULT_STYLES), query)
    return one != _bound(binding, replace(context, timezone=_ZONES[1], styles=_OTHER_STYLES), query)


def _bound(binding: Binding, context: BindContext, query: StoredQuery) -> Plan | str:
    inner = Binding(
        context, binding.bind_expression, binding.bind_query, binding.bind_modifying, []
    )
    view = MaterializedView(0, "", "", query.text, (), query.relations)
    try:
        with inside_view(inner, view):
            result = inner.bind_query(inner, parse_view_query(query.text), None)
            resolve_unknown_columns(inner, result)
    except SqlError as error:
        return str(error)
    return result.plan


def altered_refresh(binding: Binding, table: Table, option: RefreshOption) -> Table:
    """ALTER MATERIALIZED VIEW .. SET (refresh = ..), or RESET (refresh), to the default."""
    wanted = option.refresh
    if option.resets:
        wanted = binding.context.settings.get(DEFAULT_SETTING) or MANUAL
    query = table.query
    assert query is not None, "it is a materialized view"
    if wanted is None or (wanted == ON_COMMIT) == query.on_commit:
        return table
    if wanted == ON_COMMIT:
        reason = _why_not_stored(binding, table, query)
        if reason is not None:
            what = f"a materialized view with refresh = '{ON_COMMIT}' and {reason}"
            raise not_supported(what, option.place)
    return replace(table, query=replace(query, on_commit=wanted == ON_COMMIT))


def _why_not_stored(binding: Binding, table: Table, query: StoredQuery) -> str | None:
    """The same of a view that is there."""
    if any(key.index for key in table.keys) or table.unique_indexes:
        return "unique indexes"
    context = binding.context
    inner = Binding(
        context, binding.bind_expression, binding.bind_query, binding.bind_modifying, []
    )
    view = MaterializedView(0, "", "", query.text, (), query.relations)
    with inside_view(inner, view):
        result = inner.bind_query(inner, parse_view_query(query.text), None)
        resolve_unknown_columns(inner, result)
    return why_not_on_commit(inner, query, result.plan)
