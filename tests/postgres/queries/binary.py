"""The same answers in the extended protocol and binary format.

INVARIANTS
  Z1  a value in binary is, read by psycopg, the value that its text is: what the text must be is
      `comparing.py`'s business. Values that Python has no room for (years beyond 9999) and types
      that psycopg does not read are not compared.
"""

import struct
from collections.abc import Iterator

import psycopg
from psycopg.adapt import Transformer
from psycopg.pq import DiagnosticField, ExecStatus, Format
from psycopg.pq.abc import PGconn, PGresult

_READ = frozenset(
    psycopg.postgres.types[name].oid
    for name in (
        "bool", "int2", "int4", "int8", "float4", "float8", "numeric", "text", "varchar", "bpchar",
        "date", "timestamp", "timestamptz", "interval", "uuid", "bytea", "name", "oid",
    )
)  # fmt: skip

_RECORDS = (2249, 2287)
"""record and its arrays: rows of several types are refused in binary (docs/limitations.md)."""

_FLOAT4 = psycopg.postgres.types["float4"].oid


def differences(connection: PGconn, text: str) -> list[str]:
    """Values of a query that are not the same in text and in binary (Z1)."""
    shown = connection.exec_(text.encode())
    sent = connection.exec_params(text.encode(), None, result_format=Format.BINARY)
    if shown.status != ExecStatus.TUPLES_OK:
        return _unless(shown.status == sent.status, f"{shown.status!r} and {sent.status!r}")
    has_records = any(shown.ftype(column) in _RECORDS for column in range(shown.nfields))
    if has_records and sent.error_field(DiagnosticField.SQLSTATE) == b"0A000":
        return []
    same_shape = (shown.ntuples, shown.nfields) == (sent.ntuples, sent.nfields)
    if not same_shape:
        return ["other rows or columns"]
    return [
        difference
        for column in range(shown.nfields)
        for difference in _in_column(shown, sent, column)
    ]


def _in_column(shown: PGresult, sent: PGresult, column: int) -> Iterator[str]:
    oid = shown.ftype(column)
    if oid != sent.ftype(column):
        yield f"types {oid} and {sent.ftype(column)}"
    if oid not in _READ:
        return
    transformer = Transformer()
    read_text = transformer.get_loader(oid, Format.TEXT).load
    read_binary = transformer.get_loader(oid, Format.BINARY).load
    for row in range(shown.ntuples):
        a, b = shown.get_value(row, column), sent.get_value(row, column)
        if a is None or b is None:
            yield from _unless(a is b, f"{a!r} and {b!r}")
            continue
        try:
            wanted = read_text(a)
        except psycopg.DataError:
            continue
        found = read_binary(b)
        if oid == _FLOAT4:
            wanted, found = struct.pack("f", wanted), struct.pack("f", found)
        # By repr: NaN is not equal to itself, 1.50 is not 1.5.
        yield from _unless(repr(found) == repr(wanted), f"{wanted!r} and {found!r}")


def _unless(fine: bool, message: str) -> list[str]:
    return [] if fine else [message]
