"""Texts of definitions are PostgreSQL's, byte for byte, and may be run again (D1, Z1).

REWRITE=1 asks a real server again. `testdata/differences.txt` lists what differs: a text a line,
its number, and why.
"""

import json
import os
from collections.abc import Iterator, Mapping

import psycopg
import pytest

from tests.postgres.definitions import corpus
from tests.postgres.definitions.corpus import Connection
from tests.support.servers import fresh_database, postgres
from tests.support.stack import serving

SHARE_MIN = 0.98


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    """Everything is defined there."""
    with serving() as dsn, psycopg.connect(dsn, autocommit=True) as found:
        found.execute("set timezone = 'UTC'")
        corpus.define(found)
        yield found


@pytest.mark.skipif(os.environ.get("REWRITE") != "1", reason="REWRITE=1 records PostgreSQL")
def test_record() -> None:
    with postgres() as dsn, psycopg.connect(fresh_database(dsn), autocommit=True) as found:
        found.execute("set timezone = 'UTC'")
        corpus.define(found)
        texts = corpus.texts(found) | corpus.define_again(found)
    texts = {name: shown for name, shown in texts.items() if "_toast" not in name}
    text = json.dumps(texts, indent=0, ensure_ascii=False, sort_keys=True)
    corpus.RECORDED.write_text(f"{text}\n")


def test_texts_are_those_of_postgresql(connection: Connection) -> None:
    shown = corpus.texts(connection)
    _compare(shown, _recorded("again ", is_again=False))


def test_a_view_is_made_again_from_its_text(connection: Connection) -> None:
    _compare(corpus.define_again(connection), _recorded("again ", is_again=True))
    for name, query in corpus.views().items():
        if name.startswith("q") and "now()" not in query:
            assert _rows(connection, f"pretty_{name}") == _rows(connection, name), name


def _recorded(start: str, *, is_again: bool) -> dict[str, list[object]]:
    recorded = corpus.recorded().items()
    return {name: texts for name, texts in recorded if name.startswith(start) is is_again}


def _compare(shown: Mapping[str, list[object]], recorded: Mapping[str, list[object]]) -> None:
    pairs = {
        f"{name} {number}": (text, ours)
        for name, texts in recorded.items()
        for number, (text, ours) in enumerate(
            zip(texts, shown.get(name, [None] * len(texts)), strict=True)
        )
    }
    differing = {name for name, (text, ours) in pairs.items() if text != ours}
    listed = {line.partition(":")[0] for line in corpus.lines("differences.txt")}
    assert {name: pairs[name] for name in sorted(differing - listed)} == {}
    assert listed & pairs.keys() <= differing, "take out of the list what differs no more"
    assert len(differing) <= len(pairs) * (1 - SHARE_MIN)


def _rows(connection: Connection, name: str) -> list[str]:
    return sorted(map(str, connection.execute(f"select * from {name}".encode()).fetchall()))
