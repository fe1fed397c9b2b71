"""Lists, chains and nested views of 10 to 10,000 parts: answers as PostgreSQL's.

How long they take is for `tests/bench/lists.py` to say.
"""

from collections.abc import Iterable, Iterator
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
        return error.sqlstate, error.diag.message_primary, error.diag.statement_position


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
    *definitions, query = nested_views(100)
    for connection in both:
        for definition in definitions:
            connection.execute(definition.encode())
    ours, theirs = (_answer(connection, query) for connection in both)
    assert ours == theirs
    assert isinstance(theirs, list)


def _listed(items: Iterable[object]) -> str:
    return ", ".join(map(str, items))


_NUMBERS = _listed(range(100))
_PAIRS = _listed(f"({i}, {i % 9})" for i in range(100))
_CHOSEN = " OR ".join(f"(id = {i} AND v = {i % 9})" for i in range(100))
_NOT_CHOSEN = " AND ".join(f"(id <> {i} OR v <> {i % 9})" for i in range(100))
_WHENS = " ".join(f"WHEN id = {i} THEN {i % 7}" for i in range(100))

ALIKE = [
    f"SELECT id, id IN ({_NUMBERS}, NULL) FROM kinds ORDER BY id",
    f"SELECT id, id NOT IN (NULL, {_NUMBERS}) FROM kinds ORDER BY id",
    f"SELECT id, id NOT IN ({_NUMBERS}) FROM kinds ORDER BY id",
    f"SELECT id, id IN (-1, {_NUMBERS}, -7) FROM kinds ORDER BY id",
    f"SELECT id, id IN ({_NUMBERS}, 3000000000, 9223372036854775807) FROM kinds ORDER BY id",
    f"SELECT id, id IN ({_NUMBERS}, 9223372036854775808) FROM kinds ORDER BY id",
    f"SELECT id, id IN ({_NUMBERS}, 7.0, 1.5) FROM kinds ORDER BY id",
    f"SELECT id, id IN ({_NUMBERS}, '7') FROM kinds ORDER BY id",
    f"SELECT id, id IN ({_NUMBERS}, 'x') FROM kinds ORDER BY id",
    f"SELECT id, id IN ({_NUMBERS}, '99999999999') FROM kinds ORDER BY id",
    f"SELECT id, id IN ({_NUMBERS}, true) FROM kinds ORDER BY id",
    f"SELECT id, id IN ({_NUMBERS}, v) FROM kinds ORDER BY id",
    f"SELECT id, id IN ({_NUMBERS}, 1 / v) FROM kinds WHERE v > 0 ORDER BY id",
    f"SELECT id, id IN ({_NUMBERS}, 1 / 0) FROM kinds ORDER BY id",
    f"SELECT id, small IN ({_NUMBERS}, 70000) FROM kinds ORDER BY id",
    f"SELECT id, big IN ({_NUMBERS}, 70000000000) FROM kinds ORDER BY id",
    f"SELECT id, price IN ({_NUMBERS}) FROM kinds ORDER BY id",
    f"SELECT id, real IN ({_NUMBERS}) FROM kinds ORDER BY id",
    f"SELECT id, s IN ({_NUMBERS}) FROM kinds ORDER BY id",
    f"SELECT id, b IN ({_NUMBERS}) FROM kinds ORDER BY id",
    f"SELECT 7 IN ({_NUMBERS}), NULL IN ({_NUMBERS}), '7' IN ({_NUMBERS}), 'x' IN ({_NUMBERS})",
    f"SELECT 7 IN ({_NUMBERS}), 700 NOT IN ({_NUMBERS}, NULL)",
    "SELECT id, s IN (" + _listed(f"'s{i}'" for i in range(90)) + ", NULL) FROM kinds ORDER BY id",
    "SELECT id, c IN (" + _listed(f"'s{i}  '" for i in range(90)) + ") FROM kinds ORDER BY id",
    "SELECT id, w IN (" + _listed(f"'s{i}'" for i in range(90)) + ") FROM kinds ORDER BY id",
    "SELECT id, id IN (" + _listed(f"'{i}'" for i in range(90)) + ") FROM kinds ORDER BY id",
    "SELECT id, d IN ("
    + _listed(f"'2020-01-0{i % 9 + 1}'" for i in range(90))
    + ") FROM kinds ORDER BY id",
    "SELECT id, d IN ("
    + _listed(f"'2020-01-0{i % 9 + 1}'" for i in range(90))
    + ", 'nonsense') FROM kinds ORDER BY id",
    f"SELECT id, (id, v) IN ({_PAIRS}) FROM kinds ORDER BY id",
    f"SELECT id, (id, v) NOT IN ({_PAIRS}) FROM kinds ORDER BY id",
    f"SELECT id, (id, v) IN ({_PAIRS}, (3, NULL)) FROM kinds ORDER BY id",
    f"SELECT id, (big, small) IN ({_PAIRS}) FROM kinds ORDER BY id",
    f"SELECT id, (id, v) IN ({_PAIRS}, (1, 2, 3)) FROM kinds ORDER BY id",
    f"SELECT id, {_CHOSEN} FROM kinds ORDER BY id",
    f"SELECT id, NOT ({_CHOSEN}) FROM kinds ORDER BY id",
    f"SELECT id, {_NOT_CHOSEN} FROM kinds ORDER BY id",
    f"SELECT id FROM kinds WHERE {_NOT_CHOSEN} ORDER BY id",
    f"SELECT id FROM kinds WHERE v <> 0 AND ({_CHOSEN}) AND 8 / v > 1 ORDER BY id",
    f"SELECT id FROM kinds WHERE 8 / v > 1 AND ({_CHOSEN}) ORDER BY id",
    f"SELECT id FROM kinds WHERE {_CHOSEN} OR 8 / v > 1 ORDER BY id",
    f"SELECT id FROM kinds WHERE {_NOT_CHOSEN} AND v <> 0 AND 8 / v > 1 ORDER BY id",
    f"SELECT id FROM kinds WHERE v <> 0 AND {_NOT_CHOSEN} AND 8 / v > 1 ORDER BY id",
    f"SELECT x, {_CHOSEN} FROM (SELECT id + 1 AS id, v, id AS x FROM kinds) q ORDER BY x",
    f"SELECT {_CHOSEN} FROM (VALUES (3, 3)) q(id, v)",
    f"SELECT a.id, count(*) FROM kinds a JOIN kinds b ON a.id = b.id AND (b.id, b.v) IN ({_PAIRS})"
    " GROUP BY 1 ORDER BY 1",
    f"SELECT a.id, b.id FROM kinds a LEFT JOIN kinds b ON a.id = b.id AND b.id NOT IN ({_NUMBERS})"
    " ORDER BY 1",
    f"SELECT a.id, b.id FROM kinds a LEFT JOIN kinds b ON a.id = b.id AND (b.id, b.v) IN ({_PAIRS})"
    " ORDER BY 1",
    f"SELECT id, (SELECT count(*) FROM kinds b WHERE (b.id, a.v) IN ({_PAIRS})) FROM kinds a"
    " ORDER BY id",
    f"SELECT id, CASE {_WHENS} END FROM kinds ORDER BY id",
    f"SELECT id, CASE {_WHENS} WHEN id = 7 THEN 999 ELSE 100 / v END FROM kinds"
    " WHERE v <> 0 OR id < 90 ORDER BY id",
    f"SELECT id, CASE {_WHENS} ELSE (SELECT max(8 / v) FROM kinds) END FROM kinds WHERE id < 90"
    " ORDER BY id",
    f"SELECT id, CASE {_WHENS} ELSE (SELECT max(8 / b.v) FROM kinds b WHERE b.id = a.id) END"
    " FROM kinds a WHERE v <> 0 OR v IS NULL ORDER BY id",
    f"SELECT x, CASE {_WHENS} END FROM (SELECT 2 * v AS id, id AS x FROM kinds) q ORDER BY x",
    f"SELECT CASE {_WHENS} END FROM (VALUES (3)) q(id)",
    f"SELECT id, CASE {_WHENS} WHEN id = 101 THEN 1.5 END FROM kinds ORDER BY id",
    f"SELECT id, CASE v {' '.join(f'WHEN {i} THEN {i % 3}' for i in range(70))} ELSE id END"
    " FROM kinds ORDER BY id",
    f"SELECT sum(a), max(b), count(b) FROM (VALUES {_PAIRS}, (NULL, 3)) q(a, b)",
    f"SELECT a, b FROM (VALUES {_PAIRS}) q(a, b) WHERE 8 / a > 2",
    f"SELECT a FROM (VALUES {_PAIRS}, (7, 1.5)) q(a, b) WHERE b = 1.5",
    f"SELECT count(*) FROM kinds WHERE (id, v) IN (VALUES {_PAIRS})",
    f"VALUES {_PAIRS} ORDER BY 2, 1 LIMIT 4",
    f"SELECT id FROM kinds WHERE id = ANY (ARRAY[{_NUMBERS}, NULL]) ORDER BY id",
    f"SELECT id, id <> ALL (ARRAY[{_NUMBERS}, NULL]) FROM kinds ORDER BY id",
    "SELECT id, id = ANY ('{" + _NUMBERS + "}') FROM kinds ORDER BY id",
]
"""What is alike in them is bound and planned once."""


