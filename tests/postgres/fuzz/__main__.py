"""`make sqlfuzz`: random queries for some seconds; a wrong answer is made small and printed.

    python -m tests.postgres.fuzz --seconds 60 --seed 1 --engines local,spark
    python -m tests.postgres.fuzz --replay 4711     one query, by its number
    python -m tests.postgres.fuzz --shapes          queries of `shapes.py`, over thousands of rows
    python -m tests.postgres.fuzz --kin             over few rows, where many values are equal

What is printed as wrong is a block for a file of `tests/postgres/queries/`. A query that fails on
one side with an error of its data (class 22) is not judged: which row comes first is up to the
planner. Nor is one that takes long.
"""

import argparse
import contextlib
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import psycopg
from psycopg.pq.abc import PGconn

from compute.spark.session import SessionPoolName
from tests.postgres.fuzz import rows
from tests.postgres.fuzz.queries import Queries, Query, smaller_queries
from tests.postgres.fuzz.schema import statements
from tests.postgres.fuzz.shapes import Shapes
from tests.postgres.fuzz.shrinking import smallest
from tests.postgres.queries.answers import Answer, Failed, Rows, ask, show
from tests.postgres.queries.comparing import Verdict, judge, without_modifiers
from tests.support.servers import meridian, postgres

STEPS_MAX = 400
"""Of making one query smaller."""

_CHOOSING = re.compile(r"\b(limit|group by|distinct|union|intersect|except)\b")
"""One of several equal values, which the planner chooses."""


class Fuzzer:
    """PostgreSQL and the engines under test."""

    def __init__(self, postgresql: PGconn, engines: Mapping[str, PGconn]) -> None:
        self._postgresql = postgresql
        self._engines = engines
        self.counts: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()

    def try_one(self, seed: int) -> bool:
        """Draw and compare one query; whether all answered alike. Prints what is wrong."""
        query = Queries(random.Random(seed)).draw()
        return self._try(seed, query.sql, lambda engine: self._smallest(engine, query).sql)

    def try_shapes(self, seed: int) -> bool:
        """The same for a query of `shapes.py`, which may be ordered by some of its columns only."""
        return self._try_shapes(seed, Shapes(random.Random(seed)))

    def try_kin(self, seed: int) -> bool:
        """The same over the smallest tables."""
        return self._try_shapes(seed, Shapes(random.Random(seed), rows.KIN_SHARES))

    def _try_shapes(self, seed: int, shapes: Shapes) -> bool:
        def any_order(text: str) -> str:
            return f"select * from ({text}) q"

        def is_wrong(engine: str, text: str) -> bool:
            return self._is_wrong(engine, any_order(text))

        text = shapes.draw()
        return self._try(
            seed,
            any_order(text),
            lambda engine: any_order(smallest(text, partial(is_wrong, engine))),
        )

    def _try(self, seed: int, text: str, smallest_of: Callable[[str], str]) -> bool:
        fine = True
        for engine in self._engines:
            verdict = self._verdict(engine, text, count=True)
            self.counts[f"{engine} {verdict}"] += 1
            if verdict == Verdict.WRONG.value:
                fine = False
                print(f"# {engine} --replay {seed}: wrong, made smaller now", flush=True)
                self._report(engine, seed, smallest_of(engine))
        return fine

    def _is_wrong(self, engine: str, text: str) -> bool:
        if isinstance(ask(self._postgresql, text)[-1], Failed):
            return False
        return self._verdict(engine, text) == Verdict.WRONG.value

    def _verdict(self, engine: str, text: str, *, count: bool = False) -> str:
        expected = ask(self._postgresql, text)
        found = ask(self._engines[engine], text)
        if _of_data(found) != _of_data(expected) or _is_late(found) or _is_late(expected):
            return "not judged"
        if _CHOOSING.search(text):
            found, expected = map(_without_signs_of_zero, (found, expected))
        verdict = judge(text, without_modifiers(found), without_modifiers(expected))
        if count and verdict is Verdict.REFUSED and isinstance(found[-1], Failed):
            self.refusals[f"{engine}: {found[-1].message}"] += 1
        return verdict.value

    def _smallest(self, engine: str, query: Query) -> Query:
        steps = 0
        candidates = smaller_queries(query)
        while (less := next(candidates, None)) is not None and steps < STEPS_MAX:
            steps += 1
            if self._is_wrong(engine, less.sql):
                query, candidates = less, smaller_queries(less)
        return query

    def _report(self, engine: str, seed: int, text: str) -> None:
        expected, found = ask(self._postgresql, text), ask(self._engines[engine], text)
        print(f"# {engine} --replay {seed}; it answered:")
        print("".join(f"#   {line}\n" for line in show(found).splitlines()), end="")
        print(f"{text}\n----\n{show(expected)}\n", flush=True)


