"""Bind queries: SELECT, VALUES, set operations, WITH, ORDER BY and LIMIT (transformSelectStmt).

    FROM ─▶ WHERE ─▶ GroupBy ─▶ HAVING ─▶ Window ─▶ Project(targets, sort keys) ─▶ Distinct ─▶ Sort
         ─▶ Limit ─▶ drop sort keys

Untyped literals in a target list stay untyped until their use decides: the other side of a UNION,
the column of an INSERT, or `query_result.settle`, which makes them text.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from pglast import ast
from pglast.enums import SetOperation

from sql.binder.expressions.expression import condition
from sql.binder.expressions.grouping import Grouping, key_columns
from sql.binder.expressions.grouping_sets import GroupClause, check_grouping_arguments
from sql.binder.expressions.set_returning import with_grouped_sets, with_sets
from sql.binder.expressions.sort_keys import sort_direction
from sql.binder.expressions.windows import named_windows
from sql.binder.queries.ctes import (
    SharedCte,
    check_recursive_domain,
    check_recursive_literal,
    check_recursive_term,
    check_recursive_type,
    ordered_ctes,
    record_shared_cte,
    recursive_column_type,
    with_shared_ctes,
)
from sql.binder.queries.dated_queries import dated_part
from sql.binder.queries.from_clause import from_clause
from sql.binder.queries.limits import bind_distinct_on, bind_limit, distinct_before_sets
from sql.binder.queries.locked_rows import locking_part, with_locked_rows
from sql.binder.queries.result import finish_query
from sql.binder.queries.row_locking import refuse_locking, wanted_row_locks
from sql.binder.queries.search_cycle import refuse_search_cycle, search_cycle, with_search_cycle
from sql.binder.queries.target_list import (
    TargetEntry,
    bind_group_by,
    found_as_key,
    settle_target,
    sort_target,
    target_list,
)
from sql.binder.queries.union_chains import with_shallow_unions
from sql.binder.queries.unreachable_sets import drop_unreachable_sets
from sql.binder.resolve.coercion import coerce_to_storage
from sql.binder.resolve.collations import set_computed_collation, set_set_operation_collation
from sql.binder.resolve.outer_join_presence import with_presence_columns
from sql.binder.resolve.query_result import resolve_unknown_columns, retype_column
from sql.binder.resolve.system_columns import with_system_columns
from sql.binder.resolve.unified_types import convert_common, select_common_type, to_common_type
from sql.binder.state import Binding, FromItem, Scope, SelectResult
from sql.errors import SqlError, not_supported
from sql.parser.dated_queries import dated_query
from sql.parser.syntax import Node, is_a, node_position, offset_to_position, string_values
from sql.plan.nodes import (
    CteId,
    Expr,
    Filter,
    Plan,
    PlanColumn,
    Project,
    Recursive,
    SetOp,
    SetOpKind,
    Values,
    Window,
    is_null,
)
from sql.plan.projections import ONE_ROW, column_reference
from sql.plan.traverse import rewrite_set_call
from sql.types import numeric
from sql.types.bpchar import set_operation_type
from sql.types.comparability import check_equality, check_ordering
from sql.types.limits import check_target_count
from sql.types.records import mixed_record_type
from sql.types.sql_type import SqlType, plain_type

__all__ = ["SelectResult", "bind_query", "bind_with"]

_SET_KINDS: Final = {
    SetOperation.SETOP_UNION: (SetOpKind.UNION, "UNION"),
    SetOperation.SETOP_INTERSECT: (SetOpKind.INTERSECT, "INTERSECT"),
    SetOperation.SETOP_EXCEPT: (SetOpKind.EXCEPT, "EXCEPT"),
}


def bind_query(binding: Binding, node: Node, parent: Scope | None) -> SelectResult:
    """Bind a query below `parent`; some of its columns may remain untyped."""
    if not is_a(node, ast.SelectStmt):
        raise not_supported("a data-modifying statement here", None)
    dated = dated_query(node)
    if dated is not None:
        return dated_part(binding, dated, parent)
    scope = Scope(parent)
    if node.withClause is None:
        return _query(binding, scope, node)
    shared = bind_with(binding, scope, node.withClause, share=True)
    result = _query(binding, scope, node)
    result.plan = with_shared_ctes(binding, result.plan, shared)
    return result


def _query(binding: Binding, scope: Scope, node: Node) -> SelectResult:
    if node.valuesLists:
        refuse_locking(node.lockingClause, "cannot be applied to VALUES")
        return _values(binding, scope, node)
    if node.op != SetOperation.SETOP_NONE:
        refuse_locking(node.lockingClause, "is not allowed with UNION/INTERSECT/EXCEPT")
        return _set_operation(binding, scope, node)
    return _select(binding, scope, node)


# --- WITH --------------------------------------------------------------------------------------


def bind_with(
    binding: Binding, scope: Scope, node: Node, *, share: bool = False
) -> Sequence[SharedCte]:
    """Bind the CTEs of a WITH clause into the scope, each seeing those before it.

    With `share` the caller must wrap its query in the returned ones (`with_shared_ctes`).
    """
    shared: list[SharedCte] = []
    share = share and all(is_a(cte.ctequery, ast.SelectStmt) for cte in node.ctes)
    for entry in ordered_ctes(node):
        cte = entry.node
        if not entry.recursive:
            refuse_search_cycle(cte)
        if entry.recursive:
            result = _recursive(binding, Scope(scope.parent, ctes=dict(scope.ctes)), cte)
        elif not is_a(cte.ctequery, ast.SelectStmt):
            result = binding.bind_modifying(binding, scope, cte, node)
        else:
            result = bind_query(binding, cte.ctequery, Scope(scope.parent, ctes=dict(scope.ctes)))
        resolve_unknown_columns(binding, result)
        _rename(result, cte)
        if share:
            result.shared = CteId(binding.new_id())
            shared.append(SharedCte(result.shared, cte.ctename, result.plan))
            record_shared_cte(binding, shared[-1])
        scope.ctes[cte.ctename] = result
    return shared


def _rename(result: SelectResult, cte: Node) -> None:
    names = string_values(cte.aliascolnames)
    if len(names) > len(result.columns):
        message = (
            f'WITH query "{cte.ctename}" has {len(result.columns)} columns available but '
            f"{len(names)} columns specified"
        )
        raise SqlError("42P10", message, offset_to_position(cte.location))
    names = (*names, *[column.name for column in result.columns[len(names) :]])
    columns = zip(result.columns, names, strict=True)
    result.columns = tuple([replace(column, name=name) for column, name in columns])


def _recursive(binding: Binding, scope: Scope, cte: Node) -> SelectResult:
    """`base UNION [ALL] step`: the step sees the rows of the last round by the query's name."""
    node, name = cte.ctequery, cte.ctename
    added = search_cycle(binding, scope, cte)
    outer: Sequence[SharedCte] = ()
    if node.withClause is not None:
        outer = bind_with(binding, scope, node.withClause, share=True)
    base = _side(binding, scope, node.larg)
    literals = dict(base.unknown)
    resolve_unknown_columns(binding, base)
    types = [recursive_column_type(column.type) for column in base.columns]
    columns = [binding.new_column(c.name, t) for c, t in zip(base.columns, types, strict=True)]
    domains = [binding.domain(column.id) for column in base.columns]
    binding.domains.update(
        {made.id: found for made, found in zip(columns, domains, strict=True) if found is not None}
    )
    last = SelectResult(base.plan, tuple(columns), base.nodes, shared=CteId(binding.new_id()))
    _rename(last, cte)
    if added is not None:
        last.unexpanded = tuple(added.columns)
    assert last.shared is not None, "it was given just now"
    binding.work_tables.add(last.shared)
    step = _side(binding, Scope(scope.parent, ctes={**scope.ctes, name: last}), node.rarg)
    binding.work_tables.discard(last.shared)
    if len(base.columns) != len(step.columns):
        message = "each UNION query must have the same number of columns"
        raise SqlError("42601", message, node_position(step.nodes[0]) if step.nodes else None)
    for index, column in enumerate(base.columns):
        if index in literals:
            check_recursive_literal(
                binding, name, index, (literals[index], step), base.nodes[index]
            )
        overall = _common(binding, base, step, index, "UNION")
        check_recursive_type(name, index, column.type, overall, base.nodes[index])
        check_recursive_domain(
            binding, name, index, (column, step.columns[index]), base.nodes[index]
        )
        if not node.all:
            check_equality(column.type, node_position(base.nodes[index]))
    plans = [_as_types(binding, side, types, "UNION") for side in (base, step)]
    plan = Recursive(last.shared, name, plans[0], plans[1], bool(node.all), last.columns)
    shown, nodes = last.columns, base.nodes
    if added is not None:
        plan = with_search_cycle(binding, added, plan)
        shown, nodes = (*shown, *added.shown), [*nodes, *[cte] * len(added.shown)]
    return SelectResult(with_shared_ctes(binding, plan, outer), shown, nodes)


