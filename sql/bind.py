"""The typed binder: statements of the parser to bound statements, by PostgreSQL's rules.

Entry point of `sql/` together with `sql/parse.py`; the real work is in the modules around it.

    bind ─▶ bind_queries ─▶ bind_from, bind_targets, bind_grouping ─▶ bind_expressions
        └▶ bind_modify, bind_definitions, bind_copy, bind_session         └▶ bind_operators,
                                       bind_functions, bind_subqueries ─▶ overloads, coerce
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from pglast import ast

from sql.bind_copy import copy
from sql.bind_definitions import create_schema, create_table, drop
from sql.bind_expressions import expression
from sql.bind_modify import delete, insert, update
from sql.bind_queries import SelectResult, bind_query
from sql.bind_session import discard, set_variable, show, transaction
from sql.binding import BindContext, Binding
from sql.coerce import IMPLICIT, coerce
from sql.constant_places import constant_places as find_constant_places
from sql.errors import SqlError, mismatch, not_supported, stack_depth
from sql.explain import explain_options
from sql.parse import Statement
from sql.plan import Expr, Subquery
from sql.scope import Scope
from sql.statements import (
    Bound,
    CopyIn,
    CopyOut,
    CreateSchema,
    CreateTable,
    Discard,
    DropSchema,
    DropTable,
    Empty,
    Explain,
    Modify,
    ModifyKind,
    OutputColumn,
    Prepared,
    Query,
    ResetVariable,
    SetVariable,
    ShowVariable,
    TransactionControl,
    TransactionVerb,
)
from sql.syntax import Node, constant_places, is_a, position
from sql.traverse import children, pruned
from sql.types import INT8, TIMESTAMPTZ, SqlType, display

__all__ = ["BindContext", "bind"]

Binder: TypeAlias = Callable[[Binding, Node], Bound]


def bind(
    statement: Statement, context: BindContext, parameters: Sequence[SqlType | None]
) -> Prepared:
    """Bind one statement. `parameters`: types that the client declared, None or missing to infer.

    Raises SqlError with the position in the text the client sent.
    """
    node = statement.node
    if node is None:
        return Prepared(Empty(), tuple([type_ for type_ in parameters if type_]), "")
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


def _prepared(
    statement: Statement,
    node: Node,
    context: BindContext,
    parameters: Sequence[SqlType | None],
) -> Prepared:
    binding = Binding(context, expression, bind_query, list(parameters))
    bound = _bound(binding, node, statement)
    return Prepared(
        bound, binding.parameter_types(), _tag(bound), binding.uses_now, binding.uses_session
    )


def _bound(binding: Binding, node: Node, statement: Statement) -> Bound:
    if statement.as_of is not None:
        return _timed(binding, node, statement)
    binder = _BINDERS.get(type(node))
    if binder is None:
        raise not_supported(_describe(node), None)
    return binder(binding, node)


def _timed(binding: Binding, node: Node, statement: Statement) -> Bound:
    """A query, or EXPLAIN of one, with AS OF."""
    if is_a(node, ast.ExplainStmt) and is_a(node.query, ast.SelectStmt):
        query = _query(binding, node.query, statement)
        return Explain(query, explain_options(node))
    if not is_a(node, ast.SelectStmt):
        raise not_supported("AS OF behind anything but a query", position(statement.as_of))
    return _query(binding, node, statement)


def _query(binding: Binding, node: Node, statement: Statement | None = None) -> Query:
    result = bind_query(binding, node, None)
    result.settle(binding)
    as_of = None if statement is None else _as_of(binding, statement.as_of)
    return Query(
        pruned(result.plan),
        _described(binding, result),
        tuple(binding.tables.values()),
        as_of,
        statement is not None and statement.as_of_at_least,
    )


def _described(binding: Binding, result: SelectResult) -> tuple[OutputColumn, ...]:
    origins = binding.origins
    return tuple(
        [
            OutputColumn(column.name, column.type, *origins.get(column.id, (0, 0)))
            for column in result.columns
        ]
    )


def _as_of(binding: Binding, node: Node) -> Expr:
    """The time of AS OF: int8 microseconds, or timestamptz. Constants, parameters and calls of
    them.
    """
    expr = binding.expression(Scope(clause="AS OF"), node)
    if _has_subquery(expr):
        raise not_supported("a subquery in AS OF", position(node))
    target = INT8 if expr.type.name in ("int2", "int4", "int8") else TIMESTAMPTZ
    done = coerce(binding, expr, node, target, IMPLICIT)
    if done is None:
        shown = display(expr.type.bare())
        message = f"argument of AS OF must be type timestamp with time zone, not type {shown}"
        raise mismatch(message, position(node))
    return done


def _has_subquery(expr: Expr) -> bool:
    return isinstance(expr, Subquery) or any(map(_has_subquery, children(expr)))


def _explain(binding: Binding, node: Node) -> Bound:
    options = explain_options(node)
    inner = node.query
    match inner:
        case ast.SelectStmt():
            return Explain(_query(binding, inner), options)
        case ast.InsertStmt() | ast.UpdateStmt() | ast.DeleteStmt():
            bound = _BINDERS[type(inner)](binding, inner)
            assert isinstance(bound, Modify), "these statements modify"
            return Explain(bound, options)
        case _:
            raise not_supported(f"EXPLAIN of {_describe(inner)}", None)


def _describe(node: Node) -> str:
    """`CREATE VIEW` from `ViewStmt`, as far as the node's name tells."""
    return _STATEMENTS.get(type(node), f"this statement ({type(node).__name__})")


