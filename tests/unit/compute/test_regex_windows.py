"""Matches that are looked for in windows of a long text are those of the whole text."""

import random
from collections.abc import Iterator

import pytest

from compute.reference.functions import regex_match
from compute.reference.functions.regex_match import Matcher, compile_matcher
from compute.reference.functions.regexp import find_matches
from sql.errors import SqlError
from sql.regex.parser import parse_regex
from sql.regex.syntax import Flags

_ATOMS = (
    "a", "b", "c", ".", "[ab]", r"\w", r"\m", r"\M", r"\y", r"\Y", "^", "$", "(?=b)", "(?!a)",
    "(?<=a)", "(?<!b)", "\n",
)  # fmt: skip
_QUANTIFIERS = ("*", "+", "?", "{1,2}", "*?", "+?", "??", "{2}", "{2,}")


def pattern(choose: random.Random, depth: int = 0) -> str:
    kind = choose.random()
    if depth > 2 or kind < 0.4:
        return choose.choice(_ATOMS)
    if kind < 0.6:
        return "".join(pattern(choose, depth + 1) for _ in range(choose.randint(1, 3)))
    inner = pattern(choose, depth + 1)
    if kind < 0.7:
        return f"({inner})"
    if kind < 0.8:
        return f"(?:{inner}|{pattern(choose, depth + 1)})"
    group = "(?:" if choose.random() < 0.5 else "("
    return f"{group}{inner}){choose.choice(_QUANTIFIERS)}"


def matchers(choose: random.Random, count: int) -> Iterator[tuple[str, Matcher]]:
    made = 0
    while made < count:
        text = pattern(choose)
        try:
            matcher = compile_matcher(parse_regex(text, Flags()))
        except SqlError:
            continue  # `^*` and its kin
        made += 1
        yield text, matcher


@pytest.mark.parametrize("window", [1, 8, 21])
def test_random_patterns(window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    choose = random.Random(window)
    for shown, matcher in matchers(choose, 700):
        text = "".join(choose.choice("aabbc \n") for _ in range(choose.randint(0, 60)))
        first = choose.randint(0, 5)
        monkeypatch.setattr(regex_match, "WINDOW", 1 << 20)
        whole = list(find_matches(text, matcher, first))
        monkeypatch.setattr(regex_match, "WINDOW", window)
        assert list(find_matches(text, matcher, first)) == whole, (shown, text)


def test_matches_that_are_longer_than_a_window() -> None:
    text = "a" * 5000 + "b" + "c" * 3000 + "b"
    matcher = compile_matcher(parse_regex("a*b|(c+)b", Flags()))
    assert list(find_matches(text, matcher)) == [[(0, 5001), None], [(5001, 8002), (5001, 8001)]]


def test_many_matches_of_a_long_text() -> None:
    """Each shift of a set of the whole text would make this take minutes."""
    matcher = compile_matcher(parse_regex("a(b)", Flags()))
    assert sum(1 for _ in find_matches("ab" * 50_000, matcher)) == 50_000


def test_the_last_of_many_repetitions() -> None:
    """Of repetitions that are equally long no sets are kept."""
    matcher = compile_matcher(parse_regex("(a|b)*", Flags()))
    assert next(find_matches("ab" * 20_000, matcher)) == [(0, 40_000), (39_999, 40_000)]