# --- SELECT ------------------------------------------------------------------------------------


def _select(binding: Binding, scope: Scope, node: Node) -> SelectResult:
    _refuse_clauses(node)
    plan = from_clause(binding, scope, node.fromClause) if node.fromClause else ONE_ROW
    named_windows(binding, scope, node.windowClause or ())
    scope.acts = node is binding.acts_in
    targets = target_list(binding, scope, node.targetList or ())
    scope.acts = False
    if node.whereClause is not None:
        scope.clause = "WHERE"
        plan = Filter(plan, condition(binding, scope, node.whereClause, "WHERE"))
    having: Expr | None = None
    if node.havingClause is not None:
        scope.clause = "HAVING"
        having = condition(binding, scope, node.havingClause, "HAVING")
    scope.clause = "ORDER BY"
    order = _sort_keys(binding, scope, targets, node, computed=True)
    scope.clause = "GROUP BY"
    groups = bind_group_by(binding, scope, targets, node)
    distinct = _distinct(binding, scope, node.distinctClause, targets, order)
    limit = bind_limit(binding, scope, node)
    check_target_count([target.expr for target in targets], groups.keys)
    plan = with_system_columns(with_presence_columns(plan, scope.sides), scope.scanned)
    grouped = groups.keys or groups.sets is not None or scope.aggregates or scope.groupings
    if grouped or having is not None:
        plan = with_grouped_sets(binding, scope, plan, groups.keys)
        plan = _grouped(binding, scope, plan, groups, targets, having)
    check_recursive_term(binding, scope)
    if scope.windows:
        plan = Window(plan, tuple(scope.windows.values()), tuple(scope.windows))
    wanted = wanted_row_locks(binding, scope, node, plan)
    locking = None if wanted is None else with_locked_rows(binding, plan, wanted)
    if locking is not None:
        plan = locking.plan
    drop_unreachable_sets(scope, targets)
    plan, distinct = distinct_before_sets(binding, scope, plan, distinct, order)
    plan = with_sets(binding, scope, plan)
    number: TargetEntry | None = None
    if scope.set_ordinality is not None and order and distinct is None:
        # Rows of one set stay in its order, as in PostgreSQL, which sorts them last.
        number = TargetEntry(
            "sort", column_reference(scope.set_ordinality), node.targetList[0], junk=True
        )
        targets.append(number)
    if locking is None or not locking.found or binding.explains:
        return finish_query(binding, plan, targets, order, limit, distinct, number)
    shown = sum(not target.junk for target in targets)
    targets += locking.targets(node.targetList[0] if node.targetList else node)
    result = finish_query(binding, plan, targets, order, limit, distinct, number)
    return locking_part(binding, result, locking, shown)


