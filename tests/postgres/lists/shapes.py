"""Statements of any length: lists, chains, nested queries; over one table that has NULLs.

    shape(n) ─▶ a query of n parts

Not here: how long they take (`tests/bench/lists.py`).
"""

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

Shape: TypeAlias = Callable[[int], str]

TABLE: Final = (
    "CREATE TABLE listed (id int, v int, s text, at date, price numeric(10,2), big bigint)",
    "INSERT INTO listed SELECT i, i % 100, 's' || i, date '2020-01-01' + i, i / 4.0,"
    " i * 10000000000 FROM generate_series(1, 500) i",
    "INSERT INTO listed VALUES (NULL, 1, NULL, NULL, NULL, NULL), (7, NULL, 's7', NULL, 1.75, 7)",
)


def _joined(parts: Iterable[object], by: str = ",") -> str:
    return by.join(map(str, parts))


def _all(condition: str) -> str:
    return f"SELECT id, v FROM listed WHERE {condition} ORDER BY id, v"


def _every(condition: str) -> str:
    """Its three truth values, row by row."""
    return f"SELECT id, v, ({condition}) FROM listed ORDER BY id, v"


def nested_queries(count: int) -> str:
    """WITH queries that each compute and filter."""
    parts = ["q0 AS (SELECT id, v AS x FROM listed)"]
    parts += [
        f"q{at} AS (SELECT id, x + 1 AS x FROM q{at - 1} WHERE x > {at - 5})"
        for at in range(1, count + 1)
    ]
    return f"WITH {_joined(parts)} SELECT count(*), sum(x), min(x) FROM q{count}"


def nested_views(count: int) -> list[str]:
    """Views on views that each compute and filter, and a query of the last."""
    made = ["CREATE VIEW seen0 AS SELECT id, 100 / v AS x FROM listed WHERE v <> 0"]
    made += [
        f"CREATE VIEW seen{at} AS SELECT id, x + 1 AS x FROM seen{at - 1} WHERE x < {200 + at}"
        for at in range(1, count + 1)
    ]
    return [*made, f"SELECT count(*), sum(x), max(x) FROM seen{count}"]


SHAPES: Final[dict[str, Shape]] = {
    "in": lambda n: _all(f"id IN ({_joined(range(0, 3 * n, 3))})"),
    "in, three-valued": lambda n: _every(f"id IN ({_joined(range(0, 3 * n, 3))}, NULL)"),
    "not in": lambda n: _all(f"id NOT IN ({_joined(range(n))})"),
    "not in, null": lambda n: _every(f"v NOT IN ({_joined(range(n))}, NULL)"),
    "in texts": lambda n: _all("s IN (" + _joined(f"'s{i}'" for i in range(n)) + ")"),
    "in odd texts": lambda n: _every(
        "s IN (" + _joined(f"'{i}, \"x\" [NULL] {{}}'" for i in range(n)) + ", 's7', '')"
    ),
    "in dates": lambda n: _all(
        "at IN (" + _joined(f"date '2020-01-01' + {i}" for i in range(n)) + ")"
    ),
    "in numerics": lambda n: _all(f"price IN ({_joined(i / 4 for i in range(n))})"),
    "in bigints": lambda n: _all(f"big IN ({_joined(i * 10_000_000_000 for i in range(n))})"),
    "in, in a branch": lambda n: (
        f"SELECT id, CASE WHEN v <> 0 THEN 100 / v IN ({_joined(range(n))}) END FROM listed"
        " ORDER BY id, v"
    ),
    "in, in an outer join": lambda n: (
        "SELECT count(*), count(b.id) FROM listed a LEFT JOIN listed b ON a.id = b.id"
        f" AND b.v IN ({_joined(range(n))})"
    ),
    "values": lambda n: (
        "SELECT count(*), sum(a), max(b), count(b) FROM (VALUES "
        + _joined(f"({i}, {'NULL' if i % 7 == 0 else repr(f'x{i}')})" for i in range(n))
        + ") q(a, b)"
    ),
    "array": lambda n: _all(f"id = ANY (ARRAY[{_joined(range(n))}])"),
    "array, all": lambda n: _every(f"id <> ALL (ARRAY[{_joined(range(n))}, NULL])"),
    "unnested": lambda n: f"SELECT count(*), sum(u) FROM unnest(ARRAY[{_joined(range(n))}]) u",
    "coalesce": lambda n: f"SELECT max(coalesce({_joined(['v'] * n)}, -1)) FROM listed",
}
"""Up to 10,000 parts."""

