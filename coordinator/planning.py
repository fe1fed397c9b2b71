"""What becomes of a bound statement before it runs: constants are computed, and conditions ordered,
once for all runs.

INVARIANTS
  P1  a statement whose constants fail is described as ever, and fails whenever it is to run.
"""

from collections.abc import Callable
from dataclasses import replace

from compute.constant_folding import folded
from sql.definition_statements import CreateObject
from sql.emit.condition_order import in_order
from sql.errors import SqlError
from sql.plan import Plan
from sql.statements import Bound, CopyOut, CreateTableAs, Explain, Modify, Prepared, Query
from sql.traverse import scans


def planned(prepared: Prepared) -> Prepared:
    """The statement without what its constants rule out (P1)."""
    # The clock and the session are only read: to PostgreSQL they are no constants.
    plan_of = in_order if prepared.uses_now or prepared.rebind else _computed
    try:
        bound = _planned(prepared.bound, plan_of)
    except SqlError as error:
        return replace(prepared, fails=error)
    except RecursionError:
        # As deep as can be bound; whether it can be run is seen then.
        return prepared
    return prepared if bound is prepared.bound else replace(prepared, bound=bound)


def _computed(plan: Plan) -> Plan:
    return in_order(folded(plan))


def _planned(bound: Bound, plan_of: Callable[[Plan], Plan]) -> Bound:
    match bound:
        case Query():
            return replace(bound, plan=plan_of(bound.plan))
        case CopyOut():
            return replace(bound, query=replace(bound.query, plan=plan_of(bound.query.plan)))
        case CreateTableAs():
            return replace(bound, source=plan_of(bound.source))
        case Modify() if any(scans(bound.source)):
            return replace(bound, source=plan_of(bound.source))
        case CreateObject(computed=computed):
            for plan in computed:
                plan_of(plan)
            return bound
        case Explain(statement=Query() as query):
            return replace(bound, statement=replace(query, plan=plan_of(query.plan)))
        case _:
            return bound
