"""What a disk holds after a power failure, computed from the journal of what was done and synced.

    journal ─▶ operations in order ─▶ cut at a moment ─▶ each file, each directory:
                                      what a sync covered  + some of the rest ─▶ a directory tree

| loss | of what no sync covered |
| --- | --- |
| ALL | nothing is left: neither content nor names |
| CONTENT | names are there, content is not: files of length 0, or with their synced part |
| NAMES | content is there, names are not |
| SOME | of each file and directory a random choice, writes cut short in sectors |
| NONE | everything is there, as after kill -9 |

INVARIANTS
  P1  a sync of a file covers its content, a sync of a directory its names; neither the other.
  P2  a sync covers what stood in the journal when it began (J2 of preload.c).
  P3  with NONE the tree is, byte for byte, the directory that the server left: else the journal
      has missed something, and no conclusion from it would hold.

Not here: the moments between two operations of the kernel; directories are journaled file systems'
in that a name is whole or absent.
"""

import os
import random
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum
from pathlib import Path

_HEADER = struct.Struct("<IIII q QQQ q Q")
_SECTOR = 512


class Operation(IntEnum):
    """As in preload.c."""

    START = 0
    CREATE = 1
    MKDIR = 2
    LINK = 3
    UNLINK = 4
    RENAME = 5
    WRITE = 6
    TRUNCATE = 7
    SYNC = 8


@dataclass(frozen=True, slots=True)
class Record:
    """One operation that succeeded. `offset`: of a write; the length of a truncation; how many
    records a sync covers.
    """

    operation: Operation
    at_ns: int
    node: int
    directory: int = 0
    name: str = ""
    second_directory: int = 0
    second: str = ""
    offset: int = 0
    content: bytes = b""


class Loss(Enum):
    """See the module."""

    ALL = "all"
    CONTENT = "content"
    NAMES = "names"
    SOME = "some"
    NONE = "none"


@dataclass(slots=True)
class _Change:
    """One change of a file's content, or of a directory's names (node None: the name goes)."""

    number: int
    offset: int = 0
    content: bytes | None = None
    name: str = ""
    node: "_Node | None" = None


@dataclass(slots=True)
class _Node:
    """A file or directory: everything that was done to it, and how much a sync has covered."""

    is_directory: bool
    changes: list[_Change] = field(default_factory=list)
    synced: int = 0


def read_journal(path: Path) -> list[Record]:
    """All whole records; a kill may have cut the last one."""
    content = path.read_bytes()
    records: list[Record] = []
    place = start = 0
    while place + _HEADER.size <= len(content):
        record, place = _read_record(content, place)
        if place > len(content):
            break
        if record.operation is Operation.START:
            start = len(records)
        if record.operation is Operation.SYNC:
            # A process counts its own records (P2).
            record = replace(record, offset=start + record.offset)
        records.append(record)
    return records


def _read_record(content: bytes, place: int) -> tuple[Record, int]:
    header = _HEADER.unpack_from(content, place)
    operation, name_bytes, second_bytes, _, at, node, directory, second_directory = header[:8]
    offset, content_bytes = header[8:]
    name = place + _HEADER.size
    second = name + name_bytes
    data = second + second_bytes
    end = data + content_bytes
    record = Record(
        Operation(operation),
        at,
        node,
        directory,
        os.fsdecode(content[name:second]),
        second_directory,
        os.fsdecode(content[second:data]),
        offset,
        content[data:end],
    )
    return record, end


class Disk:
    """The tree below `root`, durable as it is now, with everything that happens to it later."""

    def __init__(self, root: Path) -> None:
        self._nodes: dict[int, _Node] = {}
        self._root = self._existing(root)
        self._done = 0

    def _existing(self, path: Path) -> _Node:
        number = path.stat().st_ino
        if number in self._nodes:
            return self._nodes[number]
        node = self._nodes[number] = _Node(is_directory=path.is_dir())
        if node.is_directory:
            inner = sorted(path.iterdir())
            node.changes = [_Change(-1, name=p.name, node=self._existing(p)) for p in inner]
        else:
            node.changes = [_Change(-1, content=path.read_bytes())]
        return node

    def advance(self, records: Sequence[Record], end: int) -> None:
        """Let everything before record `end` happen."""
        for number in range(self._done, end):
            self._apply(number, records[number])
        self._done = max(self._done, end)

    def _apply(self, number: int, record: Record) -> None:
        match record.operation:
            case Operation.CREATE | Operation.MKDIR:
                # The number of a node that is gone may be given again.
                node = _Node(is_directory=record.operation is Operation.MKDIR)
                self._nodes[record.node] = node
                self._name(number, record.directory, record.name, node)
            case Operation.LINK:
                self._name(number, record.directory, record.name, self._nodes[record.node])
            case Operation.UNLINK:
                self._name(number, record.directory, record.name, None)
            case Operation.RENAME:
                self._name(number, record.directory, record.name, self._nodes[record.node])
                self._name(number, record.second_directory, record.second, None)
            case Operation.WRITE:
                change = _Change(number, offset=record.offset, content=record.content)
                self._nodes[record.node].changes.append(change)
            case Operation.TRUNCATE:
                self._nodes[record.node].changes.append(_Change(number, offset=record.offset))
            case Operation.SYNC:
                node = self._nodes[record.node]
                node.synced = max(node.synced, record.offset)
            case Operation.START:
                pass

    def _name(self, number: int, directory: int, name: str, node: _Node | None) -> None:
        self._nodes[directory].changes.append(_Change(number, name=name, node=node))

    def write_to(self, target: Path, loss: Loss, rng: random.Random) -> None:
        """Make the tree as it is after a power failure now."""
        made: dict[int, Path] = {}
        self._write_directory(self._root, target, loss, rng, made)

    def _write_directory(
        self, node: _Node, target: Path, loss: Loss, rng: random.Random, made: dict[int, Path]
    ) -> None:
        target.mkdir(mode=0o700)
        names: dict[str, _Node] = {}
        for change in _left(node, loss, rng):
            names.pop(change.name, None)
            if change.node is not None:
                names[change.name] = change.node
        for name, inner in names.items():
            path = target / name
            if inner.is_directory:
                self._write_directory(inner, path, loss, rng, made)
            elif id(inner) in made:
                path.hardlink_to(made[id(inner)])
            else:
                path.write_bytes(_content(_left(inner, loss, rng)))
                path.chmod(0o600)
                made[id(inner)] = path


def _left(node: _Node, loss: Loss, rng: random.Random) -> Iterator[_Change]:
    """The changes that survive, in their order."""
    for change in node.changes:
        if change.number < node.synced or loss is Loss.NONE:
            yield change
        elif loss is Loss.SOME:
            if rng.random() < 0.5:
                yield _torn(change, rng)
        elif loss is (Loss.CONTENT if node.is_directory else Loss.NAMES):
            yield change


def _torn(change: _Change, rng: random.Random) -> _Change:
    """A write of which perhaps only the first sectors have arrived."""
    if change.content is None or rng.random() < 0.5:
        return change
    sectors = rng.randint(0, len(change.content) // _SECTOR)
    return _Change(change.number, change.offset, change.content[: sectors * _SECTOR])


def _content(changes: Iterator[_Change]) -> bytes:
    content = bytearray()
    for change in changes:
        length = change.offset if change.content is None else change.offset + len(change.content)
        if len(content) < length:
            content.extend(bytes(length - len(content)))
        if change.content is None:
            del content[length:]
        else:
            content[change.offset : length] = change.content
    return bytes(content)
