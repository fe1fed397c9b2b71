"""Runtime parameters of the session: number them after the client's, and check where they stand.

INVARIANTS
  N1  a parameter has one value in a statement. nextval() is therefore allowed only where PostgreSQL
      evaluates it once, and not in an expression that refers to rows of an outer query. An
      uncorrelated subquery is evaluated once, wherever it stands.
"""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from sql.binder.state import RUNTIME_PARAMETER_BASE
from sql.errors import not_supported
from sql.plan.nodes import Join, Param, Subquery
from sql.plan.renumbering import free_columns, parts_with_columns, rebuild_parts
from sql.statements.bound import BoundStatement
from sql.statements.runtime_parameters import RuntimeParameter

T = TypeVar("T")


def number_runtime_parameters(value: T, own: int) -> T:
    """The bound statement, with its runtime parameters numbered after its `own` ones."""
    return _numbered(value, own)  # type: ignore[return-value] # parts keep their types


def _numbered(value: object, own: int) -> object:
    if isinstance(value, Param):
        if value.index <= RUNTIME_PARAMETER_BASE:
            return value
        return Param(value.index - RUNTIME_PARAMETER_BASE + own, value.type)
    return rebuild_parts(value, lambda part: _numbered(part, own))


def check_evaluated_once(bound: BoundStatement, supplied: Sequence[RuntimeParameter]) -> None:
    """0A000 for nextval() in a correlated subquery, which is evaluated for each outer row (N1)."""
    wanted = {
        RUNTIME_PARAMETER_BASE + number
        for number, call in enumerate(supplied, 1)
        if call.kind == "nextval"
    }
    if wanted and any(param.index in wanted for param in _each_time(bound, within=False)):
        raise not_supported("nextval() in a subquery that refers to rows of the query around it")


def _each_time(value: object, *, within: bool) -> Iterator[Param]:
    """The parameters in what is evaluated for each row. `within`: all of the value is."""
    if isinstance(value, Param) and within:
        yield value
    if isinstance(value, Subquery):
        yield from _each_time(value.args, within=within)
        yield from _each_time(value.plan, within=bool(free_columns(value.plan)))
    elif isinstance(value, Join) and value.lateral and not within:
        yield from _each_time((value.left, value.condition), within=False)
        yield from _each_time(value.right, within=bool(free_columns(value.right)))
    else:
        for part in parts_with_columns(value):
            yield from _each_time(part, within=within)
