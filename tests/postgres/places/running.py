"""Ask both servers, judge, count, and tell what is wrong.

INVARIANTS
  R1  a table holds a value on both servers or on none: what Meridian refuses to store counts as
      refused, and is not written on PostgreSQL.
  R2  what a script makes it drops, so that one script never sees another's tables.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from psycopg.pq import Format
from psycopg.pq.abc import PGconn

from tests.postgres.places.kinds import DEFINITIONS, Kind, Value
from tests.postgres.queries.answers import Answer, Column, Done, Failed, Rows, ask, show, to_answer
from tests.postgres.queries.comparing import Verdict, judge, without_modifiers

_ZEROS = re.compile(r"\.0+(?=[,}])|(\.\d*[1-9])0+(?=[,}])")


@dataclass(frozen=True, slots=True)
class Parameters:
    """What goes with a statement in the extended protocol."""

    values: tuple[bytes | None, ...] = ()
    sent: Format = Format.TEXT
    shown: Format = Format.TEXT
    ours: tuple[bytes | None, ...] | None = None
    """Other values for Meridian."""


@dataclass(slots=True)
class Peers:
    """PostgreSQL, and Meridian on one engine."""

    postgresql: PGconn
    meridian: PGconn
    counts: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    wrong: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def compare(self, place: str, text: str, parameters: Parameters | None = None) -> Verdict:
        """Ask both and count; prints what is wrong."""
        expected = self._asked(self.postgresql, text, parameters)
        if parameters is not None and parameters.ours is not None:
            parameters = replace(parameters, values=parameters.ours)
        found = self._asked(self.meridian, text, parameters)
        verdict = judge(text, *_comparable(text, found, expected))
        rows = re.search(r"\bfrom\b", text, re.IGNORECASE) is not None
        if rows and _is_of_data(found) and _is_of_data(expected):
            # Which row fails first is up to the planner.
            verdict = Verdict.EQUAL
        self.counts[verdict.value] += 1
        if verdict is Verdict.REFUSED and isinstance(found[-1], Failed):
            self.refusals[re.sub(r'"[^"]*"|\d+', "..", found[-1].message)] += 1
        if verdict is Verdict.WRONG:
            self.wrong[place].append(text)
            print(f"# {place}\n{text}\n{_with(parameters)}---- expected\n{show(expected)}")
            print(f"---- found\n{show(found)}\n", flush=True)
        return verdict

    def script(self, place: str, texts: Sequence[str], drop: Sequence[str]) -> None:
        """Play statements in order, up to the first that is not answered alike (R2)."""
        for text in texts:
            if self.compare(place, text) is not Verdict.EQUAL:
                break
        for connection in (self.postgresql, self.meridian):
            ask(connection, "rollback")
            for text in drop:
                ask(connection, text)

    def _asked(
        self, connection: PGconn, text: str, parameters: Parameters | None
    ) -> tuple[Answer, ...]:
        if parameters is None:
            return ask(connection, text)
        values = parameters.values
        formats = [parameters.sent] * len(values)
        result = connection.exec_params(
            text.encode(), list(values), None, formats, parameters.shown
        )
        return (to_answer(result),)

    def prepare(self, kinds: Sequence[Kind]) -> list[Kind]:
        """Make the tables; the kinds that Meridian has."""
        for text in DEFINITIONS:
            self._both(text)
        return [kind for kind in kinds if self._make(kind)]

    def _make(self, kind: Kind) -> bool:
        for table in ("t", "p", "u"):
            name = f"{table}_{kind.name}"
            base = f"{name}_s" if kind.stored else name
            columns = f"(id int, g int, v {kind.stored or kind.type}, w {kind.stored or kind.type})"
            if not self._both(f"create table {base} {columns}"):
                return False
            self._fill(table, base, kind)
            if kind.stored:
                shown = f"select id, g, v::{kind.type} as v, w::{kind.type} as w from {base}"
                self._both(f"create view {name} as {shown}")
        return True

    def _fill(self, table: str, name: str, kind: Kind) -> None:
        values = kind.values + kind.beyond + (kind.tied if table == "t" else ())
        if table == "u":
            values = values[1::2]
        if ask(self.meridian, _insert(name, kind, values))[-1] == Done(f"INSERT 0 {len(values)}"):
            ask(self.postgresql, _insert(name, kind, values))
            return
        usable = [value for value in values if self._stores(kind, value)]
        self._both(_insert(name, kind, usable))

    def _stores(self, kind: Kind, value: Value) -> bool:
        """Whether Meridian can (R1)."""
        text = f"create temp table probe as select 1 as id, {_cast(kind, value)} as v"
        is_stored = not isinstance(ask(self.meridian, text)[-1], Failed)
        ask(self.meridian, "drop table if exists probe")
        self.counts[(Verdict.EQUAL if is_stored else Verdict.REFUSED).value] += 1
        return is_stored

    def _both(self, text: str) -> bool:
        found = ask(self.meridian, text)[-1]
        if isinstance(found, Failed):
            print(f"# not made: {text}: {found.sqlstate} {found.message}", flush=True)
            return False
        expected = ask(self.postgresql, text)[-1]
        assert not isinstance(expected, Failed), f"PostgreSQL: {text}: {expected}"
        return True


def literal(value: Value) -> str:
    """The text in quotes, or NULL."""
    return "null" if value is None else "'" + value.replace("'", "''") + "'"


def typed(kind: Kind, value: Value) -> str:
    """A literal with its type."""
    return f"{literal(value)}::{kind.type}"


def _insert(name: str, kind: Kind, values: Sequence[Value]) -> str:
    others = [*values[1:], *values[:1]]
    rows = (
        f"({at}, {at % 3}, {_cast(kind, value)}, {_cast(kind, other)})"
        for at, (value, other) in enumerate(zip(values, others, strict=True), 1)
    )
    return f"insert into {name} values {', '.join(rows)}"


def _cast(kind: Kind, value: Value) -> str:
    cast = typed(kind, value)
    return f"{cast}::{kind.stored}" if kind.stored else cast


def _with(parameters: Parameters | None) -> str:
    return "" if parameters is None else f"---- with {parameters}\n"


def _is_of_data(answers: tuple[Answer, ...]) -> bool:
    last = answers[-1]
    return isinstance(last, Failed) and last.sqlstate[:2] in ("22", "23")


def _comparable(
    text: str, found: tuple[Answer, ...], expected: tuple[Answer, ...]
) -> tuple[tuple[Answer, ...], tuple[Answer, ...]]:
    """Without the modifiers of INTERSECT and EXCEPT (`deviations.txt`), and without the zeros at
    the end of unconstrained numerics in arrays, which the judge tolerates outside of them.
    """
    found = _with_domains(_without_zeros(found), expected)
    expected = _without_zeros(expected)
    if re.search("intersect|except", text) is None:
        return found, expected
    return without_modifiers(found), without_modifiers(expected)


def _with_domains(found: tuple[Answer, ...], expected: tuple[Answer, ...]) -> tuple[Answer, ...]:
    """Arrays of domains are refused (docs/reference/definitions.md): an array has the base type."""
    return tuple(
        replace(ours, columns=tuple(map(_domain, ours.columns, theirs.columns)))
        if isinstance(ours, Rows)
        and isinstance(theirs, Rows)
        and len(ours.columns) == len(theirs.columns)
        else ours
        for ours, theirs in zip_longest(found, expected)
        if ours is not None
    )


def _domain(ours: Column, theirs: Column) -> Column:
    is_array = theirs.type == "user" and ours.type.endswith("[]")
    return theirs if is_array and ours.name == theirs.name else ours


def _without_zeros(answers: tuple[Answer, ...]) -> tuple[Answer, ...]:
    return tuple(_short(answer) if isinstance(answer, Rows) else answer for answer in answers)


def _short(answer: Rows) -> Rows:
    loose = [column.type == "numeric[]" and column.modifier == -1 for column in answer.columns]
    if not any(loose):
        return answer
    rows = (
        tuple(
            _ZEROS.sub(r"\1", value) if value and drops else value
            for value, drops in zip(row, loose, strict=True)
        )
        for row in answer.rows
    )
    return replace(answer, rows=tuple(rows))
