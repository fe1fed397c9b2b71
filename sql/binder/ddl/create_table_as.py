"""CREATE TABLE AS and SELECT INTO: a table with the columns and rows of a query."""

from collections.abc import Sequence
from dataclasses import replace

from pglast import ast
from pglast.enums import SetOperation

from sql.binder.ddl.create import create_table
from sql.binder.dml.returning import scanned_tables
from sql.binder.queries.select import bind_query
from sql.binder.resolve.coercion import coerce_to_storage
from sql.binder.resolve.collations import collation_to_store
from sql.binder.resolve.query_result import resolve_unknown_columns
from sql.binder.resolve.type_names import refuse_pseudo_type
from sql.binder.state import Binding, SelectResult
from sql.catalog.catalog import Column
from sql.errors import SqlError, not_supported
from sql.parser.syntax import Node, copy_node, is_a, offset_to_position, string_values
from sql.plan.nodes import ColumnRef, Plan, Project
from sql.plan.pruning import prune_columns
from sql.statements.bound import CreateTableAs
from sql.types.bpchar import column_type
from sql.types.sql_type import NUMERIC, NUMERIC_PRECISION_MAX, SqlType


def create_table_as(binding: Binding, node: Node) -> CreateTableAs:
    """CREATE TABLE .. AS query [WITH NO DATA]."""
    if not is_a(node.query, ast.SelectStmt):
        raise not_supported("CREATE TABLE AS EXECUTE", offset_to_position(node.into.rel.location))
    return _create(binding, node.into, node.query, exists_ok=bool(node.if_not_exists))


def select_into(binding: Binding, node: Node) -> CreateTableAs:
    """SELECT .. INTO: the leftmost SELECT has it."""
    into, query = _without_into(node)
    return _create(binding, into, query, exists_ok=False)


def _without_into(node: Node) -> tuple[Node, Node]:
    """The INTO clause of the leftmost SELECT, and the query without it."""
    if node.op != SetOperation.SETOP_NONE:
        into, left = _without_into(node.larg)
        return (None, node) if into is None else (into, copy_node(node, larg=left))
    if node.intoClause is None:
        return None, node
    return node.intoClause, copy_node(node, intoClause=None)


def _create(binding: Binding, into: Node, query: Node, *, exists_ok: bool) -> CreateTableAs:
    binding.acts_in = query
    result = bind_query(binding, query, None)
    resolve_unknown_columns(binding, result)
    return created_as(binding, into, result, exists_ok=exists_ok)


def created_as(
    binding: Binding, into: Node, result: SelectResult, *, exists_ok: bool
) -> CreateTableAs:
    """The table that an INTO clause defines, with the columns and rows of a bound query."""
    columns = _columns(binding, result, into)
    definition = ast.CreateStmt(
        relation=into.rel,
        tableElts=(),
        options=into.options,
        oncommit=into.onCommit,
        tablespacename=into.tableSpaceName,
        accessMethod=into.accessMethod,
        if_not_exists=exists_ok,
    )
    try:
        created = create_table(binding, definition, columns=columns)
    except SqlError as error:
        # PostgreSQL defines the table when it executes the statement, and knows no places then.
        error.position = None
        raise
    source = stored_rows(binding, result, columns)
    return CreateTableAs(created, source, scanned_tables(binding, source), not into.skipData)


def _columns(binding: Binding, result: SelectResult, into: Node) -> list[Column]:
    names = string_values(into.colNames)
    if len(names) > len(result.columns):
        raise SqlError("42601", "too many column names were specified")
    kept = [column.name for column in result.columns[len(names) :]]
    return [
        # A value that is selected as one of a domain stays one.
        Column(
            name,
            _stored_type(name, column.type),
            domain=binding.domain(column.id),
            collation=collation_to_store(binding, column),
        )
        for name, column in zip([*names, *kept], result.columns, strict=True)
    ]


def _stored_type(name: str, type_: SqlType) -> SqlType:
    """The type of a column that holds these values.

    A numeric without a modifier keeps the scale that it shows; one that shows no zeros, or has no
    fraction, becomes a column as `numeric` declares it.
    """
    refuse_pseudo_type(name, type_)
    if type_.name != "numeric" or type_.typmod >= 0:
        return column_type(type_)
    if type_.trim or not type_.scale:
        return NUMERIC
    return replace(type_, precision=NUMERIC_PRECISION_MAX)


def stored_rows(binding: Binding, result: SelectResult, columns: Sequence[Column]) -> Plan:
    """The rows of a query as a table with these columns stores them."""
    made = tuple([binding.new_column(column.name, column.type) for column in columns])
    exprs = tuple(
        [
            coerce_to_storage(binding, ColumnRef(column.id, column.type), target.type)
            for column, target in zip(result.columns, columns, strict=True)
        ]
    )
    return prune_columns(Project(result.plan, made, exprs))