@pytest.fixture(scope="module")
def kinds(both: tuple[Connection, Connection]) -> tuple[Connection, Connection]:
    """With a table of many types."""
    for connection in both:
        connection.execute(
            "CREATE TABLE kinds (id int, v int, small smallint, big bigint, price numeric(10,2),"
            " real float8, s text, w varchar(9), c char(6), d date, b bool)"
        )
        connection.execute(
            "INSERT INTO kinds SELECT i, i % 9, i, i, i / 2.0, i, 's' || i, 's' || i, 's' || i,"
            " date '2020-01-01' + i, i = 3 FROM generate_series(0, 120, 3) i"
        )
        connection.execute("INSERT INTO kinds (id, small) VALUES (121, NULL), (NULL, 7)")
    return both


@pytest.mark.parametrize("text", ALIKE, ids=range(len(ALIKE)))
def test_items_alike(text: str, kinds: tuple[Connection, Connection]) -> None:
    ours, theirs = (_answer(connection, text) for connection in kinds)
    assert ours == theirs


def test_definitions_with_long_lists(kinds: tuple[Connection, Connection]) -> None:
    answers: list[object] = []
    for connection in kinds:
        connection.execute(
            f"CREATE TABLE checked (id int CHECK (id IN ({_NUMBERS})), v int,"
            f" CHECK ({_CHOSEN}))".encode()
        )
        connection.execute(f"CREATE VIEW chosen AS SELECT * FROM kinds WHERE {_CHOSEN}".encode())
        answers.append(
            [
                _answer(connection, text)
                for text in (
                    "INSERT INTO checked SELECT 12, 3 RETURNING *",
                    "INSERT INTO checked VALUES (12, 4)",
                    "INSERT INTO checked VALUES (112, 4)",
                    "SELECT id FROM chosen ORDER BY id",
                    f"UPDATE kinds SET v = 8 WHERE {_CHOSEN} RETURNING id",
                    f"UPDATE kinds SET v = CASE {_WHENS} ELSE v END WHERE id < 9 RETURNING v",
                    f"DELETE FROM kinds WHERE id IN ({_NUMBERS}) AND id > 90 RETURNING id",
                )
            ]
        )
    ours, theirs = ([sorted(a) if isinstance(a, list) else a for a in each] for each in answers)  # type: ignore[attr-defined]
    assert ours == theirs


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
