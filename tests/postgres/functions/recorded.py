"""PostgreSQL's answers: recorded once from a real server, read in every run.

One JSON array a line: the expression, the type's name or the SQLSTATE behind `!`, the value's text
or the error's message (null for NULL).
"""

import json
from dataclasses import dataclass
from pathlib import Path

TESTDATA = Path(__file__).parent / "testdata"
TEXT_MAX = 1_000
"""Longer answers, of repeat() and its like, are not recorded."""
_DATABASE = "answers"


@dataclass(frozen=True, slots=True)
class Answer:
    """What PostgreSQL said. `kind`: a pg_type.typname, or `!` and a SQLSTATE."""

    kind: str
    text: str | None

    @property
    def failed(self) -> bool:
        """Whether it was an error."""
        return self.kind.startswith("!")


def read(family: str) -> dict[str, Answer]:
    """All recorded answers of a family (`samples.FAMILIES`), by expression."""
    lines = (TESTDATA / f"{family}.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return {expression: Answer(kind, text) for expression, kind, text in rows}


def write(family: str, answers: dict[str, Answer]) -> None:
    """Replace the recorded answers."""
    lines = [
        json.dumps([expression, answer.kind, answer.text], ensure_ascii=False)
        for expression, answer in answers.items()
    ]
    path = TESTDATA / f"{family}.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def ask(dsn: str, expressions: list[str]) -> dict[str, Answer]:
    """Ask a running PostgreSQL."""
    import psycopg

    answers: dict[str, Answer] = {}
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"drop database if exists {_DATABASE}")
        connection.execute(
            f"create database {_DATABASE} template template0"
            " locale_provider builtin builtin_locale 'C.UTF-8' lc_collate 'C' lc_ctype 'C'"
        )
    with psycopg.connect(dsn, autocommit=True, dbname=_DATABASE) as connection:
        connection.execute("set timezone = 'UTC'")
        names = dict(connection.execute("select oid::int8, typname::text from pg_type").fetchall())
        for expression in expressions:
            result = connection.pgconn.exec_(f"select {expression}".encode())
            state = result.error_field(psycopg.pq.DiagnosticField.SQLSTATE)
            if state is not None:
                message = result.error_field(psycopg.pq.DiagnosticField.MESSAGE_PRIMARY) or b""
                answers[expression] = Answer(f"!{state.decode()}", message.decode())
                continue
            value = result.get_value(0, 0)
            answers[expression] = Answer(
                names[result.ftype(0)], None if value is None else value.decode()
            )
    return {text: answer for text, answer in answers.items() if len(answer.text or "") < TEXT_MAX}
