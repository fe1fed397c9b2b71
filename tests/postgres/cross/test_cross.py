"""Calls of all kinds give PostgreSQL's outcomes on the local engine, or what is known to differ."""

import random
from collections.abc import Iterator

import pytest

from tests.postgres.cross import groups
from tests.postgres.cross.calls import Call, calls, stored_types
from tests.postgres.cross.judging import Tally
from tests.postgres.cross.peers import Peers, peers
from tests.postgres.cross.running import Asking
from tests.postgres.queries.answers import Failed

SETTINGS = ("timezone = 'UTC'",)
SEED = 1
CALLS = 30
STATEMENTS = 40
MEMBERS = 60
ROWS = 50


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peers]:
    place = tmp_path_factory.mktemp("sqlcross")
    with peers(place, "local", SETTINGS, stored_types()) as found:
        yield found


def test_some_functions_operators_and_casts(both: Peers) -> None:
    source, tally = random.Random(SEED), Tally()
    asking = Asking(both, tally, source, ROWS)
    found = calls(both.postgresql)
    for kind in ("function", "operator", "cast", "syntax"):
        of_kind = [call for call in found if _kind(call) == kind]
        for call in source.sample(of_kind, CALLS):
            asking.compare(call)
    assert tally.compared > CALLS * 10
    assert not tally.different


def test_some_aggregates_and_windows(both: Peers) -> None:
    source, tally = random.Random(SEED), Tally()
    both.make(groups.members(source, MEMBERS))
    for statement in source.sample(list(groups.statements(both.postgresql)), STATEMENTS):
        groups.compare(both, tally, statement)
    assert tally.compared > STATEMENTS
    assert not tally.different


@pytest.mark.parametrize(
    ("expected", "found", "counted"),
    [
        ("[1.50, 2]", "[1.5, 2]", "known"),
        ("0.33333333333333333333", "0.333333333333333333", "known"),
        ("1" * 39, Failed("22003", None, "numeric field overflow"), "known"),
        ("1", Failed("22003", None, "integer out of range"), "different"),
        ("0.3", "0.30000000000000004", "different"),
        ("2024-01-02", "2024-01-2", "different"),
        ("1", Failed("0A000", None, ""), "refused"),
        ("1", Failed("42883", None, ""), "unknown"),
        (Failed("22012", None, ""), None, "different"),
        (None, "", "different"),
    ],
)
def test_what_a_difference_counts_as(
    expected: str | Failed | None, found: str | Failed | None, counted: str
) -> None:
    tally = Tally()
    tally.judge("call", "select 1", expected, found)
    counts = {"known": tally.known, "different": tally.different.total()}
    counts |= {"refused": tally.refused.total(), "unknown": len(tally.unknown)}
    assert {name for name, count in counts.items() if count} == {counted}


def _kind(call: Call) -> str:
    if call.template.startswith('"'):
        return "function"
    if call.template.startswith("{0}::"):
        return "cast"
    return "operator" if call.template.startswith("(") else "syntax"
