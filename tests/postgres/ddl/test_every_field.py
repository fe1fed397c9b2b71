"""Nothing is accepted and forgotten: each field of each node of the parser is accounted for.

`testdata/fields/*.txt` says of every field of every node of pglast what becomes of it, and proves
it by examples: statements without and with it.

    SelectStmt.distinctClause honoured      a node, a field, an outcome
    & SET search_path = f                   beforehand
    - SELECT a FROM r                       without it
    + SELECT DISTINCT a FROM r              with it; several are several examples
    ? SELECT 1                              asked after both

    honoured        the answers differ, and are those that PostgreSQL gives
    own: why        the answers differ, and are not those of PostgreSQL
    ignored: why    the answers are the same, in PostgreSQL too
    refused STATE   the statement with it is refused, the one without it is not
    unset           the parser gives it one and the same value everywhere
    never: VALUES   values of an enumeration that no statement has

A node without a field is a statement that is `refused` as a whole, or a node that is `unset`: the
parser never makes it. Each example is played in a transaction that is rolled back, after
`before.sql`. PostgreSQL's answers are recorded in `answers.out` by this module run as a program.

INVARIANTS
  F1  every field of every node stands in the table, but for places in the text.
  F2  every value of an enumeration is in an example, or named as one that no statement has.
  F3  what is said to be with and without a field is so in the parser's tree.
"""

import ast as python
import contextlib
import re
from collections.abc import Iterator, Sequence
from enum import IntEnum

import psycopg
import pytest
from pglast import enums

from tests.postgres.ddl.every_field import (
    DIRECTORY,
    NODES,
    Entry,
    Example,
    entries,
    is_enumeration,
    tree,
    values,
)
from tests.support.servers import postgres
from tests.support.stack import serving

ENTRIES = entries()
ANSWERS = DIRECTORY / "answers.out"
SETUP = (DIRECTORY / "before.sql").read_text().splitlines()

_PROVED = [entry for entry in ENTRIES if entry.examples]
_RECORDED = {"honoured", "ignored"}
_ERROR = "error "


class Player:
    """One connection that plays scripts and tells answers: a SQLSTATE, or a tag and rows."""

    def __init__(self, dsn: str) -> None:
        self._dsn = psycopg.conninfo.make_conninfo(dsn, user="postgres", dbname="postgres")
        self._heard: list[object] = []
        self._connection = self._connected()

    def _connected(self) -> "psycopg.Connection[tuple[object, ...]]":
        connection = psycopg.connect(self._dsn, autocommit=True, prepare_threshold=None)
        for line in SETUP:
            connection.execute(line.encode())
        connection.add_notify_handler(lambda n: self._heard.append((n.channel, n.payload)))
        return connection

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def play(self, script: Sequence[str]) -> list[object]:
        """The answers to a script that leaves nothing behind, and then what was heard."""
        self._heard.clear()
        if self._connection.closed:
            self._connection = self._connected()
        self._answer("BEGIN")
        answers = [self._answer(line) for line in script]
        if self._connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
            self._connection.close()
        else:
            self._answer("ROLLBACK")
            self._answer("DEALLOCATE ALL")
        return answers + self._heard

    def _answer(self, line: str) -> object:
        statement, _, data = line.partition(" << ")
        try:
            cursor = self._connection.cursor()
            if re.match(r"(?i)copy\b.* (stdin|stdout)\b", statement):
                return _copied(cursor, statement, data)
            cursor.execute(statement.encode())
        except psycopg.Error as error:
            return f"{_ERROR}{error.sqlstate}"
        if cursor.description is None:
            return cursor.statusmessage
        rows = [tuple(map(str, row)) for row in cursor.fetchall()]
        columns = [(column.name, _known(column.type_code)) for column in cursor.description]
        ordered = rows if "order by" in line.lower() else sorted(rows)
        return (cursor.statusmessage, columns, ordered)


def _known(oid: int) -> int:
    """A type's oid, if every server gives it."""
    return oid if oid < 10_000 else 0


