"""What becomes of a bound statement before it runs: constants are computed, once for all runs.

INVARIANTS
  P1  a statement whose constants fail is described as ever, and fails whenever it is to run.
"""

from dataclasses import replace

from compute.constant_folding import folded
from sql.definition_statements import CreateObject
from sql.errors import SqlError
from sql.statements import Bound, CopyOut, CreateTableAs, Explain, Modify, Prepared, Query
from sql.traverse import scans


def planned(prepared: Prepared) -> Prepared:
    """The statement without what its constants rule out (P1)."""
    if prepared.uses_now or prepared.rebind:
        # Their constants are none to PostgreSQL: the clock and the session are only read.
        return prepared
    try:
        bound = _planned(prepared.bound)
    except SqlError as error:
        return replace(prepared, fails=error)
    except RecursionError:
        # As deep as can be bound; whether it can be run is seen then.
        return prepared
    return prepared if bound is prepared.bound else replace(prepared, bound=bound)


def _planned(bound: Bound) -> Bound:
    match bound:
        case Query():
            return replace(bound, plan=folded(bound.plan))
        case CopyOut():
            return replace(bound, query=replace(bound.query, plan=folded(bound.query.plan)))
        case CreateTableAs():
            return replace(bound, source=folded(bound.source))
        case Modify() if any(scans(bound.source)):
            return replace(bound, source=folded(bound.source))
        case CreateObject(computed=computed):
            for plan in computed:
                folded(plan)
            return bound
        case Explain(statement=Query() as query):
            return replace(bound, statement=replace(query, plan=folded(query.plan)))
        case _:
            return bound
