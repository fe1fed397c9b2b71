"""A plan on several DuckDBs: as we run it, and as DuckDB runs it with every optimizer off.

    Run ─┬─▶ ours, several times: rows come as Arrow at first, then as tables with statistics ─┐
         ├─▶ ours in one thread ────────────────────────────────────────────────────────── alike?
         └─▶ plain: every optimizer off, in one thread ────────────────────────────────────────┘

INVARIANTS
  T1  rows are compared as a multiset; in their order are the values that a Sort at the top goes by.
      Floats count to twelve digits.
  T2  nothing is said of a plan with a volatile call, nor of one that is too much for the plain way,
      or fails there: what PostgreSQL does not compute may rest on an optimizer.

Not here: what a plan leaves open (LIMIT without an order, say). Who asks must know.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, cast

import duckdb
import pyarrow as pa

from compute.duckdb.database import OPTIMIZERS_DISABLED, LocalSettings
from compute.duckdb.executor import LocalExecutor
from compute.executor import Run
from compute.plan_nodes import is_volatile
from compute.reference.arrow import to_values
from sql.errors import SqlError
from sql.plan.nodes import ColumnId, ColumnRef, Limit, Plan, Project, Sort, output_columns

RUNS = 3
"""Of ours. The second makes tables of the rows, the third finds them."""
SECONDS_MAX = 1
"""Without optimizers a join of large tables may take for ever."""
ROWS_MAX = 50_000
"""Of an answer. What is wrong with more rows is wrong with these, most likely."""

Batches: TypeAlias = AsyncGenerator[pa.RecordBatch, None]


@dataclass(frozen=True, slots=True)
class Answer:
    """What an engine answered, as far as it counts (T1)."""

    rows: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    failed: str = ""

    def __str__(self) -> str:
        return self.failed or f"{len(self.rows)} rows {' '.join(self.rows[:5])}"


TOO_MUCH = Answer(failed="too much")


class Twins:
    """See the module. `disabled`: the optimizers that are off in ours."""

    def __init__(
        self, warehouse: Path, directory: Path, disabled: tuple[str, ...] = OPTIMIZERS_DISABLED
    ) -> None:
        self._settings = LocalSettings(warehouse, directory, optimizers_disabled=disabled)
        self._optimizers = optimizers()
        self.ours = self._engine("ours")
        self._alone = self._engine("alone", threads=1)
        self._plain = self._engine("plain", threads=1, optimizers_disabled=self._optimizers)

    def _engine(self, name: str, **changes: Any) -> LocalExecutor:
        directory = self._settings.directory / name
        return LocalExecutor(replace(self._settings, directory=directory, **changes))

    def answers(self, run: Run) -> Mapping[str, Answer]:
        """The different answers, each by the first who gave it; none if nothing is said (T2)."""
        plain = TOO_MUCH if is_volatile(run.plan) else answer(self._plain, run)
        if plain.failed:
            return {}
        found = {plain: "plain"}
        for number in range(RUNS):
            found.setdefault(answer(self.ours, run), f"ours, run {number + 1}")
        found.setdefault(answer(self._alone, run), "ours in one thread")
        found.pop(TOO_MUCH, None)
        return {name: answer for answer, name in found.items()}

    def guilty(self, run: Run) -> list[str]:
        """The optimizers without any one of which ours is the plain answer."""
        plain = answer(self._plain, run)
        disabled = self._settings.optimizers_disabled
        return [
            name
            for name in self._optimizers
            if name not in disabled and self._always(plain, run, (*disabled, name))
        ]

    def _always(self, expected: Answer, run: Run, disabled: tuple[str, ...]) -> bool:
        engine = self._engine("suspect", optimizers_disabled=disabled)
        try:
            return all(answer(engine, run) == expected for _ in range(RUNS))
        finally:
            asyncio.run(engine.close())

    def close(self) -> None:
        for engine in (self.ours, self._alone, self._plain):
            asyncio.run(engine.close())


def optimizers() -> tuple[str, ...]:
    """All that DuckDB lets one switch off."""
    with duckdb.connect() as connection:
        names = connection.execute("select name from duckdb_optimizers()").fetchall()
    return tuple(name for (name,) in names)


def answer(engine: LocalExecutor, run: Run) -> Answer:
    """What the engine answers, or how it fails."""
    return asyncio.run(_answer(engine, run))


async def _answer(engine: LocalExecutor, run: Run) -> Answer:
    rows: list[tuple[object, ...]] = []
    try:
        async with (
            asyncio.timeout(SECONDS_MAX),
            contextlib.aclosing(cast("Batches", engine.run(run))) as batches,
        ):
            async for batch in batches:
                rows += _rows(run.plan, batch)
                if len(rows) > ROWS_MAX:
                    return TOO_MUCH
    except SqlError as error:
        return Answer(failed=f"{error.sqlstate} {error.message}")
    except TimeoutError:
        return TOO_MUCH
    places = _sorted_places(run.plan)
    order = [repr([row[place] for place in places]) for row in rows] if places else ()
    return Answer(tuple(sorted(map(repr, rows))), tuple(order))


def _rows(plan: Plan, batch: pa.RecordBatch) -> list[tuple[object, ...]]:
    columns = [
        map(_shown, to_values(pa.chunked_array([values]), column.type))
        for values, column in zip(batch.columns, output_columns(plan), strict=True)
    ]
    return list(zip(*columns, strict=True)) if columns else [()] * batch.num_rows


def _shown(value: object) -> object:
    # Minus zero is zero.
    return f"{value + 0.0:.12g}" if isinstance(value, float) else value


def _sorted_places(plan: Plan) -> list[int]:
    """The places of the output's columns that it is sorted by, up to a key that is none of them."""
    places = {column.id: place for place, column in enumerate(output_columns(plan))}
    found: list[int] = []
    for id_ in _sorted_by(plan):
        if id_ not in places:
            break
        found.append(places[id_])
    return found


def _sorted_by(plan: Plan) -> list[ColumnId | None]:
    """The columns of the output that it is sorted by, None for a key that is no column of it."""
    match plan:
        case Limit():
            return _sorted_by(plan.input)
        case Sort():
            return [key.expr.id if isinstance(key.expr, ColumnRef) else None for key in plan.keys]
        case Project():
            renamed = {
                expr.id: column.id
                for column, expr in zip(plan.columns, plan.exprs, strict=True)
                if isinstance(expr, ColumnRef)
            }
            return [id_ and renamed.get(id_) for id_ in _sorted_by(plan.input)]
        case _:
            return []
