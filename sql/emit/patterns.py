"""Translate PostgreSQL's LIKE patterns and regular expressions to Java, RE2 and Python.

The dialects of regular expressions differ silently, and find different
matches even where they agree. So a translation starts from the syntax tree, with all sets of
characters written out, and promises only whether there is a match.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from sql.regex.characters import (
    ALL_CHARACTERS,
    LAST_CODE_POINT,
    Ranges,
    character_class,
    complement,
)
from sql.regex.like import like_regex, parse_like
from sql.regex.syntax import (
    Anchor,
    AnchorKind,
    BackReference,
    CapturingGroup,
    Chain,
    Characters,
    Either,
    Lookaround,
    Regex,
    RegexNode,
    Repeat,
    child_nodes,
    has_back_references,
)


def java_like_regex(pattern: str) -> str:
    """The Java pattern that matches the same texts as a LIKE pattern."""
    found = like_regex(parse_like(pattern), lambda character: _by_braces(ord(character)))
    return rf"(?s)\A{found}\z"


def java_like(pattern: str) -> str:
    r"""The LIKE pattern for Spark, where `\` may stand before `%`, `_` and `\` only."""
    return "".join(
        character if wildcard or character not in "%_\\" else f"\\{character}"
        for character, wildcard in parse_like(pattern)
    )


# --- SIMILAR TO ----------------------------------------------------------------------------------


# --- regular expressions -------------------------------------------------------------------------

_RANGES_MAX: Final = 4_000
"""Ranges of characters that a pattern for RE2 may have, repeated ones counted."""
_REPEATS_MAX: Final = 1_000
"""RE2's bound of repetitions within repetitions."""


@dataclass(frozen=True, slots=True)
class _Dialect:
    """What an engine's regular expressions can say. `code`: a character by its number."""

    code: Callable[[int], str]
    looks: bool
    anchors: Mapping[AnchorKind, str]
    bounded: bool = False
    extracts: bool = False
    """Whether its groups count: those of optional parts too."""
    remembers: bool = False
    """Whether the pattern has back-references."""


class _Untranslatable(Exception):
    """The dialect has nothing that means the same."""


def java_regex(regex: Regex) -> str | None:
    """The Java pattern that matches the same texts; None if there is none."""
    return _translated(regex, _java())


def re2_regex(regex: Regex) -> str | None:
    """The RE2 pattern that matches the same texts; None if there is none."""
    return _translated(regex, _RE2)


def extracting_java(regex: Regex) -> str | None:
    """The Java pattern with the same groups; None if there is none."""
    return _translated(regex, replace(_java(), extracts=True))


def extracting_re2(regex: Regex) -> str | None:
    """The RE2 pattern with the same groups; None if there is none."""
    return _translated(regex, replace(_RE2, extracts=True))


def python_regex(regex: Regex) -> str | None:
    """The pattern of Python's `re` that matches the same texts; None if there is none."""
    return _translated(regex, _python())


def _translated(regex: Regex, dialect: _Dialect) -> str | None:
    dialect = replace(dialect, remembers=has_back_references(regex.node))
    try:
        if dialect.bounded and _weight(regex.node, 1) > _RANGES_MAX:
            return None
        return _text(regex.node, dialect, repeated=False)
    except _Untranslatable:
        return None


def _weight(node: RegexNode, times: int) -> int:
    if times > _REPEATS_MAX:
        raise _Untranslatable
    match node:
        case Characters(ranges):
            return len(ranges) * times
        case Repeat(inner, least, most):
            return _weight(inner, times * max(least if most is None else most, 1))
        case _:
            return sum(_weight(part, times) for part in child_nodes(node))


def _text(node: RegexNode, dialect: _Dialect, *, repeated: bool) -> str:
    match node:
        case Characters(ranges):
            return _set(ranges, dialect)
        case Anchor(kind):
            text = dialect.anchors.get(kind)
            if text is None:
                raise _Untranslatable
            return text
        case Lookaround(inner, behind, negative):
            if not dialect.looks or (behind and not _is_bounded(inner)):
                raise _Untranslatable
            sign = ("<" if behind else "") + ("!" if negative else "=")
            return f"(?{sign}{_text(inner, dialect, repeated=repeated)})"
        case Chain(items):
            texts = [_text(item, dialect, repeated=repeated) for item in items]
            return f"(?:{''.join(texts)})"
        case Either(items):
            texts = [_text(item, dialect, repeated=repeated) for item in items]
            return f"(?:{'|'.join(texts)})"
        case Repeat(inner, least, most):
            counts = f"{{{least},{'' if most is None else most}}}"
            several = not (dialect.extracts and most == 1)
            text = _text(inner, dialect, repeated=repeated or several)
            return f"(?:{text}){counts}"
        case CapturingGroup(inner):
            # What a repeated group remembers is not the same everywhere.
            if repeated and dialect.remembers:
                raise _Untranslatable
            opening = "(?:" if repeated else "("
            return f"{opening}{_text(inner, dialect, repeated=repeated)})"
        case BackReference(number, ignore_case):
            if not dialect.looks or ignore_case or repeated:
                raise _Untranslatable
            return f"(?:\\{number})"


def _is_bounded(node: RegexNode) -> bool:
    if isinstance(node, Repeat) and node.most is None:
        return False
    return not isinstance(node, BackReference | Lookaround) and all(
        map(_is_bounded, child_nodes(node))
    )


def _set(ranges: Ranges, dialect: _Dialect) -> str:
    if ranges == ALL_CHARACTERS:
        return "(?s:.)"
    if not ranges:
        return f"[^{dialect.code(1)}-{dialect.code(LAST_CODE_POINT)}]"
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return _character(ranges[0][0], dialect)
    negated = complement(ranges)
    if len(negated) < len(ranges):
        return f"[^{_listed(negated, dialect)}]"
    return f"[{_listed(ranges, dialect)}]"


def _listed(ranges: Ranges, dialect: _Dialect) -> str:
    return "".join(
        _character(first, dialect)
        if first == last
        else f"{_character(first, dialect)}-{_character(last, dialect)}"
        for first, last in ranges
    )


def _character(code: int, dialect: _Dialect) -> str:
    text = chr(code)
    return text if text.isascii() and text.isalnum() else dialect.code(code)


def _by_braces(code: int) -> str:
    return f"\\x{{{code:x}}}"


_WORD: Final = character_class("word") or ()
_RE2: Final = _Dialect(
    _by_braces,
    looks=False,
    anchors={
        AnchorKind.START: r"\A",
        AnchorKind.END: r"\z",
        AnchorKind.LINE_START: "(?m:^)",
        AnchorKind.LINE_END: "(?m:$)",
    },
    bounded=True,
)


def _looking_dialect(code: Callable[[int], str], end: str) -> _Dialect:
    word = f"[{''.join(f'{code(first)}-{code(last)}' for first, last in _WORD)}]"
    starts, ends = f"(?<!{word})(?={word})", f"(?<={word})(?!{word})"
    newline = code(10)
    anchors = {
        AnchorKind.START: r"\A",
        AnchorKind.END: end,
        AnchorKind.LINE_START: f"(?:\\A|(?<={newline}))",
        AnchorKind.LINE_END: f"(?:{end}|(?={newline}))",
        AnchorKind.WORD_START: f"(?:{starts})",
        AnchorKind.WORD_END: f"(?:{ends})",
        AnchorKind.WORD_EDGE: f"(?:{starts}|{ends})",
        AnchorKind.NO_WORD_EDGE: f"(?!{starts})(?!{ends})",
    }
    return _Dialect(code, looks=True, anchors=anchors)


@cache
def _java() -> _Dialect:
    return _looking_dialect(_by_braces, r"\z")


@cache
def _python() -> _Dialect:
    return _looking_dialect(lambda code: f"\\U{code:08x}", r"\Z")
