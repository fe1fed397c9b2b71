"""Meridian's own grammar under arbitrary words: statements, or an error at a place in the text."""

import random

import pytest
from pglast import parser

from coordinator.session.prepared_statements import DeclareCursorCommand, parse_named_command
from sql.binder.bind import bind
from sql.errors import SqlError
from sql.parser.meridian_nodes import parsed_parts
from sql.parser.parse import parse
from sql.parser.syntax import is_a
from tests.unit.sql.described import context

STARTS = [
    "create timeline", "drop timeline", "advance timeline", "create read hold", "drop read hold",
    "explain timestamp for", "explain (format json) timestamp for", "optimize",
    "create source", "alter source", "drop source", "create tables from source",
    "create table x from source", "alter table t detach source", "create connection",
    "create table x (a int)", "select 1", "begin", "vacuum", "analyze", "alter table t",
    "advance read hold", "subscribe", "declare x cursor for", "declare x no scroll cursor for tail",
    "fetch", "fetch 1 x with",
]  # fmt: skip
WORDS = [
    "if", "not", "exists", "x", '"X y"', "line", "system", "clock", "manual", "to", "at", "in",
    "timeline", "as", "of", "at least", "for", "select a from t", "table t", "t", "1", "$1", "'x'",
    "now()", "(", ")", ",", ";", "--c\n", "/* c */", "u&\"d\\0061t\"", "é", "explain", "timestamp",
    "(timeout '1s')", "scroll", "cursor", "subscribe", "with", "timeout", "all", "from",
    "generator", "counter", "auction", "max rows 1", "seed 2", "pause", "resume", "cascade",
    "source", "reference", "detach", ".",
    "with (history = '1 day')", "rename to y", "set (history = 1)", "null", "-", "::int8",
]  # fmt: skip


def _bound(text: str) -> int:
    """Parse and bind all of it: the number of statements. Raises SqlError."""
    statements = [item for item in parse(text) if item.node is not None]
    for statement in statements:
        named = parse_named_command(statement)
        if named is None:
            bind(statement, context(), ())
        elif isinstance(named, DeclareCursorCommand):
            bind(named.statement, context(), ())
    return len(statements)


def _refusal(text: str) -> SqlError | None:
    try:
        _bound(text)
    except SqlError as error:
        return error
    return None


@pytest.mark.parametrize("seed", range(20))
def test_any_words_are_a_statement_or_an_error_in_its_place(seed: int) -> None:
    rng = random.Random(seed)
    understood = 0
    for _ in range(150):
        words = [rng.choice(STARTS), *rng.choices(WORDS, k=rng.randrange(7))]
        text = rng.choice(["", "select 2; ", "/* é */ "]) + " ".join(words)
        refusal = _refusal(text)
        if refusal is None:
            understood += 1
        else:
            assert refusal.sqlstate != "XX000", (text, refusal)
            place = refusal.position
            assert place is None or 1 <= place <= len(text) + 1, (text, refusal)
    assert understood > 2


def test_what_postgresql_understands_keeps_its_meaning() -> None:
    texts = [
        "select 1 as timeline", "create table timeline (clock int, hold int)",
        "select at from t as of", "explain select 1", "select timestamp '2024-01-01'",
        "create table optimize (a int)", "select advance, manual from read",
    ]  # fmt: skip
    for text in texts:
        (ours,), (theirs,) = parse(text), parser.parse_sql(text)
        assert is_a(ours.node, type(theirs.stmt))
        assert ours.as_of is None


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("/* é */ advance timeline line to 'ü' || nope", "nope"),
        ("create read hold r at nope() in timeline line", "nope"),
        ("select 'é'; create table x (a nope) in timeline line", "nope"),
        ("explain timestamp for select 'é', nope from t as of 5", "nope"),
        ("explain timestamp for select a from t as of nope", "nope"),
        ("create table m (a int default 'x') in timeline nope", "nope"),
    ],
)
def test_places_are_those_of_the_text_that_was_sent(text: str, part: str) -> None:
    refusal = _refusal(text)
    assert refusal is not None
    assert refusal.position == text.index(part) + 1


def test_parts_are_read_in_their_place() -> None:
    text = "create read hold r at now() - interval '1 hour' in timeline line"
    (statement,) = parse(text)
    assert statement.node is not None
    (part,) = parsed_parts(statement.node)  # type: ignore[arg-type]
    assert part.source.strip() == "SELECT now() - interval '1 hour'"
    assert part.source.index("now") == text.index("now")
