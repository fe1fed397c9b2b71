"""Input and output functions against PostgreSQL's own answers, recorded in `text_values.txt`.

    [type timezone]                 a section: `'input'::type` and its output in that time zone
    "input" = "output"              PostgreSQL's answer
    "input" ! 22P02 message         PostgreSQL's refusal
    "input" # 22008                 PostgreSQL takes it, we refuse it by design (I1, I3, V3)

`REWRITE=1` asks a real PostgreSQL again; what we refuse by design keeps its mark.
"""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from sql.errors import SqlError
from sql.types.sql_type import NUMERIC, SqlType, bpchar, numeric, varchar
from sql.types.text_input import apply_typmod, parse_text
from sql.types.text_output import format_text
from tests.support.servers import postgres

TABLE = Path(__file__).parent / "testdata" / "text_values.txt"


@dataclass(frozen=True, slots=True)
class Case:
    """One line: `answer` begins with `=`, `!` or `#`."""

    type_name: str
    timezone: str
    text: str
    answer: str


def _cases() -> Iterator[Case]:
    type_name, timezone = "", "UTC"
    for line in TABLE.read_text(encoding="utf-8").split("\n"):
        if line.startswith("["):
            type_name, _, zone = line[1:-1].partition(" ")
            timezone = zone or "UTC"
        elif line:
            text, end = json.JSONDecoder().raw_decode(line)
            yield Case(type_name, timezone, text, line[end + 1 :])


def _type(name: str) -> SqlType:
    match = re.fullmatch(r"(\w+)(?:\((\d+)(?:,(\d+))?\))?", name)
    assert match is not None, name
    if match[1] == "numeric":
        return numeric(int(match[2]), int(match[3])) if match[2] else NUMERIC
    length = int(match[2]) if match[2] else None
    if match[1] in ("varchar", "bpchar"):
        return varchar(length) if match[1] == "varchar" else bpchar(length)
    return SqlType(match[1])


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _refusal(sqlstate: str | None, message: str, detail: str | None, hint: str | None) -> str:
    extra = "".join(f" {letter}:{text}" for letter, text in (("D", detail), ("H", hint)) if text)
    return f"! {sqlstate} {_quoted(message + extra)}"


def _ours(case: Case) -> str:
    type_ = _type(case.type_name)
    try:
        value = parse_text(type_.name, case.text, timezone=case.timezone)
        if type_.typmod >= 0:
            value = apply_typmod(value, type_, explicit=True)
    except SqlError as error:
        return _refusal(error.sqlstate, error.message, error.detail, error.hint)
    if type_ == NUMERIC:
        # Without a modifier PostgreSQL shows the scale of the text, and so does the plain value.
        return f"= {_quoted(format(value, 'f'))}"
    return f"= {_quoted(format_text(value, type_, timezone=case.timezone))}"


def _theirs(connection: psycopg.Connection, case: Case) -> str:
    connection.execute(f"SET timezone = '{case.timezone}'")
    # The output function itself: a cast to text would trim char(n).
    query = f"SELECT textin({_output_function(case.type_name)}(%s::{case.type_name}))::text"
    try:
        row = connection.execute(query, (case.text,)).fetchone()
    except psycopg.Error as error:
        diagnostic = error.diag
        return _refusal(
            diagnostic.sqlstate,
            diagnostic.message_primary or "",
            diagnostic.message_detail,
            diagnostic.message_hint,
        )
    assert row is not None
    return f"= {_quoted(row[0])}"


def _output_function(type_name: str) -> str:
    name = type_name.partition("(")[0]
    underscored = ("date", "numeric", "timestamp", "timestamptz", "interval", "uuid")
    return f"{name}_out" if name in underscored else f"{name}out"


def _record() -> None:
    lines: list[str] = []
    section = ""
    with (
        postgres() as dsn,
        psycopg.ClientCursor(psycopg.connect(dsn, autocommit=True)) as cursor,
    ):
        cursor.connection.cursor_factory = psycopg.ClientCursor
        for case in _cases():
            heading = case.type_name + ("" if case.timezone == "UTC" else f" {case.timezone}")
            if heading != section:
                lines += ["", f"[{heading}]"] if section else [f"[{heading}]"]
                section = heading
            theirs = _theirs(cursor.connection, case)
            by_design = case.answer.startswith("#") and theirs.startswith("=")
            answer = case.answer if by_design else theirs
            lines.append(f"{_quoted(case.text)} {answer}")
        cursor.connection.close()
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_values_are_postgresqls() -> None:
    if os.environ.get("REWRITE") == "1":
        _record()
    wrong: list[str] = []
    for case in _cases():
        ours = _ours(case)
        agreed = (
            ours.startswith(f"! {case.answer[2:7]}")
            if case.answer.startswith("#")
            else ours == case.answer
        )
        if not agreed:
            wrong.append(f"{case.type_name} {_quoted(case.text)}: {ours}, not {case.answer}")
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize(("name", "bits"), [("_int2", 16), ("_int4", 32), ("_int8", 64)])
def test_plain_integers_are_read_as_their_elements(name: str, bits: int) -> None:
    """Arrays of plain integers are read at once."""
    half = 1 << (bits - 1)
    for items in ([half - 1, -half], [half], [-half - 1], [10**17, 0], [-0, 7]):
        text = "{" + ",".join(map(str, items)) + "}"
        if all(-half <= item < half for item in items):
            assert parse_text(name, text) == tuple(items)
        else:
            with pytest.raises(SqlError, match="is out of range") as caught:
                parse_text(name, text)
            assert caught.value.sqlstate == "22003"
