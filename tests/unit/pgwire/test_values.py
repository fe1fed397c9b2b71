"""Values one at a time: round trips in both formats, and what binary input refuses."""

import math
import struct
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.pgwire.values import decode_value, encode_value
from sql.errors import SqlError
from sql.types.record_text import parse_record
from sql.types.records import record_type
from sql.types.sql_type import (
    BOOL,
    DATE,
    INT4,
    INTERVAL,
    NAME,
    NUMERIC,
    TEXT,
    TIMESTAMP,
    UUID,
    SqlType,
    Value,
    array_of,
    bpchar,
    numeric,
    varchar,
)
from sql.types.text_input import apply_typmod
from tests.unit.pgwire.generated import TYPES, values

ZONES = st.sampled_from(["UTC", "America/New_York", "Asia/Kolkata", "<+03>-03"])


def _same(left: Value, right: Value) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return struct.pack("d", left) == struct.pack("d", right) or (
            math.isnan(left) and math.isnan(right)
        )
    return left == right


@pytest.mark.parametrize("type_", TYPES, ids=str)
@given(data=st.data(), code=st.sampled_from([0, 1]), zone=ZONES)
def test_values_come_back(type_: SqlType, data: st.DataObject, code: int, zone: str) -> None:
    value = data.draw(values(type_))
    if type_.name == "timestamptz" and isinstance(value, int) and zone != "UTC" and not code:
        # A local time that comes twice is read as the second; away from the ends of the range.
        value = value % (40 * 365 * 86_400 * 10**6) // 10**13 * 10**13
    encoded = encode_value(value, type_, code, timezone=zone)
    decoded = decode_value(encoded, type_, code, timezone=zone)
    assert _same(decoded, value), (value, encoded, decoded)


@pytest.mark.parametrize("type_", TYPES, ids=str)
@given(data=st.binary(max_size=24))
def test_any_bytes_are_a_value_or_refused(type_: SqlType, data: bytes) -> None:
    for code in (0, 1):
        try:
            value = decode_value(data, type_, code)
        except SqlError as error:
            refused = error.sqlstate[:2]
        else:
            refused = ""
            assert _same(decode_value(encode_value(value, type_, code), type_, code), value)
        assert refused in ("", "08", "22", "0A", "42")


@pytest.mark.parametrize(
    ("type_", "data", "sqlstate"),
    [
        (INT4, b"\0\0\0", "08P01"),
        (INT4, b"\0\0\0\0\0", "22P03"),
        (BOOL, b"", "08P01"),
        (UUID, bytes(15), "08P01"),
        (UUID, bytes(17), "22P03"),
        (TEXT, b"a\0b", "22021"),
        (TEXT, b"\xff", "22021"),
        (NAME, b"x" * 64, "42622"),
        (DATE, struct.pack("!i", 2**31 - 1), "22008"),
        (DATE, struct.pack("!i", -730_121), "22008"),
        (TIMESTAMP, struct.pack("!q", -(2**63)), "22008"),
        (INTERVAL, struct.pack("!qii", 2**63 - 1, 2**31 - 1, 2**31 - 1), "22008"),
        (NUMERIC, struct.pack("!HhHHH", 1, 0, 0, 0, 10_000), "22P03"),
        (NUMERIC, struct.pack("!HhHH", 0, 0, 0x1234, 0), "22P03"),
        (NUMERIC, struct.pack("!HhHH", 0, 0, 0, 0x4000), "22P03"),
        (NUMERIC, struct.pack("!HhHH", 0, 0, 0xC000, 0), "22003"),
        (NUMERIC, struct.pack("!HhHHH", 1, 32_767, 0, 0, 9999), "22003"),
        (NUMERIC, struct.pack("!HhHH", 3, 0, 0, 0), "08P01"),
    ],
)
def test_binary_input_refuses(type_: SqlType, data: bytes, sqlstate: str) -> None:
    with pytest.raises(SqlError) as caught:
        decode_value(data, type_, 1)
    assert caught.value.sqlstate == sqlstate


@pytest.mark.parametrize(
    ("value", "type_", "expected"),
    [
        ("0", numeric(5, 2), "0000 0000 0000 0002"),
        ("-1.5", NUMERIC, "0002 0000 4000 0001 0001 1388"),
        ("1.50", numeric(5, 2), "0002 0000 0000 0002 0001 1388"),
        ("10000", NUMERIC, "0001 0001 0000 0000 0001"),
        ("0.0001", NUMERIC, "0001 ffff 0000 0004 0001"),
        ("0.00001", NUMERIC, "0001 fffe 0000 0005 03e8"),
        ("1.00", NUMERIC, "0001 0000 0000 0000 0001"),
        ("123456789.01", numeric(15, 2), "0004 0002 0000 0002 0001 0929 1a85 0064"),
    ],
)
def test_binary_numerics_are_postgresqls(value: str, type_: SqlType, expected: str) -> None:
    assert encode_value(Decimal(value), type_, 1).hex() == expected.replace(" ", "")


def test_a_numeric_parameter_loses_no_digit() -> None:
    assert decode_value(b"0.0000000000000000010", NUMERIC, 0) == Decimal("1E-18")
    with pytest.raises(SqlError) as caught:
        decode_value(b"0.0000000000000000001", NUMERIC, 0)
    assert caught.value.sqlstate == "22003"


@pytest.mark.parametrize(
    ("value", "type_", "message"),
    [
        ("abcd", varchar(3), "value too long for type character varying(3)"),
        ("abcd", bpchar(3), "value too long for type character(3)"),
    ],
)
def test_an_assignment_refuses_what_a_cast_cuts(value: str, type_: SqlType, message: str) -> None:
    assert apply_typmod(value, type_, explicit=True) == "abc"
    assert apply_typmod("abc   ", type_, explicit=False) == "abc"
    with pytest.raises(SqlError) as caught:
        apply_typmod(value, type_, explicit=False)
    assert (caught.value.sqlstate, caught.value.message) == ("22001", message)


def test_an_oid_of_a_reg_type_is_looked_up_as_its_number() -> None:
    regclass = SqlType("regclass")
    assert decode_value(struct.pack("!I", 4_294_967_295), regclass, 1) == "4294967295"
    assert decode_value(b"pg_class", regclass, 0) == "pg_class"


def test_oids_of_an_array_of_a_reg_type_are_looked_up_as_their_numbers() -> None:
    sent = bytes.fromhex(
        "00000001 00000000 0000089e 00000002 00000001 00000004 00000017 00000004 00000019"
    )
    assert decode_value(sent, SqlType("_regtype"), BINARY) == ("23", "25")
    assert decode_value(b"{int4,text}", SqlType("_regtype"), 0) == ("int4", "text")


def test_a_row_in_binary_is_postgresqls() -> None:
    inner = record_type([TEXT], ["t"])
    type_ = record_type([INT4, inner, array_of(TEXT), TIMESTAMP, numeric(8, 3)])
    row = parse_record('(1,"(""a b"")","{x,NULL}",,1.500)', type_, "UTC")
    fields = (
        "00000005 00000017 00000004 00000001"
        " 000008c9 0000000f 00000001 00000019 00000003 612062"
        " 000003f1 0000001d 00000001 00000001 00000019 00000002 00000001 00000001 78 ffffffff"
        " 0000045a ffffffff"
        " 000006a4 0000000c 0002 0000 0000 0003 0001 1388"
    )
    assert encode_value(row, type_, BINARY).hex() == fields.replace(" ", "")


BINARY = 1
