"""No row of the function table without cases on PostgreSQL's recorded answers.

INVARIANTS
  E1  every row that is not internal (nor ELSEWHERE) is called by at least three cases; by one with
      a NULL, if it takes arguments. Cases are expressions (`generating.py`) and, where a table, a
      type or a role is needed, statements (`tests/postgres/queries`, files `every_row_*`).
  E2  what a row's own rewriting calls is no case of it, but for names that only rewritings know.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from unittest import mock

import psycopg

import sql.binder.expressions.calls
import sql.binder.expressions.set_returning
import sql.binder.resolve.coercion
import sql.binder.resolve.function_choice
from sql.binder.expressions.acting_calls import ACTING_FUNCTIONS
from sql.binder.resolve.overloads import OverloadChoice
from sql.binder.state import Binding
from sql.errors import SqlError
from sql.functions.table import Function, all_functions, rows_of_file
from sql.plan.nodes import Expr
from sql.types.sql_type import SqlType
from tests.postgres.functions.generating import FAMILIES
from tests.postgres.functions.recorded import read
from tests.postgres.functions.test_reference import functions_of, plan_of
from tests.postgres.queries.statement_files import areas, cases
from tests.support.stack import serving

CASES_MIN = 3
# The binder answers these itself, and nobody chooses their rows; see `tests/postgres/ddl`
# (sequences), `tests/postgres/queries` (`volatile_calls`, `sequences_in_queries`,
# `small_functions`), `tests/postgres/locking` (those that act) and
# `tests/postgres/ddl/test_monitoring_queries.py` (resets of statistics).
ELSEWHERE = (
    *ACTING_FUNCTIONS, "clock_timestamp", "currval", "lastval", "meridian_clock", "nextval",
    "pg_cancel_backend", "pg_get_serial_sequence", "pg_reload_conf", "pg_terminate_backend",
    "setval", "timeofday",
    *(row.name for row in rows_of_file("extensions.txt")),
    *(row.name for row in rows_of_file("session.txt") if row.name.startswith("pg_stat_")),
)  # fmt: skip
"""Rows that tests of their own call; the PostgreSQL that we compare with has no extensions."""
_Chooser = Callable[..., OverloadChoice | None]


class Watch:
    """Counts the rows that statements are bound to."""

    def __init__(self) -> None:
        self.cases: Counter[str] = Counter()
        self.nulls: Counter[str] = Counter()
        self._bound: Counter[str] = Counter()
        self._depth = 0

    def ended(self, text: str) -> None:
        """What was bound since the last call was this statement."""
        self.cases += self._bound
        if re.search(r"(?i)\bnull\b", re.sub(r"'[^']*'", "''", text)):
            self.nulls += self._bound
        self._bound.clear()

    def note(self, row: Function) -> None:
        """A row was chosen (E2)."""
        if self._depth == 0 or row.name.startswith("meridian_"):
            self._bound[row.id] += 1

    def note_all(self, ids: set[str]) -> None:
        """What a plan calls and nobody chose: the rows that apply modifiers."""
        self._bound.update(id_ for id_ in ids if id_ not in self._bound)

    def choosing(self, choose: _Chooser) -> _Chooser:
        """A chooser that tells what it chose."""

        def watched(name: str, args: tuple[str, ...], **options: bool) -> OverloadChoice | None:
            choice = choose(name, args, **options)
            if choice is not None:
                self.note(choice.function)
            return choice

        return watched

    def standing_in(self, stand_in: Callable[..., Expr]) -> Callable[..., Expr]:
        """A rewriting, in which nothing is a case (E2)."""

        def watched(binding: Binding, text: str, args: Sequence[Expr]) -> Expr:
            self._depth += 1
            try:
                return stand_in(binding, text, args)
            finally:
                self._depth -= 1

        return watched

    def converting(self, convert: Callable[..., Expr]) -> Callable[..., Expr]:
        """A cast that tells its row."""

        def watched(binding: Binding, expr: Expr, row: Function, target: SqlType) -> Expr:
            self.note(row)
            return convert(binding, expr, row, target)

        return watched


@contextmanager
def watching() -> Iterator[Watch]:
    watch = Watch()
    with ExitStack() as stack:
        for module, name, watched in (
            (sql.binder.resolve.function_choice, "choose_function", watch.choosing),
            (sql.binder.expressions.calls, "choose_operator", watch.choosing),
            (sql.binder.expressions.calls, "inline_sql_function", watch.standing_in),
            (sql.binder.expressions.set_returning, "inline_sql_function", watch.standing_in),
            (sql.binder.resolve.coercion, "inline_sql_function", watch.standing_in),
            (sql.binder.resolve.coercion, "_converted", watch.converting),
        ):
            patched = watched(getattr(module, name))  # type: ignore[operator]
            stack.enter_context(mock.patch.object(module, name, patched))
        yield watch


def bind_expressions(watch: Watch) -> None:
    for family in FAMILIES:
        for expression in read(family):
            with suppress(SqlError):
                watch.note_all(functions_of(plan_of(expression)))
            watch.ended(expression)


def bind_statements(watch: Watch) -> None:
    """Queries are bound and not run."""
    for area in (area for area in areas() if area.startswith("every_row_")):
        with serving() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
            watch.ended("")
            for case in cases(area):
                query = case.text.startswith("select")
                with suppress(psycopg.Error):
                    text = f"prepare q as {case.text}" if query else case.text
                    connection.execute(text.encode())
                    if query:
                        connection.execute("deallocate q")
                watch.ended(case.text)


def test_every_row_has_cases() -> None:
    with watching() as watch:
        bind_expressions(watch)
        bind_statements(watch)
    rows = [row for row in all_functions() if not row.internal and row.name not in ELSEWHERE]
    few = [f"{row.id}: {watch.cases[row.id]}" for row in rows if watch.cases[row.id] < CASES_MIN]
    assert not few, f"{len(few)} rows with too few cases:\n" + "\n".join(few)
    unasked = [row.id for row in rows if row.args and not watch.nulls[row.id]]
    assert not unasked, f"{len(unasked)} rows without a NULL:\n" + "\n".join(unasked)