CHAINS: Final[dict[str, Shape]] = {
    "union all": lambda n: _joined((f"SELECT {i}, 'x{i}'" for i in range(n)), " UNION ALL "),
    "union all, of types": lambda n: (
        "SELECT count(*), sum(a) FROM ("
        + _joined((f"SELECT {i}{'.5' * (i % 2)} AS a" for i in range(min(n, 100))), " UNION ALL ")
        + ") q"
    ),
    "union all, tables": lambda n: (
        "SELECT count(*), sum(id) FROM ("
        + _joined(
            (f"SELECT id FROM listed WHERE id = {i}" for i in range(min(n, 100))), " UNION ALL "
        )
        + ") q"
    ),
    "texts": lambda n: f"SELECT max({_joined(['s'] * n, ' || ')}) FROM listed WHERE id < 10",
    "texts and numbers": lambda n: (
        f"SELECT {_joined((f'{chr(39)}a{chr(39)} || id' for _ in range(n)), ' || ')}"
        " FROM listed WHERE id = 3"
    ),
    "sum": lambda n: f"SELECT id, {_joined(['v'] * n, ' + ')} FROM listed ORDER BY id, v",
    "sum of bigints": lambda n: (
        f"SELECT sum({_joined(['v', *['1'] * n], ' + ')}::bigint) FROM listed"
    ),
    "sum that overflows": lambda n: (
        f"SELECT {_joined(['2147483000', *['v'] * n], ' + ')} FROM listed"
    ),
    "constants": lambda n: f"SELECT {_joined(['1'] * n, ' + ')}",
    "and": lambda n: _all(_joined((f"id <> {i}" for i in range(n)), " AND ")),
    "or": lambda n: _every(_joined((f"id = {i}" for i in range(n)), " OR ")),
    "pairs": lambda n: _all(_joined((f"(id = {i} AND v = {i % 100})" for i in range(n)), " OR ")),
    "rows": lambda n: _every("(id, v) IN (" + _joined(f"({i}, {i % 100})" for i in range(n)) + ")"),
    "not in rows": lambda n: _every(
        "(id, v) NOT IN (" + _joined(f"({i}, {i % 100})" for i in range(n)) + ")"
    ),
    "rows of three": lambda n: _every(
        "(v, id, s) IN (" + _joined(f"({i % 100}, {i}, 's{i}')" for i in range(0, 2 * n, 2)) + ")"
    ),
    "not in rows of three": lambda n: _every(
        "(v, id, s) NOT IN (" + _joined(f"({i % 100}, {i}, 's{i}')" for i in range(n)) + ")"
    ),
    "rows, as a filter": lambda n: _all(
        "(id, v) IN (" + _joined(f"({i}, {i % 100})" for i in range(n)) + ")"
    ),
    "not in rows, as a filter": lambda n: _all(
        "(id, v) NOT IN (" + _joined(f"({i}, {i % 100})" for i in range(0, 2 * n, 2)) + ")"
    ),
    "rows with nulls": lambda n: _every(
        "(id, v) IN ("
        + _joined(f"({i}, {'NULL' if i % 50 == 3 else i % 100})" for i in range(n))
        + ")"
    ),
    "not pairs": lambda n: _all(
        "NOT (" + _joined((f"(id = {i} AND v = {i % 100})" for i in range(n)), " OR ") + ")"
    ),
    "pairs of two tables": lambda n: (
        "SELECT count(*), sum(b.v) FROM listed a JOIN listed b ON a.id = b.id WHERE "
        + _joined((f"(a.id = {i} AND b.v = {i % 100})" for i in range(n)), " OR ")
    ),
    "pairs, in an outer join": lambda n: (
        "SELECT count(*), count(b.id) FROM listed a LEFT JOIN listed b ON a.id = b.id AND ("
        + _joined((f"(b.id = {i} AND b.v = {i % 90})" for i in range(n)), " OR ")
        + ")"
    ),
    "or, and others": lambda n: _every(
        "v < 3 OR s = 's9' OR " + _joined((f"{i} = id OR v = {i + 40}" for i in range(n)), " OR ")
    ),
    "or, null": lambda n: _every(
        "id = NULL OR " + _joined((f"id = {i}" for i in range(n)), " OR ")
    ),
    "or of texts and dates": lambda n: _every(
        _joined((f"s = 's{i}' OR at = '2020-01-01'::date + {i}" for i in range(n)), " OR ")
    ),
    "or of numerics": lambda n: _every(_joined((f"price = {i / 4}" for i in range(n)), " OR ")),
    "or of bigints": lambda n: _every(
        _joined((f"big = {i * 10_000_000_000} OR big = {i}" for i in range(n)), " OR ")
    ),
    "and, and others": lambda n: _every(
        "v > 3 AND " + _joined((f"id <> {i} AND s <> 's{i + 9}'" for i in range(n)), " AND ")
    ),
    "not like": lambda n: _all(_joined((f"s NOT LIKE 's{i}_'" for i in range(n)), " AND ")),
    "failing and": lambda n: _all(
        _joined((f"v <> {-i}" for i in range(min(n, 100))), " AND ") + " AND 100 / v > 3"
    ),
    "case of texts": lambda n: (
        "SELECT id, CASE "
        + _joined((f"WHEN s = 's{i % 70}' THEN 'x{i}'" for i in range(n)), " ")
        + " WHEN s = 's99' THEN NULL ELSE s END FROM listed ORDER BY id, v"
    ),
    "case, failing": lambda n: (
        "SELECT id, CASE WHEN v = 0 THEN -1 "
        + _joined((f"WHEN v = {i} THEN {i}" for i in range(1, min(n, 80))), " ")
        + " ELSE 1000 / v END FROM listed ORDER BY id, v"
    ),
    "case, filtered": lambda n: _all(
        "CASE " + _joined((f"WHEN id = {i} THEN {i % 3}" for i in range(n)), " ") + " END = 2"
    ),
    "simple case": lambda n: (
        "SELECT id, CASE v "
        + _joined((f"WHEN {i} THEN {i}.5" for i in range(n)), " ")
        + " ELSE -1 END FROM listed ORDER BY id, v"
    ),
    "failing or": lambda n: _all(
        "v <> 0 AND (" + _joined((f"100 / v = {i}" for i in range(min(n, 100))), " OR ") + ")"
    ),
    "case": lambda n: (
        "SELECT id, CASE "
        + _joined((f"WHEN id = {i} THEN {i * 2}" for i in range(n)), " ")
        + " END FROM listed ORDER BY id, v"
    ),
}
"""Up to 1,000 parts: PostgreSQL refuses some of 10,000."""