def _copied(cursor: "psycopg.Cursor[tuple[object, ...]]", statement: str, data: str) -> object:
    with cursor.copy(statement.encode()) as copy:
        if "stdin" in statement.lower():
            copy.write(python.literal_eval(f'b"""{data}"""'))
            return None
        return bytes(b"".join(copy)).decode("latin-1")


@pytest.fixture(scope="module")
def player() -> Iterator[Player]:
    with serving() as dsn, contextlib.closing(Player(dsn)) as player:
        yield player


@pytest.fixture(scope="module")
def recorded() -> dict[str, str]:
    lines = ANSWERS.read_text().splitlines()
    return dict(zip(lines[::2], lines[1::2], strict=True))


@pytest.mark.parametrize("node", sorted(NODES))
def test_every_field_is_in_the_table(node: str) -> None:
    """F1; and the table names no fields that there are not."""
    named = {entry.field for entry in ENTRIES if entry.node == node}
    if named != {""}:
        assert named == set(NODES[node])


def test_every_value_is_shown() -> None:
    """F2."""
    missing = [
        f"{node}.{field}: {value.name}"
        for node, fields in NODES.items()
        for field, c_type in fields.items()
        if is_enumeration(c_type)
        for value in _not_shown(node, field, c_type)
    ]
    assert not missing


def _not_shown(node: str, field: str, c_type: str) -> Iterator[IntEnum]:
    here = [entry for entry in ENTRIES if entry.node == node and entry.field in {"", field}]
    if any(not entry.field or entry.outcome == "unset" for entry in here):
        return
    never = {name for entry in here if entry.outcome == "never" for name in entry.detail.split()}
    shown = {
        value
        for entry in here
        for example in entry.examples
        for statement in (example.statement, example.without)
        if statement is not None
        for value in values(statement, node, field)
    }
    for value in getattr(enums, c_type):
        if value.name not in never and value not in shown:
            yield value


def test_what_is_unset_has_one_value() -> None:
    for name, field in {(entry.node, entry.field) for entry in ENTRIES if entry.outcome == "unset"}:
        if field:
            held = {value for line in _statements() for value in values(line, name, field)}
            assert len(held) <= 1, (name, field, held)
        else:
            made = {type(node).__name__ for line in _statements() for node in tree(line)}
            assert name not in made


def _statements() -> Iterator[str]:
    for entry in ENTRIES:
        for example in entry.examples:
            yield example.statement
            if example.without is not None:
                yield example.without


@pytest.mark.parametrize("entry", _PROVED, ids=lambda entry: entry.name)
def test_a_field_is_accounted_for(player: Player, recorded: dict[str, str], entry: Entry) -> None:
    for example in entry.examples:
        _check_tree(entry, example)
        with_it = player.play(example.script(example.statement))
        without = example.without and player.play(example.script(example.without))
        place = len(example.before)
        match entry.outcome:
            case "refused":
                assert with_it[place] == f"{_ERROR}{entry.detail}", example
                assert without is None or not str(without[place]).startswith(_ERROR), example
            case "ignored":
                assert with_it == without, example
            case _:
                assert with_it != without, (example, with_it)
        if entry.outcome in _RECORDED:
            assert repr(with_it) == recorded.get(_key(example)), example


def _check_tree(entry: Entry, example: Example) -> None:
    """F3."""
    with_it = values(example.statement, entry.node, entry.field) if entry.field else None
    if example.without is not None:
        without = values(example.without, entry.node, entry.field)
        assert with_it != without, (entry.name, example)
    else:
        assert entry.node in {type(node).__name__ for node in tree(example.statement)}, example


def _key(example: Example) -> str:
    return "; ".join(example.script(example.statement))


def record() -> None:
    """Ask PostgreSQL."""
    lines: dict[str, str] = {}
    with postgres() as dsn, contextlib.closing(Player(dsn)) as player:
        for entry in _PROVED:
            if entry.outcome in _RECORDED:
                for example in entry.examples:
                    answers = player.play(example.script(example.statement))
                    lines[_key(example)] = repr(answers)
    text = [part for key, answer in lines.items() for part in (key, answer)]
    ANSWERS.write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    record()
