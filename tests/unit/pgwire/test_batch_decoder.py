"""Parameters of a batch are what they are one by one, also those that are no value."""

import struct
from collections.abc import Callable
from types import MappingProxyType
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.pgwire import value_columns
from coordinator.pgwire.messages import Bind
from coordinator.session.bind_parameters import BatchDecoder, decode_parameters
from coordinator.variables.variables import Variables
from sql.errors import SqlError
from sql.types.sql_type import plain_type

_WORDS: Final = MappingProxyType({
    "int2": (b"1", struct.pack("!h", -7)), "int4": (b"+5", struct.pack("!i", 1 << 30)),
    "int8": (b"-9", struct.pack("!q", 1 << 62)), "float8": (b"1e3", struct.pack("!d", -0.0)),
    "float4": (b"0.1", struct.pack("!f", 0.1)), "bool": (b"t", b"\1"), "text": (b"a", b"\xc3\x9c"),
    "numeric": (b"1.50", b"\0\0\0\0\0\0\0\0"), "date": (b"2020-01-02", struct.pack("!i", 7)),
})  # fmt: skip
"""By type, in text and in binary."""
_COLUMN = st.tuples(st.sampled_from(sorted(_WORDS)), st.sampled_from((0, 1)))


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[tuple[str, int]], list[list[bytes | None]]]:
    """The columns of rows of VALUES, and parameters of some statements, few of which are wrong."""
    row = draw(st.lists(_COLUMN, min_size=1, max_size=4))
    columns = row * draw(st.integers(1, 5))
    if draw(st.integers(0, 3)) == 0:
        columns.append(draw(_COLUMN))

    def value(name: str, code: int) -> bytes | None:
        kind = draw(st.integers(0, 40))
        junk = {0: None, 1: b"", 2: b"x", 3: b"\0\0\0", 4: b"\xff", 5: b"\0" * 12}
        return junk.get(kind, _WORDS[name][code])

    sets = [[value(*column) for column in columns] for _ in range(draw(st.integers(1, 3)))]
    return columns, sets


def _told(decode: Callable[[], object]) -> str:
    try:
        return repr(decode())
    except SqlError as error:
        return f"{error.sqlstate} {error.message} {error.context}"


def differences(drawn: tuple[list[tuple[str, int]], list[list[bytes | None]]]) -> list[object]:
    """Statements that a batch decodes otherwise than it would each alone."""
    columns, sets = drawn
    types = [plain_type(name) for name, _ in columns]
    codes = tuple([code for _, code in columns])
    variables = Variables(user="alice", defaults={})
    found: list[object] = []
    for formats in (codes, codes[:1] if len(set(codes)) == 1 else codes):
        decoder = BatchDecoder(types, variables)
        for given_ones in sets:
            bind = Bind("", "s", formats, tuple(given_ones), ())
            one = _told(lambda bind=bind: decode_parameters(bind, types, variables))
            other = _told(lambda bind=bind, decoder=decoder: decoder.decode(bind))
            found += [] if one == other else [(one, other)]
    return found


@given(batches())
def test_a_batch_is_decoded_as_one_by_one(
    drawn: tuple[list[tuple[str, int]], list[list[bytes | None]]],
) -> None:
    assert differences(drawn) == []


def test_numbers_of_wrong_lengths_that_add_up_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    types = [("int4", 1)] * 2
    wrong = [[b"\0\0\0", b"\0\0\0\0\1"]]
    assert differences((types, wrong)) == []
    monkeypatch.setattr(value_columns, "_has_lengths", lambda *_: True)
    assert differences((types, wrong)) != []
