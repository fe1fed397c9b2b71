"""The table of `test_every_field.py`: what becomes of each field of each node of the parser."""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pglast
from pglast import ast, enums

from sql.parser.syntax import tree_nodes

DIRECTORY: Final = Path(__file__).parent / "testdata" / "fields"

PLACES: Final = frozenset({"ParseLoc"})
"""Types of fields that say where a node stands in the text."""


@dataclass(frozen=True, slots=True)
class Example:
    """A statement with a field, and what surrounds it."""

    before: tuple[str, ...]
    without: str | None
    statement: str
    asked: tuple[str, ...]

    def script(self, statement: str) -> tuple[str, ...]:
        """What is played with or without the field."""
        return (*self.before, statement, *self.asked)


@dataclass(frozen=True, slots=True)
class Entry:
    """`node.field outcome: detail`, or `node outcome`, and its proofs."""

    node: str
    field: str
    outcome: str
    detail: str
    examples: tuple[Example, ...]

    @property
    def name(self) -> str:
        return f"{self.node}.{self.field}" if self.field else self.node


def entries() -> list[Entry]:
    """The whole table."""
    return [entry for path in sorted(DIRECTORY.glob("*.txt")) for entry in _read(path)]


def _read(path: Path) -> Iterator[Entry]:
    for block in path.read_text().split("\n\n"):
        lines = [line for line in block.splitlines() if line and line[0] != "#"]
        if lines:
            yield from _entries(lines[0], tuple(_examples(lines[1:])))


def _entries(header: str, examples: tuple[Example, ...]) -> Iterator[Entry]:
    places, _, said = header.partition(" ")
    outcome, _, detail = said.partition(" ")
    for place in places.split(","):
        node, _, field = place.partition(".")
        yield Entry(node, field, outcome.removesuffix(":"), detail, examples)


def _examples(lines: Sequence[str]) -> Iterator[Example]:
    asked = tuple(line[2:] for line in lines if line.startswith("? "))
    before: list[str] = []
    without: str | None = None
    for line in lines:
        match line[:2]:
            case "& ":
                before.append(line[2:])
            case "- ":
                without = line[2:]
            case "+ ":
                yield Example(tuple(before), without, line[2:], asked)
            case _:
                assert line in {f"? {text}" for text in asked}, line


def nodes() -> dict[str, dict[str, str]]:
    """The nodes of pglast, with their fields and those fields' types in C."""
    return {
        name: {field: type_ for field, type_ in _fields(node) if type_ not in PLACES}
        for name, node in vars(ast).items()
        if isinstance(node, type) and issubclass(node, ast.Node) and node is not ast.Node
    }


def _fields(node: Any) -> Iterator[tuple[str, str]]:
    for field in node.__slots__:
        yield field, node.__slots__[field].c_type


def is_enumeration(c_type: str) -> bool:
    """Whether every value has to be shown; which kinds of objects there are is asked elsewhere."""
    return hasattr(enums, c_type) and c_type != "ObjectType"


def values(statement: str, name: str, field: str) -> list[Any]:
    """What the field of all such nodes holds in a statement, in order."""
    return [shape(getattr(node, field)) for node in tree(statement) if type(node).__name__ == name]


@functools.cache
def tree(statement: str) -> Sequence[ast.Node]:
    """All nodes of a statement, without the data that is copied."""
    return tuple(tree_nodes(pglast.parse_sql(statement.partition(" << ")[0])))


def shape(value: Any) -> Any:
    """A tree's value without places."""
    if isinstance(value, tuple):
        return tuple(shape(part) for part in value)
    if not isinstance(value, ast.Node):
        return value
    name = type(value).__name__
    return (name, *(shape(getattr(value, field)) for field in NODES[name]))


NODES: Final = nodes()
