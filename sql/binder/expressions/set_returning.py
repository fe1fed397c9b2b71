"""Set-returning functions in FROM and in target lists (transformRangeFunction, ProjectSet).

    FROM f(x) WITH ORDINALITY, ROWS FROM (f(x), g(y))  ─▶  SetScan, lateral to what stands before it
    SELECT f(x), g(y) FROM t                           ─▶  t CROSS JOIN LATERAL SetScan(f(x), g(y))
    SELECT f(x), count(*) FROM t GROUP BY 1            ─▶  the same, below the groups

INVARIANTS
  S1  calls of one SetScan run side by side; the shorter ones are padded with NULLs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from pglast import ast

from sql.binder.expressions.call_rewrites import rewrite_call, without_void_parameters
from sql.binder.expressions.calls import (
    TYPES_BY_NAME,
    converted_arguments,
    numeric_call,
    polymorphic_call,
    refuse_aggregate_forms,
    type_by_name,
)
from sql.binder.expressions.catalog_vectors import is_vector, vector_subscripts
from sql.binder.expressions.record_functions import (
    POPULATE_RECORD_FUNCTIONS,
    RECORD_FUNCTIONS,
    check_column_definitions,
    column_definitions_of,
    field_of_record,
    rows_of_record,
)
from sql.binder.expressions.session_calls import session_value_parameter
from sql.binder.expressions.system_sets import rows_as_values
from sql.binder.resolve.coercion import EXPLICIT, coerce, coerce_implicitly, zone_arguments
from sql.binder.resolve.function_choice import (
    ARRAY_FUNCTION_OF_SET,
    SESSION_SETS,
    TWO_COLUMN_SETS,
    find_function,
    function_signature,
    refuse_named_arguments,
    returns_set,
)
from sql.binder.resolve.sql_functions import inline_sql_function
from sql.binder.state import Binding, FromItem, Scope
from sql.errors import SqlError, not_supported, undefined_function
from sql.functions.table import function_by_id
from sql.parser.syntax import (
    Node,
    column_name,
    is_a,
    node_position,
    offset_to_position,
    string_values,
)
from sql.plan.nodes import (
    Call,
    ColumnRef,
    Expr,
    Join,
    JoinKind,
    Plan,
    PlanColumn,
    Project,
    SetCall,
    SetScan,
    output_columns,
)
from sql.plan.projections import ONE_ROW
from sql.plan.traverse import column_ids
from sql.types.sql_type import INT8, TEXT, SqlType

SET_CLAUSES: Final = frozenset({"SELECT", "ORDER BY", "DISTINCT ON", "GROUP BY"})
_VALUES: Final = frozenset(name for name in ARRAY_FUNCTION_OF_SET if "_array_elements" in name)
"""Their column is called `value`, whatever the alias."""
_ARRAYS: Final = frozenset({"regexp_matches"})
"""Sets of arrays: arrays hold no arrays, so each row comes as a text."""


def set_call(binding: Binding, scope: Scope, node: Node) -> Expr:
    """A call in an expression: a column of the level's SetScan."""
    name = node.funcname[-1].sval
    place = offset_to_position(node.location)
    if scope.in_aggregate and scope.clause != "FILTER":
        message = "aggregate function calls cannot contain set-returning function calls"
        raise SqlError("0A000", message, place)
    if scope.window_part is not None:
        message = "window function calls cannot contain set-returning function calls"
        raise SqlError("0A000", message, place)
    if scope.clause not in SET_CLAUSES:
        what = {"JOIN/ON": "JOIN conditions", "DEFAULT": "DEFAULT expressions"}.get(
            scope.clause, scope.clause
        )
        raise SqlError("0A000", f"set-returning functions are not allowed in {what}", place)
    if scope.without_sets is not None:
        message = f"set-returning functions are not allowed in {scope.without_sets}"
        hint = "You might be able to move the set-returning function into a LATERAL FROM item."
        raise SqlError("0A000", message, place, hint=hint)
    if name in TWO_COLUMN_SETS | RECORD_FUNCTIONS:
        return record_function_call(binding, scope, node)
    before = len(scope.set_calls)
    call = _bound(binding, scope, node)
    if len(scope.set_calls) > before:
        raise not_supported("a set-returning function of a set-returning function", place)
    column = scope.set_calls.get(call)
    if column is None:
        column = scope.set_calls[call] = binding.new_column(name, call.type)
    found = binding.reference(column, node.location)
    return _of_text(binding, found, node) if name in _ARRAYS else found


