"""Runtime parameters of many runs of an INSERT: values of sequences are taken for all at once.

    runs ─▶ how many values of each sequence ─▶ taken ─▶ run by run, in the order of their calls

The first run's parameters are known: they are computed before every statement.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, repeat

from coordinator.execution.context import Execution, StatementRuns
from coordinator.execution.sequence_calls import take_values
from coordinator.execution.short_writes.given_values import sequence_counts
from sql.binder.expressions.session_calls import CLOCK_FUNCTIONS, TRANSACTION_START
from sql.statements.bound import ParameterizedStatement
from sql.statements.runtime_parameters import RuntimeParameter
from sql.types.sql_type import Value


def is_given_once(prepared: ParameterizedStatement) -> bool:
    """Whether all runs share the runtime parameters: those of the clock, or none."""
    return all(call.kind in CLOCK_FUNCTIONS for call in prepared.supplied)


def is_given_at_once(prepared: ParameterizedStatement) -> bool:
    """Whether the runtime parameters of many runs can be computed together."""
    return all(
        call.kind in CLOCK_FUNCTIONS or (call.kind == "nextval" and call.sequence is not None)
        for call in prepared.supplied
    )


async def values_of_runs(
    execution: Execution, statements: Sequence[ParameterizedStatement], runs: StatementRuns
) -> Iterator[tuple[Value, ...]]:
    """The runtime parameters of each run; every statement is one of `is_given_at_once`. Raises
    2200H.
    """
    of = runs.of or (0,) * len(runs.sets)
    own = len(statements[of[0]].parameters)
    of_first = tuple(execution.parameters[own:])
    calls = [statement.supplied for statement in statements]
    if not any(calls):
        return repeat(())
    taken: dict[int, Iterator[int]] = {}
    for sequence, count in sequence_counts(chain.from_iterable(calls[at] for at in of[1:])):
        taken[sequence.oid] = iter(await take_values(execution, sequence, count))
    started = execution.services.clock.now()

    def value(call: RuntimeParameter) -> Value:
        if call.sequence is not None:
            return next(taken[call.sequence.oid])
        return execution.transaction.now() if call.kind == TRANSACTION_START else started

    def made() -> Iterator[tuple[Value, ...]]:
        yield of_first
        for place in of[1:]:
            yield tuple(map(value, calls[place]))

    return made()
