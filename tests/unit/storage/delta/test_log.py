"""Log entries: what was written is read, also if spelled otherwise; nothing else is believed."""

import json
import random

import pytest

from storage.delta.actions import AddFile, CommitInfo, IntervalHistory, Txn
from storage.delta.log import decode_commit, encode_commit
from storage.errors import Corrupt, ForeignWriter

INFO = CommitInfo(1, "WRITE", "Meridian/1", IntervalHistory(1_000, {"part-é": "eJw="}))
ACTIONS = (INFO, AddFile("part-é", 10, 1, '{"numRecords":3}', {"a": "}}}"}), Txn("t", 1_000, 1))
WRITTEN = encode_commit(ACTIONS)


def respelled(entry: bytes) -> bytes:
    """The same as JSON, as another program might store it."""
    return "\n".join(json.dumps(json.loads(line)) for line in entry.splitlines()).encode()


def test_what_was_written_is_read() -> None:
    assert decode_commit(WRITTEN) == ACTIONS
    assert decode_commit(WRITTEN.removesuffix(b"\n")) == ACTIONS


def test_an_entry_that_is_only_spelled_otherwise_is_right() -> None:
    """Its checksum is of what Meridian writes, so the lines after the first must be compact."""
    first, *rest = WRITTEN.splitlines()
    assert decode_commit(b"\n".join([respelled(first), *rest])) == ACTIONS


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"numRecords', b'"numRecordz'),
        (b'"cut":1000', b'"cut":1001'),
        (b'"checksum":', b'"checksum":1'),
        (b'"version":1000', b'"version":1001'),
        (b'"size":10', b'"size": 10'),
        (b'\n{"txn"', b',{"txn"'),
    ],
)
def test_an_entry_that_was_changed_is_not_believed(old: bytes, new: bytes) -> None:
    assert old in WRITTEN
    with pytest.raises(Corrupt):
        decode_commit(WRITTEN.replace(old, new))


def test_no_changed_byte_is_believed() -> None:
    """But for the name of the checksum: nothing covers it."""
    rng = random.Random(1)
    named = WRITTEN.index(b'"checksum"')
    for place in {*range(len(WRITTEN) - 1)} - {*range(named, named + len(b'"checksum"'))}:
        entry = bytearray(WRITTEN)
        entry[place] ^= 1 << rng.randrange(7)
        with pytest.raises((Corrupt, ForeignWriter)):
            decode_commit(bytes(entry))


def test_an_entry_of_before_there_were_checksums_is_read() -> None:
    info = json.loads(WRITTEN.splitlines()[0])
    del info["commitInfo"]["meridian"]["checksum"]
    entry = b"\n".join([json.dumps(info).encode(), *WRITTEN.splitlines()[1:]])
    assert decode_commit(entry) == ACTIONS
