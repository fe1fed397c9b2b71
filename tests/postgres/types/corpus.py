"""Statements with PostgreSQL's answers: `<name>.sql`, one a line, and what it said, `<name>.jsonl`.

REWRITE=1 pytest tests/postgres/types/test_corpus.py     asks a real PostgreSQL again
REFUSALS=1 pytest tests/postgres/types/test_corpus.py records what we refuse, `<name>_refused.txt`
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import psycopg
import pyarrow as pa

from compute.reference.arrow import to_values
from sql.binder.bind import bind
from sql.binder.state import BindContext
from sql.catalog.catalog import Catalog
from sql.errors import SqlError
from sql.parser.parse import parse
from sql.plan.nodes import Plan, output_columns
from sql.statements.bound import BoundQuery
from sql.types.sql_type import SqlType, Value
from sql.types.text_output import format_text

TESTDATA = Path(__file__).parent / "testdata"
NAMES = ("arrays", "intervals", "json", "times")
Rows = Sequence[Sequence[Value]]
Engine = Callable[[Plan], Awaitable[Rows]]


@dataclass(frozen=True, slots=True)
class Answer:
    """`kind`: the columns' types, or `!` and a SQLSTATE; `rows`: texts, or an error's words."""

    kind: str
    rows: list[list[str | None]]

    @property
    def failed(self) -> bool:
        return self.kind.startswith("!")


def statements(name: str) -> list[str]:
    lines = (TESTDATA / f"{name}.sql").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("--")]


def recorded(name: str) -> dict[str, Answer]:
    lines = (TESTDATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return {sql: Answer(kind, rows) for sql, kind, rows in map(json.loads, lines)}


def record(dsn: str, name: str) -> None:
    """Ask a running PostgreSQL."""
    lines: list[str] = []
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("set timezone = 'UTC'")
        names = dict(connection.execute("select oid::int8, typname::text from pg_type").fetchall())
        for sql in statements(name):
            answer = _asked(connection, sql, names)
            lines.append(json.dumps([sql, answer.kind, answer.rows], ensure_ascii=False))
    (TESTDATA / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _asked(
    connection: psycopg.Connection[tuple[object, ...]], sql: str, names: dict[int, str]
) -> Answer:
    result = connection.pgconn.exec_(sql.encode())
    field = psycopg.pq.DiagnosticField
    state = result.error_field(field.SQLSTATE)
    if state is not None:
        wanted = (field.MESSAGE_PRIMARY, field.MESSAGE_DETAIL, field.STATEMENT_POSITION)
        found = [result.error_field(item) for item in wanted]
        texts = [None if text is None else text.decode() for text in found]
        return Answer(f"!{state.decode()}", [texts])
    columns = range(result.nfields)
    rows = [
        [None if (cell := result.get_value(row, at)) is None else cell.decode() for at in columns]
        for row in range(result.ntuples)
    ]
    return Answer(" ".join(names[result.ftype(at)] for at in columns), rows)


def plan_of(sql: str) -> Plan:
    prepared = bind(parse(sql)[0], BindContext(Catalog(), ["public"], 0), [])
    assert isinstance(prepared.bound, BoundQuery)
    return prepared.bound.plan


async def ours(sql: str, engine: Engine) -> tuple[Answer, list[SqlType]]:
    """The answer of one of our engines."""
    try:
        plan = plan_of(sql)
        types = [column.type for column in output_columns(plan)]
        rows = await engine(plan)
    except SqlError as error:
        place = None if error.position is None else str(error.position)
        return Answer(f"!{error.sqlstate}", [[error.message, error.detail, place]]), []
    texts = [
        [
            None if value is None else format_text(value, t)
            for value, t in zip(row, types, strict=True)
        ]
        for row in rows
    ]
    return Answer(" ".join(type_.name for type_ in types), texts), types


async def rows_of_batches(plan: Plan, batches: AsyncIterator[pa.RecordBatch]) -> Rows:
    """What an engine streams, as rows of values."""
    types = [column.type for column in output_columns(plan)]
    rows: list[tuple[Value, ...]] = []
    async for batch in batches:
        columns = [
            to_values(pa.chunked_array([at]), type_)
            for at, type_ in zip(batch.columns, types, strict=True)
        ]
        rows += zip(*columns, strict=True)
    return rows


def same(found: Answer, types: Sequence[SqlType], expected: Answer) -> bool:
    if found == expected:
        return True
    if found.failed or found.kind != expected.kind or len(found.rows) != len(expected.rows):
        return False
    return all(
        _same_cell(a, b, type_)
        for left, right in zip(found.rows, expected.rows, strict=True)
        for a, b, type_ in zip(left, right, types, strict=True)
    )


def _same_cell(a: str | None, b: str | None, type_: SqlType) -> bool:
    """Zeros behind the point of a numeric without modifier are our own (Y2 of `sql_type.py`)."""
    if a == b or a is None or b is None:
        return a == b
    if type_.name == "numeric" and type_.trim:
        return Decimal(a) == Decimal(b)
    if type_.name == "_numeric" and type_.trim:
        pairs = list(zip(a[1:-1].split(","), b[1:-1].split(","), strict=True))
        return all(x == y or ("NULL" not in (x, y) and Decimal(x) == Decimal(y)) for x, y in pairs)
    return False


async def differences(name: str, engine: Engine) -> AsyncIterator[tuple[str, str, bool]]:
    """Statements with another answer, what it is, and whether it is a refusal."""
    for sql, expected in recorded(name).items():
        found, types = await ours(sql, engine)
        if not same(found, types, expected):
            refused = found.kind == "!0A000" or (found.failed and not expected.failed)
            yield sql, f"{found} instead of {expected}", refused
