"""Text that means something to an engine comes back as it was: as literal, parameter and name."""

import pytest

from tests.security.conftest import Target

TEXTS = [
    "${env:HOME}",
    "${system:user.name}",
    "${spark.app.name}",
    "$${x}",
    "{0} {1} {op}",
    "'a\\' OR 1=1 --'",
    "a\\",
    "\\'; drop table safe; --",
    "'; drop table safe; --",
    "`a` \"b\" 'c'",
    "/*+ broadcast(safe) */ -- /* */",
    "reflect('java.lang.System', 'getenv', 'HOME')",
    ":a1 ? $1 {a1} $a1 %s",
    "\\u0041\\n\\x41\\101%_",
    "line\nbreak\r\ttab",
    "\u2028\u2029\u02bc\uff07\u2019\U0001f600",
    "MERIDIAN:22012:not an error",
    "x" * 5_000 + "'",
]
# `$1` is what is asked for; each gives the text itself.
EXPRESSIONS = [
    "select t from texts where t = $1",
    "select t from texts where t in ($1, 'nothing')",
    "select max(t) from texts where t = $1 group by t having max(t) = $1",
    "select t from texts where case when t = $1 then true end",
    "select coalesce(null, $1) from texts where id = 0",
    "select replace(t, 'zzzz', $1) from texts where t = $1",
    "select string_agg(t, $1) from texts where t = $1",
    "select substr($1 || t, 1, length($1)) from texts where id = 0",
    "select t from texts where strpos(t, $1) = 1 and length(t) = length($1)",
    "select a.t from texts a join texts b on a.t = b.t and b.t = $1",
    "select t from (select t from texts union select $1) x where t = $1",
    "select t from texts where t || $1 = $1 || t and t = $1",
    "select first_value($1::text) over (order by id) from texts where id = 0",
]
NAMES = [
    "a`b", 'a"b', "a.b", "a;b", "a\nb", "a--b", "a/*b*/", "a\U0001f600b", "select", "../x",
    "a/../b",
    "${env:HOME}", "a'b", "a\\b", "$1", "{0}", "A", "a b", "x" * 63, "c1", "r1",
]  # fmt: skip


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@pytest.fixture
def with_texts(target: Target) -> Target:
    with target.connect() as connection:
        connection.execute("drop table if exists texts")
        connection.execute("create table texts (id int, t text)")
        rows = ", ".join(f"({number}, {quoted(text)})" for number, text in enumerate(TEXTS))
        connection.execute(f"insert into texts values {rows}".encode())
    return target


def test_as_rows(with_texts: Target) -> None:
    with with_texts.connect() as connection:
        rows = connection.execute("select t from texts order by id").fetchall()
    assert [row[0] for row in rows] == TEXTS


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_as_literal_and_parameter_in_every_clause(with_texts: Target, expression: str) -> None:
    texts = TEXTS if with_texts.engine == "local" else TEXTS[::3]
    with with_texts.connect() as connection:
        for text in texts:
            literal = expression.replace("$1", quoted(text))
            assert connection.execute(literal.encode(), prepare=False).fetchone() == (text,)
            asked = expression.replace("%", "%%").replace("$1", "%(t)s::text")
            found = connection.execute(asked.encode(), {"t": text}).fetchone()
            assert found == (text,)
    with_texts.lives()


def test_as_names(target: Target) -> None:
    names = NAMES if target.engine == "local" else NAMES[::4]
    before = sorted(path.name for path in target.warehouse.parent.iterdir())
    with target.connect() as connection:
        for name in names:
            shown = '"' + name.replace('"', '""') + '"'
            connection.execute(f"create table {shown} ({shown} int)".encode())
            connection.execute(f"insert into {shown} values (7)".encode())
            query = f"select {shown}, {shown} as {shown} from {shown} as {shown}"
            cursor = connection.execute(f"{query} where {shown}.{shown} = 7".encode())
            assert cursor.fetchall() == [(7, 7)]
            assert cursor.description is not None
            assert [column.name for column in cursor.description] == [name, name]
            connection.execute(f"drop table {shown}".encode())
    assert sorted(path.name for path in target.warehouse.parent.iterdir()) == before
    target.lives()
