"""Lists, chains and nested views of 10 to 10,000 parts: answers as PostgreSQL's.

How long they take is for `tests/bench/lists.py` to say.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import psycopg
import pytest

from tests.postgres.lists.shapes import CHAINS, SHAPES, TABLE, nested_queries, nested_views
from tests.support.servers import meridian, postgres

Connection: TypeAlias = "psycopg.Connection[tuple[object, ...]]"


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Connection, Connection]]:
    """A connection to Meridian, and one to PostgreSQL."""
    place: Path = tmp_path_factory.mktemp("lists")
    with (
        postgres() as peer,
        meridian(place, ("--set", "spark_start=off")) as server,
        psycopg.connect(server.dsn, autocommit=True) as ours,
        psycopg.connect(peer, autocommit=True) as theirs,
    ):
        for connection in (ours, theirs):
            for statement in TABLE:
                connection.execute(statement.encode())
        yield ours, theirs


def _answer(connection: Connection, text: str, values: tuple[object, ...] | None = None) -> object:
    try:
        return connection.execute(text.encode(), values, prepare=False).fetchall()
    except psycopg.Error as error:
        return error.sqlstate, error.diag.message_primary


@pytest.mark.parametrize("shape", SHAPES)
def test_long_lists(shape: str, both: tuple[Connection, Connection]) -> None:
    for length in (10, 100, 10_000):
        text = SHAPES[shape](length)
        ours, theirs = (_answer(connection, text) for connection in both)
        assert ours == theirs, f"{length} parts"
        assert isinstance(theirs, list)


@pytest.mark.parametrize("shape", CHAINS)
def test_long_chains(shape: str, both: tuple[Connection, Connection]) -> None:
    for length in (10, 40, 1_000):
        text = CHAINS[shape](length)
        ours, theirs = (_answer(connection, text) for connection in both)
        assert ours == theirs, f"{length} parts"


@pytest.mark.parametrize("length", [10, 70, 10_000])
def test_long_arrays_as_parameters(length: int, both: tuple[Connection, Connection]) -> None:
    numbers = [*range(length), None]
    texts = [*(f's{i}, "{i}"' for i in range(length)), "s3", "", None, "\x1f"]
    for text, value in (
        ("SELECT id FROM listed WHERE id = ANY (%s) ORDER BY id, v", numbers),
        ("SELECT id, id <> ALL (%s) FROM listed ORDER BY id, v", numbers),
        ("SELECT id, s = ANY (%s) FROM listed ORDER BY id, v", texts),
        ("SELECT count(*), count(u), max(u) FROM unnest(%s::text[]) u", texts),
        ("SELECT count(*) FROM listed WHERE v + 1 = ANY (%s)", numbers),
        ("SELECT array_length(%s::int[], 1), %s::int[] = '{1}'", None),
    ):
        values = (value,) if value is not None else (numbers, numbers)
        ours, theirs = (_answer(connection, text, values) for connection in both)
        assert ours == theirs, text
        assert isinstance(theirs, list), theirs


@pytest.mark.parametrize("length", [10, 100])
def test_queries_within_each_other(length: int, both: tuple[Connection, Connection]) -> None:
    ours, theirs = (_answer(connection, nested_queries(length)) for connection in both)
    assert ours == theirs
    assert isinstance(theirs, list)


def test_views_on_views(both: tuple[Connection, Connection]) -> None:
    *definitions, query = nested_views(40)
    for connection in both:
        for definition in definitions:
            connection.execute(definition.encode())
    ours, theirs = (_answer(connection, query) for connection in both)
    assert ours == theirs
    assert isinstance(theirs, list)


def test_a_long_insert(both: tuple[Connection, Connection]) -> None:
    rows = ",".join(f"({i}, {i % 9}, 'it''s {i}', NULL, {i}.25, -{i})" for i in range(2_000))
    for connection in both:
        connection.execute("CREATE TABLE written AS SELECT * FROM listed WITH NO DATA")
        connection.execute(f"INSERT INTO written VALUES {rows}".encode())
    text = "SELECT count(*), sum(v), max(s), sum(price), min(big), count(at) FROM written"
    ours, theirs = (_answer(connection, text) for connection in both)
    assert ours == theirs


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "NOT " * 3_000 + "true",
        "SELECT " + "abs(" * 3_000 + "1" + ")" * 3_000,
        "SELECT " + "CASE WHEN true THEN " * 1_500 + "1" + " END" * 1_500,
        "SELECT " + "(SELECT " * 1_500 + "1" + ")" * 1_500,
        "SELECT " + " + ".join(["1.5"] * 1_000),
        "SELECT " + " - ".join(["id"] * 3_000) + " FROM listed",
        "SELECT * FROM " + "(SELECT * FROM " * 700 + "listed" + ") q" * 700,
    ],
    ids=lambda text: text[:24],
)
def test_what_is_too_deep_is_refused(text: str, both: tuple[Connection, Connection]) -> None:
    ours, _ = both
    answer = _answer(ours, text)
    assert isinstance(answer, list) or answer[0] == "54001"  # type: ignore[index]
    assert _answer(ours, "SELECT 1") == [(1,)]
