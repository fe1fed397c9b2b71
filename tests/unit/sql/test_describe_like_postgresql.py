"""Names, types, modifiers, parameters and errors of statements, as PostgreSQL 18 describes them.

The right side is recorded from a real server: `REWRITE=1 pytest <this file>` records again. A
statement in `describe_deviations.txt` differs on purpose, for the reason that stands there.
"""

import os
from pathlib import Path

import pytest

from tests.support.servers import postgres
from tests.unit.sql.described import SCHEMA, TESTDATA, described_here, described_there, statements

FILES = (
    "describe_select.sql",
    "describe_errors.sql",
    "describe_modify.sql",
    "describe_parameters.sql",
)
REWRITE = os.environ.get("REWRITE") == "1"


def _expected(name: str) -> Path:
    return TESTDATA / name.replace(".sql", ".expected")


def _deviations() -> dict[str, tuple[str, str]]:
    """Statement to reason and to our own answer."""
    found: dict[str, tuple[str, str]] = {}
    reason = statement = ""
    for line in (TESTDATA / "describe_deviations.txt").read_text().splitlines():
        if line.startswith("# "):
            reason = line[2:]
        elif line.startswith("---- "):
            found[statement] = (reason, line[5:])
        elif line:
            statement = line
    return found


@pytest.fixture(scope="module", autouse=True)
def _recorded() -> None:
    if REWRITE:
        _record()


def _record() -> None:
    import psycopg

    with postgres() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("set timezone to 'UTC'")
        connection.execute(SCHEMA)
        for name in FILES:
            lines = [
                f"{text}\n---- {described_there(connection.pgconn, text)}\n"
                for text in statements(name)
            ]
            _expected(name).write_text("\n".join(lines))


def _pairs(name: str) -> dict[str, str]:
    lines = _expected(name).read_text().splitlines()
    return {
        text: answer.removeprefix("---- ").removeprefix("----")
        for text, answer in zip(lines[::3], lines[1::3], strict=True)
    }


@pytest.mark.parametrize("name", FILES)
def test_described_as_postgresql_does(name: str) -> None:
    deviations = _deviations()
    pairs = _pairs(name)
    assert list(pairs) == list(dict.fromkeys(statements(name))), "record again with REWRITE=1"
    wrong = [
        f"{text}\n  expected {expected}\n  found    {found}"
        for text, expected in pairs.items()
        if text not in deviations and (found := described_here(text)) != expected
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def test_deviations_are_what_is_written() -> None:
    recorded = {text: answer for name in FILES for text, answer in _pairs(name).items()}
    for text, (reason, ours) in _deviations().items():
        assert reason, f"no reason for {text}"
        assert described_here(text) == ours, text
        assert recorded[text] != ours, f"no deviation any more: {text}"


def test_there_are_enough_statements() -> None:
    assert sum(len(_pairs(name)) for name in FILES) >= 400
