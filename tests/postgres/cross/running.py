"""Ask both servers for the outcomes of a call over many arguments.

    PostgreSQL   one statement a call: `outcome(text)` runs each expression and catches its error
    Meridian     one statement a call over columns of tables; where it fails it is halved, until
                 the row that fails is alone

INVARIANTS
  A1  what PostgreSQL answers is asked of Meridian over columns, so that its engine computes it
      and not its binder; what fails there is asked with constants, a few of each call.
"""

import itertools
import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.postgres.cross.calls import Call
from tests.postgres.cross.judging import Outcome, Tally, is_refusal, is_unknown
from tests.postgres.cross.peers import Peers
from tests.postgres.cross.values import NOT_STORED, VALUES, literal, quoted, table
from tests.postgres.queries.answers import Answer, Failed, Rows, ask

_FAILURES_MAX = 4
"""Of one call that are asked: each is a statement."""
_HALVINGS_MAX = 12
"""Of one call because of a refusal: most refuse whatever the row is."""


@dataclass(frozen=True, slots=True)
class Case:
    """One row of arguments, as positions in their types' values, and what PostgreSQL says."""

    positions: tuple[int, ...]
    expected: Outcome


@dataclass(slots=True)
class Asking:
    """Both servers, and how many rows of arguments a call gets."""

    peers: Peers
    tally: Tally
    source: random.Random
    rows: int
    _halvings: Counter[str] = field(default_factory=Counter)

    def compare(self, call: Call) -> None:
        """Ask both for all outcomes of a call and judge them."""
        cases = self._cases(call)
        answered = [case for case in cases if not isinstance(case.expected, Failed)]
        for rows in _with_equal_constants(call, answered):
            self._over_columns(call, rows)
        failing = [case for case in cases if isinstance(case.expected, Failed)]
        for case in self.source.sample(failing, min(len(failing), _FAILURES_MAX)):
            statement = _alone(call, case)
            found = _only(ask(self.peers.meridian, statement)[-1])
            self.tally.judge(call.label, statement, case.expected, found)

    def _cases(self, call: Call) -> list[Case]:
        positions = self._positions(call)
        texts = ", ".join(quoted(_expression(call, row)) for row in positions)
        answer = ask(
            self.peers.postgresql,
            f"select o.shown, o.failure from unnest(array[{texts}]) with ordinality u(text, n),"
            " outcome(u.text) o order by u.n",
        )[-1]
        assert isinstance(answer, Rows), f"PostgreSQL: {call.label}: {answer}"
        return [
            Case(row, shown if failure is None else Failed(failure, None, ""))
            for row, (shown, failure) in zip(positions, answer.rows, strict=True)
        ]

    def _positions(self, call: Call) -> list[tuple[int, ...]]:
        counts = [len(VALUES[type_]) for type_ in call.types]
        if math.prod(counts) <= self.rows:
            return list(itertools.product(*map(range, counts)))
        drawn = (tuple(map(self.source.randrange, counts)) for _ in range(self.rows))
        return sorted(set(drawn))

    def _over_columns(self, call: Call, cases: Sequence[Case]) -> None:
        found = ask(self.peers.meridian, _over(call, cases))[-1]
        if isinstance(found, Rows):
            for case, (_, shown) in zip(cases, found.rows, strict=True):
                self.tally.judge(call.label, _alone(call, case), case.expected, shown)
        elif len(cases) == 1 or self._is_hopeless(call, found):
            self.tally.judge(call.label, _alone(call, cases[0]), cases[0].expected, _only(found))
        elif not self.tally.is_enough(call.label):
            middle = len(cases) // 2
            self._over_columns(call, cases[:middle])
            self._over_columns(call, cases[middle:])

    def _is_hopeless(self, call: Call, found: Answer) -> bool:
        if is_unknown(found):
            return True
        self._halvings[call.label] += is_refusal(found)
        return self._halvings[call.label] > _HALVINGS_MAX


def _with_equal_constants(call: Call, cases: Sequence[Case]) -> Iterator[Sequence[Case]]:
    """The cases by their arguments that cannot be columns."""
    fixed = [at for at, type_ in enumerate(call.types) if type_ in NOT_STORED]
    found: defaultdict[tuple[int, ...], list[Case]] = defaultdict(list)
    for case in cases:
        found[tuple(case.positions[at] for at in fixed)].append(case)
    yield from found.values()


def _expression(call: Call, positions: Sequence[int]) -> str:
    return call.text([literal(t, at) for t, at in zip(call.types, positions, strict=True)])


def _alone(call: Call, case: Case) -> str:
    return f"select ({_expression(call, case.positions)})::text"


def _over(call: Call, cases: Sequence[Case]) -> str:
    """The statement that computes all of these cases from columns (A1)."""
    columns = [at for at, type_ in enumerate(call.types) if type_ not in NOT_STORED]
    arguments = [
        f"t{at}.v" if at in columns else literal(type_, cases[0].positions[at])
        for at, type_ in enumerate(call.types)
    ]
    lists = (",".join(str(case.positions[at]) for case in cases) for at in columns)
    arrays = ", ".join(f"'{{{numbers}}}'::int[]" for numbers in lists)
    joins = " ".join(f"join {table(call.types[at])} t{at} on t{at}.i = o.a{at}" for at in columns)
    names = ", ".join(f"a{at}" for at in columns)
    return (
        f"select o.n, ({call.text(arguments)})::text"
        f" from unnest({arrays}) with ordinality o({names}, n) {joins} order by 1"
    )


def _only(answer: Answer) -> Outcome:
    if isinstance(answer, Failed):
        return answer
    assert isinstance(answer, Rows), f"a query answered {answer}"
    return answer.rows[0][-1]
