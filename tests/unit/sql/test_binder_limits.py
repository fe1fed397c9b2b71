"""Long and deep statements: an answer or 54001, and the process lives."""

import pytest

from sql.binder.bind import bind
from sql.errors import SqlError
from sql.parser.nesting_limit import LINKS_MAX, is_too_deep
from sql.parser.parse import parse
from sql.statements.bound import ParameterizedStatement
from tests.unit.sql.described import context


def _bind(text: str) -> ParameterizedStatement:
    (statement,) = parse(text)
    return bind(statement, context(), ())


@pytest.mark.parametrize(
    "text",
    [
        "select a in (" + ",".join(map(str, range(5000))) + ") from t",
        "select a from t where b not in (" + ",".join(f"'{n}'" for n in range(5000)) + ")",
        "select a from t where " + " or ".join(f"a = {n}" for n in range(5000)),
        "select a from t where " + " and ".join(f"a <> {n}" for n in range(5000)),
        "select " + "(" * 900 + "1" + ")" * 900,
        "select " + "+".join(["a"] * 100) + " from t",
        "insert into w values " + ",".join(f"({n}, 'x', -{n})" for n in range(5000)),
    ],
    ids=lambda text: text[:30],
)
def test_long_statements_are_bound(text: str) -> None:
    prepared = _bind(text)
    assert hash(prepared.bound) != 0  # plans are keys of caches (P4), however long


@pytest.mark.parametrize(
    "text",
    [
        "select " + "(" * 10_000 + "1" + ")" * 10_000,
        "select " + "+".join(["1"] * 100_000),
        " union all ".join(["select 1"] * 20_000),
        "select 1" + "::int" * 40_000,
        "select * from t t0 " + " ".join(f"cross join u t{n}" for n in range(1, 30_000)),
        "select " + "(" * 3 + ("1" + "+1" * 5000 + ")") * 3 + "+1" * 5000,
        "select " + "not " * 5000 + "true",
        "select " + "case when true then " * 2000 + "1" + " end" * 2000,
        "select " + "(select " * 3000 + "nope" + ")" * 3000,
        "select " + "abs(" * 4000 + "1" + ")" * 4000,
    ],
    ids=lambda text: text[:30],
)
def test_deep_statements_are_refused(text: str) -> None:
    with pytest.raises(SqlError) as raised:
        _bind(text)
    assert raised.value.sqlstate == "54001"


def test_operators_in_lists_are_no_chain() -> None:
    assert not is_too_deep(
        "values " + ",".join(f"(1 - {n} - 1, '2024-01-01')" for n in range(9000))
    )


def test_a_chain_counts_through_parentheses() -> None:
    half = "1" + "+1" * (LINKS_MAX // 2)
    assert is_too_deep(f"select ({half}) + {half}")
    assert not is_too_deep(f"select ({half}), {half}")


def _columns(count: int, of: str = "c{} int") -> str:
    return ", ".join(of.format(number) for number in range(count))


_ENTRIES = "target lists can have at most 1664 entries"
_COLUMNS = "tables can have at most 1600 columns"


@pytest.mark.parametrize(
    ("text", "fitting", "message"),
    [
        ("select {}", 1664, _ENTRIES),
        ("values ({})", 1664, _ENTRIES),
        ("select count(*) from (select {}) q", 1664, _ENTRIES),
        ("select 1 union select 2 where exists (select {})", 1664, _ENTRIES),
        ("select 1 from t order by {}", 1663, _ENTRIES),
        ("select count(*) from t group by {}", 1663, _ENTRIES),
        ("select a + 0, a + 1 from t group by {}", 1664, _ENTRIES),
        ("select row({}) is null", 1664, "ROW expressions can have at most 1664 entries"),
        ("create table s as select {}", 1600, _COLUMNS),
        ("create view s as select {}", 1600, _COLUMNS),
        ("select concat({})", 100, "cannot pass more than 100 arguments to a function"),
    ],
)
def test_so_many_are_taken_and_no_more(text: str, fitting: int, message: str) -> None:
    """PostgreSQL's limits and words."""
    of = "a + {}" if "from t" in text else "{} as c{}" if "create" in text else "{}"
    given = [
        ", ".join(of.format(*[number] * of.count("{}")) for number in range(count))
        for count in (fitting, fitting + 1)
    ]
    _bind(text.format(given[0]))
    with pytest.raises(SqlError) as raised:
        _bind(text.format(given[1]))
    assert raised.value.sqlstate == ("54023" if "concat" in text else "54011")
    assert raised.value.message == message


def test_a_table_has_1600_columns() -> None:
    _bind("create table s (" + _columns(1600) + ")")
    with pytest.raises(SqlError, match=_COLUMNS):
        _bind("create table s (" + _columns(1601) + ")")


@pytest.mark.parametrize("kind", ["index on t", "unique index on t"])
def test_an_index_has_32_columns(kind: str) -> None:
    with pytest.raises(SqlError, match="cannot use more than 32 columns in an index"):
        _bind(f"create {kind} ({', '.join(['a'] * 33)})")
