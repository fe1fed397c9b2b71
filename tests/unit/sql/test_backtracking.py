"""Which patterns are left to a matcher that tries one way after the other."""

import pytest

from sql.regex.backtracking import has_bounded_backtracking
from sql.regex.parser import parse_regex


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "abc",
        "^abc$",
        "foo.*bar",
        "^foo.*bar.*baz$",
        "a+c",
        r"^\d{3}-\d{4}$",
        r"\d+-\d+-\d+$",
        r"(\w)\1",
        "(foo|bar|fab){3}",
        r"^\s*(\w+)\s*=\s*(.*)$",
        r"^(?=.*\d)[a-z\d]{8,}$",
        r"\mword\M",
        "colou?r|gr[ae]y",
        "^a*?b",
    ],
)
def test_ends_soon(pattern: str) -> None:
    assert has_bounded_backtracking(parse_regex(pattern).node)


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$",
        "^(a|aa)+$",
        "(?:a+)+c",
        "(a*)*b",
        "a*a*a*c",
        "foo.*bar.*baz",
        "(.*)(.*)[c]$",
        "^(?:a?){50}a{50}$",
        "((a{0,5}){0,5}){0,5}c",
        r"^(a+)\1*c",
        r"(x?)(?:a+)+c\1",
        "(?=(a+)+c)a",
        "(?!.*.*.*c)b",
        "(ab)*c",
        "(.{0,200}){2}c",
    ],
)
def test_may_not_end(pattern: str) -> None:
    assert not has_bounded_backtracking(parse_regex(pattern).node)
