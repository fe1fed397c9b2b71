"""Views that follow their inputs, beside those who do the same otherwise.

groups     one-row INSERTs into a table with a view of 100 groups: PostgreSQL with a trigger
join       one row of a million changes, and a view joins it to 50,000: PostgreSQL with a trigger
tpch       until views of eight queries are exact again after 0.1 % of new orders: recomputed
elsewhere  INSERTs into other tables while a view takes long: no view, and the query as such

python -m tests.bench.views_bench --only groups,join

PostgreSQL's triggers are for each statement, over its transition tables; its other way is REFRESH.
"""

import argparse
import contextlib
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, Final

import psycopg

from tests.bench.pgbench import run_script
from tests.bench.report import format_report
from tests.bench.sizes import Figures
from tests.postgres.queries.statement_files import cases_of
from tests.postgres.tpch.loading import load
from tests.postgres.tpch.refresh_streams import insertions
from tests.postgres.tpch.test_tpch import QUERIES
from tests.support.servers import meridian, postgres

GROUPS: Final = 100
SALES: Final = 100_000
JOINED: Final = 1_000_000
NAMES: Final = 50_000
CHANGES: Final = 100
TPCH: Final = (1, 3, 4, 5, 6, 10, 12, 13)
PARTS: Final = ("groups", "join", "elsewhere", "tpch")
PATIENT: Final = ("--spark-master", "none", "--set", "view_budget_ms=600000")
"""What a view takes is measured, and not whether a budget is kept."""

ON_COMMIT: Final = "WITH (refresh = 'on commit')"
TOTAL: Final = "SELECT g, sum(amount) AS amount, count(*) AS sales FROM sale GROUP BY g"
NAMED: Final = "SELECT b.id, b.v, d.name FROM big b JOIN dim d ON d.k = b.k"
ASKED_S: Final = 0.005
"""Between two looks whether a view is exact. Smaller: the looks cost what the view needs."""

_IS_EXACT: Final = "SELECT state = 'exact' FROM meridian.materialized_views WHERE table_name = %s"

SLOW: Final = "SELECT stddev(x * y) AS s FROM slow, generate_series(1, 30000) y"
"""No program helps: a second or so of computing for each change of a thousand rows."""

_INSERT: Final = f"\\set g random(1, {GROUPS})\nINSERT INTO sale (g, amount) VALUES (:g, 1);\n"
_UPDATE: Final = f"\\set id random(1, {JOINED})\nUPDATE big SET v = v + 1 WHERE id = :id;\n"
_OTHER: Final = "INSERT INTO other VALUES (1);\n"

_TRIGGERED_TOTAL: Final = (
    "CREATE TABLE total (g int PRIMARY KEY, amount bigint, sales bigint)",
    f"INSERT INTO total {TOTAL}",
    "CREATE FUNCTION add_sales() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "INSERT INTO total AS t SELECT g, sum(amount), count(*) FROM came GROUP BY g ORDER BY g "
    "ON CONFLICT (g) DO UPDATE SET amount = t.amount + excluded.amount, "
    "sales = t.sales + excluded.sales; RETURN NULL; END $$",
    "CREATE TRIGGER add_sales AFTER INSERT ON sale REFERENCING NEW TABLE AS came "
    "FOR EACH STATEMENT EXECUTE FUNCTION add_sales()",
)
_TRIGGERED_NAMED: Final = (
    f"CREATE TABLE named AS {NAMED}",
    "CREATE INDEX ON named (id)",
    "CREATE FUNCTION change_named() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "DELETE FROM named USING went WHERE named.id = went.id; "
    "INSERT INTO named SELECT c.id, c.v, d.name FROM came c JOIN dim d ON d.k = c.k; "
    "RETURN NULL; END $$",
    "CREATE TRIGGER change_named AFTER UPDATE ON big REFERENCING OLD TABLE AS went "
    "NEW TABLE AS came FOR EACH STATEMENT EXECUTE FUNCTION change_named()",
)