def _refuse_clauses(node: Node) -> None:
    if node.intoClause is not None:
        place = offset_to_position(node.intoClause.rel.location)
        raise SqlError("42601", "SELECT ... INTO is not allowed here", place)


def _sort_keys(
    binding: Binding, scope: Scope, targets: list[TargetEntry], node: Node, *, computed: bool
) -> list[tuple[TargetEntry, bool, bool]]:
    keys: list[tuple[TargetEntry, bool, bool]] = []
    for item in node.sortClause or ():
        target = sort_target(binding, scope, targets, item.node, computed=computed)
        check_ordering(settle_target(binding, target).type, node_position(item.node))
        if all(target is not key for key, _, _ in keys):
            keys.append((target, *sort_direction(item)))
    return keys


def _distinct(
    binding: Binding,
    scope: Scope,
    clause: Sequence[Node | None] | None,
    targets: list[TargetEntry],
    order: Sequence[tuple[TargetEntry, bool, bool]],
) -> Sequence[TargetEntry] | None:
    """What DISTINCT ON compares; nothing for DISTINCT, None without either."""
    if not clause:
        return None
    if clause[0] is not None:
        return bind_distinct_on(binding, scope, targets, clause, order)
    for target in targets:
        if target.junk:
            message = "for SELECT DISTINCT, ORDER BY expressions must appear in select list"
            raise SqlError("42P10", message, node_position(target.node))
        check_equality(settle_target(binding, target).type, node_position(target.node))
    return ()


