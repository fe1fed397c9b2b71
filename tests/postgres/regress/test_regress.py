"""Splitting a file of regression tests into statements, as psql does."""

import pytest

from tests.postgres.regress.splitting import Statement, split


def texts(text: str) -> list[str]:
    return [statement.text for statement in split(text) if not statement.skipped]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select 1;\n-- a; b\nselect 2;", ["select 1", "select 2"]),
        (
            "select 'a;b', \"c;d\", $$e;$$, $x$;$$;$x$;",
            ["select 'a;b', \"c;d\", $$e;$$, $x$;$$;$x$"],
        ),
        ("select E'\\';', 'a\\';select 2;", ["select E'\\';', 'a\\'", "select 2"]),
        ("select /* a; /* b; */ ; */ 1;", ["select  1"]),
        ("create rule r as (select 1; select 2);", ["create rule r as (select 1; select 2)"]),
        (
            "create function f() returns int begin atomic select case when a then 1 end; end;"
            "select 2;",
            [
                "create function f() returns int begin atomic select case when a then 1 end; end",
                "select 2",
            ],
        ),
        ("begin; select 1; end;", ["begin", "select 1", "end"]),
        ("select 1\\; select 2;", ["select 1; select 2"]),
        ("select 1 \\g\nselect 2 \\gset\nselect 3;", ["select 1", "select 3"]),
        ("\\d t\n\\set x 1\nselect :x;select a[1:b], 1::int;", ["select a[1:b], 1::int"]),
        (
            "\\if :skip\n\\quit\nselect 1;\n\\else\nselect 2;\n\\endif\nselect 3;",
            ["select 2", "select 3"],
        ),
    ],
)
def test_statements(text: str, expected: list[str]) -> None:
    assert texts(text) == expected


def test_lines_of_copy_and_numbers_of_lines() -> None:
    text = "-- x\ncopy t from stdin;\n1;\n2\n\\.\n\nselect\n 1;\n"
    assert list(split(text)) == [
        Statement("copy t from stdin", 2, "1;\n2\n"),
        Statement("select\n 1", 7),
    ]


def test_the_file_of_a_copy() -> None:
    text = "\\set filename :abs_srcdir '/data/a.data'\ncopy t from :'filename';"
    assert list(split(text)) == [Statement("copy t from :'filename'", 2, file="data/a.data")]