def _of_data(answers: tuple[Answer, ...]) -> bool:
    last = answers[-1]
    return isinstance(last, Failed) and last.sqlstate.startswith("22")


def _is_late(answers: tuple[Answer, ...]) -> bool:
    last = answers[-1]
    return isinstance(last, Failed) and last.sqlstate == "57014"


def _fill(connection: psycopg.Connection, *, with_shapes: bool) -> None:
    for text in rows.statements() if with_shapes else statements():
        connection.execute(text.encode())


@contextlib.contextmanager
def _servers(
    engines: list[str], timeout: int, lane: str | None, *, with_shapes: bool
) -> Iterator[Fuzzer]:
    with contextlib.ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sqlfuzz-")))
        options = () if "spark" in engines else ("--spark-master", "none")
        server = stack.enter_context(meridian(place, options, lane=lane))
        peer = stack.enter_context(postgres())
        with psycopg.connect(peer, autocommit=True) as connection:
            connection.execute(
                "create database fuzz template template0"
                " locale_provider builtin builtin_locale 'C.UTF-8' lc_collate 'C' lc_ctype 'C'"
            )
        connect = psycopg.connect(peer, autocommit=True, dbname="fuzz")
        postgresql = stack.enter_context(connect)
        connections = {
            engine: stack.enter_context(psycopg.connect(server.dsn, autocommit=True))
            for engine in engines
        }
        _fill(postgresql, with_shapes=with_shapes)
        _fill(next(iter(connections.values())), with_shapes=with_shapes)
        for engine, connection in connections.items():
            connection.execute(f"set engine = {engine}".encode())
        for connection in (postgresql, *connections.values()):
            connection.execute(f"set statement_timeout = '{timeout}s'".encode())
        yield Fuzzer(postgresql.pgconn, {name: c.pgconn for name, c in connections.items()})


def _without_signs_of_zero(answers: Sequence[Answer]) -> tuple[Answer, ...]:
    """0 and -0 are equal, so that either may be within a limit or stand for a group of both."""
    return tuple(
        replace(a, rows=tuple(tuple("0" if v == "-0" else v for v in row) for row in a.rows))
        if isinstance(a, Rows)
        else a
        for a in answers
    )


def main() -> None:
    """Run for the time that was asked for; exit code 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="tests.postgres.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1, help="of the first query")
    parser.add_argument("--engines", default="local")
    parser.add_argument(
        "--lane", choices=list(SessionPoolName), help="Spark's, whatever the inputs"
    )
    parser.add_argument("--timeout", type=int, default=2, help="of a statement, in seconds")
    parser.add_argument("--replay", type=int, help="only this query")
    parser.add_argument("--shapes", action="store_true")
    parser.add_argument("--kin", action="store_true")
    arguments = parser.parse_args()
    has_rows = arguments.shapes or arguments.kin
    engines = arguments.engines.split(",")
    with _servers(engines, arguments.timeout, arguments.lane, with_shapes=has_rows) as fuzzer:
        try_one = fuzzer.try_one
        if has_rows:
            try_one = fuzzer.try_kin if arguments.kin else fuzzer.try_shapes
        if arguments.replay is not None:
            sys.exit(not try_one(arguments.replay))
        seed, wrong = arguments.seed, 0
        end = time.monotonic() + arguments.seconds
        while time.monotonic() < end:
            try:
                wrong += not try_one(seed)
            except psycopg.OperationalError:
                print(f"# --replay {seed}: the connection was lost", flush=True)
                raise
            seed += 1
    for words, count in fuzzer.refusals.most_common(10):
        print(f"refused {count} times, {words}")
    print(f"{seed - arguments.seed} queries:", dict(fuzzer.counts))
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
