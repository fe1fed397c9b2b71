"""Any two definitions, side by side: whatever both leave fits together (G1 of `core/fitting.py`).

    prepared ─▶ other: begin, its definition ── one: its definition ── other: commit
                                                                          ▼
                                              done, or begun again: no reference leads nowhere

Nothing is asked of which of them is refused; nobody's session ends, and no answer is XX000.
"""

import asyncio
import copy
import itertools
import random
from collections.abc import Sequence

import psycopg
import pytest

from coordinator.core.catalog import COLLECTION, VersionedCatalog, decode_changes
from coordinator.core.fitting import misfits
from storage.memory import MemoryObjectStore, MemoryStash
from tests.session.definition_clients import BROKEN
from tests.session.definition_pairs import DEFINITIONS, FOUND, SETUP
from tests.session.stack import serving

Prepared = tuple[MemoryStash, MemoryObjectStore]
LEVELS = ("read committed", "serializable")
SAMPLE = 60


@pytest.fixture(scope="module")
def prepared() -> Prepared:
    stash, store = MemoryStash(), MemoryObjectStore()
    with serving(stash=stash, store=store) as dsn, psycopg.connect(dsn, autocommit=True) as one:
        for text in SETUP:
            one.execute(text.encode())
    return stash, store


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("pair", FOUND)
def test_what_did_not_fit_once(prepared: Prepared, pair: tuple[str, str], level: str) -> None:
    _play(prepared, pair, level)
    _play(prepared, pair[::-1], level)


def test_some_pairs(prepared: Prepared) -> None:
    rng = random.Random(SAMPLE)
    for _ in range(SAMPLE):
        _play(prepared, rng.sample(DEFINITIONS, 2), rng.choice(LEVELS))


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("first", DEFINITIONS)
def test_all_pairs(prepared: Prepared, first: str, level: str) -> None:
    for pair in itertools.product([first], DEFINITIONS):
        _play(prepared, pair, level)


def test_each_alone(prepared: Prepared) -> None:
    """Who is alone has nobody to be begun again for."""
    for text in DEFINITIONS:
        stash, store = copy.deepcopy(prepared)
        with serving(stash=stash, store=store) as dsn, psycopg.connect(dsn, autocommit=True) as one:
            assert _refused(one, [text, *_end(text)]) not in ("40001", *BROKEN), text
        _look(stash, [text])


def _play(prepared: Prepared, pair: Sequence[str], level: str) -> None:
    stash, store = copy.deepcopy(prepared)
    first, second = pair
    with (
        serving(stash=stash, store=store) as dsn,
        psycopg.connect(dsn, autocommit=True) as one,
        psycopg.connect(dsn, autocommit=True) as other,
    ):
        begun = [f"begin isolation level {level}", second.removeprefix("begin; ")]
        answers = [
            _refused(other, begun),
            _refused(one, [first, *_end(first)]),
            _refused(other, ["commit"]),
        ]
        assert not {*answers} & {*BROKEN}, (pair, level, answers)
        assert [one.closed, other.closed] == [False, False], (pair, level)
    _look(stash, pair)


def _end(text: str) -> Sequence[str]:
    return ["commit"] if text.startswith("begin") else []


def _refused(connection: "psycopg.Connection[tuple[object, ...]]", texts: Sequence[str]) -> str:
    """The SQLSTATE that one of them was refused with, or nothing."""
    try:
        for text in texts:
            connection.execute(text.encode())
    except psycopg.Error as error:
        return error.sqlstate or "no answer"
    return ""


def _look(stash: MemoryStash, said: Sequence[str]) -> None:
    catalog = VersionedCatalog(decode_changes(asyncio.run(stash.scan(COLLECTION)))).current
    assert [*misfits(catalog)] == [], said
