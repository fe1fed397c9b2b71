"""Messages of pgoutput, and folding them: pure."""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.postgres.fold import FoldedRow, fold_bag, fold_changes
from ingest.postgres.pgoutput import (
    DeleteMessage,
    InsertMessage,
    LogicalMessage,
    MalformedMessage,
    OriginMessage,
    TruncateMessage,
    TypeMessage,
    UpdateMessage,
    decode_message,
    format_lsn,
    parse_lsn,
)
from ingest.postgres.table_decoder import split_copy_line
from ingest.reader import UNCHANGED, ChangeKind, ChangeRow, UpstreamChange

INSERT, UPDATE = ChangeKind.INSERT, ChangeKind.UPDATE
DELETE, TRUNCATE = ChangeKind.DELETE, ChangeKind.TRUNCATE


def fields(*values: object) -> bytes:
    body = struct.pack("!H", len(values))
    for value in values:
        if isinstance(value, str):
            text = value.encode()
            body += b"t" + struct.pack("!I", len(text)) + text
        else:
            body += b"u" if value is UNCHANGED else b"n"
    return body


HEAD = struct.pack("!I", 7)
MESSAGES = [
    (b"I" + HEAD + b"N" + fields("é", None), InsertMessage(7, ["é", None])),
    (b"U" + HEAD + b"N" + fields(UNCHANGED), UpdateMessage(7, None, False, [UNCHANGED])),
    (
        b"U" + HEAD + b"K" + fields("1") + b"N" + fields("2"),
        UpdateMessage(7, ["1"], False, ["2"]),
    ),
    (b"U" + HEAD + b"O" + fields("1") + b"N" + fields("2"), UpdateMessage(7, ["1"], True, ["2"])),
    (b"D" + HEAD + b"K" + fields("1", None), DeleteMessage(7, ["1", None], False)),
    (b"D" + HEAD + b"O" + fields("1"), DeleteMessage(7, ["1"], True)),
    (b"T" + struct.pack("!IbII", 2, 1, 7, 8), TruncateMessage((7, 8))),
    (b"Y" + HEAD + b"s\0mood\0", TypeMessage(7, "s", "mood")),
    (b"O" + bytes(8) + b"elsewhere\0", OriginMessage("elsewhere")),
    (
        b"M" + struct.pack("!bq", 1, 99) + b"p\0" + struct.pack("!I", 2) + b"\0x",
        LogicalMessage(True, 99, "p", b"\0x"),
    ),
]


@pytest.mark.parametrize(("body", "message"), MESSAGES)
def test_a_message_and_its_pieces(body: bytes, message: object) -> None:
    """It is decoded whole; cut off anywhere, or with more behind it, it is refused."""
    assert decode_message(body) == message
    for end in range(len(body)):
        with pytest.raises(MalformedMessage):
            decode_message(body[:end])
    with pytest.raises(MalformedMessage):
        decode_message(body + b"\0")


@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_refused(body: bytes) -> None:
    with contextlib.suppress(MalformedMessage):
        decode_message(body)


@given(st.integers(0, (1 << 64) - 1))
def test_positions_are_read_as_they_are_written(lsn: int) -> None:
    assert parse_lsn(format_lsn(lsn)) == lsn


@given(
    st.lists(
        st.one_of(st.none(), st.text(st.characters(codec="utf-8", exclude_characters="\0"))),
        min_size=1,
    )
)
def test_lines_of_copy(values: list[str | None]) -> None:
    escapes = {"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r", "\b": r"\b"}
    line = "\t".join(
        r"\N" if value is None else "".join(escapes.get(one, one) for one in value)
        for value in values
    )
    assert split_copy_line(f"{line}\n".encode()) == values


def change(kind: ChangeKind, old: ChangeRow | None = None, new: ChangeRow | None = None) -> object:
    return UpstreamChange(kind, old, new)


SAME = UNCHANGED
FOLDED = [
    ("what a record gave stays", [(UPDATE, None, (1, "big")), (UPDATE, None, (1, SAME))],
     {(1,)}, {(1,): FoldedRow((1, "big"), (1,))}),
    ("what none gave is our own", [(UPDATE, None, (1, SAME)), (UPDATE, None, (1, SAME))],
     {(1,)}, {(1,): FoldedRow((1, SAME), (1,))}),
    ("through keys", [(UPDATE, (1, SAME), (2, SAME)), (UPDATE, (2, SAME), (3, SAME))],
     {(1,)}, {(3,): FoldedRow((3, SAME), (1,))}),
    ("born and gone", [(INSERT, None, (1, "a")), (DELETE, (1, SAME), None)], set(), {}),
    ("gone and born", [(DELETE, (1, SAME), None), (INSERT, None, (1, "a"))],
     {(1,)}, {(1,): FoldedRow((1, "a"))}),
    ("moved and gone", [(UPDATE, (1, SAME), (2, "a")), (DELETE, (2, SAME), None)], {(1,)}, {}),
    ("keys change places",
     [(UPDATE, (1, SAME), (9, SAME)), (UPDATE, (2, SAME), (1, SAME)),
      (UPDATE, (9, SAME), (2, SAME))],
     {(1,), (2,)}, {(1,): FoldedRow((1, SAME), (2,)), (2,): FoldedRow((2, SAME), (1,))}),
    ("behind a delete nobody knows", [(DELETE, (1, SAME), None), (UPDATE, None, (1, SAME))],
     {(1,)}, {(1,): FoldedRow((1, SAME))}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "changes", "gone", "rows"), FOLDED)
def test_folding(name: str, changes: list[tuple], gone: set, rows: dict) -> None:
    folded = fold_changes([change(*one) for one in changes], [0])
    assert (folded.gone, folded.rows, folded.truncated) == (gone, rows, False)


def test_a_truncate_forgets_what_was_before_it() -> None:
    folded = fold_changes(
        [
            change(UPDATE, None, (1, "a")),
            change(TRUNCATE),
            change(INSERT, None, (2, "b")),
            change(UPDATE, (2, SAME), (3, SAME)),
        ],
        [0],
    )
    assert folded.truncated
    assert folded.gone == set()
    assert folded.rows == {(3,): FoldedRow((3, "b"))}


def test_keys_that_are_no_number_are_one_key() -> None:
    folded = fold_changes(
        [change(INSERT, None, (float("nan"), 1)), change(DELETE, (float("nan"), SAME))], [0]
    )
    assert not folded.rows


def test_without_a_key_rows_are_counted_by_their_bits() -> None:
    folded = fold_bag(
        [
            change(INSERT, None, (0.0,)),
            change(DELETE, (-0.0,)),
            change(DELETE, (float("nan"),)),
            change(DELETE, (float("nan"),)),
            change(UPDATE, (0.0,), (1.0,)),
            change(INSERT, None, (1.0,)),
        ]
    )
    assert [str(row[0]) for row in folded.gone] == ["-0.0", "nan", "nan"]
    assert list(folded.rows) == [(1.0,), (1.0,)]
    after = fold_bag([change(DELETE, (1,)), change(TRUNCATE), change(INSERT, None, (2,))])
    assert (after.truncated, list(after.gone), list(after.rows)) == (True, [], [(2,)])
