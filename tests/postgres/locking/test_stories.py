"""Stories of sessions that wait for each other happen as recorded of PostgreSQL.

`REWRITE=1` asks a PostgreSQL and records; for stories that differ it records Meridian, too.
"""

import os
from collections.abc import Iterator
from difflib import unified_diff

import pytest

from tests.postgres.locking.sessions import POSTGRES_SETTINGS
from tests.postgres.locking.stories import (
    groups,
    play_all,
    record,
    recorded,
    steps_of,
    stories,
)
from tests.support.servers import postgres
from tests.support.stack import WITHOUT_CUTS, serving

NOT_YET: frozenset[str] = frozenset()
"""Files that Meridian does not play yet."""

ENABLED = sorted(groups() - NOT_YET)


@pytest.fixture(scope="module")
def ours() -> Iterator[str]:
    with serving(core=WITHOUT_CUTS) as dsn:
        yield dsn


@pytest.fixture(scope="module")
def theirs() -> Iterator[str]:
    with postgres(POSTGRES_SETTINGS) as dsn:
        yield dsn


def check(told: dict[str, str], expected: dict[str, str]) -> None:
    """All stories at once, so that a failure shows what they have in common."""
    texts = ["\n".join(found.values()).splitlines() for found in (expected, told)]
    difference = "\n".join(unified_diff(*texts, "recorded", "now", lineterm=""))
    assert not difference, difference


@pytest.mark.skipif(os.environ.get("REWRITE") != "1", reason="REWRITE=1 records PostgreSQL")
@pytest.mark.parametrize("group", sorted(groups()))
def test_rewrite(group: str, theirs: str, ours: str) -> None:
    record(group, play_all(theirs, group, is_postgresql=True), ".out")
    if group in ENABLED:
        differing = {story.name for story in stories(group) if story.differs}
        told = play_all(ours, group, is_postgresql=False)
        record(group, {n: text for n, text in told.items() if n in differing}, ".meridian")


@pytest.mark.parametrize("group", ENABLED)
def test_meridian(group: str, ours: str) -> None:
    told = play_all(ours, group, is_postgresql=False)
    check(told, recorded(group, ".out") | recorded(group, ".meridian"))


@pytest.mark.slow
@pytest.mark.parametrize("group", sorted(groups()))
def test_postgresql(group: str, theirs: str) -> None:
    check(play_all(theirs, group, is_postgresql=True), recorded(group, ".out"))


@pytest.mark.parametrize("group", sorted(groups()))
def test_every_story_is_recorded_as_it_is(group: str) -> None:
    for story in stories(group):
        lines = [line for step in story.steps for line in str(step).splitlines()]
        assert steps_of(recorded(group, ".out")[story.name]) == lines, f"REWRITE=1: {story.name}"


@pytest.mark.parametrize("group", ENABLED)
def test_stories_that_differ_say_so(group: str) -> None:
    differing = {story.name for story in stories(group) if story.differs}
    ours, theirs = recorded(group, ".meridian"), recorded(group, ".out")
    assert ours.keys() == differing
    assert not {name for name in differing if ours[name] == theirs[name]}, "they do not differ"