def _grouped(
    binding: Binding,
    scope: Scope,
    plan: Plan,
    groups: GroupClause,
    targets: list[TargetEntry],
    having: Expr | None,
) -> Plan:
    grouping = Grouping(binding, scope, key_columns(binding, groups.keys), groups.sets)
    # GROUPING names what GROUP BY does, not what a primary key among that adds.
    check_grouping_arguments(scope, groups.keys, having=False)
    is_key = partial(found_as_key, [replace(target) for target in targets])
    for target in targets:
        target.expr = grouping.target(target.expr, is_key=target.is_key)
    scope.set_calls = {
        rewrite_set_call(call, grouping.rewrite): column for call, column in scope.set_calls.items()
    }
    scope.windows = {
        grouping.window(call, is_key): column for call, column in scope.windows.items()
    }
    check_grouping_arguments(scope, groups.keys, having=True)
    above = None if having is None else grouping.rewrite(having)
    grouped: Plan = grouping.plan(plan)
    return grouped if above is None else Filter(grouped, above)


# --- VALUES ------------------------------------------------------------------------------------


def _values(binding: Binding, scope: Scope, node: Node) -> SelectResult:
    scope.clause = "VALUES"
    lists = node.valuesLists
    width = len(lists[0])
    for row in lists:
        if len(row) != width:
            message = "VALUES lists must all be the same length"
            raise SqlError("42601", message, node_position(row[0]))
    rows = [[binding.expression(scope, item) for item in row] for row in lists]
    nodes = [[row[index] for row in lists] for index in range(width)]
    columns: list[PlanColumn] = []
    done: list[list[Expr]] = []
    for index in range(width):
        exprs, type_ = to_common_type(binding, [row[index] for row in rows], nodes[index], "VALUES")
        done.append(exprs)
        columns.append(binding.new_column(f"column{index + 1}", type_))
        set_computed_collation(binding, columns[-1], exprs)
    assert not scope.aggregates, "they are refused in VALUES"
    check_target_count(columns)
    plan = Values(tuple(columns), tuple(zip(*done, strict=True)))
    first = [column_nodes[0] for column_nodes in nodes]
    return _ordered(binding, scope, node, SelectResult(plan, tuple(columns), first), computed=True)


def _ordered(
    binding: Binding, scope: Scope, node: Node, result: SelectResult, *, computed: bool
) -> SelectResult:
    """ORDER BY and LIMIT over the columns of VALUES or of a set operation."""
    if not node.sortClause and node.limitCount is None and node.limitOffset is None:
        return result
    named = [(column.name, column_reference(column)) for column in result.columns]
    inner = Scope(scope.parent, [FromItem(None, named, names_visible=False)], dict(scope.ctes))
    inner.ids.update([column.id for column in result.columns])
    targets = [
        TargetEntry(column.name, column_reference(column), part)
        for column, part in zip(result.columns, result.nodes, strict=True)
    ]
    inner.clause = "ORDER BY"
    order = _sort_keys(binding, inner, targets, node, computed=computed)
    limit = bind_limit(binding, inner, node)
    return finish_query(binding, result.plan, targets, order, limit, None)


# --- set operations ----------------------------------------------------------------------------


def _set_operation(binding: Binding, scope: Scope, node: Node) -> SelectResult:
    _refuse_clauses(node.larg)
    if node.rarg.intoClause is not None:
        message = "INTO is only allowed on first SELECT of UNION/INTERSECT/EXCEPT"
        raise SqlError("42601", message, offset_to_position(node.rarg.intoClause.rel.location))
    result = _combined(binding, scope, node)
    result.plan = with_shallow_unions(binding, result.plan)
    return _ordered(binding, scope, node, result, computed=False)


def _is_nested(node: Node) -> bool:
    """Whether a side is nothing but a set operation itself."""
    return (
        node.op != SetOperation.SETOP_NONE
        and node.withClause is None
        and not node.sortClause
        and node.limitCount is None
        and node.limitOffset is None
        and not node.lockingClause
    )