def measure_views(
    seconds: int, scale: float, *, spark: bool, parts: Sequence[str] = PARTS
) -> tuple[Figures, Figures]:
    """Of Meridian, and of who does it otherwise."""
    ours: dict[str, float] = {}
    theirs: dict[str, float] = {}
    for part in parts:
        print(f"    {part}", flush=True)
        with contextlib.ExitStack() as stack:
            options = PATIENT[2:] if spark and part == "tpch" else PATIENT
            place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
            dsn = stack.enter_context(meridian(place, options)).dsn
            match part:
                case "groups" | "join":
                    measured = _groups if part == "groups" else _join
                    mine, others = measured(dsn, stack.enter_context(postgres()), seconds)
                case "elsewhere":
                    mine, others = _elsewhere(dsn, seconds)
                case _:
                    mine, others = _tpch(dsn, scale, ("local", "spark") if spark else ("local",))
        ours |= mine
        theirs |= others
    return ours, theirs


def main() -> None:
    """Print the figures of some parts."""
    parser = argparse.ArgumentParser(prog="tests.bench.views_bench", description=__doc__)
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--scale", type=float, default=1, help="of TPC-H")
    parser.add_argument("--seconds", type=int, default=5, help="of each run of pgbench")
    parser.add_argument("--spark", action="store_true", help="compute TPC-H's on Spark, too")
    given = parser.parse_args()
    parts = given.only.split(",")
    figures = measure_views(given.seconds, given.scale, spark=given.spark, parts=parts)
    print(format_report(*figures))


