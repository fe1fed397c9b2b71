"""Transactions of the simulation's upstream: changes of rows, and what the history says of them.

Sets only grow, but their rows change: a position is no value of the history. A register's row goes
and comes in all ways that end with a value for each of its keys.
"""

import random
from collections.abc import Callable, Sequence

from ingest.reader import UNCHANGED, ChangeKind, ChangeRow, UpstreamChange
from tests.resilience.history.events import Add, Operation, Write
from tests.resilience.sim.upstream import changed_rows

Made = tuple[Sequence[UpstreamChange], Sequence[Operation]]
Make = Callable[[str, Sequence[ChangeRow], random.Random, Callable[[], int]], Made]


def inserted(row: ChangeRow) -> UpstreamChange:
    return UpstreamChange(ChangeKind.INSERT, new=row)


def set_changes(
    name: str, rows: Sequence[ChangeRow], rng: random.Random, value: Callable[[], int]
) -> Made:
    """New rows; perhaps an old one changes in a column that nobody reads. There is no key."""
    values = [value() for _ in range(rng.choice((1, 1, 2)))]
    changes = [inserted((1, 0, one)) for one in values]
    if rows and rng.random() < 0.3:
        old = rng.choice(rows)
        new = (old[0], rng.randrange(100), old[2])
        changes.insert(rng.randrange(2), UpstreamChange(ChangeKind.UPDATE, old, new))
    return changes, [Add(f"{name}_1", one) for one in values]


def register_changes(
    name: str, rows: Sequence[ChangeRow], rng: random.Random, value: Callable[[], int]
) -> Made:
    """Both rows, or one of them, by changes of one kind."""
    first, second = value(), value()
    if len(rows) < 2:
        return [inserted((1, 0, first)), inserted((2, 0, second))], _writes(name, first, second)
    match rng.randrange(6):
        case 0:
            # The value stays: upstream does not send it.
            return [_update(rng.choice((1, 2)), UNCHANGED)], ()
        case 1:
            # Sent once, and unchanged by what follows (S4 of `ingest/postgres/fold.py`).
            return [_update(1, first), _update(1, UNCHANGED)], [Write(f"{name}_1", first)]
        case 2:
            gone = UpstreamChange(ChangeKind.DELETE, (2, UNCHANGED, UNCHANGED))
            moved = UpstreamChange(
                ChangeKind.UPDATE, (1, UNCHANGED, UNCHANGED), (2, rng.randrange(100), second)
            )
            return [gone, moved, inserted((1, 0, first))], _writes(name, first, second)
        case 3:
            emptied = UpstreamChange(ChangeKind.TRUNCATE)
            both = [inserted((1, 0, first)), inserted((2, 0, second))]
            return [emptied, *both], _writes(name, first, second)
        case 4:
            gone = UpstreamChange(ChangeKind.DELETE, (1, UNCHANGED, UNCHANGED))
            return [gone, inserted((1, 0, first))], [Write(f"{name}_1", first)]
        case _:
            return [_update(2, second)], [Write(f"{name}_2", second)]


def _update(key: int, value: "int | object") -> UpstreamChange:
    new = (key, 5, value)
    return UpstreamChange(ChangeKind.UPDATE, None, new)  # type: ignore[arg-type]


def _writes(name: str, first: int, second: int) -> Sequence[Operation]:
    return [Write(f"{name}_1", first), Write(f"{name}_2", second)]


def many_changes(make: Make, times: int) -> Make:
    """As a large transaction has them: later ones change the rows of earlier ones."""

    def made(
        name: str, rows: Sequence[ChangeRow], rng: random.Random, value: Callable[[], int]
    ) -> Made:
        changes: list[UpstreamChange] = []
        written: list[Operation] = []
        for _ in range(times):
            some, operations = make(name, rows, rng, value)
            rows = changed_rows(rows, some)
            changes += some
            written += operations
        return changes, _what_stays(written)

    return made


def _what_stays(written: Sequence[Operation]) -> Sequence[Operation]:
    """Of several writes of a register the last one."""
    last = {one.key: one for one in written if isinstance(one, Write)}
    return [one for one in written if not isinstance(one, Write) or last[one.key] is one]
