"""Syntax trees of PostgreSQL's regular expressions, advanced flavour (re_syntax(n)).

    a(b|[[:digit:]])+   ─▶   Sequence(Characters a, Repeat(Group 1 (Either ..), 1, None))

INVARIANTS
  E1  a tree holds no flags: case and newlines are part of its sets of characters and its anchors.
  E2  a pattern that PostgreSQL refuses fails with 2201B and PostgreSQL's message. Features that
      only PostgreSQL has (basic and extended flavours, collating elements of more than one
      character) fail with 0A000.

Not here: what a tree matches (`compute/reference/functions/regex_match.py`), other dialects
(`sql/emit/patterns.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, TypeAlias

from sql.errors import SqlError, not_supported
from sql.regex.characters import ALL_CHARACTERS, NEWLINE, Ranges, complement, with_both_cases

REPEATS_MAX: Final = 255


class AnchorKind(StrEnum):
    """Positions between characters."""

    START = "start"
    END = "end"
    LINE_START = "line start"
    LINE_END = "line end"
    WORD_START = "word start"
    WORD_END = "word end"
    WORD_EDGE = "word edge"
    NO_WORD_EDGE = "no word edge"


@dataclass(frozen=True, slots=True)
class Characters:
    """One character of a set."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Anchor:
    """A position that must be of this kind."""

    kind: AnchorKind


@dataclass(frozen=True, slots=True)
class Lookaround:
    """Lookahead or, with `behind`, lookbehind; positive or negative."""

    node: "RegexNode"
    behind: bool
    negative: bool


@dataclass(frozen=True, slots=True)
class Chain:
    """A concatenation; matches the empty text if there are no items."""

    items: tuple["RegexNode", ...]


@dataclass(frozen=True, slots=True)
class Either:
    """An alternation."""

    items: tuple["RegexNode", ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """So many times; `most` None: any number. `lazy`: written with a `?`; None for `{n}`, which
    prefers neither more nor less.
    """

    node: "RegexNode"
    least: int
    most: int | None
    lazy: bool | None


@dataclass(frozen=True, slots=True)
class CapturingGroup:
    """Capturing parentheses."""

    node: "RegexNode"
    number: int


@dataclass(frozen=True, slots=True)
class BackReference:
    """What a group has matched, again."""

    number: int
    ignore_case: bool


RegexNode: TypeAlias = (
    Characters | Anchor | Lookaround | Chain | Either | Repeat | CapturingGroup | BackReference
)


@dataclass(frozen=True, slots=True)
class Regex:
    """A pattern's tree, and how many groups it has."""

    node: RegexNode
    groups: int


@dataclass(frozen=True, slots=True)
class Flags:
    """How a pattern is read. `partly`: `.` and `[^..]` do not match newlines; `lines`: `^` and `$`
    match at the ends of lines; `ascii_letters`: classes and cases know ASCII only, as under the
    collation "C".
    """

    ignore_case: bool = False
    partly: bool = False
    lines: bool = False
    expanded: bool = False
    literal: bool = False
    ascii_letters: bool = False


def invalid_regex(message: str) -> SqlError:
    """2201B: an invalid pattern."""
    return SqlError("2201B", f"invalid regular expression: {message}")


def with_option_letters(flags: Flags, letters: str, *, embedded: bool) -> Flags | None:
    """The flags after letters like `in`; None for an unknown letter, such as `g`."""
    for letter in letters:
        match letter:
            case "i":
                flags = replace(flags, ignore_case=True)
            case "c":
                flags = replace(flags, ignore_case=False)
            case "n" | "m":
                flags = replace(flags, partly=True, lines=True)
            case "p":
                flags = replace(flags, partly=True, lines=False)
            case "w":
                flags = replace(flags, partly=False, lines=True)
            case "s":
                flags = replace(flags, partly=False, lines=False)
            case "x":
                flags = replace(flags, expanded=True)
            case "t":
                flags = replace(flags, expanded=False)
            case "q":
                flags = replace(flags, literal=True)
            case "b" | "e":
                raise not_supported("basic and extended regular expressions")
            case _:
                return None
    if embedded and flags.literal:
        raise not_supported("the embedded option q of regular expressions")
    return flags


def character_set(ranges: Ranges, flags: Flags) -> Characters:
    """A set of characters, with both cases if the flags ignore case."""
    if not flags.ignore_case:
        return Characters(ranges)
    return Characters(with_both_cases(ranges, ascii_letters=flags.ascii_letters))


def any_character(flags: Flags) -> Characters:
    """`.`."""
    return Characters(complement(NEWLINE) if flags.partly else ALL_CHARACTERS)


def sequence(items: Sequence[RegexNode]) -> RegexNode:
    """The concatenation of the items; a single item is itself."""
    return items[0] if len(items) == 1 else Chain(tuple(items))


# --- what a tree is like -------------------------------------------------------------------------


def child_nodes(node: RegexNode) -> tuple[RegexNode, ...]:
    """The direct children of a node."""
    match node:
        case Chain(items) | Either(items):
            return items
        case Lookaround(inner) | Repeat(inner) | CapturingGroup(inner):
            return (inner,)
        case _:
            return ()


def has_back_references(node: RegexNode) -> bool:
    """Whether the pattern refers back to a group."""
    return isinstance(node, BackReference) or any(map(has_back_references, child_nodes(node)))
