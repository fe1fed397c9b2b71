"""Bind a FuncCall: a plain function, an aggregate at its query level, or a session constant."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from pglast import ast

from sql.binder.expressions.acting_calls import ACTING_FUNCTIONS, acting_call
from sql.binder.expressions.call_rewrites import rewrite_call, without_void_parameters
from sql.binder.expressions.calls import (
    TYPES_BY_NAME,
    apply_overload,
    cast_by_name,
    check_variadic_array,
    converted_arguments,
    numeric_call,
    polymorphic_call,
    refuse_aggregate_forms,
)
from sql.binder.expressions.grouping_sets import (
    clause_display_name,
    innermost_level,
    matching_key,
    refuse_nested_aggregates,
)
from sql.binder.expressions.hypothetical_sets import HYPOTHETICAL_SET_FUNCTIONS, hypothetical_set
from sql.binder.expressions.json_rows import ROW_TAKING_FUNCTIONS, json_of_row, row_argument
from sql.binder.expressions.ordered_sets import (
    check_within_group,
    within_group_keys,
    within_group_nodes,
)
from sql.binder.expressions.own_functions import own_function
from sql.binder.expressions.pattern_folding import fold_pattern
from sql.binder.expressions.record_functions import POPULATE_RECORD_FUNCTIONS, RECORD_FUNCTIONS
from sql.binder.expressions.row_aggregates import aggregate_lookup_name, bind_aggregate_argument
from sql.binder.expressions.row_fields import field_by_call
from sql.binder.expressions.sequence_calls import sequence_call
from sql.binder.expressions.session_calls import (
    SESSION_VALUES,
    SIDE_EFFECT_FUNCTIONS,
    STATEMENT_START,
    TRANSACTION_START,
    changes_settings,
    clock_value,
    depends_on_rows,
    session_call_for_rows,
    session_call_parameter,
    session_value_parameter,
    setting_of_each_row,
)
from sql.binder.expressions.set_returning import record_function_call, set_call
from sql.binder.expressions.sort_keys import argument_sort_key, expression_sort_key
from sql.binder.expressions.system_calls import system_call
from sql.binder.expressions.system_sets import (
    information_schema_call,
    is_system_set,
    rows_as_values,
)
from sql.binder.expressions.windows import window_call
from sql.binder.resolve import postgresql_functions as postgresql
from sql.binder.resolve.catalog_lookup import existing_schemas, qualifying_schema
from sql.binder.resolve.coercion import coerce_implicitly, float_literal, to_boolean, zone_arguments
from sql.binder.resolve.collations import set_computed_collation
from sql.binder.resolve.expression_domain import domain_of_call, type_of_domain
from sql.binder.resolve.extension_functions import calls_extension_function
from sql.binder.resolve.function_choice import (
    convert_arguments,
    find_function,
    function_signature,
    refuse_named_arguments,
    returns_set,
)
from sql.binder.resolve.overloads import OverloadChoice
from sql.binder.resolve.styled_arguments import styled_arguments
from sql.binder.state import BindContext, Binding, Scope
from sql.binder.stored.sequence_values import SEQUENCE_FUNCTIONS as SEQUENCE_CALLS
from sql.catalog.extensions import extension_of_function
from sql.catalog.objects import Domain
from sql.catalog.oids import schema_oid
from sql.errors import SqlError, grouping_error, not_supported, undefined_function
from sql.functions.table import FunctionKind, function_by_id, functions
from sql.parser.named_arguments import has_named_arguments
from sql.parser.syntax import Node, is_a, location, node_position, offset_to_position, string_values
from sql.plan.nodes import Aggregate, Const, Expr, Param, SortKey
from sql.types.comparability import check_equality
from sql.types.limits import check_argument_count
from sql.types.sql_type import BOOL, FLOAT8, INT4, INT8, NAME, OID, TEXT, TIMESTAMPTZ

AGGREGATE_CLAUSES: Final = frozenset({"SELECT", "HAVING", "ORDER BY", "DISTINCT ON"})
_SET_RETURNING: Final = frozenset(
    [
        "generate_series",
        "unnest",
        "generate_subscripts",
        "regexp_split_to_table",
        "string_to_table",
        "json_array_elements",
        "jsonb_array_elements",
        "json_each",
        "jsonb_each",
        "jsonb_object_keys",
    ]
)
_INTERNAL: Final = frozenset({"narrow", "assign", "array", "subscript", "slice"})
"""Rows of the function table that only the binder may call."""


def function_call(binding: Binding, scope: Scope, node: Node) -> Expr:
    """A FuncCall: a plain function, an aggregate, or a constant of the session."""
    if is_system_set(node):
        return binding.expression(scope, rows_as_values(node, None, is_set=True))
    rewritten = rewrite_call(without_void_parameters(binding, node))
    node, given = information_schema_call(rewritten), node
    names = string_values(node.funcname)
    name = names[-1]
    check_argument_count(len(node.args or ()), offset_to_position(node.location))
    own = own_function(binding, scope, node)
    if own is not None:
        return own
    _check_schema(binding, names, node)
    refuse_named_arguments(binding, scope, node)
    if node.over is not None:
        return window_call(binding, scope, node)
    _check_forms(node, name)
    if node.agg_within_group and name in HYPOTHETICAL_SET_FUNCTIONS:
        return _hypothetical(binding, scope, node)
    if _is_aggregate(name):
        if has_named_arguments(given.args or ()):
            raise SqlError(
                "0A000", "aggregates cannot use named arguments", offset_to_position(node.location)
            )
        return _aggregate(binding, scope, node, name)
    if not functions(name) and postgresql.is_aggregate(name):
        raise not_supported(f"the aggregate {name}", offset_to_position(node.location))
    found = _plain_call(binding, scope, node, names)
    # Whether there is such a function at all is asked first.
    refuse_aggregate_forms(node, name)
    return found


def _plain_call(binding: Binding, scope: Scope, node: Node, names: Sequence[str]) -> Expr:
    name, place = names[-1], node.location
    if name in SEQUENCE_CALLS:
        return sequence_call(binding, scope, node)
    if name in ACTING_FUNCTIONS:
        return acting_call(binding, scope, node)
    if not node.args and name in _CLOCK:
        return clock_value(binding, _CLOCK[name])
    if not node.args and name in _SESSION:
        binding.tells_timestamp = binding.tells_timestamp or name in _TIMESTAMP
        binding.uses_session = True
        return _SESSION[name](binding.context)
    if name in RECORD_FUNCTIONS and not name.endswith("set"):
        return record_function_call(binding, scope, node)
    if name in POPULATE_RECORD_FUNCTIONS or returns_set(name):
        return set_call(binding, scope, node)
    if name in SESSION_VALUES and not node.args:
        return session_value_parameter(binding, name, scope, offset_to_position(place))
    row = json_of_row(binding, scope, node, name)
    if row is not None:
        return row
    nodes = node.args or ()
    exprs = [_plain_argument(binding, scope, name, nodes, index) for index in range(len(nodes))]
    constant = _setting(binding, scope, name, exprs, nodes, offset_to_position(place))
    if constant is None:
        constant = system_call(binding, name, exprs, nodes, offset_to_position(place))
    if constant is not None:
        return constant
    # What is written with the table's own names stands in its rewritings only.
    if name in _INTERNAL or (name.startswith("meridian_") and not binding.substitutes):
        raise undefined_function(function_signature(name, exprs), offset_to_position(place))
    field = field_by_call(binding, names, exprs, node)
    if field is not None:
        return field
    if not functions(name) or _no_exact(name, exprs):
        by_cast = cast_by_name(binding, name, exprs, nodes)
        if by_cast is not None:
            return by_cast
    if name in _SET_RETURNING:
        raise not_supported(f"the set-returning function {name}", offset_to_position(place))
    variadic = bool(node.func_variadic)
    choice = find_function(name, exprs, ".".join(names), place, variadic=variadic)
    check_variadic_array(choice, exprs, nodes)
    if name in SIDE_EFFECT_FUNCTIONS:
        args, result = converted_arguments(binding, choice, exprs, nodes), choice.result
        if scope.items and scope.acts and not (scope.in_aggregate or scope.window_part):
            return session_call_for_rows(binding, choice.function, args, TYPES_BY_NAME[result])
        return session_call_parameter(
            binding, name, args, TYPES_BY_NAME[result], offset_to_position(place)
        )
    return fold_pattern(apply_overload(binding, choice, exprs, nodes))


def _plain_argument(
    binding: Binding, scope: Scope, name: str, nodes: Sequence[Node], index: int
) -> Expr:
    """An argument; a literal that no numeric of ours holds, where there is but a float to be."""
    rows = [row for row in functions(name) if len(row.args) == len(nodes)]
    is_float = {row.args[index] for row in rows} == {"float8"}
    literal = float_literal(binding, nodes[index], FLOAT8) if is_float else None
    row = row_argument(binding, scope, nodes[index]) if name in ROW_TAKING_FUNCTIONS else None
    return row or literal or binding.expression(scope, nodes[index])


def _no_exact(name: str, exprs: Sequence[Expr]) -> bool:
    types = tuple([expr.type.name for expr in exprs])
    return all(row.args != types for row in functions(name))


def _check_forms(node: Node, name: str) -> None:
    place = offset_to_position(node.location)
    if not node.agg_star:
        check_within_group(node, name)
    if not node.agg_within_group and _is_window(name):
        message = f"window function {name} requires an OVER clause"
        raise SqlError("42809", message, place)


def _is_window(name: str) -> bool:
    return any(row.kind is FunctionKind.WINDOW for row in functions(name))


def _check_schema(binding: Binding, names: Sequence[str], node: Node) -> None:
    schema = qualifying_schema(binding, names, node.location)
    extension = extension_of_function(names[-1], names[:-1])
    if extension is None and schema in (None, "pg_catalog"):
        return
    if extension is not None and calls_extension_function(binding, extension, schema, names[-1]):
        return
    scope = Scope()
    exprs = [binding.expression(scope, arg) for arg in node.args or () if _is_constant(arg)]
    raise undefined_function(
        function_signature(".".join(names), exprs), offset_to_position(node.location)
    )


def _is_constant(node: Node) -> bool:
    return is_a(node, ast.A_Const)


def _is_aggregate(name: str) -> bool:
    rows = functions(name)
    return bool(rows) and rows[0].kind is FunctionKind.AGGREGATE


# --- session functions -------------------------------------------------------------------------


_CLOCK: Final = {
    "now": TRANSACTION_START,
    "transaction_timestamp": TRANSACTION_START,
    "statement_timestamp": STATEMENT_START,
}
_TIMESTAMP: Final = frozenset({"meridian_now", "pg_export_snapshot"})


def _exported(context: BindContext) -> Expr:
    if context.exported is None:
        raise SqlError("25001", "cannot export a snapshot from a subtransaction")
    return Const(context.exported, TEXT)


_SESSION: Final[dict[str, Callable[[BindContext], Expr]]] = {
    "version": lambda context: Const(context.version, TEXT),
    "current_database": lambda context: Const(context.database, NAME),
    "current_schema": lambda context: Const(
        next(existing_schemas(context, context.creation_path), None), NAME
    ),
    "pg_backend_pid": lambda context: Const(context.backend_pid, INT4),
    "meridian_now": lambda context: Const(context.logical_now, INT8),
    "pg_export_snapshot": _exported,
    "pg_postmaster_start_time": lambda context: Const(context.started_at, TIMESTAMPTZ),
    "pg_conf_load_time": lambda context: Const(context.started_at, TIMESTAMPTZ),
    "inet_client_port": lambda context: Const(context.ports[0], INT4),
    "inet_server_port": lambda context: Const(context.ports[1], INT4),
    "system_user": lambda _: Const(None, TEXT),
    "pg_jit_available": lambda _: Const(False, BOOL),
    "pg_is_in_recovery": lambda _: Const(False, BOOL),
    "pg_my_temp_schema": lambda context: Const(
        schema_oid(context.temporary) if context.temporary in context.catalog.schemas else 0, OID
    ),
    "getdatabaseencoding": lambda _: Const("UTF8", NAME),
    "pg_client_encoding": lambda context: Const(
        context.settings.get("client_encoding", "UTF8"), NAME
    ),
}


def _setting(
    binding: Binding,
    scope: Scope,
    name: str,
    exprs: Sequence[Expr],
    nodes: Sequence[Node],
    place: int | None,
) -> Expr | None:
    """`current_setting('name' [, missing_ok])`; of a computed name, a look-up for each row."""
    if name != "current_setting" or not 1 <= len(exprs) <= 2:
        return None
    binding.reads_settings = True
    types = (TEXT, BOOL)[: len(exprs)]
    args = convert_arguments(binding, name, exprs, nodes, types, place)
    first = args[0]
    if any(map(depends_on_rows, args)):
        return setting_of_each_row(binding, scope, args, node_position(nodes[0]))
    if changes_settings(binding) or not all(isinstance(arg, Const) for arg in args):
        return session_call_parameter(binding, name, args, TEXT, node_position(nodes[0]))
    assert isinstance(first, Const), "all of them are constants"
    if not isinstance(first.value, str):
        return Const(None, TEXT)
    binding.uses_session = True
    value = binding.context.settings.get(first.value.lower())
    if value is not None:
        return Const(value, TEXT)
    second = args[1] if len(args) == 2 else None
    if isinstance(second, Const) and second.value is not False:
        return Const(None, TEXT)
    message = f'unrecognized configuration parameter "{first.value}"'
    raise SqlError("42704", message)


# --- aggregates --------------------------------------------------------------------------------


def _aggregate(binding: Binding, scope: Scope, node: Node, name: str) -> Expr:
    """An aggregate: registered with the query level it belongs to, where it is a column
    (check_agglevels).
    """
    nodes = (*within_group_nodes(node), *(node.args or ()))
    exprs, filter_, order = _aggregate_parts(binding, scope, node)
    if node.agg_within_group:
        exprs = [*(key.expr for key in order), *exprs]
    choice = _aggregate_choice(binding, node, name, exprs)
    level = _level(binding, scope, exprs, order, filter_)
    _check_level(level, scope, node)
    row = choice.function
    args = converted_arguments(binding, choice, exprs, nodes)
    args = styled_arguments(binding, row, args, choice.result, distinct=bool(node.agg_distinct))
    (args, type_), exact = polymorphic_call(binding, choice, args), True
    if row.numeric is not None:
        args, type_, exact = numeric_call(binding, row, args, choice.result)
    args = (*args, *zone_arguments(binding, row))
    order = within_group_keys(node, args, order)
    distinct = bool(node.agg_distinct)
    if distinct and len(args) == 1 and args[0].type.name == "unknown":
        args = (coerce_implicitly(binding, args[0], nodes[0], TEXT),)
    for arg, part in zip(args if distinct else (), nodes, strict=False):
        check_equality(arg.type, node_position(part))
    if distinct:
        order = _distinct_order(exprs, args, order, node)
    domain = domain_of_call(binding, row, exprs)
    if domain is not None:
        type_ = type_of_domain(binding, domain)
    aggregate = Aggregate(row, args, distinct, filter_, tuple(order), type_)
    return _registered(binding, level, aggregate, node, exact=exact, domain=domain)


def _registered(
    binding: Binding,
    level: Scope,
    aggregate: Aggregate,
    node: Node,
    *,
    exact: bool = True,
    domain: Domain | None = None,
) -> Expr:
    """The column that the aggregate is."""
    column = level.aggregates.get(aggregate)
    if column is None:
        name = aggregate.function.name
        column = level.aggregates[aggregate] = binding.new_column(name, aggregate.type)
        set_computed_collation(binding, column, aggregate.args)
        if domain is not None:
            binding.domains[column.id] = domain
        if not exact:
            binding.inexact.add(column.id)
    return binding.reference(column, node.location)


def _hypothetical(binding: Binding, scope: Scope, node: Node) -> Expr:
    """rank() and its kin WITHIN GROUP."""
    directs, filter_, order = _aggregate_parts(binding, scope, node, hypothetical=True)
    level = _level(binding, scope, directs, order, filter_)
    _check_level(level, scope, node)

    def count(condition: Expr | None, distinct: Expr | None) -> Expr:
        args = () if distinct is None else (distinct,)
        row = function_by_id("count(any)" if args else "count()")
        call = Aggregate(row, args, bool(args), condition, (), INT8)
        return _registered(binding, level, call, node)

    return hypothetical_set(binding, node, directs, order, filter_, count)


def _aggregate_parts(
    binding: Binding, scope: Scope, node: Node, *, hypothetical: bool = False
) -> tuple[list[Expr], Expr | None, list[SortKey]]:
    outer = scope.in_aggregate
    scope.in_aggregate = True
    try:
        exprs = [bind_aggregate_argument(binding, scope, node, arg) for arg in node.args or ()]
        # What an ordered-set aggregate sorts is an argument of it: a literal may be of any type.
        key = (
            argument_sort_key if node.agg_within_group and not hypothetical else expression_sort_key
        )
        order = [key(binding, scope, item) for item in node.agg_order or ()]
        filter_ = None
        if node.agg_filter is not None:
            clause, scope.clause = scope.clause, "FILTER"
            filter_ = to_boolean(
                binding, binding.expression(scope, node.agg_filter), node.agg_filter, "FILTER"
            )
            scope.clause = clause
    finally:
        scope.in_aggregate = outer
    return exprs, filter_, order


def _aggregate_choice(
    binding: Binding, node: Node, name: str, exprs: Sequence[Expr]
) -> OverloadChoice:
    if node.agg_star and name != "count":
        raise undefined_function(f"{name}()", offset_to_position(node.location))
    if not exprs and not node.agg_star and name == "count":
        message = f"{name}(*) must be used to call a parameterless aggregate function"
        raise SqlError("42809", message, offset_to_position(node.location))
    return find_function(aggregate_lookup_name(binding, node, exprs), exprs, name, node.location)


def _level(
    binding: Binding,
    scope: Scope,
    exprs: Sequence[Expr],
    order: Sequence[SortKey],
    filter_: Expr | None,
) -> Scope:
    parts = [*exprs, *(key.expr for key in order), *(() if filter_ is None else (filter_,))]
    level = innermost_level(scope, parts)
    refuse_nested_aggregates(binding, level, parts)
    return level


def _check_level(level: Scope, scope: Scope, node: Node) -> None:
    place = offset_to_position(node.location)
    if level.in_aggregate and level.clause != "FILTER":
        raise grouping_error("aggregate function calls cannot be nested", place)
    if level.clause not in AGGREGATE_CLAUSES:
        message = f"aggregate functions are not allowed in {clause_display_name(level, scope)}"
        raise grouping_error(message, place)


def _distinct_order(
    exprs: Sequence[Expr], args: tuple[Expr, ...], order: Sequence[SortKey], node: Node
) -> list[SortKey]:
    """The keys of an aggregate with DISTINCT as what its arguments became: 42P10 for one that is
    not there as it was written (findTargetlistEntrySQL99).
    """
    if not args:
        message = "DISTINCT specified, but count has no arguments"
        raise SqlError("42809", message, offset_to_position(node.location))
    became: dict[Expr, Expr] = {}
    for expr, arg in zip(exprs, args, strict=False):  # A row's zone comes behind.
        # A parameter may have got its type meanwhile.
        unknown = isinstance(expr, Param) and expr.type.name == "unknown"
        became.setdefault(arg if unknown else expr, arg)
    keys: list[SortKey] = []
    for key, item in zip(order, node.agg_order or (), strict=True):
        found = matching_key(key.expr, became)
        if found is None:
            message = (
                "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list"
            )
            raise SqlError("42P10", message, offset_to_position(_place(item.node)))
        keys.append(replace(key, expr=became[found]))
    return keys


def _place(node: Node) -> int | None:
    return location(node)