def _refused_execute(_binding: Binding, _node: Node) -> Bound:
    raise not_supported("PREPARE and EXECUTE in SQL", None)


_STATEMENTS: Final[dict[type, str]] = {
    ast.ViewStmt: "CREATE VIEW",
    ast.IndexStmt: "CREATE INDEX",
    ast.AlterTableStmt: "ALTER TABLE",
    ast.RenameStmt: "ALTER .. RENAME",
    ast.TruncateStmt: "TRUNCATE",
    ast.MergeStmt: "MERGE",
    ast.CreateTableAsStmt: "CREATE TABLE AS",
    ast.CreateFunctionStmt: "CREATE FUNCTION",
    ast.CreateSeqStmt: "CREATE SEQUENCE",
    ast.CreateRoleStmt: "CREATE ROLE",
    ast.GrantStmt: "GRANT",
    ast.VacuumStmt: "VACUUM",
    ast.LockStmt: "LOCK",
    ast.DeclareCursorStmt: "DECLARE CURSOR",
    ast.FetchStmt: "FETCH",
    ast.ListenStmt: "LISTEN",
    ast.NotifyStmt: "NOTIFY",
    ast.DoStmt: "DO",
    ast.CallStmt: "CALL",
    ast.CommentStmt: "COMMENT",
    ast.CreatedbStmt: "CREATE DATABASE",
    ast.LoadStmt: "LOAD",
    ast.CheckPointStmt: "CHECKPOINT",
}

_BINDERS: Final[dict[type, Binder]] = {
    ast.SelectStmt: _query,
    ast.InsertStmt: insert,
    ast.UpdateStmt: update,
    ast.DeleteStmt: delete,
    ast.CopyStmt: copy,
    ast.CreateStmt: create_table,
    ast.CreateSchemaStmt: create_schema,
    ast.DropStmt: drop,
    ast.ExplainStmt: _explain,
    ast.TransactionStmt: lambda _, node: transaction(node),
    ast.VariableSetStmt: lambda _, node: set_variable(node),
    ast.VariableShowStmt: lambda _, node: show(node),
    ast.DiscardStmt: lambda _, node: discard(node),
    ast.DeallocateStmt: lambda _, node: discard(node),
    ast.ClosePortalStmt: lambda _, node: discard(node),
    ast.UnlistenStmt: lambda _, node: discard(node),
    ast.PrepareStmt: _refused_execute,
    ast.ExecuteStmt: _refused_execute,
}

_MODIFY_TAGS: Final = {
    ModifyKind.INSERT: "INSERT 0",
    ModifyKind.UPDATE: "UPDATE",
    ModifyKind.DELETE: "DELETE",
}
_TAGS: Final[dict[type, str]] = {
    Query: "SELECT",
    CopyIn: "COPY",
    CopyOut: "COPY",
    CreateTable: "CREATE TABLE",
    DropTable: "DROP TABLE",
    CreateSchema: "CREATE SCHEMA",
    DropSchema: "DROP SCHEMA",
    SetVariable: "SET",
    ShowVariable: "SHOW",
    ResetVariable: "RESET",
    Explain: "EXPLAIN",
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
}


def _tag(bound: Bound) -> str:
    match bound:
        case Modify():
            return _MODIFY_TAGS[bound.kind]
        case Discard():
            return _DISCARD_TAGS.get(bound.what, f"DISCARD {bound.what.upper()}")
        case TransactionControl():
            return _VERB_TAGS[bound.verb]
        case _:
            return _TAGS[type(bound)]
