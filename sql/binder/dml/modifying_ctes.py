"""Data-modifying WITH queries: bind each as a part of the statement, and order their effects.

    WITH x AS (INSERT .. RETURNING ..) SELECT .. FROM x
           └─▶ Part, relation `with 1` ◀── Scan ──┘

INVARIANTS
  D1  a part takes effect before the parts and the statement that read its rows. The statement comes
      before parts that nothing reads; of those the last comes first, as in PostgreSQL.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from pglast import ast

from sql.binder.dml.insert import insert
from sql.binder.dml.merge import merge
from sql.binder.dml.returning import scanned_tables
from sql.binder.dml.update_delete import delete, update
from sql.binder.state import Binding, Scope, SelectResult
from sql.errors import SqlError, not_supported
from sql.parser.syntax import Node, offset_to_position
from sql.plan.nodes import ColumnId, Plan, PlanColumn, RelationId, Scan, output_columns
from sql.plan.traverse import scans
from sql.statements.bound import BoundQuery, BoundStatement, Modify, ModifyingCte, ModifyingWith

ModifyBinder: TypeAlias = Callable[[Binding, Node, Mapping[str, SelectResult]], Modify]

_BINDERS: Final[dict[type, ModifyBinder]] = {
    ast.InsertStmt: insert,
    ast.UpdateStmt: update,
    ast.DeleteStmt: delete,
    ast.MergeStmt: merge,
}


def bind_modifying_cte(binding: Binding, scope: Scope, cte: Node, clause: Node) -> SelectResult:
    """Bind one data-modifying WITH query, which sees those before it."""
    if binding.top_with is not clause:
        if binding.top_with is None:
            raise not_supported(
                "a data-modifying statement in WITH here", offset_to_position(cte.location)
            )
        message = "WITH clause containing a data-modifying statement must be at the top level"
        raise SqlError("0A000", message, offset_to_position(cte.location))
    modify = _BINDERS[type(cte.ctequery)](binding, cte.ctequery, scope.ctes)
    if modify.xmins:
        position = offset_to_position(cte.location)
        raise not_supported("xmin in RETURNING of a WITH query", position)
    relation = RelationId(f"with {len(binding.parts) + 1}")
    binding.parts.append(ModifyingCte(relation, modify))
    columns = tuple([_handed_over(binding, modify, n) for n in range(len(modify.columns))])
    scan = Scan(relation, cte.ctename, columns, tuple(range(len(columns))))
    returns = modify.returning is not None
    return SelectResult(scan, columns, [cte] * len(columns), returns=returns)


def _handed_over(binding: Binding, modify: Modify, place: int) -> PlanColumn:
    described = modify.columns[place]
    made = binding.new_column(described.name, described.type)
    if described.table_oid:
        binding.origins[made.id] = (described.table_oid, described.attribute)
    assert modify.returning is not None, "columns are those of RETURNING"
    returned: ColumnId = output_columns(modify.returning)[place].id
    if returned in binding.inexact:
        binding.inexact.add(made.id)
    return made


def with_modifying_ctes(binding: Binding, bound: BoundStatement) -> BoundStatement:
    """The statement with its parts, in the order of their effects (D1)."""
    if not binding.parts:
        return bound
    if isinstance(bound, BoundQuery):
        bound = BoundQuery(bound.plan, bound.columns, scanned_tables(binding, bound.plan))
    if not isinstance(bound, BoundQuery | Modify):
        raise not_supported("a data-modifying statement in WITH of SELECT INTO")
    by_relation = {part.relation: part for part in binding.parts}
    done: dict[RelationId, ModifyingCte] = {}

    def run(plans: Sequence[Plan]) -> None:
        for relation in dict.fromkeys(scan.relation for plan in plans for scan in scans(plan)):
            part = by_relation.get(relation)
            if part is not None and relation not in done:
                run(_plans(part.modify))
                done.setdefault(relation, part)

    run(_plans(bound))
    before = len(done)
    for part in reversed(binding.parts):
        if part.relation not in done:
            run(_plans(part.modify))
            done.setdefault(part.relation, part)
    return ModifyingWith(tuple(done.values()), bound, before)


def _plans(bound: BoundQuery | Modify) -> Sequence[Plan]:
    if isinstance(bound, BoundQuery):
        return (bound.plan,)
    update = None if bound.conflict is None else bound.conflict.update
    return [plan for plan in (bound.source, update, bound.returning) if plan is not None]
