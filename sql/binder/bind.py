"""Bind a parsed statement: dispatch it by kind and return a typed, engine-neutral `Prepared`.

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

from sql.binder.ddl.alter.set_schema import set_schema
from sql.binder.ddl.alter.statement import alter_table, rename
from sql.binder.ddl.comments import comment
from sql.binder.ddl.create import create_schema, create_table
from sql.binder.ddl.create_table_as import create_table_as, select_into
from sql.binder.ddl.deferral import set_constraints
from sql.binder.ddl.domains import alter_domain, create_domain
from sql.binder.ddl.drop import drop
from sql.binder.ddl.enums import alter_enum, create_enum
from sql.binder.ddl.indexes import create_index
from sql.binder.ddl.roles.grant import alter_default_privileges, grant
from sql.binder.ddl.roles.membership import grant_role
from sql.binder.ddl.roles.owners import alter_owner, drop_owned, reassign_owned
from sql.binder.ddl.roles.roles import alter_role, create_role, drop_role, set_for_role
from sql.binder.ddl.sequences import alter_sequence, create_sequence
from sql.binder.ddl.views import create_view
from sql.binder.dml.copy import copy
from sql.binder.dml.insert import insert
from sql.binder.dml.merge import merge
from sql.binder.dml.modifying_ctes import bind_part, with_parts
from sql.binder.dml.truncate import truncate
from sql.binder.dml.update_delete import delete, update
from sql.binder.expressions.expression import expression
from sql.binder.expressions.row_calls import with_calls
from sql.binder.expressions.session_calls import check_acting
from sql.binder.expressions.supplied_values import check_once, numbered
from sql.binder.expressions.time_expressions import time_expression
from sql.binder.queries.row_locking import check_locked
from sql.binder.queries.select import bind_query
from sql.binder.resolve.query_result import settle
from sql.binder.resolve.type_names import as_now
from sql.binder.session.cursors import declared_query
from sql.binder.session.execute_arguments import argument
from sql.binder.session.explain_options import explain_options
from sql.binder.session.lock_tables import lock_tables
from sql.binder.session.meridian_statements import (
    advance_timeline,
    create_read_hold,
    create_table_in,
    create_timeline,
    drop_read_hold,
    drop_timeline,
    optimize,
    vacuum,
)
from sql.binder.session.settings import discard, set_variable, show, transaction
from sql.binder.state import BindContext, Binding, SelectResult
from sql.catalog.system_catalogs import vectors
from sql.errors import SqlError, not_supported, stack_depth
from sql.parser.constant_positions import constant_places as find_constant_places
from sql.parser.meridian_nodes import (
    AdvanceTimelineNode,
    ArgumentNode,
    CreateReadHoldNode,
    CreateTableInNode,
    CreateTimelineNode,
    DropReadHoldNode,
    DropTimelineNode,
    ExplainTimestampNode,
    OptimizeNode,
)
from sql.parser.parse import Statement
from sql.parser.statement_names import statement_words
from sql.parser.syntax import Node, constant_places, is_a, position, with_clause
from sql.plan.traverse import pruned
from sql.statements.bound import (
    AdvanceTimeline,
    AlterTable,
    Bound,
    Compound,
    CopyIn,
    CopyOut,
    CreateReadHold,
    CreateSchema,
    CreateTable,
    CreateTableAs,
    CreateTimeline,
    DropReadHold,
    DropSchema,
    DropTable,
    DropTimeline,
    Empty,
    Explain,
    ExplainTimestamp,
    LockTables,
    Maintenance,
    Modify,
    ModifyKind,
    OutputColumn,
    Prepared,
    Query,
    Truncate,
)
from sql.statements.ddl import ChangeObjects, ChangeRights, CreateObject, CreateSequence
from sql.statements.literals import ReadLiterals
from sql.statements.session import (
    Discard,
    ResetVariable,
    SetConstraints,
    SetVariable,
    ShowVariable,
    TransactionControl,
    TransactionVerb,
)
from sql.types.sql_type import SqlType

__all__ = ["BindContext", "bind", "bind_with_context"]

T = TypeVar("T")

Binder: TypeAlias = Callable[[Binding, Node], Bound]


def bind(
    statement: Statement, context: BindContext, parameters: Sequence[SqlType | None]
) -> Prepared:
    """Bind one statement. `parameters`: types that the client declared, None or missing to infer.

    Raises SqlError with the position in the text the client sent.
    """
    node = statement.node
    if node is None:
        types = [as_now(context, type_) for type_ in parameters]
        return Prepared(Empty(), tuple([type_ for type_ in types if type_]), "")
    try:
        return _prepared(statement, node, context, parameters)
    except SqlError:
        pass
    except RecursionError:
        raise stack_depth() from None
    # It failed: once more, knowing where constants stand, for an error with its place.
    try:
        with constant_places(find_constant_places(statement)):
            return _prepared(statement, node, context, parameters)
    except RecursionError:
        raise stack_depth() from None


def bind_with_context(context: BindContext, make: Callable[[Binding], T]) -> T:
    """Bind something that is not a statement, such as a stored expression."""
    try:
        return make(Binding(context, expression, bind_query, bind_part, []))
    except RecursionError:
        raise stack_depth() from None


def _prepared(
    statement: Statement,
    node: Node,
    context: BindContext,
    parameters: Sequence[SqlType | None],
) -> Prepared:
    types_now = [as_now(context, type_) for type_ in parameters]
    binding = Binding(context, expression, bind_query, bind_part, types_now)
    bound = with_calls(binding, _bound(binding, node, statement))
    types = binding.parameter_types()
    if binding.supplied:
        check_acting(bound, binding.supplied)
        check_once(bound, binding.supplied)
        bound = numbered(bound, len(types))
    return Prepared(
        bound,
        types,
        _tag(bound),
        binding.uses_now or binding.read_clock,
        binding.uses_session,
        frozenset(binding.look_ups),
        numbered(tuple(binding.supplied), len(types)),
        binding.filled,
        read=_read(binding, statement) if isinstance(bound, _ANALYSED) else None,
    )


def _read(binding: Binding, statement: Statement) -> ReadLiterals | None:
    trees = statement.node, statement.as_of
    read = tuple(binding.read)
    return ReadLiterals(trees, read, binding.read_clock) if read else None


def _bound(binding: Binding, node: Node, statement: Statement) -> Bound:
    if isinstance(node, ExplainTimestampNode):
        return _explain_timestamp(binding, node, statement)
    if is_a(node, ast.ExplainStmt) and statement.as_of is None:
        return _explain(binding, node)
    if statement.as_of is not None:
        return _timed(binding, node, statement)
    binder = _BINDERS.get(type(node))
    if binder is None:
        raise not_supported(statement_words(node), None)
    # Statements without WITH have no part that writes, but are asked in the same words.
    binding.top_with = with_clause(node) or node if is_a(node, *_WITH) else None
    bound = with_parts(binding, binder(binding, node))
    check_locked(binding, bound)
    return bound


def _timed(binding: Binding, node: Node, statement: Statement) -> Bound:
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
        raise not_supported("AS OF behind anything but a query", position(statement.as_of))
    return _query(binding, node, statement)


def _begin_as_of(node: Node, statement: Statement) -> TransactionControl:
    """BEGIN .. AS OF: the session finds the time, as for a query."""
    control = transaction(node)
    if control.verb not in (TransactionVerb.BEGIN, TransactionVerb.START):
        word = control.verb.value.upper()
        raise not_supported(f"{word} with AS OF", position(statement.as_of))
    if control.read_only is False:
        message = "a transaction AS OF a timestamp is read only"
        raise SqlError("25006", message, position(statement.as_of))
    return control


def _select(binding: Binding, node: Node) -> Query | CreateTableAs:
    binding.acts_in = node
    return select_into(binding, node) or _query(binding, node)


def _query(binding: Binding, node: Node, statement: Statement | None = None) -> Query:
    result = bind_query(binding, node, None)
    settle(binding, result)
    as_of = None
    if statement is not None and statement.as_of is not None:
        as_of = time_expression(binding, statement.as_of, "AS OF")
    return Query(
        pruned(result.plan),
        _described(binding, result),
        tuple(binding.tables.values()),
        as_of,
        statement is not None and statement.as_of_at_least,
        frozenset(binding.locked),
    )


def _described(binding: Binding, result: SelectResult) -> tuple[OutputColumn, ...]:
    origins, shown = binding.origins, vectors()
    return tuple(
        [
            OutputColumn(column.name, shown.get(origin, column.type), *origin)
            for column in result.columns
            for origin in (origins.get(column.id, (0, 0)),)
        ]
    )


def _explain(binding: Binding, node: Node) -> Bound:
    inner = node.query
    if any(option.defname == "generic_plan" for option in node.options or ()):
        # It is refused, but not for its parameters, which have no values.
        explain_options(node)
    match inner:
        case ast.DeclareCursorStmt():
            bound: Bound = _query(binding, declared_query(inner))
        case (
            ast.SelectStmt() | ast.InsertStmt() | ast.UpdateStmt() | ast.DeleteStmt()
            | ast.MergeStmt() | ast.CreateTableAsStmt()
        ):  # fmt: skip
            binding.top_with = with_clause(inner) or inner
            bound = with_parts(binding, _BINDERS[type(inner)](binding, inner))
        case _:
            raise not_supported(f"EXPLAIN of {statement_words(inner)}", None)
    assert isinstance(bound, Query | Modify | Compound | CreateTableAs), "it has a plan"
    check_locked(binding, bound)
    return Explain(bound, explain_options(node))


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


_BINDERS: Final[dict[type, Binder]] = {
    ast.SelectStmt: _select,
    ast.InsertStmt: insert,
    ast.UpdateStmt: update,
    ast.DeleteStmt: delete,
    ast.MergeStmt: merge,
    ast.TruncateStmt: truncate,
    ast.LockStmt: lock_tables,
    ast.CreateTableAsStmt: create_table_as,
    ast.CopyStmt: copy,
    ast.CreateStmt: create_table,
    ast.CreateSchemaStmt: create_schema,
    ast.CreateSeqStmt: create_sequence,
    ast.IndexStmt: create_index,
    ast.ViewStmt: create_view,
    ast.CreateEnumStmt: create_enum,
    ast.CreateDomainStmt: create_domain,
    ast.AlterDomainStmt: alter_domain,
    ast.AlterEnumStmt: alter_enum,
    ast.AlterSeqStmt: alter_sequence,
    ast.DropStmt: drop,
    ast.CommentStmt: comment,
    ast.CreateRoleStmt: create_role,
    ast.AlterRoleStmt: alter_role,
    ast.AlterRoleSetStmt: set_for_role,
    ast.DropRoleStmt: drop_role,
    ast.GrantRoleStmt: grant_role,
    ast.GrantStmt: grant,
    ast.AlterDefaultPrivilegesStmt: alter_default_privileges,
    ast.AlterOwnerStmt: alter_owner,
    ast.ReassignOwnedStmt: reassign_owned,
    ast.DropOwnedStmt: drop_owned,
    ast.TransactionStmt: lambda _, node: transaction(node),
    ast.ConstraintsSetStmt: set_constraints,
    ast.VariableSetStmt: lambda _, node: set_variable(node),
    ast.VariableShowStmt: lambda _, node: show(node),
    ast.DiscardStmt: lambda _, node: discard(node),
    ast.DeallocateStmt: lambda _, node: discard(node),
    ast.ClosePortalStmt: lambda _, node: discard(node),
    ast.UnlistenStmt: lambda _, node: discard(node),
    ast.AlterTableStmt: alter_table,
    ast.RenameStmt: rename,
    ast.AlterObjectSchemaStmt: set_schema,
    ast.VacuumStmt: vacuum,
    CreateTimelineNode: create_timeline,
    DropTimelineNode: drop_timeline,
    AdvanceTimelineNode: advance_timeline,
    CreateTableInNode: create_table_in,
    CreateReadHoldNode: create_read_hold,
    DropReadHoldNode: drop_read_hold,
    OptimizeNode: optimize,
    ArgumentNode: argument,
}

_WITH: Final = (
    ast.SelectStmt, ast.InsertStmt, ast.UpdateStmt, ast.DeleteStmt, ast.MergeStmt
)  # fmt: skip
"""Statements whose WITH clause may have queries that modify data."""

_ANALYSED: Final = (Query, Modify, Compound, Explain, CreateTableAs)
"""What PostgreSQL analyses when it is prepared; everything else when it is executed."""

_MODIFY_TAGS: Final = {
    ModifyKind.INSERT: "INSERT 0",
    ModifyKind.UPDATE: "UPDATE",
    ModifyKind.DELETE: "DELETE",
    ModifyKind.MERGE: "MERGE",
}
_TAGS: Final[dict[type, str]] = {
    Query: "SELECT",
    CopyIn: "COPY",
    CopyOut: "COPY",
    CreateTable: "CREATE TABLE",
    CreateTableAs: "SELECT",
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
    Explain: "EXPLAIN",
    ExplainTimestamp: "EXPLAIN",
    CreateTimeline: "CREATE TIMELINE",
    DropTimeline: "DROP TIMELINE",
    AdvanceTimeline: "ADVANCE TIMELINE",
    CreateReadHold: "CREATE READ HOLD",
    DropReadHold: "DROP READ HOLD",
}
_DISCARD_TAGS: Final = {
    "deallocate": "DEALLOCATE",
    "deallocate all": "DEALLOCATE ALL",
    "close": "CLOSE CURSOR",
    "close all": "CLOSE CURSOR ALL",
    "unlisten": "UNLISTEN",
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


def _tag(bound: Bound) -> str:
    match bound:
        case Modify():
            return _MODIFY_TAGS[bound.kind]
        case Compound():
            return _tag(bound.main)
        case Discard():
            return _DISCARD_TAGS.get(bound.what, f"DISCARD {bound.what.upper()}")
        case AlterTable() | ChangeObjects() | ChangeRights() | CreateObject():
            return bound.tag
        case Maintenance():
            return bound.kind.value
        case TransactionControl():
            return _VERB_TAGS[bound.verb]
        case _:
            return _TAGS[type(bound)]
