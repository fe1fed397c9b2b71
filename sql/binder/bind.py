"""Bind a parsed statement: dispatch it by kind and return a typed `ParameterizedStatement`.

The entry point of `sql/` together with `sql/parser/parse.py`; the packages around it do the work.

    bind ─▶ queries: select ─▶ from_clause, target_list ─▶ expressions: expression
        ├▶ dml: insert, update_delete, merge ─▶ returning       └▶ operators, function_calls,
        └▶ ddl, session                                            subqueries, windows
                                                                        └▶ resolve: overloads,
                                                                           coercion
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, TypeAlias, TypeVar

from pglast import ast
from pglast.enums import SetOperation

from sql.binder.ddl.deferral import set_constraints
from sql.binder.dml.copy import copy
from sql.binder.dml.insert import insert
from sql.binder.dml.merge import merge
from sql.binder.dml.modifying_ctes import bind_modifying_cte, with_modifying_ctes
from sql.binder.dml.truncate import truncate
from sql.binder.dml.update_delete import delete, update
from sql.binder.expressions.expression import expression
from sql.binder.expressions.row_calls import split_row_calls
from sql.binder.expressions.runtime_parameters import (
    check_evaluated_once,
    number_runtime_parameters,
)
from sql.binder.expressions.session_calls import check_settings_for_rows, check_side_effects
from sql.binder.expressions.time_expressions import time_expression
from sql.binder.queries.locked_rows import with_locking_parts
from sql.binder.queries.select import bind_query
from sql.binder.resolve.query_result import resolve_unknown_columns
from sql.binder.resolve.type_names import current_type, use_declared_types
from sql.binder.resolve.unpopulated_views import unpopulated_view_error
from sql.binder.session.cursors import cursor_query
from sql.binder.session.execute_arguments import bind_execute_argument
from sql.binder.session.explain_options import explain_options
from sql.binder.session.lock_tables import lock_tables
from sql.binder.session.settings import (
    discard_statement,
    notification_statement,
    set_variable,
    show_variable,
    transaction_statement,
)
from sql.binder.state import BindContext, Binding, SelectResult
from sql.binder.stored.view_reads import view_ways
from sql.catalog.system_catalogs import shown_types
from sql.errors import SqlError, not_supported, statement_too_complex
from sql.parser.constant_positions import find_constant_offsets as find_constant_places
from sql.parser.meridian_nodes import (
    ArgumentNode,
    CopySubscribeNode,
    ExplainTimestampNode,
    SubscribeNode,
)
from sql.parser.parse import Statement
from sql.parser.statement_names import statement_name
from sql.parser.syntax import Node, is_a, node_position, use_constant_offsets, with_clause
from sql.plan.pruning import prune_columns
from sql.statements.bound import (
    AlterTable,
    BoundQuery,
    BoundStatement,
    CopyIn,
    CopyOut,
    CopySubscription,
    CreateSchema,
    CreateTable,
    CreateTableAs,
    DropSchema,
    DropTable,
    EmptyStatement,
    Explain,
    ExplainTimestamp,
    Modify,
    ModifyingWith,
    ModifyKind,
    OutputColumn,
    ParameterizedStatement,
    RefreshMaterializedView,
    Subscribe,
    Truncate,
)
from sql.statements.ddl import ChangeObjects, ChangePrivileges, CreateObject, CreateSequence
from sql.statements.literals import ResolvedLiterals
from sql.statements.locking import LockTables
from sql.statements.maintenance import MaintenanceStatement
from sql.statements.session import (
    Discard,
    Listen,
    Notify,
    ResetVariable,
    SetConstraints,
    SetVariable,
    ShowVariable,
    TransactionControl,
    TransactionVerb,
    Unlisten,
)
from sql.statements.sources import (
    CreateFedTables,
    CreateSource,
    CreateUpstreamTables,
    SkipRecord,
)
from sql.statements.timelines import (
    AdvanceReadHold,
    AdvanceTimeline,
    CreateReadHold,
    CreateTimeline,
    DropReadHold,
    DropTimeline,
)
from sql.types.sql_type import SqlType

__all__ = ["BindContext", "bind", "bind_with_context"]

T = TypeVar("T")

NodeBinder: TypeAlias = Callable[[Binding, Node], BoundStatement]


def bind(
    statement: Statement, context: BindContext, parameters: Sequence[SqlType | None]
) -> ParameterizedStatement:
    """Bind one statement. `parameters`: types that the client declared, None or missing to infer.

    Raises SqlError with the position in the text the client sent.
    """
    node = statement.node
    if node is None:
        types = [current_type(context, type_) for type_ in parameters]
        return ParameterizedStatement(
            EmptyStatement(), tuple([type_ for type_ in types if type_]), ""
        )
    try:
        return _prepared(statement, node, context, parameters)
    except SqlError:
        pass
    except RecursionError:
        raise statement_too_complex() from None
    # It failed: once more, knowing where constants stand, for an error with its place.
    try:
        with use_constant_offsets(find_constant_places(statement)):
            return _prepared(statement, node, context, parameters)
    except RecursionError:
        raise statement_too_complex() from None


def bind_with_context(context: BindContext, make: Callable[[Binding], T]) -> T:
    """Bind something that is not a statement, such as a stored expression."""
    try:
        return make(Binding(context, expression, bind_query, bind_modifying_cte, []))
    except RecursionError:
        raise statement_too_complex() from None


def _prepared(
    statement: Statement,
    node: Node,
    context: BindContext,
    parameters: Sequence[SqlType | None],
) -> ParameterizedStatement:
    types_now = [current_type(context, type_) for type_ in parameters]
    binding = Binding(context, expression, bind_query, bind_modifying_cte, types_now)
    use_declared_types(binding)
    bound = split_row_calls(binding, _bound(binding, node, statement))
    check_settings_for_rows(binding)
    types = binding.parameter_types()
    if binding.supplied:
        check_side_effects(bound, binding.supplied)
        check_evaluated_once(bound, binding.supplied)
        bound = number_runtime_parameters(bound, len(types))
    return ParameterizedStatement(
        bound,
        types,
        _tag(bound),
        binding.uses_now or binding.read_clock,
        binding.uses_session,
        binding.tells_timestamp,
        frozenset(binding.look_ups | binding.uses),
        frozenset(binding.uses),
        number_runtime_parameters(tuple(binding.supplied), len(types)),
        binding.filled,
        unpopulated_view_error(bound),
        read=_read(binding, statement) if isinstance(bound, _ANALYSED) else None,
    )


def _read(binding: Binding, statement: Statement) -> ResolvedLiterals | None:
    trees = statement.node, statement.as_of
    read = tuple(binding.read)
    return ResolvedLiterals(trees, read, binding.read_clock) if read else None


def _bound(binding: Binding, node: Node, statement: Statement) -> BoundStatement:
    if isinstance(node, ExplainTimestampNode):
        return _explain_timestamp(binding, node, statement)
    if is_a(node, ast.ExplainStmt) and statement.as_of is None:
        return _explain(binding, node)
    if isinstance(node, SubscribeNode | CopySubscribeNode):
        return _followed(binding, node, statement)
    if statement.as_of is not None:
        timed = _timed(binding, node, statement)
        if any(part.as_of is not None for part in binding.locking):
            place = node_position(statement.as_of)
            raise not_supported("AS OF of a query with another AS OF in it", place)
        if binding.locking:
            raise not_supported("FOR UPDATE of rows of the past", None)
        return timed
    binder = _binder_of(node)
    # Statements without WITH have no part that writes, but are asked in the same words.
    binding.top_with = with_clause(node) or node if is_a(node, *_WITH) else None
    return with_locking_parts(binding, with_modifying_ctes(binding, binder(binding, node)))


def _followed(binding: Binding, node: Node, statement: Statement) -> BoundStatement:
    """SUBSCRIBE. The session finds the time of its AS OF; here its parameters get their types."""
    bound = _binder_of(node)(binding, node)
    if statement.as_of is not None:
        time_expression(binding, statement.as_of, "AS OF")
    return bound


def _binder_of(node: Node) -> NodeBinder:
    found = _BINDERS.get(type(node))
    if found is None:
        # A server starts without what defines things, and imports it when it has started.
        from sql.binder.definition_binders import DEFINITION_BINDERS

        found = DEFINITION_BINDERS.get(type(node))
    if found is None:
        raise not_supported(statement_name(node), None)
    return found


def _timed(binding: Binding, node: Node, statement: Statement) -> BoundStatement:
    """A query, or EXPLAIN of one, with AS OF."""
    if is_a(node, ast.ExplainStmt) and is_a(node.query, ast.SelectStmt):
        query = _query(binding, node.query, statement)
        return Explain(query, explain_options(node))
    if is_a(node, ast.TransactionStmt):
        return _begin_as_of(node, statement)
    if is_a(node, ast.CopyStmt) and not node.is_from:
        copied = copy(binding, node)
        assert isinstance(copied, CopyOut), "COPY TO was bound"
        as_of = time_expression(binding, statement.as_of, "AS OF")
        query = replace(copied.query, as_of=as_of, as_of_at_least=statement.as_of_at_least)
        return replace(copied, query=query)
    if not is_a(node, ast.SelectStmt):
        raise not_supported("AS OF behind anything but a query", node_position(statement.as_of))
    if node.intoClause is not None:
        raise not_supported("SELECT INTO with AS OF", node_position(statement.as_of))
    return _query(binding, node, statement)


def _begin_as_of(node: Node, statement: Statement) -> TransactionControl:
    """BEGIN .. AS OF: the session finds the time, as for a query."""
    control = transaction_statement(node)
    if control.verb not in (TransactionVerb.BEGIN, TransactionVerb.START):
        word = control.verb.value.upper()
        raise not_supported(f"{word} with AS OF", node_position(statement.as_of))
    if control.read_only is False:
        message = "a transaction AS OF a timestamp is read only"
        raise SqlError("25006", message, node_position(statement.as_of))
    return control


def _select(binding: Binding, node: Node) -> BoundQuery | CreateTableAs:
    binding.acts_in = node
    first = node
    while first.op != SetOperation.SETOP_NONE:
        first = first.larg
    if first.intoClause is None:
        return _query(binding, node)
    from sql.binder.ddl.create_table_as import select_into

    return select_into(binding, node)


def _query(binding: Binding, node: Node, statement: Statement | None = None) -> BoundQuery:
    result = bind_query(binding, node, None)
    resolve_unknown_columns(binding, result)
    as_of = None
    if statement is not None and statement.as_of is not None:
        as_of = time_expression(binding, statement.as_of, "AS OF")
    return BoundQuery(
        prune_columns(result.plan),
        _described(binding, result),
        tuple(binding.tables.values()),
        as_of,
        statement is not None and statement.as_of_at_least,
    )


def _described(binding: Binding, result: SelectResult) -> tuple[OutputColumn, ...]:
    origins, shown = binding.origins, shown_types()
    return tuple(
        [
            OutputColumn(
                column.name,
                binding.shown.of_column(column.id) or shown.get(origin, column.type),
                *origin,
            )
            for column in result.columns
            for origin in (origins.get(column.id, (0, 0)),)
        ]
    )


def _explain(binding: Binding, node: Node) -> BoundStatement:
    inner = node.query
    binding.explains = True
    if any(option.defname == "generic_plan" for option in node.options or ()):
        # It is refused, but not for its parameters, which have no values.
        explain_options(node)
    match inner:
        case ast.DeclareCursorStmt():
            bound: BoundStatement = _query(binding, cursor_query(inner))
        case (
            ast.SelectStmt() | ast.InsertStmt() | ast.UpdateStmt() | ast.DeleteStmt()
            | ast.MergeStmt() | ast.CreateTableAsStmt()
        ):  # fmt: skip
            binding.top_with = with_clause(inner) or inner
            bound = with_modifying_ctes(binding, _binder_of(inner)(binding, inner))
        case _:
            raise not_supported(f"EXPLAIN of {statement_name(inner)}", None)
    assert isinstance(bound, BoundQuery | Modify | ModifyingWith | CreateTableAs), "it has a plan"
    return Explain(bound, explain_options(node), view_ways(binding))


def _explain_timestamp(
    binding: Binding, node: ExplainTimestampNode, statement: Statement
) -> ExplainTimestamp:
    explained = node.explain.node
    if not is_a(explained.query, ast.SelectStmt):
        raise not_supported("EXPLAIN TIMESTAMP of anything but a query", None)
    options = explain_options(explained)
    for name in sorted(options.given - {"format", "verbose"}):
        raise not_supported(f"EXPLAIN ({name.upper()}) TIMESTAMP", None)
    query = _query(binding, explained.query, statement)
    return ExplainTimestamp(query, json=options.json)


_BINDERS: Final[dict[type, NodeBinder]] = {
    ast.SelectStmt: _select,
    ast.InsertStmt: insert,
    ast.UpdateStmt: update,
    ast.DeleteStmt: delete,
    ast.MergeStmt: merge,
    ast.TruncateStmt: truncate,
    ast.LockStmt: lock_tables,
    ast.CopyStmt: copy,
    ast.TransactionStmt: lambda _, node: transaction_statement(node),
    ast.ConstraintsSetStmt: set_constraints,
    ast.VariableSetStmt: set_variable,
    ast.VariableShowStmt: lambda _, node: show_variable(node),
    ast.DiscardStmt: lambda _, node: discard_statement(node),
    ast.DeallocateStmt: lambda _, node: discard_statement(node),
    ast.ClosePortalStmt: lambda _, node: discard_statement(node),
    ast.ListenStmt: lambda _, node: notification_statement(node),
    ast.UnlistenStmt: lambda _, node: notification_statement(node),
    ast.NotifyStmt: lambda _, node: notification_statement(node),
    ArgumentNode: bind_execute_argument,
}

_WITH: Final = (
    ast.SelectStmt, ast.InsertStmt, ast.UpdateStmt, ast.DeleteStmt, ast.MergeStmt
)  # fmt: skip
"""Statements whose WITH clause may have queries that modify data."""

_ANALYSED: Final = (BoundQuery, Modify, ModifyingWith, Explain, CreateTableAs)
"""What PostgreSQL analyses when it is prepared; everything else when it is executed."""

_MODIFY_TAGS: Final = {
    ModifyKind.INSERT: "INSERT 0",
    ModifyKind.UPDATE: "UPDATE",
    ModifyKind.DELETE: "DELETE",
    ModifyKind.MERGE: "MERGE",
}
_TAGS: Final[dict[type, str]] = {
    BoundQuery: "SELECT",
    CopyIn: "COPY",
    CopyOut: "COPY",
    CopySubscription: "COPY",
    Subscribe: "SUBSCRIBE",
    CreateTable: "CREATE TABLE",
    CreateTableAs: "SELECT",
    RefreshMaterializedView: "REFRESH MATERIALIZED VIEW",
    Truncate: "TRUNCATE TABLE",
    LockTables: "LOCK TABLE",
    DropTable: "DROP TABLE",
    CreateSchema: "CREATE SCHEMA",
    DropSchema: "DROP SCHEMA",
    SetConstraints: "SET CONSTRAINTS",
    SetVariable: "SET",
    ShowVariable: "SHOW",
    ResetVariable: "RESET",
    CreateSequence: "CREATE SEQUENCE",
    Listen: "LISTEN",
    Unlisten: "UNLISTEN",
    Notify: "NOTIFY",
    Explain: "EXPLAIN",
    ExplainTimestamp: "EXPLAIN",
    CreateSource: "CREATE SOURCE",
    SkipRecord: "ALTER SOURCE",
    CreateTimeline: "CREATE TIMELINE",
    DropTimeline: "DROP TIMELINE",
    AdvanceTimeline: "ADVANCE TIMELINE",
    CreateReadHold: "CREATE READ HOLD",
    AdvanceReadHold: "ADVANCE READ HOLD",
    DropReadHold: "DROP READ HOLD",
}
_DISCARD_TAGS: Final = {
    "deallocate": "DEALLOCATE",
    "deallocate all": "DEALLOCATE ALL",
    "close": "CLOSE CURSOR",
    "close all": "CLOSE CURSOR ALL",
}
_VERB_TAGS: Final = {
    TransactionVerb.BEGIN: "BEGIN",
    TransactionVerb.START: "START TRANSACTION",
    TransactionVerb.COMMIT: "COMMIT",
    TransactionVerb.ROLLBACK: "ROLLBACK",
    TransactionVerb.SET: "SET",
    TransactionVerb.SAVEPOINT: "SAVEPOINT",
    TransactionVerb.RELEASE: "RELEASE",
    TransactionVerb.ROLLBACK_TO: "ROLLBACK",
}


def _tag(bound: BoundStatement) -> str:
    match bound:
        case Modify():
            return _MODIFY_TAGS[bound.kind]
        case ModifyingWith():
            return _tag(bound.main)
        case Discard():
            return _DISCARD_TAGS.get(bound.what, f"DISCARD {bound.what.upper()}")
        case AlterTable() | ChangeObjects() | ChangePrivileges() | CreateObject():
            return bound.tag
        case CreateFedTables() | CreateUpstreamTables():
            return bound.tag
        case MaintenanceStatement():
            return bound.kind.value
        case TransactionControl():
            return _VERB_TAGS[bound.verb]
        case _:
            return _TAGS[type(bound)]
