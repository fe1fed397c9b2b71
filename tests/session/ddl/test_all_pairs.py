"""Any two concurrent definitions leave a consistent catalog, with locks and without.

    prepared ─▶ other: begin, its definition ── one: its definition ── other: commit
                                                   │ waits, perhaps       ▼
                                              done, or begun again: no reference leads nowhere

Nothing is asked of which of them is refused; nobody's session ends, and no answer is XX000. Without
locks nobody waits, and validation alone decides.
"""

import asyncio
import copy
import itertools
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from coordinator.core.catalog import COLLECTION, VersionedCatalog, decode_changes
from coordinator.core.catalog_references import broken_references
from sql.binder.broken_definitions import find_broken_definitions
from storage.memory import MemoryObjectStore, MemoryStash
from tests.session.ddl import conflicting_pairs as resting_pairs
from tests.session.ddl.definition_clients import BROKEN
from tests.session.ddl.definition_pairs import DEFINITIONS, FOUND, SETUP
from tests.support.stack import WITHOUT_LOCKS, serving

Prepared = tuple[MemoryStash, MemoryObjectStore]
Connection = psycopg.Connection[tuple[object, ...]]
LEVELS = ("read committed", "serializable")
RESTING = [*itertools.product(resting_pairs.RESTING, resting_pairs.CHANGES)]
SAMPLE = 60


@pytest.fixture(scope="module")
def prepared() -> Prepared:
    return _prepared(SETUP)


@pytest.fixture(scope="module")
def resting() -> Prepared:
    return _prepared((*SETUP, *resting_pairs.SETUP))


def _prepared(texts: Sequence[str]) -> Prepared:
    stash, store = MemoryStash(), MemoryObjectStore()
    with serving(stash=stash, store=store) as dsn, psycopg.connect(dsn, autocommit=True) as one:
        for text in texts:
            one.execute(text.encode())
    return stash, store


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("pair", FOUND)
def test_what_did_not_fit_once(prepared: Prepared, pair: tuple[str, str], level: str) -> None:
    _play(prepared, pair, level)
    _play(prepared, pair[::-1], level)
    _play_with_locks(prepared, pair, level)
    _play_with_locks(prepared, pair[::-1], level)


def test_some_pairs(prepared: Prepared) -> None:
    rng = random.Random(SAMPLE)
    for _ in range(SAMPLE):
        _play(prepared, rng.sample(DEFINITIONS, 2), rng.choice(LEVELS))


def test_some_pairs_of_which_one_waits(prepared: Prepared) -> None:
    rng = random.Random(SAMPLE)
    pairs = [rng.sample(DEFINITIONS, 2) for _ in range(SAMPLE)]
    waited = [_play_with_locks(prepared, pair, rng.choice(LEVELS)) for pair in pairs]
    assert any(waited)
    assert not all(waited)


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("first", DEFINITIONS)
def test_all_pairs(prepared: Prepared, first: str, level: str) -> None:
    for pair in itertools.product([first], DEFINITIONS):
        _play(prepared, pair, level)
        _play_with_locks(prepared, pair, level)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("pair", resting_pairs.FOUND)
def test_what_had_no_meaning_once(resting: Prepared, pair: tuple[str, str], level: str) -> None:
    _play(resting, pair, level)
    _play(resting, pair[::-1], level)
    _play_with_locks(resting, pair, level)
    _play_with_locks(resting, pair[::-1], level)


def test_some_that_rest_on_something(resting: Prepared) -> None:
    rng = random.Random(SAMPLE)
    for pair in rng.sample(RESTING, SAMPLE // 2):
        _play(resting, rng.sample(pair, 2), rng.choice(LEVELS))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("pair", resting_pairs.SAID)
def test_what_was_said_is_not_lost(resting: Prepared, pair: tuple[str, str], level: str) -> None:
    assert _play(resting, pair, level) == ["", "", "40001"]
    assert _play(resting, pair[::-1], level) == ["", "", "40001"]


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("first", resting_pairs.RESTING)
def test_all_that_rest_on_something(resting: Prepared, first: str, level: str) -> None:
    for change in resting_pairs.CHANGES:
        _play(resting, (first, change), level)
        _play(resting, (change, first), level)
        _play_with_locks(resting, (first, change), level)
        _play_with_locks(resting, (change, first), level)


def test_each_alone(prepared: Prepared) -> None:
    """Who is alone has nobody to be begun again for."""
    for text in DEFINITIONS:
        stash, store = copy.deepcopy(prepared)
        with serving(stash=stash, store=store) as dsn, psycopg.connect(dsn, autocommit=True) as one:
            assert _refused(one, [text, *_end(text)]) not in ("40001", *BROKEN), text
        _look(stash, [text])


def _play(prepared: Prepared, pair: Sequence[str], level: str) -> Sequence[str]:
    """What the second of them heard when it was begun, the first, and the second in the end."""
    stash, store = copy.deepcopy(prepared)
    first, second = pair
    with (
        serving(stash=stash, store=store, core=WITHOUT_LOCKS) as dsn,
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
    return answers


def _play_with_locks(prepared: Prepared, pair: Sequence[str], level: str) -> bool:
    """The same; the first waits for the second, where locks say so. Whether it has waited."""
    stash, store = copy.deepcopy(prepared)
    first, second = pair
    with (
        ThreadPoolExecutor(1) as thread,
        serving(stash=stash, store=store) as dsn,
        psycopg.connect(dsn, autocommit=True) as one,
        psycopg.connect(dsn, autocommit=True) as other,
        psycopg.connect(dsn, autocommit=True) as looking,
    ):
        begun = [f"begin isolation level {level}", second.removeprefix("begin; ")]
        answers = [_refused(other, begun)]
        running = thread.submit(_refused, one, [first, *_end(first)])
        waits = False
        while not waits and not running.done():
            waits = _is_blocked(looking, one)
        answers += [_refused(other, ["commit"]), running.result()]
        assert not {*answers} & {*BROKEN}, (pair, level, answers)
        assert [one.closed, other.closed] == [False, False], (pair, level)
    _look(stash, pair)
    return waits


def _is_blocked(looking: Connection, session: Connection) -> bool:
    pid = session.info.backend_pid
    found = looking.execute("select cardinality(pg_blocking_pids(%s))", (pid,)).fetchone()
    assert found is not None
    return found[0] != 0


def _end(text: str) -> Sequence[str]:
    return ["commit"] if text.startswith("begin") else []


def _refused(connection: Connection, texts: Sequence[str]) -> str:
    """The SQLSTATE that one of them was refused with, or nothing."""
    try:
        for text in texts:
            connection.execute(text.encode())
    except psycopg.Error as error:
        return error.sqlstate or "no answer"
    return ""


def _look(stash: MemoryStash, said: Sequence[str]) -> None:
    catalog = VersionedCatalog(decode_changes(asyncio.run(stash.scan(COLLECTION)))).current
    assert [*broken_references(catalog)] == [], said
    assert [*find_broken_definitions(catalog)] == [], said
