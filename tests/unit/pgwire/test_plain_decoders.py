"""Decoders of plain types are `decode_value` of these types, also of bytes that are no value."""

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coordinator.pgwire.messages import BINARY_FORMAT, TEXT_FORMAT
from coordinator.pgwire.values import PLAIN_DECODERS, decode_value
from sql.errors import SqlError
from sql.types.sql_type import plain_type

CASES = [(code, name) for code in (TEXT_FORMAT, BINARY_FORMAT) for name in PLAIN_DECODERS[code]]
TEXTS = st.sampled_from(
    ("1", " -7 ", "1e3", "NaN", "-0", "t", "off", "9" * 20, "1_000", "0x1f", "")
)


def told(decode: Callable[[], object]) -> str:
    try:
        return repr(decode())
    except SqlError as error:
        return f"{error.sqlstate} {error.message} {error.detail} {error.hint}"


@pytest.mark.parametrize(("code", "name"), CASES)
@given(st.binary(max_size=17) | TEXTS.map(str.encode))
@example(b"a" * 32)
@example(b"\xff")
@example(b"a\0b")
def test_the_same_is_told(code: int, name: str, data: bytes) -> None:
    plain = told(lambda: PLAIN_DECODERS[code][name](data))
    assert plain == told(lambda: decode_value(data, plain_type(name), code))