def record_function_call(binding: Binding, scope: Scope, node: Node) -> Expr:
    """The rows of a function of several columns as records, or its row as one."""
    name = node.funcname[-1].sval
    if name in RECORD_FUNCTIONS - POPULATE_RECORD_FUNCTIONS:
        message = "function returning record called in context that cannot accept type record"
        hint = "Try calling the function in the FROM clause using a column definition list."
        raise SqlError("0A000", message, hint=hint)
    base = node.args[0] if name in POPULATE_RECORD_FUNCTIONS and node.args else None
    row_type = None if base is None or not is_a(base, ast.TypeCast) else base.typeName
    is_set = name in TWO_COLUMN_SETS or name.endswith("set")
    return binding.expression(scope, rows_as_values(node, row_type, is_set=is_set))


def _of_text(binding: Binding, text: Expr, node: Node) -> Expr:
    """The array that a text shows."""
    found = coerce(binding, text, node, TYPES_BY_NAME["_text"], EXPLICIT)
    assert found is not None, "texts are cast to arrays of texts"
    return found


def with_sets(binding: Binding, scope: Scope, plan: Plan) -> Plan:
    """Expand the sets of a target list: each row is repeated for the elements of its sets."""
    if not scope.set_calls:
        return plan
    calls, columns = tuple(scope.set_calls), tuple(scope.set_calls.values())
    scope.set_ordinality = binding.new_column("ordinality", INT8)
    sets = SetScan(calls, columns, scope.set_ordinality)
    return Join(JoinKind.CROSS, plan, sets, None, lateral=True)


def with_grouped_sets(binding: Binding, scope: Scope, plan: Plan, keys: Sequence[Expr]) -> Plan:
    """Expand the sets that are GROUP BY keys, below the grouping."""
    used = {column for key in keys for column in column_ids(key)}
    found = {call: column for call, column in scope.set_calls.items() if column.id in used}
    if not found:
        return plan
    scope.set_calls = {c: column for c, column in scope.set_calls.items() if c not in found}
    scope.grouped_sets = {column.id: call for call, column in found.items()}
    sets = SetScan(tuple(found), tuple(found.values()), binding.new_column("ordinality", INT8))
    return Join(JoinKind.CROSS, plan, sets, None, lateral=True)


def _bound(binding: Binding, scope: Scope, node: Node) -> SetCall:
    return _bound_over(binding, scope, node, list(node.args or ()))


def _bound_over(binding: Binding, scope: Scope, node: Node, nodes: list[Node]) -> SetCall:
    name, place = node.funcname[-1].sval, node.location
    exprs = [binding.expression(scope, arg) for arg in nodes]
    if name in SESSION_SETS:
        position = offset_to_position(place)
        if exprs:
            raise undefined_function(function_signature(name, exprs), position)
        return unnest_array(session_value_parameter(binding, name, scope, position))
    if name in ARRAY_FUNCTION_OF_SET:
        return _elements(binding, name, exprs, nodes, place)
    if name == "generate_subscripts" and len(exprs) == 2 and is_vector(binding, exprs[0]):
        return vector_subscripts(binding, *exprs)
    choice = find_function(name, exprs, ".".join(string_values(node.funcname)), place)
    row = choice.function
    args, type_ = polymorphic_call(
        binding, choice, converted_arguments(binding, choice, exprs, nodes)
    )
    if row.numeric is not None:
        args, type_, _ = numeric_call(binding, row, args, choice.result)
    if row.name == "unnest" and (element := args[0].type.element) is not None:
        type_ = element.bare()
    return SetCall(row, (*args, *zone_arguments(binding, row)), type_)


