"""Random rows and commits for a stage, and one random view that lives through some of them."""

import datetime as dt
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from compute.executor import Executor
from sql.errors import SqlError
from storage.types import Source
from tests.unit.compute.maintenance.narrowed import NarrowedEngine
from tests.unit.compute.maintenance.random_views import RandomViews
from tests.unit.compute.maintenance.stage import Row, Stage, bag

COMMITS = 4

_SMALL: Mapping[str, Sequence[Any]] = {
    "k": (1, 2, 3, None), "g": (1, 2, None), "v": (0, 1, 2, 3), "s": ("a", "b", None),
    "n": (Decimal("1.00"), Decimal("2.50"), None), "f": (0.0, -0.0, 1.5, float("nan"), None),
    "unused": (1, 2),
}  # fmt: skip
_FUZZED: Mapping[str, Sequence[Any]] = {
    "i": (0, 1, 2, -7, None), "l": (0, 1, 5_000_000_000, None),
    "n": (Decimal("0.00"), Decimal("1.50"), Decimal("-2.25"), None),
    "f": (0.0, 1.5, -2.25, 1e15, None), "s": ("", "a", "abc", "ä€", None),
    "b": (True, False, None), "d": (dt.date(2024, 2, 29), dt.date(1969, 12, 31), None),
    "ts": (dt.datetime(2024, 2, 29, 12, 34, 56), dt.datetime(1970, 1, 1), None),
}  # fmt: skip


class RandomChanges:
    """Draws what commits change."""

    def __init__(self, source: random.Random) -> None:
        self._source = source

    def row(self, table: str) -> Row:
        values = _FUZZED if table.startswith("t") else _SMALL
        return tuple([self._source.choice(some) for some in values.values()])

    def rows(self, table: str, most: int) -> list[Row]:
        return [self.row(table) for _ in range(self._source.randint(0, most))]

    def commit(
        self, stage: Stage
    ) -> tuple[Mapping[str, Sequence[Row]], Mapping[str, Sequence[tuple[Source, int]]]]:
        """Rows that come and go: new ones, updates of a column, copies, now and then all."""
        come: dict[str, Sequence[Row]] = {}
        go: dict[str, Sequence[tuple[Source, int]]] = {}
        for name, rows in stage.tables.items():
            if self._source.random() < 0.3:
                continue
            live = rows.live()
            share = 1.0 if self._source.random() < 0.05 else self._source.choice((0.0, 0.1, 0.3))
            chosen = [one for one in live if self._source.random() < share]
            go[name] = [(source, at) for source, at, _ in chosen]
            new = self.rows(name, 2)
            for _, _, row in chosen:
                if self._source.random() < 0.5:
                    at = self._source.randrange(len(row))
                    new.append((*row[:at], self.row(name)[at], *row[at + 1 :]))
            if live and self._source.random() < 0.2:
                new.append(self._source.choice(live)[2])
            come[name] = new
        return come, go


class Outcome(Counter[str]):
    """How many views of which kind, and what became of them."""


async def live_through(
    seed: int,
    engines: Sequence[Callable[[], Executor]],
    seen: Outcome,
    *,
    commits: int = COMMITS,
) -> None:
    """Maintain the view of a seed over some commits; raises AssertionError with what it was."""
    source = random.Random(seed)
    text, tables = RandomViews(source).draw()
    changes = RandomChanges(source)
    try:
        engine, keeps_state = source.choice(engines)(), source.random() < 0.5
        stage = Stage(engine, text, tables, keeps_state=keeps_state)
        await stage.commit({name: changes.rows(name, 5) for name in tables})
        if not await stage.rebuild():
            seen["fails"] += 1
            return
    except SqlError:
        seen["refused"] += 1
        return
    seen[stage.program.strategy] += 1
    for number in range(commits):
        come, go = changes.commit(stage)
        made = await stage.commit(come, go)
        if made is None:
            seen["behind"] += 1
            if not await stage.rebuild():
                return
            continue
        seen["changed"] += bool(made.rows)
        if isinstance(engine, NarrowedEngine):
            seen["found by key"] += engine.found
            engine.found = 0
        try:
            defined = await stage.definition()
        except SqlError:
            seen["fails"] += 1
            return
        stored = bag(await stage.rows())
        said = f"seed {seed}, commit {number}, {stage.program.strategy}: {text}"
        assert without_signs(stored) == without_signs(bag(defined)), said


def without_signs(rows: Counter[object]) -> Counter[object]:
    """Of 0 and -0 in one group a query shows any one."""
    found = Counter[object]()
    for row, number in rows.items():
        assert isinstance(row, tuple)
        zero, minus = (0.0).hex(), (-0.0).hex()
        found[tuple([zero if value == minus else value for value in row])] += number
    return found
