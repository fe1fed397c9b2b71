"""Bind a query of the past inside of a statement: a part that runs first, at its own time.

Names are those of the present. Whether a table had the same definition then is asked when the part
runs (`coordinator/execution/locking_queries.py` R3).
"""

from dataclasses import replace

from sql.binder.expressions.row_calls import acts_in
from sql.binder.expressions.time_expressions import time_expression
from sql.binder.queries.locked_rows import check_self_contained
from sql.binder.resolve.query_result import resolve_unknown_columns
from sql.binder.state import Binding, Scope, SelectResult
from sql.errors import not_supported
from sql.parser.dated_queries import DatedQuery
from sql.parser.syntax import node_position
from sql.plan.nodes import Const, Project, RelationId, Scan, output_columns
from sql.plan.pruning import prune_columns
from sql.plan.renumbering import free_columns
from sql.statements.locking import LockingQuery
from sql.types.sql_type import BOOL


def dated_part(binding: Binding, dated: DatedQuery, parent: Scope | None) -> SelectResult:
    """The rows of the query as a relation. Raises 0A000 if it needs rows of an outer query."""
    place = node_position(dated.time)
    locks, writes = len(binding.locking), len(binding.parts)
    time = time_expression(binding, dated.time, "AS OF")
    result = binding.bind_query(binding, dated.node, parent)
    resolve_unknown_columns(binding, result)
    plan = result.plan
    if free_columns(plan):
        raise not_supported("AS OF in a subquery that refers to an outer query", place)
    if acts_in(plan) or len(binding.parts) > writes:
        raise not_supported("a query with AS OF that acts", place)
    if any(part.as_of is None for part in binding.locking[locks:]):
        raise not_supported("FOR UPDATE of rows of the past", place)
    check_self_contained(plan, "AS OF")
    relation = RelationId(f"past {len(binding.locking) + 1}")
    if not output_columns(plan):
        # Rows without columns are counted, too: by one that nobody reads.
        plan = Project(plan, (binding.new_column("row", BOOL),), (Const(True, BOOL),))
    shown = len(output_columns(plan))
    part = LockingQuery(
        relation, prune_columns(plan), shown, (), as_of=time, as_of_at_least=dated.at_least
    )
    binding.locking.append(part)
    made = tuple([binding.new_column(column.name, column.type) for column in result.columns])
    for column, before in zip(made, result.columns, strict=True):
        binding.follow(column.id, before.id)
    scan = Scan(relation, "rows of the past", made, tuple(range(len(made))))
    return replace(result, plan=scan, columns=made, unknown={})
