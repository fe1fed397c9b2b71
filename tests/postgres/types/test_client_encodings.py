"""Clients in other encodings than UTF-8, byte by byte, as recorded from PostgreSQL.

Run as a program, this module asks PostgreSQL and records its answers.
"""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import pq

from tests.support.servers import meridian, postgres

RECORDED = Path(__file__).parent / "testdata" / "client_encodings.out"

_STORY: tuple[tuple[str, bytes, tuple[tuple[bytes, int], ...], int], ...] = (
    # encoding to set or empty; statement; parameters with their formats; format of the results
    ("LATIN1", b"show client_encoding", (), 0),
    ("", b"select pg_client_encoding()", (), 0),
    ("", b"create table t (a text, \xe4 varchar(9), j json, l text[])", (), 0),
    ("", b"insert into t values ('\xe9', 'm\xfc\xdf', '{\"\xe4\": 1}', '{\xe9,b}')", (), 0),
    ("", b"select * from t", (), 0),
    ("", b"select a, \xe4, j from t", (), 1),
    ("", b"select 5, 1.5::float8, '\\xe9'::bytea, a from t", (), 1),
    ("", b"select length(a), octet_length(a) from t", (), 0),
    ("", b"select $1::text, length($1::text)", ((b"\xe9\xe8", 0),), 0),
    ("", b"select $1::text, octet_length($1::text)", ((b"\xe9\xe8", 1),), 1),
    ("", b"select $1::int4, $2::varchar", ((b"\0\0\0\xe9", 1), (b"\xc3\xa9", 1)), 0),
    ("", b"select chr(8364)", (), 0),
    ("", b"select 1 as \"a\xe9\", 'x' union all select 2, chr(20013)", (), 0),
    ("", b"select '\xe4'::int", (), 0),
    ("", b"select * from \xe4\xf6", (), 0),
    ("", b"set client_encoding = 'WIN1252'; select chr(8364), '\x80'", (), 0),
    ("", b"select '\x81'", (), 0),
    ("", b"select chr(8364), 'a'", (), 0),
    ("", b"begin; set local client_encoding = 'latin9'; select chr(8364)", (), 0),
    ("", b"rollback", (), 0),
    ("", b"show client_encoding", (), 0),
    ("LATIN2", b"select * from t where a = '\xe9'", (), 0),
    ("iso_8859_5", b"select chr(1046), upper('\xd6')", (), 0),
    ("KOI8R", b"select chr(1046), '\xf6' = chr(1046)", (), 0),
    ("windows-1251", b"show client_encoding", (), 0),
    ("SQL_ASCII", b"select a, '\xc3\xa9', pg_client_encoding() from t", (), 0),
    ("", b"select '\xe9'", (), 0),
    ("nope", b"show client_encoding", (), 0),
    ("unicode", b"select a, pg_client_encoding() from t", (), 0),
    ("LATIN1", b"reset client_encoding; select a from t", (), 0),
)
_COPIES = (
    ("LATIN1", b"copy t (a) from stdin", b"\xe9\n\xc3\xa9\n"),
    ("LATIN1", b"copy t (a) from stdin (encoding 'UTF8')", b"\xc3\xa9\n"),
    ("WIN1252", b"copy t (a) from stdin", b"\x81\n"),
    ("LATIN1", b"copy (select a from t order by 1) to stdout", None),
    ("LATIN1", b"copy (select a from t order by 1) to stdout (encoding 'UTF8')", None),
    ("UTF8", b"copy (select a from t order by 1) to stdout (encoding 'LATIN1')", None),
    ("LATIN1", b"copy (select chr(8364)) to stdout", None),
    ("SQL_ASCII", b"copy (select a from t order by 1) to stdout", None),
)


def _shown(result: pq.PGresult) -> Iterator[str]:
    if result.error_message:
        state = result.error_field(pq.DiagnosticField.SQLSTATE)
        yield f"E {state!r} {result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY)!r}"
        return
    names = [result.fname(at) for at in range(result.nfields)]
    yield f"{result.command_status!r} {names}"
    for row in range(result.ntuples):
        yield str([result.get_value(row, at) for at in range(result.nfields)])


def _answers(dsn: str) -> Iterator[str]:
    place = psycopg.conninfo.make_conninfo(dsn, user="postgres", dbname="postgres")
    connection = pq.PGconn.connect(place.encode())
    assert connection.status == pq.ConnStatus.OK, connection.error_message
    connection.exec_(b"drop table if exists t")
    for encoding, statement, parameters, code in _STORY:
        if encoding:
            yield f"# {encoding}"
            yield from _shown(connection.exec_(f"set client_encoding = '{encoding}'".encode()))
        yield f"> {statement!r} {parameters or ''}".rstrip()
        if parameters or code:
            values, formats = [value for value, _ in parameters], [f for _, f in parameters]
            result = connection.exec_params(
                statement, values, param_formats=formats, result_format=code
            )
        else:
            result = connection.exec_(statement)
        yield from _shown(result)
        yield f"{connection.parameter_status(b'client_encoding')!r}"
    for encoding, statement, data in _COPIES:
        connection.exec_(f"set client_encoding = '{encoding}'".encode())
        yield f"> {encoding} {statement!r}"
        connection.exec_(statement)
        if data is not None:
            connection.put_copy_data(data)
            connection.put_copy_end()
        else:
            while (found := connection.get_copy_data(0))[0] > 0:
                yield f"{bytes(found[1])!r}"
        while (result := connection.get_result()) is not None:
            yield from _shown(result)
    connection.exec_(b"set client_encoding = 'UTF8'")
    yield from _shown(connection.exec_(b"select a, count(*) from t group by 1 order by 1"))
    connection.finish()


@pytest.fixture
def dsn(tmp_path: Path) -> Iterator[str]:
    """A server in a process of its own: libpq's blocking calls stop all threads of theirs."""
    with meridian(tmp_path, ("--spark-master", "reference")) as server:
        yield server.dsn


def test_clients_in_other_encodings(dsn: str) -> None:
    assert "\n".join(_answers(dsn)) + "\n" == RECORDED.read_text()


def test_what_cannot_be_converted_whole_is_refused(dsn: str) -> None:
    connection = pq.PGconn.connect(dsn.encode())
    connection.exec_(b"set client_encoding = 'LATIN1'")
    for statement, value in (
        (b"select array['\xe9']", b""),
        (b"select row('\xe9')", b""),
        (b"select $1::text[]", b"\xe9"),
    ):
        given = [value] if value else []
        result = connection.exec_params(
            statement, given, param_formats=[1] * len(given), result_format=1
        )
        assert result.error_field(pq.DiagnosticField.SQLSTATE) == b"0A000"
    result = connection.exec_(b"copy (select 1) to stdout (format binary)")
    assert result.error_field(pq.DiagnosticField.SQLSTATE) == b"0A000"
    result = connection.exec_(b"set client_encoding = 'SJIS'")
    assert result.error_field(pq.DiagnosticField.SQLSTATE) == b"0A000"
    assert connection.exec_(b"select 'x'").get_value(0, 0) == b"x"
    connection.finish()


if __name__ == "__main__":
    with postgres() as dsn:
        RECORDED.write_text("\n".join(_answers(dsn)) + "\n")
