"""What decides about ON CONFLICT of the runs of an INSERT: no two runs of a batch may share it."""

from collections.abc import Hashable, Sequence
from functools import cached_property

from compute.reference.executor import PreparedPlan
from compute.reference.expressions import Row
from sql.plan.nodes import Param, Values
from sql.plan.traverse import expression_nodes
from sql.types.sql_type import Value


class ArbiterKeys:
    """The keys of rows of VALUES. `arbiters`: the columns of each key; `own`: the number of the
    client's parameters, behind which runtime parameters come.
    """

    def __init__(self, source: Values, arbiters: Sequence[tuple[int, ...]], own: int) -> None:
        self._source, self._arbiters, self._own = source, arbiters, own

    @cached_property
    def _early(self) -> tuple[PreparedPlan, Sequence[tuple[int, ...]]] | None:
        """The columns of keys that depend on no runtime parameter, and where each key's are."""
        rows = self._source.rows
        runtime = {
            place
            for row in (rows if self._arbiters else ())
            for place, expr in enumerate(row)
            for node in expression_nodes(expr)
            if isinstance(node, Param) and node.index > self._own
        }
        early = [columns for columns in self._arbiters if runtime.isdisjoint(columns)]
        used = sorted({place for columns in early for place in columns})
        if not used:
            return None
        columns = tuple([self._source.columns[place] for place in used])
        values = Values(columns, tuple([tuple([row[place] for place in used]) for row in rows]))
        return PreparedPlan(values), [tuple(map(used.index, columns)) for columns in early]

    def of(self, rows: Sequence[Row]) -> Sequence[Hashable]:
        """Those of complete rows; one that is NULL somewhere decides nothing."""
        return _keys(self._arbiters, rows)

    def early(self, parameters: Sequence[Value]) -> Sequence[Hashable]:
        """Those that do not depend on runtime parameters, which are not known yet."""
        if self._early is None:
            return ()
        plan, arbiters = self._early
        return _keys(arbiters, plan.rows(parameters))


def _keys(arbiters: Sequence[tuple[int, ...]], rows: Sequence[Row]) -> Sequence[Hashable]:
    return [
        (columns, tuple([row[place] for place in columns]))
        for columns in arbiters
        for row in rows
        if all(row[place] is not None for place in columns)
    ]