def _elements(
    binding: Binding, name: str, exprs: list[Expr], nodes: list[Node], place: int
) -> SetCall:
    choice = find_function(ARRAY_FUNCTION_OF_SET[name], exprs, name, place)
    args = converted_arguments(binding, choice, exprs, nodes)
    if choice.function.rewrite is not None:
        found = unnest_array(inline_sql_function(binding, choice.function.rewrite, args))
        if name == "pg_partition_ancestors":
            # The array is one of oids: there are none of what they are shown as.
            return replace(found, type=SqlType("regclass"))
        return found
    zone = zone_arguments(binding, choice.function)
    return unnest_array(Call(choice.function, (*args, *zone), type_by_name(choice.result)))


def unnest_array(array: Expr) -> SetCall:
    """The elements of an array, as a set."""
    element = array.type.element
    assert element is not None, "a function that gives an array"
    return SetCall(function_by_id("unnest(anyarray)"), (array,), element)


def _pairs(binding: Binding, scope: Scope, node: Node) -> tuple[SetCall, SetCall]:
    """json_each() and its kin: the keys and the values of an object."""
    name = node.funcname[-1].sval
    nodes = list(node.args or ())
    exprs = [binding.expression(scope, arg) for arg in nodes]
    choice = find_function(name, exprs, name, node.location)
    args = converted_arguments(binding, choice, exprs, nodes)
    keys = Call(function_by_id(f"{name}_keys({choice.args[0]})"), args, TYPES_BY_NAME["_text"])
    return unnest_array(keys), unnest_array(
        Call(choice.function, args, type_by_name(choice.result))
    )


# --- FROM --------------------------------------------------------------------------------------


def from_function(binding: Binding, scope: Scope, node: Node) -> tuple[Plan, list[FromItem]]:
    """A function in FROM, or several side by side."""
    calls = [_in_order(binding, scope, function[0]) for function in node.functions]
    definitions = column_definitions_of(node)
    active, clause = scope.lateral_active, scope.clause
    scope.lateral_active, scope.clause = True, "FROM"
    try:
        plan, columns = _rows(binding, scope, calls, definitions, ordinality=bool(node.ordinality))
    finally:
        scope.lateral_active, scope.clause = active, clause
    scope.ids.update([column.id for column in columns])
    return plan, [_item(node, calls, columns, defined=any(definitions))]


def _in_order(binding: Binding, scope: Scope, node: Node) -> Node:
    """A call with its arguments in order; 42883 for names that no function has."""
    if not is_a(node, ast.FuncCall):
        return node
    call = rewrite_call(without_void_parameters(binding, node))
    refuse_named_arguments(binding, scope, call)
    return call


