"""FETCH and EXECUTE that were prepared before what they name existed, or that name another now."""

import struct

import psycopg
from psycopg.pq import ExecStatus

from tests.support.servers import postgres
from tests.support.stack import serving

TUPLES = ExecStatus.TUPLES_OK
STEPS: list[tuple[str, ...]] = [
    ("prepare", "f", "fetch 1 from cc"),
    ("prepare", "x", "execute zz"),
    ("query", "prepare zz as select 5::int"),
    ("run", "x"),
    ("query", "begin; declare cc cursor for select 7::int"),
    ("run", "f"),
    ("query", "close cc; declare cc cursor for select 8::int, 'b'::text"),
    ("run", "f"),
    ("query", "deallocate zz; prepare zz as select 6::int8, true"),
    ("run", "x"),
    ("query", "close cc"),
    ("run", "f"),
]


def answers(dsn: str) -> list[object]:
    """What each step is told, results in binary."""
    told: list[object] = []
    with psycopg.connect(dsn, autocommit=True) as connection:
        wire = connection.pgconn
        for kind, *words in STEPS:
            given = [word.encode() for word in words]
            if kind == "prepare":
                result = wire.prepare(*given)
            elif kind == "query":
                result = wire.exec_(*given)
            else:
                result = wire.exec_prepared(given[0], [], result_format=1)
            formats = [result.fformat(n) for n in range(result.nfields)]
            cells = [result.get_value(0, n) for n in range(result.nfields) if result.ntuples]
            told.append((result.status, formats, cells, result.error_field(ord("C"))))
    return told


def test_a_portal_has_the_columns_of_its_bind() -> None:
    with postgres() as theirs, serving() as ours:
        told = answers(ours)
        assert told == answers(theirs)
    assert told[5] == (TUPLES, [1], [struct.pack("!i", 7)], None)
