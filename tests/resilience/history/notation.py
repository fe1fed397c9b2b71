"""A tiny language for histories in tests: one line per transaction.

    p0 0-10 ok @7: append x 1, list y [1 2]
    p1 3-? info: add s 4
    p2 11-12 ok: set s {1 4}, write r 5, read r nil, read r 5

process, real-time interval (`?` or `info`: no end is known), outcome, optional timestamp,
operations. Times order the events; at equal times invocations go first. `#` begins a comment.
"""

import re

from tests.resilience.history.events import (
    Add,
    Append,
    Event,
    History,
    Kind,
    Operation,
    Read,
    ReadList,
    ReadSet,
    Write,
    merge,
)

_LINE = re.compile(
    r"p(?P<process>\d+)\s+(?P<began>\d+)-(?P<ended>\d+|\?)\s+(?P<status>ok|fail|info)"
    r"(?:\s+@(?P<ts>\d+))?:\s*(?P<operations>.*)"
)
_OPERATION = re.compile(r"(?P<verb>\w+)\s+(?P<key>\w+)\s+(?P<argument>\[[^\]]*\]|\{[^}]*\}|\w+)")


def parse_history(text: str) -> History:
    """The history that the lines describe."""
    lines = [line.split("#")[0].strip() for line in text.splitlines()]
    return merge(_parse_line(line) for line in lines if line)


def _parse_line(line: str) -> History:
    match = _LINE.fullmatch(line)
    assert match is not None, f"not a transaction: {line}"
    operations = tuple(_parse_operation(m) for m in _OPERATION.finditer(match["operations"]))
    assert operations, f"no operations: {line}"
    process, kind = int(match["process"]), Kind(match["status"])
    began = Event(process, Kind.INVOKE, operations, int(match["began"]))
    if match["ended"] == "?":
        return History((began,))
    ts = int(match["ts"]) if match["ts"] else None
    return History((began, Event(process, kind, operations, int(match["ended"]), ts)))


def _parse_operation(match: re.Match[str]) -> Operation:
    key, argument = match["key"], match["argument"]
    values = tuple(int(word) for word in re.findall(r"\d+", argument))
    match match["verb"]:
        case "add":
            return Add(key, values[0])
        case "append":
            return Append(key, values[0])
        case "write":
            return Write(key, values[0])
        case "set":
            return ReadSet(key, values)
        case "list":
            return ReadList(key, values)
        case "read":
            return Read(key, None if argument == "nil" else values[0])
        case verb:
            raise ValueError(f"unknown operation {verb}")