def _side(binding: Binding, scope: Scope, node: Node) -> SelectResult:
    if _is_nested(node):
        return _combined(binding, scope, node)
    if dated_query(node) is None:
        refuse_locking(node.lockingClause, "is not allowed with UNION/INTERSECT/EXCEPT")
    return bind_query(binding, node, Scope(scope.parent, ctes=dict(scope.ctes)))


def _combined(binding: Binding, scope: Scope, node: Node) -> SelectResult:
    """A set operation; a chain of them from left to right, without recursion."""
    chain = [node]
    while _is_nested(chain[-1].larg):
        chain.append(chain[-1].larg)
    left = _side(binding, scope, chain[-1].larg)
    for operation in reversed(chain):
        left = _united(binding, operation, left, _side(binding, scope, operation.rarg))
    return left


def _united(binding: Binding, node: Node, left: SelectResult, right: SelectResult) -> SelectResult:
    kind, word = _SET_KINDS[node.op]
    if len(left.columns) != len(right.columns):
        message = f"each {word} query must have the same number of columns"
        raise SqlError("42601", message, node_position(right.nodes[0]) if right.nodes else None)
    telling = [
        right.nodes[index] if index in left.unknown else left.nodes[index]
        for index in range(len(left.columns))
    ]
    types = [_common(binding, left, right, index, word) for index in range(len(left.columns))]
    sides = [column.type for column in (*left.columns, *right.columns)]
    plans = [_as_types(binding, side, types, word) for side in (left, right)]
    for index, type_ in enumerate((*types, *sides)):
        if not (node.all and kind is SetOpKind.UNION):
            check_equality(type_, node_position(telling[index % len(types)]))
    columns = tuple(
        [
            binding.new_column(column.name, type_)
            for column, type_ in zip(left.columns, types, strict=True)
        ]
    )
    for made, one, other in zip(columns, left.columns, right.columns, strict=True):
        if one.id in binding.inexact or other.id in binding.inexact:
            binding.inexact.add(made.id)
        set_set_operation_collation(binding, made, (one, other))
        domain = binding.domain(one.id)
        if domain is not None and domain == binding.domain(other.id):
            binding.domains[made.id] = domain
    plan = SetOp(kind, bool(node.all), plans[0], plans[1], columns)
    # In messages a column of a set operation stands where the left side's does.
    return SelectResult(plan, columns, list(left.nodes))


def _common(
    binding: Binding, left: SelectResult, right: SelectResult, index: int, word: str
) -> SqlType:
    sides = (left, right)
    exprs: list[Expr] = [
        side.unknown.get(index, column_reference(side.columns[index])) for side in sides
    ]
    nodes = [side.nodes[index] for side in sides]
    chosen = select_common_type(exprs, nodes, word)
    assert chosen is not None, "with a clause named a mismatch raises"
    rows = chosen.name in ("record", "_record")
    bare = plain_type(chosen.name)
    nulls = [is_null(expr) for expr in exprs]
    known = [side.columns[index].type for side in sides if index not in side.unknown]
    for side in sides:
        if index in side.unknown:
            retype_column(binding, side, index, bare)
    types = known if rows else [side.columns[index].type for side in sides]
    if types[0] == types[-1]:
        return types[0]
    if "numeric" in chosen.name and any(nulls) and not all(nulls):
        return types[nulls.index(False)].bare()
    if "numeric" in chosen.name:
        return numeric.unify_numeric_types([numeric.numeric_cast_type(type_) for type_ in types])
    if word != "UNION" and types[0].name == chosen.name and not rows:
        return types[0]  # What is shown is of the left side.
    return mixed_record_type(bare, types) if rows else set_operation_type(types, bare)


def _as_types(binding: Binding, side: SelectResult, types: Sequence[SqlType], word: str) -> Plan:
    """The side's plan, converted to the common types where it differs."""
    if all(column.type == type_ for column, type_ in zip(side.columns, types, strict=True)):
        return side.plan
    exprs: list[Expr] = []
    for column, type_, node in zip(side.columns, types, side.nodes, strict=True):
        expr = convert_common(binding, column_reference(column), node, type_.bare(), word)
        exprs.append(coerce_to_storage(binding, expr, type_))
    columns = [
        binding.new_column(column.name, type_)
        for column, type_ in zip(side.columns, types, strict=True)
    ]
    return Project(side.plan, tuple(columns), tuple(exprs))
