"""Values that a short write is given before it runs: the clock's, and the next ones of sequences.

    runtime parameters ─▶ values at hand ─▶ the statement is made ─▶ taken ─▶ it is sent
                              └ a sequence has none left: the general way ┘

INVARIANTS
  V3  nothing is taken before the statement is sure to be sent, and nobody runs in between.
  V4  what was taken for a statement that goes the general way after all is what it takes first
      there (V1 of `sequence_calls.py`): the client sees no gap that the general way alone leaves
      not.
"""

from collections.abc import Iterable, Sequence

from coordinator.driver.coordination import Coordination
from coordinator.execution.context import Execution, Services
from coordinator.transaction.transaction import SessionTransaction
from sql.binder.expressions.session_calls import CLOCK_FUNCTIONS, TRANSACTION_START
from sql.catalog.objects import SequenceDefinition
from sql.statements.runtime_parameters import RuntimeParameter
from sql.types.sql_type import Value
from storage.fast_dataclass import fast_dataclass


@fast_dataclass(frozen=True, slots=True)
class ValuesAtHand:
    """Values of runtime parameters, in their order. `taken`: those of sequences among them."""

    values: tuple[Value, ...]
    taken: Sequence[tuple[SequenceDefinition, int]] = ()


_NONE = ValuesAtHand(())


def sequence_counts(calls: Iterable[RuntimeParameter]) -> Sequence[tuple[SequenceDefinition, int]]:
    """How many values of each sequence the calls take."""
    counts: dict[int, tuple[SequenceDefinition, int]] = {}
    for call in calls:
        if call.sequence is not None:
            _, before = counts.get(call.sequence.oid, (call.sequence, 0))
            counts[call.sequence.oid] = call.sequence, before + 1
    return tuple(counts.values())


class RuntimeValues:
    """The runtime parameters of a statement."""

    def __init__(self, calls: Sequence[RuntimeParameter]) -> None:
        self._calls = calls
        self._counts = sequence_counts(calls)

    @property
    def moves_sequences(self) -> bool:
        """Whether values of sequences are among them."""
        return bool(self._counts)

    def at_hand(self, services: Services, transaction: SessionTransaction) -> ValuesAtHand | None:
        """What they are now, not taken yet (V3); None: the general way has to wait for some."""
        if not self._calls:
            return _NONE
        left: dict[int, list[int]] = {}
        for sequence, count in self._counts:
            found = services.coordination.values_at_hand(sequence, count)
            if found is None:
                return None
            left[sequence.oid] = list(reversed(found))
        values: list[Value] = []
        taken: list[tuple[SequenceDefinition, int]] = []
        started: int | None = None
        for call in self._calls:
            if call.sequence is not None:
                value = left[call.sequence.oid].pop()
                taken.append((call.sequence, value))
            elif call.kind == TRANSACTION_START:
                value = transaction.now()
            else:
                value = started = services.clock.now() if started is None else started
            values.append(value)
        return ValuesAtHand(tuple(values), taken)

    def take(
        self, coordination: Coordination, transaction: SessionTransaction, given: ValuesAtHand
    ) -> None:
        """Take what `at_hand` has answered just now (V3)."""
        for sequence, count in self._counts:
            coordination.take_at_hand(sequence, count)
        for sequence, value in given.taken:
            transaction.sequences.took(sequence, value)


def compile_runtime_values(calls: Sequence[RuntimeParameter]) -> RuntimeValues | None:
    """The runtime parameters; None if one of them needs the general way."""
    return RuntimeValues(calls) if all(map(_is_short, calls)) else None


def _is_short(call: RuntimeParameter) -> bool:
    if call.kind in CLOCK_FUNCTIONS:
        return True
    return call.kind == "nextval" and call.sequence is not None and len(call.args) <= 1


def leave_to_general_way(execution: Execution, given: ValuesAtHand) -> None:
    """The statement has not happened: it takes these values again (V4)."""
    for sequence, value in given.taken:
        execution.left_values.setdefault((sequence.oid, sequence.version), []).append(value)