def _rows(
    binding: Binding,
    scope: Scope,
    nodes: Sequence[Node],
    definitions: Sequence[Sequence[Node]],
    *,
    ordinality: bool,
) -> tuple[Plan, list[PlanColumn]]:
    calls: list[SetCall] = []
    names: list[str] = []
    records: dict[int, list[tuple[str, SqlType]]] = {}
    for node, defined in zip(nodes, definitions, strict=True):
        if not _is_set(node):
            if (len(nodes) > 1 or ordinality) and not defined:
                raise not_supported("a function that returns one row here", node_position(node))
            found = _one_row(binding, scope, node)
            check_column_definitions("", defined)
            return found
        name = column_name(node)
        if node.funcname[-1].sval in RECORD_FUNCTIONS:
            rows, records[len(calls)] = rows_of_record(binding, scope, node, defined)
            calls.append(unnest_array(rows))
            names.append("row")
            continue
        if node.funcname[-1].sval in TWO_COLUMN_SETS:
            calls += _pairs(binding, scope, node)
            names += ("key", "value")
        elif node.funcname[-1].sval == "unnest" and len(node.args or ()) > 1:
            calls += [_bound_over(binding, scope, node, [arg]) for arg in node.args]
            names += [name] * len(node.args)
        else:
            calls.append(_bound(binding, scope, node))
            names.append("value" if node.funcname[-1].sval in _VALUES else name)
        if calls[-1].type.name == "record":
            message = 'a column definition list is required for functions returning "record"'
            raise SqlError("42601", message, node_position(node))
        check_column_definitions(node.funcname[-1].sval, defined)
    for node in nodes:
        refuse_aggregate_forms(node, string_values(node.funcname)[-1])
    columns = [binding.new_column(name, call.type) for name, call in zip(names, calls, strict=True)]
    number = binding.new_column("ordinality", INT8) if ordinality else None
    scan = SetScan(tuple(calls), tuple(columns), number)
    if records:
        return _with_fields(binding, scan, records)
    shown = columns if number is None else [*columns, number]
    if not any(node.funcname[-1].sval in _ARRAYS for node in nodes):
        return scan, shown
    if len(nodes) > 1:
        raise not_supported("ROWS FROM with regexp_matches()", node_position(nodes[0]))
    refs: list[Expr] = [ColumnRef(column.id, column.type) for column in shown]
    refs[0] = _of_text(binding, refs[0], nodes[0])
    made = [binding.new_column(c.name, r.type) for c, r in zip(shown, refs, strict=True)]
    return Project(scan, tuple(made), tuple(refs)), made


def _with_fields(
    binding: Binding, scan: SetScan, records: Mapping[int, Sequence[tuple[str, SqlType]]]
) -> tuple[Plan, list[PlanColumn]]:
    """The columns of a scan, the fields of its rows in their place."""
    found: list[tuple[str, Expr]] = []
    for index, column in enumerate(output_columns(scan)):
        ref = ColumnRef(column.id, column.type)
        found += [
            (name, field_of_record(binding, ref, number, type_))
            for number, (name, type_) in enumerate(records.get(index, ()), 1)
        ] or [(column.name, ref)]
    made = [binding.new_column(name, expr.type) for name, expr in found]
    return Project(scan, tuple(made), tuple([expr for _, expr in found])), made


def _is_set(node: Node) -> bool:
    if not is_a(node, ast.FuncCall):
        return False
    name = node.funcname[-1].sval
    return name in POPULATE_RECORD_FUNCTIONS or returns_set(name)


def _one_row(binding: Binding, scope: Scope, node: Node) -> tuple[Plan, list[PlanColumn]]:
    """Any other function is one row of its value."""
    expr = binding.expression(scope, node)
    if expr.type.name == "unknown":
        expr = coerce_implicitly(binding, expr, node, TEXT)
    column = binding.new_column(column_name(node), expr.type)
    return Project(ONE_ROW, (column,), (expr,)), [column]


def _item(
    node: Node, calls: Sequence[Node], columns: Sequence[PlanColumn], *, defined: bool
) -> FromItem:
    """`defined`: the columns are named by a column definition list."""
    name = column_name(calls[0])
    names = [column.name for column in columns]
    plain = len(calls) == 1 and names.count(name) == 1 and not defined
    is_value = len(calls) == 1 and not defined and names in ([name], ["value"])
    if node.alias is not None:
        name = node.alias.aliasname
        if plain:
            names[0] = name
        given = string_values(node.alias.colnames)
        if len(given) > len(names):
            message = (
                f'table "{name}" has {len(names)} columns available but {len(given)} columns '
                "specified"
            )
            raise SqlError("42P10", message)
        names = [*given, *names[len(given) :]]
    refs = [ColumnRef(column.id, column.type) for column in columns]
    # What a function makes of one value is that value, whatever its column is called.
    return FromItem(name, list(zip(names, refs, strict=True)), whole=refs[0] if is_value else None)
