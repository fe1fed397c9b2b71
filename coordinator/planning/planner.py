"""Plan a bound statement once for all of its runs: fold constants and order conditions.

INVARIANTS
  P1  a statement whose constants fail is described as usual, and fails each time it is to run.
  P2  EXPLAIN shows, and with ANALYZE runs, the plan that the statement alone has.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from compute.constant_folding import fold_constants
from sql.errors import SqlError
from sql.plan.nodes import Plan
from sql.plan.traverse import scans
from sql.rewrite.guards.order_quals import order_quals
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
from sql.statements.ddl import CreateObject

_PlanOf: TypeAlias = Callable[[Plan], Plan]
_Planned: TypeAlias = BoundQuery | Modify | ModifyingWith | CreateTableAs


def plan_prepared(prepared: ParameterizedStatement) -> ParameterizedStatement:
    """The statement with its constants folded and its conditions ordered (P1)."""
    # What binding found in the clock or the session stands as a constant in the plan; to PostgreSQL
    # it is none, so nothing is computed of it.
    plan_of = order_quals if prepared.uses_now or prepared.rebind else _computed
    try:
        bound = _planned(prepared.bound, plan_of)
    except SqlError as error:
        return replace(prepared, fails=error)
    except RecursionError:
        # As deep as can be bound; whether it can be run is seen then.
        return prepared
    return prepared if bound is prepared.bound else replace(prepared, bound=bound)


def _computed(plan: Plan) -> Plan:
    return order_quals(fold_constants(plan))


def _planned(bound: BoundStatement, plan_of: _PlanOf) -> BoundStatement:
    match bound:
        case BoundQuery() | Modify() | ModifyingWith() | CreateTableAs():
            return _with_plans(bound, plan_of)
        case Explain():
            return replace(bound, statement=_with_plans(bound.statement, plan_of))
        case CopyOut():
            return replace(bound, query=_query(bound.query, plan_of))
        case RefreshMaterializedView(source=source) if source is not None:
            return replace(bound, source=plan_of(source))
        case CreateObject(computed=computed):
            for plan in computed:
                plan_of(plan)
            return bound
        case _:
            return bound


def _with_plans(bound: _Planned, plan_of: _PlanOf) -> _Planned:
    match bound:
        case BoundQuery():
            return _query(bound, plan_of)
        case Modify():
            return _modify(bound, plan_of)
        case CreateTableAs():
            runs = bound.with_data and not bound.table.exists
            return replace(bound, source=plan_of(bound.source)) if runs else bound
        case ModifyingWith(parts=parts, main=main):
            parts = tuple([replace(part, modify=_modify(part.modify, plan_of)) for part in parts])
            if isinstance(main, BoundQuery):
                return replace(bound, parts=parts, main=_query(main, plan_of))
            return replace(bound, parts=parts, main=_modify(main, plan_of))


def _query(query: BoundQuery, plan_of: _PlanOf) -> BoundQuery:
    return replace(query, plan=plan_of(query.plan))


def _modify(modify: Modify, plan_of: _PlanOf) -> Modify:
    # Rows of VALUES are computed when they are written.
    return replace(modify, source=plan_of(modify.source)) if any(scans(modify.source)) else modify