def _execute(dsn: str, *statements: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def _seconds(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def _sales(dsn: str, seconds: int, what: str) -> Figures:
    found: dict[str, float] = {}
    for clients in (1, 64):
        run = run_script(dsn, _INSERT, clients=clients, seconds=seconds, protocol="prepared")
        found[f"INSERT, {what}, {clients} clients: commits/s"] = run.per_second
        found[f"INSERT, {what}, {clients} clients: p50 ms"] = run.p50_ms
    return found


def _groups(dsn: str, peer: str, seconds: int) -> tuple[Figures, Figures]:
    made = (
        "CREATE TABLE sale (g int, amount int)",
        f"INSERT INTO sale SELECT i % {GROUPS} + 1, i FROM generate_series(1, {SALES}) i",
    )
    name = f"a view of {GROUPS} groups"
    figures: list[dict[str, float]] = []
    view = (f"CREATE MATERIALIZED VIEW total {ON_COMMIT} AS {TOTAL}",)
    for one, followed in ((dsn, view), (peer, _TRIGGERED_TOTAL)):
        _execute(one, *made)
        found = {**_sales(one, seconds, "no view")}
        _execute(one, *followed)
        figures.append({**found, **_sales(one, seconds, name)})
    _must_be_exact(dsn, "total")
    for one, found in zip((dsn, peer), figures, strict=True):
        _execute(one, f"CREATE MATERIALIZED VIEW manual AS {TOTAL}")
        taken = _seconds(lambda one=one: _execute(one, "REFRESH MATERIALIZED VIEW manual"))  # type: ignore[misc]
        found[f"REFRESH of {name}: ms"] = 1_000 * taken
    return figures[0], figures[1]


def _must_be_exact(dsn: str, *names: str) -> None:
    """A view that has fallen behind is not measured."""
    query = "SELECT table_name FROM meridian.materialized_views WHERE state = 'exact'"
    with psycopg.connect(dsn, autocommit=True) as connection:
        exact = {name for (name,) in connection.execute(query)}
    assert {*names} <= exact, f"behind: { ({*names} - exact) }"


def _join(dsn: str, peer: str, seconds: int) -> tuple[Figures, Figures]:
    made = (
        "CREATE TABLE dim (k int PRIMARY KEY, name text)",
        f"INSERT INTO dim SELECT i, 'name ' || i FROM generate_series(0, {NAMES - 1}) i",
        "CREATE TABLE big (id int PRIMARY KEY, k int, v int)",
        f"INSERT INTO big SELECT i, i % {NAMES}, i FROM generate_series(1, {JOINED}) i",
    )
    view = (f"CREATE MATERIALIZED VIEW named {ON_COMMIT} AS {NAMED}",)
    figures: list[dict[str, float]] = []
    for one, followed in ((dsn, view), (peer, _TRIGGERED_NAMED)):
        _execute(one, *made)
        found: dict[str, float] = {}
        for what in ("no view", "a view that joins"):
            if what != "no view":
                _execute(one, *followed)
            run = run_script(one, _UPDATE, clients=1, seconds=seconds, protocol="prepared")
            found[f"UPDATE of 1 row of {JOINED:,}, {what}: p50 ms"] = run.p50_ms
        figures.append(found)
    _must_be_exact(dsn, "named")
    for one, found in zip((dsn, peer), figures, strict=True):
        _execute(one, f"CREATE MATERIALIZED VIEW refreshed AS {NAMED}")
        taken = _seconds(lambda one=one: _execute(one, "REFRESH MATERIALIZED VIEW refreshed"))  # type: ignore[misc]
        found["REFRESH of a view that joins: ms"] = 1_000 * taken
    return figures[0], figures[1]


def _elsewhere(dsn: str, seconds: int) -> tuple[Figures, Figures]:
    """The others: without a view, and beside a client that runs the view's query as such."""
    _execute(
        dsn,
        "CREATE TABLE other (v int)",
        "CREATE TABLE slow (x int)",
        "INSERT INTO slow SELECT i FROM generate_series(1, 1000) i",
    )
    name = "INSERT elsewhere, {}: p99 ms"

    def measured() -> float:
        return run_script(
            dsn, _OTHER, clients=8, seconds=max(seconds, 5), protocol="prepared"
        ).p99_ms

    calm = measured()
    with _repeated(dsn, f"SET engine = local; {SLOW}".split("; ")):
        queried = measured()
    _execute(dsn, f"CREATE MATERIALIZED VIEW late {ON_COMMIT} AS {SLOW}")
    with _repeated(dsn, ["INSERT INTO slow VALUES (1)"]) as taken:
        followed = measured()
    _must_be_exact(dsn, "late")
    ours = {name.format("a slow view"): followed, name.format("a slow query"): followed}
    ours["commit that a slow view follows: ms"] = 1_000 * statistics.median(taken)
    return ours, {name.format("a slow view"): calm, name.format("a slow query"): queried}


@contextlib.contextmanager
def _repeated(dsn: str, statements: Sequence[str]) -> Generator[list[float]]:
    """A client that does this all the time, and how long each turn took."""
    over, taken = threading.Event(), list[float]()
    ready = threading.Event()

    def run() -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            while not over.is_set():
                began = time.perf_counter()
                for statement in statements:
                    connection.execute(statement.encode())
                taken.append(time.perf_counter() - began)
                ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        ready.wait()
        yield taken
    finally:
        over.set()
        thread.join()


def _tpch(dsn: str, scale: float, engines: Sequence[str]) -> tuple[Figures, Figures]:
    """Without LIMIT. The same names: how long its commit takes, and its query on an engine."""
    texts = {f"q{number:02d}": case.text for number, case in enumerate(cases_of(QUERIES), 1)}
    load(dsn, scale)
    ours: dict[str, float] = {}
    theirs: dict[str, float] = {}
    with psycopg.connect(dsn, autocommit=True) as connection:
        for block, number in enumerate(TPCH):
            name = f"q{number:02d}"
            text = texts[name].partition("\nlimit")[0]
            connection.execute("SET engine = local")
            connection.execute(f"CREATE MATERIALIZED VIEW {name} {ON_COMMIT} AS {text}".encode())
            # The first run of a program is dearer, and is done in advance where there is time.
            turns = (2 * block, 2 * block + 1)
            taken = [_refreshed(connection, scale, turn, name) for turn in turns][-1]
            for engine in engines:
                connection.execute(f"SET engine = {engine}".encode())
                connection.execute("SET view_reads = definition")
                runs = [
                    _seconds(lambda: connection.execute(f"TABLE {name}".encode()).fetchall())  # noqa: B023
                    for _ in range(3)
                ]
                connection.execute("RESET view_reads")
                figure = f"TPC-H {scale}, {name} exact again, or computed ({engine}): ms"
                ours[figure], theirs[figure] = 1_000 * taken, 1_000 * min(runs)
            connection.execute(f"DROP MATERIALIZED VIEW {name}".encode())
    return ours, theirs


def _refreshed(connection: psycopg.Connection[Any], scale: float, number: int, name: str) -> float:
    """Seconds from the COMMIT of new orders and lines until the view is exact again: at once, or
    when catch-up has attached it.
    """
    connection.execute("BEGIN")
    for text in insertions(scale, number).statements:
        connection.execute(text.encode())
    began = time.perf_counter()
    connection.execute("COMMIT")
    while connection.execute(_IS_EXACT.encode(), [name]).fetchone() != (True,):
        time.sleep(ASKED_S)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
