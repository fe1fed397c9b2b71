"""Evaluate the timestamp of `AS OF expr` in process, before the query is bound.

The query itself may name tables that exist only in the past, so the expression is bound by itself,
as a query of one value. An expression without a type of its own is read as timestamptz.
"""

from collections.abc import Callable
from dataclasses import replace

from pglast import ast

from coordinator.execution.context import Execution
from coordinator.execution.modify import tables_read_and_written
from coordinator.execution.time_value import timestamp_of_table
from sql.catalog.catalog import SYSTEM_TIMELINE, Table
from sql.catalog.meridian_schema import is_server_state
from sql.errors import SqlError, not_supported
from sql.parser.parse import Statement, parse
from sql.parser.syntax import is_a, node_position, tree_nodes
from sql.statements.bound import (
    BoundQuery,
    BoundStatement,
    CopyOut,
    CreateTableAs,
    Explain,
    Modify,
    ModifyingWith,
    ParameterizedStatement,
    RefreshMaterializedView,
)
from storage.types import Timestamp


async def as_of_timestamp(
    statement: Statement, execution: Execution, bind: Callable[[Statement], ParameterizedStatement]
) -> Timestamp:
    """Microseconds. Raises 22023 for NULL and for types that are no timestamp."""
    if any(is_a(part, ast.SubLink) for part in tree_nodes(statement.as_of)):
        raise not_supported("a subquery in AS OF", node_position(statement.as_of))
    probe = _probe(statement, to_timestamp=False)
    bound = bind(probe).bound
    assert isinstance(bound, BoundQuery), "a SELECT is bound to a query"
    if bound.columns[0].type.name in ("unknown", "text", "varchar", "timestamp", "date"):
        bound = bind(_probe(statement, to_timestamp=True)).bound
        assert isinstance(bound, BoundQuery), "a SELECT is bound to a query"
    if bound.columns[0].type.name not in ("timestamptz", "int8", "int4", "int2"):
        raise SqlError("42804", "argument of AS OF must be type timestamp with time zone or bigint")
    if bound.tables:
        raise not_supported("reading tables in AS OF")
    in_process = execution.services.in_process
    in_process.require(bound.plan, "this expression in AS OF")
    table = await in_process.answer(execution.run(bound.plan, {}))
    value = timestamp_of_table(table)
    if value is None:
        raise SqlError("22023", "AS OF timestamp must not be null")
    return Timestamp(value)


def as_of_has_parameters(statement: Statement) -> bool:
    """Whether AS OF depends on the values of parameters."""
    return any(is_a(part, ast.ParamRef) for part in tree_nodes(statement.as_of))


def _probe(statement: Statement, *, to_timestamp: bool) -> Statement:
    """`SELECT expr`, or `SELECT expr::timestamptz`, over the expression as it was parsed."""
    (template,) = parse("SELECT NULL::timestamptz" if to_timestamp else "SELECT NULL")
    # The parser fills in what a node made by hand would lack.
    assert isinstance(template.node, ast.SelectStmt), "a SELECT was parsed"
    assert template.node.targetList, "a SELECT has a target"
    target = template.node.targetList[0]
    if to_timestamp:
        assert isinstance(target.val, ast.TypeCast), "a cast was parsed"
        target.val.arg = statement.as_of
    else:
        target.val = statement.as_of
    # Places below 0: a probe must not be taken for the statement itself by the plan cache.
    offset = -2 if to_timestamp else -1
    return replace(statement, node=template.node, as_of=None, as_of_at_least=False, offset=offset)


def tables_read_by(bound: BoundStatement) -> tuple[Table, ...]:
    """The tables whose rows a statement reads, if it is one that answers or writes by them."""
    match bound.statement if isinstance(bound, Explain) else bound:
        case BoundQuery(tables=tables) | CopyOut(query=BoundQuery(tables=tables)):
            return tables
        case Modify() | ModifyingWith() as writing:
            return tables_read_and_written(writing)
        case CreateTableAs(tables=tables) | RefreshMaterializedView(tables=tables):
            return tables
        case _:
            return ()


def tables_of_other_timelines(prepared: ParameterizedStatement) -> tuple[Table, ...]:
    """Tables of other timelines than `system`, of a statement that reads session state."""
    if not prepared.rebind:
        return ()
    return tuple(
        table
        for table in tables_read_by(prepared.bound)
        if table.timeline != SYSTEM_TIMELINE.name and not is_server_state(table)
    )
