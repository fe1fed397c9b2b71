"""Describe a statement's columns and parameters as one line, by the binder or a PostgreSQL.

ok (23, 25) a:23:-1:1, ?column?:25:-1:0     parameter types; name, type, modifier, number in its
table error 42703 8 column "nope" does not exist  SQLSTATE, position (- for none), message
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sql.binder.bind import bind
from sql.binder.state import BindContext
from sql.catalog.catalog import SYSTEM_TIMELINE, Catalog, Column, ReadHold, Table, Timeline
from sql.errors import SqlError
from sql.parser.parse import parse
from sql.statements.bound import BoundQuery, CopyOut, Modify, OutputColumn
from sql.types.sql_type import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    NUMERIC,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    SqlType,
    bpchar,
    numeric,
    varchar,
)

if TYPE_CHECKING:
    from psycopg.pq.abc import PGconn

TESTDATA = Path(__file__).parent / "testdata"
SCHEMA = """
create table t (a int, b text, c char(5), d date, f float8, l int8, n numeric(10,2), o bool, r
float4,
  s int2, ts timestamp, tz timestamptz, u numeric, uid uuid, v varchar(10), by bytea);
create table u (x int, y text, z int8);
create table w (a int, b text, q int);
create table odd (a text, "Odd Name" int);
"""
_COLUMNS: dict[str, dict[str, SqlType]] = {
    "t": {
        "a": INT4, "b": TEXT, "c": bpchar(5), "d": DATE, "f": FLOAT8, "l": INT8,
        "n": numeric(10, 2),
        "o": BOOL, "r": FLOAT4, "s": INT2, "ts": TIMESTAMP, "tz": TIMESTAMPTZ, "u": NUMERIC,
        "uid": UUID, "v": varchar(10), "by": BYTEA,
    },
    "u": {"x": INT4, "y": TEXT, "z": INT8},
    "w": {"a": INT4, "b": TEXT, "q": INT4},
    "odd": {"a": TEXT, "Odd Name": INT4},
}  # fmt: skip
NOW = 1_704_103_200_000_000


def catalog() -> Catalog:
    """The tables of SCHEMA, a timeline without a clock and a read hold in it."""
    tables = {
        ("public", name): Table(
            16_384 + number,
            "public",
            name,
            f"shard-{name}",
            tuple(Column(column, type_) for column, type_ in columns.items()),
        )
        for number, (name, columns) in enumerate(_COLUMNS.items())
    }
    timelines = {line.name: line for line in (SYSTEM_TIMELINE, Timeline("line", manual=True))}
    return Catalog(1, frozenset({"public"}), tables, timelines, {"h": ReadHold("h", "line", ts=7)})


def context() -> BindContext:
    """A session in the middle of 2024-01-01."""
    return BindContext(catalog(), ("public",), NOW, user="postgres", database="postgres")


def statements(name: str) -> Iterator[str]:
    """The statements of a data file, one a line."""
    for line in (TESTDATA / name).read_text().splitlines():
        if line.strip() and not line.startswith("--"):
            yield line


def described_here(text: str) -> str:
    """What our binder says."""
    try:
        (statement,) = parse(text)
        prepared = bind(statement, context(), ())
    except SqlError as error:
        place = error.position if error.position is not None else "-"
        return f"error {error.sqlstate} {place} {error.message}"
    bound = prepared.bound
    columns: Sequence[OutputColumn] = ()
    if isinstance(bound, BoundQuery | Modify):
        columns = bound.columns
    elif isinstance(bound, CopyOut):
        columns = bound.query.columns
    shown = [f"{col.name}:{col.type.oid}:{col.type.typmod}:{col.attribute}" for col in columns]
    types = [str(type_.oid) for type_ in prepared.parameters]
    return f"ok ({', '.join(types)}) {', '.join(shown)}".rstrip()


def described_there(connection: "PGconn", text: str) -> str:
    """What PostgreSQL says, by Parse and Describe."""
    from psycopg.pq import DiagnosticField, ExecStatus

    result = connection.prepare(b"", text.encode())
    if result.status != ExecStatus.COMMAND_OK:
        state, place, message = (
            (result.error_field(field) or b"-").decode()
            for field in (
                DiagnosticField.SQLSTATE,
                DiagnosticField.STATEMENT_POSITION,
                DiagnosticField.MESSAGE_PRIMARY,
            )
        )
        return f"error {state} {place} {message}"
    result = connection.describe_prepared(b"")
    shown = [
        f"{(result.fname(i) or b'').decode()}:{result.ftype(i)}:{result.fmod(i)}"
        f":{result.ftablecol(i)}"
        for i in range(result.nfields)
    ]
    types = [str(result.param_type(i)) for i in range(result.nparams)]
    return f"ok ({', '.join(types)}) {', '.join(shown)}".rstrip()
